//! `Idempotency-Key`: a request that is sent twice is done once.

use axum::{
    RequestExt as _,
    extract::{FromRequest, OriginalUri},
    http::{HeaderMap, HeaderValue},
    response::Response,
};
use holdpoint_core::{Digest, Principal, Span};
use holdpoint_engine::{Mark, Request};
use serde::de::DeserializeOwned;

use crate::{body::Body, caller::Caller, problem::Problem};

/// The header.
pub(crate) const HEADER: &str = "idempotency-key";

/// How long a request is known again.
const KEPT: Span = Span::from_secs(24 * 60 * 60);

/// The longest key.
pub(crate) const MAX_KEY: usize = 255;

/// What a caller sent that begins or decides something.
#[derive(Debug)]
pub(crate) struct Sent<T> {
    /// Who.
    pub(crate) caller: Caller,
    /// What it says.
    pub(crate) value: T,
    /// The same in its canonical spelling.
    pub(crate) canonical: String,
    /// By whom, and by what it is known again.
    pub(crate) request: Request,
}

impl<T> Sent<T> {
    /// What it says, and the rest of it.
    pub(crate) fn taken(self) -> (T, Sent<()>) {
        let rest = Sent {
            caller: self.caller,
            value: (),
            canonical: self.canonical,
            request: self.request,
        };
        (self.value, rest)
    }
}

/// Says where a request was not done again.
pub(crate) fn replayed(mut response: Response, replayed: bool) -> Response {
    if replayed {
        response
            .headers_mut()
            .insert("idempotency-replayed", HeaderValue::from_static("true"));
    }
    response
}

impl<S: Send + Sync, T: DeserializeOwned + 'static> FromRequest<S> for Sent<T> {
    type Rejection = Problem;

    async fn from_request(mut request: axum::extract::Request, state: &S) -> Result<Self, Problem> {
        let caller: Caller = request.extract_parts_with_state(state).await?;
        let OriginalUri(uri) = request
            .extract_parts()
            .await
            .unwrap_or_else(|never| match never {});
        let headers = request.headers().clone();
        let Body { value, canonical } = Body::from_request(request, state).await?;
        let request = self::request(&caller.principal, &headers, uri.path(), &canonical)?;
        Ok(Self {
            caller,
            value,
            canonical,
            request,
        })
    }
}

/// A request by this principal; with a mark, where the client named one.
///
/// # Errors
///
/// The key is none.
fn request(
    by: &Principal,
    headers: &HeaderMap,
    path: &str,
    body: &str,
) -> Result<Request, Problem> {
    let Some(value) = headers.get(HEADER) else {
        return Ok(by.into());
    };
    let bad = || {
        Problem::new(
            "bad_idempotency_key",
            format!("`Idempotency-Key` must be 1 to {MAX_KEY} visible ASCII characters"),
        )
    };
    let key = value.to_str().map_err(|_| bad())?;
    if !(1..=MAX_KEY).contains(&key.len()) || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(bad());
    }
    let actor = by.actor.to_string();
    let fingerprint = Digest::of(format!("{path}\n{body}").as_bytes());
    Ok(Request {
        by: by.clone(),
        mark: Some(Mark::new(&[&actor, key], fingerprint, KEPT)),
    })
}
