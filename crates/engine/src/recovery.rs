//! Driving what is open: here, elsewhere, or left behind by a process that died.

use std::{sync::Arc, time::Duration};

use holdpoint_core::{Index, next};
use holdpoint_store::{Direction, Head, LeaseError, Scan, ThreadKey};

use crate::{
    Engine, Error,
    driver::{Driver, Exit},
    error::from_lease,
    thread::Thread,
};

/// How often a thread that another process drives is looked at, where nothing tells us of a change.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

impl Engine {
    /// Drives a thread, or follows whoever drives it, until there is nothing to do.
    ///
    /// # Errors
    ///
    /// The store fails.
    pub async fn drive(&self, key: &ThreadKey) -> Result<(), Error> {
        let mut foreign = self.store().foreign_changes();
        loop {
            let Some(head) = self.store().load(key).await? else {
                return Ok(());
            };
            let thread = self.thread(key, Some(&head))?;
            if next(&thread.state).is_empty() {
                return Ok(());
            }
            match self.take_over(thread).await? {
                Some(Exit::Stopped) => return Ok(()),
                Some(Exit::NotOurs) | None => {}
            }
            // Someone else drives: look again when something changes, and now and then in case they die.
            tokio::select! {
                _ = foreign.changed() => {}
                () = tokio::time::sleep(LOOK_AGAIN) => {}
            }
        }
    }

    /// Drives a thread if its lease can be taken.
    async fn take_over(&self, mut thread: Thread) -> Result<Option<Exit>, Error> {
        let store = self.store();
        self.verify(&mut thread).await?;
        let epoch = match store.take(&thread.key, self.options().lease).await {
            Ok(epoch) => epoch,
            Err(LeaseError::Held { .. }) => return Ok(None),
            Err(error) => return Err(from_lease(error)),
        };
        // What was read before the lease was taken may be out of date.
        let news = thread.catch_up(store).await?;
        self.tell(&thread.key, &news);
        Driver::holding(self.clone(), thread, epoch)?
            .run()
            .await
            .map(Some)
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
                key: None,
                up_to,
                direction: Direction::Forward,
                after,
                limit: 500,
            };
            let rows = self.store().scan(tenant, scan).await?;
            keys.extend(rows.iter().map(|row| ThreadKey {
                tenant: Arc::clone(tenant),
                thread: row.thread,
            }));
            after = rows.last().cloned();
            if rows.len() < 500 {
                return Ok(keys);
            }
        }
    }
}
