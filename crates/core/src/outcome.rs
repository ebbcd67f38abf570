//! How a call ended, as far as is known.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How one attempt at a call ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Outcome {
    /// It did what it was asked to.
    Done {
        /// What the model gets.
        content: String,
    },
    /// It failed, and it is certain that it had no effect.
    Failed {
        /// What the model gets.
        error: String,
    },
    /// Nobody knows whether it had an effect: a time-out, a signal, a lost connection.
    Unknown {
        /// What was seen.
        reason: String,
    },
}

impl Outcome {
    /// It did what it was asked to, and this is what the model gets.
    pub fn done(content: impl Into<String>) -> Self {
        Self::Done {
            content: content.into(),
        }
    }

    /// It failed with this error, and it is certain that it had no effect.
    pub fn failed(error: impl Into<String>) -> Self {
        Self::Failed {
            error: error.into(),
        }
    }

    /// Nobody knows whether it had an effect; this was seen.
    pub fn unknown(reason: impl Into<String>) -> Self {
        Self::Unknown {
            reason: reason.into(),
        }
    }
}

/// What an external system says of a call that was made under a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Lookup {
    /// The effect is there.
    Committed {
        /// Its evidence; what the model gets as the result.
        #[serde(default)]
        receipt: Value,
    },
    /// The effect is not there.
    NotFound,
    /// A part of the effect is there.
    Partial {
        /// Its evidence.
        #[serde(default)]
        receipt: Value,
    },
    /// The external system does not know, or could not be asked.
    Unknown {
        /// What was seen.
        reason: String,
    },
}
