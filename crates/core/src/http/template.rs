//! Texts with places for arguments, and the rules that keep an argument in its place.

use std::fmt::Write;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What goes into the places of a template.
#[derive(Debug, Clone, Copy)]
pub struct Fill<'a> {
    /// The call's arguments, an object.
    pub args: &'a Value,
    /// The action's key, for `{$key}`.
    pub key: &'a str,
    /// The driver's epoch, for `{$epoch}`.
    pub epoch: u64,
}

/// Why a text is not a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadTemplate {
    /// A place that does not end.
    #[error("a `{{` is never closed")]
    Unclosed,
    /// The end of a place that did not begin.
    #[error("a `}}` closes nothing")]
    Unopened,
    /// A place for nothing.
    #[error("`{{}}` names no argument")]
    Nameless,
    /// A name with a `$` that is not ours.
    #[error("`{{{0}}}` is unknown: there are `{{$key}}` and `{{$epoch}}`")]
    UnknownVariable(String),
    /// Neither `http` nor `https`.
    #[error("does not begin with `https://` or `http://`")]
    Scheme,
    /// An argument would choose whom to talk to.
    #[error("an argument cannot stand in scheme, host or port")]
    PlaceInAuthority,
    /// A name or a password before the host.
    #[error("a name or password before the host is not allowed")]
    UserInfo,
    /// No host, or one that cannot be.
    #[error("`{0}` is not a host, or not a host and a port")]
    Host(String),
    /// A character that has no place in a URL, or a meaning that ours must not have.
    #[error("`{0}` cannot stand here as it is")]
    Character(char),
    /// A `.` or `..` between slashes, which would be resolved and vanish.
    #[error("a path segment is `.` or `..`")]
    DotSegment,
}

/// Why a call's arguments do not fit into a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadArgument {
    /// It is not there.
    #[error("the argument `{0}` is missing, and the URL needs it")]
    Missing(String),
    /// It is a list, an object or null.
    #[error(
        "the argument `{0}` must be text, a number, true or false, because it is part of the URL"
    )]
    NotScalar(String),
    /// It would leave a path segment without a name.
    #[error("the argument `{0}` must not be empty, because it is part of the URL's path")]
    Empty(String),
    /// It would make a path segment `.` or `..`, which leads elsewhere.
    #[error("an argument must not make a part of the URL's path `.` or `..`")]
    DotSegment,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Argument(String),
    Key,
    Epoch,
}

/// A text with places for arguments: `{name}`, `{$key}` and `{$epoch}`. Braces have no other meaning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Template {
    text: String,
    pieces: Vec<Piece>,
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    ///
    /// Braces that do not match, or a name that cannot be.
    pub fn parse(text: &str) -> Result<Self, BadTemplate> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let literal = &rest[..rest.find(['{', '}']).unwrap_or(rest.len())];
            if !literal.is_empty() {
                pieces.push(Piece::Text(literal.to_owned()));
            }
            rest = &rest[literal.len()..];
            let Some(place) = rest.strip_prefix('{') else {
                if rest.is_empty() {
                    break;
                }
                return Err(BadTemplate::Unopened);
            };
            let (name, after) = place.split_once('}').ok_or(BadTemplate::Unclosed)?;
            pieces.push(piece(name)?);
            rest = after;
        }
        Ok(Self {
            text: text.to_owned(),
            pieces,
        })
    }

    /// The arguments it takes.
    pub fn arguments(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Argument(name) => Some(name.as_str()),
            Piece::Text(_) | Piece::Key | Piece::Epoch => None,
        })
    }

    pub(super) fn has_key(&self) -> bool {
        self.pieces.contains(&Piece::Key)
    }

    /// As a query value: all of it is encoded.
    pub(super) fn expand(&self, fill: &Fill<'_>) -> Result<String, BadArgument> {
        let mut out = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => encode(text, &mut out),
                Piece::Argument(_) | Piece::Key | Piece::Epoch => {
                    encode(&piece.value(fill)?, &mut out);
                }
            }
        }
        Ok(out)
    }
}

fn piece(name: &str) -> Result<Piece, BadTemplate> {
    match name {
        "" => Err(BadTemplate::Nameless),
        "$key" => Ok(Piece::Key),
        "$epoch" => Ok(Piece::Epoch),
        _ if name.contains('{') => Err(BadTemplate::Unclosed),
        _ if name.starts_with('$') => Err(BadTemplate::UnknownVariable(name.to_owned())),
        _ => Ok(Piece::Argument(name.to_owned())),
    }
}

impl Piece {
    fn value(&self, fill: &Fill<'_>) -> Result<String, BadArgument> {
        match self {
            Self::Text(text) => Ok(text.clone()),
            Self::Key => Ok(fill.key.to_owned()),
            Self::Epoch => Ok(fill.epoch.to_string()),
            Self::Argument(name) => match fill.args.get(name) {
                None => Err(BadArgument::Missing(name.clone())),
                Some(Value::String(text)) => Ok(text.clone()),
                // As it was hashed and shown.
                Some(value @ (Value::Number(_) | Value::Bool(_))) => {
                    serde_json_canonicalizer::to_string(value)
                        .map_err(|_| BadArgument::NotScalar(name.clone()))
                }
                Some(Value::Null | Value::Array(_) | Value::Object(_)) => {
                    Err(BadArgument::NotScalar(name.clone()))
                }
            },
        }
    }
}

/// Percent-encodes all but what never means anything in a URL: a value stays one path segment, or one query value.
pub(super) fn encode(value: &str, out: &mut String) {
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            // Writing into a text cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
}

impl TryFrom<String> for Template {
    type Error = BadTemplate;

    fn try_from(text: String) -> Result<Self, BadTemplate> {
        Self::parse(&text)
    }
}

impl From<Template> for String {
    fn from(template: Template) -> Self {
        template.text
    }
}

/// A URL with places for arguments in its path and its query, and nowhere else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct UrlTemplate {
    text: String,
    /// INVARIANT: scheme, host and port without a place for an argument.
    origin: String,
    host: String,
    rest: Template,
}

impl UrlTemplate {
    /// Reads a URL.
    ///
    /// # Errors
    ///
    /// What is no template, no URL, or one in which an argument could choose whom to talk to.
    pub fn parse(text: &str) -> Result<Self, BadTemplate> {
        let scheme = ["https://", "http://"]
            .into_iter()
            .find(|scheme| text.starts_with(scheme))
            .ok_or(BadTemplate::Scheme)?;
        let after = &text[scheme.len()..];
        // A backslash is a slash to many readers of URLs: whatever ends a host for any of them ends it here.
        let end = after.find(['/', '?', '#', '\\']).unwrap_or(after.len());
        let (authority, rest) = after.split_at(end);
        if authority.contains(['{', '}']) {
            return Err(BadTemplate::PlaceInAuthority);
        }
        if authority.contains('@') {
            return Err(BadTemplate::UserInfo);
        }
        let host = host(authority).ok_or_else(|| BadTemplate::Host(authority.to_owned()))?;
        let rest = Template::parse(rest)?;
        for piece in &rest.pieces {
            if let Piece::Text(literal) = piece {
                check_literal(literal)?;
            }
        }
        // A place is never a dot, and so stands for itself here.
        if has_dot_segment(&rest.text) {
            return Err(BadTemplate::DotSegment);
        }
        Ok(Self {
            text: text.to_owned(),
            origin: format!("{scheme}{authority}"),
            host: host.to_owned(),
            rest,
        })
    }

    /// As it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Scheme, host and port, as they were written.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The host, as it was written: a name or an address, an IPv6 one without its brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Whether others on the way cannot read along.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.origin.starts_with("https:")
    }

    /// The arguments it takes.
    pub fn arguments(&self) -> impl Iterator<Item = &str> {
        self.rest.arguments()
    }

    pub(super) fn has_key(&self) -> bool {
        self.rest.has_key()
    }

    pub(super) fn expand(&self, fill: &Fill<'_>) -> Result<String, BadArgument> {
        let mut out = String::new();
        let mut in_query = false;
        for piece in &self.rest.pieces {
            let value = piece.value(fill)?;
            match piece {
                Piece::Text(literal) => {
                    in_query |= literal.contains('?');
                    out.push_str(literal);
                }
                Piece::Argument(name) if value.is_empty() && !in_query => {
                    return Err(BadArgument::Empty(name.clone()));
                }
                Piece::Argument(_) | Piece::Key | Piece::Epoch => encode(&value, &mut out),
            }
        }
        if has_dot_segment(&out) {
            return Err(BadArgument::DotSegment);
        }
        Ok(format!("{}{out}", self.origin))
    }
}

/// The host of `host`, `host:port` or `[address]:port`. What a name may be is left to whoever resolves it.
fn host(authority: &str) -> Option<&str> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(bracketed) => {
            let (address, after) = bracketed.split_once(']')?;
            address.parse::<std::net::Ipv6Addr>().ok()?;
            let port = if after.is_empty() {
                None
            } else {
                Some(after.strip_prefix(':')?)
            };
            (address, port)
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b':');
    let digits = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let port_fits =
        port.is_none_or(|port| digits(port) && port.parse::<u16>().is_ok_and(|n| n > 0));
    (!host.is_empty() && host.bytes().all(fits) && port_fits).then_some(host)
}

fn check_literal(literal: &str) -> Result<(), BadTemplate> {
    let refused = |char: char| {
        !char.is_ascii_graphic() || matches!(char, '\\' | '#' | '"' | '<' | '>' | '^' | '`' | '|')
    };
    if let Some(char) = literal.chars().find(|char| refused(*char)) {
        return Err(BadTemplate::Character(char));
    }
    // A lone `%` would make a code of what an argument begins with.
    let codes = literal.split('%').skip(1);
    let is_code = |after: &str| {
        let mut digits = after.bytes();
        let mut digit = || digits.next().is_some_and(|byte| byte.is_ascii_hexdigit());
        digit() && digit()
    };
    if codes.into_iter().all(is_code) {
        Ok(())
    } else {
        Err(BadTemplate::Character('%'))
    }
}

/// Whether a reader of URLs would resolve a part of the path, and so ask for something else.
fn has_dot_segment(path_and_query: &str) -> bool {
    let path = path_and_query.split('?').next().unwrap_or_default();
    path.split('/').any(|segment| {
        let plain = segment.to_ascii_lowercase().replace("%2e", ".");
        plain == "." || plain == ".."
    })
}

impl TryFrom<String> for UrlTemplate {
    type Error = BadTemplate;

    fn try_from(text: String) -> Result<Self, BadTemplate> {
        Self::parse(&text)
    }
}

impl From<UrlTemplate> for String {
    fn from(url: UrlTemplate) -> Self {
        url.text
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fill(args: &Value) -> Fill<'_> {
        Fill {
            args,
            key: "hpk_1",
            epoch: 7,
        }
    }

    fn expand(url: &str, args: &Value) -> Result<String, BadArgument> {
        UrlTemplate::parse(url).unwrap().expand(&fill(args))
    }

    #[test]
    fn an_argument_stays_one_path_segment_or_one_query_value() {
        let cases = [
            (json!("7"), "7"),
            (json!("a/b"), "a%2Fb"),
            (json!("../../admin"), "..%2F..%2Fadmin"),
            (json!("a?b=c&d"), "a%3Fb%3Dc%26d"),
            (json!("#x"), "%23x"),
            (json!("%2F"), "%252F"),
            (json!("%2e%2e"), "%252e%252e"),
            (json!("a b+c"), "a%20b%2Bc"),
            (json!("ä€😀"), "%C3%A4%E2%82%AC%F0%9F%98%80"),
            (json!("\\\\evil"), "%5C%5Cevil"),
            (json!("@evil.com:80"), "%40evil.com%3A80"),
            (json!("a\r\nX: y\u{0}\t"), "a%0D%0AX%3A%20y%00%09"),
            (json!("{b}"), "%7Bb%7D"),
            (json!("..."), "..."),
            (json!("a.b-c_d~e"), "a.b-c_d~e"),
            (json!(42), "42"),
            (json!(-1.5), "-1.5"),
            (json!(1e21), "1e%2B21"),
            (json!(true), "true"),
        ];
        for (value, expected) in cases {
            let args = json!({"a": value, "b": "never"});
            let url = "https://h.example/x/{a}/y?q={a}";
            let expected = format!("https://h.example/x/{expected}/y?q={expected}");
            assert_eq!(expand(url, &args), Ok(expected), "{value}");
        }
    }

    #[test]
    fn an_argument_that_would_lead_elsewhere_is_refused() {
        let missing = || Err(BadArgument::Missing("a".to_owned()));
        let not_scalar = || Err(BadArgument::NotScalar("a".to_owned()));
        let empty = || Err(BadArgument::Empty("a".to_owned()));
        let dots = || Err(BadArgument::DotSegment);
        let cases = [
            ("https://h/{a}", json!({}), missing()),
            ("https://h/?q={a}", json!({}), missing()),
            ("https://h/{a}", json!({"a": null}), not_scalar()),
            ("https://h/{a}", json!({"a": ["x"]}), not_scalar()),
            ("https://h/?q={a}", json!({"a": {"x": 1}}), not_scalar()),
            ("https://h/x/{a}/y", json!({"a": ""}), empty()),
            ("https://h/x-{a}", json!({"a": ""}), empty()),
            ("https://h/x/{a}/y", json!({"a": "."}), dots()),
            ("https://h/x/{a}/y", json!({"a": ".."}), dots()),
            ("https://h/x/{a}", json!({"a": ".."}), dots()),
            ("https://h/x/{a}.", json!({"a": "."}), dots()),
            ("https://h/x/%2E{a}", json!({"a": "."}), dots()),
            ("https://h/x/{a}{a}?q=1", json!({"a": "."}), dots()),
        ];
        for (url, args, expected) in cases {
            assert_eq!(expand(url, &args), expected, "{url} {args}");
        }
        let fine = [
            ("https://h?q={a}", json!({"a": ""}), "https://h?q="),
            ("https://h/?q={a}", json!({"a": ".."}), "https://h/?q=.."),
            (
                "https://h/?q=/{a}/",
                json!({"a": ".."}),
                "https://h/?q=/../",
            ),
            ("https://h/x{a}", json!({"a": ".."}), "https://h/x.."),
        ];
        for (url, args, expected) in fine {
            assert_eq!(expand(url, &args).as_deref(), Ok(expected));
        }
    }

    #[test]
    fn key_and_epoch_are_at_hand_and_cannot_be_given_as_arguments() {
        let args = json!({"$key": "mine", "$epoch": 1});
        assert_eq!(
            expand("https://h/{$key}/{$epoch}", &args).as_deref(),
            Ok("https://h/hpk_1/7")
        );
    }

    #[test]
    fn an_argument_never_chooses_whom_to_talk_to() {
        let place = BadTemplate::PlaceInAuthority;
        let host = |text: &str| BadTemplate::Host(text.to_owned());
        let cases = [
            ("https://{host}/x", place.clone()),
            ("https://{a}.example.com/x", place.clone()),
            ("https://example.com{a}", place.clone()),
            ("https://example.com:{port}/x", place.clone()),
            ("https://{a/b}@c/x", place.clone()),
            ("https://u:{p}@h/x", place),
            ("{scheme}://h/x", BadTemplate::Scheme),
            ("ftp://h/x", BadTemplate::Scheme),
            ("file:///etc/passwd", BadTemplate::Scheme),
            ("https:/h/x", BadTemplate::Scheme),
            ("HTTPS://h/x", BadTemplate::Scheme),
            ("/x", BadTemplate::Scheme),
            (" https://h/x", BadTemplate::Scheme),
            ("https://user@h/x", BadTemplate::UserInfo),
            ("https://user:pass@h/x", BadTemplate::UserInfo),
            ("https://h\\@evil/x", BadTemplate::Character('\\')),
            ("https:///x", host("")),
            ("https://:80/x", host(":80")),
            ("https://h:/x", host("h:")),
            ("https://h:0/x", host("h:0")),
            ("https://h:65536/x", host("h:65536")),
            ("https://h:+80/x", host("h:+80")),
            ("https://a b/x", host("a b")),
            ("https://h%2eevil/x", host("h%2eevil")),
            ("https://ä.example/x", host("ä.example")),
            ("https://[::1/x", host("[::1")),
            ("https://[::1]x/x", host("[::1]x")),
            ("https://[fe80::1%25eth0]/x", host("[fe80::1%25eth0]")),
            ("https://::1/x", host("::1")),
            ("https://h/a b", BadTemplate::Character(' ')),
            ("https://h/a\tb", BadTemplate::Character('\t')),
            ("https://h/ä", BadTemplate::Character('ä')),
            ("https://h/x#y", BadTemplate::Character('#')),
            ("https://h#y", BadTemplate::Character('#')),
            ("https://h/%{a}", BadTemplate::Character('%')),
            ("https://h/%2{a}", BadTemplate::Character('%')),
            ("https://h/a/../b", BadTemplate::DotSegment),
            ("https://h/{a}/%2e%2E/b", BadTemplate::DotSegment),
            ("https://h/.", BadTemplate::DotSegment),
            ("https://h/{a", BadTemplate::Unclosed),
            ("https://h/{a{b}}", BadTemplate::Unclosed),
            ("https://h/a}", BadTemplate::Unopened),
            ("https://h/{}", BadTemplate::Nameless),
            (
                "https://h/{$run}",
                BadTemplate::UnknownVariable("$run".to_owned()),
            ),
        ];
        for (url, expected) in cases {
            assert_eq!(UrlTemplate::parse(url), Err(expected), "{url}");
        }
    }

    #[test]
    fn the_host_is_told_without_brackets_and_port() {
        for (url, host, origin) in [
            ("https://h", "h", "https://h"),
            (
                "http://h.example:8080/x",
                "h.example",
                "http://h.example:8080",
            ),
            (
                "https://[2001:db8::1]:443?x",
                "2001:db8::1",
                "https://[2001:db8::1]:443",
            ),
            ("http://127.0.0.1/", "127.0.0.1", "http://127.0.0.1"),
        ] {
            let url = UrlTemplate::parse(url).unwrap();
            assert_eq!((url.host(), url.origin()), (host, origin));
        }
    }
}
