//! The layout of the file, and how an older one becomes today's.
//!
//! A layout is never edited once it was released: what changes is another migration at the end of the list.

use holdpoint_core::Digest;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};

/// The layouts there ever were; each is reached from the one before.
const ALL: [&str; 2] = [
    include_str!("migrations/0001_journal.sql"),
    include_str!("migrations/0002_moving.sql"),
];

/// Marks the file as ours: `HOLD`.
const APPLICATION: i64 = 0x484f_4c44;

/// The layout that this build reads and writes. A build that stands for the version before this one knows none newer than
/// that one did, and is there to show that both get along while one takes the other's place.
pub(super) const FORMAT: u64 = ALL.len() as u64
    - if cfg!(feature = "previous-format") {
        1
    } else {
        0
    };

/// The layouts that this build knows.
fn known() -> impl Iterator<Item = &'static str> {
    ALL.into_iter().zip(0..FORMAT).map(|(sql, _)| sql)
}

/// What is found in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing yet.
    Empty,
    /// A layout of ours that this build knows.
    Known(u64),
    /// A layout of ours from the future.
    Newer(u64),
    /// A layout that has the number of one of ours but is another.
    Altered(u64),
    /// Something else's database.
    Foreign,
}

/// Looks at a file without changing it.
pub(super) fn inspect(conn: &Connection) -> rusqlite::Result<Found> {
    let application: i64 = conn.pragma_query_value(None, "application_id", |row| row.get(0))?;
    if application != APPLICATION {
        let tables: i64 =
            conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        return Ok(if application == 0 && tables == 0 {
            Found::Empty
        } else {
            Found::Foreign
        });
    }
    let newest: i64 =
        conn.query_row("SELECT max(version) FROM migrations", [], |row| row.get(0))?;
    let format = u64::try_from(newest).unwrap_or(0);
    if format > FORMAT {
        return Ok(Found::Newer(format));
    }
    for (sql, version) in known().zip(1..=newest) {
        let checksum: Option<Vec<u8>> = conn
            .query_row(
                "SELECT checksum FROM migrations WHERE version = ?1",
                [version],
                |row| row.get(0),
            )
            .optional()?;
        if checksum.as_deref() != Some(Digest::of(sql.as_bytes()).as_bytes().as_slice()) {
            return Ok(Found::Altered(format));
        }
    }
    Ok(Found::Known(format))
}

/// Brings a file up to today's layout, if it is one of ours or empty. Returns what was found.
pub(super) fn migrate(conn: &mut Connection) -> rusqlite::Result<Found> {
    // Another process may be doing the same, so what is there is looked at under the write lock.
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found = inspect(&tx)?;
    match found {
        Found::Empty => {
            tx.pragma_update(None, "application_id", APPLICATION)?;
            tx.execute_batch(
                "CREATE TABLE migrations (version INTEGER PRIMARY KEY, checksum BLOB NOT NULL)",
            )?;
            run_from(&tx, 0)?;
        }
        Found::Known(format) => run_from(&tx, format)?,
        Found::Newer(_) | Found::Altered(_) | Found::Foreign => return Ok(found),
    }
    tx.commit()?;
    Ok(found)
}

fn run_from(tx: &Transaction<'_>, format: u64) -> rusqlite::Result<()> {
    for (sql, version) in known().zip(1_i64..) {
        if version.unsigned_abs() > format {
            tx.execute_batch(sql)?;
            tx.execute(
                "INSERT INTO migrations (version, checksum) VALUES (?1, ?2)",
                (version, Digest::of(sql.as_bytes()).as_bytes()),
            )?;
        }
    }
    Ok(())
}
