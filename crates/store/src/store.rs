//! The contract every backend fulfils.
//!
//! A store keeps threads: each an append-only list of records, a head, a version (the sequence of the last record) and a
//! lease. It knows nothing of what they mean. Its promises:
//!
//! - An append is one atomic commit of records, head, index changes and cell changes; it is acknowledged when durable.
//! - It names the version it expects. Of two appends at one version exactly one is committed.
//! - A driver's append also names its epoch, and is refused once another driver has taken over.
//! - Appends committed together do not fail together: a loser gets its own error, the others are committed.

use std::{path::Path, sync::Arc};

use async_trait::async_trait;
use holdpoint_core::{
    Digest, Index, IndexChange, IndexRow, OwnerId, Payload, Record, Span, ThreadId, Timestamp,
};
use tokio::sync::watch;

use crate::{BackupError, Cell, CellChange, Import, KeptCell, KeptCells, Part, Space};

/// How often the lease of a thread has been taken. The lease with the highest epoch is the one in force.
pub type Epoch = u64;

/// A handle on any backend.
pub type SharedStore = Arc<dyn Store>;

/// Names a thread.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadKey {
    /// The tenant it belongs to. Nothing of a tenant is reached without naming it.
    pub tenant: Arc<str>,
    /// The thread.
    pub thread: ThreadId,
}

/// Who holds a thread's lease, and until when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The process that holds it.
    pub owner: OwnerId,
    /// When it ends unless it is renewed.
    pub until: Timestamp,
    /// Whether the holder is known to be dead, so that the lease may be taken before its end.
    pub holder: Holder,
}

/// What is known of a lease's holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// This process, by this store handle.
    Us,
    /// Another process that may be alive.
    MaybeAlive,
    /// A process on this machine that is certainly gone.
    Dead,
}

/// A thread's current state, as one read sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The sequence of its last record.
    pub version: u64,
    /// The epoch of the last lease that was taken; 0 before the first.
    pub epoch: Epoch,
    /// The lease, if one was taken and not released. It may have ended: compare `until` with [`Store::now`].
    pub lease: Option<Lease>,
    /// The fold of its records.
    pub payload: Payload,
}

/// By what right an append is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fence {
    /// By anyone, with no lease: an answer, a cancel, a timer, a late outcome.
    Open,
    /// By the driver that holds this epoch.
    Driver(Epoch),
    /// By this process, taking the lease in the same commit. The epoch becomes `after` + 1.
    Take {
        /// The thread's epoch as it was read (0 for a new thread).
        after: Epoch,
        /// How long the lease lasts.
        lasts: Span,
    },
}

/// What happens to the lease in the same commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseAfter {
    /// It stays as it is (or as [`Fence::Take`] made it).
    Keep,
    /// It is released. Only with [`Fence::Driver`] or [`Fence::Take`].
    Release,
}

/// One atomic commit to one thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Append {
    /// The thread.
    pub key: ThreadKey,
    /// The version it must have; 0 = it must not exist.
    pub expect: u64,
    /// By what right.
    pub fence: Fence,
    /// What follows on `expect`, in sequence, without a gap; at least one.
    pub records: Vec<Record>,
    /// The fold of everything up to the last record.
    pub head: Payload,
    /// What follows for the indexes.
    pub index: Vec<IndexChange>,
    /// Cells of the same tenant that change with it.
    pub cells: Vec<CellChange>,
    /// What happens to the lease.
    pub lease: LeaseAfter,
}

/// One atomic commit beside the threads of a tenant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Amendment {
    /// What changes in the indexes.
    pub index: Vec<IndexChange>,
    /// Cells that change with it.
    pub cells: Vec<CellChange>,
}

/// Why an append was not committed. Nothing of it was, except as [`AppendError::Unavailable`] says.
///
/// A driver that was taken over is told so whatever the version; everyone else is told of a conflict first.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AppendError {
    /// Someone appended first: read what is new and decide again.
    #[error("the thread has moved on to version {current}")]
    Conflict {
        /// The version it has now.
        current: u64,
    },
    /// Another driver took over: stop driving.
    #[error("another driver has taken over with epoch {current}")]
    Fenced {
        /// The epoch in force.
        current: Epoch,
    },
    /// The lease could not be taken: another driver holds it and may be alive.
    #[error("the thread is driven by another process")]
    LeaseHeld {
        /// The lease as it stands.
        lease: Lease,
        /// Its epoch.
        epoch: Epoch,
    },
    /// A cell did not have the version that was expected.
    #[error("cell `{key}` has another version")]
    CellConflict {
        /// What the cell is for.
        space: Space,
        /// The cell's key.
        key: String,
    },
    /// The append breaks the contract, for instance by a gap in its sequence.
    #[error("malformed append: {0}")]
    Malformed(String),
    /// The lease could not be taken: this store can be read but not driven from here, or is a backup.
    #[error("this store cannot be driven from here: {0}")]
    CannotDrive(String),
    /// The store could not be reached or could not commit; it is unknown whether this append was committed.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// The store could not be reached, read or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the store is unavailable: {reason}")]
pub struct Unavailable {
    reason: String,
}

impl Unavailable {
    /// With a reason that a tired person understands.
    pub fn new(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
        }
    }

    /// The reason alone.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

/// What a committed append led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// The thread's version now.
    pub version: u64,
    /// The thread's epoch now.
    pub epoch: Epoch,
}

/// Why a lease was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LeaseError {
    /// Another driver holds it and may be alive.
    #[error("the thread is driven by another process")]
    Held {
        /// The lease as it stands.
        lease: Lease,
    },
    /// The lease is not (or no longer) held under that epoch.
    #[error("another driver has taken over with epoch {current}")]
    Fenced {
        /// The epoch in force.
        current: Epoch,
    },
    /// The lease may only be released at the version at which there was nothing left to do.
    #[error("the thread has moved on to version {current}")]
    Conflict {
        /// The version it has now.
        current: u64,
    },
    /// There is no such thread.
    #[error("there is no such thread")]
    NotFound,
    /// This store can be read but not driven: owners cannot be told apart here, or it is a backup.
    #[error("this store cannot be driven from here: {0}")]
    CannotDrive(String),
    /// The store could not be reached.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// Which part of an index to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan {
    /// The index.
    pub index: Index,
    /// Only this key, or all keys in their order.
    pub key: Option<String>,
    /// Only rows whose `sort` is at most this. Cheap with a `key`; over all keys, every row is looked at.
    pub up_to: Option<i64>,
    /// In which direction.
    pub direction: Direction,
    /// Only rows that come after this one in that direction. It need not exist.
    pub after: Option<IndexRow>,
    /// At most this many.
    pub limit: usize,
}

/// In which direction the rows of an index are listed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Direction {
    /// In (key, sort, thread) order, the lowest first.
    #[default]
    Forward,
    /// The other way round: where rows are sorted by time, the newest of a key first.
    Backward,
}

/// A place where threads live.
///
/// # Durability
///
/// What a method acknowledges survives a crash of the process, and of the machine where the backend says so.
///
/// # Cancel safety
///
/// Dropping the future of a writing method does not tell whether it was committed; read the thread to find out.
#[async_trait]
pub trait Store: Send + Sync + std::fmt::Debug {
    /// The time that leases and deadlines are measured by.
    fn now(&self) -> Timestamp;

    /// The process that this handle takes leases for.
    fn owner(&self) -> OwnerId;

    /// Whether what it keeps outlives the process.
    fn is_durable(&self) -> bool;

    /// A thread's head, or `None` if there is no such thread in this tenant.
    async fn load(&self, key: &ThreadKey) -> Result<Option<Head>, Unavailable>;

    /// The heads of several threads of a tenant, in the order they are asked for.
    async fn load_all(
        &self,
        tenant: &Arc<str>,
        threads: &[ThreadId],
    ) -> Result<Vec<Option<Head>>, Unavailable>;

    /// The versions of several threads, of any tenants, in the order they are asked for; 0 = there is no such thread. It
    /// reads nothing else of them, so that thousands can be asked for again and again.
    async fn versions(&self, keys: &[ThreadKey]) -> Result<Vec<u64>, Unavailable>;

    /// A thread's records after `after`, in sequence, at most `limit`.
    async fn read(
        &self,
        key: &ThreadKey,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Record>, Unavailable>;

    /// Commits an append.
    async fn append(&self, append: Append) -> Result<Appended, AppendError>;

    /// Takes the lease of an existing thread if it is free, has ended, or its holder is dead. Returns the new epoch.
    /// Taking, renewing and releasing do not change the thread's version.
    async fn take(&self, key: &ThreadKey, lasts: Span) -> Result<Epoch, LeaseError>;

    /// Prolongs a lease that is held under `epoch`.
    async fn renew(&self, key: &ThreadKey, epoch: Epoch, lasts: Span) -> Result<(), LeaseError>;

    /// Gives a lease back, if it is held under `epoch` and the thread is still at `version`.
    async fn release(&self, key: &ThreadKey, epoch: Epoch, version: u64) -> Result<(), LeaseError>;

    /// Rows of an index within a tenant, in (key, sort, thread) order or the reverse of it.
    async fn scan(&self, tenant: &str, scan: Scan) -> Result<Vec<IndexRow>, Unavailable>;

    /// The tenants that have rows in an index.
    async fn tenants(&self, index: Index) -> Result<Vec<Arc<str>>, Unavailable>;

    /// Keeps bytes under their digest. Keeping them again changes nothing.
    async fn put_blob(
        &self,
        tenant: &str,
        payload: Payload,
        digest: Digest,
    ) -> Result<(), Unavailable>;

    /// The bytes with this digest.
    async fn blob(&self, tenant: &str, digest: Digest) -> Result<Option<Payload>, Unavailable>;

    /// A cell's value. One that was removed, or whose time has passed, is absent.
    async fn cell(
        &self,
        tenant: &str,
        space: Space,
        key: &str,
    ) -> Result<Option<Cell>, Unavailable>;

    /// The cells of a space in the order of their keys, from the first one after `after` on, at most `limit`. Those that
    /// are absent are left out and do not count.
    async fn cells(
        &self,
        tenant: &str,
        space: Space,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<(String, Cell)>, Unavailable>;

    /// Changes index rows and cells that belong to no append: all of them, or none if a cell does not have the expected
    /// version. A row that is there is not put again, and one that is gone is not missed. Returns the cells' new versions.
    async fn amend(&self, tenant: &str, amendment: Amendment) -> Result<Vec<u64>, AppendError>;

    /// Changes a cell if it has the expected version. Returns the new version.
    async fn set_cell(&self, tenant: &str, change: CellChange) -> Result<u64, AppendError> {
        let cells = vec![change];
        let index = Vec::new();
        let versions = self.amend(tenant, Amendment { index, cells }).await?;
        let unsaid = || AppendError::Malformed("the cell's version was not said".to_owned());
        versions.first().copied().ok_or_else(unsaid)
    }

    /// Clears away what is left of cells whose time has passed, in all tenants, the oldest first, at most `limit`. Returns
    /// how many there were. Nobody can tell but by the room they took: they were absent before.
    async fn sweep(&self, limit: usize) -> Result<usize, Unavailable>;

    /// Makes a copy of everything, as it is at one moment after the call, in a new file, while others go on writing.
    ///
    /// A copy is the past: what it holds may have gone on in the original, and been done. So it is marked as a backup. It
    /// can be opened, read and appended to, but nobody takes a lease in it until it is adopted.
    ///
    /// # Errors
    ///
    /// [`BackupError`], if the copy could not be made. Under the name `to` there is a whole copy or none.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not stop the copying.
    async fn backup(&self, to: &Path) -> Result<(), BackupError>;

    /// When this copy was made, if it is a backup that nobody has adopted; `None` for every other store.
    async fn backup_made_at(&self) -> Result<Option<Timestamp>, Unavailable>;

    /// Makes a backup the store to go on with. Every lease ends and every epoch is raised far beyond what any driver of
    /// the past can name, so that none of them appends any more. A store that is no backup stays as it is.
    async fn adopt(&self) -> Result<(), Unavailable>;

    /// What part it has in a move, if it has one.
    async fn part(&self) -> Result<Option<Part>, Unavailable>;

    /// Gives it another part in a move, if it has the one that is expected. Returns whether it had.
    ///
    /// When it has a part, no write is under way any more and none is let in, by whatever process: appends, leases, cells
    /// and blobs are refused as unavailable, with the reason.
    async fn set_part(
        &self,
        expected: Option<&Part>,
        then: Option<&Part>,
    ) -> Result<bool, Unavailable>;

    /// How many threads there are, in all tenants.
    async fn count_threads(&self) -> Result<u64, Unavailable>;

    /// Threads of all tenants in the order of their keys, from the first one after `after` on, at most `limit`. A head that
    /// cannot be read is no reason not to see the others.
    async fn threads(
        &self,
        after: Option<&ThreadKey>,
        limit: usize,
    ) -> Result<Vec<(ThreadKey, Result<Head, Unavailable>)>, Unavailable>;

    /// The blobs of all tenants in the order of tenant and digest, from the first one after `after` on, at most `limit`.
    async fn blobs(
        &self,
        after: Option<&(Arc<str>, Digest)>,
        limit: usize,
    ) -> Result<Vec<(Arc<str>, Digest)>, Unavailable>;

    /// The cells of all tenants as they are kept, from the first one after `after` on, at most `limit`.
    async fn kept_cells(
        &self,
        after: Option<&KeptCell>,
        limit: usize,
    ) -> Result<KeptCells, Unavailable>;

    /// Takes what comes from another store, in one commit, if it is [`Part::Arriving`] by the same ticket. What is there
    /// already is not added again, so it may be given twice.
    async fn import(&self, import: Import) -> Result<(), Unavailable>;

    /// Counts commits made by *other* processes, as far as they were noticed: a hint to look again, never a promise.
    fn foreign_changes(&self) -> watch::Receiver<u64>;
}
