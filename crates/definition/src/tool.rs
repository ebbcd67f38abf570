//! One tool of an agent.

use holdpoint_core::{Breakpoints, Definition, Effect, Runner, ToolKind, ToolSpec};
use holdpoint_yaml::{Field, Fields, Report, quoted};

use crate::{command, family::Family, name, schema};

const KEYS: [&str; 12] = [
    "name",
    "description",
    "version",
    "effect",
    "input_schema",
    "command",
    "stepped",
    "timeout",
    "settle",
    "lookup",
    "compensate",
    "permissions",
];

/// Reads one tool.
pub(crate) fn read(item: &Field<'_>, family: &Family<'_>, report: &mut Report) -> Option<ToolSpec> {
    let base = family.base;
    let fields = Fields::open(item, &KEYS, report)?;
    let name = fields
        .required("name", "every tool needs a name", report)
        .and_then(|field| read_name(&field, family, report));
    let description = match fields.optional("description") {
        None => Some(""),
        Some(field) => field.text(report),
    };
    let version = fields.version(report);
    let effect = match fields.optional("effect") {
        None => Some(Effect::Write),
        Some(field) => {
            let words = [
                ("read", Effect::Read),
                ("idempotent", Effect::Idempotent),
                ("write", Effect::Write),
            ];
            field.one_of("an effect", &words, report)
        }
    };
    let input_schema = match fields.optional("input_schema") {
        None => Some(schema::unsaid()),
        Some(field) => schema::read(&field, report),
    };
    let kind = match fields.optional("stepped") {
        None => Some(ToolKind::Plain),
        Some(field) => field.flag(report).map(|stepped| {
            if stepped {
                ToolKind::Stepped
            } else {
                ToolKind::Plain
            }
        }),
    };
    let timeout = match fields.optional("timeout") {
        None => Some(ToolSpec::DEFAULT_TIMEOUT),
        Some(field) => field.positive_duration(report),
    };
    let settle = match fields.optional("settle") {
        None => Some(ToolSpec::DEFAULT_SETTLE),
        Some(field) => field.duration(report),
    };
    let help = "name the program that does it, for instance `command: [./refund]`";
    let command = fields
        .required("command", help, report)
        .and_then(|field| command::read(&field, base, report));
    let hook = |key: &str, report: &mut Report| match fields.optional(key) {
        None => Some(None),
        Some(field) => command::read(&field, base, report).map(Some),
    };
    let lookup = hook("lookup", report);
    let compensate = hook("compensate", report);
    let permissions = match fields.optional("permissions") {
        None => Some(Vec::new()),
        Some(field) => field.texts("list the permissions, for instance [refunds]", report),
    };
    if effect == Some(Effect::Write) && lookup == Some(None) {
        warn_of_unknown(item, kind.unwrap_or_default(), report);
    }
    Some(ToolSpec {
        name: name?,
        description: description?.to_owned(),
        version: version?,
        effect: effect?,
        input_schema: input_schema?,
        runner: Runner::Command {
            command: command?,
            cwd: base.as_str().to_owned(),
            lookup: lookup?,
            compensate: compensate?,
        },
        kind: kind?,
        timeout: timeout?,
        settle: settle?,
        permissions: permissions?.into_iter().map(str::to_owned).collect(),
    })
}

fn warn_of_unknown(item: &Field<'_>, kind: ToolKind, report: &mut Report) {
    let (message, help) = match kind {
        ToolKind::Plain | ToolKind::Task => (
            "a `write` tool without a `lookup`: when a call is cut off, a person has to find out what it did",
            "add a `lookup`, or say `effect: idempotent` if it passes HOLDPOINT_IDEMPOTENCY_KEY on to a system that acts once per key",
        ),
        ToolKind::Stepped => (
            "a stepped tool without a `lookup`: when a `write` step is cut off, a person has to find out what it did",
            "add a `lookup`, or say `effect: idempotent` or `effect: read` if no step is a `write`",
        ),
    };
    report.warning(item.node.at, &item.path, message, help);
}

fn read_name(field: &Field<'_>, family: &Family<'_>, report: &mut Report) -> Option<String> {
    let help = format!(
        "use 1 to {} of the characters a-z, A-Z, 0-9, `_`, `-` and `.`",
        name::LONGEST
    );
    let name = name::read(field, "a tool", &help, report)?;
    let taken = match name.as_str() {
        Breakpoints::MODEL => "at a breakpoint, that is the model's turn",
        Definition::TASK if family.has_tasks => "that is how tasks are given to subagents",
        _ => return Some(name),
    };
    let message = format!("a tool cannot be called {}: {taken}", quoted(&name));
    field.problem(&message, "give it another name", report);
    None
}
