//! What an agent may do: the [`Tool`] trait, tools that are programs, the watchdog those run under, and tools that
//! are HTTP requests.
//!
//! A tool is code of the embedding program, kept in a [`Registry`], a command that is started for each call, or a
//! request that is sent for each.
//! [`instantiate`] turns a definition's tool into something that can be called. A call never errs: it ends as an
//! [`Outcome`](holdpoint_core::Outcome), which says whether it had an effect, had none, or nobody knows.
//!
//! A tool is plain, and then a call of it is one effect; or it is [stepped](SteppedTool): it takes steps, each an effect of
//! its own, and may ask a person in between.
//!
//! A program that runs command tools calls [`enter`] first in its `main`, because the same executable is started again
//! as the watchdog of every call:
//!
//! ```
//! holdpoint_tools::enter();
//! // … the rest of `main`.
//! ```

mod builtin;
mod checker;
mod command;
mod confine;
mod entry;
mod function;
mod http;
mod lookup;
mod mcp;
mod message;
mod question;
mod quote;
mod registry;
mod step_context;
mod stepped_command;
mod stepped_tool;
mod steps;
mod tool;
mod watchdog;

pub use builtin::{kept_path, no_such_kept, read_kept};
pub use checker::{Checker, NoSuchChecker, checker, checker_of};
pub use function::function;
pub use http::{NotReached, Outbound, Patience};
pub use question::{Question, approved, reason, unanswerable};
pub use registry::{NoSuchTool, Registry, instantiate, offers};
pub use step_context::{StepContext, StepFailed, StepTrouble};
pub use stepped_tool::SteppedTool;
pub use steps::{Begun, SharedSteps, StepRefused, Steps};
pub use tool::{Call, Changed, Tool};
pub use watchdog::{Watchdog, enter};
