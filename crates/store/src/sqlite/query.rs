//! Reading: heads, records and blobs.

use std::sync::Arc;

use holdpoint_core::{Digest, Payload, Record, ThreadId};
use rusqlite::{Connection, OptionalExtension};

use super::{
    owners::Owners,
    row::{self, LAST_SEQ, limit},
};
use crate::{Head, ThreadKey, admission::Census};

pub(super) fn head(
    conn: &Connection,
    key: &ThreadKey,
    owners: &Owners,
) -> rusqlite::Result<Option<Head>> {
    conn.prepare_cached(
        "SELECT version, epoch, owner, boot, until, codec, key_id, head FROM threads WHERE tenant = ?1 AND thread = ?2",
    )?
    .query_row((&*key.tenant, key.thread.as_bytes()), |row| {
        let standing = row::standing(row, 0)?;
        Ok(Head {
            version: standing.version,
            epoch: standing.epoch,
            lease: standing.lease.map(|tenure| owners.lease(&tenure)),
            payload: row::payload(row, 5)?,
        })
    })
    .optional()
}

/// In one transaction, which costs more than finding a head.
pub(super) fn heads(
    conn: &Connection,
    tenant: &Arc<str>,
    threads: &[ThreadId],
    owners: &Owners,
) -> rusqlite::Result<Vec<Option<Head>>> {
    let tx = conn.unchecked_transaction()?;
    let key = |thread: &ThreadId| ThreadKey {
        tenant: Arc::clone(tenant),
        thread: *thread,
    };
    threads
        .iter()
        .map(|thread| head(&tx, &key(thread), owners))
        .collect()
}

/// One statement over and over, in one transaction: there is no round trip that one large statement would save. The
/// version lies before the head in its row, so that a head that is long is not read.
pub(super) fn versions(conn: &Connection, keys: &[ThreadKey]) -> rusqlite::Result<Vec<u64>> {
    let tx = conn.unchecked_transaction()?;
    let mut find =
        tx.prepare_cached("SELECT version FROM threads WHERE tenant = ?1 AND thread = ?2")?;
    let mut version = |key: &ThreadKey| {
        find.query_row((&*key.tenant, key.thread.as_bytes()), |row| {
            row::count(row, 0)
        })
        .optional()
    };
    keys.iter()
        .map(|key| Ok(version(key)?.unwrap_or(0)))
        .collect()
}

pub(super) fn records(
    conn: &Connection,
    key: &ThreadKey,
    after: u64,
    most: usize,
) -> rusqlite::Result<Vec<Record>> {
    // One statement, so that it sees one state of the file.
    conn.prepare_cached(
        "WITH first (pos) AS (SELECT id << 24 FROM threads WHERE tenant = ?1 AND thread = ?2)
         SELECT events.pos, header, salt, codec, key_id, payload, hash FROM first
         JOIN events ON events.pos > first.pos + ?3 AND events.pos <= first.pos + ?4
         ORDER BY events.pos LIMIT ?5",
    )?
    .query_map(
        (
            &*key.tenant,
            key.thread.as_bytes(),
            row::int(after.min(LAST_SEQ)),
            row::int(LAST_SEQ),
            limit(most),
        ),
        row::record,
    )?
    .collect()
}

pub(super) fn blob(
    conn: &Connection,
    tenant: &str,
    digest: &Digest,
) -> rusqlite::Result<Option<Payload>> {
    conn.prepare_cached("SELECT codec, key_id, bytes FROM blobs WHERE tenant = ?1 AND digest = ?2")?
        .query_row((tenant, digest.as_bytes()), |row| row::payload(row, 0))
        .optional()
}
