//! One tool of an agent.

use holdpoint_core::{Breakpoints, Definition, Effect, ToolKind, ToolSpec};
use holdpoint_yaml::{Field, Fields, Report, quoted};

use crate::{
    bounds::{Bounds, read_effect},
    family::Family,
    name,
    runner::{self, Traits},
    schema,
};

const KEYS: [&str; 13] = [
    "name",
    "description",
    "version",
    "effect",
    "input_schema",
    "command",
    "http",
    "stepped",
    "timeout",
    "settle",
    "lookup",
    "compensate",
    "permissions",
];

/// Reads one tool.
pub(crate) fn read(item: &Field<'_>, family: &Family<'_>, report: &mut Report) -> Option<ToolSpec> {
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
        Some(field) => read_effect(&field, report),
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
    let bounds = Bounds::read(&fields, report);
    let traits = Traits {
        effect,
        kind,
        schema: input_schema.as_ref(),
    };
    let runner = runner::read(&fields, traits, family.base, report);
    let bounds = bounds?;
    Some(ToolSpec {
        name: name?,
        description: description?.to_owned(),
        version: version?,
        effect: effect?,
        input_schema: input_schema?,
        runner: runner?,
        kind: kind?,
        timeout: bounds.timeout,
        settle: bounds.settle,
        permissions: bounds.permissions,
    })
}

fn read_name(field: &Field<'_>, family: &Family<'_>, report: &mut Report) -> Option<String> {
    let help = format!(
        "use 1 to {} of the characters a-z, A-Z, 0-9, `_`, `-` and `.`",
        holdpoint_core::MAX_NAME
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
