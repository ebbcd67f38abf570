//! Tools that are HTTP requests.
//!
//! A secret that stands in a file is no secret, and an argument that chooses a host lets a model choose whom to trust with
//! one: both are problems here, and not only when a call is made.

mod header;

use std::{collections::BTreeMap, net::IpAddr};

use holdpoint_core::{
    AddressKind, BadTemplate, HttpBody, HttpHeader, HttpMethod, HttpRequest, Template, UrlTemplate,
};
use holdpoint_yaml::{Field, Fields, Report, join, nearest, quoted};
use serde_json::Value;

pub(crate) use header::{check_name as check_header_name, read_all as read_headers, read_variable};

const KEYS: [&str; 7] = [
    "method",
    "url",
    "query",
    "headers",
    "body",
    "idempotency_header",
    "allow_private",
];
const URL_HELP: &str = "for instance https://pay.example.com/orders/{order_id}/refunds";

/// Reads a request. `unsaid` is its method if nothing is said, and `schema` that of the arguments, if it could be read.
pub(crate) fn read(
    field: &Field<'_>,
    unsaid: HttpMethod,
    schema: Option<&Value>,
    report: &mut Report,
) -> Option<HttpRequest> {
    let fields = Fields::open(field, &KEYS, report)?;
    read_from(&fields, unsaid, schema, report)
}

/// Reads a request whose keys are `fields`, of which some may not be known there.
pub(crate) fn read_from(
    fields: &Fields<'_>,
    unsaid: HttpMethod,
    schema: Option<&Value>,
    report: &mut Report,
) -> Option<HttpRequest> {
    let method = match fields.optional("method") {
        None => Some(unsaid),
        Some(field) => {
            let words = HttpMethod::ALL.map(|method| (method.as_str(), method));
            field.one_of("a method", &words, report)
        }
    };
    let arguments = Arguments { schema };
    let url = fields
        .required("url", URL_HELP, report)
        .and_then(|field| read_url(&field, &arguments, report));
    let query = match fields.optional("query") {
        None => Some(BTreeMap::new()),
        Some(field) => read_query(&field, &arguments, report),
    };
    let headers = match fields.optional("headers") {
        None => Some(BTreeMap::new()),
        Some(field) => header::read_all(&field, report),
    };
    let body = match fields.optional("body") {
        None => method.map(HttpMethod::usual_body),
        Some(field) => {
            let words = [
                ("args", HttpBody::Args),
                ("rest", HttpBody::Rest),
                ("none", HttpBody::None),
            ];
            field.one_of("a body", &words, report)
        }
    };
    let idempotency_header = match fields.optional("idempotency_header") {
        None => Some(None),
        Some(field) => header::read_idempotency(&field, headers.as_ref(), report).map(Some),
    };
    let allow_private = match fields.optional("allow_private") {
        None => Some(Vec::new()),
        Some(field) => read_allowed(&field, report),
    };
    let request = HttpRequest {
        method: method?,
        url: url?,
        query: query?,
        headers: headers?,
        body: body?,
        idempotency_header: idempotency_header?,
        allow_private: allow_private?,
    };
    check_whole(fields, &request, report);
    Some(request)
}

/// What only the request as a whole shows.
fn check_whole(fields: &Fields<'_>, request: &HttpRequest, report: &mut Report) {
    let Some(url) = fields.optional("url") else {
        return;
    };
    let host = request.url.host();
    if is_at_home(host)
        && !request
            .allow_private
            .iter()
            .any(|entry| covers(entry, host))
    {
        url.problem(
            &format!("`{host}` is not a public address, so every call would be refused"),
            &format!("if that is meant, add `allow_private: [\"{host}\"]`"),
            report,
        );
    }
    let secret = |header: &HttpHeader| matches!(header, HttpHeader::Secret { .. });
    let in_the_open = !request.url.is_encrypted() && request.allow_private.is_empty();
    if in_the_open && request.headers.values().any(secret) {
        let message = "a secret is sent without encryption: everybody on the way can read it";
        report.warning(url.node.at, &url.path, message, "use https://");
    }
}

/// Whether a host is known, without asking anybody, to be none of the Internet.
pub(crate) fn is_at_home(host: &str) -> bool {
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    match name.parse() {
        Ok(address) => AddressKind::of(address) != AddressKind::Public,
        Err(_) => name == "localhost" || name.ends_with(".localhost"),
    }
}

/// Whether an entry of `allow_private` is about such a host.
pub(crate) fn covers(entry: &str, host: &str) -> bool {
    match (entry.parse::<IpAddr>(), host.parse::<IpAddr>()) {
        (Ok(entry), Ok(host)) => entry == host,
        // What is at home by its name has an address of this machine.
        (Ok(entry), Err(_)) => entry.is_loopback(),
        (Err(_), _) => entry.eq_ignore_ascii_case(host),
    }
}

/// The arguments that a call may have.
struct Arguments<'a> {
    /// `None` if it could not be read, which is a problem of its own.
    schema: Option<&'a Value>,
}

impl Arguments<'_> {
    fn check<'a>(
        &self,
        field: &Field<'_>,
        names: impl Iterator<Item = &'a str>,
        report: &mut Report,
    ) -> Option<()> {
        let Some(schema) = self.schema else {
            return Some(());
        };
        let known: Vec<_> = match schema.get("properties") {
            Some(Value::Object(properties)) => properties.keys().map(String::as_str).collect(),
            _ => Vec::new(),
        };
        let required = |name: &str| {
            let names = schema.get("required").and_then(Value::as_array);
            names.is_some_and(|names| names.iter().any(|known| known == name))
        };
        let mut all = Some(());
        for name in names {
            if !known.contains(&name) {
                let add = "list it under `properties` of `input_schema`";
                let help = match nearest(name, known.iter().copied()) {
                    Some(near) => format!("did you mean `{{{near}}}`? otherwise {add}"),
                    None => add.to_owned(),
                };
                field.problem(
                    &format!("the tool has no argument {}", quoted(name)),
                    &help,
                    report,
                );
                all = None;
            } else if !required(name) {
                report.warning(
                    field.node.at,
                    &field.path,
                    &format!(
                        "the argument {} may be left out, and a call without it fails",
                        quoted(name)
                    ),
                    "list it under `required` of `input_schema`",
                );
            }
        }
        all
    }
}

fn read_url(
    field: &Field<'_>,
    arguments: &Arguments<'_>,
    report: &mut Report,
) -> Option<UrlTemplate> {
    let text = field.some_text(report)?;
    match UrlTemplate::parse(text) {
        Ok(url) => {
            arguments.check(field, url.arguments(), report)?;
            Some(url)
        }
        Err(error) => {
            field.problem(&error.to_string(), &remedy(&error), report);
            None
        }
    }
}

fn remedy(error: &BadTemplate) -> String {
    match error {
        BadTemplate::UserInfo => {
            "send it as a header: `headers: {Authorization: {secret: NAME}}`".to_owned()
        }
        BadTemplate::PlaceInAuthority => "make it a tool for each host".to_owned(),
        BadTemplate::Character('#') => "leave it out: a server never sees it".to_owned(),
        BadTemplate::Character('%') => "write %25 for a percent sign".to_owned(),
        BadTemplate::Character(_) => "percent-encode it".to_owned(),
        BadTemplate::DotSegment => "write the path that is meant".to_owned(),
        BadTemplate::Unclosed
        | BadTemplate::Unopened
        | BadTemplate::Nameless
        | BadTemplate::UnknownVariable(_) => {
            "a name in braces stands for an argument: {order_id}".to_owned()
        }
        BadTemplate::Scheme | BadTemplate::Host(_) => URL_HELP.to_owned(),
        _ => String::new(),
    }
}

fn read_query(
    field: &Field<'_>,
    arguments: &Arguments<'_>,
    report: &mut Report,
) -> Option<BTreeMap<String, Template>> {
    let mut query = BTreeMap::new();
    let mut complete = true;
    for entry in field.entries(report)? {
        let value = Field {
            node: &entry.value,
            path: join(&field.path, &entry.key),
        };
        match read_value(&value, arguments, report) {
            Some(template) => drop(query.insert(entry.key.clone(), template)),
            None => complete = false,
        }
    }
    complete.then_some(query)
}

fn read_value(
    field: &Field<'_>,
    arguments: &Arguments<'_>,
    report: &mut Report,
) -> Option<Template> {
    // `{dry}` without quotes is a map to YAML.
    if let Some(name) = field.lone_key() {
        field.problem(
            "must be text, not a map",
            &format!("put it in quotes: \"{{{name}}}\""),
            report,
        );
        return None;
    }
    match Template::parse(field.text(report)?) {
        Ok(template) => {
            arguments.check(field, template.arguments(), report)?;
            Some(template)
        }
        Err(error) => {
            field.problem(&error.to_string(), &remedy(&error), report);
            None
        }
    }
}

/// Reads `allow_private`.
pub(crate) fn read_allowed(field: &Field<'_>, report: &mut Report) -> Option<Vec<String>> {
    const HELP: &str = "list hosts or addresses without scheme and port, for instance [10.0.0.5, internal.example.com]";
    let items = field.items(HELP, report)?;
    let hosts: Vec<_> = items
        .iter()
        .map(|item| {
            let host = item.some_text(report)?;
            if !is_host(host) {
                item.problem(&format!("{} is not a host", quoted(host)), HELP, report);
                return None;
            }
            Some(host.to_owned())
        })
        .collect();
    hosts.into_iter().collect()
}

fn is_host(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    text.parse::<IpAddr>().is_ok()
        || (text.bytes().all(fits) && text.contains(|char: char| char.is_ascii_alphanumeric()))
}
