//! Appends and blobs: what the writer does for them.

use std::sync::Arc;

use holdpoint_core::{Digest, IndexChange, Payload, Record};
use rusqlite::{OptionalExtension, Transaction};

use super::{
    cells,
    row::{self, int, position},
    writer::{Desk, Verdict, Write},
};
use crate::{
    Append, AppendError, Appended, ThreadKey, Unavailable,
    admission::{self, Standing, Tenure},
};

/// A thread's row and how it stands.
pub(super) fn standing(
    tx: &Transaction<'_>,
    key: &ThreadKey,
) -> rusqlite::Result<Option<(i64, Standing)>> {
    tx.prepare_cached(
        "SELECT id, version, epoch, owner, boot, until FROM threads WHERE tenant = ?1 AND thread = ?2",
    )?
    .query_row((&*key.tenant, key.thread.as_bytes()), |row| Ok((row.get(0)?, row::standing(row, 1)?)))
    .optional()
}

/// A lease as its three columns: owner, boot, until.
pub(super) fn lease(tenure: Option<&Tenure>) -> (Option<&[u8; 16]>, Option<&str>, Option<i64>) {
    (
        tenure.map(|tenure| tenure.owner.as_bytes()),
        tenure.and_then(|tenure| tenure.boot.as_deref()),
        tenure.map(|tenure| tenure.until.as_micros()),
    )
}

impl Write for Append {
    type Done = Appended;
    type Error = AppendError;

    const IS_APPEND: bool = true;

    fn write(&self, desk: &Desk<'_>) -> Verdict<Appended, AppendError> {
        let Desk { tx, owners, .. } = desk;
        let found = standing(tx, &self.key)?;
        let absent = Standing::default();
        let before = found.as_ref().map_or(&absent, |(_, standing)| standing);
        let after = match admission::admit(self, before, desk) {
            Ok(after) => after,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let tenant = &*self.key.tenant;
        let versions = match cells::admit_all(desk, tenant, &self.cells)? {
            Ok(versions) => versions,
            Err(refusal) => return Ok(Err(refusal)),
        };
        owners.note(before.lease.as_ref(), after.lease.as_ref());
        // INVARIANT: everything was checked above; from here on only the database can fail.
        let id = write_head(tx, self, found.as_ref().map(|(id, _)| *id), &after)?;
        write_records(tx, id, before.version, &self.records, IfTaken::Fail)?;
        write_index(tx, tenant, &self.index)?;
        cells::write_all(tx, tenant, &self.cells, &versions)?;
        Ok(Ok(Appended {
            version: after.version,
            epoch: after.epoch,
        }))
    }
}

fn write_head(
    tx: &Transaction<'_>,
    append: &Append,
    id: Option<i64>,
    after: &Standing,
) -> rusqlite::Result<i64> {
    let (owner, boot, until) = lease(after.lease.as_ref());
    let (version, epoch) = (int(after.version), int(after.epoch));
    let Payload {
        codec,
        key_id,
        bytes,
    } = &append.head;
    let Some(id) = id else {
        return tx
            .prepare_cached(
                "INSERT INTO threads (tenant, thread, version, epoch, owner, boot, until, codec, key_id, head)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            )?
            .insert((
                &*append.key.tenant,
                append.key.thread.as_bytes(),
                version,
                epoch,
                owner,
                boot,
                until,
                codec.number(),
                key_id,
                bytes,
            ));
    };
    tx.prepare_cached(
        "UPDATE threads SET version = ?2, epoch = ?3, owner = ?4, boot = ?5, until = ?6, codec = ?7, key_id = ?8, head = ?9
         WHERE id = ?1",
    )?
    .execute((id, version, epoch, owner, boot, until, codec.number(), key_id, bytes))?;
    Ok(id)
}

/// What becomes of a record whose place is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IfTaken {
    /// The database refuses it, with everything else.
    Fail,
    /// It was written before.
    Keep,
}

pub(super) fn write_records(
    tx: &Transaction<'_>,
    thread: i64,
    version: u64,
    records: &[Record],
    if_taken: IfTaken,
) -> rusqlite::Result<()> {
    let mut insert = tx.prepare_cached(match if_taken {
        IfTaken::Fail => {
            "INSERT INTO events (pos, header, salt, codec, key_id, payload, hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"
        }
        IfTaken::Keep => {
            "INSERT INTO events (pos, header, salt, codec, key_id, payload, hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
             ON CONFLICT DO NOTHING"
        }
    })?;
    for (record, seq) in records.iter().zip(version + 1..) {
        let Payload {
            codec,
            key_id,
            bytes,
        } = &record.payload;
        insert.execute((
            position(thread, seq),
            &record.header,
            record.salt,
            codec.number(),
            key_id,
            bytes,
            record.hash.as_bytes(),
        ))?;
    }
    Ok(())
}

pub(super) fn write_index(
    tx: &Transaction<'_>,
    tenant: &str,
    changes: &[IndexChange],
) -> rusqlite::Result<()> {
    let mut put = tx.prepare_cached(
        "INSERT INTO entries (idx, tenant, key, sort, thread) VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING",
    )?;
    let mut remove = tx.prepare_cached(
        "DELETE FROM entries WHERE idx = ?1 AND tenant = ?2 AND key = ?3 AND sort = ?4 AND thread = ?5",
    )?;
    for change in changes {
        let (statement, row) = match change {
            IndexChange::Put(row) => (&mut put, row),
            IndexChange::Remove(row) => (&mut remove, row),
        };
        let columns = (
            row.index.number(),
            tenant,
            &row.key,
            row.sort,
            row.thread.as_bytes(),
        );
        statement.execute(columns)?;
    }
    Ok(())
}

/// Bytes to keep under their digest.
pub(super) struct PutBlob {
    pub(super) tenant: Arc<str>,
    pub(super) digest: Digest,
    pub(super) payload: Payload,
}

impl Write for PutBlob {
    type Done = ();
    type Error = Unavailable;

    const IS_APPEND: bool = false;

    fn write(&self, Desk { tx, .. }: &Desk<'_>) -> Verdict<(), Unavailable> {
        let Payload {
            codec,
            key_id,
            bytes,
        } = &self.payload;
        tx.prepare_cached(
            "INSERT INTO blobs (tenant, digest, codec, key_id, bytes) VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING",
        )?
        .execute((&*self.tenant, self.digest.as_bytes(), codec.number(), key_id, bytes))?;
        Ok(Ok(()))
    }
}
