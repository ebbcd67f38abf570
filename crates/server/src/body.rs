//! Reading a request's body, strictly: what could be read in two ways is refused.

use std::time::Duration;

use axum::{
    body::Bytes,
    extract::{FromRequest, Request},
    http::header,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::problem::Problem;

/// How long sending a body may take: enough for the largest over a slow line, and not for a place held for ever.
const SENDING: Duration = Duration::from_secs(60);

/// A body of JSON, read strictly: no key twice, no number that would be rounded, no nesting without end.
#[derive(Debug)]
pub(crate) struct Body<T> {
    /// What it says.
    pub(crate) value: T,
    /// The same in its canonical spelling, by which a request is known again.
    pub(crate) canonical: String,
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        // A page of another site can send anything but this without being asked first, whatever it may read.
        let is_json = request
            .headers()
            .get(header::CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.split(';').next())
            .is_some_and(|value| value.trim().eq_ignore_ascii_case("application/json"));
        if !is_json {
            return Err(Problem::new(
                "unsupported_media_type",
                "send the body as JSON, with `Content-Type: application/json`",
            ));
        }
        let reading = tokio::time::timeout(SENDING, Bytes::from_request(request, state));
        let bytes = reading
            .await
            .map_err(|_| Problem::new("slow_body", "the body did not arrive in time"))?
            .map_err(|rejection| {
                if rejection.status() == axum::http::StatusCode::PAYLOAD_TOO_LARGE {
                    Problem::too_large()
                } else {
                    Problem::bad_body(rejection.body_text())
                }
            })?;
        let text = std::str::from_utf8(&bytes).map_err(Problem::bad_body)?;
        let text = if text.trim().is_empty() { "{}" } else { text };
        let parsed: Value = holdpoint_core::parse_strict(text).map_err(|bad| {
            if bad.is_too_deep() {
                Problem::new("too_deep", format!("invalid request body: {bad}"))
            } else {
                Problem::bad_body(bad)
            }
        })?;
        if !parsed.is_object() {
            return Err(Problem::bad_body("it must be a JSON object"));
        }
        let canonical = serde_json_canonicalizer::to_string(&parsed).map_err(Problem::bad_body)?;
        // With the place of what does not fit.
        let value = serde_path_to_error::deserialize(parsed).map_err(Problem::bad_body)?;
        Ok(Self { value, canonical })
    }
}
