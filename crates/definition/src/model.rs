//! Which model answers.

use std::path::Path;

use holdpoint_yaml::{Field, Fields, Report, quoted, suggest};

use crate::{
    command::Base,
    names::{self, Names},
};

pub(crate) const SCRIPTED: &str = "scripted:";
pub(crate) const MISSING: &str = "add `model: {primary: \"scripted:scenario.yaml\"}`";

/// Reads `model: {primary: …}`: a reference, or a name that stands for one here.
pub(crate) fn read(
    field: &Field<'_>,
    base: &Base,
    names: &Names,
    report: &mut Report,
) -> Option<String> {
    let fields = Fields::open(field, &["primary"], report)?;
    let help = "say which model answers, for instance `primary: \"scripted:scenario.yaml\"`";
    let primary = fields.required("primary", help, report)?;
    let text = primary.some_text(report)?;
    // A name may have a colon of its own.
    if text.contains(':') && !names.models.contains_key(text) {
        return read_reference(&primary, base, report);
    }
    names::resolve(&primary, &names::MODEL, &names.models, report)
}

/// Reads what a model is referred to by: a provider, and what it provides.
pub(crate) fn read_reference(
    field: &Field<'_>,
    base: &Base,
    report: &mut Report,
) -> Option<String> {
    let text = field.some_text(report)?;
    let Some(file) = text.strip_prefix(SCRIPTED) else {
        let provider = text.split(':').next().unwrap_or_default();
        let known = "this version knows `scripted:FILE`, which plays a scenario from a file";
        let help = suggest(provider, &["scripted"], known);
        let message = format!("no model provider is called {}", quoted(provider));
        field.problem(&message, &help, report);
        return None;
    };
    if file.is_empty() {
        field.problem("`scripted:` names no file", "write `scripted:FILE`", report);
        return None;
    }
    let path = base.resolve(file);
    if !Path::new(&path).is_file() {
        let help = "relative paths are seen from the folder of this YAML file";
        field.problem(&format!("there is no scenario file `{path}`"), help, report);
        return None;
    }
    Some(format!("{SCRIPTED}{path}"))
}
