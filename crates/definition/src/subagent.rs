//! `subagents`: agents that another one may give tasks to.

use std::collections::BTreeSet;

use holdpoint_core::{Definition, Subagent};
use holdpoint_yaml::{Elsewhere, Field, Fields, Report, quoted};

use crate::{
    family::Family,
    guardrail, name,
    parts::{Parts, Unsaid},
    strict,
};

const KEYS: [&str; 13] = [
    "name",
    "description",
    "system_prompt",
    "model",
    "tools",
    "mcp_servers",
    "interrupt_on",
    "default",
    "interrupt_mode",
    "context",
    "subagents",
    "strict",
    "guardrails",
];
const ABOVE: [Elsewhere<'_>; 2] = [
    Elsewhere {
        keys: &[
            "version",
            "limits",
            "breakpoints",
            "true_includes_respond",
            "workspace",
        ],
        help: "it is said once, for the agent of the file and all its subagents",
    },
    Elsewhere {
        keys: &["confirm"],
        help: "what a subagent says is said to the agent above, and no person reads it; only the agent of the file asks people in words",
    },
];

/// Reads the subagents of an agent that has these `parts`. They are `depth` below the agent of the file.
pub(crate) fn read_all(
    fields: &Fields<'_>,
    parts: &Parts,
    depth: usize,
    family: &mut Family<'_>,
    report: &mut Report,
) -> Option<Vec<Subagent>> {
    let Some(field) = fields.optional("subagents") else {
        return Some(Vec::new());
    };
    let mut items = field.items("begin every subagent with `- name: …`", report)?;
    if depth > Definition::MAX_DEPTH && !items.is_empty() {
        let message = format!("subagents are nested deeper than {}", Definition::MAX_DEPTH);
        field.problem(
            &message,
            "give the tasks of the innermost to one above",
            report,
        );
        return None;
    }
    name::label(&field, &mut items);
    let mut names = BTreeSet::new();
    let mut subagents = Vec::new();
    let mut complete = true;
    for item in items {
        if let Some(name) = name::peek(&item)
            && !names.insert(name)
        {
            let message = format!("a second subagent is called {}", quoted(name));
            item.problem(&message, "give each its own name", report);
        }
        match read(&item, parts, depth, family, report) {
            Some(subagent) => subagents.push(subagent),
            None => complete = false,
        }
    }
    complete.then_some(subagents)
}

fn read(
    item: &Field<'_>,
    parent: &Parts,
    depth: usize,
    family: &mut Family<'_>,
    report: &mut Report,
) -> Option<Subagent> {
    let fields = Fields::open_below(item, &KEYS, &ABOVE, report)?;
    let help = format!(
        "use 1 to {} letters, digits, `_`, `-` and `.`",
        holdpoint_core::MAX_NAME
    );
    let name = fields
        .required("name", "every subagent needs a name", report)
        .and_then(|field| name::read(&field, "a subagent", &help, report));
    let help = "say what it is for: the model that gives it tasks reads this";
    let description = fields
        .required("description", help, report)
        .and_then(|field| field.some_text(report));
    let help = "say what its own model is told first";
    let system_prompt = fields
        .required("system_prompt", help, report)
        .and_then(|field| field.some_text(report));
    let parts = Parts::read(item, &fields, Unsaid::Inherited(parent), family, report);
    strict::check(&fields, &parts, parent, &family.asks, report);
    let subagents = read_all(&fields, &parts, depth + 1, family, report);
    guardrail::check_tools(&fields, &parts, subagents.as_deref(), report);
    let system_prompt = Some(system_prompt?.to_owned());
    Some(Subagent {
        description: description?.to_owned(),
        definition: parts.assemble(name?, system_prompt, subagents?, family)?,
    })
}
