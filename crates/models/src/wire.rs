//! The APIs that providers speak: what is sent, and how the stream that comes back is read.

mod anthropic;
mod chat;
mod responses;

use holdpoint_core::{Api, Provider};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{Delta, Failure, Reply, Request, sse::Event};

/// Whether a stream goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    More,
    /// Nothing more is waited for.
    Over,
}

/// Reads the stream of one answer.
pub(crate) trait Reading: Send {
    /// Takes an event.
    ///
    /// # Errors
    ///
    /// It says that there is no answer, or cannot be read.
    fn take(
        &mut self,
        event: &Event,
        deltas: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Flow, Failure>;

    /// Whether everything that belongs to the answer was there.
    fn is_whole(&self) -> bool;

    /// The answer.
    ///
    /// # Errors
    ///
    /// There is none: it broke off, or is kept back.
    fn reply(self: Box<Self>) -> Result<Reply, Failure>;
}

/// What is asked of a model, and as which reference it is known.
#[derive(Clone, Copy)]
pub(crate) struct Question<'a> {
    pub(crate) provider: &'a Provider,
    /// As the provider calls it.
    pub(crate) model: &'a str,
    pub(crate) reference: &'a str,
    pub(crate) request: Request<'a>,
}

impl Question<'_> {
    /// The path of the API, the body of the request, and who reads the answer.
    pub(crate) fn written(self) -> Result<(&'static str, Value, Box<dyn Reading>), Failure> {
        Ok(match self.provider.api {
            Api::OpenAiChat => ("/chat/completions", chat::body(self), chat::reading()),
            Api::OpenAiResponses => (
                "/responses",
                responses::body(self),
                responses::reading(self.reference),
            ),
            Api::Anthropic => (
                "/v1/messages",
                anthropic::body(self)?,
                anthropic::reading(self.reference),
            ),
        })
    }
}

/// The data of an event.
fn data<T: DeserializeOwned>(event: &Event) -> Result<T, Failure> {
    serde_json::from_str(&event.data).map_err(|error| Failure::Unavailable {
        reason: format!("the stream has an event that cannot be read: {error}"),
    })
}

fn broke_off() -> Failure {
    Failure::Unavailable {
        reason: "the stream ended before the answer did".to_owned(),
    }
}
