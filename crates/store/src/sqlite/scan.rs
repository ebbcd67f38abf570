//! Reading index rows.

use std::{cmp::Ordering, sync::Arc};

use holdpoint_core::{Index, IndexRow, ThreadId};
use rusqlite::{
    Connection, Row,
    types::{ToSqlOutput, ValueRef},
};

use super::row::limit;
use crate::{Direction, Scan};

/// A place between rows of one key, by sort and thread.
type Edge<'a> = (i64, &'a [u8]);

/// Before every row that a key can have: no thread is as short.
const FIRST: Edge<'static> = (i64::MIN, &[]);

/// After the rows of a key up to this sort: no thread is as long.
const fn end(sort: i64) -> Edge<'static> {
    (sort, &[0xff; 17])
}

/// The rows that a scan asks for.
pub(super) fn rows(
    conn: &Connection,
    tenant: &str,
    scan: &Scan,
) -> rusqlite::Result<Vec<IndexRow>> {
    match &scan.key {
        Some(key) => of_key(conn, tenant, scan, key),
        None => of_all_keys(conn, tenant, scan),
    }
}

fn of_key(
    conn: &Connection,
    tenant: &str,
    scan: &Scan,
    key: &str,
) -> rusqlite::Result<Vec<IndexRow>> {
    let (mut low, mut high) = (FIRST, end(scan.up_to.unwrap_or(i64::MAX)));
    if let Some(after) = &scan.after {
        let edge: Edge<'_> = (after.sort, after.thread.as_bytes());
        match (scan.direction, after.key.as_str().cmp(key)) {
            (Direction::Forward, Ordering::Equal) => low = edge,
            (Direction::Backward, Ordering::Equal) => high = high.min(edge),
            // All of this key is still to come.
            (Direction::Forward, Ordering::Less) | (Direction::Backward, Ordering::Greater) => {}
            // Nothing of it is.
            (Direction::Forward, Ordering::Greater) | (Direction::Backward, Ordering::Less) => {
                return Ok(Vec::new());
            }
        }
    }
    let order = order(scan.direction);
    conn.prepare_cached(&format!(
        "SELECT key, sort, thread FROM entries
         WHERE idx = ?1 AND tenant = ?2 AND key = ?3 AND (sort, thread) > (?4, ?5) AND (sort, thread) < (?6, ?7)
         ORDER BY sort {order}, thread {order} LIMIT ?8"
    ))?
    .query_map(
        (
            scan.index.number(),
            tenant,
            key,
            low.0,
            low.1,
            high.0,
            high.1,
            limit(scan.limit),
        ),
        |row| read(scan.index, row),
    )?
    .collect()
}

fn of_all_keys(conn: &Connection, tenant: &str, scan: &Scan) -> rusqlite::Result<Vec<IndexRow>> {
    // SQLite sorts every text before every blob, so an empty blob comes after all keys.
    let (mut low, mut high) = ((ValueRef::Text(b""), FIRST), (ValueRef::Blob(b""), FIRST));
    if let Some(after) = &scan.after {
        let key = ValueRef::Text(after.key.as_bytes());
        let edge = (key, (after.sort, after.thread.as_bytes().as_slice()));
        match scan.direction {
            Direction::Forward => low = edge,
            Direction::Backward => high = edge,
        }
    }
    let ((low_key, (low_sort, low_thread)), (high_key, (high_sort, high_thread))) = (low, high);
    let order = order(scan.direction);
    conn.prepare_cached(&format!(
        "SELECT key, sort, thread FROM entries
         WHERE idx = ?1 AND tenant = ?2 AND (key, sort, thread) > (?3, ?4, ?5) AND (key, sort, thread) < (?6, ?7, ?8)
             AND sort <= ?9
         ORDER BY key {order}, sort {order}, thread {order} LIMIT ?10"
    ))?
    .query_map(
        (
            scan.index.number(),
            tenant,
            ToSqlOutput::Borrowed(low_key),
            low_sort,
            low_thread,
            ToSqlOutput::Borrowed(high_key),
            high_sort,
            high_thread,
            scan.up_to.unwrap_or(i64::MAX),
            limit(scan.limit),
        ),
        |row| read(scan.index, row),
    )?
    .collect()
}

const fn order(direction: Direction) -> &'static str {
    match direction {
        Direction::Forward => "ASC",
        Direction::Backward => "DESC",
    }
}

fn read(index: Index, row: &Row<'_>) -> rusqlite::Result<IndexRow> {
    Ok(IndexRow {
        index,
        key: row.get(0)?,
        sort: row.get(1)?,
        thread: ThreadId::from_bytes(row.get(2)?),
    })
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
