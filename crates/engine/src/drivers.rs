//! The threads that this process drives or waits for, to be told of what its other tasks append.

use std::sync::Arc;

use holdpoint_store::ThreadKey;
use tokio::sync::Notify;

use crate::Engine;

impl Engine {
    /// Registers a driver, or someone who waits, to be told of what other tasks of this process append. A driver is
    /// registered before it commits anything, so that nothing that follows on its first append is missed.
    pub(crate) fn register(&self, key: &ThreadKey) -> Registration {
        let poke = Arc::new(Notify::new());
        let mut drivers = self.drivers();
        drivers
            .entry(key.clone())
            .or_default()
            .push(Arc::clone(&poke));
        Registration {
            engine: self.clone(),
            key: key.clone(),
            poke,
        }
    }

    pub(crate) fn poke(&self, key: &ThreadKey) {
        for poke in self.drivers().get(key).into_iter().flatten() {
            poke.notify_one();
        }
    }
}

/// A place in the list of those who are told.
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
        let mut drivers = self.engine.drivers();
        if let Some(pokes) = drivers.get_mut(&self.key) {
            pokes.retain(|poke| !Arc::ptr_eq(poke, &self.poke));
            if pokes.is_empty() {
                drivers.remove(&self.key);
            }
        }
    }
}
