//! Every answer that is not what was asked for: one shape, one table of codes.

use axum::{
    Json,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use holdpoint_engine::Error;
use serde::Serialize;
use serde_json::Value;

/// What is wrong, for people and for programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Problem {
    /// For people.
    #[schema(example = "there is no such run")]
    pub error: String,
    /// For programs; it stays the same. The documentation has a page for each.
    #[schema(example = "not_found")]
    pub code: &'static str,
    /// What a program may want to know besides.
    #[schema(value_type = Object)]
    pub details: Value,
}

/// The codes there are, with their statuses. Each has a section in `docs/errors.md`.
pub const CODES: &[(&str, u16)] = &[
    ("agent_not_found", 404),
    ("already_decided", 409),
    ("ambiguous", 422),
    ("bad_answer", 422),
    ("bad_cursor", 400),
    ("bad_definition", 503),
    ("bad_event_id", 400),
    ("bad_idempotency_key", 400),
    ("bad_question", 422),
    ("bad_request", 400),
    ("bad_token", 403),
    ("batch_too_large", 422),
    ("beyond_its_tool", 409),
    ("cannot_drive", 503),
    ("damaged", 500),
    ("expired", 409),
    ("forbidden", 403),
    ("foreign_origin", 403),
    ("idempotency_mismatch", 422),
    ("internal", 500),
    ("interrupt_pending", 409),
    ("issuer_unavailable", 503),
    ("just_answered", 409),
    ("method_not_allowed", 405),
    ("misdirected", 421),
    ("misfit", 422),
    ("model_unusable", 503),
    ("no_pending_interrupt", 409),
    ("no_public_url", 503),
    ("no_token_keys", 503),
    ("not_adopted", 503),
    ("not_forkable", 409),
    ("not_found", 404),
    ("not_interruptable", 404),
    ("not_pending", 409),
    ("params_changed", 409),
    ("permission_lost", 403),
    ("plan_version_mismatch", 409),
    ("run_active", 409),
    ("run_over", 409),
    ("shutting_down", 503),
    ("slow_body", 408),
    ("stale", 409),
    ("stale_question", 409),
    ("store_unavailable", 503),
    ("thread_exists", 409),
    ("token_expired", 403),
    ("token_required", 403),
    ("token_used", 409),
    ("too_deep", 422),
    ("too_large", 413),
    ("too_many_pending", 429),
    ("too_many_streams", 429),
    ("tool_changed", 409),
    ("tool_unusable", 503),
    ("unauthorized", 401),
    ("unsupported_media_type", 415),
    ("use_runs_api", 409),
    ("volatile_store", 503),
];

/// The status of a code. One that is not in the table is our own mistake.
fn status(code: &str) -> StatusCode {
    let found = CODES.iter().find(|(known, _)| *known == code);
    found
        .and_then(|(_, status)| StatusCode::from_u16(*status).ok())
        .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

impl Problem {
    /// With a code of the table.
    pub(crate) fn new(code: &'static str, error: impl Into<String>) -> Self {
        Self {
            error: error.into(),
            code,
            details: Value::Object(serde_json::Map::new()),
        }
    }

    /// With something for programs.
    pub(crate) fn with(mut self, details: Value) -> Self {
        if details.is_object() {
            self.details = details;
        }
        self
    }

    /// Something that is not there, or not for this caller to see: both look the same.
    pub(crate) fn not_found(what: &str) -> Self {
        Self::new("not_found", format!("there is no such {what}"))
    }

    /// A body that cannot be read.
    pub(crate) fn bad_body(why: impl std::fmt::Display) -> Self {
        Self::new("bad_request", format!("invalid request body: {why}"))
    }

    pub(crate) fn too_large() -> Self {
        Self::new("too_large", "the body is larger than this server takes")
    }

    /// A store cannot be used.
    pub(crate) fn unavailable() -> Self {
        Self::new(
            "store_unavailable",
            "the store cannot be used now; the server's log says why",
        )
    }

    /// The server goes away.
    pub(crate) fn shutting_down() -> Self {
        Self::new("shutting_down", "the server is shutting down; try again")
    }

    pub(crate) fn status(&self) -> StatusCode {
        status(self.code)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.status();
        let mut response = (status, Json(self)).into_response();
        let headers = response.headers_mut();
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if matches!(
            status,
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS
        ) {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        // One that was closed is known as such: this one is not there, or not in this thread.
        if let Error::Refused(holdpoint_core::Refusal::NotPending { .. }) = error {
            return Self::not_found("interrupt");
        }
        let details = match &error {
            Error::Refused(holdpoint_core::Refusal::Misfit(misfit)) => serde_json::to_value(misfit),
            Error::Refused(
                holdpoint_core::Refusal::InterruptPending { pending }
                | holdpoint_core::Refusal::JustAnswered { pending },
            )
            | Error::Ambiguous { pending } => {
                serde_json::to_value(serde_json::json!({ "pending": pending }))
            }
            Error::Refused(holdpoint_core::Refusal::StaleQuestion { old, new }) => {
                Ok(serde_json::json!({"old": old, "new": new}))
            }
            Error::AlreadyDecided {
                interrupt,
                status,
                by,
                ..
            } => Ok(serde_json::json!({
                "interrupt_id": interrupt,
                "status": status,
                "by": by.to_string(),
            })),
            Error::Refused(_)
            | Error::Replayed(_)
            | Error::TokenUsed { .. }
            | Error::BadReply(_)
            | Error::OtherRequest
            | Error::NothingPending
            | Error::BadAnswer(_)
            | Error::BadQuestion(_)
            | Error::Tool(_)
            | Error::Model(_)
            | Error::Definition { .. }
            | Error::VolatileStore { .. }
            | Error::Damaged(_)
            | Error::NotAsKept(_)
            | Error::CannotDrive(_)
            | Error::NotAdopted { .. }
            | Error::Unavailable(_)
            | _ => Ok(Value::Null),
        };
        let code = error.code();
        if status(code).is_server_error() {
            tracing::error!(code, error = %error, "a request could not be served");
        }
        if let Error::Unavailable(_) = error {
            // Where it lies is for whoever runs the server.
            return Self::unavailable();
        }
        Self::new(code, error.to_string()).with(details.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_explained_in_the_documents() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/errors.md");
        let text = std::fs::read_to_string(path).unwrap();
        for (code, _) in CODES {
            assert!(text.contains(&format!("| `{code}` |")), "{code}");
        }
    }

    #[test]
    fn the_table_is_sorted_and_every_status_is_one_of_an_error() {
        assert!(CODES.is_sorted_by(|(left, _), (right, _)| left < right));
        for (code, number) in CODES {
            assert!((400..600).contains(number), "{code}");
        }
    }
}
