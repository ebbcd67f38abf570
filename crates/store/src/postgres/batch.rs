//! Appends of several threads in one statement.

use std::collections::{BTreeMap, HashMap};

use holdpoint_core::{IndexChange, IndexRow, OwnerId, Span};
use tokio_postgres::Error;

use super::{clock::Time, line::Line, pack, row::int};
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
    heads: Vec<Vec<u8>>,
    records: Vec<Vec<u8>>,
    rows: Rows<'a>,
    /// Each cell that must be as it was, with those who depend on it. They are locked in this order, as by everybody.
    cells: BTreeMap<Cell<'a>, Vec<i64>>,
}

#[derive(Debug, Default)]
struct Rows<'a> {
    of: Vec<i64>,
    puts: Vec<bool>,
    indexes: Vec<i16>,
    keys: Vec<&'a [u8]>,
    sorts: Vec<i64>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Cell<'a> {
    tenant: &'a [u8],
    space: i16,
    key: &'a [u8],
    version: i64,
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
    /// Takes an append along. Its thread comes after all those that are here.
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
        self.heads.push(pack::payload(&append.head));
        self.records.push(pack::records(&append.records));
        let of = int(self.tenants.len() as u64);
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
        for change in &append.cells {
            let cell = Cell {
                tenant: append.key.tenant.as_bytes(),
                space: i16::from(change.space.number()),
                key: change.key.as_bytes(),
                version: int(change.expect),
            };
            self.cells.entry(cell).or_default().push(of);
        }
    }

    /// Commits those that can be. Returns the epochs of their threads, by their place in the order in which they were added.
    pub(super) async fn commit(
        &self,
        connection: &Line,
        us: OwnerId,
        time: &Time,
    ) -> Result<HashMap<usize, Epoch>, Error> {
        let rows = &self.rows;
        let cells = || self.cells.keys();
        let tenants: Vec<&[u8]> = cells().map(|cell| cell.tenant).collect();
        let spaces: Vec<i16> = cells().map(|cell| cell.space).collect();
        let keys: Vec<&[u8]> = cells().map(|cell| cell.key).collect();
        let versions: Vec<i64> = cells().map(|cell| cell.version).collect();
        let (dependents, dependences): (Vec<i64>, Vec<i64>) = self
            .cells
            .values()
            .zip(1..)
            .flat_map(|(dependents, cell)| dependents.iter().map(move |of| (*of, cell)))
            .unzip();
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
                    &self.heads,
                    &self.records,
                    &rows.of,
                    &rows.puts,
                    &rows.indexes,
                    &rows.keys,
                    &rows.sorts,
                    &tenants,
                    &spaces,
                    &keys,
                    &versions,
                    &dependents,
                    &dependences,
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
