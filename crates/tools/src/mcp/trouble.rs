//! What went wrong between us and a server, for people; and whether a call can have had an effect.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "these errors are another library's, and what is not known of one of them is taken as the worst"
)]

use std::error::Error;

use reqwest::StatusCode;
use rmcp::{
    model::ErrorCode,
    service::{ClientInitializeError, ServiceError},
    transport::{DynamicTransportError, streamable_http_client::StreamableHttpError},
};

use crate::http::{self, Says, says};

/// What a server did not do, and why; with how its program ended, where it has.
pub(super) fn explain(error: &ServiceError, epitaph: Option<String>) -> String {
    match error {
        ServiceError::McpError(error) => error.message.to_string(),
        ServiceError::TransportSend(error) => not_sent(error),
        other => match epitaph {
            Some(epitaph) => format!("it has ended: {epitaph}"),
            None => other.to_string(),
        },
    }
}

/// Why a connection did not come about.
pub(super) fn why_not_begun(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::TransportError { error, .. } => not_sent(error),
        ClientInitializeError::JsonRpcError(error) => error.message.to_string(),
        // What every server is asked for, also the newer ones.
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => why_not_begun(fallback),
        other => chain(other),
    }
}

/// Why nothing could be said to a server, without the names that the libraries give to their parts.
fn not_sent(error: &DynamicTransportError) -> String {
    match http_trouble_in(error.error.as_ref()) {
        Some(StreamableHttpError::Client(error)) => http::explain(error),
        Some(StreamableHttpError::HttpStatus(error)) => format!("HTTP {}", error.status),
        Some(StreamableHttpError::AuthRequired(_)) => {
            "HTTP 401: it wants a token in `headers`, or another one".to_owned()
        }
        Some(StreamableHttpError::InsufficientScope(_)) => {
            "HTTP 403: the token in `headers` does not allow this".to_owned()
        }
        Some(other) => other.to_string(),
        None => chain(error.error.as_ref()),
    }
}

/// An error with its causes.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        cause = error.source();
    }
    text
}

/// Walks from an error to its cause and on.
fn causes<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

type HttpTrouble = StreamableHttpError<reqwest::Error>;

fn http_trouble(error: &ServiceError) -> Option<&HttpTrouble> {
    let ServiceError::TransportSend(error) = error else {
        return None;
    };
    http_trouble_in(error.error.as_ref())
}

fn http_trouble_in<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e HttpTrouble> {
    causes(error).find_map(|it| it.downcast_ref::<HttpTrouble>())
}

/// Whether the server does not know the connection any more, and so has not looked at what was sent.
pub(super) fn is_forgotten(error: &ServiceError) -> bool {
    matches!(
        http_trouble(error),
        Some(StreamableHttpError::SessionExpired)
    )
}

/// Whether a call that came to this error had certainly no effect.
pub(super) fn had_no_effect(error: &ServiceError) -> bool {
    match error {
        // These say that the call was not looked at.
        // Invalid parameters are none of them: some servers say that of a result that does not fit, after the effect.
        ServiceError::McpError(error) => matches!(
            error.code,
            ErrorCode::METHOD_NOT_FOUND | ErrorCode::PARSE_ERROR
        ),
        ServiceError::TransportSend(_) => http_trouble(error).is_some_and(was_not_looked_at),
        _ => false,
    }
}

fn was_not_looked_at(trouble: &HttpTrouble) -> bool {
    match trouble {
        // A connection that was not made.
        StreamableHttpError::Client(error) => error.is_connect() || error.is_builder(),
        StreamableHttpError::AuthRequired(_)
        | StreamableHttpError::InsufficientScope(_)
        | StreamableHttpError::ReservedHeaderConflict(_) => true,
        StreamableHttpError::HttpStatus(error) => {
            StatusCode::from_u16(error.status).is_ok_and(|status| {
                matches!(says(status), Says::Refused | Says::NotNow | Says::Elsewhere)
            })
        }
        _ => false,
    }
}
