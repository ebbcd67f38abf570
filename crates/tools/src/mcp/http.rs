//! A server that answers HTTP requests: asked as carefully as every other address is.

use std::collections::{BTreeMap, HashMap};

use holdpoint_core::{HttpHeader, Scrub};
use reqwest::{
    Client,
    header::{HeaderName, HeaderValue},
};
use rmcp::transport::{
    StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig,
};

use crate::http::{Outbound, held_secret};

/// The longest answer, in one piece.
const MAX_EVENT: usize = 8 << 20;

/// Where one is, and what is sent along.
pub(super) struct Place<'a> {
    pub(super) url: &'a str,
    pub(super) headers: &'a BTreeMap<String, HttpHeader>,
    pub(super) allow_private: &'a [String],
}

/// # Errors
///
/// It may not be asked, or a secret is not set.
pub(super) fn transport(
    place: &Place<'_>,
    scrub: &mut Scrub,
) -> Result<StreamableHttpClientTransport<Client>, String> {
    let outbound = Outbound::new(place.allow_private).map_err(|error| error.to_string())?;
    let client = outbound
        .client_for(place.url)
        .map_err(|error| error.to_string())?;
    let mut headers = HashMap::new();
    for (name, value) in place.headers {
        let header = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| format!("`{name}` is not the name of a header"))?;
        headers.insert(header, header_value(name, value, scrub)?);
    }
    let config = StreamableHttpClientTransportConfig::with_uri(place.url)
        .custom_headers(headers)
        .max_sse_event_size(MAX_EVENT)
        // A session that is new may offer something else.
        .reinit_on_expired_session(false);
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

fn header_value(name: &str, value: &HttpHeader, scrub: &mut Scrub) -> Result<HeaderValue, String> {
    match value {
        HttpHeader::Text(text) => HeaderValue::from_str(text)
            .map_err(|_| format!("the header `{name}` cannot have this value")),
        HttpHeader::Secret {
            name: variable,
            prefix,
        } => {
            let held = held_secret(variable).ok_or_else(|| unset(variable))?;
            let text = format!("{prefix}{}", held.expose());
            let mut value = HeaderValue::from_str(&text).map_err(|_| {
                format!("the secret `{variable}` has a character that a header cannot hold")
            })?;
            value.set_sensitive(true);
            scrub.add(&held);
            Ok(value)
        }
    }
}

pub(super) fn unset(variable: &str) -> String {
    format!("the secret `{variable}` is not set in the environment of this process")
}
