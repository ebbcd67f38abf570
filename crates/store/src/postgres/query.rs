//! Reading: heads, records, index rows and blobs.

use std::cmp::Ordering;

use holdpoint_core::{Digest, Index};
use tokio_postgres::{Error, Row};

use super::{
    line::{Line, Value},
    reader::Key,
    row::{int, limit},
};
use crate::{Direction, Scan, ThreadKey};

/// Of each thread that is there its [`place`], and these columns.
//
// A lookup for each and not a join, of which the database could make one that walks the table: `OFFSET 0` keeps it so.
macro_rules! of_each {
    ($columns:literal) => {
        concat!(
            "SELECT k.n, t.* FROM unnest($1::bytea[], $2::bytea[]) WITH ORDINALITY AS k (tenant, thread, n), LATERAL (
                 SELECT ",
            $columns,
            " FROM threads t WHERE t.tenant = k.tenant AND t.thread = k.thread OFFSET 0
             ) t"
        )
    };
}

/// The heads of those threads that are there, each after its [`place`].
pub(super) async fn heads(connection: &Line, keys: &[ThreadKey]) -> Result<Vec<Row>, Error> {
    let sql = of_each!("version, epoch, owner, until, head");
    threads(connection, sql, keys).await
}

impl Key for ThreadKey {
    async fn find(connection: &Line, keys: &[Self]) -> Result<Vec<Row>, Error> {
        heads(connection, keys).await
    }
}

/// The versions of those threads that are there, each after its [`place`].
pub(super) async fn versions(connection: &Line, keys: &[ThreadKey]) -> Result<Vec<Row>, Error> {
    threads(connection, of_each!("version"), keys).await
}

/// Which of those that were asked for a row is about.
pub(super) fn place(row: &Row) -> Option<usize> {
    let n: i64 = row.try_get(0).ok()?;
    usize::try_from(n).ok()?.checked_sub(1)
}

async fn threads(connection: &Line, sql: &str, keys: &[ThreadKey]) -> Result<Vec<Row>, Error> {
    let tenants: Vec<&[u8]> = keys.iter().map(|it| it.tenant.as_bytes()).collect();
    let threads: Vec<&[u8]> = keys
        .iter()
        .map(|it| it.thread.as_bytes().as_slice())
        .collect();
    connection.query(sql, &[&tenants, &threads]).await
}

/// Those rows that hold the records after this one, as many of them as there may be records.
pub(super) async fn records(
    connection: &Line,
    key: &ThreadKey,
    after: u64,
    most: usize,
) -> Result<Vec<Row>, Error> {
    let find = "SELECT seq, records FROM events
             WHERE tenant = $1 AND thread = $2 AND seq > $3 ORDER BY seq LIMIT $4";
    connection
        .query(
            find,
            &[
                &key.tenant.as_bytes(),
                &key.thread.as_bytes().as_slice(),
                &int(after),
                &limit(most),
            ],
        )
        .await
}

pub(super) async fn blob(
    connection: &Line,
    tenant: &str,
    digest: Digest,
) -> Result<Option<Row>, Error> {
    let find = "SELECT codec, key_id, bytes FROM blobs WHERE tenant = $1 AND digest = $2";
    connection
        .query_opt(find, &[&tenant.as_bytes(), &digest.as_bytes().as_slice()])
        .await
}

/// Jumps from tenant to tenant instead of walking every row: a tenant is one step, however many rows it has.
pub(super) async fn tenants(connection: &Line, index: Index) -> Result<Vec<Row>, Error> {
    let find = "WITH RECURSIVE found (tenant) AS (
                 (SELECT tenant FROM entries ORDER BY tenant LIMIT 1)
                 UNION ALL
                 SELECT (SELECT e.tenant FROM entries e WHERE e.tenant > found.tenant ORDER BY e.tenant LIMIT 1)
                 FROM found WHERE found.tenant IS NOT NULL
             )
             SELECT tenant FROM found
             WHERE EXISTS (SELECT FROM entries e WHERE e.tenant = found.tenant AND e.idx = $1)";
    connection.query(find, &[&i16::from(index.number())]).await
}

/// The rows that a scan asks for: key, sort, thread.
pub(super) async fn scan(connection: &Line, tenant: &str, scan: &Scan) -> Result<Vec<Row>, Error> {
    let (tenant, index) = (tenant.as_bytes(), i16::from(scan.index.number()));
    let (beyond, order) = match scan.direction {
        Direction::Forward => (">", "ASC"),
        Direction::Backward => ("<", "DESC"),
    };
    let mut after = scan.after.as_ref();
    if let (Some(key), Some(row)) = (&scan.key, after) {
        match (scan.direction, row.key.as_str().cmp(key)) {
            (_, Ordering::Equal) => {}
            // All of this key is still to come.
            (Direction::Forward, Ordering::Less) | (Direction::Backward, Ordering::Greater) => {
                after = None;
            }
            // Nothing of it is.
            (Direction::Forward, Ordering::Greater) | (Direction::Backward, Ordering::Less) => {
                return Ok(Vec::new());
            }
        }
    }
    let most = limit(scan.limit);
    let (key, after_key) = (
        scan.key.as_ref().map(String::as_bytes),
        after.map(|row| row.key.as_bytes()),
    );
    let after_thread = after.map(|row| row.thread.as_bytes().as_slice());
    let after_sort = after.map(|row| row.sort);
    let mut sql = "SELECT key, sort, thread FROM entries WHERE tenant = $1 AND idx = $2".to_owned();
    let mut values: Vec<&dyn Value> = vec![&tenant, &index];
    let mut add = |sql: &mut String, text: &str, value| {
        values.push(value);
        sql.push_str(&text.replace('?', &format!("${}", values.len())));
    };
    if key.is_some() {
        add(&mut sql, " AND key = ?", &key);
    }
    if let Some(up_to) = &scan.up_to {
        add(&mut sql, " AND sort <= ?", up_to);
    }
    if after.is_some() {
        add(
            &mut sql,
            &format!(" AND (key, sort, thread) {beyond} (?"),
            &after_key,
        );
        add(&mut sql, ", ?", &after_sort);
        add(&mut sql, ", ?)", &after_thread);
    }
    sql.push_str(&format!(
        " ORDER BY key {order}, sort {order}, thread {order}"
    ));
    add(&mut sql, " LIMIT ?", &most);
    let find = &sql;
    connection.query(find, &values).await
}
