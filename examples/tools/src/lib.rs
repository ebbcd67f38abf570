//! What the example programs share: how a command tool of Holdpoint is spoken to.
//!
//! Arguments arrive as a JSON object on stdin, the idempotency key and the epoch in the environment. A result is printed
//! to stdout, with exit code 0. `{"error": …}` and exit code 1 promise that nothing was done, so that the model may be
//! told; any other end means that nobody knows, and Holdpoint looks it up or asks a person.

mod call;
mod files;
mod ledger;

pub use call::{Call, Ended, environment, finish};
pub use files::{Files, Operation};
pub use ledger::{Ledger, Tally};
