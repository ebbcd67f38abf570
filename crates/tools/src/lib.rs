//! What an agent may do: the [`Tool`] trait, tools that are programs, and the watchdog those run under.
//!
//! A tool is code of the embedding program, kept in a [`Registry`], or a command that is started for each call.
//! [`instantiate`] turns a definition's tool into something that can be called. A call never errs: it ends as an
//! [`Outcome`](holdpoint_core::Outcome), which says whether it had an effect, had none, or nobody knows.
//!
//! A program that runs command tools calls [`enter`] first in its `main`, because the same executable is started again
//! as the watchdog of every call:
//!
//! ```
//! holdpoint_tools::enter();
//! // … the rest of `main`.
//! ```

mod command;
mod registry;
mod tool;
mod watchdog;

pub use registry::{NoSuchTool, Registry, instantiate};
pub use tool::{Call, Tool};
pub use watchdog::{Watchdog, enter};
