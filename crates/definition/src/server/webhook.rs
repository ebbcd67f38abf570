//! `webhooks`: who outside is told what becomes of questions.

use std::collections::BTreeSet;

use holdpoint_core::{InterruptKind, Span, Subscription, is_name};
use holdpoint_yaml::{Field, Fields, Report, quoted};

use super::{
    outbound::{Purpose, check_url},
    tenant,
};
use crate::http;

const KEYS: [&str; 8] = [
    "name",
    "url",
    "secret",
    "types",
    "tenants",
    "timeout",
    "give_up_after",
    "allow_private",
];
const KINDS: [(&str, InterruptKind); 5] = [
    ("approval", InterruptKind::Approval),
    ("input", InterruptKind::Input),
    ("review", InterruptKind::Review),
    ("breakpoint", InterruptKind::Breakpoint),
    ("error", InterruptKind::Error),
];
const NAME_HELP: &str = "give it a name that stays: what is still to be told goes by it";
const URL_HELP: &str = "write where it is told, for instance https://hooks.example.com/holdpoint";
const SECRET_HELP: &str =
    "name the variable of the environment that holds it, for instance `secret: PAGER_SECRET`";
const TYPES_HELP: &str = "list kinds of questions, for instance [approval, review]";
const TENANTS: tenant::Words = tenant::Words {
    help: "list the tenants whose questions it is told of, for instance [acme]",
    star: "`*` is not a tenant: leave `tenants` out for all of them",
};
const TELLING: Purpose = Purpose {
    cannot: "nobody can be told anything here",
    never: "so nothing would be sent there",
    bare: "what is sent without encryption can be read by anybody on the way",
    query: true,
    example: "for instance https://hooks.example.com/holdpoint",
};
/// As long as the specification of Standard Webhooks wants endpoints to have at least.
const TIMEOUT: Span = Span::from_secs(15);
/// Three days: an outage over a weekend loses nothing.
const GIVE_UP_AFTER: Span = Span::from_secs(3 * 24 * 60 * 60);

/// Somebody outside who is told what becomes of questions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    /// Its name. What is still to be told goes by it.
    pub name: String,
    /// Where it is told.
    pub url: String,
    /// The variable of the environment that holds what it is signed with.
    pub secret: String,
    /// Which questions it is told of.
    pub subscription: Subscription,
    /// How long it may take to answer: 15 seconds when unsaid.
    pub timeout: Span,
    /// How long each thing is tried: three days when unsaid.
    pub give_up_after: Span,
    /// Hosts whose addresses need not be public ones.
    pub allow_private: Vec<String>,
}

/// Reads `webhooks: […]`.
pub(super) fn read_all(field: &Field<'_>, report: &mut Report) -> Option<Vec<Webhook>> {
    let items = field.items("list them, each with `- name: …`", report)?;
    let mut seen = BTreeSet::new();
    let mut webhooks = Vec::new();
    for item in items {
        let webhook = read(&item, report);
        if let Some(webhook) = &webhook
            && !seen.insert(webhook.name.clone())
        {
            let message = format!("a second one is called {}", quoted(&webhook.name));
            item.follow("/name")
                .problem(&message, "give one of them another name", report);
        }
        webhooks.push(webhook);
    }
    webhooks.into_iter().collect()
}

fn read(field: &Field<'_>, report: &mut Report) -> Option<Webhook> {
    let fields = Fields::open(field, &KEYS, report)?;
    let name = fields
        .required("name", NAME_HELP, report)
        .and_then(|field| read_name(&field, report));
    let allow_private = match fields.optional("allow_private") {
        None => Some(Vec::new()),
        Some(field) => http::read_allowed(&field, report),
    };
    let url = fields.required("url", URL_HELP, report).and_then(|field| {
        let text = field.some_text(report)?;
        check_url(&field, text, allow_private.as_deref(), &TELLING, report)?;
        Some(text.to_owned())
    });
    let secret = fields
        .required("secret", SECRET_HELP, report)
        .and_then(|field| read_variable(&field, report));
    let kinds = match fields.optional("types") {
        None => Some(BTreeSet::new()),
        Some(field) => read_kinds(&field, report),
    };
    let tenants = match fields.optional("tenants") {
        None => Some(BTreeSet::new()),
        Some(field) => tenant::read_all(&field, &TENANTS, report)
            .filter(|tenants| expect_some(&field, tenants, TENANTS.help, report)),
    };
    let timeout = match fields.optional("timeout") {
        None => Some(TIMEOUT),
        Some(field) => field.positive_duration(report),
    };
    let give_up_after = match fields.optional("give_up_after") {
        None => Some(GIVE_UP_AFTER),
        Some(field) => field.positive_duration(report),
    };
    Some(Webhook {
        name: name?,
        url: url?,
        secret: secret?,
        subscription: Subscription {
            tenants: tenants?,
            kinds: kinds?,
        },
        timeout: timeout?,
        give_up_after: give_up_after?,
        allow_private: allow_private?,
    })
}

fn read_name(field: &Field<'_>, report: &mut Report) -> Option<String> {
    let text = field.some_text(report)?;
    if !is_name(text) {
        let message = format!("{} cannot be a name", quoted(text));
        field.problem(&message, "use letters, digits, `_`, `-` and `.`", report);
        return None;
    }
    Some(text.to_owned())
}

/// The name of a variable. Whatever does not look like one may be the secret itself, and is not repeated.
fn read_variable(field: &Field<'_>, report: &mut Report) -> Option<String> {
    let text = field.some_text(report)?;
    let fits = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    if !text.bytes().all(fits) || text.starts_with(|char: char| char.is_ascii_digit()) {
        let message = "must be the name of a variable in upper case, not what it holds";
        field.problem(message, SECRET_HELP, report);
        return None;
    }
    Some(text.to_owned())
}

fn read_kinds(field: &Field<'_>, report: &mut Report) -> Option<BTreeSet<InterruptKind>> {
    let items = field.items(TYPES_HELP, report)?;
    let kinds = items
        .iter()
        .map(|item| item.one_of("a kind of question", &KINDS, report));
    let kinds: Vec<_> = kinds.collect();
    let kinds: BTreeSet<_> = kinds.into_iter().collect::<Option<_>>()?;
    expect_some(field, &kinds, TYPES_HELP, report).then_some(kinds)
}

/// None at all would mean all of them, which nobody means who writes an empty list.
fn expect_some<T>(field: &Field<'_>, given: &BTreeSet<T>, help: &str, report: &mut Report) -> bool {
    if given.is_empty() {
        let message = "must not be empty: leave it out for all of them";
        field.problem(message, help, report);
    }
    !given.is_empty()
}
