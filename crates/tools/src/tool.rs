//! The trait that every tool has, whatever runs it.

use std::{fmt::Debug, time::Duration};

use async_trait::async_trait;
use holdpoint_core::{Basis, Lookup, McpOffer, McpServer, Outcome, Params, Preview};

use crate::SharedSteps;

/// One call, as a tool gets it.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The tool's name.
    pub tool: &'a str,
    /// The arguments, in their one canonical spelling.
    pub args: &'a Params,
    /// The idempotency key: the same for every attempt at one action, and for its lookup and compensation.
    pub key: &'a str,
    /// The lease epoch of the driver that makes the call. An external system may refuse one that is lower than it has seen.
    pub epoch: u64,
    /// How long until the deadline.
    pub remaining: Duration,
    /// The step that a lookup or a compensation is about.
    pub step: Option<&'a str>,
    /// Whose call it is: those of one conversation have the same. What is kept from one call to another is kept apart by it.
    pub scope: &'a str,
    /// What the preview that was shown was made from. A tool that gives one with its previews does nothing where the state
    /// is another by now.
    pub basis: Option<&'a Basis>,
}

/// What a server offers by now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The server.
    pub server: McpServer,
    /// All of its tools.
    pub offers: Vec<McpOffer>,
}

/// Something that an agent can call.
///
/// # Cancel safety
///
/// Dropping the future of a call abandons it: a command is killed, code just stops at its next `.await`. Whether the
/// effect happened is unknown then.
#[async_trait]
pub trait Tool: Send + Sync + Debug {
    /// Makes the call.
    ///
    /// Only what certainly had no effect may end as [`Outcome::Failed`]; when in doubt it is [`Outcome::Unknown`].
    async fn call(&self, call: Call<'_>) -> Outcome;

    /// What the call would do, for the person who is asked about it. It has no effect.
    ///
    /// # Errors
    ///
    /// The call cannot work, and why, in words for the model: nobody is asked about it then.
    async fn preview(&self, call: Call<'_>) -> Result<Option<Preview>, String> {
        let _ = call;
        Ok(None)
    }

    /// Asked right before a call: what the tool's server offers by now, if that is not what the definition says any more. Nothing
    /// is called then.
    async fn changed(&self, call: Call<'_>) -> Option<Changed> {
        let _ = call;
        None
    }

    /// Enters a stepped tool, for the first time or again.
    async fn enter(&self, call: Call<'_>, steps: SharedSteps) -> Outcome {
        let _ = (call, steps);
        Outcome::Failed {
            error: "this tool takes no steps".to_owned(),
        }
    }

    /// Asks whether a call that was made under this key took effect.
    async fn lookup(&self, call: Call<'_>) -> Lookup {
        let _ = call;
        no_lookup()
    }

    /// Undoes a call that was made under this key.
    async fn compensate(&self, call: Call<'_>) -> Outcome {
        let _ = call;
        no_compensation()
    }
}

pub(crate) fn no_lookup() -> Lookup {
    Lookup::Unknown {
        reason: "this tool has no lookup".to_owned(),
    }
}

pub(crate) fn no_compensation() -> Outcome {
    Outcome::Failed {
        error: "this tool has no compensation".to_owned(),
    }
}
