//! The API as a page, from the same document that programs read.

use std::{collections::BTreeMap, fmt::Write as _};

use axum::response::Response;
use serde_json::Value;

use super::page;
use crate::{markup::plain, problem::CODES};

/// The API, readable.
pub(crate) async fn docs() -> Response {
    let document = serde_json::to_value(crate::openapi::document()).unwrap_or_default();
    let mut body =
        String::from("<h1>The API</h1>\n<p><a href=\"/openapi.json\">openapi.json</a></p>\n");
    for (path, item) in entries(&document["paths"]) {
        for method in ["get", "post"] {
            let operation = &item[method];
            if operation.is_object() {
                let method = method.to_uppercase();
                let _ = writeln!(
                    body,
                    "<section><h3><code>{method} {}</code></h3>",
                    plain(path)
                );
                show(&mut body, &document, operation);
                body.push_str("</section>\n");
            }
        }
    }
    errors(&mut body);
    page("Holdpoint: the API", &body)
}

fn show(body: &mut String, document: &Value, operation: &Value) {
    for words in ["summary", "description"] {
        let words = text(&operation[words]);
        if !words.is_empty() {
            let _ = writeln!(body, "<p>{}</p>", plain(words));
        }
    }
    let parameters = items(&operation["parameters"]).map(|it| {
        let place = format!("{} ({})", text(&it["name"]), text(&it["in"]));
        (place, text(&it["description"]))
    });
    table(body, "Parameters", parameters);
    let sent = &operation["requestBody"]["content"]["application/json"];
    let schema = schema(document, &sent["schema"]);
    let fields = entries(&schema["properties"]).map(|(name, it)| {
        let needed = items(&schema["required"]).any(|it| it == name);
        let place = if needed {
            format!("{name} (required)")
        } else {
            name.clone()
        };
        (place, text(&it["description"]))
    });
    table(body, "Body", fields);
    let example = &sent["example"];
    if !example.is_null() {
        let _ = writeln!(body, "<pre>{}</pre>", plain(&format!("{example:#}")));
    }
    // What is refused is the same everywhere.
    let answers = entries(&operation["responses"]).filter(|(code, _)| code.starts_with('2'));
    table(
        body,
        "Answers",
        answers.map(|(code, it)| (code.clone(), text(&it["description"]))),
    );
}

fn errors(body: &mut String) {
    body.push_str(
        "<section><h3>What is refused</h3>\n<p>Everywhere in one form: <code>{\"error\": text, \"code\": one of these, \
         \"details\": more}</code></p>\n",
    );
    let mut statuses: BTreeMap<u16, Vec<&str>> = BTreeMap::new();
    for (code, status) in CODES {
        statuses.entry(*status).or_default().push(code);
    }
    let rows: Vec<(String, String)> = statuses
        .iter()
        .map(|(status, codes)| (status.to_string(), codes.join(", ")))
        .collect();
    let rows = rows
        .iter()
        .map(|(status, codes)| (status.clone(), codes.as_str()));
    table(body, "Codes", rows);
    body.push_str("</section>\n");
}

fn table<'t>(body: &mut String, title: &str, rows: impl Iterator<Item = (String, &'t str)>) {
    let mut rows = rows.peekable();
    if rows.peek().is_none() {
        return;
    }
    let _ = writeln!(body, "<table><caption>{title}</caption>");
    for (name, words) in rows {
        let (name, words) = (plain(&name), plain(words));
        let _ = writeln!(
            body,
            "<tr><td><code>{name}</code></td><td>{words}</td></tr>"
        );
    }
    body.push_str("</table>\n");
}

/// A schema, which may stand elsewhere in the document.
fn schema<'d>(document: &'d Value, schema: &'d Value) -> &'d Value {
    let elsewhere = schema["$ref"].as_str().and_then(|it| it.strip_prefix('#'));
    elsewhere
        .and_then(|place| document.pointer(place))
        .unwrap_or(schema)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}
