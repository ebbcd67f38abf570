//! Appends of several threads in one statement.

use std::collections::HashMap;

use holdpoint_core::{IndexChange, IndexRow, OwnerId, Payload, Record, Span};
use tokio_postgres::Error;

use super::{clock::Time, line::Line, row::int};
use crate::{Append, CellChange, CellThen, Epoch, Fence, LeaseAfter};

const SQL: &str = include_str!("append.sql");

/// What the statement is told, column by column.
#[derive(Debug, Default)]
pub(super) struct Batch<'a> {
    tenants: Vec<&'a [u8]>,
    ids: Vec<&'a [u8]>,
    expects: Vec<i64>,
    versions: Vec<i64>,
    fences: Vec<i16>,
    epochs: Vec<i64>,
    lasts: Vec<i64>,
    releases: Vec<bool>,
    heads: Payloads<'a>,
    records: Records<'a>,
    rows: Rows<'a>,
    cells: Cells<'a>,
}

/// Payloads, column by column.
#[derive(Debug, Default)]
pub(super) struct Payloads<'a> {
    pub(super) codecs: Vec<i16>,
    pub(super) key_ids: Vec<Option<&'a str>>,
    pub(super) bytes: Vec<&'a [u8]>,
}

impl<'a> Payloads<'a> {
    pub(super) fn push(&mut self, payload: &'a Payload) {
        self.codecs.push(i16::from(payload.codec.number()));
        self.key_ids.push(payload.key_id.as_deref());
        self.bytes.push(&payload.bytes);
    }
}

/// Records, column by column, each with the place of its thread.
#[derive(Debug, Default)]
pub(super) struct Records<'a> {
    pub(super) of: Vec<i64>,
    pub(super) seqs: Vec<i64>,
    pub(super) headers: Vec<&'a [u8]>,
    pub(super) salts: Vec<&'a [u8]>,
    pub(super) payloads: Payloads<'a>,
    pub(super) hashes: Vec<&'a [u8]>,
}

impl<'a> Records<'a> {
    pub(super) fn push(&mut self, of: i64, record: &'a Record) {
        self.of.push(of);
        self.seqs.push(int(record.seq));
        self.headers.push(&record.header);
        self.salts.push(&record.salt);
        self.payloads.push(&record.payload);
        self.hashes.push(record.hash.as_bytes());
    }
}

#[derive(Debug, Default)]
struct Rows<'a> {
    of: Vec<i64>,
    puts: Vec<bool>,
    indexes: Vec<i16>,
    keys: Vec<&'a [u8]>,
    sorts: Vec<i64>,
}

/// The cells that must be as they were.
#[derive(Debug, Default)]
struct Cells<'a> {
    of: Vec<i64>,
    spaces: Vec<i16>,
    keys: Vec<&'a [u8]>,
    versions: Vec<i64>,
}

/// Whether an append can share a statement: it changes nothing but its own thread, and depends on no cell that is not there.
pub(super) fn is_plain(append: &Append) -> bool {
    let is_own = |change: &IndexChange| {
        let (IndexChange::Put(row) | IndexChange::Remove(row)) = change;
        row.thread == append.key.thread
    };
    let is_kept = |change: &CellChange| change.then == CellThen::Keep && change.expect > 0;
    // NEGATIVE CONTROL: what lets stale appends in on purpose is not in the statement.
    !cfg!(feature = "weak-version-check")
        && append.cells.iter().all(is_kept)
        && append.index.iter().all(is_own)
}

impl<'a> Batch<'a> {
    /// Takes an append along; its thread has none here yet.
    pub(super) fn add(&mut self, append: &'a Append) {
        self.tenants.push(append.key.tenant.as_bytes());
        self.ids.push(append.key.thread.as_bytes());
        self.expects.push(int(append.expect));
        let version = append.expect + append.records.len() as u64;
        self.versions.push(int(version));
        let (fence, epoch, lasts) = match append.fence {
            Fence::Open => (0, 0, Span::default()),
            Fence::Driver(epoch) => (1, epoch, Span::default()),
            Fence::Take { after, lasts } => (2, after, lasts),
        };
        self.fences.push(fence);
        self.epochs.push(int(epoch));
        self.lasts.push(int(lasts.as_micros()));
        self.releases.push(append.lease == LeaseAfter::Release);
        self.heads.push(&append.head);
        let of = int(self.tenants.len() as u64);
        for record in &append.records {
            self.records.push(of, record);
        }
        // The last word about a row counts; a statement knows no order.
        let mut last: HashMap<&IndexRow, bool> = HashMap::with_capacity(append.index.len());
        for change in &append.index {
            match change {
                IndexChange::Put(row) => last.insert(row, true),
                IndexChange::Remove(row) => last.insert(row, false),
            };
        }
        for (row, put) in last {
            self.rows.of.push(of);
            self.rows.puts.push(put);
            self.rows.indexes.push(i16::from(row.index.number()));
            self.rows.keys.push(row.key.as_bytes());
            self.rows.sorts.push(row.sort);
        }
        for cell in &append.cells {
            self.cells.of.push(of);
            self.cells.spaces.push(i16::from(cell.space.number()));
            self.cells.keys.push(cell.key.as_bytes());
            self.cells.versions.push(int(cell.expect));
        }
    }

    /// Commits those that can be. Returns the epochs of their threads, by their place in the order in which they were added.
    pub(super) async fn commit(
        &self,
        connection: &Line,
        us: OwnerId,
        time: &Time,
    ) -> Result<HashMap<usize, Epoch>, Error> {
        let (heads, records) = (&self.heads, &self.records);
        let (rows, cells) = (&self.rows, &self.cells);
        let admitted = connection
            .query(
                SQL,
                &[
                    &time.given(),
                    &us.as_bytes().as_slice(),
                    &self.tenants,
                    &self.ids,
                    &self.expects,
                    &self.versions,
                    &self.fences,
                    &self.epochs,
                    &self.lasts,
                    &self.releases,
                    &heads.codecs,
                    &heads.key_ids,
                    &heads.bytes,
                    &records.of,
                    &records.seqs,
                    &records.headers,
                    &records.salts,
                    &records.payloads.codecs,
                    &records.payloads.key_ids,
                    &records.payloads.bytes,
                    &records.hashes,
                    &rows.of,
                    &rows.puts,
                    &rows.indexes,
                    &rows.keys,
                    &rows.sorts,
                    &cells.of,
                    &cells.spaces,
                    &cells.keys,
                    &cells.versions,
                ],
            )
            .await?;
        let mut epochs = HashMap::with_capacity(admitted.len());
        for row in &admitted {
            let (n, epoch): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
            let place = usize::try_from(n - 1).unwrap_or(usize::MAX);
            epochs.insert(place, epoch.unsigned_abs());
        }
        Ok(epochs)
    }
}
