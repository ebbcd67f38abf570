//! The trait that every model has, whoever provides it.

use std::{fmt::Debug, time::Duration};

use async_trait::async_trait;
use holdpoint_core::{Carried, Message, Sampling, Span, ToolCall, ToolSpec, Usage};

/// What a model is asked: to say what comes next.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// What it is told first.
    pub system: Option<&'a str>,
    /// The conversation so far.
    pub messages: &'a [Message],
    /// What it may call.
    pub tools: &'a [ToolSpec],
    /// How it is asked.
    pub sampling: &'a Sampling,
    /// Which try of this turn it is; the first is 1.
    pub attempt: u32,
}

/// A piece of an answer that is still being given.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Delta {
    /// More text.
    Text(String),
    /// Something that is no text: it is still at work.
    Alive,
}

/// A complete answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reply {
    /// The text: all deltas together.
    pub text: String,
    /// The calls it asks for, with arguments exactly as it wrote them.
    pub calls: Vec<ToolCall>,
    /// Whether it said all that it wanted to.
    pub end: End,
    /// What it cost.
    pub usage: Usage,
    /// Who answered, as the provider calls it; empty where that is nobody's business.
    pub model: String,
    /// What it wants to be given back with this message.
    pub carried: Option<Carried>,
}

/// How an answer ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum End {
    /// It said all that it wanted to.
    #[default]
    Said,
    /// It came to the limit of what it may write. Nobody knows what it would have said further; a call at the end of it may
    /// lack its arguments and look complete.
    CutOff,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// It took too long.
    #[error("the model did not answer in time")]
    Timeout,
    /// It cannot be reached, or broke off. Another try may help.
    #[error("the model is unavailable: {reason}")]
    Unavailable {
        /// What was seen.
        reason: String,
    },
    /// It was asked too much. Another try helps later.
    #[error("the model is asked too often: {reason}")]
    RateLimited {
        /// When to try again, if it said so.
        retry_after: Option<Span>,
        /// What was seen.
        reason: String,
    },
    /// It will not answer this, however often it is asked.
    #[error("the model refused the request: {reason}")]
    Rejected {
        /// What was seen.
        reason: String,
    },
    /// Nobody here may ask it: the key is missing or wrong, or there is no such model. Another model may answer.
    #[error("the model cannot be asked: {reason}")]
    Barred {
        /// What was seen.
        reason: String,
    },
    /// Its provider keeps the answer back. Another model may answer.
    #[error("the model's provider keeps the answer back: {reason}")]
    Withheld {
        /// What was seen.
        reason: String,
    },
}

/// Something that continues a conversation.
#[async_trait]
pub trait Model: Send + Sync + Debug {
    /// Says what comes next. Text is handed to `deltas` as it arrives; the reply at the end is what counts.
    ///
    /// # Errors
    ///
    /// The [`Failure`] says whether another try may help. Deltas that came before it are void.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives the turn up; it can be asked again.
    async fn turn(
        &self,
        request: Request<'_>,
        deltas: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Reply, Failure>;

    /// For how long it may send nothing, if it sees to that itself: then nobody else gives it up before.
    fn silence(&self) -> Option<Duration> {
        None
    }
}
