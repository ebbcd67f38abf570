//! The `spec` of `apiVersion: holdpoint/v1`.

use holdpoint_core::{Allowed, Breakpoints, DecisionKind, Definition, Limits};
use holdpoint_yaml::{Field, Fields, Report};

use crate::{
    breakpoint, builtin,
    command::Base,
    confirm,
    family::Family,
    guardrail,
    names::Names,
    parts::{Parts, Unsaid, has_subagents},
    subagent,
};

const KEYS: [&str; 16] = [
    "model",
    "workspace",
    "system_prompt",
    "tools",
    "mcp_servers",
    "interrupt_on",
    "default",
    "interrupt_mode",
    "context",
    "limits",
    "breakpoints",
    "subagents",
    "strict",
    "true_includes_respond",
    "confirm",
    "guardrails",
];

/// Reads the `spec` of an agent that has this name and version. `None` only if a problem was reported.
pub(crate) fn read(
    spec: &Field<'_>,
    named: Option<(String, String)>,
    base: &Base,
    names: &Names,
    report: &mut Report,
) -> Option<Definition> {
    let fields = Fields::open(spec, &KEYS, report)?;
    let system_prompt = match fields.optional("system_prompt") {
        None => Some(None),
        Some(field) => field.text(report).map(|text| Some(text.to_owned())),
    };
    let limits = match fields.optional("limits") {
        None => Some(Limits::default()),
        Some(field) => read_limits(&field, report),
    };
    let asks = match fields.optional("true_includes_respond") {
        None => Some(Allowed::standard()),
        Some(field) => read_asks(&field, report),
    };
    let confirm = match fields.optional("confirm") {
        None => Some(None),
        Some(field) => confirm::read(&field, report),
    };
    // A file in which one of these is wrong is refused; the defaults are for finding its other problems.
    let version = named.as_ref().map(|(_, version)| version.clone());
    let mut family = Family::new(
        base,
        names,
        version.unwrap_or_default(),
        limits.unwrap_or_default(),
        asks.unwrap_or_else(Allowed::standard),
    );
    family.has_tasks = has_subagents(&fields);
    if let Some(field) = fields.optional("workspace") {
        family.workspace = builtin::read_workspace(&field, base, report);
    }
    let parts = Parts::read(spec, &fields, Unsaid::Default, &mut family, report);
    let subagents = subagent::read_all(&fields, &parts, 1, &mut family, report);
    guardrail::check_tools(&fields, &parts, subagents.as_deref(), report);
    let breakpoints = match fields.optional("breakpoints") {
        None => Some(Breakpoints::default()),
        Some(field) => breakpoint::read(&field, &family, report),
    };
    let (name, _) = named?;
    let definition = parts.assemble(name, system_prompt?, subagents?, &family)?;
    Some(Definition {
        breakpoints: breakpoints?,
        confirm: confirm?,
        ..definition
    })
}

/// What `true` allows a person to say.
fn read_asks(field: &Field<'_>, report: &mut Report) -> Option<Allowed> {
    if !field.flag(report)? {
        return Some(Allowed::standard());
    }
    let mut kinds = Allowed::standard().as_slice().to_vec();
    kinds.push(DecisionKind::Respond);
    Allowed::new(kinds).ok()
}

fn read_limits(field: &Field<'_>, report: &mut Report) -> Option<Limits> {
    let unsaid = Limits::default();
    let fields = Fields::open(field, &["turns", "calls", "time"], report)?;
    let turns = fields
        .optional("turns")
        .map_or(Some(unsaid.turns), |field| field.count(report));
    let calls = fields
        .optional("calls")
        .map_or(Some(unsaid.calls), |field| field.count(report));
    let time = fields
        .optional("time")
        .map_or(Some(unsaid.time), |field| field.positive_duration(report));
    Some(Limits {
        turns: turns?,
        calls: calls?,
        time: time?,
    })
}
