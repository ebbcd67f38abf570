//! Moving: the part that a database has in it, the seal, and what is handed over.

use std::sync::Arc;

use holdpoint_core::{Digest, Record, Timestamp};
use tokio_postgres::{Error, Row};

use super::{
    line::{Deal, Line},
    pack, query,
    row::{self, int, limit},
};
use crate::{Import, KeptCell, Move, Part, ThreadKey};

/// Everything that a seal protects, in the order in which appends come to it.
const TABLES: [&str; 5] = ["threads", "events", "entries", "cells", "blobs"];

/// How many records that come from elsewhere are one row. Which of them were one append does not matter any more.
const TOGETHER: usize = 16;

const PART: &str =
    "SELECT name, value, note FROM marks WHERE name IN ('leaving', 'left', 'arriving')";

pub(super) async fn part(connection: &Line) -> Result<Option<Row>, Error> {
    connection.query_opt(PART, &[]).await
}

pub(super) fn read_part(row: &Row) -> Result<Option<Part>, row::Unreadable> {
    let unreadable = |error: Error| error.to_string();
    let (name, note): (&str, &str) = (
        row.try_get(0).map_err(unreadable)?,
        row.try_get(2).map_err(unreadable)?,
    );
    let ticket = u32::try_from(row::count(row, 1)?).map_err(|error| error.to_string())?;
    let other = note.to_owned();
    Ok(Part::from_name(name, Move { ticket, other }))
}

/// Gives the database another part, if it has the one that is expected.
pub(super) async fn set_part(
    connection: &mut Line,
    expected: Option<&Part>,
    then: Option<&Part>,
) -> Result<bool, Error> {
    let tx = connection.transaction().await?;
    // One at a time. Reading goes on.
    tx.batch_execute("LOCK TABLE marks IN EXCLUSIVE MODE")
        .await?;
    let row = tx.query_opt(PART, &[]).await?;
    let found = row.as_ref().map(read_part);
    // A part that cannot be read is none that anybody can expect.
    let found = match found {
        None => None,
        Some(Ok(Some(part))) => Some(part),
        Some(Ok(None) | Err(_)) => return Ok(false),
    };
    if found.as_ref() != expected {
        return Ok(false);
    }
    if found.is_some() {
        for table in TABLES {
            tx.batch_execute(&format!("DROP TRIGGER holdpoint_sealed ON {table}"))
                .await?;
        }
    }
    tx.batch_execute("DELETE FROM marks WHERE name IN ('leaving', 'left', 'arriving')")
        .await?;
    if let Some(part) = then {
        let Move { ticket, other } = part.moving();
        tx.execute(
            "INSERT INTO marks (name, value, note) VALUES ($1, $2, $3)",
            &[&part.name(), &i64::from(*ticket), other],
        )
        .await?;
        // PostgreSQL itself refuses whatever is written, by whichever process. To make a trigger it waits for the writes
        // that are under way, and those that come meanwhile meet it.
        let refusal = part.refusal().replace('\'', "''");
        for table in TABLES {
            tx.batch_execute(&format!(
                "CREATE TRIGGER holdpoint_sealed BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON {table}
                 FOR EACH STATEMENT EXECUTE FUNCTION holdpoint_sealed('{refusal}')"
            ))
            .await?;
        }
    }
    tx.commit().await?;
    Ok(true)
}

/// Tenant, thread, and the columns of a head.
pub(super) async fn threads(
    connection: &Line,
    after: Option<&ThreadKey>,
    most: usize,
) -> Result<Vec<Row>, Error> {
    let (tenant, thread) = after.map_or(([].as_slice(), [].as_slice()), |key| {
        (key.tenant.as_bytes(), key.thread.as_bytes().as_slice())
    });
    let find = "SELECT tenant, thread, version, epoch, owner, until, head FROM threads
             WHERE (tenant, thread) > ($1, $2) ORDER BY tenant, thread LIMIT $3";
    connection
        .query(find, &[&tenant, &thread, &limit(most)])
        .await
}

pub(super) async fn blobs(
    connection: &Line,
    after: Option<&(Arc<str>, Digest)>,
    most: usize,
) -> Result<Vec<Row>, Error> {
    let (tenant, digest) = after.map_or(([].as_slice(), [].as_slice()), |(tenant, digest)| {
        (tenant.as_bytes(), digest.as_bytes().as_slice())
    });
    let find = "SELECT tenant, digest FROM blobs WHERE (tenant, digest) > ($1, $2) ORDER BY tenant, digest LIMIT $3";
    connection
        .query(find, &[&tenant, &digest, &limit(most)])
        .await
}

/// Cells as they are kept, and the highest version that was swept away.
pub(super) async fn cells(
    connection: &Line,
    after: Option<&KeptCell>,
    most: usize,
) -> Result<(Vec<Row>, u64), Error> {
    let (tenant, space, key) = after.map_or(([].as_slice(), 0, [].as_slice()), |cell| {
        let space = i16::from(cell.space.number());
        (cell.tenant.as_bytes(), space, cell.key.as_bytes())
    });
    let find = "SELECT tenant, space, key, version, value, until FROM cells
             WHERE (tenant, space, key) > ($1, $2, $3) ORDER BY tenant, space, key LIMIT $4";
    let rows = connection
        .query(find, &[&tenant, &space, &key, &limit(most)])
        .await?;
    let swept = "SELECT coalesce(max(value), 0) FROM marks WHERE name = 'swept'";
    let swept: i64 = connection.query_one(swept, &[]).await?.try_get(0)?;
    Ok((rows, swept.unsigned_abs()))
}

/// What comes from another store, column by column.
#[derive(Debug, Default)]
pub(super) struct Columns<'a> {
    ticket: i64,
    threads: Threads<'a>,
    rows: Rows<'a>,
    cells: Cells<'a>,
    swept: i64,
    blobs: Blobs<'a>,
}

#[derive(Debug, Default)]
struct Threads<'a> {
    tenants: Vec<&'a [u8]>,
    ids: Vec<&'a [u8]>,
    versions: Vec<i64>,
    epochs: Vec<i64>,
    heads: Vec<Vec<u8>>,
    records: Vec<&'a [Record]>,
}

#[derive(Debug, Default)]
struct Rows<'a> {
    tenants: Vec<&'a [u8]>,
    indexes: Vec<i16>,
    keys: Vec<&'a [u8]>,
    sorts: Vec<i64>,
    threads: Vec<&'a [u8]>,
}

#[derive(Debug, Default)]
struct Cells<'a> {
    tenants: Vec<&'a [u8]>,
    spaces: Vec<i16>,
    keys: Vec<&'a [u8]>,
    versions: Vec<i64>,
    values: Vec<Option<&'a [u8]>>,
    untils: Vec<Option<i64>>,
}

#[derive(Debug, Default)]
struct Blobs<'a> {
    tenants: Vec<&'a [u8]>,
    digests: Vec<&'a [u8]>,
    codecs: Vec<i16>,
    key_ids: Vec<Option<&'a str>>,
    bytes: Vec<&'a [u8]>,
}

impl<'a> Columns<'a> {
    pub(super) fn of(import: &'a Import) -> Self {
        let mut columns = Self {
            ticket: i64::from(import.ticket),
            ..Self::default()
        };
        for thread in &import.threads {
            let threads = &mut columns.threads;
            threads.tenants.push(thread.key.tenant.as_bytes());
            threads.ids.push(thread.key.thread.as_bytes());
            let version = thread.records.last().map_or(0, |last| last.seq);
            threads.versions.push(int(version));
            threads.epochs.push(int(thread.epoch));
            threads.heads.push(pack::payload(&thread.head));
            threads.records.push(&thread.records);
        }
        for (tenant, row) in &import.rows {
            let rows = &mut columns.rows;
            rows.tenants.push(tenant.as_bytes());
            rows.indexes.push(i16::from(row.index.number()));
            rows.keys.push(row.key.as_bytes());
            rows.sorts.push(row.sort);
            rows.threads.push(row.thread.as_bytes());
        }
        for cell in &import.cells.cells {
            let cells = &mut columns.cells;
            cells.tenants.push(cell.tenant.as_bytes());
            cells.spaces.push(i16::from(cell.space.number()));
            cells.keys.push(cell.key.as_bytes());
            cells.versions.push(int(cell.version));
            cells.values.push(cell.value.as_deref());
            cells.untils.push(cell.until.map(Timestamp::as_micros));
        }
        columns.swept = int(import.cells.swept);
        for (tenant, digest, payload) in &import.blobs {
            let blobs = &mut columns.blobs;
            blobs.tenants.push(tenant.as_bytes());
            blobs.digests.push(digest.as_bytes());
            blobs.codecs.push(i16::from(payload.codec.number()));
            blobs.key_ids.push(payload.key_id.as_deref());
            blobs.bytes.push(&payload.bytes);
        }
        columns
    }

    /// Writes it in one transaction, if it belongs here. Returns whether it does.
    pub(super) async fn bring(&self, connection: &mut Line) -> Result<bool, Error> {
        let tx = connection.transaction().await?;
        // One at a time.
        let mark = "INSERT INTO marks (name, value)
                    SELECT 'importing', 0 FROM marks WHERE name = 'arriving' AND value = $1 FOR UPDATE";
        if tx.execute(mark, &[&self.ticket]).await? == 0 {
            return Ok(false);
        }
        self.threads.bring(&tx).await?;
        self.rows.bring(&tx).await?;
        self.cells.bring(&tx).await?;
        if self.swept > 0 {
            let swept = "INSERT INTO marks (name, value) VALUES ('swept', $1)
                         ON CONFLICT (name) DO UPDATE SET value = greatest(marks.value, excluded.value)";
            tx.execute(swept, &[&self.swept]).await?;
        }
        self.blobs.bring(&tx).await?;
        tx.batch_execute("DELETE FROM marks WHERE name = 'importing'")
            .await?;
        tx.commit().await?;
        Ok(true)
    }
}

impl Threads<'_> {
    async fn bring(&self, tx: &Deal<'_>) -> Result<(), Error> {
        let Self {
            tenants,
            ids,
            versions,
            epochs,
            heads,
            records,
        } = self;
        // What is there is not brought again, whichever of it came together.
        let there = "SELECT k.n, t.version FROM unnest($1::bytea[], $2::bytea[]) WITH ORDINALITY AS k (tenant, thread, n)
                 JOIN threads t USING (tenant, thread)";
        let mut there_up_to = vec![0; ids.len()];
        for row in tx.query(there, &[tenants, ids]).await? {
            let version: i64 = row.try_get(1)?;
            if let Some(slot) = query::place(&row).and_then(|place| there_up_to.get_mut(place)) {
                *slot = version;
            }
        }
        let threads = "INSERT INTO threads (tenant, thread, version, epoch, head)
                 SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::bigint[], $5::bytea[])
                 ON CONFLICT (tenant, thread) DO UPDATE
                 SET version = greatest(threads.version, excluded.version), epoch = excluded.epoch, head = excluded.head";
        tx.execute(threads, &[tenants, ids, versions, epochs, heads])
            .await?;
        let (mut places, mut lasts, mut packs) = (Vec::new(), Vec::new(), Vec::new());
        for ((records, there_up_to), place) in records.iter().zip(there_up_to).zip(1_i64..) {
            let here = records.partition_point(|record| int(record.seq) <= there_up_to);
            for together in records[here..].chunks(TOGETHER) {
                places.push(place);
                lasts.push(together.last().map_or(0, |last| int(last.seq)));
                packs.push(pack::records(together));
            }
        }
        let events = "INSERT INTO events (tenant, thread, seq, records)
                 SELECT t.tenant, t.thread, r.seq, r.records
                 FROM unnest($1::bytea[], $2::bytea[]) WITH ORDINALITY AS t (tenant, thread, n)
                 JOIN unnest($3::bigint[], $4::bigint[], $5::bytea[]) AS r (n, seq, records) USING (n)";
        tx.execute(events, &[tenants, ids, &places, &lasts, &packs])
            .await?;
        Ok(())
    }
}

impl Rows<'_> {
    async fn bring(&self, tx: &Deal<'_>) -> Result<(), Error> {
        let Self {
            tenants,
            indexes,
            keys,
            sorts,
            threads,
        } = self;
        let entries = "INSERT INTO entries (tenant, idx, key, sort, thread)
                 SELECT * FROM unnest($1::bytea[], $2::smallint[], $3::bytea[], $4::bigint[], $5::bytea[])
                 ON CONFLICT DO NOTHING";
        tx.execute(entries, &[tenants, indexes, keys, sorts, threads])
            .await?;
        Ok(())
    }
}

impl Cells<'_> {
    async fn bring(&self, tx: &Deal<'_>) -> Result<(), Error> {
        let Self {
            tenants,
            spaces,
            keys,
            versions,
            values,
            untils,
        } = self;
        let cells = "INSERT INTO cells (tenant, space, key, version, value, until)
                 SELECT * FROM unnest($1::bytea[], $2::smallint[], $3::bytea[], $4::bigint[], $5::bytea[], $6::bigint[])
                 ON CONFLICT (tenant, space, key) DO UPDATE
                 SET version = excluded.version, value = excluded.value, until = excluded.until";
        tx.execute(cells, &[tenants, spaces, keys, versions, values, untils])
            .await?;
        Ok(())
    }
}

impl Blobs<'_> {
    async fn bring(&self, tx: &Deal<'_>) -> Result<(), Error> {
        let Self {
            tenants,
            digests,
            codecs,
            key_ids,
            bytes,
        } = self;
        let blobs = "INSERT INTO blobs (tenant, digest, codec, key_id, bytes)
                 SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::smallint[], $4::text[], $5::bytea[])
                 ON CONFLICT DO NOTHING";
        tx.execute(blobs, &[tenants, digests, codecs, key_ids, bytes])
            .await?;
        Ok(())
    }
}
