//! Two plain pages for people: what waits, and how to speak with the server.

mod api;

use std::{fmt::Write as _, sync::Arc};

use axum::{
    extract::State,
    http::header,
    response::{IntoResponse as _, Response},
};

use holdpoint_engine::Question;

pub(crate) use self::api::docs;
use crate::{
    caller::{Access, Caller},
    decide::{links::to_question, routes::AT_HAND},
    markup::plain,
    problem::Problem,
    token::holder,
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
    let (waiting, more) = world.open_questions(caller.tenant(), SHOWN).await?;
    if waiting.is_empty() {
        body.push_str("<p>Nothing waits for anybody.</p>\n");
    } else {
        body.push_str("<h2>What waits</h2>\n<ul>\n");
        for question in &waiting {
            let link = link(&world, &caller, question);
            let _ = writeln!(
                body,
                "<li><strong>{}/{}</strong><pre>{}</pre>{}<code>{}</code> <code>{}</code></li>",
                plain(&question.workflow),
                plain(&question.node),
                plain(&question.text),
                link.unwrap_or_default(),
                question.interrupt.run,
                question.interrupt.id,
            );
        }
        body.push_str("</ul>\n");
        if more {
            let _ = writeln!(body, "<p>More than {SHOWN} wait; these came first.</p>");
        }
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

/// The way to the page on which a question is decided, for whoever may decide it.
fn link(world: &World, caller: &Caller, question: &Question) -> Option<String> {
    let holder = holder(caller, None, None).ok()?;
    let now = world.home().ok()?.engine.store().now();
    let link = to_question(world, question, &caller.into(), holder, now, AT_HAND).ok()?;
    Some(format!(
        "<a class=\"decide\" href=\"{}\">Decide</a> ",
        plain(link.url())
    ))
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
        // It has links that decide.
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (headers, html).into_response()
}
