//! Which path leads where.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{DefaultBodyLimit, State},
    http::{HeaderName, HeaderValue, Method, StatusCode, header},
    middleware,
    response::{IntoResponse as _, Response},
    routing::get,
};
use holdpoint_store::Unavailable;
use tokio::time::timeout;
use tower_http::{catch_panic::CatchPanicLayer, cors::CorsLayer};
use utoipa::OpenApi as _;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    agents, caller, chat, decide, interrupts, log, metrics,
    openapi::{Api, document},
    page,
    problem::Problem,
    runs, token, webhooks,
    world::World,
};

/// How long a store may take to answer before the server says that it is not ready: whoever asks wants to know now.
const PROBE: Duration = Duration::from_secs(2);

/// The routes that are part of the API.
pub(crate) fn api() -> OpenApiRouter<Arc<World>> {
    use chat::routes as talk;
    use interrupts::{commands as asking, reading as questions};
    use runs::{artifacts, commands, reading};
    OpenApiRouter::with_openapi(Api::openapi())
        .routes(routes!(talk::talk))
        .routes(routes!(talk::interrupt_state))
        .routes(routes!(talk::resume))
        .routes(routes!(talk::abort))
        .routes(routes!(reading::list, commands::start))
        .routes(routes!(reading::get))
        .routes(routes!(reading::state))
        .routes(routes!(reading::history))
        .routes(routes!(reading::trace))
        .routes(routes!(reading::checkpoint))
        .routes(routes!(artifacts::list))
        .routes(routes!(artifacts::get))
        .routes(routes!(reading::follow))
        .routes(routes!(commands::resume))
        .routes(routes!(commands::cancel))
        .routes(routes!(commands::pause))
        .routes(routes!(commands::go_on))
        .routes(routes!(commands::fork))
        .routes(routes!(questions::list, asking::create))
        .routes(routes!(questions::get))
        .routes(routes!(questions::wait))
        .routes(routes!(asking::resolve))
        .routes(routes!(asking::reject))
        .routes(routes!(asking::cancel))
        .routes(routes!(token::routes::issue))
        .routes(routes!(decide::links::issue))
        .routes(routes!(decide::links::issue_list))
        .routes(routes!(webhooks::routes::list))
        .routes(routes!(webhooks::routes::dead_letters))
        .routes(routes!(webhooks::routes::resend))
        .routes(routes!(webhooks::routes::discard))
        .routes(routes!(agents::list))
        .routes(routes!(healthz))
        .routes(routes!(readyz))
}

/// All routes.
pub(crate) fn router(world: Arc<World>, origins: &[String]) -> Router {
    let routes: Router<Arc<World>> = api().into();
    let document: Arc<str> = document().to_json().unwrap_or_default().into();
    let body = usize::try_from(world.limits.body).unwrap_or(usize::MAX);
    let mut router = routes
        .route(
            "/openapi.json",
            get(move || async move {
                let json = [(header::CONTENT_TYPE, "application/json")];
                (json, document.to_string()).into_response()
            }),
        )
        .route(
            "/decide/{link}",
            get(decide::routes::show).post(decide::routes::decide),
        )
        .route("/waiting/{list}", get(decide::routes::waiting))
        .route("/decide", get(decide::routes::nowhere))
        .route("/decide/", get(decide::routes::nowhere))
        .route("/decide/{link}/{*more}", get(decide::routes::nowhere))
        .route("/decide/{link}/", get(decide::routes::nowhere))
        .route("/waiting", get(decide::routes::nowhere))
        .route("/waiting/", get(decide::routes::nowhere))
        .route("/waiting/{list}/", get(decide::routes::nowhere))
        .route("/waiting/{list}/{*more}", get(decide::routes::nowhere))
        .route("/docs", get(page::docs))
        .route(metrics::PATH, get(metrics::show))
        .route("/", get(page::front))
        .fallback(absent)
        .method_not_allowed_fallback(not_allowed)
        .layer(DefaultBodyLimit::max(body))
        .layer(middleware::from_fn_with_state(
            Arc::clone(&world),
            caller::admit,
        ))
        .layer(CatchPanicLayer::custom(broken))
        .layer(middleware::from_fn(log::log));
    if !origins.is_empty() {
        router = router.layer(cors(origins));
    }
    router.with_state(world)
}

fn cors(origins: &[String]) -> CorsLayer {
    let origins = origins
        .iter()
        .filter_map(|it| HeaderValue::from_str(it).ok());
    let allowed = [
        header::AUTHORIZATION,
        header::CONTENT_TYPE,
        HeaderName::from_static("x-a2ui"),
        HeaderName::from_static("last-event-id"),
        HeaderName::from_static(crate::once::HEADER),
    ];
    let exposed = ["x-run-id", "x-thread-id", "idempotency-replayed"];
    CorsLayer::new()
        .allow_origin(origins.collect::<Vec<_>>())
        .allow_methods([Method::GET, Method::POST])
        .allow_headers(allowed)
        .expose_headers(exposed.map(HeaderName::from_static))
}

async fn absent() -> Response {
    Problem::not_found("path").into_response()
}

async fn not_allowed() -> Response {
    let error = "this path does not take that method; `/openapi.json` says which";
    Problem::new("method_not_allowed", error).into_response()
}

/// A mistake of ours. What it was is in the log, and nobody else's business.
fn broken(_: Box<dyn std::any::Any + Send>) -> Response {
    Problem::new("internal", "the server made a mistake; its log says more").into_response()
}

/// Whether the server lives.
#[utoipa::path(
    get, path = "/healthz", tag = "server", security(()),
    responses((status = 200, description = "It lives", body = String, content_type = "text/plain"))
)]
async fn healthz() -> &'static str {
    "ok\n"
}

/// Whether the server can serve: its stores can be read and could be written a moment ago, and it is not about to go.
#[utoipa::path(
    get, path = "/readyz", tag = "server", security(()),
    responses(
        (status = 200, description = "It can", body = String, content_type = "text/plain"),
        (status = 503, description = "It cannot", body = Problem),
    )
)]
async fn readyz(State(world): State<Arc<World>>) -> Result<Response, Problem> {
    for served in world.engines.values() {
        let store = served.engine.store();
        let answered = timeout(PROBE, store.tenants(holdpoint_core::Index::Runnable)).await;
        let answered = answered.unwrap_or_else(|_| {
            Err(Unavailable::new(format!(
                "it has not answered within {} s",
                PROBE.as_secs()
            )))
        });
        answered.map_err(holdpoint_engine::Error::from)?;
        if let Some(trouble) = served.trouble() {
            return Err(trouble);
        }
    }
    Ok((StatusCode::OK, "ready\n").into_response())
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;

    use super::*;

    #[tokio::test]
    async fn a_mistake_of_ours_is_told_as_one() {
        let response = broken(Box::new("the secret is 42"));
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        let body = to_bytes(response.into_body(), 4_096).await.unwrap();
        let said = String::from_utf8_lossy(&body);
        assert!(
            said.contains("\"code\":\"internal\"") && !said.contains("42"),
            "{said}"
        );
    }
}
