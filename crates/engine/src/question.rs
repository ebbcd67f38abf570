//! A question of any program, and the answer to it, in the form that doors show and take.
//!
//! The names and forms in JSON are those of Go's `hitl` packages: times in RFC 3339, `timeout` in nanoseconds, what is empty left
//! out. What is here are copies: changing one changes nothing else.

mod interrupt;
mod mending;
mod options;
mod response;
mod wire;

pub use interrupt::{AgentAsks, AskedAction, Interrupt};
pub(crate) use mending::each_problem;
pub use mending::{Mending, Place};
pub use options::InterruptOptions;
pub use response::{Reply, Response};
pub(crate) use wire::rfc3339;

/// What was given does not fit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Invalid(String);

impl Invalid {
    fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }

    /// What does not fit, and what would.
    #[must_use]
    pub fn into_reason(self) -> String {
        self.0
    }
}
