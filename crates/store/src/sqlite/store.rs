//! The store itself: it hands writes to the writer and queries to the readers.

use std::{path::Path, sync::Arc};

use async_trait::async_trait;
use holdpoint_core::{
    Digest, Index, IndexRow, OwnerId, Payload, Record, Span, ThreadId, Timestamp,
};
use tokio::sync::watch;

use super::{
    adopt::Adopt,
    append::PutBlob,
    cells::{self, Amend, Sweep},
    lease::{ChangeLease, LeaseMove},
    marks::{self, Mark},
    moving::{self, Bring, SetPart},
    opening,
    owners::Owners,
    query,
    reader::Readers,
    row::LAST_SEQ,
    scan,
    writer::{Write, Writer, stopped},
};
use crate::{
    Amendment, Append, AppendError, Appended, BackupError, Cell, Epoch, Head, Import, KeptCell,
    KeptCells, LeaseError, OpenError, Options, Part, Scan, Space, Store, ThreadKey, Unavailable,
    admission::{self, Census},
};

/// A store in one SQLite file.
///
/// # Durability
///
/// What it acknowledges survives a power failure, if the disk keeps what it says it has written.
///
/// # Sharing
///
/// Any number of processes of one machine may use one file. Each makes a file of its own in the folder `<DB>.owners`, by
/// whose lock the others see whether it is alive. Where that cannot be made, or the database may not be written, the store
/// opens all the same, to be read. (Where it may not be written at all, changes made by others are not noticed.)
///
/// # Backups
///
/// A backup is a file like any other, whole in itself. It is first written under another name beside its own; what a
/// process leaves there that was killed meanwhile (`.NAME.*.part`) can be removed. While a backup is made, the log of the
/// original grows with whatever is written, and is used again afterwards.
#[derive(Debug)]
pub struct SqliteStore {
    // Dropped in this order: the last connection to be closed, the writer's, tidies the database up; then we are gone.
    readers: Readers,
    /// Or why nothing can be written.
    writer: Result<Writer, String>,
    owners: Arc<Owners>,
    changes: watch::Sender<u64>,
}

impl SqliteStore {
    /// Opens a file, and makes it if there is none. Blocks while it does.
    ///
    /// # Errors
    ///
    /// [`OpenError`], if the file is not a store of ours, is one of a newer format, or cannot be read.
    pub fn open(path: &Path, options: &Options) -> Result<Self, OpenError> {
        // Kept here too, so that whoever waits for changes waits on, even where nobody looks for them.
        let changes = watch::Sender::new(0);
        let opened = opening::open(path, options, changes.clone())?;
        Ok(Self {
            readers: opened.readers,
            writer: opened.writer,
            owners: opened.owners,
            changes,
        })
    }

    async fn write<W: Write>(&self, write: W) -> Result<W::Done, W::Error> {
        match &self.writer {
            Ok(writer) => writer.write(write).await,
            Err(reason) => Err(Unavailable::new(reason).into()),
        }
    }

    async fn change_lease(&self, key: &ThreadKey, lease: LeaseMove) -> Result<Epoch, LeaseError> {
        let key = key.clone();
        match &self.writer {
            Ok(writer) => writer.write(ChangeLease { key, lease }).await,
            Err(reason) => Err(LeaseError::CannotDrive(reason.clone())),
        }
    }
}

#[async_trait]
impl Store for SqliteStore {
    fn now(&self) -> Timestamp {
        self.owners.now()
    }

    fn owner(&self) -> OwnerId {
        self.owners.us()
    }

    fn is_durable(&self) -> bool {
        true
    }

    async fn load(&self, key: &ThreadKey) -> Result<Option<Head>, Unavailable> {
        let (key, owners) = (key.clone(), Arc::clone(&self.owners));
        self.readers
            .point(move |conn| query::head(conn, &key, &owners))
            .await
    }

    async fn load_all(
        &self,
        tenant: &Arc<str>,
        threads: &[ThreadId],
    ) -> Result<Vec<Option<Head>>, Unavailable> {
        let (tenant, threads) = (Arc::clone(tenant), threads.to_vec());
        let owners = Arc::clone(&self.owners);
        self.readers
            .query(move |conn| query::heads(conn, &tenant, &threads, &owners))
            .await
    }

    async fn versions(&self, keys: &[ThreadKey]) -> Result<Vec<u64>, Unavailable> {
        let keys = keys.to_vec();
        self.readers
            .query(move |conn| query::versions(conn, &keys))
            .await
    }

    async fn read(
        &self,
        key: &ThreadKey,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Record>, Unavailable> {
        let key = key.clone();
        self.readers
            .query(move |conn| query::records(conn, &key, after, limit))
            .await
    }

    async fn append(&self, append: Append) -> Result<Appended, AppendError> {
        admission::well_formed(&append)?;
        if append
            .records
            .last()
            .is_some_and(|record| record.seq > LAST_SEQ)
        {
            let full = format!("a thread of this store holds at most {LAST_SEQ} records");
            return Err(AppendError::Malformed(full));
        }
        self.write(append).await
    }

    async fn take(&self, key: &ThreadKey, lasts: Span) -> Result<Epoch, LeaseError> {
        self.change_lease(key, LeaseMove::Take { lasts }).await
    }

    async fn renew(&self, key: &ThreadKey, epoch: Epoch, lasts: Span) -> Result<(), LeaseError> {
        self.change_lease(key, LeaseMove::Renew { epoch, lasts })
            .await
            .map(drop)
    }

    async fn release(&self, key: &ThreadKey, epoch: Epoch, version: u64) -> Result<(), LeaseError> {
        self.change_lease(key, LeaseMove::Release { epoch, version })
            .await
            .map(drop)
    }

    async fn scan(&self, tenant: &str, wanted: Scan) -> Result<Vec<IndexRow>, Unavailable> {
        let tenant = tenant.to_owned();
        self.readers
            .query(move |conn| scan::rows(conn, &tenant, &wanted))
            .await
    }

    async fn tenants(&self, index: Index) -> Result<Vec<Arc<str>>, Unavailable> {
        self.readers
            .query(move |conn| scan::tenants(conn, index))
            .await
    }

    async fn put_blob(
        &self,
        tenant: &str,
        payload: Payload,
        digest: Digest,
    ) -> Result<(), Unavailable> {
        let tenant = Arc::from(tenant);
        self.write(PutBlob {
            tenant,
            digest,
            payload,
        })
        .await
    }

    async fn blob(&self, tenant: &str, digest: Digest) -> Result<Option<Payload>, Unavailable> {
        let tenant = tenant.to_owned();
        self.readers
            .query(move |conn| query::blob(conn, &tenant, &digest))
            .await
    }

    async fn cell(
        &self,
        tenant: &str,
        space: Space,
        key: &str,
    ) -> Result<Option<Cell>, Unavailable> {
        let (tenant, key, now) = (tenant.to_owned(), key.to_owned(), self.now());
        self.readers
            .point(move |conn| cells::one(conn, &tenant, space, &key, now))
            .await
    }

    async fn cells(
        &self,
        tenant: &str,
        space: Space,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<(String, Cell)>, Unavailable> {
        let (tenant, after, now) = (tenant.to_owned(), after.map(str::to_owned), self.now());
        self.readers
            .query(move |conn| cells::some(conn, &tenant, space, after.as_deref(), limit, now))
            .await
    }

    async fn amend(&self, tenant: &str, amendment: Amendment) -> Result<Vec<u64>, AppendError> {
        admission::each_cell_once(&amendment.cells)?;
        let tenant = Arc::from(tenant);
        self.write(Amend { tenant, amendment }).await
    }

    async fn sweep(&self, limit: usize) -> Result<usize, Unavailable> {
        self.write(Sweep { limit }).await
    }

    async fn backup(&self, to: &Path) -> Result<(), BackupError> {
        let (source, to, now) = (self.readers.source().clone(), to.to_owned(), self.now());
        match tokio::task::spawn_blocking(move || source.copy(&to, now)).await {
            Ok(made) => made,
            Err(_) => Err(stopped().into()),
        }
    }

    async fn backup_made_at(&self) -> Result<Option<Timestamp>, Unavailable> {
        let made_at = self
            .readers
            .query(|conn| marks::read(conn, Mark::Backup))
            .await?;
        Ok(made_at.map(Timestamp::from_micros))
    }

    async fn adopt(&self) -> Result<(), Unavailable> {
        self.write(Adopt).await
    }

    async fn part(&self) -> Result<Option<Part>, Unavailable> {
        if cfg!(feature = "previous-format") {
            return Ok(None);
        }
        self.readers.query(moving::part).await
    }

    async fn set_part(
        &self,
        expected: Option<&Part>,
        then: Option<&Part>,
    ) -> Result<bool, Unavailable> {
        self.write(SetPart {
            expected: expected.cloned(),
            then: then.cloned(),
        })
        .await
    }

    async fn count_threads(&self) -> Result<u64, Unavailable> {
        self.readers.query(moving::count).await
    }

    async fn threads(
        &self,
        after: Option<&ThreadKey>,
        limit: usize,
    ) -> Result<Vec<(ThreadKey, Result<Head, Unavailable>)>, Unavailable> {
        let (after, owners) = (after.cloned(), Arc::clone(&self.owners));
        let threads = self
            .readers
            .query(move |conn| moving::threads(conn, after.as_ref(), limit, &owners))
            .await?;
        let unreadable = |error: rusqlite::Error| Unavailable::new(error.to_string());
        let listed = threads.into_iter();
        Ok(listed
            .map(|(key, head)| (key, head.map_err(unreadable)))
            .collect())
    }

    async fn blobs(
        &self,
        after: Option<&(Arc<str>, Digest)>,
        limit: usize,
    ) -> Result<Vec<(Arc<str>, Digest)>, Unavailable> {
        let after = after.cloned();
        self.readers
            .query(move |conn| moving::blobs(conn, after.as_ref(), limit))
            .await
    }

    async fn kept_cells(
        &self,
        after: Option<&KeptCell>,
        limit: usize,
    ) -> Result<KeptCells, Unavailable> {
        let after = after.cloned();
        self.readers
            .query(move |conn| moving::kept_cells(conn, after.as_ref(), limit))
            .await
    }

    async fn import(&self, import: Import) -> Result<(), Unavailable> {
        self.write(Bring(import)).await
    }

    fn foreign_changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}
