//! What can go wrong, by what the caller can do about it.

use holdpoint_core::{
    Actor, BadAnswer, Damaged, InterruptId, InterruptStatus, NotAsKept, Refusal, Timestamp,
};
use holdpoint_models::NoSuchModel;
use holdpoint_store::{AppendError, LeaseError, Unavailable};
use holdpoint_tools::NoSuchTool;

use crate::{Marked, question::Invalid};

/// Why something could not be done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It may not happen. Nothing was changed.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The question was answered, or withdrawn, before.
    #[error("interrupt `{interrupt}` is already {}, by {by}", .status.as_str())]
    AlreadyDecided {
        /// The question.
        interrupt: InterruptId,
        /// How it was closed.
        status: InterruptStatus,
        /// By whom.
        by: Actor,
        /// The token by which, where it was by one.
        token: Option<String>,
    },
    /// The token was used before.
    #[error("the token was used before: it answered interrupt `{interrupt}`")]
    TokenUsed {
        /// The question that it answered.
        interrupt: InterruptId,
    },
    /// The request came before, and this is what it led to.
    #[error("the request was made before")]
    Replayed(Box<Marked>),
    /// Another request came before under the same mark.
    #[error("another request was made under the same key")]
    OtherRequest,
    /// Several questions are pending, and the answer does not say which one it is for.
    #[error("several interrupts are pending: {}", list(.pending))]
    Ambiguous {
        /// What is pending.
        pending: Vec<InterruptId>,
    },
    /// Nothing is pending that could be answered.
    #[error("nothing is pending")]
    NothingPending,
    /// The answer cannot be read.
    #[error("the answer cannot be read: {0}")]
    BadAnswer(#[from] BadAnswer),
    /// The answer does not say what the question must be told.
    #[error("the answer does not fit: {0}")]
    BadReply(Invalid),
    /// Nobody could answer this question.
    #[error("the question cannot be asked: {0}")]
    BadQuestion(String),
    /// A tool of the definition cannot be used here.
    #[error(transparent)]
    Tool(#[from] NoSuchTool),
    /// The model of the definition cannot be used here.
    #[error(transparent)]
    Model(#[from] NoSuchModel),
    /// The definition itself is not usable.
    #[error("the definition of `{agent}` cannot be used: {reason}")]
    Definition {
        /// The agent.
        agent: String,
        /// Why.
        reason: String,
    },
    /// An agent that asks people cannot run on a store that forgets.
    #[error("agent `{agent}` asks people, but this store forgets everything when the process ends")]
    VolatileStore {
        /// The agent.
        agent: String,
    },
    /// What is stored cannot be read.
    #[error("what is stored cannot be read: {0}")]
    Damaged(#[from] Damaged),
    /// A result that was kept apart is not there any more, or was changed.
    #[error(transparent)]
    NotAsKept(#[from] NotAsKept),
    /// This store can be read but not driven from here.
    #[error("this store cannot be driven from here: {0}")]
    CannotDrive(String),
    /// The store is a backup that nobody has adopted. Nothing was changed.
    #[error(
        "this store is a backup of {}, and nobody has adopted it: what it holds may have gone on elsewhere since",
        crate::adopt::spelt(*.made_at)
    )]
    NotAdopted {
        /// When the backup was made.
        made_at: Timestamp,
    },
    /// The store could not be reached, read or written.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

impl Error {
    /// The stable code that doors show.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Refused(refusal) => refusal.code(),
            Self::AlreadyDecided { .. } => "already_decided",
            Self::TokenUsed { .. } => "token_used",
            Self::Replayed(_) => "replayed",
            Self::OtherRequest => "idempotency_mismatch",
            Self::Ambiguous { .. } => "ambiguous",
            Self::NothingPending => "not_pending",
            Self::BadAnswer(_) | Self::BadReply(_) => "bad_answer",
            Self::BadQuestion(_) => "bad_question",
            Self::Tool(_) => "tool_unusable",
            Self::Model(_) => "model_unusable",
            Self::Definition { .. } => "bad_definition",
            Self::VolatileStore { .. } => "volatile_store",
            Self::Damaged(_) | Self::NotAsKept(_) => "damaged",
            Self::CannotDrive(_) => "cannot_drive",
            Self::NotAdopted { .. } => "not_adopted",
            Self::Unavailable(_) => "store_unavailable",
        }
    }
}

fn list(ids: &[InterruptId]) -> String {
    let ids = ids.iter().map(|id| format!("`{id}`"));
    ids.collect::<Vec<_>>().join(", ")
}

/// What an append can say once conflicts and fences have been dealt with.
pub(crate) fn from_append(error: AppendError) -> Error {
    if let AppendError::CannotDrive(reason) = error {
        return Error::CannotDrive(reason);
    }
    if let AppendError::Unavailable(error) = error {
        return error.into();
    }
    Unavailable::new(error.to_string()).into()
}

/// What a lease can say once conflicts and fences have been dealt with.
pub(crate) fn from_lease(error: LeaseError) -> Error {
    if let LeaseError::CannotDrive(reason) = error {
        return Error::CannotDrive(reason);
    }
    if let LeaseError::Unavailable(error) = error {
        return error.into();
    }
    Unavailable::new(error.to_string()).into()
}
