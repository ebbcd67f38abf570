//! Telling endpoints outside what becomes of questions: who hears of what, and what is still to be told.
//!
//! Who hears of what stands in the store and not in a server's configuration alone: what is to be told is put into the outbox
//! by whoever commits, and that may be a command in a terminal.

mod letters;
mod message;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use holdpoint_core::{Span, Subscription, Subscriptions};
use holdpoint_store::{AppendError, Cell, CellChange, CellThen, SYSTEM_TENANT, Space, Unavailable};
use tokio::{sync::watch, time::Instant};

use crate::{Engine, Error, error::from_append};

pub use letters::{DeadLetter, MANAGE};
pub use message::Message;

/// How long this process relies on what it has read. So long after an endpoint is added, others do not write to it yet.
const FRESH: Duration = Duration::from_secs(5);
/// How long a courier counts as alive after it last said so, at most.
const COURIER_LIVES: Span = Span::from_secs(5);
/// How many endpoints are read at once.
const PAGE: usize = 100;

/// Who outside hears of what, as this process last read it.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    known: Mutex<Option<(Instant, Arc<Subscriptions>)>>,
    filled: watch::Sender<u64>,
}

impl Outbox {
    fn fresh(&self) -> Option<Arc<Subscriptions>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, subscriptions) = known.as_ref()?;
        (at.elapsed() < FRESH).then(|| Arc::clone(subscriptions))
    }

    fn learn(&self, known: Option<Arc<Subscriptions>>) {
        let known = known.map(|subscriptions| (Instant::now(), subscriptions));
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = known;
    }

    /// Something was put into it.
    pub(crate) fn was_filled(&self) {
        self.filled.send_modify(|count| *count += 1);
    }
}

impl Engine {
    /// Who hears of what.
    pub(crate) async fn hearing(&self) -> Result<Arc<Subscriptions>, Error> {
        if let Some(fresh) = self.outbox().fresh() {
            return Ok(fresh);
        }
        let read = Arc::new(self.subscriptions().await?);
        self.outbox().learn(Some(Arc::clone(&read)));
        Ok(read)
    }

    /// Counts how often this process has put something into the outbox.
    #[must_use]
    pub fn outbox_changes(&self) -> watch::Receiver<u64> {
        self.outbox().filled.subscribe()
    }

    /// Who hears of what, as the store has it.
    ///
    /// # Errors
    ///
    /// The store fails.
    pub async fn subscriptions(&self) -> Result<Subscriptions, Error> {
        let mut all = Subscriptions::new();
        let mut after: Option<String> = None;
        loop {
            let cells = self
                .store()
                .cells(SYSTEM_TENANT, Space::Endpoint, after.as_deref(), PAGE)
                .await?;
            let is_last = cells.len() < PAGE;
            after = cells.last().map(|(name, _)| name.clone());
            for (name, cell) in cells {
                let read = serde_json::from_slice(&cell.value);
                let subscription = read.map_err(|error| {
                    Unavailable::new(format!("what `{name}` hears of cannot be read: {error}"))
                })?;
                all.insert(name, subscription);
            }
            if is_last {
                return Ok(all);
            }
        }
    }

    /// Lets an endpoint hear of these questions from now on. Returns what it heard of before. Its name is a name as agents
    /// have them ([`holdpoint_core::is_name`]).
    ///
    /// # Errors
    ///
    /// The store fails.
    pub async fn subscribe(
        &self,
        name: &str,
        subscription: &Subscription,
    ) -> Result<Option<Subscription>, Error> {
        let unwritable = |error: serde_json::Error| Unavailable::new(error.to_string());
        let value = serde_json::to_vec(subscription).map_err(unwritable)?;
        let until = None;
        let set = |_: Option<&Cell>| {
            Some(CellThen::Set {
                value: value.clone(),
                until,
            })
        };
        let before = self.change_cell(Space::Endpoint, name, set).await?;
        self.outbox().learn(None);
        Ok(before.and_then(|cell| serde_json::from_slice(&cell.value).ok()))
    }

    /// Becomes the one who delivers to an endpoint, or stays it. Returns for how long, unless somebody else is.
    ///
    /// There is one at a time so that an endpoint hears everything in its order, and seldom twice.
    ///
    /// # Errors
    ///
    /// The store fails.
    pub async fn carry(&self, endpoint: &str) -> Result<Option<Span>, Error> {
        let us = self.store().owner().as_bytes().to_vec();
        let lasts = self.options().lease.min(COURIER_LIVES);
        let until = Some(self.store().now() + lasts);
        let mut carries = false;
        let change = |cell: Option<&Cell>| {
            carries = cell.is_none_or(|cell| cell.value == us);
            let value = us.clone();
            carries.then_some(CellThen::Set { value, until })
        };
        self.change_cell(Space::Outbox, &courier(endpoint), change)
            .await?;
        Ok(carries.then_some(lasts))
    }

    /// Whether somebody delivers to an endpoint.
    pub(crate) async fn is_carried(&self, endpoint: &str) -> Result<bool, Error> {
        let key = courier(endpoint);
        let cell = self
            .store()
            .cell(SYSTEM_TENANT, Space::Outbox, &key)
            .await?;
        Ok(cell.is_some())
    }

    /// Is not the one any more who delivers to an endpoint.
    ///
    /// # Errors
    ///
    /// The store fails.
    pub async fn stop_carrying(&self, endpoint: &str) -> Result<(), Error> {
        let us = self.store().owner();
        let change = |cell: Option<&Cell>| {
            let ours = cell.is_some_and(|cell| cell.value == us.as_bytes());
            ours.then_some(CellThen::Remove)
        };
        self.change_cell(Space::Outbox, &courier(endpoint), change)
            .await?;
        Ok(())
    }

    /// Changes a cell that belongs to no tenant to what is made of it, again where somebody else was first; `None` leaves
    /// it as it is. Returns what it was before.
    async fn change_cell(
        &self,
        space: Space,
        key: &str,
        mut then: impl FnMut(Option<&Cell>) -> Option<CellThen>,
    ) -> Result<Option<Cell>, Error> {
        loop {
            let before = self.store().cell(SYSTEM_TENANT, space, key).await?;
            let Some(then) = then(before.as_ref()) else {
                return Ok(before);
            };
            let change = CellChange {
                space,
                key: key.to_owned(),
                expect: before.as_ref().map_or(0, |cell| cell.version),
                then,
            };
            match self.store().set_cell(SYSTEM_TENANT, change).await {
                Ok(_) => return Ok(before),
                Err(AppendError::CellConflict { .. }) => {}
                Err(error) => return Err(from_append(error)),
            }
        }
    }
}

fn courier(endpoint: &str) -> String {
    format!("courier/{endpoint}")
}
