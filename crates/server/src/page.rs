//! Two plain pages for people: what waits, and how to speak with the server.

use std::{fmt::Write as _, sync::Arc};

use axum::{
    extract::State,
    http::header,
    response::{IntoResponse as _, Response},
};

use crate::{caller::Caller, problem::Problem, world::World};

/// How many questions the front page shows.
const SHOWN: usize = 50;

const STYLE: &str = include_str!("page.css");

/// The front page: what waits for somebody.
pub(crate) async fn front(
    State(world): State<Arc<World>>,
    caller: Caller,
) -> Result<Response, Problem> {
    let mut body = String::from("<h1>Holdpoint</h1>\n");
    let mut waiting = Vec::new();
    for served in world.engines.values() {
        let engine = &served.engine;
        let page = engine.pending(caller.tenant(), None, SHOWN).await?;
        waiting.extend(page.interrupts);
    }
    waiting.truncate(SHOWN);
    if waiting.is_empty() {
        body.push_str("<p>Nothing waits for anybody.</p>\n");
    } else {
        body.push_str("<h2>What waits</h2>\n<ul>\n");
        for pending in &waiting {
            let requests = &pending.interrupt.value.action_requests;
            let words: Vec<&str> = requests.iter().map(|it| it.description.as_str()).collect();
            let _ = writeln!(
                body,
                "<li><strong>{}/{}</strong><pre>{}</pre><code>{}</code></li>",
                escaped(&pending.agent),
                escaped(&pending.session),
                escaped(&words.join("\n\n")),
                pending.interrupt.id,
            );
        }
        body.push_str("</ul>\n");
    }
    body.push_str("<h2>Agents</h2>\n<ul>\n");
    for (name, offered) in &world.catalog().agents {
        let version = escaped(&offered.agent.definition.version);
        let _ = writeln!(body, "<li>{} <small>{version}</small></li>", escaped(name));
    }
    body.push_str("</ul>\n<p><a href=\"/docs\">How to speak with this server</a></p>\n");
    Ok(page("Holdpoint", &body))
}

/// The API, readable.
pub(crate) async fn docs() -> Response {
    let document = crate::openapi::document();
    let mut body =
        String::from("<h1>The API</h1>\n<p><a href=\"/openapi.json\">openapi.json</a></p>\n");
    let paths = serde_json::to_value(&document.paths).unwrap_or_default();
    for (path, item) in paths.as_object().into_iter().flatten() {
        for method in ["get", "post"] {
            let Some(operation) = item.get(method) else {
                continue;
            };
            let text = |key: &str| operation.get(key).and_then(|it| it.as_str()).unwrap_or("");
            let _ = writeln!(
                body,
                "<section><h3><code>{} {}</code></h3><p>{}</p><p>{}</p></section>",
                method.to_uppercase(),
                escaped(path),
                escaped(text("summary")),
                escaped(text("description")),
            );
        }
    }
    page("Holdpoint: the API", &body)
}

fn page(title: &str, body: &str) -> Response {
    let html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>{title}</title>\n<style>{STYLE}</style></head>\n<body>\n{body}</body>\n</html>\n"
    );
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
        ),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (headers, html).into_response()
}

/// A text that cannot be anything but a text in a page.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}
