//! The file as a whole: `apiVersion`, `kind`, `metadata`, `spec`.

use holdpoint_core::{Definition, FORMAT, InterruptMode, Limits};

use holdpoint_yaml::{Content, Field, Fields, Node, Report, quoted, suggest};

use crate::{
    command::Base,
    policy,
    tool::{self, Tools},
};

const API_VERSION: &str = "holdpoint/v1";
pub(crate) const KIND: &str = "Agent";
pub(crate) const SCRIPTED: &str = "scripted:";

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
    let spec = fields.required(
        "spec",
        "add `spec:` with a model, tools and `interrupt_on`",
        report,
    );
    let spec = spec.and_then(|field| {
        let keys = [
            "model",
            "system_prompt",
            "tools",
            "interrupt_on",
            "default",
            "interrupt_mode",
            "limits",
        ];
        Fields::open(&field, &keys, report)
    })?;
    let help = "add `model: {primary: \"scripted:scenario.yaml\"}`";
    let model = spec
        .required("model", help, report)
        .and_then(|field| read_model(&field, base, report));
    let system_prompt = match spec.optional("system_prompt") {
        None => Some(None),
        Some(field) => field.text(report).map(|text| Some(text.to_owned())),
    };
    let tools = match spec.optional("tools") {
        None => Some(Tools::default()),
        Some(field) => tool::read_all(&field, base, report),
    };
    let policy = policy::read(&spec, tools.as_ref(), report);
    let interrupt_mode = spec
        .optional("interrupt_mode")
        .map_or(Some(InterruptMode::Batched), |field| {
            read_mode(&field, report)
        });
    let limits = spec
        .optional("limits")
        .map_or(Some(Limits::default()), |field| read_limits(&field, report));
    let (name, version) = named?;
    Some(Definition {
        format: FORMAT,
        name,
        version,
        model: model?,
        system_prompt: system_prompt?,
        tools: tools?.specs,
        policy: policy?,
        interrupt_mode: interrupt_mode?,
        limits: limits?,
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
        .and_then(|field| read_name(&field, report));
    // A label for people: what a run is pinned to is the digest of the whole definition, so leaving it out is safe.
    let version = fields.version(report);
    Some((name?, version?))
}

fn read_name(field: &Field<'_>, report: &mut Report) -> Option<String> {
    let name = field.text(report)?;
    if !tool::is_name(name) {
        let help = "use letters, digits, `_`, `-` and `.`; a `/` separates agent and session in `AGENT/SESSION`";
        field.problem(
            &format!("{} cannot be an agent's name", quoted(name)),
            help,
            report,
        );
        return None;
    }
    Some(name.to_owned())
}

fn read_model(field: &Field<'_>, base: &Base, report: &mut Report) -> Option<String> {
    let fields = Fields::open(field, &["primary"], report)?;
    let help = "say which model answers, for instance `primary: \"scripted:scenario.yaml\"`";
    let primary = fields.required("primary", help, report)?;
    let text = primary.text(report)?;
    let Some(file) = text.strip_prefix(SCRIPTED) else {
        let provider = text.split(':').next().unwrap_or_default();
        let known = "this version knows `scripted:FILE`, which plays a scenario from a file";
        let help = suggest(provider, &["scripted"], known);
        let message = format!("no model provider is called {}", quoted(provider));
        primary.problem(&message, &help, report);
        return None;
    };
    if file.is_empty() {
        primary.problem("`scripted:` names no file", "write `scripted:FILE`", report);
        return None;
    }
    let path = base.resolve(file);
    if !std::path::Path::new(&path).is_file() {
        let help = "relative paths are seen from the folder of this YAML file";
        primary.problem(&format!("there is no scenario file `{path}`"), help, report);
        return None;
    }
    Some(format!("{SCRIPTED}{path}"))
}

fn read_mode(field: &Field<'_>, report: &mut Report) -> Option<InterruptMode> {
    if matches!(&field.node.content, Content::Text(text) if text == "per_call") {
        let help = "use `batched`: all calls of a turn that need a person make one interrupt";
        field.problem("`per_call` is not possible in this version", help, report);
        return None;
    }
    field.one_of(
        "an interrupt mode",
        &[("batched", InterruptMode::Batched)],
        report,
    )
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
