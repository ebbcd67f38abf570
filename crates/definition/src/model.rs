//! Which models answer, and how they are asked.

use std::{collections::BTreeSet, path::Path};

use holdpoint_core::{Definition, MAX_OFFERED_NAME, Sampling, can_be_offered};
use holdpoint_yaml::{Content, Field, Fields, Report, nearest, quoted, suggest};
use serde::Serialize;

use crate::{
    command::Base,
    names::{self, Names},
};

pub(crate) const SCRIPTED: &str = "scripted:";
pub(crate) const MISSING: &str = "add `model: {primary: \"openai:gpt-4o\"}`";

/// The highest temperature that any provider takes.
const MAX_TEMPERATURE: f64 = 2.0;

/// What `model` says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Models {
    pub(crate) primary: String,
    pub(crate) fallback: Vec<String>,
    pub(crate) sampling: Sampling,
}

impl Models {
    /// A definition with these.
    pub(crate) fn of(self, definition: Definition) -> Definition {
        Definition {
            model: self.primary,
            fallback: self.fallback,
            sampling: self.sampling,
            ..definition
        }
    }

    fn all(&self) -> impl Iterator<Item = &str> {
        let all = [&self.primary].into_iter().chain(&self.fallback);
        all.map(String::as_str)
    }
}

/// Reads `model: {primary: …}`: references, or names that stand for some here.
pub(crate) fn read(
    field: &Field<'_>,
    base: &Base,
    names: &Names,
    report: &mut Report,
) -> Option<Models> {
    const KEYS: [&str; 5] = [
        "primary",
        "fallback",
        "max_output_tokens",
        "temperature",
        "effort",
    ];
    let fields = Fields::open(field, &KEYS, report)?;
    let help = "say which model answers, for instance `primary: \"openai:gpt-4o\"`";
    let primary = fields
        .required("primary", help, report)
        .and_then(|field| read_one(&field, base, names, report));
    let fallback = match fields.optional("fallback") {
        None => Some(Vec::new()),
        Some(field) => read_fallback(&field, primary.as_deref(), base, names, report),
    };
    let max_output_tokens = match fields.optional("max_output_tokens") {
        None => Some(None),
        Some(field) => field.count(report).map(Some),
    };
    let temperature_milli = match fields.optional("temperature") {
        None => Some(None),
        Some(field) => read_temperature(&field, report).map(Some),
    };
    let effort_field = fields.optional("effort");
    let effort = match &effort_field {
        None => Some(None),
        Some(field) => field.some_text(report).map(|text| Some(text.to_owned())),
    };
    let models = Models {
        primary: primary?,
        fallback: fallback?,
        sampling: Sampling {
            max_output_tokens: max_output_tokens?,
            temperature_milli: temperature_milli?,
            effort: effort?,
        },
    };
    if let (Some(field), Some(effort)) = (&effort_field, &models.sampling.effort) {
        check_effort(field, effort, &models, names, report);
    }
    Some(models)
}

fn read_one(field: &Field<'_>, base: &Base, names: &Names, report: &mut Report) -> Option<String> {
    let text = field.some_text(report)?;
    // A name may have a colon of its own.
    if text.contains(':') && !names.models.contains_key(text) {
        return read_reference(field, base, names, report);
    }
    names::resolve(field, &names::MODEL, &names.models, report)
}

fn read_fallback(
    field: &Field<'_>,
    primary: Option<&str>,
    base: &Base,
    names: &Names,
    report: &mut Report,
) -> Option<Vec<String>> {
    let fields = match &field.node.content {
        Content::List(_) => {
            field.items("list the models that answer where the first cannot", report)?
        }
        Content::Null
        | Content::Bool(_)
        | Content::Number(_)
        | Content::Text(_)
        | Content::Map(_) => vec![Field {
            node: field.node,
            path: field.path.clone(),
        }],
    };
    let mut seen: BTreeSet<String> = primary.map(str::to_owned).into_iter().collect();
    let mut fallback = Vec::new();
    let mut complete = true;
    for field in fields {
        let Some(reference) = read_one(&field, base, names, report) else {
            complete = false;
            continue;
        };
        if !seen.insert(reference.clone()) {
            let message = format!("{} is asked before already", quoted(&reference));
            field.problem(&message, "name another model, or remove it", report);
            complete = false;
        }
        fallback.push(reference);
    }
    complete.then_some(fallback)
}

/// Reads a temperature, in thousandths.
fn read_temperature(field: &Field<'_>, report: &mut Report) -> Option<u16> {
    let number = match &field.node.content {
        Content::Number(text) => text.parse::<f64>().ok(),
        Content::Null
        | Content::Bool(_)
        | Content::Text(_)
        | Content::List(_)
        | Content::Map(_) => None,
    };
    let milli = number
        .filter(|number| (0.0..=MAX_TEMPERATURE).contains(number))
        .map(|number| number * 1_000.0)
        .filter(|milli| (milli - milli.round()).abs() < 1e-6);
    let Some(milli) = milli else {
        let message = format!(
            "must be a number from 0 to {MAX_TEMPERATURE}, not {}",
            field.node.describe()
        );
        let help = "write it with three decimals at most, or leave it out for the model's own";
        field.problem(&message, help, report);
        return None;
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is a whole number from 0 to 2000"
    )]
    Some(milli.round() as u16)
}

fn check_effort(
    field: &Field<'_>,
    effort: &str,
    models: &Models,
    names: &Names,
    report: &mut Report,
) {
    for reference in models.all() {
        let provider = names.providers.named(reference);
        let Some(known) = provider.and_then(|(_, provider, _)| provider.api.efforts()) else {
            continue;
        };
        if !known.contains(&effort) {
            let message = format!("{} is no effort of {}", quoted(effort), quoted(reference));
            let help = suggest(effort, known, &format!("use {}", known.join(", ")));
            field.problem(&message, &help, report);
            return;
        }
    }
}

/// Reports a tool that a provider would refuse.
pub(crate) fn check_tools<'a>(
    models: &Models,
    tools: impl Iterator<Item = &'a str>,
    names: &Names,
    place: &Field<'_>,
    report: &mut Report,
) {
    let mut all = models.all();
    let Some(provided) = all.find(|reference| names.providers.named(reference).is_some()) else {
        return;
    };
    for tool in tools.filter(|tool| !can_be_offered(tool)) {
        let message = format!(
            "{} takes no tool that is called {}",
            quoted(provided),
            quoted(tool)
        );
        let help = format!("use up to {MAX_OFFERED_NAME} letters, digits, `_` and `-`");
        place.problem(&message, &help, report);
    }
}

/// Reads what a model is referred to by: a provider, and what it provides.
pub(crate) fn read_reference(
    field: &Field<'_>,
    base: &Base,
    names: &Names,
    report: &mut Report,
) -> Option<String> {
    let text = field.some_text(report)?;
    let Some(file) = text.strip_prefix(SCRIPTED) else {
        return read_provided(field, text, names, report);
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

fn read_provided(
    field: &Field<'_>,
    text: &str,
    names: &Names,
    report: &mut Report,
) -> Option<String> {
    if names.providers.named(text).is_some() {
        return Some(text.to_owned());
    }
    let (provider, model) = text.split_once(':').unwrap_or((text, ""));
    let known: Vec<&str> = names.providers.names().chain(["scripted"]).collect();
    if known.contains(&provider) {
        let message = format!("{} names no model", quoted(text));
        let help = format!("write `{provider}:MODEL`");
        field.problem(&message, &help, report);
        return None;
    }
    // Of a model with a colon in its name the provider may just be missing.
    let example = match nearest(provider, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}:{model}`? "),
        None => String::new(),
    };
    let help = format!(
        "{example}write `PROVIDER:MODEL`, for instance `ollama:llama3:8b`; known are {}, and `providers` of a server's file adds more",
        known.join(", ")
    );
    let message = format!("no model provider is called {}", quoted(provider));
    field.problem(&message, &help, report);
    None
}
