//! The trait that every model has, whoever provides it.

use std::fmt::Debug;

use async_trait::async_trait;
use holdpoint_core::{Message, Span, ToolCall, ToolSpec};

/// What a model is asked: to say what comes next.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// What it is told first.
    pub system: Option<&'a str>,
    /// The conversation so far.
    pub messages: &'a [Message],
    /// What it may call.
    pub tools: &'a [ToolSpec],
    /// Which try of this turn it is; the first is 1.
    pub attempt: u32,
}

/// A piece of an answer that is still being given.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Delta {
    /// More text.
    Text(String),
}

/// A complete answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The text: all deltas together.
    pub text: String,
    /// The calls it asks for, with arguments exactly as it wrote them.
    pub calls: Vec<ToolCall>,
    /// What it cost.
    pub usage: Usage,
}

/// What one turn cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens that were read.
    pub input_tokens: u64,
    /// Tokens that were written.
    pub output_tokens: u64,
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
}
