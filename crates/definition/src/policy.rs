//! `interrupt_on` and `default`: which calls a person must allow.
//!
//! Everything here fails closed: a gate that cannot be read is a problem, and so is one for a tool that does not exist,
//! because its author believes that some other tool is guarded.

use std::collections::BTreeMap;

use holdpoint_core::{Allowed, DecisionKind, DefaultRule, Gate, Policy};

use holdpoint_yaml::{Content, Entry, Field, Fields, Report, either, join, quoted, suggest};

use crate::tool::Tools;

const FORMS: &str = "use true, false or {allowed_decisions: […], description: …}";

/// Reads the policy. `tools` is what the file defines, unless that could not be read.
pub(crate) fn read(
    spec: &Fields<'_>,
    tools: Option<&Tools>,
    report: &mut Report,
) -> Option<Policy> {
    let gates = match spec.optional("interrupt_on") {
        None => Some(BTreeMap::new()),
        Some(field) => read_gates(&field, tools, report),
    };
    let default = match spec.optional("default") {
        None => Some(DefaultRule::default()),
        Some(field) => {
            if gates
                .as_ref()
                .is_some_and(|gates| gates.contains_key(Policy::ANY))
            {
                let help =
                    "remove one of them: `\"*\"` already covers every tool that is not named";
                field.problem(
                    "`default` says nothing beside `\"*\"` in `interrupt_on`",
                    help,
                    report,
                );
            }
            let words = [
                ("allow", DefaultRule::Allow),
                ("interrupt", DefaultRule::Interrupt),
                ("deny", DefaultRule::Deny),
            ];
            field.one_of("a rule for tools that are not named", &words, report)
        }
    };
    Some(Policy {
        interrupt_on: gates?,
        default: default?,
    })
}

fn read_gates(
    field: &Field<'_>,
    tools: Option<&Tools>,
    report: &mut Report,
) -> Option<BTreeMap<String, Gate>> {
    let mut gates = BTreeMap::new();
    let mut complete = true;
    for entry in field.entries(report)? {
        if let Some(tools) = tools {
            check_tool(entry, &field.path, tools, report);
        }
        let gate = Field {
            node: &entry.value,
            path: join(&field.path, &entry.key),
        };
        match read_gate(&gate, report) {
            Some(gate) => drop(gates.insert(entry.key.clone(), gate)),
            None => complete = false,
        }
    }
    complete.then_some(gates)
}

fn check_tool(entry: &Entry, path: &str, tools: &Tools, report: &mut Report) {
    if entry.key == Policy::ANY || tools.names.contains(&entry.key) {
        return;
    }
    let names: Vec<_> = tools.names.iter().map(String::as_str).collect();
    let known = match names.as_slice() {
        [] => "this agent has no tools".to_owned(),
        [..] => format!("the tools are {}", names.join(", ")),
    };
    let help = suggest(&entry.key, &names, &known);
    let message = format!(
        "no tool is called {}, so this gate would guard nothing",
        quoted(&entry.key)
    );
    report.problem(entry.at, &join(path, &entry.key), &message, &help);
}

fn read_gate(field: &Field<'_>, report: &mut Report) -> Option<Gate> {
    match &field.node.content {
        Content::Bool(true) => Some(Gate::Ask {
            allowed: Allowed::standard(),
            description: None,
        }),
        Content::Bool(false) => Some(Gate::Open),
        Content::Map(_) => read_ask(field, report),
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

fn read_ask(field: &Field<'_>, report: &mut Report) -> Option<Gate> {
    let fields = Fields::open(
        field,
        &["allowed_decisions", "allowedDecisions", "description"],
        report,
    )?;
    let description = match fields.optional("description") {
        None => Some(None),
        Some(field) => field.some_text(report).map(|text| Some(text.to_owned())),
    };
    let allowed = match (
        fields.optional("allowed_decisions"),
        fields.optional("allowedDecisions"),
    ) {
        (Some(_), Some(second)) => {
            let message = "`allowed_decisions` and `allowedDecisions` are the same key";
            second.problem(message, "keep one of them", report);
            None
        }
        (Some(list), None) | (None, Some(list)) => read_allowed(field, &list, report),
        (None, None) => {
            let help = format!("list what a person may say: {}; or say `true`", choices());
            fields.required("allowed_decisions", &help, report);
            None
        }
    };
    Some(Gate::Ask {
        allowed: allowed?,
        description: description?,
    })
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
