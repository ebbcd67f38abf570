//! Names in agents' files that stand for something else where the agent runs.

use std::{collections::BTreeMap, ffi::OsStr};

use holdpoint_core::{Providers, is_name};
use holdpoint_yaml::{Field, Report, quoted, suggest};

/// What names in agents' files stand for here. Nobody looks at the references again: paths in them are absolute.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    /// Models, each with the reference that it stands for, for instance `scripted:/path/scenario.yaml`.
    pub models: BTreeMap<String, String>,
    /// Stores, each with the url that it stands for, for instance `sqlite:/path/chat.db`.
    pub stores: BTreeMap<String, String>,
    /// Who provides models: in `openai:gpt-4o` what stands before the colon.
    pub providers: Providers,
}

/// Where agents will run, as far as their files depend on it.
#[derive(Debug, Clone, Copy)]
pub struct Setting<'a> {
    /// What names stand for.
    pub names: &'a Names,
    /// The `PATH` on which programs will be looked for; `None` if that is not known, and then nobody is warned of
    /// programs that are not there.
    pub search: Option<&'a OsStr>,
}

/// What a name can be of.
#[derive(Debug)]
pub(crate) struct Kind {
    what: &'static str,
    /// Where it could be given a meaning, and which.
    section: &'static str,
    example: &'static str,
    /// What else could be done about it.
    otherwise: &'static str,
}

pub(crate) const MODEL: Kind = Kind {
    what: "model",
    section: "models",
    example: "openai:gpt-4o",
    otherwise: "; or write `PROVIDER:MODEL` here, for instance `openai:gpt-4o`",
};
pub(crate) const STORE: Kind = Kind {
    what: "store",
    section: "stores",
    example: "sqlite:PATH",
    otherwise: "",
};

/// What the name in this field stands for; that it stands for nothing is reported.
pub(crate) fn resolve(
    field: &Field<'_>,
    kind: &Kind,
    names: &BTreeMap<String, String>,
    report: &mut Report,
) -> Option<String> {
    let name = field.some_text(report)?;
    if let Some(meaning) = names.get(name) {
        return Some(meaning.clone());
    }
    let Kind {
        what,
        section,
        example,
        otherwise,
    } = kind;
    let key = if is_name(name) { name } else { "NAME" };
    let map = format!(
        "map it where the server is configured: `{section}: {{{key}: \"{example}\"}}`{otherwise}"
    );
    let known: Vec<_> = names.keys().map(String::as_str).collect();
    let message = format!("no {what} is called {} here", discreet(name));
    field.problem(&message, &suggest(name, &known, &map), report);
    None
}

/// A name in backticks; of what might be a url only its beginning, because the rest may hold a password.
pub(crate) fn discreet(text: &str) -> String {
    match text.split_once(':') {
        None => quoted(text),
        Some((scheme, _)) => quoted(&format!("{scheme}:…")),
    }
}
