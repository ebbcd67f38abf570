//! The store itself.

use std::{path::Path, sync::Arc};

use async_trait::async_trait;
use holdpoint_core::{
    Digest, Index, IndexRow, OwnerId, Payload, Record, Span, ThreadId, Timestamp,
};
use tokio::{
    sync::{Notify, watch},
    task::AbortHandle,
    time::Instant,
};
use tokio_postgres::Row;

use super::{
    address::Address,
    cells::{self, CellKey},
    clock::{Reckoned, Time, middle},
    desk::Desk,
    home,
    leases::{self, LeaseMove},
    moving,
    notice::{self, Ear, Listening},
    pipe::Pipe,
    pool::{Connections, again, change, once},
    query,
    reader::Reader,
    row,
    schema::{self, FORMAT, Found},
    trouble::{Fate, Trouble},
    writer::{Scribe, Writer},
};
use crate::{
    Amendment, Append, AppendError, Appended, BackupError, Cell, CellChange, Epoch, Head, Holder,
    Import, KeptCell, KeptCells, Lease, LeaseError, OpenError, Options, Part, Scan, Space, Store,
    ThreadKey, Unavailable,
    admission::{self, Tenure},
    failpoint,
    moving::expect_arriving,
};

/// How far epochs are raised when a backup is adopted: more than a thread's lease is ever taken.
const STEP: i64 = 1_000_000;

/// A store in a PostgreSQL database.
///
/// # Durability
///
/// What it acknowledges was committed with the database's `synchronous_commit`, which must not be off.
///
/// # Sharing
///
/// Any number of processes on any machines may use one database. Leases go by its clock. A process that is gone is known by
/// nothing but the end of its leases.
///
/// # Outages
///
/// While the database is away, what is asked for is tried again for some seconds, and then is unavailable. An append whose
/// connection was lost while it was committed is looked for before it is tried again.
#[derive(Debug)]
pub struct PostgresStore {
    scribe: Scribe,
    writer: Writer,
    heads: Reader<ThreadKey>,
    cells: Reader<CellKey>,
    listening: AbortHandle,
    changes: watch::Sender<u64>,
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl PostgresStore {
    /// Opens a database, and lays it out if it is empty.
    ///
    /// # Errors
    ///
    /// [`OpenError`], if it cannot be reached, is not a store of ours, or is one of a newer format.
    pub async fn open(url: &str, options: &Options) -> Result<Self, OpenError> {
        let address = Address::parse(url)?;
        let connections = Connections::new(&address)?;
        let teller = &connections.teller;
        let prepared = once!(connections, |connection| async {
            let sent = Instant::now();
            let now = notice::time(connection.client()).await;
            let now = now.map_err(|error| teller.failed(&error))?;
            let clock = Reckoned::new(now, middle(sent));
            let found = schema::migrate(connection, options.must_exist).await;
            let found = found.map_err(|error| teller.failed(&error))?;
            let is_there = match found {
                Found::Empty => !options.must_exist,
                Found::Known(_) => true,
                Found::Newer(_) | Found::Altered(_) | Found::Foreign => false,
            };
            if is_there && FORMAT > 1 {
                let settled = home::settle(connection).await;
                settled.map_err(|error| teller.failed(&error))?;
            }
            Ok((clock, found))
        });
        let unusable = |reason: String| OpenError::Unusable { reason };
        let (clock, found) = prepared.map_err(|Trouble { fate, reason }| match fate {
            Fate::Again | Fate::Unknown => OpenError::Away {
                reason: reason.to_string(),
            },
            Fate::Never => unusable(reason.to_string()),
        })?;
        let shown = &address.shown;
        match found {
            Found::Empty if options.must_exist => {
                return Err(unusable(format!("{shown}: there is no store in it")));
            }
            Found::Empty | Found::Known(_) => {}
            Found::Newer(found) => {
                return Err(OpenError::Newer {
                    store: shown.to_string(),
                    found,
                    reads: FORMAT,
                });
            }
            Found::Altered(format) => {
                return Err(unusable(format!(
                    "{shown}: it says that it has format {format}, but is laid out in another way"
                )));
            }
            Found::Foreign => {
                return Err(unusable(format!(
                    "{shown}: it has tables of something else in it; give Holdpoint a database or a schema of its own"
                )));
            }
        }
        let ear = Ear::open(&address)
            .await
            .map_err(|error| unusable(connections.teller.failed(&error).reason.to_string()))?;
        let mut id = [0; 16];
        getrandom::fill(&mut id).map_err(|error| unusable(error.to_string()))?;
        let us = OwnerId::from_bytes(id);
        let (time, kept) = match &options.clock {
            Some(given) => (Time::Given(Arc::clone(given)), None),
            None => {
                let clock = Arc::new(clock);
                (Time::Database(Arc::clone(&clock)), Some(clock))
            }
        };
        let committed = Arc::new(Notify::new());
        let changes = watch::Sender::new(0);
        let listening = Listening {
            address,
            us,
            committed: Arc::clone(&committed),
            changes: changes.clone(),
            clock: kept,
        };
        let listening = tokio::spawn(listening.run(ear)).abort_handle();
        let scribe = Scribe {
            connections,
            pipe: Pipe::default(),
            us,
            time,
            committed,
        };
        Ok(Self {
            writer: Writer::start(scribe.clone()),
            heads: Reader::start(scribe.connections.clone()),
            cells: Reader::start(scribe.connections.clone()),
            scribe,
            listening,
            changes,
        })
    }

    fn unreadable(&self, what: String) -> Unavailable {
        self.scribe.connections.teller.unreadable(what).into()
    }

    /// Rows as what they stand for.
    fn all<T>(
        &self,
        rows: &[Row],
        read: impl Fn(&Row) -> Result<T, row::Unreadable>,
    ) -> Result<Vec<T>, Unavailable> {
        let read: Result<Vec<T>, _> = rows.iter().map(read).collect();
        read.map_err(|what| self.unreadable(what))
    }

    /// A head in the five columns from `column` on: version, epoch, owner, until, head.
    fn head(&self, row: &Row, column: usize) -> Result<Head, row::Unreadable> {
        let standing = row::standing(row, column)?;
        Ok(Head {
            version: standing.version,
            epoch: standing.epoch,
            lease: standing.lease.map(|tenure| self.lease(&tenure)),
            payload: row::head(row, column + 4)?,
        })
    }

    fn lease(&self, tenure: &Tenure) -> Lease {
        Lease {
            owner: tenure.owner,
            until: tenure.until,
            holder: if tenure.owner == self.scribe.us {
                Holder::Us
            } else {
                Holder::MaybeAlive
            },
        }
    }

    async fn move_lease(&self, key: &ThreadKey, lease: LeaseMove) -> Result<Epoch, LeaseError> {
        let Scribe {
            connections,
            us,
            time,
            ..
        } = &self.scribe;
        let teller = &connections.teller;
        failpoint::hit("store.side.before");
        let moved = change!(connections, |connection| async {
            let moved = leases::try_move(connection, key, lease, *us, time).await;
            match moved.map_err(|error| teller.failed(&error))? {
                Some(epoch) => Ok(Ok(epoch)),
                None => leases::move_at_desk(connection, teller, key, lease, *us, time).await,
            }
        });
        failpoint::hit("store.side.after");
        moved.map_err(Unavailable::from)?
    }
}

#[async_trait]
impl Store for PostgresStore {
    fn now(&self) -> Timestamp {
        self.scribe.time.now()
    }

    fn owner(&self) -> OwnerId {
        self.scribe.us
    }

    fn is_durable(&self) -> bool {
        true
    }

    async fn load(&self, key: &ThreadKey) -> Result<Option<Head>, Unavailable> {
        let row = self.heads.read(key.clone()).await?;
        let head = row.map(|row| self.head(&row, 1)).transpose();
        head.map_err(|what| self.unreadable(what))
    }

    async fn load_all(
        &self,
        tenant: &Arc<str>,
        threads: &[ThreadId],
    ) -> Result<Vec<Option<Head>>, Unavailable> {
        let key = |thread: &ThreadId| ThreadKey {
            tenant: Arc::clone(tenant),
            thread: *thread,
        };
        let keys: Vec<ThreadKey> = threads.iter().map(key).collect();
        let rows = again!(self.scribe.connections, |connection| query::heads(
            connection, &keys
        ))?;
        let mut heads = vec![None; keys.len()];
        for row in &rows {
            if let Some(slot) = query::place(row).and_then(|place| heads.get_mut(place)) {
                let head = self.head(row, 1);
                *slot = Some(head.map_err(|what| self.unreadable(what))?);
            }
        }
        Ok(heads)
    }

    async fn versions(&self, keys: &[ThreadKey]) -> Result<Vec<u64>, Unavailable> {
        let rows = again!(self.scribe.connections, |connection| query::versions(
            connection, keys
        ))?;
        let mut versions = vec![0; keys.len()];
        for row in &rows {
            if let Some(slot) = query::place(row).and_then(|place| versions.get_mut(place)) {
                *slot = row::count(row, 1).map_err(|what| self.unreadable(what))?;
            }
        }
        Ok(versions)
    }

    async fn read(
        &self,
        key: &ThreadKey,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Record>, Unavailable> {
        let rows = again!(self.scribe.connections, |connection| query::records(
            connection, key, after, limit
        ))?;
        let mut records = Vec::new();
        for row in &rows {
            let found = row::records(row).map_err(|what| self.unreadable(what))?;
            records.extend(found.into_iter().filter(|record| record.seq > after));
            if records.len() >= limit {
                break;
            }
        }
        records.truncate(limit);
        Ok(records)
    }

    async fn append(&self, append: Append) -> Result<Appended, AppendError> {
        admission::well_formed(&append)?;
        self.writer.append(append).await
    }

    async fn take(&self, key: &ThreadKey, lasts: Span) -> Result<Epoch, LeaseError> {
        self.move_lease(key, LeaseMove::Take { lasts }).await
    }

    async fn renew(&self, key: &ThreadKey, epoch: Epoch, lasts: Span) -> Result<(), LeaseError> {
        self.move_lease(key, LeaseMove::Renew { epoch, lasts })
            .await?;
        Ok(())
    }

    async fn release(&self, key: &ThreadKey, epoch: Epoch, version: u64) -> Result<(), LeaseError> {
        self.move_lease(key, LeaseMove::Release { epoch, version })
            .await?;
        Ok(())
    }

    async fn scan(&self, tenant: &str, scan: Scan) -> Result<Vec<IndexRow>, Unavailable> {
        let rows = again!(self.scribe.connections, |connection| query::scan(
            connection, tenant, &scan
        ))?;
        self.all(&rows, |row| row::entry(scan.index, row))
    }

    async fn tenants(&self, index: Index) -> Result<Vec<Arc<str>>, Unavailable> {
        let rows = again!(self.scribe.connections, |connection| query::tenants(
            connection, index
        ))?;
        self.all(&rows, |row| Ok(row::text(row, 0)?.into()))
    }

    async fn put_blob(
        &self,
        tenant: &str,
        payload: Payload,
        digest: Digest,
    ) -> Result<(), Unavailable> {
        let put = "INSERT INTO blobs (tenant, digest, codec, key_id, bytes) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING";
        // Putting it twice is putting it once.
        again!(self.scribe.connections, |connection| async {
            let codec = i16::from(payload.codec.number());
            let (tenant, digest) = (tenant.as_bytes(), digest.as_bytes().as_slice());
            connection
                .execute(
                    put,
                    &[&tenant, &digest, &codec, &payload.key_id, &payload.bytes],
                )
                .await
        })?;
        Ok(())
    }

    async fn blob(&self, tenant: &str, digest: Digest) -> Result<Option<Payload>, Unavailable> {
        let row = again!(self.scribe.connections, |connection| query::blob(
            connection, tenant, digest
        ))?;
        let payload = row.map(|row| row::payload(&row, 0)).transpose();
        payload.map_err(|what| self.unreadable(what))
    }

    async fn cell(
        &self,
        tenant: &str,
        space: Space,
        key: &str,
    ) -> Result<Option<Cell>, Unavailable> {
        let key = CellKey {
            tenant: tenant.to_owned(),
            space,
            key: key.to_owned(),
        };
        let row = self.cells.read(key).await?;
        let cell = row.map(|row| row::cell(&row, 1)).transpose();
        let cell = cell.map_err(|what| self.unreadable(what))?;
        Ok(cell.filter(|cell| admission::lasts(cell.until, self.now())))
    }

    async fn cells(
        &self,
        tenant: &str,
        space: Space,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<(String, Cell)>, Unavailable> {
        let now = self.now();
        let rows = again!(self.scribe.connections, |connection| async {
            cells::some(connection, tenant, space, after, limit, now).await
        })?;
        self.all(&rows, |row| Ok((row::text(row, 0)?, row::cell(row, 1)?)))
    }

    async fn amend(&self, tenant: &str, amendment: Amendment) -> Result<Vec<u64>, AppendError> {
        admission::each_cell_once(&amendment.cells)?;
        let Scribe {
            connections,
            us,
            time,
            committed,
            ..
        } = &self.scribe;
        let teller = &connections.teller;
        let cells: Vec<(&str, &CellChange)> =
            amendment.cells.iter().map(|it| (tenant, it)).collect();
        let amended = change!(connections, |connection| async {
            let desk = Desk::open(connection, teller, *us, time, &cells).await?;
            let versions = desk.amend(tenant, &amendment).await?;
            if versions.is_ok() {
                failpoint::hit("store.side.before");
                desk.commit().await?;
                failpoint::hit("store.side.after");
                committed.notify_one();
            }
            Ok(versions)
        });
        amended.map_err(Unavailable::from)?
    }

    async fn sweep(&self, limit: usize) -> Result<usize, Unavailable> {
        let Scribe {
            connections, time, ..
        } = &self.scribe;
        // What was swept away is not swept again.
        again!(connections, |connection| cells::sweep(
            connection, time, limit
        ))
    }

    async fn backup(&self, _: &Path) -> Result<(), BackupError> {
        Err(BackupError::Unsupported(
            "PostgreSQL has backups of its own; `pg_dump` makes one".to_owned(),
        ))
    }

    async fn backup_made_at(&self) -> Result<Option<Timestamp>, Unavailable> {
        let row = again!(self.scribe.connections, |connection| async {
            let mark = "SELECT value FROM marks WHERE name = 'backup'";
            connection.query_opt(mark, &[]).await
        })?;
        let made_at = row.map(|row| row::count(&row, 0)).transpose();
        let made_at = made_at.map_err(|what| self.unreadable(what))?;
        Ok(made_at.map(|it| Timestamp::from_micros(row::int(it))))
    }

    async fn adopt(&self) -> Result<(), Unavailable> {
        let connections = &self.scribe.connections;
        let teller = &connections.teller;
        let adopted = change!(connections, |connection| async {
            let work = async {
                let tx = connection.transaction().await?;
                let removed = tx
                    .execute("DELETE FROM marks WHERE name = 'backup'", &[])
                    .await?;
                if removed > 0 {
                    let raise = "UPDATE threads SET epoch = epoch + $1, owner = NULL, until = NULL";
                    tx.execute(raise, &[&STEP]).await?;
                }
                tx.commit().await
            };
            work.await.map_err(|error| teller.failed(&error))
        });
        Ok(adopted?)
    }

    async fn part(&self) -> Result<Option<Part>, Unavailable> {
        if cfg!(feature = "previous-format") {
            return Ok(None);
        }
        let row = again!(self.scribe.connections, |connection| moving::part(
            connection
        ))?;
        let part = row.map(|row| moving::read_part(&row)).transpose();
        Ok(part.map_err(|what| self.unreadable(what))?.flatten())
    }

    async fn set_part(
        &self,
        expected: Option<&Part>,
        then: Option<&Part>,
    ) -> Result<bool, Unavailable> {
        let connections = &self.scribe.connections;
        let teller = &connections.teller;
        let set = change!(connections, |connection| async {
            let set = moving::set_part(connection, expected, then).await;
            set.map_err(|error| teller.failed(&error))
        });
        Ok(set?)
    }

    async fn count_threads(&self) -> Result<u64, Unavailable> {
        let row = again!(self.scribe.connections, |connection| connection
            .query_one("SELECT count(*) FROM threads", &[]))?;
        row::count(&row, 0).map_err(|what| self.unreadable(what))
    }

    async fn threads(
        &self,
        after: Option<&ThreadKey>,
        limit: usize,
    ) -> Result<Vec<(ThreadKey, Result<Head, Unavailable>)>, Unavailable> {
        let rows = again!(self.scribe.connections, |connection| moving::threads(
            connection, after, limit
        ))?;
        self.all(&rows, |row| {
            let key = ThreadKey {
                tenant: row::text(row, 0)?.into(),
                thread: row::thread(row, 1)?,
            };
            let head = self.head(row, 2).map_err(|what| self.unreadable(what));
            Ok((key, head))
        })
    }

    async fn blobs(
        &self,
        after: Option<&(Arc<str>, Digest)>,
        limit: usize,
    ) -> Result<Vec<(Arc<str>, Digest)>, Unavailable> {
        let rows = again!(self.scribe.connections, |connection| moving::blobs(
            connection, after, limit
        ))?;
        self.all(&rows, |row| {
            Ok((row::text(row, 0)?.into(), row::digest(row, 1)?))
        })
    }

    async fn kept_cells(
        &self,
        after: Option<&KeptCell>,
        limit: usize,
    ) -> Result<KeptCells, Unavailable> {
        let (rows, swept) = again!(self.scribe.connections, |connection| moving::cells(
            connection, after, limit
        ))?;
        let cells = self.all(&rows, row::kept_cell)?;
        Ok(KeptCells { cells, swept })
    }

    async fn import(&self, import: Import) -> Result<(), Unavailable> {
        let columns = moving::Columns::of(&import);
        // What is there already is not added again.
        let belongs = again!(self.scribe.connections, |connection| columns
            .bring(connection))?;
        if belongs {
            return Ok(());
        }
        expect_arriving(self.part().await?.as_ref(), import.ticket)
    }

    fn foreign_changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}
