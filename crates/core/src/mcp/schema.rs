//! Whether a schema that somebody else has written can be looked at in bounded time.

use std::collections::BTreeMap;

use serde_json::Value;

/// How many parts a schema may have once every reference in it stands for what it refers to.
const MOST: u64 = 100_000;

/// How deep it may be then.
const DEEPEST: usize = 1_000;

/// Whether references do not multiply: a few kilobytes of them can stand for more parts than there is time for.
///
/// A reference back to where it stands in counts once. What that costs depends on what is looked at, which is bounded.
pub(super) fn is_light(schema: &Value) -> bool {
    let mut schema = Weighed {
        root: schema,
        known: BTreeMap::new(),
    };
    schema.weight(schema.root, 0) <= MOST
}

struct Weighed<'a> {
    root: &'a Value,
    /// What was referred to before.
    known: BTreeMap<String, u64>,
}

impl Weighed<'_> {
    /// How many parts there are.
    fn weight(&mut self, part: &Value, depth: usize) -> u64 {
        if depth > DEEPEST {
            return u64::MAX;
        }
        let depth = depth + 1;
        match part {
            Value::Array(items) => items.iter().fold(1, |sum: u64, item| {
                sum.saturating_add(self.weight(item, depth))
            }),
            Value::Object(fields) => fields.iter().fold(1, |sum: u64, (key, field)| {
                sum.saturating_add(match (key.as_str(), field) {
                    // What is only defined is counted where it is referred to.
                    ("$defs" | "definitions", _) => 0,
                    ("$ref" | "$dynamicRef", Value::String(to)) => self.weight_at(to, depth),
                    (_, field) => self.weight(field, depth),
                })
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
        }
    }

    fn weight_at(&mut self, reference: &str, depth: usize) -> u64 {
        if let Some(known) = self.known.get(reference) {
            return *known;
        }
        // Until it is known, for what refers to itself.
        self.known.insert(reference.to_owned(), 1);
        let pointer = reference.strip_prefix('#');
        let part = pointer.and_then(|pointer| self.root.pointer(pointer));
        let found = part.map_or(1, |part| self.weight(part, depth));
        self.known.insert(reference.to_owned(), found);
        found
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    /// Each definition refers to the next one twice.
    fn doubling(depth: usize) -> Value {
        let next = |n: usize| json!({"$ref": format!("#/$defs/d{}", n + 1)});
        let mut defs: Map<String, Value> = (0..depth)
            .map(|n| (format!("d{n}"), json!({"anyOf": [next(n), next(n)]})))
            .collect();
        defs.insert(format!("d{depth}"), json!({"type": "string"}));
        json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": defs})
    }

    #[test]
    fn references_that_multiply_are_too_much() {
        assert!(is_light(&doubling(8)));
        assert!(!is_light(&doubling(18)));
        assert!(!is_light(&doubling(10_000)));
    }

    #[test]
    fn what_refers_to_itself_is_not() {
        let tree = json!({"type": "object", "properties": {
            "left": {"$ref": "#"}, "right": {"$ref": "#"}, "value": {"type": "integer"},
        }});
        assert!(is_light(&tree));
        assert!(is_light(&json!({"$ref": "#/$defs/gone"})));
    }

    #[test]
    fn a_large_schema_without_references_is_not() {
        let fields = (0..5_000).map(|n| (format!("f{n}"), json!({"type": "string"})));
        let fields: Map<String, Value> = fields.collect();
        assert!(is_light(&json!({"type": "object", "properties": fields})));
    }
}
