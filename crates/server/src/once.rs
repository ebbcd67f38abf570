//! `Idempotency-Key`: a request that is sent twice is done once.

use axum::http::HeaderMap;
use holdpoint_core::{Digest, Principal, Span};
use holdpoint_engine::{Mark, Request};

use crate::problem::Problem;

/// The header.
pub(crate) const HEADER: &str = "idempotency-key";

/// How long a request is known again.
const KEPT: Span = Span::from_secs(24 * 60 * 60);

/// The longest key.
pub(crate) const MAX_KEY: usize = 255;

/// A request by this principal; with a mark, where the client named one.
///
/// # Errors
///
/// The key is none.
pub(crate) fn request(
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
