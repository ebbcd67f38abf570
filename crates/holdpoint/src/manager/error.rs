//! What can go wrong, by what the caller can do about it.

use holdpoint_core::{Actor, InterruptId, InterruptStatus};
use holdpoint_engine::{Error, question::Invalid};

/// Why something could not be done with an interrupt, or why there is no response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ManagerError {
    /// What was given does not fit. Nothing was changed.
    #[error("{reason}")]
    InvalidArgument {
        /// What does not fit, and what would.
        reason: String,
    },
    /// It is not there, or not for this tenant to see.
    #[error("there is no interrupt `{id}`")]
    NotFound {
        /// The interrupt.
        id: InterruptId,
    },
    /// It is closed: someone else was first, or nobody in time.
    #[error("interrupt `{id}` is already {}, by {by}", .status.as_str())]
    AlreadyFinal {
        /// The interrupt.
        id: InterruptId,
        /// How it was closed.
        status: InterruptStatus,
        /// By whom.
        by: Actor,
    },
    /// It was canceled, so there is no response.
    #[error("interrupt `{id}` was canceled, by {by}")]
    Canceled {
        /// The interrupt.
        id: InterruptId,
        /// By whom.
        by: Actor,
    },
    /// Nobody answered in time, so there is no response.
    #[error("nobody answered interrupt `{id}` in time")]
    Timeout {
        /// The interrupt.
        id: InterruptId,
    },
    /// The node has another question pending. Cancel that one, or wait for it.
    #[error("the node waits for an answer to another question, `{pending}`")]
    NodeBusy {
        /// What is pending.
        pending: InterruptId,
    },
    /// The principal may not decide.
    #[error("{by} may not decide: an agent never decides")]
    Forbidden {
        /// Who tried.
        by: String,
    },
    /// The engine or its store failed. What was pending is pending still, unless the answer was committed: try again.
    #[error(transparent)]
    Engine(#[from] Error),
}

impl From<Invalid> for ManagerError {
    fn from(invalid: Invalid) -> Self {
        Self::invalid(invalid.into_reason())
    }
}

impl ManagerError {
    /// The stable code that doors show.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::InvalidArgument { .. } => "invalid_argument",
            Self::NotFound { .. } => "not_found",
            Self::AlreadyFinal { .. } => "already_decided",
            Self::Canceled { .. } => "canceled",
            Self::Timeout { .. } => "timeout",
            Self::NodeBusy { .. } => "interrupt_pending",
            Self::Forbidden { .. } => "forbidden",
            Self::Engine(error) => error.code(),
        }
    }

    pub(super) fn invalid(reason: impl Into<String>) -> Self {
        Self::InvalidArgument {
            reason: reason.into(),
        }
    }
}
