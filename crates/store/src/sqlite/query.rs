//! Reading: heads, records, index rows and blobs.

use std::sync::Arc;

use holdpoint_core::{Digest, Index, IndexRow, Payload, Record, ThreadId};
use rusqlite::{Connection, OptionalExtension, Row};

use super::{
    owners::Owners,
    row::{self, LAST_SEQ, limit},
};
use crate::{Head, Scan, ThreadKey, admission::Census};

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

pub(super) fn rows(
    conn: &Connection,
    tenant: &str,
    scan: &Scan,
) -> rusqlite::Result<Vec<IndexRow>> {
    let up_to = scan.up_to.unwrap_or(i64::MAX);
    let after = scan.after.as_ref();
    // Comes before every row there can be.
    let (mut sort, mut thread) = (i64::MIN, [].as_slice());
    if let Some(after) = after {
        (sort, thread) = (after.sort, after.thread.as_bytes());
    }
    let read = |row: &Row<'_>| {
        Ok(IndexRow {
            index: scan.index,
            key: row.get(0)?,
            sort: row.get(1)?,
            thread: ThreadId::from_bytes(row.get(2)?),
        })
    };
    let (index, most) = (scan.index.number(), limit(scan.limit));
    let Some(key) = &scan.key else {
        let from = after.map_or("", |row| &row.key);
        return conn
            .prepare_cached(
                "SELECT key, sort, thread FROM entries
                 WHERE idx = ?1 AND tenant = ?2 AND (key, sort, thread) > (?3, ?4, ?5) AND sort <= ?6
                 ORDER BY key, sort, thread LIMIT ?7",
            )?
            .query_map((index, tenant, from, sort, thread, up_to, most), read)?
            .collect();
    };
    match after.map(|row| row.key.cmp(key)) {
        Some(std::cmp::Ordering::Greater) => return Ok(Vec::new()),
        Some(std::cmp::Ordering::Less) => (sort, thread) = (i64::MIN, [].as_slice()),
        Some(std::cmp::Ordering::Equal) | None => {}
    }
    conn.prepare_cached(
        "SELECT key, sort, thread FROM entries
         WHERE idx = ?1 AND tenant = ?2 AND key = ?3 AND (sort, thread) > (?4, ?5) AND sort <= ?6
         ORDER BY sort, thread LIMIT ?7",
    )?
    .query_map((index, tenant, key, sort, thread, up_to, most), read)?
    .collect()
}

/// Jumps from tenant to tenant instead of walking every row.
pub(super) fn tenants(conn: &Connection, index: Index) -> rusqlite::Result<Vec<Arc<str>>> {
    conn.prepare_cached(
        "WITH RECURSIVE found (tenant) AS (
             SELECT min(tenant) FROM entries WHERE idx = ?1
             UNION ALL
             SELECT (SELECT min(tenant) FROM entries WHERE idx = ?1 AND tenant > found.tenant)
             FROM found WHERE found.tenant IS NOT NULL
         )
         SELECT tenant FROM found WHERE tenant IS NOT NULL",
    )?
    .query_map([index.number()], |row| row.get(0))?
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
