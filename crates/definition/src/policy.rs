//! `interrupt_on` and `default`: which calls a person must allow.
//!
//! Everything here fails closed: a gate that cannot be read is a problem, and so is one for a tool that does not exist,
//! because its author believes that some other tool is guarded.

use std::collections::BTreeMap;

use holdpoint_core::{Allowed, Definition, Gate, McpServer, Policy, Ruling};
use holdpoint_yaml::{Entry, Field, Fields, Report, join, quoted, suggest};

use crate::{gate, rule, tools::Tools};

/// What a policy can guard.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Guarded<'a> {
    /// The agent's tools, unless they could not be read.
    pub(crate) tools: Option<&'a Tools>,
    /// Its servers, whose tools are not known yet; unless they could not be read.
    pub(crate) servers: Option<&'a [McpServer]>,
    /// Whether it can give tasks.
    pub(crate) has_tasks: bool,
}

/// The policy of an agent that says nothing.
pub(crate) fn open() -> Policy {
    Policy {
        interrupt_on: BTreeMap::new(),
        default: Ruling::Allow,
    }
}

/// Reads the policy. `unsaid` is where the keys come from that are not written, unless that could not be read.
pub(crate) fn read(
    fields: &Fields<'_>,
    guarded: Guarded<'_>,
    unsaid: Option<Policy>,
    asks: &Allowed,
    report: &mut Report,
) -> Option<Policy> {
    let (gates, default) = match unsaid {
        Some(policy) => (Some(policy.interrupt_on), Some(policy.default)),
        None => (None, None),
    };
    let written = fields.optional("interrupt_on");
    let gates = match &written {
        None => gates,
        Some(field) => read_gates(field, guarded, asks, report),
    };
    let default = match fields.optional("default") {
        None => default,
        Some(field) => {
            let has_any = |gates: &BTreeMap<_, _>| gates.contains_key(Policy::ANY);
            if gates.as_ref().is_some_and(has_any) {
                let help = match written {
                    Some(_) => {
                        "remove one of them: `\"*\"` already covers every tool that is not named"
                    }
                    None => {
                        "remove it, or write `interrupt_on` here: that of the agent above has `\"*\"`"
                    }
                };
                let message = "`default` says nothing beside `\"*\"` in `interrupt_on`";
                field.problem(message, help, report);
            }
            field.one_of(
                "a rule for tools that are not named",
                &rule::RULINGS,
                report,
            )
        }
    };
    Some(Policy {
        interrupt_on: gates?,
        default: default?,
    })
}

/// Writes out what `default: interrupt` allows a person to say, where that is not the standard.
pub(crate) fn complete(mut policy: Policy, asks: &Allowed) -> Policy {
    if policy.default == Ruling::Interrupt && *asks != Allowed::standard() {
        let gates = &mut policy.interrupt_on;
        gates
            .entry(Policy::ANY.to_owned())
            .or_insert_with(|| Gate::ask(asks.clone()));
    }
    policy
}

fn read_gates(
    field: &Field<'_>,
    guarded: Guarded<'_>,
    asks: &Allowed,
    report: &mut Report,
) -> Option<BTreeMap<String, Gate>> {
    let mut gates = BTreeMap::new();
    let mut complete = true;
    for entry in field.entries(report)? {
        check_tool(entry, &field.path, guarded, report);
        let gate = Field {
            node: &entry.value,
            path: join(&field.path, &entry.key),
        };
        match gate::read(&gate, asks, report) {
            Some(gate) => drop(gates.insert(entry.key.clone(), gate)),
            None => complete = false,
        }
    }
    complete.then_some(gates)
}

fn check_tool(entry: &Entry, path: &str, guarded: Guarded<'_>, report: &mut Report) {
    let (Some(tools), Some(servers)) = (guarded.tools, guarded.servers) else {
        return;
    };
    if servers.iter().any(|it| it.has_named(&entry.key)) {
        return;
    }
    let mut names: Vec<_> = tools.names.iter().map(String::as_str).collect();
    if guarded.has_tasks {
        names.push(Definition::TASK);
    }
    if entry.key == Policy::ANY || names.contains(&entry.key.as_str()) {
        return;
    }
    let known = match names.as_slice() {
        _ if !servers.is_empty() => {
            let servers: Vec<_> = servers.iter().map(|it| it.name.as_str()).collect();
            format!(
                "a tool of an MCP server is called SERVER{}TOOL; the servers are {}",
                McpServer::BETWEEN,
                servers.join(", ")
            )
        }
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
