//! The file as a whole: `apiVersion`, `kind`, `metadata`, `spec`.

use holdpoint_core::{Allowed, Breakpoints, DecisionKind, Definition, Limits};
use holdpoint_yaml::{Content, Field, Fields, Node, Report};

use crate::{
    breakpoint,
    command::Base,
    family::Family,
    name,
    parts::{Parts, Unsaid, has_subagents},
    subagent,
};

const API_VERSION: &str = "holdpoint/v1";
pub(crate) const KIND: &str = "Agent";
const KEYS: [&str; 11] = [
    "model",
    "system_prompt",
    "tools",
    "interrupt_on",
    "default",
    "interrupt_mode",
    "limits",
    "breakpoints",
    "subagents",
    "strict",
    "true_includes_respond",
];

const NAME_HELP: &str =
    "use letters, digits, `_`, `-` and `.`; a `/` separates agent and session in `AGENT/SESSION`";

/// Turns the tree of a file into a definition. `None` only if a problem was reported.
pub(crate) fn read(root: &Node, base: &Base, report: &mut Report) -> Option<Definition> {
    let fields = Fields::open(
        &Field::root(root),
        &["apiVersion", "kind", "metadata", "spec"],
        report,
    )?;
    require_version(&fields, report);
    fields.expect_word("kind", KIND, report);
    let metadata = fields.required("metadata", "add `metadata: {name: …}`", report);
    let named = metadata.and_then(|field| read_metadata(&field, report));
    let help = "add `spec:` with a model, tools and `interrupt_on`";
    let spec = fields.required("spec", help, report)?;
    let fields = Fields::open(&spec, &KEYS, report)?;
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
    // A file in which one of these is wrong is refused; the defaults are for finding its other problems.
    let version = named.as_ref().map(|(_, version)| version.clone());
    let mut family = Family::new(
        base,
        version.unwrap_or_default(),
        limits.unwrap_or_default(),
        asks.unwrap_or_else(Allowed::standard),
    );
    family.has_tasks = has_subagents(&fields);
    let parts = Parts::read(&spec, &fields, Unsaid::Default, &mut family, report);
    let subagents = subagent::read_all(&fields, &parts, 1, &mut family, report);
    let breakpoints = match fields.optional("breakpoints") {
        None => Some(Breakpoints::default()),
        Some(field) => breakpoint::read(&field, &family, report),
    };
    let (name, _) = named?;
    let definition = parts.assemble(name, system_prompt?, subagents?, &family)?;
    Some(Definition {
        breakpoints: breakpoints?,
        ..definition
    })
}

fn require_version(fields: &Fields<'_>, report: &mut Report) {
    let version = fields.optional("apiVersion");
    match version {
        Some(field) if matches!(&field.node.content, Content::Text(text) if text == "superagent/v1") =>
        {
            let help = format!("write the agent anew, with `apiVersion: {API_VERSION}`");
            field.problem("`superagent/v1` is not read by this version", &help, report);
        }
        Some(_) | None => fields.expect_word("apiVersion", API_VERSION, report),
    }
}

fn read_metadata(field: &Field<'_>, report: &mut Report) -> Option<(String, String)> {
    let fields = Fields::open(field, &["name", "version"], report)?;
    let name = fields
        .required("name", "every agent needs a name", report)
        .and_then(|field| name::read(&field, "an agent", NAME_HELP, report));
    // A label for people: what a run is pinned to is the digest of the whole definition, so leaving it out is safe.
    let version = fields.version(report);
    Some((name?, version?))
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
