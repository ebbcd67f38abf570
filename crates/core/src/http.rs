//! Tools that are HTTP requests, as data: what is sent where, and which of a call's arguments go into it.
//!
//! A definition holds no secrets. A header that needs one names a variable of the environment, which is read when the
//! request is sent. Scheme, host and port are fixed when a definition is read: arguments never choose whom to talk to.

mod address;
mod template;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use address::AddressKind;
pub use template::{BadArgument, BadTemplate, Fill, Template, UrlTemplate};

use crate::Params;

/// One request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpRequest {
    /// How it asks.
    pub method: HttpMethod,
    /// Whom it asks, and for what.
    pub url: UrlTemplate,
    /// What is appended to the URL's query.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub query: BTreeMap<String, Template>,
    /// Its headers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, HttpHeader>,
    /// Which arguments its body carries.
    pub body: HttpBody,
    /// The header that carries the action's key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_header: Option<String>,
    /// Hosts that may have private addresses, and addresses that are fine though they are not public.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow_private: Vec<String>,
}

impl HttpRequest {
    /// The URL to ask, with every argument in its place.
    ///
    /// # Errors
    ///
    /// An argument that is missing, or that has no place in a URL.
    pub fn target(&self, fill: &Fill<'_>) -> Result<String, BadArgument> {
        let mut url = self.url.expand(fill)?;
        for (name, value) in &self.query {
            url.push(if url.contains('?') { '&' } else { '?' });
            template::encode(name, &mut url);
            url.push('=');
            url.push_str(&value.expand(fill)?);
        }
        Ok(url)
    }

    /// The JSON to send, if it sends any: in its canonical spelling, as it was hashed and shown.
    #[must_use]
    pub fn payload(&self, args: &Params) -> Option<String> {
        match self.body {
            HttpBody::None => None,
            HttpBody::Args => Some(args.canonical().to_owned()),
            HttpBody::Rest => {
                let mut rest = args.to_value();
                if let Value::Object(object) = &mut rest {
                    for name in self.arguments() {
                        object.remove(name);
                    }
                }
                // INVARIANT: a part of what has a canonical spelling has one.
                Params::from_value(&rest)
                    .ok()
                    .map(|rest| rest.canonical().to_owned())
            }
        }
    }

    /// The arguments that the URL and its query take.
    #[must_use]
    pub fn arguments(&self) -> BTreeSet<&str> {
        let query = self.query.values().flat_map(Template::arguments);
        self.url.arguments().chain(query).collect()
    }

    /// Whether anything in it tells one action from another.
    #[must_use]
    pub fn carries_key(&self) -> bool {
        self.idempotency_header.is_some()
            || self.url.has_key()
            || self.query.values().any(Template::has_key)
    }
}

/// How a request asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum HttpMethod {
    /// `GET`.
    Get,
    /// `POST`.
    Post,
    /// `PUT`.
    Put,
    /// `PATCH`.
    Patch,
    /// `DELETE`.
    Delete,
}

impl HttpMethod {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Get, Self::Post, Self::Put, Self::Patch, Self::Delete];

    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    /// What the body carries unless the definition says otherwise.
    #[must_use]
    pub const fn usual_body(self) -> HttpBody {
        match self {
            Self::Get | Self::Delete => HttpBody::None,
            Self::Post | Self::Put | Self::Patch => HttpBody::Args,
        }
    }
}

/// The value of a header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HttpHeader {
    /// A text that anybody may read.
    Text(String),
    /// A secret, by reference.
    Secret {
        /// The variable of the environment that holds it.
        name: String,
        /// What stands before it, for instance `Bearer `.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        prefix: String,
    },
}

/// Which arguments a request's body carries, as a JSON object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HttpBody {
    /// All of them.
    Args,
    /// Those that the URL and its query do not take.
    Rest,
    /// There is no body.
    None,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(url: &str, query: &[(&str, &str)], body: HttpBody) -> HttpRequest {
        HttpRequest {
            method: HttpMethod::Post,
            url: UrlTemplate::parse(url).unwrap(),
            query: query
                .iter()
                .map(|(name, value)| ((*name).to_owned(), Template::parse(value).unwrap()))
                .collect(),
            headers: BTreeMap::new(),
            body,
            idempotency_header: None,
            allow_private: Vec::new(),
        }
    }

    #[test]
    fn the_query_is_appended_to_what_the_url_has() {
        let args = serde_json::json!({"a": "x&y=z", "b": true});
        let fill = Fill {
            args: &args,
            key: "k",
            epoch: 7,
        };
        let query = [("p q", "{a}"), ("flag", "v-{b}-{$epoch}")];
        for (url, expected) in [
            ("https://h/p", "https://h/p?flag=v-true-7&p%20q=x%26y%3Dz"),
            (
                "https://h/p?k={$key}",
                "https://h/p?k=k&flag=v-true-7&p%20q=x%26y%3Dz",
            ),
        ] {
            let request = request(url, &query, HttpBody::None);
            assert_eq!(request.target(&fill).unwrap(), expected);
        }
    }

    #[test]
    fn the_body_carries_all_arguments_or_the_rest_or_none() {
        let args = Params::parse(r#"{"id":"7","dry":false,"why":"ä","n":1.50}"#).unwrap();
        let of =
            |body| request("https://h/{id}?k={$key}", &[("dry", "{dry}")], body).payload(&args);
        assert_eq!(
            of(HttpBody::Args).as_deref(),
            Some(r#"{"dry":false,"id":"7","n":1.5,"why":"ä"}"#)
        );
        assert_eq!(
            of(HttpBody::Rest).as_deref(),
            Some(r#"{"n":1.5,"why":"ä"}"#)
        );
        assert_eq!(of(HttpBody::None), None);
    }

    #[test]
    fn the_key_may_stand_in_a_header_the_url_or_the_query() {
        let plain = request("https://h/{id}", &[("a", "{b}")], HttpBody::None);
        assert!(!plain.carries_key());
        assert!(request("https://h/{$key}", &[], HttpBody::None).carries_key());
        assert!(request("https://h/", &[("k", "{$key}")], HttpBody::None).carries_key());
        let header = HttpRequest {
            idempotency_header: Some("Idempotency-Key".to_owned()),
            ..plain
        };
        assert!(header.carries_key());
    }
}
