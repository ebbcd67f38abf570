//! Two plain pages for people: what waits, and how to speak with the server.

mod api;

use std::{fmt::Write as _, sync::Arc};

use axum::{
    extract::State,
    http::header,
    response::{IntoResponse as _, Response},
};

pub(crate) use self::api::docs;
use crate::{
    caller::{Access, Caller},
    markup::plain,
    problem::Problem,
    world::World,
};

/// How many questions the front page shows.
const SHOWN: usize = 50;

const STYLE: &str = include_str!("page/style.css");

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
            let run = pending.run.map(|run| format!("<code>{run}</code> "));
            let _ = writeln!(
                body,
                "<li><strong>{}/{}</strong><pre>{}</pre>{}<code>{}</code></li>",
                plain(&pending.agent),
                plain(&pending.session),
                plain(&pending.text),
                run.unwrap_or_default(),
                pending.interrupt.id,
            );
        }
        body.push_str("</ul>\n");
    }
    body.push_str("<h2>Agents</h2>\n<ul>\n");
    let catalog = world.catalog();
    for (name, offered) in &catalog.agents {
        let version = plain(&offered.agent.definition.version);
        let _ = writeln!(body, "<li>{} <small>{version}</small></li>", plain(name));
    }
    body.push_str("</ul>\n");
    // What files say is for whoever runs the server.
    if world.access == Access::Dev {
        for problem in catalog.problems.values() {
            let _ = writeln!(body, "<pre class=\"problem\">{}</pre>", plain(problem));
        }
    }
    body.push_str("<p><a href=\"/docs\">How to speak with this server</a></p>\n");
    Ok(page("Holdpoint", &body))
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
