//! `guardrails`: who looks at calls and at what models say, and puts it before a person.
//!
//! What guards nothing is a problem: its author believes that something is looked at.

use std::collections::{BTreeMap, BTreeSet};

use holdpoint_core::{
    CheckedBy, Definition, Guarded, Guardrail, HttpMethod, McpServer, Subagent, is_name,
};
use holdpoint_yaml::{Field, Fields, Report, join, quoted, suggest};

use crate::{
    command::{self, Base},
    confirm,
    http::{self, covers},
    parts::Parts,
};

const KEYS: [&str; 9] = [
    "command",
    "url",
    "headers",
    "allow_private",
    "keywords",
    "code",
    "on",
    "tools",
    "timeout",
];
const KINDS: [&str; 4] = ["command", "url", "keywords", "code"];
const FORM: &str =
    "say who looks: a `command: [./check]`, a `url`, `keywords: [wire]`, or `code: NAME`";

/// Reads the guardrails of an agent. `above` are the names of those that look at it anyway.
pub(crate) fn read_all(
    field: &Field<'_>,
    above: &BTreeSet<String>,
    base: &Base,
    report: &mut Report,
) -> Option<BTreeMap<String, Guardrail>> {
    let mut guardrails = BTreeMap::new();
    let mut complete = true;
    for entry in field.entries(report)? {
        let value = Field {
            node: &entry.value,
            path: join(&field.path, &entry.key),
        };
        complete &= check_name(&value, &entry.key, above, report);
        match read(&value, base, report) {
            Some(guardrail) => drop(guardrails.insert(entry.key.clone(), guardrail)),
            None => complete = false,
        }
    }
    if guardrails.len() + above.len() > Guardrail::MAX {
        let message = format!("more than {} guardrails look at this agent", Guardrail::MAX);
        field.problem(&message, "let one checker look for several things", report);
        return None;
    }
    complete.then_some(guardrails)
}

fn check_name(
    field: &Field<'_>,
    name: &str,
    above: &BTreeSet<String>,
    report: &mut Report,
) -> bool {
    if !is_name(name) {
        let message = format!("{} cannot be the name of a guardrail", quoted(name));
        let help = format!(
            "use 1 to {} letters, digits, `_`, `-` and `.`",
            holdpoint_core::MAX_NAME
        );
        field.problem(&message, &help, report);
        return false;
    }
    if above.contains(name) {
        let message = format!("an agent above has a guardrail {} already", quoted(name));
        let help = "that one looks at this subagent, too, and cannot be replaced; give this one another name, or remove it";
        field.problem(&message, help, report);
        return false;
    }
    true
}

fn read(field: &Field<'_>, base: &Base, report: &mut Report) -> Option<Guardrail> {
    let fields = Fields::open(field, &KEYS, report)?;
    let by = read_checker(&fields, field, base, report);
    let on = match fields.optional("on") {
        None => Some(BTreeSet::from([Guarded::Calls, Guarded::Output])),
        Some(field) => read_on(&field, report),
    };
    let tools = match fields.optional("tools") {
        None => Some(None),
        Some(field) => read_tools(&field, on.as_ref(), report).map(Some),
    };
    let timeout = match fields.optional("timeout") {
        None => Some(Guardrail::DEFAULT_TIMEOUT),
        Some(field) => field.positive_duration(report),
    };
    Some(Guardrail {
        by: by?,
        on: on?,
        tools: tools?,
        timeout: timeout?,
    })
}

fn read_checker(
    fields: &Fields<'_>,
    field: &Field<'_>,
    base: &Base,
    report: &mut Report,
) -> Option<CheckedBy> {
    let said: Vec<&str> = KINDS
        .into_iter()
        .filter(|kind| fields.optional(kind).is_some())
        .collect();
    let &[kind] = said.as_slice() else {
        match said.get(1).and_then(|second| fields.optional(second)) {
            Some(second) => {
                let message = format!("`{}` looks already", said[0]);
                second.problem(&message, "make it two guardrails", report);
            }
            None if KINDS.iter().any(|kind| fields.is_misspelt(kind)) => {}
            None => field.problem("it is not said who looks", FORM, report),
        }
        return None;
    };
    if kind != "url" {
        for key in ["headers", "allow_private"] {
            if let Some(idle) = fields.optional(key) {
                let message = format!("`{key}` says nothing beside `{kind}`");
                idle.problem(&message, "leave it out, or say a `url`", report);
            }
        }
    }
    let value = fields.optional(kind)?;
    match kind {
        "command" => Some(CheckedBy::Command {
            command: command::read(&value, base, report)?,
            cwd: base.as_str().to_owned(),
        }),
        "url" => read_address(fields, &value, report),
        "keywords" => read_keywords(&value, report),
        _ => read_code(&value, report),
    }
}

fn read_address(fields: &Fields<'_>, place: &Field<'_>, report: &mut Report) -> Option<CheckedBy> {
    let read = http::read_from(fields, HttpMethod::Post, None, report)?;
    if read.carries_key() || !read.arguments().is_empty() {
        let help = "leave out what stands in braces: what is looked at is the body of the request";
        place.problem("nothing is filled into this address", help, report);
        return None;
    }
    let is_named = |entry: &String| covers(entry, read.url.host());
    if !read.url.is_encrypted() && !read.allow_private.iter().any(is_named) {
        let message = "what it looks at would be sent without encryption, so it is never asked";
        place.problem(message, "use https://", report);
        return None;
    }
    Some(CheckedBy::Http {
        url: read.url.as_str().to_owned(),
        headers: read.headers,
        allow_private: read.allow_private,
    })
}

fn read_keywords(field: &Field<'_>, report: &mut Report) -> Option<CheckedBy> {
    let words = confirm::read_own(field, report)?;
    if words.is_empty() {
        let help = "list the words, for instance [wire, refund]";
        field.problem("no keyword is listed", help, report);
        return None;
    }
    let keywords = words.into_iter().map(str::to_owned).collect();
    Some(CheckedBy::Keywords { keywords })
}

fn read_code(field: &Field<'_>, report: &mut Report) -> Option<CheckedBy> {
    let name = field.some_text(report)?;
    Some(CheckedBy::Code {
        name: name.to_owned(),
    })
}

fn read_on(field: &Field<'_>, report: &mut Report) -> Option<BTreeSet<Guarded>> {
    const HELP: &str = "list what it looks at: [calls, output], which is both, or one of them";
    let words = [("calls", Guarded::Calls), ("output", Guarded::Output)];
    let items = field.items(HELP, report)?;
    if items.is_empty() {
        field.problem("it looks at nothing", HELP, report);
        return None;
    }
    let read: Vec<_> = items
        .iter()
        .map(|item| item.one_of("something to look at", &words, report))
        .collect();
    read.into_iter().collect()
}

fn read_tools(
    field: &Field<'_>,
    on: Option<&BTreeSet<Guarded>>,
    report: &mut Report,
) -> Option<BTreeSet<String>> {
    const HELP: &str = "list tools, for instance [send_mail], or leave it out for all";
    let names = field.texts(HELP, report)?;
    if names.is_empty() {
        field.problem("no tool is listed", HELP, report);
        return None;
    }
    if on.is_some_and(|on| !on.contains(&Guarded::Calls)) {
        let help = "leave it out, or add `calls` to `on`";
        let message = "it names tools, and does not look at calls";
        field.problem(message, help, report);
        return None;
    }
    Some(names.into_iter().map(str::to_owned).collect())
}

/// Reports every tool that a guardrail of this agent names and that neither the agent nor one below it has. It waits until
/// the `subagents` are read; where they, or the tools, could not be, there may be more.
pub(crate) fn check_tools(
    fields: &Fields<'_>,
    parts: &Parts,
    subagents: Option<&[Subagent]>,
    report: &mut Report,
) {
    let (Some(field), Some(guardrails)) = (fields.optional("guardrails"), &parts.guardrails) else {
        return;
    };
    let (Some(tools), Some(servers), Some(subagents)) = (&parts.tools, &parts.servers, subagents)
    else {
        return;
    };
    let mut known: Vec<&str> = tools.names.iter().map(String::as_str).collect();
    let mut servers: Vec<&McpServer> = servers.iter().collect();
    if !subagents.is_empty() {
        known.push(Definition::TASK);
    }
    for subagent in subagents {
        collect(&subagent.definition, &mut known, &mut servers);
    }
    for (name, guardrail) in guardrails {
        for tool in guardrail.tools.iter().flatten() {
            let of_a_server = servers.iter().any(|server| server.has_named(tool));
            if of_a_server || known.contains(&tool.as_str()) {
                continue;
            }
            let message = format!(
                "no tool is called {}, so this guardrail would never look at it",
                quoted(tool)
            );
            let all = match known.as_slice() {
                [] => "there are no tools".to_owned(),
                known => format!("the tools are {}", known.join(", ")),
            };
            let help = suggest(tool, &known, &all);
            let place = field.follow(&format!("/{name}/tools"));
            place.problem(&message, &help, report);
        }
    }
}

fn collect<'a>(
    definition: &'a Definition,
    known: &mut Vec<&'a str>,
    servers: &mut Vec<&'a McpServer>,
) {
    known.extend(definition.tools.iter().map(|tool| tool.name.as_str()));
    servers.extend(&definition.mcp_servers);
    for subagent in &definition.subagents {
        collect(&subagent.definition, known, servers);
    }
}
