//! Interrupts for any program: one that has no agent here asks a person, waits, and goes on.
//!
//! [`InterruptManager`] creates an interrupt, tells handlers of it, and waits. Nothing of it lives in this process: an
//! interrupt is a thread in the engine's store, so it outlives a restart, is seen and resolved by any process on the same
//! store, and passes the same gates as the questions of agents. There is no second store to keep in step: what other
//! packages call save, load, list and update is [`create_pending`](InterruptManager::create_pending),
//! [`get`](InterruptManager::get), [`list`](InterruptManager::list) and [`resolve`](InterruptManager::resolve), each of
//! them one atomic commit or one read.
//!
//! ```
//! use holdpoint::{Engine, InterruptKind, Kit, Options, Principal};
//! use holdpoint::manager::{InterruptManager, InterruptOptions, Response};
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! let store = holdpoint::open("memory:", Default::default()).await?;
//! let engine = Engine::new(store, Kit::new(), Options::default(), None);
//! let manager = InterruptManager::new(engine, Principal::local("deployer"));
//!
//! let question = InterruptOptions::new(InterruptKind::Approval, "release-7", "deploy").title("Deploy release 7?");
//! let interrupt = manager.create_pending(question).await?;
//! manager.resolve(interrupt.id, Response::approve().by("ann")).await?;
//! assert!(manager.wait(interrupt.id).await?.is_approved());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```

mod error;
mod handler;
mod interrupt_manager;
mod outcome;
mod page;

pub use error::ManagerError;
pub use handler::{HandlerError, HandlerFailure, InterruptHandler};
pub use holdpoint_engine::question::{Interrupt, InterruptOptions, Response};
pub use interrupt_manager::InterruptManager;
pub use page::Page;
