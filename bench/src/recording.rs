//! A store that remembers what was written through it, so that the ceiling can write the very same.

use std::{
    collections::HashMap,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use holdpoint_core::{
    Digest, Index, IndexRow, OwnerId, Payload, Record, Span, ThreadId, Timestamp,
};
use holdpoint_store::{
    Amendment, Append, AppendError, Appended, BackupError, Cell, Epoch, Fence, Head, Import,
    KeptCell, KeptCells, LeaseAfter, LeaseError, Part, Scan, SharedStore, Space, Store, ThreadKey,
    Unavailable,
};
use tokio::sync::watch;

/// One commit to a thread, as it left the thread's row.
#[derive(Debug, Clone)]
pub(crate) struct Commit {
    /// The thread's epoch after it.
    pub(crate) epoch: Epoch,
    /// When the lease ends after it, if it is held then.
    pub(crate) until: Option<Timestamp>,
    /// What was appended; nothing if only the lease changed.
    pub(crate) append: Option<Append>,
}

/// The commits of each thread, in order; threads in the order in which they began.
#[derive(Debug, Default)]
struct Log {
    place: HashMap<ThreadKey, usize>,
    threads: Vec<(ThreadKey, Vec<Commit>)>,
}

/// A store that remembers.
#[derive(Debug)]
pub(crate) struct Recording {
    inner: SharedStore,
    log: Mutex<Log>,
}

impl Recording {
    /// Remembers what is written to `inner`.
    pub(crate) fn new(inner: SharedStore) -> Self {
        Self {
            inner,
            log: Mutex::default(),
        }
    }

    /// What was written so far, thread by thread.
    pub(crate) fn take(&self) -> Vec<(ThreadKey, Vec<Commit>)> {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *log).threads
    }

    fn note(&self, key: &ThreadKey, commit: impl FnOnce(Option<&Commit>) -> Commit) {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let Log { place, threads } = &mut *log;
        let at = *place.entry(key.clone()).or_insert_with(|| {
            threads.push((key.clone(), Vec::new()));
            threads.len() - 1
        });
        if let Some((_, commits)) = threads.get_mut(at) {
            let commit = commit(commits.last());
            commits.push(commit);
        }
    }

    fn note_lease(&self, key: &ThreadKey, epoch: Epoch, until: Option<Timestamp>) {
        self.note(key, |_| Commit {
            epoch,
            until,
            append: None,
        });
    }
}

#[async_trait]
impl Store for Recording {
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
        let appended = self.inner.append(append.clone()).await?;
        let now = self.inner.now();
        self.note(&append.key.clone(), |last| {
            let until = match (append.lease, append.fence) {
                (LeaseAfter::Release, _) => None,
                (LeaseAfter::Keep, Fence::Take { lasts, .. }) => Some(now + lasts),
                (LeaseAfter::Keep, Fence::Open | Fence::Driver(_)) => {
                    last.and_then(|last| last.until)
                }
            };
            Commit {
                epoch: appended.epoch,
                until,
                append: Some(append),
            }
        });
        Ok(appended)
    }

    async fn take(&self, key: &ThreadKey, lasts: Span) -> Result<Epoch, LeaseError> {
        let epoch = self.inner.take(key, lasts).await?;
        self.note_lease(key, epoch, Some(self.inner.now() + lasts));
        Ok(epoch)
    }

    async fn renew(&self, key: &ThreadKey, epoch: Epoch, lasts: Span) -> Result<(), LeaseError> {
        self.inner.renew(key, epoch, lasts).await?;
        self.note_lease(key, epoch, Some(self.inner.now() + lasts));
        Ok(())
    }

    async fn release(&self, key: &ThreadKey, epoch: Epoch, version: u64) -> Result<(), LeaseError> {
        self.inner.release(key, epoch, version).await?;
        self.note_lease(key, epoch, None);
        Ok(())
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
