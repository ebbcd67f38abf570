//! Moving: the part that a file has in it, the seal, and what is handed over.

use std::sync::Arc;

use holdpoint_core::{Digest, IndexChange, Payload, ThreadId};
use rusqlite::{Connection, OptionalExtension, Row, Transaction, types::Type};

use super::{
    append::{IfTaken, PutBlob, write_index, write_records},
    marks::{self, Mark},
    owners::Owners,
    row::{self, int, limit},
    writer::{Desk, Verdict, Write},
};
use crate::{
    Head, Import, ImportedThread, KeptCell, KeptCells, Move, Part, Space, ThreadKey, Unavailable,
    admission::Census as _, moving::expect_arriving,
};

/// Everything that a seal protects.
const TABLES: [&str; 5] = ["threads", "events", "entries", "blobs", "cells"];

pub(super) fn part(conn: &Connection) -> rusqlite::Result<Option<Part>> {
    // A file that may only be read is read as it was laid out.
    let notes = "SELECT count(*) FROM pragma_table_info('marks') WHERE name = 'note'";
    if conn.query_row(notes, [], |row| row.get::<_, u32>(0))? == 0 {
        return Ok(None);
    }
    let found = conn
        .prepare_cached(
            "SELECT name, value, note FROM marks WHERE name IN ('leaving', 'left', 'arriving')",
        )?
        .query_row([], |row| {
            let moving = Move {
                ticket: row.get(1)?,
                other: row.get(2)?,
            };
            Ok(Part::from_name(row.get_ref(0)?.as_str()?, moving))
        })
        .optional()?;
    Ok(found.flatten())
}

/// Another part in a move, if the file has the one that is expected.
pub(super) struct SetPart {
    pub(super) expected: Option<Part>,
    pub(super) then: Option<Part>,
}

impl Write for SetPart {
    type Done = bool;
    type Error = Unavailable;

    const IS_APPEND: bool = false;
    const IS_LAST: bool = true;

    fn write(&self, Desk { tx, .. }: &Desk<'_>) -> Verdict<bool, Unavailable> {
        let found = part(tx)?;
        if found != self.expected {
            return Ok(Ok(false));
        }
        if found.is_some() {
            unseal(tx)?;
        }
        tx.execute(
            "DELETE FROM marks WHERE name IN ('leaving', 'left', 'arriving')",
            [],
        )?;
        if let Some(part) = &self.then {
            let Move { ticket, other } = part.moving();
            tx.execute(
                "INSERT INTO marks (name, value, note) VALUES (?1, ?2, ?3)",
                (part.name(), ticket, other),
            )?;
            seal(tx, &part.refusal())?;
        }
        Ok(Ok(true))
    }
}

/// Lets SQLite itself refuse whatever is written, by whichever process: it looks for triggers in every transaction. Only what
/// bears the mark `importing` is let in, which nobody sees but the transaction that makes it.
fn seal(tx: &Transaction<'_>, refusal: &str) -> rusqlite::Result<()> {
    let refusal = refusal.replace('\'', "''");
    for (name, table, change) in triggers() {
        tx.execute_batch(&format!(
            "CREATE TRIGGER {name} BEFORE {change} ON {table} WHEN NOT EXISTS (SELECT 1 FROM marks WHERE name = 'importing')
             BEGIN SELECT RAISE(ABORT, '{refusal}'); END"
        ))?;
    }
    Ok(())
}

fn unseal(tx: &Transaction<'_>) -> rusqlite::Result<()> {
    for (name, ..) in triggers() {
        tx.execute_batch(&format!("DROP TRIGGER {name}"))?;
    }
    Ok(())
}

fn triggers() -> impl Iterator<Item = (String, &'static str, &'static str)> {
    TABLES.into_iter().flat_map(|table| {
        ["INSERT", "UPDATE", "DELETE"]
            .map(|change| (format!("sealed_{table}_{change}"), table, change))
    })
}

pub(super) fn count(conn: &Connection) -> rusqlite::Result<u64> {
    conn.query_row("SELECT count(*) FROM threads", [], |row| row::count(row, 0))
}

pub(super) fn threads(
    conn: &Connection,
    after: Option<&ThreadKey>,
    most: usize,
    owners: &Owners,
) -> rusqlite::Result<Vec<(ThreadKey, rusqlite::Result<Head>)>> {
    let (tenant, thread) = after.map_or(("", [].as_slice()), |key| {
        (&*key.tenant, key.thread.as_bytes().as_slice())
    });
    conn.prepare_cached(
        "SELECT tenant, thread, version, epoch, owner, boot, until, codec, key_id, head FROM threads
         WHERE (tenant, thread) > (?1, ?2) ORDER BY tenant, thread LIMIT ?3",
    )?
    .query_map((tenant, thread, limit(most)), |row| {
        let head = || {
            let standing = row::standing(row, 2)?;
            Ok(Head {
                version: standing.version,
                epoch: standing.epoch,
                lease: standing.lease.map(|tenure| owners.lease(&tenure)),
                payload: row::payload(row, 7)?,
            })
        };
        let key = ThreadKey {
            tenant: tenant_of(row)?,
            thread: ThreadId::from_bytes(row.get(1)?),
        };
        Ok((key, head()))
    })?
    .collect()
}

pub(super) fn blobs(
    conn: &Connection,
    after: Option<&(Arc<str>, Digest)>,
    most: usize,
) -> rusqlite::Result<Vec<(Arc<str>, Digest)>> {
    let (tenant, digest) = after.map_or(("", [].as_slice()), |(tenant, digest)| {
        (&**tenant, digest.as_bytes().as_slice())
    });
    conn.prepare_cached(
        "SELECT tenant, digest FROM blobs WHERE (tenant, digest) > (?1, ?2) ORDER BY tenant, digest LIMIT ?3",
    )?
    .query_map((tenant, digest, limit(most)), |row| {
        Ok((tenant_of(row)?, Digest::from_bytes(row.get(1)?)))
    })?
    .collect()
}

pub(super) fn kept_cells(
    conn: &Connection,
    after: Option<&KeptCell>,
    most: usize,
) -> rusqlite::Result<KeptCells> {
    let (tenant, space, key) = after.map_or(("", 0, ""), |cell| {
        (&*cell.tenant, cell.space.number(), cell.key.as_str())
    });
    let cells = conn
        .prepare_cached(
            "SELECT tenant, space, key, version, value, until FROM cells
             WHERE (tenant, space, key) > (?1, ?2, ?3) ORDER BY tenant, space, key LIMIT ?4",
        )?
        .query_map((tenant, space, key, limit(most)), |row| {
            Ok(KeptCell {
                tenant: tenant_of(row)?,
                space: space_of(row)?,
                key: row.get(2)?,
                version: row::count(row, 3)?,
                value: row.get(4)?,
                until: row::time(row, 5)?,
            })
        })?
        .collect::<Result<_, _>>()?;
    let swept = marks::read(conn, Mark::Swept)?.unwrap_or(0);
    Ok(KeptCells {
        cells,
        swept: swept.unsigned_abs(),
    })
}

fn tenant_of(row: &Row<'_>) -> rusqlite::Result<Arc<str>> {
    Ok(row.get_ref(0)?.as_str()?.into())
}

fn space_of(row: &Row<'_>) -> rusqlite::Result<Space> {
    let number: u8 = row.get(1)?;
    Space::from_number(number).ok_or_else(|| {
        let reason =
            format!("a cell is for something (number {number}) that this build does not know");
        rusqlite::Error::FromSqlConversionFailure(1, Type::Integer, reason.into())
    })
}

/// What comes from another store.
pub(super) struct Bring(pub(super) Import);

impl Write for Bring {
    type Done = ();
    type Error = Unavailable;

    const IS_APPEND: bool = false;

    fn write(&self, desk: &Desk<'_>) -> Verdict<(), Unavailable> {
        let Self(Import {
            ticket,
            threads,
            rows,
            cells,
            blobs,
        }) = self;
        if let Err(refusal) = expect_arriving(part(desk.tx)?.as_ref(), *ticket) {
            return Ok(Err(refusal));
        }
        desk.tx.execute(
            "INSERT INTO marks (name, value) VALUES ('importing', 0)",
            [],
        )?;
        for thread in threads {
            bring_thread(desk.tx, thread)?;
        }
        for (tenant, row) in rows {
            write_index(desk.tx, tenant, &[IndexChange::Put(row.clone())])?;
        }
        bring_cells(desk.tx, cells)?;
        for (tenant, digest, payload) in blobs {
            let put = PutBlob {
                tenant: Arc::clone(tenant),
                digest: *digest,
                payload: payload.clone(),
            };
            if let Err(unavailable) = put.write(desk)? {
                return Ok(Err(unavailable));
            }
        }
        desk.tx
            .execute("DELETE FROM marks WHERE name = 'importing'", [])?;
        Ok(Ok(()))
    }
}

fn bring_thread(tx: &Transaction<'_>, thread: &ImportedThread) -> rusqlite::Result<()> {
    let Payload {
        codec,
        key_id,
        bytes,
    } = &thread.head;
    let id: i64 = tx
        .prepare_cached(
            "INSERT INTO threads (tenant, thread, version, epoch, codec, key_id, head) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
             ON CONFLICT (tenant, thread) DO UPDATE
             SET version = max(version, excluded.version), epoch = excluded.epoch, codec = excluded.codec,
                 key_id = excluded.key_id, head = excluded.head
             RETURNING id",
        )?
        .query_row(
            (
                &*thread.key.tenant,
                thread.key.thread.as_bytes(),
                int(thread.records.last().map_or(0, |last| last.seq)),
                int(thread.epoch),
                codec.number(),
                key_id,
                bytes,
            ),
            |row| row.get(0),
        )?;
    let before = thread
        .records
        .first()
        .map_or(0, |first| first.seq.saturating_sub(1));
    write_records(tx, id, before, &thread.records, IfTaken::Keep)
}

fn bring_cells(tx: &Transaction<'_>, kept: &KeptCells) -> rusqlite::Result<()> {
    let mut insert = tx.prepare_cached(
        "INSERT INTO cells (tenant, space, key, version, value, until) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT DO UPDATE SET version = excluded.version, value = excluded.value, until = excluded.until",
    )?;
    for cell in &kept.cells {
        insert.execute((
            &*cell.tenant,
            cell.space.number(),
            &cell.key,
            int(cell.version),
            &cell.value,
            cell.until.map(holdpoint_core::Timestamp::as_micros),
        ))?;
    }
    if kept.swept > 0 {
        marks::raise(tx, Mark::Swept, int(kept.swept))?;
    }
    Ok(())
}
