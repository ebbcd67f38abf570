//! What a stepped tool does while it is entered: it takes steps, asks, sleeps.
//!
//! Entering a stepped tool has no effect of its own, and may happen any number of times. What it did before is given back
//! by name: a step that has ended is not taken again, a question that was answered gets its answer at once.

use std::{fmt::Debug, sync::Arc};

use async_trait::async_trait;
use holdpoint_core::{Effect, Memo, Outcome, Params, Recalled, StepEnd, Suspension};

/// The other side of a stepped tool: whoever keeps its journal.
#[async_trait]
pub trait Steps: Send + Sync + Debug {
    /// What this call has behind it, as of when it was entered.
    fn memo(&self) -> &Memo;

    /// Wants to take a step. Nothing may be done for it before this has returned.
    ///
    /// # Errors
    ///
    /// The step may not be taken: its name stands for another one, or is open.
    ///
    /// # Cancel safety
    ///
    /// Never completes where nothing may start now: the entry is dropped then.
    async fn begin(&self, name: &str, effect: Effect, args: Params) -> Result<Begun, StepRefused>;

    /// Says how a step ended that was begun. The tool goes on once that is recorded.
    ///
    /// # Errors
    ///
    /// No such step is open.
    async fn end(&self, name: &str, outcome: Outcome) -> Result<(), StepRefused>;

    /// Waits for an answer or a time. It completes only where that is there already; otherwise the entry is dropped, and
    /// the tool is entered again later.
    ///
    /// # Errors
    ///
    /// The name stands for something else.
    async fn wait(&self, name: &str, on: Suspension) -> Result<Recalled, StepRefused>;
}

/// Whether a step is to be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begun {
    /// It is: its record is committed.
    Run {
        /// The key under which every attempt at it is made.
        key: String,
    },
    /// It has ended before, like this.
    Ended(StepEnd),
}

/// Why a stepped tool may not do what it wants. It says so to whoever wrote the tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StepRefused(pub String);

/// Shared by everything that a stepped tool does at once.
pub type SharedSteps = Arc<dyn Steps>;
