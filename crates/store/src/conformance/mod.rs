//! What every backend promises: one suite, a function for each promise.
//!
//! A backend runs all of them by naming itself once, with something that opens two handles on the same new, empty data
//! by the clock it is given, and whatever has to live as long as that data:
//!
//! ```
//! # // The tests that this makes are not run here.
//! mod memory {
//!     use std::sync::Arc;
//!     use holdpoint_store::{Clock, MemoryStore, Options, SharedStore};
//!
//!     async fn open(clock: Arc<dyn Clock>) -> (SharedStore, SharedStore, ()) {
//!         let here = MemoryStore::new(&Options::default().with_clock(clock));
//!         let there = here.sibling();
//!         (Arc::new(here), Arc::new(there), ())
//!     }
//!
//!     holdpoint_store::conformance_tests!(open);
//! }
//! ```

mod amendments;
mod appends;
mod cells;
mod endings;
mod indexes;
mod leases;
mod moving;
mod notice;
mod promises;
mod world;

pub use promises::*;
pub use world::{World, record};
