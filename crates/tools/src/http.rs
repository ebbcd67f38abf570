//! Tools that are HTTP requests.
//!
//! What the server answers decides what is known. A 2xx is done, and its body is the result. Most of 4xx is a refusal, and
//! promises that there was no effect. Whatever was certainly never sent had none either: a name that does not resolve, a
//! connection that was not made, an address that tools may not talk to, a secret that is not set. After anything else
//! nobody knows. Redirects are not followed, and proxies are not used.

#[cfg(test)]
mod canary;
mod exchange;
mod fetcher;
mod guard;
mod outbound;
mod secret;

use std::{fmt, time::Duration};

use async_trait::async_trait;
use holdpoint_core::{Effect, HttpRequest, Lookup, Outcome, ToolSpec};
use reqwest::StatusCode;

use crate::{
    Call, Tool,
    lookup::Finding,
    quote::quote,
    tool::{no_compensation, no_lookup},
};
pub(crate) use exchange::explain;
use exchange::{Answer, Exchange, Extent, Line, MAX_BODY};
pub(crate) use fetcher::{Fetched, Fetcher, NotFetched};
pub use outbound::{NotReached, Outbound, Patience};
pub(crate) use secret::named as held_secret;

/// How many characters of a refusal the model gets.
const REFUSAL_CHARS: usize = 4_000;
/// How long a connection may take to be made, at most.
const CONNECT: Duration = Duration::from_secs(10);

/// A tool that is a request, with the requests that look its calls up and undo them.
#[derive(Debug)]
pub(crate) struct HttpTool {
    effect: Effect,
    request: Line,
    lookup: Option<Line>,
    compensate: Option<Line>,
}

/// Why a request cannot be sent, ever.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unsendable {
    /// `http`, `lookup` or `compensate`.
    pub(crate) hook: &'static str,
    pub(crate) reason: String,
}

impl HttpTool {
    pub(crate) fn new(
        spec: &ToolSpec,
        request: &HttpRequest,
        lookup: Option<&HttpRequest>,
        compensate: Option<&HttpRequest>,
    ) -> Result<Self, Unsendable> {
        // A connection that is still being made at the deadline would leave in doubt what is certain.
        let connect = CONNECT.min(Duration::from(spec.timeout) / 2);
        let line = |hook, request: &HttpRequest| {
            Line::new(request.clone(), connect).map_err(|reason| Unsendable { hook, reason })
        };
        Ok(Self {
            effect: spec.effect,
            request: line("http", request)?,
            lookup: lookup.map(|request| line("lookup", request)).transpose()?,
            compensate: compensate
                .map(|request| line("compensate", request))
                .transpose()?,
        })
    }
}

#[async_trait]
impl Tool for HttpTool {
    async fn call(&self, call: Call<'_>) -> Outcome {
        outcome(self.request.send(call, call.key).await, self.effect)
    }

    async fn lookup(&self, call: Call<'_>) -> Lookup {
        match &self.lookup {
            Some(line) => found(line.send(call, call.key).await),
            None => no_lookup(),
        }
    }

    async fn compensate(&self, call: Call<'_>) -> Outcome {
        match &self.compensate {
            Some(line) => {
                // To a server that acts once per key, the same key would be the same request.
                let undo = format!("{}-undo", call.key);
                outcome(line.send(call, &undo).await, self.effect)
            }
            None => no_compensation(),
        }
    }
}

/// What a status says about the effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Says {
    Done,
    /// It was refused: nothing was done.
    Refused,
    /// It was sent elsewhere: nothing was done here.
    Elsewhere,
    /// It was not even looked at. Sending it again is right where that does no harm.
    NotNow,
    /// It may be done, or not, or later.
    Nothing,
}

pub(crate) fn says(status: StatusCode) -> Says {
    match status.as_u16() {
        200..=299 => Says::Done,
        // Of the redirects, these ask for the same request at another place. After 302 and 303 many servers have acted.
        301 | 307 | 308 => Says::Elsewhere,
        425 | 429 => Says::NotNow,
        // 408: nobody knows how much of it was read. 409: how many servers say that the same key is being worked on.
        408 | 409 => Says::Nothing,
        400..=499 => Says::Refused,
        _ => Says::Nothing,
    }
}

fn outcome(exchange: Exchange, effect: Effect) -> Outcome {
    let answer = match exchange {
        Exchange::NotSent(reason) => {
            return Outcome::Failed {
                error: format!("not sent: {reason}"),
            };
        }
        Exchange::Lost(reason) => return Outcome::Unknown { reason },
        Exchange::Answered(answer) => answer,
    };
    match (says(answer.status), effect) {
        (Says::Done, _) => done(answer),
        (Says::Refused, _) | (Says::NotNow, Effect::Write) => Outcome::Failed {
            error: refusal(&answer),
        },
        (Says::Elsewhere, _) => Outcome::Failed {
            error: format!(
                "{}: the server sends the request elsewhere, and redirects are not followed",
                Shown(answer.status)
            ),
        },
        (Says::NotNow, Effect::Read | Effect::Idempotent) | (Says::Nothing, _) => {
            Outcome::Unknown {
                reason: doubt(&answer),
            }
        }
    }
}

fn done(answer: Answer) -> Outcome {
    match answer.extent {
        Extent::Whole => Outcome::Done {
            content: answer.text,
        },
        Extent::TooLong => Outcome::Done {
            content: format!(
                "{}\n[cut off here: the response is longer than {MAX_BODY} bytes]",
                answer.text
            ),
        },
        Extent::Broken(reason) => Outcome::Unknown {
            reason: format!(
                "{}, but the response broke off: {reason}",
                Shown(answer.status)
            ),
        },
    }
}

/// What the model gets: how much of the body arrived does not change that it was refused.
fn refusal(answer: &Answer) -> String {
    let text = answer.text.trim();
    let status = Shown(answer.status);
    if text.is_empty() {
        return status.to_string();
    }
    match text.char_indices().nth(REFUSAL_CHARS) {
        None => format!("{status}: {text}"),
        Some((end, _)) => format!("{status}: {} …", &text[..end]),
    }
}

fn doubt(answer: &Answer) -> String {
    let status = Shown(answer.status);
    let detail = if answer.status.is_redirection() {
        ": redirects are not followed"
    } else {
        ""
    };
    let quoted = quote(&answer.text);
    if quoted.is_empty() {
        format!("{status}{detail}")
    } else {
        format!("{status}{detail}; body: {quoted}")
    }
}

fn found(exchange: Exchange) -> Lookup {
    let unknown = |reason: String| Lookup::Unknown { reason };
    let answer = match exchange {
        Exchange::NotSent(reason) => return unknown(format!("the lookup was not sent: {reason}")),
        Exchange::Lost(reason) => return unknown(format!("the lookup: {reason}")),
        Exchange::Answered(answer) => answer,
    };
    if answer.status == StatusCode::NOT_FOUND {
        return Lookup::NotFound;
    }
    if !answer.status.is_success() {
        return unknown(format!("the lookup was answered with {}", doubt(&answer)));
    }
    let status = Shown(answer.status);
    match answer.extent {
        Extent::Whole => Finding::read(&answer.text).unwrap_or_else(|why| {
            unknown(format!(
                "the lookup was answered with {status}, and {}",
                why.of("the body")
            ))
        }),
        Extent::TooLong => unknown(format!(
            "the lookup was answered with {status}, and the body is longer than {MAX_BODY} bytes"
        )),
        Extent::Broken(reason) => unknown(format!(
            "the lookup was answered with {status}, but the response broke off: {reason}"
        )),
    }
}

/// A status as people read it.
struct Shown(StatusCode);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HTTP {}", self.0.as_u16())?;
        match self.0.canonical_reason() {
            Some(reason) => write!(f, " {reason}"),
            None => Ok(()),
        }
    }
}
