//! The headers of a request.

use std::collections::BTreeMap;

use holdpoint_core::HttpHeader;
use holdpoint_yaml::{Content, Field, Fields, Report, join, quoted};

const SECRET_HELP: &str = "name the variable of the environment that holds it: {secret: NAME}, or {secret: NAME, prefix: \"Bearer \"}";

/// What frames a request is not the author's to say.
const OURS: [&str; 12] = [
    "connection",
    "content-length",
    "expect",
    "holdpoint-epoch",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// What is secret by its nature.
const SECRET: [&str; 6] = [
    "authorization",
    "cookie",
    "x-api-key",
    "api-key",
    "apikey",
    "x-auth-token",
];

/// Reads all headers.
pub(crate) fn read_all(
    field: &Field<'_>,
    report: &mut Report,
) -> Option<BTreeMap<String, HttpHeader>> {
    let mut headers: BTreeMap<String, HttpHeader> = BTreeMap::new();
    let mut complete = true;
    for entry in field.entries(report)? {
        let value = Field {
            node: &entry.value,
            path: join(&field.path, &entry.key),
        };
        let fits = check_name(&value, &entry.key, report);
        let twice = headers
            .keys()
            .any(|name| name.eq_ignore_ascii_case(&entry.key));
        if twice {
            value.problem(
                &format!("a second header is called {}", quoted(&entry.key)),
                "keep one of them; upper and lower case are the same here",
                report,
            );
        }
        match read(&value, &entry.key, report) {
            Some(header) if fits && !twice => drop(headers.insert(entry.key.clone(), header)),
            Some(_) | None => complete = false,
        }
    }
    complete.then_some(headers)
}

/// Reads the name of the header that carries the key.
pub(super) fn read_idempotency(
    field: &Field<'_>,
    headers: Option<&BTreeMap<String, HttpHeader>>,
    report: &mut Report,
) -> Option<String> {
    let name = field.some_text(report)?;
    let mut fits = check_name(field, name, report);
    let same = |header: &String| header.eq_ignore_ascii_case(name);
    if headers.is_some_and(|headers| headers.keys().any(same)) {
        field.problem(
            &format!("{} is one of the `headers` already", quoted(name)),
            "keep one of them",
            report,
        );
        fits = false;
    }
    fits.then(|| name.to_owned())
}

pub(crate) fn check_name(field: &Field<'_>, name: &str, report: &mut Report) -> bool {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(token) {
        field.problem(
            &format!("{} cannot be the name of a header", quoted(name)),
            "use letters, digits and `-`",
            report,
        );
        return false;
    }
    if OURS.contains(&name.to_ascii_lowercase().as_str()) {
        field.problem(
            &format!("the header {} is not yours to set", quoted(name)),
            "leave it out",
            report,
        );
        return false;
    }
    true
}

fn read(field: &Field<'_>, name: &str, report: &mut Report) -> Option<HttpHeader> {
    match &field.node.content {
        Content::Map(_) => read_secret(field, report),
        Content::Null
        | Content::Bool(_)
        | Content::Number(_)
        | Content::Text(_)
        | Content::List(_) => {
            let text = field.text(report)?;
            if SECRET.contains(&name.to_ascii_lowercase().as_str()) {
                field.problem(
                    "a secret must not stand in the file, because definitions are stored",
                    SECRET_HELP,
                    report,
                );
                return None;
            }
            if takes_arguments(text) {
                field.problem(
                    "a header takes no arguments",
                    "put them into `url`, `query` or the body; `idempotency_header` carries the key",
                    report,
                );
                return None;
            }
            is_value(field, text, report).then(|| HttpHeader::Text(text.to_owned()))
        }
    }
}

/// Whether a text looks as if it was meant to be filled in.
fn takes_arguments(text: &str) -> bool {
    let plain = |name: &str| {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'$');
        !name.is_empty() && name.bytes().all(fits)
    };
    text.split('{')
        .skip(1)
        .filter_map(|after| after.split_once('}'))
        .any(|(name, _)| plain(name))
}

fn read_secret(field: &Field<'_>, report: &mut Report) -> Option<HttpHeader> {
    let fields = Fields::open(field, &["secret", "prefix"], report)?;
    let name = fields
        .required("secret", SECRET_HELP, report)
        .and_then(|field| read_variable(&field, SECRET_HELP, report));
    let prefix = match fields.optional("prefix") {
        None => Some(""),
        Some(field) => {
            let text = field.text(report)?;
            is_value(&field, text, report).then_some(text)
        }
    };
    Some(HttpHeader::Secret {
        name: name?,
        prefix: prefix?.to_owned(),
    })
}

/// Reads the name of a variable of the environment that holds a secret.
pub(crate) fn read_variable(field: &Field<'_>, help: &str, report: &mut Report) -> Option<String> {
    let name = field.text(report)?;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let begins = |byte: &u8| !byte.is_ascii_digit();
    if !name.bytes().all(fits) || !name.as_bytes().first().is_some_and(begins) {
        // What stands there may be the secret itself, and is not repeated.
        field.problem(
            "is not the name of a variable of the environment",
            help,
            report,
        );
        return None;
    }
    Some(name.to_owned())
}

fn is_value(field: &Field<'_>, text: &str, report: &mut Report) -> bool {
    let fits = text
        .chars()
        .all(|char| char == ' ' || char.is_ascii_graphic());
    if !fits {
        field.problem(
            "a header can hold letters, digits, signs and spaces of ASCII only",
            "",
            report,
        );
    }
    fits
}
