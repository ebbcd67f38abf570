//! Headers that a definition names, made ready to be sent.

use std::collections::BTreeMap;

use holdpoint_core::{HttpHeader, Scrub};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use super::secret;

/// Checks all that can be checked without the secrets.
///
/// # Errors
///
/// A name or a text that no header can have.
pub(crate) fn check(headers: &BTreeMap<String, HttpHeader>) -> Result<(), String> {
    for (header, value) in headers {
        name(header)?;
        if let HttpHeader::Text(text) = value {
            plain(header, text)?;
        }
    }
    Ok(())
}

/// The headers with their secrets, and what must be taken out of the answer.
///
/// # Errors
///
/// A secret is not set, or no header can hold it.
pub(crate) fn filled(headers: &BTreeMap<String, HttpHeader>) -> Result<(HeaderMap, Scrub), String> {
    let (mut filled, mut scrub) = (HeaderMap::new(), Scrub::default());
    for (header, value) in headers {
        let value = match value {
            HttpHeader::Text(text) => plain(header, text)?,
            HttpHeader::Secret {
                name: variable,
                prefix,
            } => {
                let held = secret::named(variable).ok_or_else(|| {
                    format!("the secret `{variable}` is not set in the environment of this process")
                })?;
                let text = format!("{prefix}{}", held.expose());
                let mut value = HeaderValue::from_str(&text).map_err(|_| {
                    format!("the secret `{variable}` has a character that a header cannot hold")
                })?;
                value.set_sensitive(true);
                scrub.add(&held);
                value
            }
        };
        filled.insert(name(header)?, value);
    }
    Ok((filled, scrub))
}

fn name(header: &str) -> Result<HeaderName, String> {
    HeaderName::from_bytes(header.as_bytes())
        .map_err(|_| format!("`{header}` is not the name of a header"))
}

fn plain(header: &str, text: &str) -> Result<HeaderValue, String> {
    HeaderValue::from_str(text).map_err(|_| format!("the header `{header}` cannot have this value"))
}
