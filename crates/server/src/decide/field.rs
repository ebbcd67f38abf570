//! Fields of a form, from a JSON Schema.
//!
//! What is simple becomes a field of its own: texts, numbers, yes and no, one of several. Objects are taken apart. Everything else
//! is put in as JSON. Whether what was put in fits is not looked at here: the engine does, whoever asks.

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
    pub(super) help: String,
    pub(super) required: bool,
    pub(super) widget: Widget,
    /// What stands in it before anybody puts something in.
    pub(super) unsaid: Option<Value>,
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
    add(&mut fields, schema, String::new(), "", true, 0);
    fields
}

fn add(
    fields: &mut Vec<Field>,
    schema: &Value,
    pointer: String,
    name: &str,
    required: bool,
    depth: usize,
) {
    let text = |key: &str| schema.get(key).and_then(Value::as_str).unwrap_or_default();
    if let Some(properties) = parts(schema).filter(|_| depth < DEPTH) {
        let needed: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        for (name, part) in properties {
            let escaped = name.replace('~', "~0").replace('/', "~1");
            let pointer = format!("{pointer}/{escaped}");
            let is_needed = required && needed.contains(&name.as_str());
            add(fields, part, pointer, name, is_needed, depth + 1);
        }
        return;
    }
    let label = match (text("title"), name) {
        ("", "") => "Answer",
        ("", name) => name,
        (title, _) => title,
    };
    fields.push(Field {
        pointer,
        label: label.to_owned(),
        help: text("description").to_owned(),
        required,
        widget: widget(schema),
        unsaid: schema.get("default").cloned(),
    });
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
    let text = |key: &str| schema.get(key).and_then(Value::as_str).unwrap_or_default();
    match text("type") {
        "string" => {
            let longest = schema.get("maxLength").and_then(Value::as_u64);
            let kind = match text("format") {
                "date" => "date",
                "email" => "email",
                "uri" => "url",
                _ => "text",
            };
            let long = kind == "text" && longest.is_none_or(|longest| longest > 200);
            Widget::Text { kind, long }
        }
        "integer" | "number" => Widget::Number,
        "boolean" => Widget::Flag,
        _ => Widget::Json,
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
        return match (field.required, is_text) {
            (false, _) => Ok(None),
            // An empty text is one, where it may be empty: the schema says.
            (true, true) => Ok(Some(text.into())),
            (true, false) => Err("must be filled in".to_owned()),
        };
    }
    match &field.widget {
        Widget::Text { .. } => Ok(Some(text.into())),
        Widget::Number => match parse_strict(text.trim()) {
            Ok(number @ Value::Number(_)) => Ok(Some(number)),
            Ok(_) | Err(_) => Err("must be a number, such as 12 or 12.5".to_owned()),
        },
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
        let shown: Vec<(&str, &str, bool)> = fields
            .iter()
            .map(|it| (it.pointer.as_str(), it.label.as_str(), it.required))
            .collect();
        assert_eq!(
            shown,
            [
                ("/amount", "How much", true),
                ("/long", "long", false),
                ("/note", "note", false),
                ("/ok", "ok", true),
                ("/on", "on", false),
                ("/tags", "tags", false),
                ("/tier", "tier", false),
                ("/to/a~1b", "a/b", true),
                ("/to/x~0y", "x~y", false),
            ]
        );
        let entered = |field: &Field| {
            let text = match field.pointer.as_str() {
                "/amount" => "12.50",
                "/long" => "a\r\nb",
                "/ok" => "false",
                "/tags" => "[\"x\"]",
                "/tier" => "1",
                "/to/a~1b" => "here",
                "/to/x~0y" => "7",
                _ => "",
            };
            Some(text.to_owned())
        };
        let expected = json!({
            "amount": 12.50, "long": "a\nb", "ok": false, "tags": ["x"], "tier": 2, "to": {"a/b": "here", "x~y": 7},
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
        assert_eq!(told, ["/b", "/e", "/j", "/n", "/r"]);
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
