//! Fields of a form, from a JSON Schema.
//!
//! What is simple becomes a field of its own: texts, numbers, yes and no, one of several, lists of texts and numbers. Objects are
//! taken apart: first what is required, in that order, then the rest by name, since a stored object has no other order. Everything
//! else is put in as JSON. Whether what was put in fits is not looked at here: the engine does, whoever asks.

use holdpoint_core::parse_strict;
use serde_json::{Map, Value};

/// How deep objects are taken apart.
const DEPTH: usize = 3;

/// One field.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Field {
    /// Where what is put in goes, as a JSON Pointer.
    pub(super) pointer: String,
    pub(super) label: String,
    /// What it is for, in the words of who asks.
    pub(super) help: String,
    /// What fits into it.
    pub(super) hint: String,
    pub(super) need: Need,
    pub(super) widget: Widget,
    /// What stands in it before anybody puts something in.
    pub(super) unsaid: Option<Value>,
}

/// Whether something has to be put in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// It has.
    Always,
    /// Where anything else of the same object is put in.
    Within,
    /// It has not.
    Never,
}

/// How something is put in.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Widget {
    /// A text; of a kind that browsers know, or over several lines.
    Text {
        kind: &'static str,
        long: bool,
    },
    Number,
    /// Yes or no.
    Flag,
    /// One of these.
    Choice(Vec<Value>),
    /// One entry a line; of numbers, or of texts.
    Lines {
        numbers: bool,
    },
    /// JSON.
    Json,
}

/// What is wrong with what was put into a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) pointer: String,
    pub(super) why: String,
}

/// The fields for a schema.
pub(super) fn fields(schema: &Value) -> Vec<Field> {
    let mut fields = Vec::new();
    add(&mut fields, schema, &Place::default());
    fields
}

/// The field where only a text is asked for, and no schema says more.
pub(super) fn text() -> Field {
    Field {
        pointer: String::new(),
        label: "Answer".to_owned(),
        help: String::new(),
        hint: String::new(),
        need: Need::Always,
        widget: Widget::Text {
            kind: "text",
            long: true,
        },
        unsaid: None,
    }
}

/// Where a schema stands in the one that was given.
struct Place {
    pointer: String,
    /// What its object is called, and what that is in, for people.
    parents: Vec<String>,
    name: String,
    need: Need,
}

impl Default for Place {
    fn default() -> Self {
        Self {
            pointer: String::new(),
            parents: Vec::new(),
            name: String::new(),
            need: Need::Always,
        }
    }
}

fn add(fields: &mut Vec<Field>, schema: &Value, place: &Place) {
    let depth = place.pointer.matches('/').count();
    let label = match (said(schema, "title"), place.name.as_str()) {
        ("", "") => "Answer",
        ("", name) => name,
        (title, _) => title,
    };
    let mut labels = place.parents.clone();
    if let Some(properties) = parts(schema).filter(|_| depth < DEPTH) {
        if depth > 0 {
            labels.push(label.to_owned());
        }
        let needed = required(schema);
        let first = needed
            .iter()
            .filter_map(|name| properties.get_key_value(*name));
        let rest = properties
            .iter()
            .filter(|(name, _)| !needed.contains(&name.as_str()));
        for (name, part) in first.chain(rest) {
            let escaped = name.replace('~', "~0").replace('/', "~1");
            let need = match (needed.contains(&name.as_str()), place.need) {
                (false, _) => Need::Never,
                (true, Need::Always) => Need::Always,
                (true, Need::Within | Need::Never) => Need::Within,
            };
            let place = Place {
                pointer: format!("{}/{escaped}", place.pointer),
                parents: labels.clone(),
                name: name.clone(),
                need,
            };
            add(fields, part, &place);
        }
        return;
    }
    labels.push(label.to_owned());
    let widget = widget(schema);
    fields.push(Field {
        pointer: place.pointer.clone(),
        label: labels.join(" › "),
        help: said(schema, "description").to_owned(),
        hint: hint(schema, &widget),
        need: place.need,
        widget,
        unsaid: schema.get("default").cloned(),
    });
}

/// What a schema says of itself as a text.
pub(super) fn said<'s>(schema: &'s Value, key: &str) -> &'s str {
    schema.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Whether a schema is of an object that is taken apart.
pub(super) fn has_parts(schema: &Value) -> bool {
    parts(schema).is_some()
}

fn required(schema: &Value) -> Vec<&str> {
    let names = schema.get("required").and_then(Value::as_array);
    let mut needed = Vec::new();
    for name in names.into_iter().flatten().filter_map(Value::as_str) {
        if !needed.contains(&name) {
            needed.push(name);
        }
    }
    needed
}

/// What fits into a field, in words. Formats are told, not demanded: that is for whoever looks at the answer.
fn hint(schema: &Value, widget: &Widget) -> String {
    let mut told: Vec<String> = Vec::new();
    match widget {
        Widget::Number if said(schema, "type") == "integer" => {
            told.push("a whole number".to_owned())
        }
        Widget::Text { .. } => match said(schema, "format") {
            "" => {}
            "date" => told.push("a date, as in 2026-01-31".to_owned()),
            "time" => told.push("a time, as in 12:30:00Z".to_owned()),
            "date-time" => told.push("a date and a time, as in 2026-01-31T12:30:00Z".to_owned()),
            "email" => told.push("an email address".to_owned()),
            "uri" => told.push("an address, as in https://example.com/".to_owned()),
            other => told.push(format!("a text of the format {other}")),
        },
        Widget::Lines { numbers: true } => told.push("one number a line".to_owned()),
        Widget::Lines { numbers: false } => told.push("one entry a line".to_owned()),
        Widget::Json => {
            let forms = schema.get("anyOf").or_else(|| schema.get("oneOf"));
            let forms = forms.and_then(Value::as_array).filter(|it| !it.is_empty());
            let samples: Vec<String> = match forms {
                Some(forms) => forms
                    .iter()
                    .take(3)
                    .map(|form| sample(form, 0).to_string())
                    .collect(),
                None => vec![sample(schema, 0).to_string()],
            };
            told.push(format!("JSON, as in {}", samples.join(" or ")));
        }
        Widget::Number | Widget::Flag | Widget::Choice(_) => {}
    }
    for (key, before, one, many) in [
        ("minimum", "at least ", "", ""),
        ("exclusiveMinimum", "more than ", "", ""),
        ("maximum", "at most ", "", ""),
        ("exclusiveMaximum", "less than ", "", ""),
        ("multipleOf", "a multiple of ", "", ""),
        ("minLength", "at least ", " character", " characters"),
        ("maxLength", "at most ", " character", " characters"),
        ("minItems", "at least ", " entry", " entries"),
        ("maxItems", "at most ", " entry", " entries"),
    ] {
        if let Some(Value::Number(limit)) = schema.get(key) {
            let noun = if limit.as_u64() == Some(1) { one } else { many };
            told.push(format!("{before}{limit}{noun}"));
        }
    }
    if !said(schema, "pattern").is_empty() {
        told.push(format!("of the form {}", said(schema, "pattern")));
    }
    told.join(", ")
}

/// Something that a schema may be about. It need not fit to the letter: it shows the form.
fn sample(schema: &Value, depth: usize) -> Value {
    let listed = |key: &str| schema.get(key).and_then(Value::as_array)?.first();
    if let Some(given) = listed("examples").or_else(|| schema.get("default")) {
        return given.clone();
    }
    if let Some(given) = schema.get("const").or_else(|| listed("enum")) {
        return given.clone();
    }
    if depth > DEPTH {
        return Value::Null;
    }
    if let Some(one) = listed("anyOf").or_else(|| listed("oneOf")) {
        return sample(one, depth + 1);
    }
    let kind = schema.get("type").and_then(Value::as_str);
    match kind.or_else(|| listed("type").and_then(Value::as_str)) {
        Some("string") => "text".into(),
        Some("integer" | "number") => 1.into(),
        Some("boolean") => true.into(),
        Some("null") => Value::Null,
        Some("array") => {
            let item = schema.get("items").unwrap_or(&Value::Null);
            vec![sample(item, depth + 1)].into()
        }
        Some(_) | None => {
            let properties = schema.get("properties").and_then(Value::as_object);
            let parts = properties.into_iter().flatten().take(4);
            let parts: Map<String, Value> = parts
                .map(|(name, part)| (name.clone(), sample(part, depth + 1)))
                .collect();
            if parts.is_empty() {
                return serde_json::json!({"name": "text"});
            }
            parts.into()
        }
    }
}

/// The properties of an object that can be taken apart: one that is nothing but them.
fn parts(schema: &Value) -> Option<&Map<String, Value>> {
    let object = schema.as_object()?;
    let is_plain = object.keys().all(|key| {
        matches!(
            key.as_str(),
            "type"
                | "properties"
                | "required"
                | "additionalProperties"
                | "title"
                | "description"
                | "$schema"
                | "$id"
                | "default"
                | "examples"
        )
    });
    let is_object = object.get("type").is_none_or(|it| it == "object");
    let properties = object.get("properties")?.as_object()?;
    (is_plain && is_object && !properties.is_empty()).then_some(properties)
}

fn widget(schema: &Value) -> Widget {
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return Widget::Choice(values.clone());
    }
    if let Some(only) = schema.get("const") {
        return Widget::Choice(vec![only.clone()]);
    }
    match said(schema, "type") {
        "string" => {
            let longest = schema.get("maxLength").and_then(Value::as_u64);
            let kind = match said(schema, "format") {
                "date" => "date",
                // Browsers would demand these formats, which nobody else does.
                "email" | "uri" | "date-time" | "time" => "line",
                _ => "text",
            };
            let long = kind == "text" && longest.is_none_or(|longest| longest > 200);
            let kind = if kind == "line" { "text" } else { kind };
            Widget::Text { kind, long }
        }
        "integer" | "number" => Widget::Number,
        "boolean" => Widget::Flag,
        "array" => lines(schema).unwrap_or(Widget::Json),
        _ => Widget::Json,
    }
}

/// A list of what stands on a line.
fn lines(schema: &Value) -> Option<Widget> {
    let items = schema.get("items")?;
    if schema.get("prefixItems").is_some() {
        return None;
    }
    match widget(items) {
        Widget::Text { .. } => Some(Widget::Lines { numbers: false }),
        Widget::Number => Some(Widget::Lines { numbers: true }),
        Widget::Flag | Widget::Choice(_) | Widget::Lines { .. } | Widget::Json => None,
    }
}

/// What was put in, as one value; nothing where nothing was. `entered` says what stands in a field.
///
/// # Errors
///
/// What cannot be read, field by field.
pub(super) fn value(
    fields: &[Field],
    entered: impl Fn(&Field) -> Option<String>,
) -> Result<Option<Value>, Vec<Wrong>> {
    let mut whole: Option<Value> = None;
    let mut wrong = Vec::new();
    for field in fields {
        let text = entered(field).unwrap_or_default();
        match read(field, &text) {
            Ok(None) => {}
            Ok(Some(value)) => put(&mut whole, &field.pointer, value),
            Err(why) => wrong.push(Wrong {
                pointer: field.pointer.clone(),
                why,
            }),
        }
    }
    if wrong.is_empty() {
        Ok(whole)
    } else {
        Err(wrong)
    }
}

fn read(field: &Field, text: &str) -> Result<Option<Value>, String> {
    // Browsers send lines as they were sent over wires.
    let text = text.replace("\r\n", "\n");
    if text.trim().is_empty() {
        let is_text = matches!(field.widget, Widget::Text { .. });
        return match (field.need, is_text) {
            (Need::Never | Need::Within, _) => Ok(None),
            // An empty text is one, where it may be empty: the schema says.
            (Need::Always, true) => Ok(Some(text.into())),
            (Need::Always, false) => Err("must be filled in".to_owned()),
        };
    }
    match &field.widget {
        Widget::Text { .. } => Ok(Some(text.into())),
        Widget::Number => number(&text).map(Some),
        Widget::Lines { numbers } => {
            let entries = text.lines().map(str::trim).filter(|line| !line.is_empty());
            let read = |line: &str| {
                if *numbers {
                    number(line)
                } else {
                    Ok(line.into())
                }
            };
            entries
                .map(read)
                .collect::<Result<Vec<Value>, _>>()
                .map(|it| Some(it.into()))
        }
        Widget::Flag => match text.as_str() {
            "true" => Ok(Some(true.into())),
            "false" => Ok(Some(false.into())),
            _ => Err("must be yes or no".to_owned()),
        },
        Widget::Choice(values) => {
            let chosen = text.parse().ok().and_then(|at: usize| values.get(at));
            let none = || "must be one of those that are listed".to_owned();
            chosen.cloned().map(Some).ok_or_else(none)
        }
        Widget::Json => parse_strict(&text)
            .map(Some)
            .map_err(|error| format!("must be JSON: {error}")),
    }
}

fn number(text: &str) -> Result<Value, String> {
    match parse_strict(text.trim()) {
        Ok(number @ Value::Number(_)) => Ok(number),
        Ok(_) | Err(_) => Err("must be a number, such as 12 or 12.5".to_owned()),
    }
}

fn put(whole: &mut Option<Value>, pointer: &str, value: Value) {
    if pointer.is_empty() {
        *whole = Some(value);
        return;
    }
    let mut place = whole.get_or_insert_with(|| Value::Object(Map::new()));
    for part in pointer.split('/').skip(1) {
        let name = part.replace("~1", "/").replace("~0", "~");
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        let Value::Object(object) = place else { return };
        place = object.entry(name).or_insert(Value::Null);
    }
    *place = value;
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_form_asks_for_what_a_schema_describes_and_gives_it_back() {
        let schema = json!({
            "type": "object",
            "required": ["amount", "ok", "to"],
            "properties": {
                "amount": {"type": "number", "title": "How much"},
                "note": {"type": "string", "maxLength": 40},
                "long": {"type": "string"},
                "on": {"type": "string", "format": "date"},
                "ok": {"type": "boolean"},
                "tier": {"enum": ["a", 2, null]},
                "tags": {"type": "array", "items": {"type": "string"}},
                "to": {"type": "object", "required": ["a/b"], "properties": {"a/b": {"type": "string"}, "x~y": {"type": "integer"}}},
            },
        });
        let fields = fields(&schema);
        let shown: Vec<(&str, &str, Need)> = fields
            .iter()
            .map(|it| (it.pointer.as_str(), it.label.as_str(), it.need))
            .collect();
        assert_eq!(
            shown,
            [
                ("/amount", "How much", Need::Always),
                ("/ok", "ok", Need::Always),
                ("/to/a~1b", "to › a/b", Need::Always),
                ("/to/x~0y", "to › x~y", Need::Never),
                ("/long", "long", Need::Never),
                ("/note", "note", Need::Never),
                ("/on", "on", Need::Never),
                ("/tags", "tags", Need::Never),
                ("/tier", "tier", Need::Never),
            ]
        );
        let entered = |field: &Field| {
            let text = match field.pointer.as_str() {
                "/amount" => "12.50",
                "/long" => "a\r\nb",
                "/ok" => "false",
                "/tags" => "x\r\n\r\n y ",
                "/tier" => "1",
                "/to/a~1b" => "here",
                "/to/x~0y" => "7",
                _ => "",
            };
            Some(text.to_owned())
        };
        let expected = json!({
            "amount": 12.50, "long": "a\nb", "ok": false, "tags": ["x", "y"], "tier": 2, "to": {"a/b": "here", "x~y": 7},
        });
        assert_eq!(value(&fields, entered), Ok(Some(expected)));
    }

    #[test]
    fn what_cannot_be_read_is_told_field_by_field() {
        let schema = json!({
            "properties": {
                "n": {"type": "integer"}, "b": {"type": "boolean"}, "e": {"enum": [1]}, "j": {"type": ["string", "null"]}, "r": {"type": "number"},
            },
            "required": ["r"],
        });
        let wrong = value(&fields(&schema), |field| {
            Some(
                if field.pointer == "/r" {
                    ""
                } else {
                    "{\"a\":1,\"a\":2}"
                }
                .to_owned(),
            )
        });
        let wrong = wrong.unwrap_err();
        let told: Vec<&str> = wrong.iter().map(|it| it.pointer.as_str()).collect();
        assert_eq!(told, ["/r", "/b", "/e", "/j", "/n"]);
    }

    #[test]
    fn what_is_required_of_an_optional_object_is_so_only_with_the_rest_of_it() {
        let schema = json!({"properties": {"who": {
            "title": "Who", "type": "object", "required": ["name"], "properties": {"age": {"type": "integer"}, "name": {"type": "string"}},
        }}});
        let fields = fields(&schema);
        let shown: Vec<(&str, Need)> = fields
            .iter()
            .map(|it| (it.label.as_str(), it.need))
            .collect();
        assert_eq!(
            shown,
            [("Who › name", Need::Within), ("Who › age", Need::Never)]
        );
        assert_eq!(value(&fields, |_| None), Ok(None));
        let age = |field: &Field| (field.pointer == "/who/age").then(|| "3".to_owned());
        assert_eq!(value(&fields, age), Ok(Some(json!({"who": {"age": 3}}))));
    }

    #[test]
    fn fields_say_what_fits_into_them() {
        let hints = |schema: Value| fields(&schema).remove(0).hint;
        for (schema, hint) in [
            (
                json!({"type": "integer", "minimum": 0, "maximum": 10}),
                "a whole number, at least 0, at most 10",
            ),
            (
                json!({"type": "string", "format": "date"}),
                "a date, as in 2026-01-31",
            ),
            (
                json!({"type": "string", "format": "email", "maxLength": 9}),
                "an email address, at most 9 characters",
            ),
            (
                json!({"type": "array", "items": {"type": "string"}, "minItems": 1}),
                "one entry a line, at least 1 entry",
            ),
            (
                json!({"type": "array", "items": {"type": "number"}}),
                "one number a line",
            ),
            (
                json!({"type": "array", "items": {"type": "object", "properties": {"a": {"type": "integer"}}}}),
                "JSON, as in [{\"a\":1}]",
            ),
            (
                json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
                "JSON, as in \"text\" or null",
            ),
        ] {
            assert_eq!(hints(schema), hint);
        }
    }

    #[test]
    fn what_is_not_simple_is_put_in_as_json() {
        for schema in [
            json!({"oneOf": [{"type": "string"}, {"type": "null"}]}),
            json!({"type": "object", "properties": {"a": {}}, "minProperties": 1}),
            json!({"type": "object"}),
            json!(true),
            json!({"$ref": "#/$defs/x"}),
        ] {
            let fields = fields(&schema);
            assert_eq!(fields.len(), 1, "{schema}");
            assert_eq!(fields[0].widget, Widget::Json, "{schema}");
            let put_in = value(&fields, |_| Some("{\"a\": 1}".to_owned()));
            assert_eq!(put_in, Ok(Some(json!({"a": 1}))));
        }
    }
}
