//! Values of which it is only said that they do not fit, since to say where would take too long.

use serde_json::Value;

/// How deep a value may be nested of which it is said where it does not fit its schema: where a schema refers to itself, the time that
/// takes may double with each level. Whether it fits is always found in time.
const MOST: usize = 8;

/// # Errors
///
/// It is nested too deep for that.
pub(crate) fn explainable(value: &Value) -> Result<(), String> {
    if depth(value) > MOST {
        return Err(format!("somewhere below {MOST} levels"));
    }
    Ok(())
}

/// It is not deeper than what was parsed.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(entries) => 1 + entries.values().map(depth).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}
