//! Cells: how they change, and how they are read.

use holdpoint_core::Timestamp;
use tokio_postgres::{Error, Row};

use super::{
    clock::Time,
    desk::Desk,
    line::{Deal, Line},
    reader::Key,
    row::{int, limit},
    trouble::Trouble,
};
use crate::{
    AppendError, CellChange, CellThen, Space,
    admission::{self, Census as _, Slot},
};

/// The versions that cells have after changes, or why one of them may not change. Whoever asks holds their locks.
pub(super) async fn admit_all(
    desk: &Desk<'_>,
    tenant: &str,
    changes: &[CellChange],
) -> Result<Result<Vec<u64>, AppendError>, Trouble> {
    let mut versions = Vec::with_capacity(changes.len());
    for change in changes {
        match admit(desk, tenant, change).await? {
            Ok(version) => versions.push(version),
            Err(refusal) => return Ok(Err(refusal)),
        }
    }
    Ok(Ok(versions))
}

async fn admit(
    desk: &Desk<'_>,
    tenant: &str,
    change: &CellChange,
) -> Result<Result<u64, AppendError>, Trouble> {
    let slot = async {
        let find = "SELECT version, value IS NOT NULL, until FROM cells WHERE tenant = $1 AND space = $2 AND key = $3";
        let (space, key) = (i16::from(change.space.number()), change.key.as_bytes());
        let row = desk
            .tx
            .query_opt(find, &[&tenant.as_bytes(), &space, &key])
            .await?;
        if let Some(row) = row {
            let (version, has_value): (i64, bool) = (row.try_get(0)?, row.try_get(1)?);
            let until: Option<i64> = row.try_get(2)?;
            let until = until.map(Timestamp::from_micros);
            return Ok(Slot {
                version: version.unsigned_abs(),
                is_there: has_value && admission::lasts(until, desk.now()),
            });
        }
        // After the cell: what was swept away in between is in the mark.
        let mark = "SELECT value FROM marks WHERE name = 'swept'";
        let swept = desk.tx.query_opt(mark, &[]).await?;
        let swept: Option<i64> = swept.map(|row| row.try_get(0)).transpose()?;
        Ok(Slot {
            version: swept.unwrap_or(0).unsigned_abs(),
            is_there: false,
        })
    };
    let slot: Result<Slot, Error> = slot.await;
    let slot = slot.map_err(|error| desk.failed(&error))?;
    Ok(admission::admit_cell(change, slot))
}

/// Writes changes that were admitted, with the versions that the cells have then.
pub(super) async fn write_all(
    tx: &Deal<'_>,
    tenant: &str,
    changes: &[CellChange],
    versions: &[u64],
) -> Result<(), Error> {
    for (change, version) in changes.iter().zip(versions) {
        write(tx, tenant, change, *version).await?;
    }
    Ok(())
}

async fn write(
    tx: &Deal<'_>,
    tenant: &str,
    change: &CellChange,
    version: u64,
) -> Result<(), Error> {
    let (tenant, key) = (tenant.as_bytes(), change.key.as_bytes());
    let (space, version) = (i16::from(change.space.number()), int(version));
    match &change.then {
        CellThen::Set { value, until } => {
            let set = "INSERT INTO cells (tenant, space, key, version, value, until) VALUES ($1, $2, $3, $4, $5, $6)
                     ON CONFLICT (tenant, space, key)
                     DO UPDATE SET version = excluded.version, value = excluded.value, until = excluded.until";
            let until = until.map(Timestamp::as_micros);
            tx.execute(set, &[&tenant, &space, &key, &version, value, &until])
                .await?;
        }
        // What is left of it keeps its end, and is swept away then.
        CellThen::Remove => {
            let remove = "INSERT INTO cells (tenant, space, key, version) VALUES ($1, $2, $3, $4)
                     ON CONFLICT (tenant, space, key) DO UPDATE SET version = excluded.version, value = NULL";
            tx.execute(remove, &[&tenant, &space, &key, &version])
                .await?;
        }
        CellThen::Keep => {}
    }
    Ok(())
}

/// Clears away cells that have ended. One statement: the mark is raised with what it stands for.
pub(super) async fn sweep(connection: &Line, time: &Time, most: usize) -> Result<usize, Error> {
    let sweep = "WITH ended AS MATERIALIZED (
                 SELECT tenant, space, key FROM cells
                 WHERE until <= coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
                 ORDER BY until LIMIT $2 FOR UPDATE SKIP LOCKED
             ),
             gone AS (
                 DELETE FROM cells c USING ended e
                 WHERE c.tenant = e.tenant AND c.space = e.space AND c.key = e.key
                 RETURNING c.version
             ),
             marked AS (
                 INSERT INTO marks (name, value) SELECT 'swept', max(version) FROM gone HAVING count(*) > 0
                 ON CONFLICT (name) DO UPDATE SET value = greatest(marks.value, excluded.value)
             )
             SELECT count(*) FROM gone";
    let row = connection
        .query_one(sweep, &[&time.given(), &limit(most)])
        .await?;
    let gone: i64 = row.try_get(0)?;
    Ok(usize::try_from(gone).unwrap_or(0))
}

/// Where a cell is.
#[derive(Debug)]
pub(super) struct CellKey {
    pub(super) tenant: String,
    pub(super) space: Space,
    pub(super) key: String,
}

impl Key for CellKey {
    async fn find(connection: &Line, keys: &[Self]) -> Result<Vec<Row>, Error> {
        let find = "SELECT k.n, c.* FROM unnest($1::bytea[], $2::smallint[], $3::bytea[])
                 WITH ORDINALITY AS k (tenant, space, key, n), LATERAL (
                 SELECT version, value, until FROM cells c
                 WHERE c.tenant = k.tenant AND c.space = k.space AND c.key = k.key AND c.value IS NOT NULL OFFSET 0
             ) c";
        let tenants: Vec<&[u8]> = keys.iter().map(|it| it.tenant.as_bytes()).collect();
        let spaces: Vec<i16> = keys.iter().map(|it| i16::from(it.space.number())).collect();
        let names: Vec<&[u8]> = keys.iter().map(|it| it.key.as_bytes()).collect();
        connection.query(find, &[&tenants, &spaces, &names]).await
    }
}

pub(super) async fn some(
    connection: &Line,
    tenant: &str,
    space: Space,
    after: Option<&str>,
    most: usize,
    now: Timestamp,
) -> Result<Vec<Row>, Error> {
    // The empty key is a key too, so none comes before all of them.
    let (from, key) = after.map_or((">=", ""), |key| (">", key));
    let find = &format!(
            "SELECT key, version, value, until FROM cells
             WHERE tenant = $1 AND space = $2 AND key {from} $3 AND value IS NOT NULL AND (until IS NULL OR until > $4)
             ORDER BY key LIMIT $5"
        );
    let space = i16::from(space.number());
    connection
        .query(
            find,
            &[
                &tenant.as_bytes(),
                &space,
                &key.as_bytes(),
                &now.as_micros(),
                &limit(most),
            ],
        )
        .await
}
