//! A store on disk that several engines work on as if they were several processes, and a store that can fail.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use async_trait::async_trait;
use holdpoint::{
    Engine, Kit, Options, Principal, SharedStore, Span, ThreadKey, Timestamp,
    manager::{InterruptManager, InterruptOptions},
};
use holdpoint_core::{Digest, Index, IndexRow, OwnerId, Payload, Record, ThreadId};
use holdpoint_store::{
    Amendment, Append, AppendError, Appended, BackupError, Cell, Epoch, Head, Import, KeptCell,
    KeptCells, LeaseError, ManualClock, Part, Scan, Space, SqliteStore, Store, Unavailable,
};
use tempfile::TempDir;
use tokio::sync::watch;

/// A store on disk, with a clock that is moved by hand.
#[derive(Debug)]
pub(crate) struct Place {
    folder: TempDir,
    pub(crate) clock: Arc<ManualClock>,
}

impl Place {
    pub(crate) fn new() -> Self {
        let start = Timestamp::from_millis(1_700_000_000_000);
        Self {
            folder: tempfile::tempdir().unwrap(),
            clock: Arc::new(ManualClock::new(start)),
        }
    }

    /// The store as another process would open it.
    pub(crate) fn store(&self) -> SharedStore {
        let options = holdpoint_store::Options::default().with_clock(self.clock.clone());
        Arc::new(SqliteStore::open(&self.folder.path().join("t.db"), &options).unwrap())
    }

    /// A manager as another process would have it.
    pub(crate) fn manager(&self) -> InterruptManager {
        self.manager_of("local", "flow")
    }

    pub(crate) fn manager_of(&self, tenant: &str, name: &str) -> InterruptManager {
        let kind = holdpoint::PrincipalKind::Service;
        manager(self.store(), &Principal::new(kind, tenant, name))
    }

    pub(crate) fn manager_as(&self, kind: holdpoint::PrincipalKind) -> InterruptManager {
        manager(self.store(), &Principal::new(kind, "local", "someone"))
    }

    /// A manager on a store that can be made to fail.
    pub(crate) fn fragile(&self) -> (InterruptManager, Arc<AtomicBool>) {
        let fails = Arc::new(AtomicBool::new(false));
        let store = Arc::new(Fragile {
            inner: self.store(),
            fails: Arc::clone(&fails),
        });
        (manager(store, &Principal::local("flow")), fails)
    }

    /// A backup of it as it is now, which somebody adopts.
    pub(crate) async fn restored(&self) -> Self {
        let copy = Self {
            folder: tempfile::tempdir().unwrap(),
            clock: Arc::clone(&self.clock),
        };
        let to = copy.folder.path().join("t.db");
        self.store().backup(&to).await.unwrap();
        copy.wait_a(Span::from_secs(60));
        let adopted = engine(copy.store()).adopt().await.unwrap().unwrap();
        assert_eq!(adopted.asking.len(), 1);
        copy
    }

    pub(crate) fn wait_a(&self, span: Span) {
        self.clock.advance(span);
    }

    /// How often the questions of a node were closed, as its journal tells.
    pub(crate) async fn closings(&self, options: &InterruptOptions) -> usize {
        let thread = ThreadId::of_node("local", &options.workflow_id, &options.node_id);
        let key = ThreadKey {
            tenant: "local".into(),
            thread,
        };
        let journal = engine(self.store()).journal(&key).await.unwrap();
        let closes = |entry: &&holdpoint::Entry| {
            matches!(
                entry.event,
                holdpoint::Event::Answered { .. } | holdpoint::Event::InterruptClosed { .. }
            )
        };
        journal.iter().filter(closes).count()
    }
}

fn engine(store: SharedStore) -> Engine {
    Engine::new(store, Kit::new(), Options::default(), None)
}

fn manager(store: SharedStore, by: &Principal) -> InterruptManager {
    InterruptManager::new(engine(store), by.clone())
}

/// Fails to commit while it is told to.
#[derive(Debug)]
struct Fragile {
    inner: SharedStore,
    fails: Arc<AtomicBool>,
}

#[async_trait]
impl Store for Fragile {
    fn now(&self) -> Timestamp {
        self.inner.now()
    }

    fn owner(&self) -> OwnerId {
        self.inner.owner()
    }

    fn is_durable(&self) -> bool {
        self.inner.is_durable()
    }

    async fn load(&self, key: &ThreadKey) -> Result<Option<Head>, Unavailable> {
        self.inner.load(key).await
    }

    async fn load_all(
        &self,
        tenant: &Arc<str>,
        threads: &[ThreadId],
    ) -> Result<Vec<Option<Head>>, Unavailable> {
        self.inner.load_all(tenant, threads).await
    }

    async fn versions(&self, keys: &[ThreadKey]) -> Result<Vec<u64>, Unavailable> {
        self.inner.versions(keys).await
    }

    async fn read(
        &self,
        key: &ThreadKey,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Record>, Unavailable> {
        self.inner.read(key, after, limit).await
    }

    async fn append(&self, append: Append) -> Result<Appended, AppendError> {
        if self.fails.load(Ordering::SeqCst) {
            return Err(Unavailable::new("the disk is full").into());
        }
        self.inner.append(append).await
    }

    async fn take(&self, key: &ThreadKey, lasts: Span) -> Result<Epoch, LeaseError> {
        self.inner.take(key, lasts).await
    }

    async fn renew(&self, key: &ThreadKey, epoch: Epoch, lasts: Span) -> Result<(), LeaseError> {
        self.inner.renew(key, epoch, lasts).await
    }

    async fn release(&self, key: &ThreadKey, epoch: Epoch, version: u64) -> Result<(), LeaseError> {
        self.inner.release(key, epoch, version).await
    }

    async fn scan(&self, tenant: &str, scan: Scan) -> Result<Vec<IndexRow>, Unavailable> {
        self.inner.scan(tenant, scan).await
    }

    async fn tenants(&self, index: Index) -> Result<Vec<Arc<str>>, Unavailable> {
        self.inner.tenants(index).await
    }

    async fn put_blob(
        &self,
        tenant: &str,
        payload: Payload,
        digest: Digest,
    ) -> Result<(), Unavailable> {
        self.inner.put_blob(tenant, payload, digest).await
    }

    async fn blob(&self, tenant: &str, digest: Digest) -> Result<Option<Payload>, Unavailable> {
        self.inner.blob(tenant, digest).await
    }

    async fn cell(
        &self,
        tenant: &str,
        space: Space,
        key: &str,
    ) -> Result<Option<Cell>, Unavailable> {
        self.inner.cell(tenant, space, key).await
    }

    async fn cells(
        &self,
        tenant: &str,
        space: Space,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<(String, Cell)>, Unavailable> {
        self.inner.cells(tenant, space, after, limit).await
    }

    async fn amend(&self, tenant: &str, amendment: Amendment) -> Result<Vec<u64>, AppendError> {
        self.inner.amend(tenant, amendment).await
    }

    async fn sweep(&self, limit: usize) -> Result<usize, Unavailable> {
        self.inner.sweep(limit).await
    }

    async fn backup(&self, to: &Path) -> Result<(), BackupError> {
        self.inner.backup(to).await
    }

    async fn backup_made_at(&self) -> Result<Option<Timestamp>, Unavailable> {
        self.inner.backup_made_at().await
    }

    async fn adopt(&self) -> Result<(), Unavailable> {
        self.inner.adopt().await
    }

    async fn part(&self) -> Result<Option<Part>, Unavailable> {
        self.inner.part().await
    }

    async fn set_part(
        &self,
        expected: Option<&Part>,
        then: Option<&Part>,
    ) -> Result<bool, Unavailable> {
        self.inner.set_part(expected, then).await
    }

    async fn count_threads(&self) -> Result<u64, Unavailable> {
        self.inner.count_threads().await
    }

    async fn threads(
        &self,
        after: Option<&ThreadKey>,
        limit: usize,
    ) -> Result<Vec<(ThreadKey, Result<Head, Unavailable>)>, Unavailable> {
        self.inner.threads(after, limit).await
    }

    async fn blobs(
        &self,
        after: Option<&(Arc<str>, Digest)>,
        limit: usize,
    ) -> Result<Vec<(Arc<str>, Digest)>, Unavailable> {
        self.inner.blobs(after, limit).await
    }

    async fn kept_cells(
        &self,
        after: Option<&KeptCell>,
        limit: usize,
    ) -> Result<KeptCells, Unavailable> {
        self.inner.kept_cells(after, limit).await
    }

    async fn import(&self, import: Import) -> Result<(), Unavailable> {
        self.inner.import(import).await
    }

    fn foreign_changes(&self) -> watch::Receiver<u64> {
        self.inner.foreign_changes()
    }
}
