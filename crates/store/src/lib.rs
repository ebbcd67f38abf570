//! Where journals live: the [`Store`] trait, its backends, and one conformance suite for all of them.
//!
//! A store knows threads, records, index rows and leases, and nothing of what they mean. [`open`] makes one from a text:
//!
//! ```
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! use holdpoint_core::ThreadId;
//! use holdpoint_store::{Options, ThreadKey, open};
//!
//! let store = open("memory:", Options::default()).await.unwrap();
//! let thread = ThreadId::of_session("acme", "helper", "first");
//! let key = ThreadKey { tenant: "acme".into(), thread };
//! assert_eq!(store.load(&key).await, Ok(None));
//! # });
//! ```

mod admission;
mod backup;
mod cell;
mod clock;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod copy;
pub mod failpoint;
mod memory;
mod moving;
mod open;
mod options;
#[cfg(feature = "postgres")]
mod postgres;
mod sqlite;
mod store;
mod workers;

pub use backup::BackupError;
pub use cell::{Cell, CellChange, CellThen, SYSTEM_TENANT, Space};
pub use clock::{Clock, ManualClock, SystemClock};
pub use copy::{Copied, CopyError, End, Progress, Stage, abandon, copy, may_leave};
pub use memory::MemoryStore;
pub use moving::{Import, ImportedThread, KeptCell, KeptCells, Move, Part};
pub use open::{OpenError, discreet, open};
pub use options::Options;
#[cfg(feature = "postgres")]
pub use postgres::PostgresStore;
pub use sqlite::SqliteStore;
pub use store::*;
pub use workers::{Trade, workers};
