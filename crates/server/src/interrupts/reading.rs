//! What can be seen of interrupts. Nothing here changes anything.

use std::{sync::Arc, time::Duration};

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, header},
    response::{IntoResponse as _, Response},
};
use holdpoint_core::{InterruptId, InterruptKind, InterruptStatus};
use holdpoint_engine::{Wanted, question::Interrupt};
use serde::{Deserialize, de::DeserializeOwned};

use super::wait;
use crate::{
    caller::Caller,
    page_of::{cursor, limit},
    path::Path,
    problem::Problem,
    query::Query,
    runs::wire::Page,
    world::World,
};

/// How long a caller waits who does not say how long.
const USUAL_WAIT: u64 = 30;
/// The longest that one request waits.
const MAX_WAIT: u64 = 300;

/// Which interrupts are wanted.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Filter {
    /// Only of this workflow, or of this agent.
    workflow_id: Option<String>,
    /// Only those that stand so: `pending`, `resolved`, `rejected`, `timeout` or `canceled`.
    status: Option<String>,
    /// Only of this kind: `approval`, `input`, `review`, `breakpoint` or `error`.
    r#type: Option<String>,
    /// Where the page before said that this one begins.
    cursor: Option<String>,
    /// At most so many, from 1 to 200; 50 if unsaid.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 200)]
    limit: Option<String>,
}

/// How long is waited.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Patience {
    /// How many seconds the request may take, from 0 to 300; 30 if unsaid. A stream takes as long as it takes.
    #[param(value_type = Option<u32>, minimum = 0, maximum = 300)]
    timeout: Option<String>,
}

/// Lists interrupts, the oldest first.
#[utoipa::path(
    get, path = "/api/v1/interrupts", tag = "interrupts", params(Filter),
    responses(
        (status = 200, description = "Some of them. A page may have fewer than were wanted, or none, and yet not be the last", body = Page<Object>),
        crate::openapi::Problems,
    )
)]
pub(crate) async fn list(
    State(world): State<Arc<World>>,
    caller: Caller,
    Query(filter): Query<Filter>,
) -> Result<Json<Page<Interrupt>>, Problem> {
    let limit = limit(filter.limit.as_deref())?;
    let after: Option<InterruptId> = filter.cursor.as_deref().map(cursor).transpose()?;
    let kinds = "approval, input, review, breakpoint, error";
    let statuses = "pending, resolved, rejected, timeout, canceled";
    let kind: Option<InterruptKind> = word("type", filter.r#type, kinds)?;
    let status: Option<InterruptStatus> = word("status", filter.status, statuses)?;
    let wanted = Wanted {
        workflow: filter.workflow_id.filter(|it| !it.is_empty()),
        kind,
        status,
    };
    let mut found = Vec::new();
    // Nothing younger than this was looked at everywhere.
    let mut seen_to: Option<InterruptId> = None;
    for served in world.engines.values() {
        let engine = &served.engine;
        let (questions, looked_to) = engine
            .questions(caller.tenant(), after, limit, &wanted)
            .await?;
        found.extend(questions);
        seen_to = match (seen_to, looked_to) {
            (Some(seen), Some(looked)) => Some(seen.min(looked)),
            (seen, looked) => seen.or(looked),
        };
    }
    found.retain(|it| seen_to.is_none_or(|seen_to| it.interrupt.id <= seen_to));
    found.sort_by_key(|it| it.interrupt.id);
    let next = if found.len() > limit {
        found.truncate(limit);
        found.last().map(|it| it.interrupt.id)
    } else {
        seen_to
    };
    Ok(Json(Page {
        items: found.into_iter().map(Interrupt::from).collect(),
        next_cursor: next.map(|id| id.to_string()),
    }))
}

/// A word of a filter. One that nothing ever is would find nothing, and look like an answer.
fn word<T: DeserializeOwned>(
    name: &str,
    given: Option<String>,
    known: &str,
) -> Result<Option<T>, Problem> {
    let Some(given) = given else { return Ok(None) };
    let word = serde_json::from_value(given.into());
    let error = format!("`{name}` must be one of {known}");
    word.map(Some)
        .map_err(|_| Problem::new("bad_request", error))
}

/// Shows an interrupt.
#[utoipa::path(
    get, path = "/api/v1/interrupts/{interrupt_id}", tag = "interrupts",
    params(("interrupt_id" = String, Path, description = "The interrupt")),
    responses(
        (status = 200, description = "How it stands", body = Object),
        crate::openapi::Problems,
    )
)]
pub(crate) async fn get(
    State(world): State<Arc<World>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Interrupt>, Problem> {
    let (_, question) = world.question(caller.tenant(), &id).await?;
    Ok(Json(question.into()))
}

/// Waits until an interrupt is closed.
///
/// The answer is the interrupt as it stands then, or when the time is over: while it is `pending`, ask again. With
/// `Accept: text/event-stream` it is a stream: the interrupt as it stands, and once more when it is closed.
#[utoipa::path(
    get, path = "/api/v1/interrupts/{interrupt_id}/wait", tag = "interrupts",
    params(("interrupt_id" = String, Path, description = "The interrupt"), Patience),
    responses(
        (status = 200, description = "How it stands", content(
            (Object = "application/json"),
            (crate::openapi::StreamEvent = "text/event-stream"),
        )),
        crate::openapi::Problems,
    )
)]
pub(crate) async fn wait(
    State(world): State<Arc<World>>,
    caller: Caller,
    Path(id): Path<String>,
    Query(patience): Query<Patience>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let patience = seconds(patience.timeout.as_deref())?;
    let (served, question) = world.question(caller.tenant(), &id).await?;
    let permit = world.streams.enter(&caller.name())?;
    let accept = headers.get(header::ACCEPT);
    let accept = accept.and_then(|accept| accept.to_str().ok());
    if accept.is_some_and(|accept| accept.contains("text/event-stream")) {
        return wait::stream(&world, served, question, caller.pass, permit).await;
    }
    let question = wait::poll(&world, served, question, &caller.pass, patience).await?;
    drop(permit);
    Ok(Json(Interrupt::from(question)).into_response())
}

fn seconds(text: Option<&str>) -> Result<Duration, Problem> {
    let seconds = text.map_or(Some(USUAL_WAIT), |text| text.parse().ok());
    let seconds = seconds.filter(|seconds| *seconds <= MAX_WAIT);
    let seconds = seconds.ok_or_else(|| {
        let error = format!("`timeout` must be a whole number of seconds from 0 to {MAX_WAIT}");
        Problem::new("bad_request", error)
    })?;
    Ok(Duration::from_secs(seconds))
}
