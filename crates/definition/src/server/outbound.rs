//! URLs that the server itself asks.

use std::net::IpAddr;

use holdpoint_core::UrlTemplate;
use holdpoint_yaml::{Field, Report};

use crate::http;

/// What a URL is for, in the words of its problems.
pub(super) struct Purpose {
    /// That it cannot be done from here.
    pub(super) cannot: &'static str,
    /// That it would never be done.
    pub(super) never: &'static str,
    /// What is wrong with doing it without encryption.
    pub(super) bare: &'static str,
    /// Whether it may have a query.
    pub(super) query: bool,
    /// What a good one looks like.
    pub(super) example: &'static str,
}

/// Reports a URL that would never be asked. `allow_private` is `None` if it could not be read.
pub(super) fn check_url(
    field: &Field<'_>,
    text: &str,
    allow_private: Option<&[String]>,
    purpose: &Purpose,
    report: &mut Report,
) -> Option<()> {
    let Purpose {
        cannot,
        never,
        bare,
        query,
        example,
    } = purpose;
    let has_other = text.contains('{') || (!query && text.contains('?'));
    let url = match UrlTemplate::parse(text) {
        Ok(url) if !has_other => url,
        Ok(_) => {
            let message = if *query {
                "`{` and `}` cannot stand in it"
            } else {
                "`{`, `}` and `?` cannot stand in it"
            };
            let help = format!("write it without them, {example}");
            field.problem(message, &help, report);
            return None;
        }
        Err(error) => {
            // What it says is not repeated: there may be a password in it.
            let message = format!("{cannot}: {error}");
            field.problem(&message, &format!("write a whole URL, {example}"), report);
            return None;
        }
    };
    let host = url.host();
    let allowed = allow_private?.iter().any(|entry| http::covers(entry, host));
    if http::is_at_home(host) && !allowed {
        let message = format!("`{host}` is not a public address, {never}");
        let help = format!("if that is meant, add `allow_private: [\"{host}\"]`");
        field.problem(&message, &help, report);
        return None;
    }
    let named = |entry: &String| entry.eq_ignore_ascii_case(host) || is_same_address(entry, host);
    if !url.is_encrypted() && !allow_private?.iter().any(named) {
        let help =
            format!("use https://, or add `allow_private: [\"{host}\"]` for a host of your own");
        field.problem(bare, &help, report);
        return None;
    }
    Some(())
}

fn is_same_address(entry: &str, host: &str) -> bool {
    let address = |text: &str| text.parse::<IpAddr>().ok();
    address(entry).is_some_and(|entry| address(host) == Some(entry))
}
