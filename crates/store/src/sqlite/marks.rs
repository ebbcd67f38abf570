//! What is true of the file as a whole.

use rusqlite::{Connection, OptionalExtension};

/// Something that a file is marked with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// The highest version of a cell that was swept away.
    Swept,
    /// This is a copy that nobody has adopted, made at that time.
    Backup,
}

impl Mark {
    const fn name(self) -> &'static str {
        match self {
            Self::Swept => "swept",
            Self::Backup => "backup",
        }
    }
}

pub(super) fn read(conn: &Connection, mark: Mark) -> rusqlite::Result<Option<i64>> {
    conn.prepare_cached("SELECT value FROM marks WHERE name = ?1")?
        .query_row([mark.name()], |row| row.get(0))
        .optional()
}

/// Sets a mark, unless it is that high already.
pub(super) fn raise(conn: &Connection, mark: Mark, value: i64) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "INSERT INTO marks (name, value) VALUES (?1, ?2)
         ON CONFLICT DO UPDATE SET value = max(value, excluded.value)",
    )?
    .execute((mark.name(), value))?;
    Ok(())
}

/// Takes a mark away. Returns whether it was there.
pub(super) fn remove(conn: &Connection, mark: Mark) -> rusqlite::Result<bool> {
    let removed = conn
        .prepare_cached("DELETE FROM marks WHERE name = ?1")?
        .execute([mark.name()])?;
    Ok(removed > 0)
}
