//! A command is committed, with the lease where it is free; then this process drives, or another one does.

use std::sync::Arc;

use holdpoint_core::{Batch, Context, Refusal, State};
use holdpoint_store::{AppendError, Fence, Head, Holder, LeaseAfter, Space, ThreadKey};

use crate::{
    Engine, Error,
    driver::{Begun, Driver, OUTDATED, Order, Standing, is_report},
    error::from_append,
    thread::{Refused, Thread, fresh_seed, late_outcome},
};

/// A command that was committed.
#[derive(Debug)]
#[must_use = "nothing drives the run until `finish` is called"]
pub struct Submitted {
    engine: Engine,
    key: ThreadKey,
    standing: Standing,
    next: Next,
}

/// What is left to do after a command was committed.
#[derive(Debug)]
enum Next {
    /// This process drives.
    Drive(Box<Driver>),
    /// Another process drives, or may.
    Follow,
    /// Nothing.
    Nothing,
}

impl Submitted {
    /// The thread it was committed to.
    #[must_use]
    pub const fn key(&self) -> &ThreadKey {
        &self.key
    }

    /// The thread as the command left it.
    #[must_use]
    pub fn state(&self) -> &Arc<State> {
        &self.standing.state
    }

    /// The thread as it was before: what the command led to comes after.
    #[must_use]
    pub fn before(&self) -> &Arc<State> {
        &self.standing.before
    }

    /// Whether another process drives the run, or is about to.
    #[must_use]
    pub const fn is_driven_elsewhere(&self) -> bool {
        matches!(self.next, Next::Follow)
    }

    /// Drives the run if this process has its lease. Where another one has it, nothing is left to do.
    ///
    /// # Errors
    ///
    /// As [`Submitted::finish`].
    pub async fn drive(self) -> Result<(), Error> {
        match self.next {
            Next::Nothing | Next::Follow => Ok(()),
            Next::Drive(driver) => driver.run().await.map(|_| ()),
        }
    }

    /// Drives the run, or follows whoever drives it, until it stops: at its end, or because it waits. Returns the thread as
    /// it stopped, with what it waits for.
    ///
    /// # Errors
    ///
    /// The store fails. What is committed stays, and `recover` goes on from there.
    pub async fn finish(self) -> Result<Arc<State>, Error> {
        match self.next {
            Next::Nothing => return Ok(self.standing.state),
            Next::Drive(driver) => {
                if let Some(stopped) = driver.run().await? {
                    return Ok(stopped);
                }
            }
            Next::Follow => {}
        }
        let stopped = self.engine.drive(&self.key).await?;
        stopped.ok_or_else(|| Refusal::NotFound.into())
    }
}

impl Engine {
    /// Commits a command to a thread as it is now.
    pub(crate) async fn submit(&self, key: ThreadKey, order: Order) -> Result<Submitted, Error> {
        let head = self.store().load(&key).await?;
        let thread = self.thread(&key, head.as_ref())?;
        self.submit_on(thread, head.as_ref(), order).await
    }

    /// Commits a command to a thread that was just read, and takes the lease with it where it is free.
    pub(crate) async fn submit_on(
        &self,
        mut thread: Thread,
        head: Option<&Head>,
        order: Order,
    ) -> Result<Submitted, Error> {
        self.expect_present().await?;
        self.verify(&mut thread).await?;
        let key = thread.key.clone();
        if self.may_take(head) && !self.leaves_driving().await? {
            let begun = Driver::taking(self.clone(), thread, order.clone())?
                .begin()
                .await;
            match begun {
                Ok(Begun::Driving(driver, standing)) => {
                    return Ok(self.submitted(key, standing, Next::Drive(driver)));
                }
                Ok(Begun::Stopped(standing)) => {
                    return Ok(self.submitted(key, standing, Next::Nothing));
                }
                // Another driver was faster; and a process that cannot drive may still decide.
                Ok(Begun::NotOurs) | Err(Error::CannotDrive(_)) => {}
                Err(error) => return Err(error),
            }
        }
        let standing = self.append_open(&key, order).await?;
        Ok(self.submitted(key, standing, Next::Follow))
    }

    fn submitted(&self, key: ThreadKey, standing: Standing, next: Next) -> Submitted {
        Submitted {
            engine: self.clone(),
            key,
            standing,
            next,
        }
    }

    /// Whether a lease looks free. The store decides; this only spares a refused attempt.
    pub(crate) fn may_take(&self, head: Option<&Head>) -> bool {
        let Some(lease) = head.and_then(|head| head.lease.as_ref()) else {
            return true;
        };
        lease.holder == Holder::Dead || lease.until <= self.store().now()
    }

    /// Commits a command without a lease, deciding it again whenever someone else was first.
    pub(crate) async fn append_open(
        &self,
        key: &ThreadKey,
        order: Order,
    ) -> Result<Standing, Error> {
        self.expect_present().await?;
        self.append_anywhere(key, order).await
    }

    /// As [`Engine::append_open`], also to a backup that nobody has adopted yet.
    pub(crate) async fn append_anywhere(
        &self,
        key: &ThreadKey,
        order: Order,
    ) -> Result<Standing, Error> {
        loop {
            let mut thread = self.load(key).await?;
            let now = self.store().now();
            let mut context = Context {
                now,
                by: order.by.clone(),
                seed: fresh_seed(now)?,
            };
            let mut batch = Batch::new(Arc::clone(&thread.state));
            match batch.decide(order.command.clone(), &mut context) {
                Ok(()) => {}
                Err(Refusal::Stale(_) | Refusal::RunOver) if is_report(&order.command) => {
                    let Some(late) = late_outcome(self.store(), key, &order.command).await? else {
                        return Ok(Standing {
                            before: Arc::clone(&thread.state),
                            state: thread.state,
                        });
                    };
                    batch.decide(late, &mut context)?;
                }
                Err(refusal) => return Err(refusal.into()),
            }
            let before = Arc::clone(&thread.state);
            if batch.is_empty() {
                self.note(&order, &thread.state).await?;
                let state = thread.state;
                return Ok(Standing { before, state });
            }
            let mark = self.mark_change(&order, before.version, batch.state());
            let relied_on = order.relies_on;
            let relied_on = relied_on.map(|current| current.unchanged(&before.agent));
            let cells = mark.into_iter().chain(relied_on).collect();
            match thread
                .append(self, batch, cells, Fence::Open, LeaseAfter::Keep)
                .await
            {
                Ok((entries, _)) => {
                    self.tell_own(key, entries, &before, &thread.state);
                    self.poke(key);
                    let state = thread.state;
                    return Ok(Standing { before, state });
                }
                Err(Refused::Append(AppendError::Conflict { .. })) => {}
                Err(Refused::Append(AppendError::CellConflict {
                    space: Space::Definition,
                    ..
                })) => return Err(OUTDATED.into()),
                Err(Refused::Append(AppendError::CellConflict { .. })) => {
                    return Err(self.replayed(&order).await?);
                }
                Err(Refused::Append(error)) => return Err(from_append(error)),
                Err(Refused::Other(error)) => return Err(error),
            }
        }
    }
}
