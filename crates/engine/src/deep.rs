//! Values of which it is only said that they do not fit, since to say where would take too long.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// How many ways through a schema that refers to itself are gone to say where a value does not fit. Whether it fits is always found in
/// time.
const MOST_WAYS: u64 = 100_000;

/// Whether it can be said in time where a value does not fit: with each level of it, each reference of a schema that refers to itself
/// may have to be followed.
///
/// # Errors
///
/// It cannot.
pub(crate) fn explainable(schema: &Value, value: &Value) -> Result<(), String> {
    let mut refers = Vec::new();
    references(schema, &mut refers);
    let ways = u64::try_from(refers.len()).unwrap_or(u64::MAX);
    if ways.saturating_pow(depth(value)) > MOST_WAYS && refers_to_itself(schema, &refers) {
        return Err("it is nested too deep to say where".to_owned());
    }
    Ok(())
}

/// It is not deeper than what was parsed.
fn depth(value: &Value) -> u32 {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(entries) => 1 + entries.values().map(depth).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// What a part of a schema refers to.
fn references<'s>(part: &'s Value, found: &mut Vec<&'s str>) {
    match part {
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        Value::Object(entries) => {
            for (key, value) in entries {
                let refers = matches!(key.as_str(), "$ref" | "$dynamicRef" | "$recursiveRef");
                match value.as_str().filter(|_| refers) {
                    Some(to) => found.push(to),
                    None => references(value, found),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Whether references of a schema lead back to where they stand. What is no plain path is taken to do so.
fn refers_to_itself(schema: &Value, refers: &[&str]) -> bool {
    let mut leads_to: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for to in refers {
        let path = to.strip_prefix('#').filter(|path| !path.contains('%'));
        let Some(part) = path.and_then(|path| schema.pointer(path)) else {
            return true;
        };
        if !leads_to.contains_key(to) {
            let mut further = Vec::new();
            references(part, &mut further);
            leads_to.insert(to, further.into_iter().collect());
        }
    }
    let mut led_from: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (from, further) in &leads_to {
        for to in further {
            led_from.entry(to).or_default().push(from);
        }
    }
    // Whatever leads nowhere any more is taken away; what is left in the end goes round.
    let mut left: BTreeMap<&str, usize> = leads_to.iter().map(|(to, it)| (*to, it.len())).collect();
    let mut ends: Vec<&str> = leads_to
        .iter()
        .filter(|(_, further)| further.is_empty())
        .map(|(to, _)| *to)
        .collect();
    while let Some(end) = ends.pop() {
        left.remove(end);
        for from in led_from.get(end).into_iter().flatten() {
            if let Some(ways) = left.get_mut(from) {
                *ways -= 1;
                if *ways == 0 {
                    ends.push(from);
                }
            }
        }
    }
    !left.is_empty()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn nested(levels: usize) -> Value {
        (0..levels).fold(json!(7), |inner, _| json!({"a": inner}))
    }

    #[test]
    fn only_what_goes_round_is_not_explained_and_only_where_that_takes_long() {
        let often = |count: usize| {
            let again: Vec<Value> = (0..count).map(|_| json!({"$ref": "#"})).collect();
            json!({"type": "object", "properties": {"a": {"anyOf": again}}})
        };
        assert!(explainable(&often(2), &nested(16)).is_ok());
        assert!(explainable(&often(2), &nested(17)).is_err());
        assert!(explainable(&often(50), &nested(2)).is_ok());
        assert!(explainable(&often(50), &nested(8)).is_err());
        // One way is one way, however long.
        assert!(explainable(&often(1), &nested(60)).is_ok());
        // It may go round by others.
        let round = json!({"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}], "$defs": {
            "a": {"items": {"$ref": "#/$defs/b"}}, "b": {"items": {"$ref": "#/$defs/a"}},
        }});
        assert!(explainable(&round, &nested(60)).is_err());
        let unknown = json!({"anyOf": [{"$ref": "#x"}, {"$ref": "#x"}]});
        assert!(explainable(&unknown, &nested(60)).is_err());
        // What only refers is explained at any depth.
        let straight = json!({"properties": {"a": {"$ref": "#/$defs/a"}, "b": {"$ref": "#/$defs/b"}}, "$defs": {
            "a": {"items": {"$ref": "#/$defs/b"}}, "b": {"type": "string"},
        }});
        assert!(explainable(&straight, &nested(60)).is_ok());
        assert!(explainable(&json!({"type": "string"}), &nested(60)).is_ok());
    }
}
