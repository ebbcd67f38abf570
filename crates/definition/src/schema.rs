//! The argument schema of a tool.

use std::error::Error;

use holdpoint_core::Params;
use jsonschema::{Retrieve, Uri, ValidationError, error::ValidationErrorKind};
use serde_json::{Value, json};

use holdpoint_yaml::{Field, Numbers, Report};

/// What a tool takes unless it says so.
pub(crate) fn unsaid() -> Value {
    json!({"type": "object"})
}

/// Reads a JSON Schema, and makes sure that arguments can be checked against it.
pub(crate) fn read(field: &Field<'_>, report: &mut Report) -> Option<Value> {
    // Says what is wrong if it is not a map.
    field.entries(report)?;
    let schema = field.json(Numbers::Exact, report)?;
    if !describes_an_object(&schema) {
        let kind = field.follow("/type");
        kind.problem(
            "arguments are always an object",
            "say `type: object`",
            report,
        );
        return None;
    }
    // In its one spelling, so that it is the same when it is read from a store.
    let schema = match Params::from_value(&schema) {
        Ok(canonical) => canonical.to_value(),
        Err(error) => {
            field.problem(&format!("cannot be stored: {error}"), "", report);
            return None;
        }
    };
    if let Err(error) = jsonschema::options().with_retriever(Nowhere).build(&schema) {
        explain(field, &error, report);
        return None;
    }
    Some(schema)
}

fn explain(field: &Field<'_>, error: &ValidationError<'_>, report: &mut Report) {
    let pointer = error.instance_path().as_str();
    let place = field.follow(pointer);
    let help = if matches!(error.kind(), ValidationErrorKind::Referencing(_)) {
        "refer to something within this schema, for instance `#/$defs/money`; nothing is fetched"
    } else if pointer.ends_with("/type") {
        "use array, boolean, integer, null, number, object or string"
    } else {
        ""
    };
    place.problem(&format!("not a valid JSON Schema: {error}"), help, report);
}

/// Schemas are complete: reading a file must not depend on a network or on other files.
struct Nowhere;

impl Retrieve for Nowhere {
    fn retrieve(&self, _: &Uri<String>) -> Result<Value, Box<dyn Error + Send + Sync>> {
        Err("other documents are not read".into())
    }
}

fn describes_an_object(schema: &Value) -> bool {
    match schema.get("type") {
        None => true,
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        Some(kind) => kind == "object",
    }
}
