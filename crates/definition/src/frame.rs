//! The frame of an agent's file: `apiVersion`, `kind` and `metadata`, and in which way its `spec` is read.

use holdpoint_core::Definition;
use holdpoint_yaml::{Content, Field, Fields, Node, Report};

use crate::{agent, command::Base, name, names::Names, superagent};

pub(crate) const API_VERSION: &str = "holdpoint/v1";
pub(crate) const KIND: &str = "Agent";

const NAME_HELP: &str =
    "use letters, digits, `_`, `-` and `.`; a `/` separates agent and session in `AGENT/SESSION`";

/// What an agent's file says.
#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) definition: Definition,
    /// The store that it asks for.
    pub(crate) store: Option<String>,
}

/// How a `spec` is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    Holdpoint,
    Superagent,
}

const VERSIONS: [(&str, Version); 2] = [
    (API_VERSION, Version::Holdpoint),
    (superagent::API_VERSION, Version::Superagent),
];

/// Reads the tree of a file. `None` only if a problem was reported.
pub(crate) fn read(root: &Node, base: &Base, names: &Names, report: &mut Report) -> Option<Agent> {
    let fields = Fields::open(
        &Field::root(root),
        &["apiVersion", "kind", "metadata", "spec"],
        report,
    )?;
    let version = read_version(&fields, report);
    fields.expect_word("kind", KIND, report);
    let metadata = fields.required("metadata", "add `metadata: {name: …}`", report);
    let named = metadata.and_then(|field| read_metadata(&field, report));
    let help = match version {
        Version::Holdpoint => "add `spec:` with a model, tools and `interrupt_on`",
        Version::Superagent => "add `spec:` with a model and `interrupt`",
    };
    let spec = fields.required("spec", help, report)?;
    match version {
        Version::Holdpoint => {
            let definition = agent::read(&spec, named, base, names, report)?;
            Some(Agent {
                definition,
                store: None,
            })
        }
        Version::Superagent => superagent::read(&spec, named, base, names, report),
    }
}

/// How the `spec` is to be read; if that is not known, as it was probably meant.
fn read_version(fields: &Fields<'_>, report: &mut Report) -> Version {
    let help = format!("write `apiVersion: {API_VERSION}`");
    let Some(field) = fields.required("apiVersion", &help, report) else {
        return Version::Holdpoint;
    };
    let known = field.one_of("an apiVersion of agents", &VERSIONS, report);
    known.unwrap_or(match &field.node.content {
        Content::Text(text) if text.starts_with("superagent") => Version::Superagent,
        Content::Text(_)
        | Content::Null
        | Content::Bool(_)
        | Content::Number(_)
        | Content::List(_)
        | Content::Map(_) => Version::Holdpoint,
    })
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
