//! Making a backup the store to go on with.
//!
//! A backup is the past. Before it is driven, every run in it that is not over is made to ask a person, and every grant
//! ends; only then the mark that it is a backup is taken away. Whoever dies in between leaves a backup that can be
//! adopted again, and what was asked for already is not asked twice.

use std::{
    collections::BTreeSet,
    sync::{Arc, atomic::Ordering},
};

use holdpoint_core::{Command, Context, Index, IndexRow, Timestamp, decide, decode_head};
use holdpoint_store::{Direction, Scan, ThreadKey, failpoint};
use tokio::task::JoinSet;

use crate::{
    Engine, Error,
    driver::Order,
    thread::{engine_principal, fresh_seed},
};

/// How many threads are looked at with one read.
const PAGE: usize = 500;
/// How many threads are made to ask at once, so that they share commits.
const AT_ONCE: usize = 64;

/// What adopting a backup led to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Adopted {
    /// When the backup was made.
    pub made_at: Timestamp,
    /// The threads in which people are asked now, before anything goes on.
    pub asking: Vec<ThreadKey>,
    /// The threads whose heads cannot be read. Nobody can drive them, so they are left as they are.
    pub unreadable: Vec<ThreadKey>,
}

/// A point in time as people read it, in UTC.
pub(crate) fn spelt(at: Timestamp) -> String {
    // INVARIANT: the store's clock stays within the years that can be spelt.
    let at =
        jiff::Timestamp::from_microsecond(at.as_micros()).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

impl Engine {
    /// Nothing is begun, answered or done in a backup that nobody has adopted, nor in a store that is moving or has moved.
    pub(crate) async fn expect_present(&self) -> Result<(), Error> {
        if self.present().load(Ordering::Relaxed) {
            return Ok(());
        }
        match self.store().backup_made_at().await? {
            Some(made_at) => Err(Error::NotAdopted { made_at }),
            None => {
                if let Some(part) = self.store().part().await? {
                    return Err(Error::CannotDrive(part.refusal()));
                }
                self.present().store(true, Ordering::Relaxed);
                Ok(())
            }
        }
    }

    /// Makes a backup the store to go on with; `None` where it is none.
    ///
    /// Every pending question is closed, every write that was begun and not ended becomes a question, and every run that
    /// is not over asks a person before it goes on. Nothing that was allowed before still is, and all grants end. It may
    /// be done again at any time, also after it was cut off in the middle.
    ///
    /// # Errors
    ///
    /// The store fails; it is a backup still.
    pub async fn adopt(&self) -> Result<Option<Adopted>, Error> {
        let Some(made_at) = self.store().backup_made_at().await? else {
            return Ok(None);
        };
        let mut adopted = Adopted {
            made_at,
            asking: Vec::new(),
            unreadable: Vec::new(),
        };
        self.end_wide_grants().await?;
        for tenant in self.store().tenants(Index::Run).await? {
            self.restore_tenant(&tenant, &mut adopted).await?;
        }
        failpoint::hit("engine.adopt.restored");
        // DURABILITY: only now. Until here it is a backup, which nobody drives, and which can be adopted again.
        self.store().adopt().await?;
        Ok(Some(adopted))
    }

    async fn restore_tenant(&self, tenant: &Arc<str>, adopted: &mut Adopted) -> Result<(), Error> {
        let mut seen = BTreeSet::new();
        let mut after: Option<IndexRow> = None;
        loop {
            let scan = Scan {
                index: Index::Run,
                key: None,
                up_to: None,
                direction: Direction::Forward,
                after,
                limit: PAGE,
            };
            let rows = self.store().scan(tenant, scan).await?;
            let threads = rows.iter().map(|row| row.thread);
            let threads: BTreeSet<_> = threads.filter(|thread| seen.insert(*thread)).collect();
            let keys = threads.into_iter().map(|thread| ThreadKey {
                tenant: Arc::clone(tenant),
                thread,
            });
            self.restore_some(tenant, keys.collect(), adopted).await?;
            after = rows.last().cloned();
            if rows.len() < PAGE {
                return Ok(());
            }
        }
    }

    /// Makes those of these threads ask that must.
    async fn restore_some(
        &self,
        tenant: &Arc<str>,
        keys: Vec<ThreadKey>,
        adopted: &mut Adopted,
    ) -> Result<(), Error> {
        let threads: Vec<_> = keys.iter().map(|key| key.thread).collect();
        let heads = self.store().load_all(tenant, &threads).await?;
        let by = engine_principal(tenant);
        let command = Command::Restore {
            backup: adopted.made_at,
            spelt: spelt(adopted.made_at),
        };
        let mut open = Vec::new();
        for (key, head) in keys.into_iter().zip(heads) {
            let Some(head) = head else { continue };
            let Ok(state) = decode_head(&head.payload) else {
                adopted.unreadable.push(key);
                continue;
            };
            let now = self.store().now();
            let mut context = Context {
                now,
                by: by.clone(),
                seed: fresh_seed(now)?,
            };
            if !decide(&state, command.clone(), &mut context)?.is_empty() {
                open.push(key);
            } else if !state.interrupts.is_empty() {
                // Made to ask before, by whoever did not come to the end of it.
                adopted.asking.push(key);
            }
        }
        for some in open.chunks(AT_ONCE) {
            let mut appends = JoinSet::new();
            for key in some {
                let (engine, key) = (self.clone(), key.clone());
                let order = Order::new(command.clone(), by.clone());
                appends.spawn(async move {
                    let standing = engine.append_anywhere(&key, order).await?;
                    failpoint::hit("engine.adopt.thread");
                    Ok::<_, Error>((!standing.state.interrupts.is_empty()).then_some(key))
                });
            }
            while let Some(appended) = appends.join_next().await {
                // What a task could not say is as if it had not been done: it is a backup still.
                let appended = appended.map_err(|_| cut_off())?;
                adopted.asking.extend(appended?);
            }
        }
        Ok(())
    }
}

fn cut_off() -> Error {
    holdpoint_store::Unavailable::new("adopting it was cut off").into()
}
