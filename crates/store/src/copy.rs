//! Moving everything from one store to another.
//!
//! The old store is sealed, all of it is copied in pieces, what arrived is checked against it by the hash chains, and then
//! the new one goes on. It can be cut off at any point and begun again: what has arrived is not copied twice, and at no
//! point can both stores be driven.

use std::{sync::Arc, time::Duration};

use holdpoint_core::{Damaged, Digest, Index, IndexRow, Timestamp, decode_records};

use crate::{
    Direction, Head, Holder, Import, ImportedThread, Move, Part, SYSTEM_TENANT, Scan, Space, Store,
    ThreadKey, Unavailable, failpoint, moving::expect_arriving,
};

/// How many threads, rows, cells or blobs are read at once.
const PAGE: usize = 500;
/// How many records of a thread are read at once.
const RECORDS: usize = 500;
/// How many bytes are handed over in one commit, about.
const WEIGHT: usize = 4 << 20;

/// A store that has a part in a move, and the name it is shown by.
#[derive(Debug, Clone, Copy)]
pub struct End<'a> {
    /// The store.
    pub store: &'a dyn Store,
    /// Its name, without a password.
    pub name: &'a str,
}

/// What is being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Waiting until the lease of a process that may still be at work has ended.
    Waiting {
        /// When that is.
        until: Timestamp,
    },
    /// Copying.
    Copying,
    /// Checking what has arrived.
    Checking,
}

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// What is being done.
    pub stage: Stage,
    /// How many threads are done with.
    pub threads: u64,
    /// How many there are.
    pub of: u64,
}

/// What was moved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Copied {
    /// How many threads.
    pub threads: u64,
    /// How many records, as they were checked.
    pub records: u64,
}

/// Why a store was not moved. The old one is not driven unless it says otherwise, and neither is the new one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// Both are the same store.
    #[error("{0} cannot be copied to itself")]
    Same(String),
    /// A server lives on the old store. Nothing was changed.
    #[error(
        "a server lives on {0}: stop it first (one that was killed counts as gone after ten seconds)"
    )]
    Served(String),
    /// A process drives a thread of the old store. Nothing was changed.
    #[error(
        "a process drives {} in {from}: wait for it, or stop it first", .thread.thread
    )]
    Driven {
        /// The old store.
        from: String,
        /// The thread.
        thread: ThreadKey,
    },
    /// The old store is a backup that nobody has adopted. Nothing was changed.
    #[error("{0} is a backup that nobody has adopted, and is copied only once it is")]
    Backup(String),
    /// The old store has a part in another move. Nothing was changed.
    #[error("{name}: {refusal}")]
    Elsewhere {
        /// The store.
        name: String,
        /// What it says.
        refusal: String,
    },
    /// There is something in the new store that does not belong to this move. Nothing was changed.
    #[error("{0} is not empty: a store is copied to a new one")]
    NotEmpty(String),
    /// A journal of the old store was changed after it was written, or cannot be read.
    #[error("{} of {from}: {reason}", .thread.thread)]
    Damaged {
        /// The old store.
        from: String,
        /// The thread.
        thread: ThreadKey,
        /// What is wrong with it.
        reason: Damaged,
    },
    /// What arrived is not what was sent.
    #[error(
        "{to} is not what {from} is: {what}. Somebody else wrote in it: empty it, and copy again"
    )]
    Differs {
        /// The old store.
        from: String,
        /// The new store.
        to: String,
        /// In what.
        what: String,
    },
    /// The move was given up by somebody else.
    #[error("the move of {0} was given up meanwhile")]
    GivenUp(String),
    /// A store could not be reached. What was copied is there, and the copy can be gone on with.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// Moves everything from one store to another, or goes on with that. When it returns, the new store can be driven, and the
/// old one only be read.
///
/// # Errors
///
/// [`CopyError`]; nothing is lost, and both stores together are never driven.
pub async fn copy(
    from: End<'_>,
    to: End<'_>,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<Copied, CopyError> {
    let mut moving = Moving {
        from,
        to,
        ticket: 0,
    };
    moving.ticket = moving.begin().await?;
    let of = from.store.count_threads().await?;
    let mut tell = |stage, threads| progress(Progress { stage, threads, of });
    failpoint::hit("copy.sealed");
    moving.copy_blobs().await?;
    moving.copy_cells().await?;
    moving.copy_threads(&mut tell).await?;
    moving.copy_rows().await?;
    failpoint::hit("copy.copied");
    moving.check_blobs().await?;
    moving.check_cells().await?;
    let copied = moving.check_threads(&mut tell).await?;
    moving.check_rows().await?;
    failpoint::hit("copy.checked");
    moving.hand_over().await?;
    Ok(copied)
}

/// Whether a store may leave, seen before the store it leaves for is opened, and so perhaps made.
///
/// # Errors
///
/// [`CopyError`], as [`copy`] has it. Nothing was changed.
pub async fn may_leave(from: End<'_>) -> Result<(), CopyError> {
    // A backup of a store that was moving is a backup all the same.
    if from.store.backup_made_at().await?.is_some() {
        return Err(CopyError::Backup(from.name.to_owned()));
    }
    match from.store.part().await? {
        None => expect_still(from).await,
        Some(Part::Leaving(_) | Part::Left(_)) => Ok(()),
        Some(part @ Part::Arriving(_)) => Err(elsewhere(from, &part)),
    }
}

/// Gives up a move that did not come to its end: the old store goes on as if nothing had been. What arrived in the new one
/// is of no use any more. Returns whether there was a move to give up.
///
/// # Errors
///
/// [`CopyError`], if the old store has left for good, is a backup, or cannot be reached.
pub async fn abandon(from: End<'_>) -> Result<bool, CopyError> {
    if from.store.backup_made_at().await?.is_some() {
        return Err(CopyError::Backup(from.name.to_owned()));
    }
    match from.store.part().await? {
        None => Ok(false),
        Some(part @ Part::Leaving(_)) => Ok(from.store.set_part(Some(&part), None).await?),
        Some(part) => Err(elsewhere(from, &part)),
    }
}

fn elsewhere(end: End<'_>, part: &Part) -> CopyError {
    CopyError::Elsewhere {
        name: end.name.to_owned(),
        refusal: part.refusal(),
    }
}

/// Nobody is at work in the old store. Whoever begins to be right now is shut out by the seal.
async fn expect_still(from: End<'_>) -> Result<(), CopyError> {
    let End { store, name } = from;
    let servers = store.cells(SYSTEM_TENANT, Space::Server, None, 1).await?;
    if !servers.is_empty() {
        return Err(CopyError::Served(name.to_owned()));
    }
    for tenant in store.tenants(Index::Runnable).await? {
        let mut after = None;
        loop {
            let rows = page(store, &tenant, Index::Runnable, after).await?;
            let threads: Vec<_> = rows.iter().map(|row| row.thread).collect();
            let heads = store.load_all(&tenant, &threads).await?;
            for (thread, head) in threads.into_iter().zip(heads) {
                let driven = head.and_then(|head| in_force(&head, store.now()));
                if driven.is_some() {
                    let tenant = Arc::clone(&tenant);
                    return Err(CopyError::Driven {
                        from: name.to_owned(),
                        thread: ThreadKey { tenant, thread },
                    });
                }
            }
            if rows.len() < PAGE {
                break;
            }
            after = rows.last().cloned();
        }
    }
    Ok(())
}

struct Moving<'a> {
    from: End<'a>,
    to: End<'a>,
    ticket: u32,
}

impl Moving<'_> {
    /// Sees what both stores are, and seals the old one. Returns the ticket of the move.
    async fn begin(&self) -> Result<u32, CopyError> {
        let (from, to) = (self.from, self.to);
        if from.name == to.name {
            return Err(CopyError::Same(from.name.to_owned()));
        }
        // A backup of a store that was moving is a backup all the same.
        if from.store.backup_made_at().await?.is_some() {
            return Err(CopyError::Backup(from.name.to_owned()));
        }
        let parts = (from.store.part().await?, to.store.part().await?);
        let ticket = match &parts {
            (None, None) => {
                self.expect_vacant().await?;
                expect_still(from).await?;
                new_ticket()?
            }
            // The last time, it was cut off between the two, or given up. Whatever was meant to come there by the ticket it
            // has does so no more.
            (None, Some(Part::Arriving(_))) => {
                self.expect_vacant().await?;
                expect_still(from).await?;
                new_ticket()?
            }
            // Only the two that know each other by a ticket go on: a store never leaves for two.
            (Some(Part::Leaving(here) | Part::Left(here)), Some(Part::Arriving(there)))
                if here.ticket == there.ticket =>
            {
                return Ok(here.ticket);
            }
            (Some(part), _) => return Err(elsewhere(from, part)),
            (None, Some(part)) => return Err(elsewhere(to, part)),
        };
        let (leaving, arriving) = self.both(ticket);
        // The new store first: if it is not to be had, nothing happened to the old one.
        let before = parts.1.as_ref();
        if !to.store.set_part(before, Some(&arriving)).await? {
            return Err(CopyError::NotEmpty(to.name.to_owned()));
        }
        if from.store.set_part(None, Some(&leaving)).await? {
            return Ok(ticket);
        }
        let found = from.store.part().await?;
        to.store.set_part(Some(&arriving), None).await?;
        Err(match found {
            Some(part) if part == arriving => CopyError::Same(from.name.to_owned()),
            Some(part) => elsewhere(from, &part),
            None => CopyError::GivenUp(from.name.to_owned()),
        })
    }

    fn both(&self, ticket: u32) -> (Part, Part) {
        let other = |end: End<'_>| Move {
            ticket,
            other: end.name.to_owned(),
        };
        (
            Part::Leaving(other(self.to)),
            Part::Arriving(other(self.from)),
        )
    }

    /// Nothing, on its way.
    fn import(&self) -> Import {
        Import {
            ticket: self.ticket,
            ..Import::default()
        }
    }

    /// There is nothing in the new store.
    async fn expect_vacant(&self) -> Result<(), CopyError> {
        let store = self.to.store;
        let is_vacant = store.threads(None, 1).await?.is_empty()
            && store.blobs(None, 1).await?.is_empty()
            && store.kept_cells(None, 1).await?.cells.is_empty()
            && store.backup_made_at().await?.is_none();
        if is_vacant {
            return Ok(());
        }
        Err(CopyError::NotEmpty(self.to.name.to_owned()))
    }

    async fn copy_blobs(&self) -> Result<(), CopyError> {
        let (from, to) = (self.from.store, self.to.store);
        let mut after = None;
        loop {
            let keys = from.blobs(after.as_ref(), PAGE).await?;
            for (tenant, digest) in &keys {
                if to.blob(tenant, *digest).await?.is_none()
                    && let Some(payload) = from.blob(tenant, *digest).await?
                {
                    let blobs = vec![(Arc::clone(tenant), *digest, payload)];
                    to.import(Import {
                        blobs,
                        ..self.import()
                    })
                    .await?;
                }
            }
            if keys.len() < PAGE {
                return Ok(());
            }
            after = keys.last().cloned();
        }
    }

    async fn copy_cells(&self) -> Result<(), CopyError> {
        let (from, to) = (self.from.store, self.to.store);
        let mut after = None;
        loop {
            let cells = from.kept_cells(after.as_ref(), PAGE).await?;
            after = cells.cells.last().cloned();
            let is_last = cells.cells.len() < PAGE;
            to.import(Import {
                cells,
                ..self.import()
            })
            .await?;
            if is_last {
                return Ok(());
            }
        }
    }

    async fn copy_threads(
        &self,
        tell: &mut (dyn FnMut(Stage, u64) + Send),
    ) -> Result<(), CopyError> {
        let (from, to) = (self.from.store, self.to.store);
        let mut after = None;
        let mut done = 0;
        loop {
            let threads = from.threads(after.as_ref(), PAGE).await?;
            let keys: Vec<_> = threads.iter().map(|(key, _)| key.clone()).collect();
            let arrived = to.versions(&keys).await?;
            let mut load = Load::default();
            for ((key, head), arrived) in threads.into_iter().zip(arrived) {
                let head = head?;
                // Its holder cannot renew it, but may be in the middle of what it does; so nobody follows it before the end.
                while let Some(until) = in_force(&head, from.now()) {
                    tell(Stage::Waiting { until }, done);
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                self.copy_thread(&key, &head, arrived, &mut load).await?;
                done += 1;
                if load.weight > WEIGHT {
                    to.import(load.take(self.import())).await?;
                    tell(Stage::Copying, done);
                    failpoint::hit("copy.piece");
                }
            }
            to.import(load.take(self.import())).await?;
            tell(Stage::Copying, done);
            failpoint::hit("copy.piece");
            if keys.len() < PAGE {
                return Ok(());
            }
            after = keys.last().cloned();
        }
    }

    /// Takes what has not arrived of a thread into the load; what has no room in it goes before.
    async fn copy_thread(
        &self,
        key: &ThreadKey,
        head: &Head,
        mut arrived: u64,
        load: &mut Load,
    ) -> Result<(), CopyError> {
        while arrived < head.version {
            let records = self.from.store.read(key, arrived, RECORDS).await?;
            let Some(last) = records.last() else {
                return Err(self.damaged(
                    key,
                    Damaged::Incomplete {
                        version: head.version,
                    },
                ));
            };
            arrived = last.seq;
            load.add(ImportedThread {
                key: key.clone(),
                epoch: head.epoch,
                head: head.payload.clone(),
                records,
            });
            // A load has a thread no more than once.
            if arrived < head.version {
                self.to.store.import(load.take(self.import())).await?;
                failpoint::hit("copy.piece");
            }
        }
        Ok(())
    }

    async fn copy_rows(&self) -> Result<(), CopyError> {
        let (from, to) = (self.from.store, self.to.store);
        for index in Index::ALL {
            for tenant in from.tenants(index).await? {
                // They arrive in order, so what comes after the last one is missing.
                let mut after = last(to, &tenant, index).await?;
                loop {
                    let rows = page(from, &tenant, index, after).await?;
                    let is_last = rows.len() < PAGE;
                    after = rows.last().cloned();
                    let rows = rows.into_iter().map(|row| (Arc::clone(&tenant), row));
                    to.import(Import {
                        rows: rows.collect(),
                        ..self.import()
                    })
                    .await?;
                    if is_last {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    async fn check_blobs(&self) -> Result<(), CopyError> {
        let mut after = None;
        loop {
            let sent = self.from.store.blobs(after.as_ref(), PAGE).await?;
            let arrived = self.to.store.blobs(after.as_ref(), PAGE).await?;
            self.expect(sent == arrived, || "a definition".to_owned())?;
            for (tenant, digest) in &sent {
                let sent = self.from.store.blob(tenant, *digest).await?;
                let arrived = self.to.store.blob(tenant, *digest).await?;
                self.expect(sent == arrived, || format!("the definition {digest}"))?;
            }
            if sent.len() < PAGE {
                return Ok(());
            }
            after = sent.last().cloned();
        }
    }

    async fn check_cells(&self) -> Result<(), CopyError> {
        let mut after = None;
        loop {
            let sent = self.from.store.kept_cells(after.as_ref(), PAGE).await?;
            let arrived = self.to.store.kept_cells(after.as_ref(), PAGE).await?;
            self.expect(sent == arrived, || "keys, grants or requests".to_owned())?;
            if sent.cells.len() < PAGE {
                return Ok(());
            }
            after = sent.cells.last().cloned();
        }
    }

    async fn check_threads(
        &self,
        tell: &mut (dyn FnMut(Stage, u64) + Send),
    ) -> Result<Copied, CopyError> {
        let mut copied = Copied::default();
        let mut after = None;
        loop {
            let sent = self.from.store.threads(after.as_ref(), PAGE).await?;
            let arrived = self.to.store.threads(after.as_ref(), PAGE).await?;
            let is_last = sent.len() < PAGE;
            self.expect(sent.len() == arrived.len(), || {
                "which threads it has".to_owned()
            })?;
            for ((key, sent), (other, arrived)) in sent.iter().zip(&arrived) {
                let (sent, arrived) = (sent.clone()?, arrived.clone()?);
                let is_same = key == other
                    && (sent.version, sent.epoch, &sent.payload)
                        == (arrived.version, arrived.epoch, &arrived.payload);
                self.expect(is_same, || key.thread.to_string())?;
                self.check_thread(key, sent.version).await?;
                copied.records += sent.version;
            }
            copied.threads += sent.len() as u64;
            tell(Stage::Checking, copied.threads);
            if is_last {
                return Ok(copied);
            }
            after = sent.into_iter().next_back().map(|(key, _)| key);
        }
    }

    /// A journal that arrived follows from its first record to its last, and that is the last one that was sent: so all of
    /// it is what was sent.
    async fn check_thread(&self, key: &ThreadKey, version: u64) -> Result<(), CopyError> {
        let (mut seen, mut hash) = (0, Digest::default());
        loop {
            let records = self.to.store.read(key, seen, RECORDS).await?;
            let Some(last) = records.last() else {
                break;
            };
            decode_records(hash, &records).map_err(|reason| self.damaged(key, reason))?;
            (seen, hash) = (last.seq, last.hash);
        }
        let before = version.saturating_sub(1);
        let sent = self.from.store.read(key, before, 1).await?;
        let is_same = seen == version && sent.first().is_some_and(|sent| sent.hash == hash);
        self.expect(is_same, || format!("the journal of {}", key.thread))
    }

    async fn check_rows(&self) -> Result<(), CopyError> {
        let (from, to) = (self.from.store, self.to.store);
        for index in Index::ALL {
            let tenants = from.tenants(index).await?;
            let what = || format!("the index {index:?}");
            self.expect(tenants == to.tenants(index).await?, what)?;
            for tenant in tenants {
                let mut after = None;
                loop {
                    let sent = page(from, &tenant, index, after.clone()).await?;
                    let arrived = page(to, &tenant, index, after).await?;
                    self.expect(sent == arrived, what)?;
                    if sent.len() < PAGE {
                        break;
                    }
                    after = sent.last().cloned();
                }
            }
        }
        Ok(())
    }

    /// The old store has left for good, and only then the new one goes on.
    async fn hand_over(&self) -> Result<(), CopyError> {
        let (from, to, ticket) = (self.from.store, self.to.store, self.ticket);
        let (leaving, _) = self.both(ticket);
        let here = to.part().await?;
        // Before anything is for good.
        expect_arriving(here.as_ref(), ticket)?;
        let left = Part::Left(leaving.moving().clone());
        let has_left = match from.part().await? {
            Some(Part::Left(moving)) => moving.ticket == ticket,
            Some(part @ Part::Leaving(_)) if part.moving().ticket == ticket => {
                from.set_part(Some(&part), Some(&left)).await?
            }
            Some(_) | None => false,
        };
        if !has_left {
            return Err(CopyError::GivenUp(self.from.name.to_owned()));
        }
        failpoint::hit("copy.left");
        to.set_part(here.as_ref(), None).await?;
        Ok(())
    }

    fn expect(&self, is_so: bool, what: impl FnOnce() -> String) -> Result<(), CopyError> {
        if is_so {
            return Ok(());
        }
        Err(CopyError::Differs {
            from: self.from.name.to_owned(),
            to: self.to.name.to_owned(),
            what: what(),
        })
    }

    fn damaged(&self, thread: &ThreadKey, reason: Damaged) -> CopyError {
        CopyError::Damaged {
            from: self.from.name.to_owned(),
            thread: thread.clone(),
            reason,
        }
    }
}

/// Threads on their way, and how many bytes they have.
#[derive(Default)]
struct Load {
    threads: Vec<ImportedThread>,
    weight: usize,
}

impl Load {
    fn add(&mut self, thread: ImportedThread) {
        let records = thread.records.iter();
        let bytes = records.map(|it| it.header.len() + it.payload.bytes.len());
        self.weight += thread.head.bytes.len() + bytes.sum::<usize>();
        self.threads.push(thread);
    }

    fn take(&mut self, import: Import) -> Import {
        let Self { threads, .. } = std::mem::take(self);
        Import { threads, ..import }
    }
}

/// When the lease of a thread ends, if somebody may hold it still.
fn in_force(head: &Head, now: Timestamp) -> Option<Timestamp> {
    let lease = head.lease.as_ref()?;
    (lease.holder != Holder::Dead && lease.until > now).then_some(lease.until)
}

async fn page(
    store: &dyn Store,
    tenant: &str,
    index: Index,
    after: Option<IndexRow>,
) -> Result<Vec<IndexRow>, Unavailable> {
    let scan = Scan {
        index,
        key: None,
        up_to: None,
        direction: Direction::Forward,
        after,
        limit: PAGE,
    };
    store.scan(tenant, scan).await
}

async fn last(
    store: &dyn Store,
    tenant: &str,
    index: Index,
) -> Result<Option<IndexRow>, Unavailable> {
    let scan = Scan {
        index,
        key: None,
        up_to: None,
        direction: Direction::Backward,
        after: None,
        limit: 1,
    };
    Ok(store.scan(tenant, scan).await?.pop())
}

fn new_ticket() -> Result<u32, CopyError> {
    let mut bytes = [0; 4];
    getrandom::fill(&mut bytes).map_err(|error| Unavailable::new(error.to_string()))?;
    Ok(u32::from_be_bytes(bytes))
}
