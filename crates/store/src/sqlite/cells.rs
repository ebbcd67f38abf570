//! Cells: what the writer does for them, and how they are read.

use std::sync::Arc;

use holdpoint_core::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, Transaction};

use super::{
    append::write_index,
    marks::{self, Mark},
    row::{self, int, limit},
    writer::{Desk, Verdict, Write},
};
use crate::{
    Amendment, AppendError, Cell, CellChange, CellThen, Space, Unavailable,
    admission::{self, Census as _, Slot},
};

/// The cells that have ended by a time, the oldest first.
const ENDED: &str =
    "SELECT tenant, space, key, version FROM cells WHERE until <= ?1 ORDER BY until LIMIT ?2";

/// The versions that cells have after changes, or why one of them may not change.
pub(super) fn admit_all(
    desk: &Desk<'_>,
    tenant: &str,
    changes: &[CellChange],
) -> Verdict<Vec<u64>, AppendError> {
    let mut versions = Vec::with_capacity(changes.len());
    for change in changes {
        match admit(desk, tenant, change)? {
            Ok(version) => versions.push(version),
            Err(refusal) => return Ok(Err(refusal)),
        }
    }
    Ok(Ok(versions))
}

fn admit(
    Desk { tx, owners, .. }: &Desk<'_>,
    tenant: &str,
    change: &CellChange,
) -> Verdict<u64, AppendError> {
    let slot = tx
        .prepare_cached(
            "SELECT version, value IS NOT NULL, until FROM cells WHERE tenant = ?1 AND space = ?2 AND key = ?3",
        )?
        .query_row((tenant, change.space.number(), &change.key), |row| {
            let (has_value, until): (bool, _) = (row.get(1)?, row::time(row, 2)?);
            Ok(Slot {
                version: row::count(row, 0)?,
                is_there: has_value && admission::lasts(until, owners.now()),
            })
        })
        .optional()?;
    let slot = match slot {
        Some(slot) => slot,
        None => Slot {
            version: marks::read(tx, Mark::Swept)?.unwrap_or(0).unsigned_abs(),
            is_there: false,
        },
    };
    Ok(admission::admit_cell(change, slot))
}

/// Writes changes that were admitted, with the versions that the cells have then.
pub(super) fn write_all(
    tx: &Transaction<'_>,
    tenant: &str,
    changes: &[CellChange],
    versions: &[u64],
) -> rusqlite::Result<()> {
    for (change, version) in changes.iter().zip(versions) {
        write(tx, tenant, change, *version)?;
    }
    Ok(())
}

fn write(
    tx: &Transaction<'_>,
    tenant: &str,
    change: &CellChange,
    version: u64,
) -> rusqlite::Result<()> {
    let (space, key, version) = (change.space.number(), &change.key, int(version));
    match &change.then {
        CellThen::Set { value, until } => tx
            .prepare_cached(
                "INSERT INTO cells (tenant, space, key, version, value, until) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                 ON CONFLICT DO UPDATE SET version = excluded.version, value = excluded.value, until = excluded.until",
            )?
            .execute((tenant, space, key, version, value, until.map(Timestamp::as_micros)))?,
        // What is left of it keeps its end, and is swept away then.
        CellThen::Remove => tx
            .prepare_cached(
                "INSERT INTO cells (tenant, space, key, version) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT DO UPDATE SET version = excluded.version, value = NULL",
            )?
            .execute((tenant, space, key, version))?,
        CellThen::Keep => 0,
    };
    Ok(())
}

/// What changes beside the threads.
pub(super) struct Amend {
    pub(super) tenant: Arc<str>,
    pub(super) amendment: Amendment,
}

impl Write for Amend {
    type Done = Vec<u64>;
    type Error = AppendError;

    const IS_APPEND: bool = false;

    fn write(&self, desk: &Desk<'_>) -> Verdict<Vec<u64>, AppendError> {
        let Amendment { index, cells } = &self.amendment;
        let versions = match admit_all(desk, &self.tenant, cells)? {
            Ok(versions) => versions,
            Err(refusal) => return Ok(Err(refusal)),
        };
        write_index(desk.tx, &self.tenant, index)?;
        write_all(desk.tx, &self.tenant, cells, &versions)?;
        Ok(Ok(versions))
    }
}

/// Clears away cells that have ended.
pub(super) struct Sweep {
    pub(super) limit: usize,
}

impl Write for Sweep {
    type Done = usize;
    type Error = Unavailable;

    const IS_APPEND: bool = false;

    fn write(&self, Desk { tx, owners, .. }: &Desk<'_>) -> Verdict<usize, Unavailable> {
        let ended: Vec<(String, u8, String, i64)> = tx
            .prepare_cached(ENDED)?
            .query_map((owners.now().as_micros(), limit(self.limit)), |row| {
                row.try_into()
            })?
            .collect::<Result<_, _>>()?;
        let mut delete =
            tx.prepare_cached("DELETE FROM cells WHERE tenant = ?1 AND space = ?2 AND key = ?3")?;
        for (tenant, space, key, _) in &ended {
            delete.execute((tenant, space, key))?;
        }
        // INVARIANT: what takes the place of one of these gets a higher version than it had.
        if let Some(highest) = ended.iter().map(|(.., version)| *version).max() {
            marks::raise(tx, Mark::Swept, highest)?;
        }
        Ok(Ok(ended.len()))
    }
}

pub(super) fn one(
    conn: &Connection,
    tenant: &str,
    space: Space,
    key: &str,
    now: Timestamp,
) -> rusqlite::Result<Option<Cell>> {
    conn.prepare_cached(
        "SELECT version, value, until FROM cells
         WHERE tenant = ?1 AND space = ?2 AND key = ?3 AND value IS NOT NULL AND (until IS NULL OR until > ?4)",
    )?
    .query_row((tenant, space.number(), key, now.as_micros()), |row| read(row, 0))
    .optional()
}

pub(super) fn some(
    conn: &Connection,
    tenant: &str,
    space: Space,
    after: Option<&str>,
    most: usize,
    now: Timestamp,
) -> rusqlite::Result<Vec<(String, Cell)>> {
    // The empty key is a key too, so no text comes before all of them.
    let (from, key) = after.map_or((">=", ""), |key| (">", key));
    conn.prepare_cached(&format!(
        "SELECT key, version, value, until FROM cells
         WHERE tenant = ?1 AND space = ?2 AND key {from} ?3 AND value IS NOT NULL AND (until IS NULL OR until > ?4)
         ORDER BY key LIMIT ?5"
    ))?
    .query_map(
        (tenant, space.number(), key, now.as_micros(), limit(most)),
        |row| Ok((row.get(0)?, read(row, 1)?)),
    )?
    .collect()
}

/// A cell in the three columns from `column` on: version, value, until.
fn read(row: &Row<'_>, column: usize) -> rusqlite::Result<Cell> {
    Ok(Cell {
        version: row::count(row, column)?,
        value: row.get(column + 1)?,
        until: row::time(row, column + 2)?,
    })
}

#[cfg(test)]
mod tests {
    use super::{
        super::{connection, schema},
        *,
    };

    /// It is asked for again and again, and most cells never end.
    #[test]
    fn a_sweep_does_not_look_at_cells_that_have_not_ended() {
        let folder = tempfile::tempdir().unwrap();
        let mut conn = connection::writer(&folder.path().join("test.db")).unwrap();
        schema::migrate(&mut conn).unwrap();
        let plan: String = conn
            .query_row(&format!("EXPLAIN QUERY PLAN {ENDED}"), (0, 10), |row| {
                row.get(3)
            })
            .unwrap();
        assert_eq!(plan, "SEARCH cells USING INDEX cells_until (until<?)");
    }
}
