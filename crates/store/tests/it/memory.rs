//! The conformance suite on the store in memory.

use std::sync::Arc;

use holdpoint_store::{Clock, MemoryStore, Options, SharedStore};

async fn open(clock: Arc<dyn Clock>) -> (SharedStore, SharedStore, ()) {
    let here = MemoryStore::new(&Options::default().with_clock(clock));
    let there = here.sibling();
    (Arc::new(here), Arc::new(there), ())
}

holdpoint_store::conformance_tests!(open);
