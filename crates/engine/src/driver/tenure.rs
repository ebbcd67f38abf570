//! Holding the lease: keeping it, giving it back, losing it, and noticing what others append.

use std::{collections::HashSet, time::Duration};

use holdpoint_core::next;
use holdpoint_store::LeaseError;
use tokio::time::Instant;

use super::{Driver, Exit, Lease, Order, is_call_outcome};
use crate::{Error, error::from_lease, flight::Flight};

/// Another driver has the lease.
pub(super) struct Taken;

impl Driver {
    /// Someone else appended: reads it, and drops calls that nobody waits for any more.
    pub(super) async fn look_again(&mut self) -> Result<(), Error> {
        self.has_news = true;
        let entries = self.thread.catch_up(self.engine.store()).await?;
        self.engine
            .tell(&self.thread.key, entries, &self.thread.state);
        if let Lease::Wanted { after } = &mut self.lease {
            *after = self
                .thread
                .reload_epoch(self.engine.store())
                .await?
                .unwrap_or(*after);
        }
        let open: HashSet<Flight> = next(&self.thread.state).iter().map(Flight::of).collect();
        self.drop_flights(&open);
        Ok(())
    }

    /// Drops what our own append has made pointless.
    pub(super) fn drop_unwanted(&mut self) {
        let open: HashSet<Flight> = next(&self.thread.state).iter().map(Flight::of).collect();
        self.drop_flights(&open);
    }

    /// Drops calls that are no longer awaited. Only models and reads: whatever else was made is awaited to its end.
    pub(super) fn drop_flights(&mut self, open: &HashSet<Flight>) {
        self.aloft.retain(|flight, handle| {
            let keep = open.contains(flight) || !flight.may_be_dropped(&self.thread.state);
            if !keep {
                handle.abort();
            }
            keep
        });
        self.forget_left();
    }

    /// Takes the lease where the first round had nothing to append: nobody drives without one.
    pub(super) async fn take(&mut self) -> Result<Option<Exit>, Error> {
        let lasts = self.engine.options().lease;
        let until = Instant::now() + Duration::from(lasts);
        match self.engine.store().take(&self.thread.key, lasts).await {
            Ok(epoch) => {
                self.lease = Lease::Held { epoch, until };
                self.thread.epoch = epoch;
                // Someone may have appended before it was ours.
                self.look_again().await?;
                Ok(None)
            }
            Err(LeaseError::Held { .. }) => Ok(Some(Exit::NotOurs)),
            Err(error) => Err(from_lease(error)),
        }
    }

    pub(super) async fn renew(&mut self) -> Result<Option<Exit>, Error> {
        match self.prolong().await? {
            Ok(()) => Ok(None),
            Err(Taken) => self.hand_over().await.map(Some),
        }
    }

    pub(super) async fn prolong(&mut self) -> Result<Result<(), Taken>, Error> {
        let Lease::Held { epoch, .. } = self.lease else {
            return Ok(Ok(()));
        };
        let lasts = self.engine.options().lease;
        let until = Instant::now() + Duration::from(lasts);
        match self
            .engine
            .store()
            .renew(&self.thread.key, epoch, lasts)
            .await
        {
            Ok(()) => {
                self.lease = Lease::Held { epoch, until };
                Ok(Ok(()))
            }
            Err(LeaseError::Fenced { .. } | LeaseError::NotFound) => Ok(Err(Taken)),
            Err(error) => Err(from_lease(error)),
        }
    }

    /// Gives the lease back at the version at which nothing was left to do; `None` if there is news.
    pub(super) async fn give_back(&mut self) -> Result<Option<Exit>, Error> {
        let Lease::Held { epoch, .. } = self.lease else {
            return Ok(Some(Exit::Stopped));
        };
        match self
            .engine
            .store()
            .release(&self.thread.key, epoch, self.thread.state.version)
            .await
        {
            Ok(()) => Ok(Some(Exit::Stopped)),
            Err(LeaseError::Conflict { .. }) => {
                self.look_again().await?;
                Ok(None)
            }
            Err(LeaseError::Fenced { .. }) => self.hand_over().await.map(Some),
            Err(error) => Err(from_lease(error)),
        }
    }

    /// Gives the lease back after a failure, so that nobody has to wait for its end. Where that fails too, it ends.
    pub(super) async fn let_go(&mut self) {
        if let Lease::Held { epoch, .. } = self.lease {
            let (key, version) = (&self.thread.key, self.thread.state.version);
            let _ = self.engine.store().release(key, epoch, version).await;
        }
    }

    /// The lease is no longer ours. The outcomes of calls that were made are never dropped: they are reported late.
    pub(super) async fn hand_over(&mut self) -> Result<Exit, Error> {
        let mut reports: Vec<Order> = self
            .orders
            .drain(..)
            .filter(|order| is_call_outcome(&order.command))
            .collect();
        self.drop_flights(&HashSet::new());
        loop {
            tokio::select! {
                // Cancel safe: both arms are.
                landed = self.flights.join_next_with_id() => {
                    let Some(landed) = landed else { break };
                    self.land(Some(landed));
                    reports.extend(
                        self.orders
                            .drain(..)
                            .filter(|order| is_call_outcome(&order.command)),
                    );
                }
                // A stepped tool is awaited only for the steps that it has in flight.
                wish = self.entries.next() => {
                    if let Some(report) = self.late_end(wish) {
                        reports.push(report);
                        self.drop_flights(&HashSet::new());
                    }
                }
            }
        }
        for report in reports {
            self.engine.append_open(&self.thread.key, report).await?;
        }
        Ok(Exit::NotOurs)
    }
}
