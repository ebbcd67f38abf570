//! The threads that this process drives, to be told of what its other tasks append.

use std::sync::{Arc, PoisonError};

use holdpoint_store::ThreadKey;
use tokio::sync::Notify;

use crate::Engine;

impl Engine {
    /// Registers a driver, to be told of what other tasks of this process append.
    pub(crate) fn register(&self, key: &ThreadKey) -> Registration {
        let poke = Arc::new(Notify::new());
        let mut drivers = self
            .drivers()
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        drivers.insert(key.clone(), Arc::clone(&poke));
        Registration {
            engine: self.clone(),
            key: key.clone(),
            poke,
        }
    }

    pub(crate) fn poke(&self, key: &ThreadKey) {
        let drivers = self
            .drivers()
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(poke) = drivers.get(key) {
            poke.notify_one();
        }
    }
}

/// A driver's place in the list of those that this process runs.
#[derive(Debug)]
pub(crate) struct Registration {
    engine: Engine,
    key: ThreadKey,
    poke: Arc<Notify>,
}

impl Registration {
    pub(crate) async fn notified(&self) {
        self.poke.notified().await;
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut drivers = self
            .engine
            .drivers()
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // A later driver of the same thread keeps its own place.
        if drivers
            .get(&self.key)
            .is_some_and(|poke| Arc::ptr_eq(poke, &self.poke))
        {
            drivers.remove(&self.key);
        }
    }
}
