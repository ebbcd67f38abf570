//! Whether a schema that somebody else has written can be looked at in bounded time.

use std::collections::BTreeMap;

use serde_json::Value;

/// How many parts a schema may have once every reference in it stands for what it refers to.
const MOST: u64 = 100_000;

/// How deep it may be then.
const DEEPEST: usize = 1_000;

/// # Errors
///
/// References multiply: a few kilobytes of them can stand for more parts than there is time for. Or it is not known what they
/// stand for, since they are no plain path from the beginning of the schema.
///
/// A reference back to where it stands in counts once, if it is about a part of what is looked at: what that costs depends on
/// that, which is bounded.
pub(super) fn check(schema: &Value) -> Result<(), &'static str> {
    let mut weighed = Weighed {
        root: schema,
        known: BTreeMap::new(),
        is_light: true,
        refers: false,
        refers_elsewhere: false,
        has_places_of_its_own: false,
    };
    let whole = weighed.schema(schema, Way::InPlace, 0);
    weighed.is_light &= whole <= MOST;
    let whole = weighed.schema(schema, Way::Everything, 0);
    weighed.is_light &= whole <= MOST;
    if weighed.refers_elsewhere || (weighed.refers && weighed.has_places_of_its_own) {
        return Err("refers to something by other than its path from the beginning (`#/…`)");
    }
    if !weighed.is_light {
        return Err("refers to its own parts too often to be looked at");
    }
    Ok(())
}

/// What of a schema is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    /// Whatever is said of one value, not of its parts.
    InPlace,
    /// That, and what is said of its parts.
    Everything,
}

struct Weighed<'a> {
    root: &'a Value,
    /// What was referred to before.
    known: BTreeMap<(Way, &'a str), u64>,
    /// As far as it is known.
    is_light: bool,
    refers: bool,
    refers_elsewhere: bool,
    /// Whether a part says what references in it begin at.
    has_places_of_its_own: bool,
}

impl<'a> Weighed<'a> {
    /// How many parts a schema has.
    fn schema(&mut self, part: &'a Value, way: Way, depth: usize) -> u64 {
        if depth > DEEPEST {
            return u64::MAX;
        }
        let depth = depth + 1;
        match part {
            Value::Array(items) => items.iter().fold(1, |sum: u64, item| {
                sum.saturating_add(self.schema(item, way, depth))
            }),
            Value::Object(fields) => {
                let is_root = std::ptr::eq(part, self.root);
                fields.iter().fold(1, |sum: u64, (key, field)| {
                    sum.saturating_add(self.keyword(key, field, way, depth, is_root))
                })
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
        }
    }

    fn keyword(
        &mut self,
        key: &str,
        field: &'a Value,
        way: Way,
        depth: usize,
        is_root: bool,
    ) -> u64 {
        match (key, field) {
            // What is only defined is counted where it is referred to.
            ("$defs" | "definitions", _) => 0,
            ("$ref", Value::String(to)) => self.referred(to, way, depth),
            // What these stand for depends on where they are come from.
            ("$dynamicRef" | "$recursiveRef", _) => {
                self.refers_elsewhere = true;
                1
            }
            ("$id" | "id", Value::String(_)) => {
                self.has_places_of_its_own |= !is_root;
                1
            }
            // These are values, whatever they look like.
            ("enum" | "const" | "default" | "examples" | "example", _) => nodes(field, depth),
            (key, _) if key.starts_with("x-") => nodes(field, depth),
            // Their keys are names of somebody's choice.
            ("dependentSchemas" | "dependencies", Value::Object(named)) => {
                named.values().fold(1, |sum: u64, it| {
                    sum.saturating_add(self.schema(it, way, depth))
                })
            }
            ("properties" | "patternProperties", Value::Object(named)) => {
                named.values().fold(1, |sum: u64, it| {
                    sum.saturating_add(self.of_part(it, way, depth))
                })
            }
            (
                "items"
                | "prefixItems"
                | "additionalItems"
                | "unevaluatedItems"
                | "contains"
                | "additionalProperties"
                | "unevaluatedProperties"
                | "propertyNames",
                _,
            ) => self.of_part(field, way, depth),
            (_, field) => self.schema(field, way, depth),
        }
    }

    /// What is said of a part of what is looked at. That is a value of its own, and has to be light by itself.
    fn of_part(&mut self, field: &'a Value, way: Way, depth: usize) -> u64 {
        match way {
            Way::InPlace => 1,
            Way::Everything => {
                self.is_light &= self.schema(field, Way::InPlace, depth) <= MOST;
                self.schema(field, way, depth)
            }
        }
    }

    fn referred(&mut self, to: &'a str, way: Way, depth: usize) -> u64 {
        self.refers = true;
        if let Some(known) = self.known.get(&(way, to)) {
            return *known;
        }
        // Whoever reads the schema decodes what has a `%`, and would find something else.
        let path = to.strip_prefix('#').filter(|it| !it.contains('%'));
        let Some(part) = path.and_then(|path| self.root.pointer(path)) else {
            self.refers_elsewhere = true;
            return 1;
        };
        // Until it is known, for what refers to itself. Of one value, that has no end.
        let round = match way {
            Way::InPlace => u64::MAX,
            Way::Everything => 1,
        };
        self.known.insert((way, to), round);
        let found = self.schema(part, way, depth);
        self.known.insert((way, to), found);
        found
    }
}

/// How many parts a value has.
fn nodes(value: &Value, depth: usize) -> u64 {
    if depth > DEEPEST {
        return u64::MAX;
    }
    let sum = |sum: u64, part: &Value| sum.saturating_add(nodes(part, depth + 1));
    match value {
        Value::Array(items) => items.iter().fold(1, sum),
        Value::Object(fields) => fields.values().fold(1, sum),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    fn is_light(schema: &Value) -> bool {
        match check(schema) {
            Ok(()) => true,
            Err(why) => {
                assert!(why.contains("too often"), "{why}");
                false
            }
        }
    }

    /// Each definition refers to the next one twice, by this.
    fn doubling_by(depth: usize, wrap: impl Fn(Value) -> Value) -> Value {
        let next = |n: usize| json!({"$ref": format!("#/$defs/d{}", n + 1)});
        let mut defs: Map<String, Value> = (0..depth)
            .map(|n| (format!("d{n}"), wrap(json!({"anyOf": [next(n), next(n)]}))))
            .collect();
        defs.insert(format!("d{depth}"), json!({"type": "string"}));
        json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": defs})
    }

    fn doubling(depth: usize) -> Value {
        doubling_by(depth, |it| it)
    }

    #[test]
    fn references_that_multiply_are_too_much() {
        assert!(is_light(&doubling(8)));
        assert!(!is_light(&doubling(18)));
        assert!(!is_light(&doubling(10_000)));
    }

    #[test]
    fn they_are_found_wherever_they_stand() {
        for wrap in [
            |it| json!({"dependentSchemas": {"items": it}}),
            |it| json!({"properties": {"$defs": it}}),
            |it| json!({"if": it}),
            |it| json!({"properties": {"definitions": {"items": it}}}),
        ] {
            assert!(is_light(&doubling_by(4, wrap)));
            assert!(!is_light(&doubling_by(30, wrap)));
        }
        let mut named = doubling(30);
        let first = named["properties"]["a"].take();
        named["properties"] = json!({"definitions": {"anyOf": [first]}});
        assert!(!is_light(&named));
    }

    #[test]
    fn what_also_leads_back_by_a_part_does_not_hide_them() {
        // What comes first refers back to what is being counted then, and is known with that.
        let at = |name: &str, n: usize| json!({"$ref": format!("#/$defs/{name}{n}")});
        let mut defs = Map::new();
        for n in 0..30 {
            let next = [at("y", n + 1), at("y", n + 1)];
            defs.insert(
                format!("x{n}"),
                json!({"properties": {"p": at("y", n)}, "anyOf": next}),
            );
            defs.insert(format!("y{n}"), json!({"anyOf": [at("x", n), at("x", n)]}));
        }
        defs.insert("y30".to_owned(), json!({"type": "string"}));
        let order: Vec<Value> = (0..30).rev().map(|n| at("x", n)).collect();
        let schema = json!({"properties": {"a": {"prefixItems": order}}, "$defs": defs});
        assert!(!is_light(&schema));
    }

    #[test]
    fn what_refers_to_itself_is_not() {
        let tree = json!({"type": "object", "properties": {
            "left": {"$ref": "#"}, "right": {"$ref": "#"}, "value": {"type": "integer"},
        }});
        assert!(is_light(&tree));
        // Anything that is JSON.
        let any = json!({"properties": {"a": {"$ref": "#/$defs/any"}}, "$defs": {"any": {"anyOf": [
            {"type": ["string", "number", "boolean", "null"]},
            {"type": "array", "items": {"$ref": "#/$defs/any"}},
            {"type": "object", "additionalProperties": {"$ref": "#/$defs/any"}},
        ]}}});
        assert!(is_light(&any));
    }

    #[test]
    fn what_is_said_of_one_value_has_an_end() {
        assert!(!is_light(&json!({"$ref": "#"})));
        let round = json!({"anyOf": [{"$ref": "#/$defs/a"}, true], "$defs": {
            "a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"not": {"$ref": "#/$defs/a"}},
        }});
        assert!(!is_light(&round));
    }

    #[test]
    fn only_a_plain_path_is_followed() {
        let with = |reference: Value| json!({"properties": {"a": reference}, "$defs": {"d": {"$anchor": "d", "type": "string"}}});
        assert_eq!(check(&with(json!({"$ref": "#/$defs/d"}))), Ok(()));
        for reference in [
            json!({"$ref": "#/%24defs/d"}),
            json!({"$ref": "#d"}),
            json!({"$ref": "#/$defs/gone"}),
            json!({"$ref": "d.json"}),
            json!({"$ref": "https://example.com/d.json#/$defs/d"}),
            json!({"$dynamicRef": "#/$defs/d"}),
            json!({"$recursiveRef": "#"}),
            json!({"$id": "https://example.com/d.json", "items": {"$ref": "#/$defs/d"}}),
        ] {
            let why = check(&with(reference)).unwrap_err();
            assert!(why.contains("`#/…`"), "{why}");
        }
        // Where it begins is itself, and what only looks like a reference is none.
        let plain = json!({
            "$id": "https://example.com/d.json",
            "properties": {"$ref": {"type": "string"}, "id": {"type": "string"}, "a": {"$ref": "#/$defs/d"}},
            "default": {"$ref": "https://example.com", "id": "x"},
            "$defs": {"d": {"enum": [{"$ref": "x"}]}},
        });
        assert_eq!(check(&plain), Ok(()));
    }

    #[test]
    fn a_large_schema_without_references_is_not() {
        let fields = (0..5_000).map(|n| (format!("f{n}"), json!({"type": "string"})));
        let fields: Map<String, Value> = fields.collect();
        assert!(is_light(&json!({"type": "object", "properties": fields})));
    }
}
