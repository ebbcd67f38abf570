//! Which model answers.

use holdpoint_yaml::{Field, Fields, Report, quoted, suggest};

use crate::command::Base;

pub(crate) const SCRIPTED: &str = "scripted:";
pub(crate) const MISSING: &str = "add `model: {primary: \"scripted:scenario.yaml\"}`";

/// Reads `model: {primary: …}`.
pub(crate) fn read(field: &Field<'_>, base: &Base, report: &mut Report) -> Option<String> {
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
