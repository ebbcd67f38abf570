//! The compare-and-set table in memory.

use std::{collections::BTreeMap, ops::Bound, sync::Arc};

use holdpoint_core::Timestamp;

use crate::{
    AppendError, Cell, CellChange, CellThen, KeptCell, KeptCells, Space,
    admission::{self, Slot},
};

type Key = (Arc<str>, Space, String);

/// All cells there are.
#[derive(Debug, Default)]
pub(super) struct Cells {
    cells: BTreeMap<Key, Written>,
    /// The highest version of a cell that was swept away.
    swept: u64,
}

/// A cell, or what is left of one that was removed.
#[derive(Debug)]
struct Written {
    version: u64,
    value: Option<Vec<u8>>,
    until: Option<Timestamp>,
}

impl Written {
    fn read(&self, now: Timestamp) -> Option<Cell> {
        let value = self.value.clone()?;
        admission::lasts(self.until, now).then_some(Cell {
            version: self.version,
            value,
            until: self.until,
        })
    }
}

impl Cells {
    /// The versions that cells have after changes, or why one of them may not change.
    pub(super) fn admit_all(
        &self,
        tenant: &Arc<str>,
        changes: &[CellChange],
        now: Timestamp,
    ) -> Result<Vec<u64>, AppendError> {
        let admit = |change| self.admit(tenant, change, now);
        changes.iter().map(admit).collect()
    }

    fn admit(
        &self,
        tenant: &Arc<str>,
        change: &CellChange,
        now: Timestamp,
    ) -> Result<u64, AppendError> {
        let key = (Arc::clone(tenant), change.space, change.key.clone());
        let slot = match self.cells.get(&key) {
            Some(cell) => Slot {
                version: cell.version,
                is_there: cell.value.is_some() && admission::lasts(cell.until, now),
            },
            None => Slot {
                version: self.swept,
                is_there: false,
            },
        };
        admission::admit_cell(change, slot)
    }

    /// Writes a change that was admitted.
    pub(super) fn write(&mut self, tenant: &Arc<str>, change: CellChange, version: u64) {
        let key = (Arc::clone(tenant), change.space, change.key);
        let (value, until) = match change.then {
            CellThen::Set { value, until } => (Some(value), until),
            // What is left of it keeps its end, and is swept away then.
            CellThen::Remove => (None, self.cells.get(&key).and_then(|cell| cell.until)),
            CellThen::Keep => return,
        };
        let written = Written {
            version,
            value,
            until,
        };
        self.cells.insert(key, written);
    }

    pub(super) fn one(
        &self,
        tenant: &str,
        space: Space,
        key: &str,
        now: Timestamp,
    ) -> Option<Cell> {
        let key = (Arc::from(tenant), space, key.to_owned());
        self.cells.get(&key).and_then(|cell| cell.read(now))
    }

    pub(super) fn some(
        &self,
        tenant: &str,
        space: Space,
        after: Option<&str>,
        limit: usize,
        now: Timestamp,
    ) -> Vec<(String, Cell)> {
        let tenant: Arc<str> = Arc::from(tenant);
        let key = |key: &str| (Arc::clone(&tenant), space, key.to_owned());
        let from = after.map_or_else(
            || Bound::Included(key("")),
            |after| Bound::Excluded(key(after)),
        );
        self.cells
            .range((from, Bound::Unbounded))
            .take_while(|((owner, kind, _), _)| *owner == tenant && *kind == space)
            .filter_map(|((.., key), cell)| Some((key.clone(), cell.read(now)?)))
            .take(limit)
            .collect()
    }

    pub(super) fn kept(&self, after: Option<&KeptCell>, limit: usize) -> KeptCells {
        let after = after.map(|it| (Arc::clone(&it.tenant), it.space, it.key.clone()));
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let kept = |((tenant, space, key), cell): (&Key, &Written)| KeptCell {
            tenant: Arc::clone(tenant),
            space: *space,
            key: key.clone(),
            version: cell.version,
            value: cell.value.clone(),
            until: cell.until,
        };
        let cells = self.cells.range((from, Bound::Unbounded));
        KeptCells {
            cells: cells.take(limit).map(kept).collect(),
            swept: self.swept,
        }
    }

    pub(super) fn import(&mut self, kept: KeptCells) {
        for cell in kept.cells {
            let written = Written {
                version: cell.version,
                value: cell.value,
                until: cell.until,
            };
            self.cells
                .insert((cell.tenant, cell.space, cell.key), written);
        }
        self.swept = self.swept.max(kept.swept);
    }

    /// Clears away cells that have ended, the oldest first. Returns how many.
    pub(super) fn sweep(&mut self, limit: usize, now: Timestamp) -> usize {
        let mut ended: Vec<(Option<Timestamp>, Key)> = self
            .cells
            .iter()
            .filter(|(_, cell)| !admission::lasts(cell.until, now))
            .map(|(key, cell)| (cell.until, key.clone()))
            .collect();
        ended.sort();
        ended.truncate(limit);
        for (_, key) in &ended {
            if let Some(cell) = self.cells.remove(key) {
                // INVARIANT: what takes its place gets a higher version than it had.
                self.swept = self.swept.max(cell.version);
            }
        }
        ended.len()
    }
}
