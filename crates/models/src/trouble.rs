//! What a provider says when it does not answer, and what that means.

use std::time::Duration;

use holdpoint_core::Span;
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};
use serde::Deserialize;

use crate::Failure;

/// How much of a provider's words is told.
const MAX_WORDS: usize = 600;

/// An error as a provider spells it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Complaint {
    /// What it calls it: types and codes.
    pub(crate) kinds: Vec<String>,
    /// The status that it has, where one stands in it.
    pub(crate) status: Option<u16>,
    pub(crate) message: String,
}

/// `{"type": …, "code": …, "message": …}`, or a text alone.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum Spelling {
    Object {
        #[serde(default, rename = "type")]
        kind: Option<serde_json::Value>,
        #[serde(default)]
        code: Option<serde_json::Value>,
        #[serde(default)]
        message: Option<String>,
    },
    Text(String),
    Other(serde_json::Value),
}

impl From<Spelling> for Complaint {
    fn from(spelling: Spelling) -> Self {
        let mut complaint = Self::default();
        match spelling {
            Spelling::Object {
                kind,
                code,
                message,
            } => {
                for word in [kind, code].into_iter().flatten() {
                    if let Some(word) = word.as_str() {
                        complaint.kinds.push(word.to_owned());
                    }
                    let number = word.as_u64().and_then(|it| u16::try_from(it).ok());
                    complaint.status = number.or(complaint.status);
                }
                complaint.message = message.unwrap_or_else(|| complaint.kinds.join(", "));
            }
            Spelling::Text(text) => complaint.message = text,
            Spelling::Other(value) => complaint.message = value.to_string(),
        }
        complaint
    }
}

#[derive(Debug, Deserialize)]
struct Body {
    error: Option<Spelling>,
    message: Option<String>,
    detail: Option<String>,
}

impl Complaint {
    /// What the body of an answer that is none complains of.
    pub(crate) fn of_body(text: &str) -> Self {
        let body = serde_json::from_str::<Body>(text).ok();
        let said = body.and_then(|body| {
            let plain = body.message.or(body.detail).map(Spelling::Text);
            body.error.or(plain)
        });
        match said {
            Some(said) => said.into(),
            None => Self {
                message: text.split_whitespace().collect::<Vec<_>>().join(" "),
                ..Self::default()
            },
        }
    }

    fn is(&self, words: &[&str]) -> bool {
        self.kinds.iter().any(|kind| words.contains(&kind.as_str()))
    }

    /// What it means where it came with this status, or in the middle of an answer.
    pub(crate) fn means(&self, status: Option<u16>, retry_after: Option<Span>) -> Failure {
        let status = status.or(self.status);
        let mut reason = clipped(&self.message);
        if let Some(status) = status {
            let colon = if reason.is_empty() { "" } else { ": " };
            reason = format!("HTTP {status}{colon}{reason}");
        }
        if reason.is_empty() {
            "it said no more than that there is an error".clone_into(&mut reason);
        }
        if self.is(&["insufficient_quota", "billing_not_active", "billing_error"]) {
            return Failure::Barred { reason };
        }
        if self.is(&["content_filter", "content_policy_violation"]) {
            return Failure::Withheld { reason };
        }
        if self.is(&["model_not_found", "invalid_api_key", "DeploymentNotFound"]) {
            return Failure::Barred { reason };
        }
        match status {
            Some(429 | 529) => Failure::RateLimited {
                retry_after,
                reason,
            },
            Some(408 | 409 | 425 | 500..) => Failure::Unavailable { reason },
            Some(401 | 403 | 404) => Failure::Barred { reason },
            // Somebody else lives there. This is not followed: the key would go along.
            Some(300..400) => Failure::Barred {
                reason: format!("{reason} (redirects are not followed)"),
            },
            Some(400..) => Failure::Rejected { reason },
            Some(_) | None => self.by_kind(reason, retry_after),
        }
    }

    fn by_kind(&self, reason: String, retry_after: Option<Span>) -> Failure {
        if self.is(&[
            "rate_limit_error",
            "rate_limit_exceeded",
            "rate_limited",
            "too_many_requests",
        ]) {
            return Failure::RateLimited {
                retry_after,
                reason,
            };
        }
        if self.is(&[
            "authentication_error",
            "permission_error",
            "not_found_error",
        ]) {
            return Failure::Barred { reason };
        }
        if self.is(&[
            "invalid_request_error",
            "invalid_prompt",
            "context_length_exceeded",
            "request_too_large",
        ]) {
            return Failure::Rejected { reason };
        }
        Failure::Unavailable { reason }
    }
}

/// A provider's words in a line, and not too many of them.
fn clipped(text: &str) -> String {
    let plain = |char: char| if char.is_control() { ' ' } else { char };
    let mut text: String = text.trim().chars().map(plain).collect();
    if text.len() > MAX_WORDS {
        text.truncate(text.floor_char_boundary(MAX_WORDS));
        text.push_str(" …");
    }
    text
}

/// When a provider wants to be asked again.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Span> {
    let text = |name: &str| Some(headers.get(name)?.to_str().ok()?.trim());
    if let Some(millis) = text("retry-after-ms").and_then(|it| it.parse::<f64>().ok()) {
        return span(millis / 1_000.0);
    }
    let after = text(RETRY_AFTER.as_str())?;
    if let Ok(seconds) = after.parse::<f64>() {
        return span(seconds);
    }
    let at = httpdate::parse_http_date(after).ok()?;
    // By its own clock, if it says what it shows: clocks differ.
    let now = text(DATE.as_str()).and_then(|date| httpdate::parse_http_date(date).ok());
    let wait = at.duration_since(now.unwrap_or_else(here)).ok();
    Some(Span::from_millis(millis(wait.unwrap_or_default())))
}

#[expect(
    clippy::disallowed_methods,
    reason = "a date that a provider names is compared with dates, not with the store's clock; it only says how long to wait"
)]
fn here() -> std::time::SystemTime {
    std::time::SystemTime::now()
}

fn span(seconds: f64) -> Option<Span> {
    let wait = Duration::try_from_secs_f64(seconds).ok()?;
    Some(Span::from_millis(millis(wait)))
}

fn millis(wait: Duration) -> u64 {
    u64::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};

    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        lines
            .iter()
            .map(|(name, value)| {
                let name = HeaderName::from_static(name);
                (name, HeaderValue::from_static(value))
            })
            .collect()
    }

    #[test]
    fn every_way_to_say_when_to_come_again_is_understood() {
        let date = ("date", "Wed, 21 Oct 2015 07:28:00 GMT");
        for (lines, expected) in [
            (vec![("retry-after", "20")], Some(20_000)),
            (vec![("retry-after", "0.5")], Some(500)),
            (vec![("retry-after", " 3600 ")], Some(3_600_000)),
            (
                vec![("retry-after", "9"), ("retry-after-ms", "1500")],
                Some(1_500),
            ),
            (
                vec![("retry-after", "Wed, 21 Oct 2015 08:28:00 GMT"), date],
                Some(3_600_000),
            ),
            (
                vec![("retry-after", "Wed, 21 Oct 2015 07:00:00 GMT"), date],
                Some(0),
            ),
            (
                vec![("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT")],
                Some(0),
            ),
            (vec![("retry-after", "soon")], None),
            (vec![("retry-after", "-1")], None),
            (vec![("retry-after", "NaN")], None),
            (vec![("retry-after", "1e300")], None),
            (vec![], None),
        ] {
            let found = retry_after(&headers(&lines));
            assert_eq!(found, expected.map(Span::from_millis), "{lines:?}");
        }
    }

    #[test]
    fn a_status_and_a_provider_s_own_words_say_what_may_help() {
        let of = |status, body: &str| Complaint::of_body(body).means(status, None);
        let kind = |failure: &Failure| match failure {
            Failure::Timeout => "timeout",
            Failure::Unavailable { .. } => "unavailable",
            Failure::RateLimited { .. } => "rate limited",
            Failure::Rejected { .. } => "rejected",
            Failure::Barred { .. } => "barred",
            Failure::Withheld { .. } => "withheld",
        };
        let quota =
            r#"{"error":{"message":"x","type":"insufficient_quota","code":"insufficient_quota"}}"#;
        for (status, body, expected) in [
            (Some(429), "", "rate limited"),
            (Some(529), "", "rate limited"),
            (Some(429), quota, "barred"),
            (Some(408), "", "unavailable"),
            (Some(409), "", "unavailable"),
            (Some(425), "", "unavailable"),
            (Some(500), "<html>", "unavailable"),
            (Some(503), "", "unavailable"),
            (Some(401), "", "barred"),
            (Some(403), "", "barred"),
            (Some(404), "", "barred"),
            (Some(307), "", "barred"),
            (
                Some(400),
                r#"{"error":{"code":null,"message":"x"}}"#,
                "rejected",
            ),
            (
                Some(400),
                r#"{"error":{"code":"content_filter"}}"#,
                "withheld",
            ),
            (Some(422), r#"{"detail":"x"}"#, "rejected"),
            (Some(413), "", "rejected"),
            (
                None,
                r#"{"error":{"type":"overloaded_error"}}"#,
                "unavailable",
            ),
            (
                None,
                r#"{"error":{"type":"rate_limit_error"}}"#,
                "rate limited",
            ),
            (
                None,
                r#"{"error":{"code":429,"message":"x"}}"#,
                "rate limited",
            ),
            (None, r#"{"error":{"code":502}}"#, "unavailable"),
            (
                None,
                r#"{"error":{"type":"invalid_request_error"}}"#,
                "rejected",
            ),
            (None, r#"{"error":"x"}"#, "unavailable"),
            (None, r#"{"error":7}"#, "unavailable"),
        ] {
            let failure = of(status, body);
            assert_eq!(kind(&failure), expected, "{status:?} {body}");
        }
        let long = format!(r#"{{"error":{{"message":"{}"}}}}"#, "ü\\n".repeat(900));
        let words = of(Some(400), &long).to_string();
        assert!(words.len() < 800 && !words.contains('\n'), "{words}");
    }
}
