//! One gate of `interrupt_on`: when a person is asked, and how.

use holdpoint_core::{Allowed, DecisionKind, Gate, OnTimeout, Terms};
use holdpoint_yaml::{Content, Field, Fields, Report, either};

use crate::{rule, words};

const FORMS: &str = "use true, false or {allowed_decisions: […], description: …}";
const KEYS: [&str; 8] = [
    "allowed_decisions",
    "description",
    "when",
    "rules",
    "always_ask",
    "requires_token",
    "timeout",
    "on_timeout",
];

/// Reads a gate. `asks` is what `true` allows a person to say.
pub(crate) fn read(field: &Field<'_>, asks: &Allowed, report: &mut Report) -> Option<Gate> {
    match &field.node.content {
        Content::Bool(true) => Some(Gate::ask(asks.clone())),
        Content::Bool(false) => Some(Gate::open()),
        Content::Map(_) => read_map(field, report),
        Content::Null | Content::Number(_) | Content::Text(_) | Content::List(_) => {
            field.problem(
                &format!("a gate cannot be {}", field.node.describe()),
                FORMS,
                report,
            );
            None
        }
    }
}

fn read_map(field: &Field<'_>, report: &mut Report) -> Option<Gate> {
    let fields = Fields::open(field, &KEYS, report)?;
    let help = format!("list what a person may say: {}; or say `true`", choices());
    // Whatever else a gate says, it does not say this.
    let allowed = fields
        .required("allowed_decisions", &help, report)
        .and_then(|list| read_allowed(field, &list, report));
    let description = match fields.optional("description") {
        None => Some(None),
        Some(field) => words::template(&field, report).map(Some),
    };
    let always_ask = match fields.optional("always_ask") {
        None => Some(false),
        Some(field) => field.flag(report),
    };
    let requires_token = match fields.optional("requires_token") {
        None => Some(false),
        Some(field) => field.flag(report),
    };
    let cases = rule::read_cases(&fields, always_ask == Some(true), report);
    let timeout = match fields.optional("timeout") {
        None => Some(None),
        Some(field) => field.positive_duration(report).map(Some),
    };
    let on_timeout = match fields.optional("on_timeout") {
        None => Some(OnTimeout::default()),
        Some(field) => read_on_timeout(&field, &fields, report),
    };
    let (rules, otherwise) = cases?;
    Some(Gate {
        rules,
        otherwise,
        terms: Terms {
            allowed: allowed?,
            description: description?,
            always_ask: always_ask?,
            requires_token: requires_token?,
            timeout: timeout?,
            on_timeout: on_timeout?,
            flags: Vec::new(),
        },
    })
}

fn read_on_timeout(
    field: &Field<'_>,
    fields: &Fields<'_>,
    report: &mut Report,
) -> Option<OnTimeout> {
    let words = [
        ("expire", OnTimeout::Expire),
        ("reject", OnTimeout::Reject),
        ("keep", OnTimeout::Keep),
    ];
    if fields.optional("timeout").is_none() {
        let help = "say how long the question stays open, for instance `timeout: 15m`";
        field.problem("`on_timeout` says nothing without `timeout`", help, report);
    }
    if matches!(&field.node.content, Content::Text(text) if text == "escalate") {
        let help = "it comes with a later version; until then use expire, reject or keep";
        field.problem("`escalate` is not possible in this version", help, report);
        return None;
    }
    field.one_of("what can happen then", &words, report)
}

fn read_allowed(gate: &Field<'_>, list: &Field<'_>, report: &mut Report) -> Option<Allowed> {
    let help = format!("list {}, for instance [approve, reject]", choices());
    let items = list.items(&help, report)?;
    if items.is_empty() {
        list.problem(
            "no decision is allowed, so nobody could ever answer",
            &help,
            report,
        );
        return None;
    }
    let kinds: Vec<_> = items
        .iter()
        .map(|item| read_kind(gate, item, report))
        .collect();
    let kinds = kinds.into_iter().collect::<Option<Vec<_>>>()?;
    match Allowed::new(kinds) {
        Ok(allowed) => Some(allowed),
        Err(error) => {
            list.problem(&error.to_string(), "list every decision once", report);
            None
        }
    }
}

fn read_kind(gate: &Field<'_>, item: &Field<'_>, report: &mut Report) -> Option<DecisionKind> {
    // The gate's path, not the item's: what matters is which tool is meant.
    let item = Field {
        node: item.node,
        path: gate.path.clone(),
    };
    let known = DecisionKind::CONFIGURABLE.map(|kind| (kind.as_str(), kind));
    if let Content::Text(name) = &item.node.content
        && let Some(kind) = DecisionKind::from_name(name)
        && !DecisionKind::CONFIGURABLE.contains(&kind)
    {
        let help = format!(
            "it answers a call whose effect is unknown, always; use {}",
            choices()
        );
        item.problem(&format!("`{kind}` cannot be allowed here"), &help, report);
        return None;
    }
    item.one_of("a decision", &known, report)
}

fn choices() -> String {
    either(&DecisionKind::CONFIGURABLE.map(DecisionKind::as_str))
}
