//! Threads in the memory of one process, for tests and for runs that need not outlive it.

mod cells;
mod rows;

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use holdpoint_core::{
    Digest, Index, IndexChange, IndexRow, OwnerId, Payload, Record, Span, ThreadId, Timestamp,
};
use tokio::sync::watch;

use self::{cells::Cells, rows::Rows};
use crate::{
    Amendment, Append, AppendError, Appended, BackupError, Cell, CellChange, Clock, Epoch, Head,
    Holder, Import, ImportedThread, KeptCell, KeptCells, LeaseError, Options, Part, Scan, Space,
    Store, ThreadKey, Unavailable,
    admission::{self, Census, Standing, Tenure},
    moving,
};

/// A store in memory. It is not durable.
///
/// Several handles may share what it keeps, each as if it were a process of its own: see [`MemoryStore::sibling`].
///
/// ```
/// use holdpoint_store::{MemoryStore, Options, Store};
/// let store = MemoryStore::new(&Options::default());
/// assert!(!store.is_durable());
/// assert_ne!(store.owner(), store.sibling().owner());
/// ```
#[derive(Debug)]
pub struct MemoryStore {
    owner: OwnerId,
    clock: Arc<dyn Clock>,
    state: Arc<Mutex<State>>,
    changes: watch::Receiver<u64>,
}

#[derive(Debug, Default)]
struct State {
    threads: BTreeMap<ThreadKey, Thread>,
    rows: Rows,
    blobs: BTreeMap<(Arc<str>, Digest), Payload>,
    cells: Cells,
    /// How each handle is told of the changes made by the others.
    handles: BTreeMap<OwnerId, watch::Sender<u64>>,
    crashed: BTreeSet<OwnerId>,
    part: Option<Part>,
}

#[derive(Debug)]
struct Thread {
    standing: Standing,
    head: Payload,
    records: Vec<Record>,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new(options: &Options) -> Self {
        Self::join(options.clock(), Arc::default())
    }

    /// Another handle on the same data, which takes leases for itself, as another process would.
    #[must_use]
    pub fn sibling(&self) -> Self {
        Self::join(Arc::clone(&self.clock), Arc::clone(&self.state))
    }

    /// Makes this handle's leases those of a process that is certainly dead.
    pub fn crash(self) {
        self.state().crashed.insert(self.owner);
    }

    fn join(clock: Arc<dyn Clock>, state: Arc<Mutex<State>>) -> Self {
        let (sender, changes) = watch::channel(0);
        let mut locked = lock(&state);
        // Handles of the past keep their leases, so their numbers are not given again.
        let number = locked.handles.len() as u128 + 1;
        let owner = OwnerId::from_bytes(number.to_be_bytes());
        locked.handles.insert(owner, sender);
        drop(locked);
        Self {
            owner,
            clock,
            state,
            changes,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn census<'a>(&'a self, state: &'a State) -> Handle<'a> {
        Handle { store: self, state }
    }

    fn head(&self, state: &State, key: &ThreadKey) -> Option<Head> {
        let thread = state.threads.get(key)?;
        let lease = thread.standing.lease.as_ref();
        Some(Head {
            version: thread.standing.version,
            epoch: thread.standing.epoch,
            lease: lease.map(|tenure| self.census(state).lease(tenure)),
            payload: thread.head.clone(),
        })
    }

    /// Changes how a thread stands, if `change` admits it.
    fn change_lease(
        &self,
        key: &ThreadKey,
        change: impl FnOnce(&Standing, &dyn Census) -> Result<Standing, LeaseError>,
    ) -> Result<Epoch, LeaseError> {
        let mut state = self.state();
        state.expect_open()?;
        let thread = state.threads.get(key).ok_or(LeaseError::NotFound)?;
        let after = change(&thread.standing, &self.census(&state))?;
        let epoch = after.epoch;
        if let Some(thread) = state.threads.get_mut(key) {
            thread.standing = after;
        }
        state.changed_by(self.owner);
        Ok(epoch)
    }
}

/// From the first one after `after` on.
fn from<T>(after: Option<&T>) -> Bound<&T> {
    after.map_or(Bound::Unbounded, Bound::Excluded)
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    // Every change is checked before its first step, so a panic cannot leave half of one behind.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A handle as admission sees it, while it holds the lock.
struct Handle<'a> {
    store: &'a MemoryStore,
    state: &'a State,
}

impl Census for Handle<'_> {
    fn now(&self) -> Timestamp {
        self.store.clock.now()
    }

    fn us(&self) -> OwnerId {
        self.store.owner
    }

    fn tenure(&self, until: Timestamp) -> Result<Tenure, String> {
        Ok(Tenure {
            owner: self.us(),
            boot: None,
            until,
        })
    }

    fn other(&self, tenure: &Tenure) -> Holder {
        if self.state.crashed.contains(&tenure.owner) {
            Holder::Dead
        } else {
            Holder::MaybeAlive
        }
    }
}

impl State {
    /// Nothing is written in a store that has a part in a move.
    fn expect_open(&self) -> Result<(), Unavailable> {
        match &self.part {
            Some(part) => Err(Unavailable::new(part.refusal())),
            None => Ok(()),
        }
    }

    /// Writes changes that were admitted, with the versions that the cells have then.
    fn amend(
        &mut self,
        tenant: &Arc<str>,
        index: Vec<IndexChange>,
        cells: Vec<CellChange>,
        versions: &[u64],
    ) {
        for (change, version) in cells.into_iter().zip(versions) {
            self.cells.write(tenant, change, *version);
        }
        for change in index {
            self.rows.write(tenant, change);
        }
    }

    fn import(&mut self, imported: ImportedThread) {
        let ImportedThread {
            key,
            epoch,
            head,
            records,
        } = imported;
        let thread = self.threads.entry(key).or_insert_with(|| Thread {
            standing: Standing::default(),
            head: head.clone(),
            records: Vec::new(),
        });
        for record in records {
            if record.seq > thread.standing.version {
                thread.standing.version = record.seq;
                thread.records.push(record);
            }
        }
        thread.standing.epoch = epoch;
        thread.head = head;
    }

    fn changed_by(&self, owner: OwnerId) {
        for (_, handle) in self.handles.iter().filter(|(other, _)| **other != owner) {
            handle.send_modify(|count| *count += 1);
        }
    }
}

#[async_trait]
impl Store for MemoryStore {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn owner(&self) -> OwnerId {
        self.owner
    }

    fn is_durable(&self) -> bool {
        false
    }

    async fn load(&self, key: &ThreadKey) -> Result<Option<Head>, Unavailable> {
        Ok(self.head(&self.state(), key))
    }

    async fn load_all(
        &self,
        tenant: &Arc<str>,
        threads: &[ThreadId],
    ) -> Result<Vec<Option<Head>>, Unavailable> {
        let state = self.state();
        let key = |thread: &ThreadId| ThreadKey {
            tenant: Arc::clone(tenant),
            thread: *thread,
        };
        Ok(threads
            .iter()
            .map(|thread| self.head(&state, &key(thread)))
            .collect())
    }

    async fn versions(&self, keys: &[ThreadKey]) -> Result<Vec<u64>, Unavailable> {
        let state = self.state();
        let version = |key: &ThreadKey| state.threads.get(key).map(|it| it.standing.version);
        Ok(keys.iter().map(|key| version(key).unwrap_or(0)).collect())
    }

    async fn read(
        &self,
        key: &ThreadKey,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Record>, Unavailable> {
        let skip = usize::try_from(after).unwrap_or(usize::MAX);
        Ok(self
            .state()
            .threads
            .get(key)
            .map_or_else(Vec::new, |thread| {
                thread
                    .records
                    .iter()
                    .skip(skip)
                    .take(limit)
                    .cloned()
                    .collect()
            }))
    }

    async fn append(&self, append: Append) -> Result<Appended, AppendError> {
        admission::well_formed(&append)?;
        let mut state = self.state();
        state.expect_open()?;
        let thread = state.threads.get(&append.key);
        let before = thread.map_or_else(Standing::default, |thread| thread.standing.clone());
        let after = admission::admit(&append, &before, &self.census(&state))?;
        let tenant = Arc::clone(&append.key.tenant);
        let cells = state.cells.admit_all(&tenant, &append.cells, self.now())?;

        let appended = Appended {
            version: after.version,
            epoch: after.epoch,
        };
        state.amend(&tenant, append.index, append.cells, &cells);
        let thread = state.threads.entry(append.key).or_insert_with(|| Thread {
            standing: Standing::default(),
            head: append.head.clone(),
            records: Vec::new(),
        });
        thread.standing = after;
        thread.head = append.head;
        for (record, seq) in append.records.into_iter().zip(before.version + 1..) {
            thread.records.push(Record { seq, ..record });
        }
        state.changed_by(self.owner);
        Ok(appended)
    }

    async fn take(&self, key: &ThreadKey, lasts: Span) -> Result<Epoch, LeaseError> {
        self.change_lease(key, |standing, census| {
            admission::take(standing, lasts, census)
        })
    }

    async fn renew(&self, key: &ThreadKey, epoch: Epoch, lasts: Span) -> Result<(), LeaseError> {
        self.change_lease(key, |standing, census| {
            admission::renew(standing, epoch, lasts, census)
        })
        .map(drop)
    }

    async fn release(&self, key: &ThreadKey, epoch: Epoch, version: u64) -> Result<(), LeaseError> {
        self.change_lease(key, |standing, census| {
            admission::release(standing, epoch, version, census)
        })
        .map(drop)
    }

    async fn scan(&self, tenant: &str, scan: Scan) -> Result<Vec<IndexRow>, Unavailable> {
        Ok(self.state().rows.scan(tenant, scan))
    }

    async fn tenants(&self, index: Index) -> Result<Vec<Arc<str>>, Unavailable> {
        Ok(self.state().rows.tenants(index))
    }

    async fn put_blob(
        &self,
        tenant: &str,
        payload: Payload,
        digest: Digest,
    ) -> Result<(), Unavailable> {
        let mut state = self.state();
        state.expect_open()?;
        state
            .blobs
            .entry((Arc::from(tenant), digest))
            .or_insert(payload);
        state.changed_by(self.owner);
        Ok(())
    }

    async fn blob(&self, tenant: &str, digest: Digest) -> Result<Option<Payload>, Unavailable> {
        Ok(self
            .state()
            .blobs
            .get(&(Arc::from(tenant), digest))
            .cloned())
    }

    async fn cell(
        &self,
        tenant: &str,
        space: Space,
        key: &str,
    ) -> Result<Option<Cell>, Unavailable> {
        Ok(self.state().cells.one(tenant, space, key, self.now()))
    }

    async fn cells(
        &self,
        tenant: &str,
        space: Space,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<(String, Cell)>, Unavailable> {
        let state = self.state();
        Ok(state.cells.some(tenant, space, after, limit, self.now()))
    }

    async fn amend(&self, tenant: &str, amendment: Amendment) -> Result<Vec<u64>, AppendError> {
        let Amendment { index, cells } = amendment;
        admission::each_cell_once(&cells)?;
        let tenant = Arc::from(tenant);
        let mut state = self.state();
        state.expect_open()?;
        let versions = state.cells.admit_all(&tenant, &cells, self.now())?;
        state.amend(&tenant, index, cells, &versions);
        state.changed_by(self.owner);
        Ok(versions)
    }

    async fn sweep(&self, limit: usize) -> Result<usize, Unavailable> {
        let mut state = self.state();
        state.expect_open()?;
        Ok(state.cells.sweep(limit, self.now()))
    }

    async fn backup(&self, _to: &Path) -> Result<(), BackupError> {
        Err(BackupError::Unsupported(
            "it lives in the memory of one process".to_owned(),
        ))
    }

    async fn backup_made_at(&self) -> Result<Option<Timestamp>, Unavailable> {
        Ok(None)
    }

    async fn adopt(&self) -> Result<(), Unavailable> {
        Ok(())
    }

    async fn part(&self) -> Result<Option<Part>, Unavailable> {
        Ok(self.state().part.clone())
    }

    async fn set_part(
        &self,
        expected: Option<&Part>,
        then: Option<&Part>,
    ) -> Result<bool, Unavailable> {
        let mut state = self.state();
        let is_expected = state.part.as_ref() == expected;
        if is_expected {
            state.part = then.cloned();
        }
        Ok(is_expected)
    }

    async fn count_threads(&self) -> Result<u64, Unavailable> {
        Ok(self.state().threads.len() as u64)
    }

    async fn threads(
        &self,
        after: Option<&ThreadKey>,
        limit: usize,
    ) -> Result<Vec<(ThreadKey, Result<Head, Unavailable>)>, Unavailable> {
        let state = self.state();
        let keys = state.threads.range((from(after), Bound::Unbounded));
        let heads = keys.filter_map(|(key, _)| Some((key.clone(), Ok(self.head(&state, key)?))));
        Ok(heads.take(limit).collect())
    }

    async fn blobs(
        &self,
        after: Option<&(Arc<str>, Digest)>,
        limit: usize,
    ) -> Result<Vec<(Arc<str>, Digest)>, Unavailable> {
        let state = self.state();
        let blobs = state.blobs.range((from(after), Bound::Unbounded));
        Ok(blobs.map(|(key, _)| key.clone()).take(limit).collect())
    }

    async fn kept_cells(
        &self,
        after: Option<&KeptCell>,
        limit: usize,
    ) -> Result<KeptCells, Unavailable> {
        Ok(self.state().cells.kept(after, limit))
    }

    async fn import(&self, import: Import) -> Result<(), Unavailable> {
        let mut state = self.state();
        moving::expect_arriving(state.part.as_ref(), import.ticket)?;
        for thread in import.threads {
            state.import(thread);
        }
        for (tenant, row) in import.rows {
            state.rows.write(&tenant, IndexChange::Put(row));
        }
        state.cells.import(import.cells);
        for (tenant, digest, payload) in import.blobs {
            state.blobs.entry((tenant, digest)).or_insert(payload);
        }
        Ok(())
    }

    fn foreign_changes(&self) -> watch::Receiver<u64> {
        self.changes.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fence, LeaseAfter, conformance::record};

    #[tokio::test]
    async fn a_store_in_memory_has_no_backups_and_makes_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("copy.db");
        let store = MemoryStore::new(&Options::default());
        assert!(matches!(
            store.backup(&to).await,
            Err(BackupError::Unsupported(_))
        ));
        assert!(!to.exists());
    }

    #[tokio::test]
    async fn the_lease_of_a_crashed_handle_is_taken_at_once_and_of_a_dropped_one_is_not() {
        let here = MemoryStore::new(&Options::default());
        let lasts = Span::from_secs(60);
        for (session, leave, taken) in [
            ("crashed", MemoryStore::crash as fn(MemoryStore), true),
            ("dropped", drop, false),
        ] {
            let thread = ThreadId::of_session("acme", "agent", session);
            let key = ThreadKey {
                tenant: Arc::from("acme"),
                thread,
            };
            let there = here.sibling();
            let append = Append {
                key: key.clone(),
                expect: 0,
                fence: Fence::Take { after: 0, lasts },
                records: vec![record(1)],
                head: Payload::json(vec![]),
                index: vec![],
                cells: vec![],
                lease: LeaseAfter::Keep,
            };
            assert_eq!(
                there.append(append).await,
                Ok(Appended {
                    version: 1,
                    epoch: 1
                })
            );
            leave(there);
            assert_eq!(here.take(&key, lasts).await.is_ok(), taken, "{session}");
        }
    }
}
