//! Index rows in memory.

use std::{collections::BTreeSet, sync::Arc};

use holdpoint_core::{Index, IndexChange, IndexRow, ThreadId};

use crate::{Direction, Scan};

type Row = (Index, Arc<str>, String, i64, ThreadId);

/// All index rows there are.
#[derive(Debug, Default)]
pub(super) struct Rows(BTreeSet<Row>);

impl Rows {
    pub(super) fn write(&mut self, tenant: &Arc<str>, change: IndexChange) {
        match change {
            IndexChange::Put(row) => self.0.insert(within(tenant, row)),
            IndexChange::Remove(row) => self.0.remove(&within(tenant, row)),
        };
    }

    pub(super) fn scan(&self, tenant: &str, scan: Scan) -> Vec<IndexRow> {
        let tenant: Arc<str> = Arc::from(tenant);
        let mut low = lowest(scan.index, &tenant, scan.key.as_deref().unwrap_or(""));
        let mut high = match &scan.key {
            Some(key) => lowest(scan.index, &tenant, &next(key)),
            None => lowest(scan.index, &Arc::from(next(&tenant)), ""),
        };
        let after = scan.after.map(|row| IndexRow {
            index: scan.index,
            ..row
        });
        let after = after.map(|row| within(&tenant, row));
        if let Some(after) = &after {
            match scan.direction {
                Direction::Forward => low = low.max(after.clone()),
                Direction::Backward => high = high.min(after.clone()),
            }
        }
        if low >= high {
            return Vec::new();
        }
        let mut rows = self.0.range(low..high);
        let rows: &mut dyn Iterator<Item = &Row> = match scan.direction {
            Direction::Forward => &mut rows,
            Direction::Backward => &mut rows.rev(),
        };
        rows.filter(|row| after.as_ref() != Some(*row))
            .filter(|(_, _, _, sort, _)| scan.up_to.is_none_or(|up_to| *sort <= up_to))
            .take(scan.limit)
            .map(|(index, _, key, sort, thread)| IndexRow {
                index: *index,
                key: key.clone(),
                sort: *sort,
                thread: *thread,
            })
            .collect()
    }

    pub(super) fn tenants(&self, index: Index) -> Vec<Arc<str>> {
        let mut tenants: Vec<Arc<str>> = self
            .0
            .iter()
            .filter(|(other, ..)| *other == index)
            .map(|(_, tenant, ..)| Arc::clone(tenant))
            .collect();
        tenants.dedup();
        tenants
    }
}

fn within(tenant: &Arc<str>, row: IndexRow) -> Row {
    (row.index, Arc::clone(tenant), row.key, row.sort, row.thread)
}

/// The lowest row that there can be for a key.
fn lowest(index: Index, tenant: &Arc<str>, key: &str) -> Row {
    let thread = ThreadId::from_bytes([0; 16]);
    (index, Arc::clone(tenant), key.to_owned(), i64::MIN, thread)
}

/// The text that comes right after this one.
fn next(text: &str) -> String {
    format!("{text}\0")
}
