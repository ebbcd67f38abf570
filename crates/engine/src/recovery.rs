//! Driving what is open: here, elsewhere, or left behind by a process that died.

use std::{sync::Arc, time::Duration};

use holdpoint_core::{Index, State, ThreadId, next};
use holdpoint_store::{Direction, Head, LeaseError, Scan, ThreadKey};

use crate::{Engine, Error, driver::Driver, error::from_lease, thread::Thread};

/// How often a thread that another process drives is looked at, where nothing tells us of a change.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// How many rows or heads one read fetches.
const PAGE: usize = 500;

impl Engine {
    /// Drives a thread, or follows whoever drives it, until there is nothing to do. Returns it as it stands then; `None` if
    /// there is no such thread.
    ///
    /// # Errors
    ///
    /// The store fails.
    pub async fn drive(&self, key: &ThreadKey) -> Result<Option<Arc<State>>, Error> {
        let mut foreign = self.store().foreign_changes();
        loop {
            let Some(head) = self.store().load(key).await? else {
                return Ok(None);
            };
            let thread = self.thread(key, Some(&head))?;
            if next(&thread.state).is_empty() {
                return Ok(Some(thread.state));
            }
            if !self.leaves_driving().await?
                && let Some(stopped) = self.take_over(thread).await?
            {
                return Ok(Some(stopped));
            }
            // Someone else drives: look again when something changes, and now and then in case they die.
            tokio::select! {
                _ = foreign.changed() => {}
                () = tokio::time::sleep(LOOK_AGAIN) => {}
            }
        }
    }

    /// Drives a thread if its lease can be taken. Returns it as it stopped; `None` if another driver has it.
    async fn take_over(&self, mut thread: Thread) -> Result<Option<Arc<State>>, Error> {
        let store = self.store();
        self.verify(&mut thread).await?;
        let epoch = match store.take(&thread.key, self.options().lease).await {
            Ok(epoch) => epoch,
            Err(LeaseError::Held { .. }) => return Ok(None),
            Err(error) => return Err(from_lease(error)),
        };
        // What was read before the lease was taken may be out of date.
        let news = thread.catch_up(store).await?;
        self.tell(&thread.key, news, &thread.state);
        Driver::holding(self.clone(), thread, epoch)?.run().await
    }

    /// Drives a thread if nobody does.
    ///
    /// # Errors
    ///
    /// The store fails.
    pub async fn take_up(&self, key: &ThreadKey) -> Result<(), Error> {
        if self.is_draining() {
            return Ok(());
        }
        let Some(head) = self.store().load(key).await? else {
            return Ok(());
        };
        let thread = self.thread(key, Some(&head))?;
        if !next(&thread.state).is_empty() {
            self.take_over(thread).await?;
        }
        Ok(())
    }

    /// The threads with work that nobody alive is known to drive, after waiting for leases that may run out.
    ///
    /// # Errors
    ///
    /// The store fails.
    pub async fn abandoned(&self) -> Result<Vec<ThreadKey>, Error> {
        let store = self.store();
        let mut found = Vec::new();
        let mut doubtful = Vec::new();
        for tenant in store.tenants(Index::Runnable).await? {
            for key in self.threads_in(&tenant, Index::Runnable, None).await? {
                let Some(head) = store.load(&key).await? else {
                    continue;
                };
                match &head.lease {
                    Some(lease) if !self.may_take(Some(&head)) => doubtful.push((key, lease.until)),
                    Some(_) | None => found.push(key),
                }
            }
        }
        // A live driver renews its lease long before it ends; a dead one lets it run out.
        let mut foreign = store.foreign_changes();
        while !doubtful.is_empty() {
            tokio::select! {
                _ = foreign.changed() => {}
                () = tokio::time::sleep(LOOK_AGAIN) => {}
            }
            let mut still = Vec::new();
            for (key, until) in doubtful {
                let head = store.load(&key).await?;
                let lease = head.as_ref().and_then(|head| head.lease.as_ref());
                if self.may_take(head.as_ref()) {
                    found.extend(self.is_open(&key, head.as_ref())?.then_some(key));
                } else if lease.is_some_and(|lease| lease.until == until) {
                    still.push((key, until));
                }
            }
            doubtful = still;
        }
        Ok(found)
    }

    /// Whether there is anything to drive.
    fn is_open(&self, key: &ThreadKey, head: Option<&Head>) -> Result<bool, Error> {
        let Some(head) = head else { return Ok(false) };
        Ok(!next(&self.thread(key, Some(head))?.state).is_empty())
    }

    /// Some threads with work that nobody drives, as far as can be told without waiting.
    ///
    /// # Errors
    ///
    /// The store fails.
    pub async fn left_behind(&self, limit: usize) -> Result<Vec<ThreadKey>, Error> {
        let store = self.store();
        let mut found = Vec::new();
        for tenant in store.tenants(Index::Runnable).await? {
            let mut keys = self.threads_in(&tenant, Index::Runnable, None).await?;
            // What this process drives needs no look.
            {
                let drivers = self.drivers();
                keys.retain(|key| !drivers.contains_key(key));
            }
            for page in keys.chunks(PAGE) {
                if found.len() >= limit {
                    return Ok(found);
                }
                let threads: Vec<ThreadId> = page.iter().map(|key| key.thread).collect();
                let heads = store.load_all(&tenant, &threads).await?;
                let free = page.iter().zip(heads);
                let free = free.filter(|(_, head)| head.is_some() && self.may_take(head.as_ref()));
                found.extend(free.map(|(key, _)| key.clone()));
            }
        }
        Ok(found)
    }

    /// The threads in which something is due.
    ///
    /// # Errors
    ///
    /// The store fails.
    pub async fn due(&self) -> Result<Vec<ThreadKey>, Error> {
        let now = self.store().now().as_micros();
        let mut due = Vec::new();
        for tenant in self.store().tenants(Index::Due).await? {
            due.extend(self.threads_in(&tenant, Index::Due, Some(now)).await?);
        }
        Ok(due)
    }

    async fn threads_in(
        &self,
        tenant: &Arc<str>,
        index: Index,
        up_to: Option<i64>,
    ) -> Result<Vec<ThreadKey>, Error> {
        let mut keys = Vec::new();
        let mut after = None;
        loop {
            let scan = Scan {
                index,
                // Both indexes have the empty key only: so nothing is looked at that is not due.
                key: Some(String::new()),
                up_to,
                direction: Direction::Forward,
                after,
                limit: PAGE,
            };
            let rows = self.store().scan(tenant, scan).await?;
            keys.extend(rows.iter().map(|row| ThreadKey {
                tenant: Arc::clone(tenant),
                thread: row.thread,
            }));
            after = rows.last().cloned();
            if rows.len() < PAGE {
                return Ok(keys);
            }
        }
    }
}
