//! The desk: one transaction that locks what it looks at, has it decided as in every backend, and writes it.
//!
//! Here is done what cannot share a statement, and what a statement did not admit: so it is here that an append learns why
//! it was refused. And here an append comes whose fate is not known, because the connection went away while it was
//! committed: it is looked for before anything is done again.

use holdpoint_core::{Digest, IndexChange, OwnerId, Timestamp};
use tokio_postgres::Error;

use super::{
    cells,
    clock::Time,
    line::{Deal, Line},
    pack,
    row::{self, int},
    trouble::{Teller, Trouble},
};
use crate::{
    Amendment, Append, AppendError, Appended, CellChange, Fence, Holder, ThreadKey,
    admission::{self, Census, Standing, Tenure},
    backup::NOT_ADOPTED,
};

/// What is known about an append that comes to the desk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Before {
    /// It was not committed.
    Nothing,
    /// It may have been.
    Unknown,
}

/// A transaction, and what its decisions depend on.
pub(super) struct Desk<'a> {
    pub(super) tx: Deal<'a>,
    pub(super) teller: &'a Teller,
    us: OwnerId,
    now: Timestamp,
    is_backup: bool,
}

impl Census for Desk<'_> {
    fn now(&self) -> Timestamp {
        self.now
    }

    fn us(&self) -> OwnerId {
        self.us
    }

    fn may_drive(&self) -> Result<(), String> {
        if self.is_backup {
            return Err(NOT_ADOPTED.to_owned());
        }
        Ok(())
    }

    fn tenure(&self, until: Timestamp) -> Result<Tenure, String> {
        Ok(Tenure {
            owner: self.us,
            boot: None,
            until,
        })
    }

    fn other(&self, _: &Tenure) -> Holder {
        // Somewhere else, whatever happened to it. Its lease ends soon.
        Holder::MaybeAlive
    }
}

impl<'a> Desk<'a> {
    /// Begins a transaction. Cells that will be looked at are named now, so that everybody locks them in one order.
    pub(super) async fn open(
        connection: &'a mut Line,
        teller: &'a Teller,
        us: OwnerId,
        time: &Time,
        cells: &[(&str, &CellChange)],
    ) -> Result<Self, Trouble> {
        let failed = |error: Error| teller.failed(&error);
        let tx = connection.transaction().await.map_err(failed)?;
        let mut locks: Vec<i64> = cells
            .iter()
            .map(|(tenant, change)| lock_of(tenant, change))
            .collect();
        locks.sort_unstable();
        for lock in locks {
            // Not the row: a cell that is not there has none.
            let wait = "SELECT pg_advisory_xact_lock($1)";
            tx.execute(wait, &[&lock]).await.map_err(failed)?;
        }
        let look = "SELECT coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint),
                        EXISTS (SELECT FROM marks WHERE name = 'backup')";
        let found = tx.query_one(look, &[&time.given()]).await.map_err(failed)?;
        let (now, is_backup) = (found.try_get(0), found.try_get(1));
        Ok(Self {
            now: Timestamp::from_micros(now.map_err(failed)?),
            is_backup: is_backup.map_err(failed)?,
            tx,
            teller,
            us,
        })
    }

    pub(super) fn failed(&self, error: &Error) -> Trouble {
        self.teller.failed(error)
    }

    /// How a thread stands; nobody else changes that while this transaction lasts.
    pub(super) async fn standing(&self, key: &ThreadKey) -> Result<Option<Standing>, Trouble> {
        let find = "SELECT version, epoch, owner, until FROM threads WHERE tenant = $1 AND thread = $2 FOR UPDATE";
        let row = self
            .tx
            .query_opt(
                find,
                &[&key.tenant.as_bytes(), &key.thread.as_bytes().as_slice()],
            )
            .await
            .map_err(|error| self.failed(&error))?;
        row.map(|row| row::standing(&row, 0))
            .transpose()
            .map_err(|what| self.teller.unreadable(what))
    }

    pub(super) async fn commit(self) -> Result<(), Trouble> {
        let Self { tx, teller, .. } = self;
        tx.commit().await.map_err(|error| teller.failed(&error))
    }

    /// Does an append, or says why it is refused. Nothing of it counts before the transaction is committed.
    pub(super) async fn append(
        &self,
        append: &Append,
        before: Before,
    ) -> Result<Result<Appended, AppendError>, Trouble> {
        let found = self.standing(&append.key).await?;
        let absent = Standing::default();
        let standing = found.as_ref().unwrap_or(&absent);
        if before == Before::Unknown && self.is_there(append).await? {
            return Ok(Ok(Appended {
                version: append.expect + append.records.len() as u64,
                epoch: match append.fence {
                    Fence::Open => standing.epoch,
                    Fence::Driver(epoch) => epoch,
                    Fence::Take { after, .. } => after + 1,
                },
            }));
        }
        let after = match admission::admit(append, standing, self) {
            Ok(after) => after,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let tenant = &*append.key.tenant;
        let versions = match cells::admit_all(self, tenant, &append.cells).await? {
            Ok(versions) => versions,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let written = async {
            if !self.write_head(append, found.is_some(), &after).await? {
                return Ok(false);
            }
            self.write_records(append, standing.version).await?;
            self.write_index(tenant, &append.index).await?;
            cells::write_all(&self.tx, tenant, &append.cells, &versions).await?;
            Ok(true)
        };
        let written: Result<bool, Error> = written.await;
        if !written.map_err(|error| self.failed(&error))? {
            // Somebody made the thread since it was looked for; what they made is not known here.
            return Err(self.teller.moved());
        }
        Ok(Ok(Appended {
            version: after.version,
            epoch: after.epoch,
        }))
    }

    /// Does an amendment, or says why it is refused. Nothing of it counts before the transaction is committed.
    pub(super) async fn amend(
        &self,
        tenant: &str,
        amendment: &Amendment,
    ) -> Result<Result<Vec<u64>, AppendError>, Trouble> {
        let Amendment { index, cells } = amendment;
        let versions = match cells::admit_all(self, tenant, cells).await? {
            Ok(versions) => versions,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let written = async {
            self.write_index(tenant, index).await?;
            cells::write_all(&self.tx, tenant, cells, &versions).await
        };
        written.await.map_err(|error| self.failed(&error))?;
        Ok(Ok(versions))
    }

    /// Whether the journal has the very records of this append.
    async fn is_there(&self, append: &Append) -> Result<bool, Trouble> {
        let Some(last) = append.records.last() else {
            return Ok(false);
        };
        let find = "SELECT seq, records FROM events WHERE tenant = $1 AND thread = $2 AND seq = $3";
        let key = &append.key;
        let found = self
            .tx
            .query_opt(
                find,
                &[
                    &key.tenant.as_bytes(),
                    &key.thread.as_bytes().as_slice(),
                    &int(last.seq),
                ],
            )
            .await
            .map_err(|error| self.failed(&error))?;
        let Some(row) = found else { return Ok(false) };
        let found = row::records(&row).map_err(|what| self.teller.unreadable(what))?;
        // The hash covers a random salt, so nobody else's record has it.
        Ok(found.last().is_some_and(|found| found.hash == last.hash))
    }

    /// Returns whether it was written: a thread that is to be made may be there by now.
    async fn write_head(
        &self,
        append: &Append,
        is_there: bool,
        after: &Standing,
    ) -> Result<bool, Error> {
        let owner = after.lease.as_ref().map(|lease| lease.owner);
        let owner = owner.as_ref().map(|owner| owner.as_bytes().as_slice());
        let until = after.lease.as_ref().map(|lease| lease.until.as_micros());
        let head = pack::payload(&append.head);
        let sql = if is_there {
            "UPDATE threads SET version = $3, epoch = $4, owner = $5, until = $6, head = $7 WHERE tenant = $1 AND thread = $2"
        } else {
            "INSERT INTO threads (tenant, thread, version, epoch, owner, until, head) VALUES ($1, $2, $3, $4, $5, $6, $7)
             ON CONFLICT DO NOTHING"
        };
        let written = self
            .tx
            .execute(
                sql,
                &[
                    &append.key.tenant.as_bytes(),
                    &append.key.thread.as_bytes().as_slice(),
                    &int(after.version),
                    &int(after.epoch),
                    &owner,
                    &until,
                    &head,
                ],
            )
            .await?;
        Ok(written == 1)
    }

    async fn write_records(&self, append: &Append, version: u64) -> Result<(), Error> {
        let last = version + append.records.len() as u64;
        let insert = "INSERT INTO events (tenant, thread, seq, records) VALUES ($1, $2, $3, $4)";
        let key = &append.key;
        self.tx
            .execute(
                insert,
                &[
                    &key.tenant.as_bytes(),
                    &key.thread.as_bytes().as_slice(),
                    &int(last),
                    &pack::records(&append.records),
                ],
            )
            .await?;
        Ok(())
    }

    async fn write_index(&self, tenant: &str, changes: &[IndexChange]) -> Result<(), Error> {
        for change in changes {
            let (sql, row) = match change {
                IndexChange::Put(row) => (
                    "INSERT INTO entries (tenant, idx, key, sort, thread) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING",
                    row,
                ),
                IndexChange::Remove(row) => (
                    "DELETE FROM entries WHERE tenant = $1 AND idx = $2 AND key = $3 AND sort = $4 AND thread = $5",
                    row,
                ),
            };

            self.tx
                .execute(
                    sql,
                    &[
                        &tenant.as_bytes(),
                        &i16::from(row.index.number()),
                        &row.key.as_bytes(),
                        &row.sort,
                        &row.thread.as_bytes().as_slice(),
                    ],
                )
                .await?;
        }
        Ok(())
    }
}

/// The lock of a cell. Two cells may share one, and then wait for each other.
fn lock_of(tenant: &str, change: &CellChange) -> i64 {
    let name = format!("{tenant}\0{}\0{}", change.space.number(), change.key);
    let digest = Digest::of(name.as_bytes());
    let mut first = [0; 8];
    first.copy_from_slice(&digest.as_bytes()[..8]);
    i64::from_be_bytes(first)
}
