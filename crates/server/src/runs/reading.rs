//! What can be seen of runs. Nothing here changes anything.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode},
    response::{IntoResponse as _, Response},
};
use holdpoint_core::{Event, RunId, State as Thread, Status, fold, steps};
use holdpoint_engine::{Checkpoint, RunSummary, RunView};
use holdpoint_store::ThreadKey;
use serde::Deserialize;

use super::{
    commands::place,
    stream::{self, Place as StreamPlace},
    wire::{Detail, EventView, Line, Page, Place},
};
use crate::{
    caller::Caller,
    clock::rfc3339,
    page_of::{cursor, limit},
    path::Path,
    problem::Problem,
    query::Query,
    world::{Served, World},
};

/// Which runs are wanted.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Filter {
    /// Only of this agent.
    agent_id: Option<String>,
    /// Only of this session.
    session_id: Option<String>,
    /// Only those that stand so: `running`, `waiting`, `sleeping`, `paused`, `finished`, `failed` or `cancelled`.
    status: Option<String>,
    /// Where the page before said that this one begins.
    cursor: Option<String>,
    /// At most so many, from 1 to 200; 50 if unsaid.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 200)]
    limit: Option<String>,
}

/// Which part of a list is wanted.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Part {
    /// Where the page before said that this one begins.
    pub(super) cursor: Option<String>,
    /// At most so many, from 1 to 200; 50 if unsaid.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 200)]
    pub(super) limit: Option<String>,
}

/// Which checkpoint is wanted.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct At {
    /// Its name, `ckpt_…`; where the run stands now if unsaid.
    checkpoint_id: Option<String>,
}

/// Lists runs, the newest first.
#[utoipa::path(
    get, path = "/api/v1/runs", tag = "runs", params(Filter),
    responses(
        (status = 200, description = "Some of them. A page may have fewer than were wanted, or none, and yet not be the last", body = Page<Line>),
        crate::openapi::Problems,
    )
)]
pub(crate) async fn list(
    State(world): State<Arc<World>>,
    caller: Caller,
    Query(filter): Query<Filter>,
) -> Result<Json<Page<Line>>, Problem> {
    let limit = limit(filter.limit.as_deref())?;
    known_status(filter.status.as_deref())?;
    let after: Option<RunId> = filter.cursor.as_deref().map(cursor).transpose()?;
    let is = |wanted: &Option<String>, given: &str| wanted.as_deref().is_none_or(|it| it == given);
    let wanted = |run: &RunSummary| {
        is(&filter.agent_id, &run.agent)
            && is(&filter.session_id, &run.session)
            && is(&filter.status, run.status)
    };
    let mut found = Vec::new();
    // Nothing older than this was looked at everywhere.
    let mut seen_to: Option<RunId> = None;
    for served in world.engines.values() {
        let engine = &served.engine;
        let (runs, looked_to) = engine
            .newest_runs(caller.tenant(), after, limit, &wanted)
            .await?;
        found.extend(runs);
        seen_to = seen_to.max(looked_to);
    }
    found.retain(|run| seen_to.is_none_or(|seen_to| run.run_id >= seen_to));
    found.sort_by_key(|run| std::cmp::Reverse(run.run_id));
    let next = if found.len() > limit {
        found.truncate(limit);
        found.last().map(|run| run.run_id)
    } else {
        seen_to
    };
    Ok(Json(Page {
        items: found.into_iter().map(Line::from).collect(),
        next_cursor: next.map(|run| run.to_string()),
    }))
}

/// A word that no run ever stands by would find nothing, and look like an answer.
fn known_status(wanted: Option<&str>) -> Result<(), Problem> {
    match wanted {
        Some(wanted) if !Status::NAMES.contains(&wanted) => Err(Problem::new(
            "bad_request",
            format!("`status` must be one of {}", Status::NAMES.join(", ")),
        )),
        Some(_) | None => Ok(()),
    }
}

/// Shows a run, and what it asks.
#[utoipa::path(
    get, path = "/api/v1/runs/{run_id}", tag = "runs",
    params(("run_id" = String, Path, description = "The run")),
    responses(
        (status = 200, description = "How it stands", body = Detail),
        crate::openapi::Problems,
    )
)]
pub(crate) async fn get(
    State(world): State<Arc<World>>,
    caller: Caller,
    Path(run_id): Path<String>,
) -> Result<Json<Detail>, Problem> {
    let (view, thread) = view(&world, &caller, &run_id).await?;
    let summary = RunSummary::of(&thread).ok_or_else(|| Problem::not_found("run"))?;
    Ok(Json(Detail {
        line: summary.into(),
        cancel_requested: view.cancel_requested,
        pause_requested: view.pause_requested,
        error: view.error,
        output: view.output,
        interrupts: view.interrupts,
    }))
}

/// Shows a run with its whole conversation.
#[utoipa::path(
    get, path = "/api/v1/runs/{run_id}/state", tag = "runs",
    params(("run_id" = String, Path, description = "The run")),
    responses(
        (status = 200, description = "The thread as the run sees it", body = Object),
        crate::openapi::Problems,
    )
)]
pub(crate) async fn state(
    State(world): State<Arc<World>>,
    caller: Caller,
    Path(run_id): Path<String>,
) -> Result<Json<RunView>, Problem> {
    Ok(Json(view(&world, &caller, &run_id).await?.0))
}

/// Lists the places in a run's history that can be looked at, the oldest first.
#[utoipa::path(
    get, path = "/api/v1/runs/{run_id}/history", tag = "runs",
    params(("run_id" = String, Path, description = "The run"), Part),
    responses(
        (status = 200, description = "Some of them", body = Page<Place>),
        crate::openapi::Problems,
    )
)]
pub(crate) async fn history(
    State(world): State<Arc<World>>,
    caller: Caller,
    Path(run_id): Path<String>,
    Query(part): Query<Part>,
) -> Result<Json<Page<Place>>, Problem> {
    let (run, served, key, began) = world.run(caller.tenant(), &run_id).await?;
    let limit = limit(part.limit.as_deref())?;
    let after: u64 = part.cursor.as_deref().map_or(Ok(0), cursor)?;
    let last = last_event(served, &key, run).await?;
    let mut thread = Thread::default();
    let mut places = Vec::new();
    for entry in served.engine.journal(&key).await? {
        fold(&mut thread, &entry);
        let is_wanted = entry.header.end && (began..=last).contains(&entry.seq);
        if !is_wanted || entry.seq <= after {
            continue;
        }
        places.push(Place {
            checkpoint_id: format!("ckpt_{}", entry.seq),
            seq: entry.seq,
            name: entry.event.name(),
            created_at: rfc3339(entry.header.at),
            status: thread.status().map_or("new", |status| status.as_str()),
            forkable: thread.forkable().is_ok(),
        });
        if places.len() > limit {
            break;
        }
    }
    Ok(Json(page(places, limit, |place| place.seq)))
}

/// Lists the events of a run, the oldest first.
#[utoipa::path(
    get, path = "/api/v1/runs/{run_id}/trace", tag = "runs",
    params(("run_id" = String, Path, description = "The run"), Part),
    responses(
        (status = 200, description = "Some of them", body = Page<EventView>),
        crate::openapi::Problems,
    )
)]
pub(crate) async fn trace(
    State(world): State<Arc<World>>,
    caller: Caller,
    Path(run_id): Path<String>,
    Query(part): Query<Part>,
) -> Result<Json<Page<EventView>>, Problem> {
    let (run, served, key, began) = world.run(caller.tenant(), &run_id).await?;
    let limit = limit(part.limit.as_deref())?;
    let after: u64 = part.cursor.as_deref().map_or(Ok(0), cursor)?;
    let last = last_event(served, &key, run).await?;
    let after = after.max(began.saturating_sub(1));
    let mut entries = served.engine.entries(&key, after, limit + 1).await?;
    entries.retain(|entry| entry.seq <= last);
    let events = entries.iter().map(EventView::new).collect();
    Ok(Json(page(events, limit, |event| event.seq)))
}

/// Shows a checkpoint: a position from which a run can go on.
#[utoipa::path(
    get, path = "/api/v1/runs/{run_id}/checkpoint", tag = "runs",
    params(("run_id" = String, Path, description = "The run"), At),
    responses(
        (status = 200, description = "The checkpoint", body = Object),
        crate::openapi::Problems,
    )
)]
pub(crate) async fn checkpoint(
    State(world): State<Arc<World>>,
    caller: Caller,
    Path(run_id): Path<String>,
    Query(at): Query<At>,
) -> Result<Json<Checkpoint>, Problem> {
    let (run, served, key, began) = world.run(caller.tenant(), &run_id).await?;
    let last = last_event(served, &key, run).await?;
    let at = at.checkpoint_id.as_deref().map_or(Ok(last), place)?;
    let absent = || Problem::not_found("checkpoint");
    if !(began..=last).contains(&at) {
        return Err(absent());
    }
    let thread = served.engine.state_at(&key, at).await?.ok_or_else(absent)?;
    let journal = served.engine.journal(&key).await?;
    let so_far: Vec<_> = journal.into_iter().filter(|it| it.seq <= at).collect();
    let artifacts = served.engine.artifacts(&key, &thread).await?;
    let checkpoint = Checkpoint::new(&thread, &steps(&so_far), rfc3339(thread.now));
    Ok(Json(checkpoint.with_artifacts(&artifacts)))
}

/// Follows a run: its events exactly, each with its place as id, and between them what models are saying.
///
/// Whoever comes back with `Last-Event-ID` sees every event after that one, once. The stream ends with the run; when nothing
/// of it is left to be seen, the answer is 204, so that browsers do not come back.
#[utoipa::path(
    get, path = "/api/v1/runs/{run_id}/stream", tag = "runs",
    params(
        ("run_id" = String, Path, description = "The run"),
        ("last-event-id" = Option<String>, Header, description = "The last event that was seen"),
    ),
    responses(
        (status = 200, description = "What happens, as it happens", content_type = "text/event-stream", body = crate::openapi::StreamEvent),
        (status = 204, description = "The run is over, and nothing of it follows"),
        crate::openapi::Problems,
    )
)]
pub(crate) async fn follow(
    State(world): State<Arc<World>>,
    caller: Caller,
    Path(run_id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (run, served, key, began) = world.run(caller.tenant(), &run_id).await?;
    let mut after = began.saturating_sub(1);
    // Who has seen nothing yet has something to see, even of a run that is over: its end.
    if let Some(last) = headers.get("last-event-id") {
        after = after.max(seen(served, &key, last).await?);
        let is_over = served.engine.run_end(&key, run).await?;
        if is_over.is_some_and(|end| after >= end) {
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
    }
    let permit = world.streams.enter(&caller.name())?;
    let place = StreamPlace {
        key,
        run,
        after,
        pass: caller.pass,
        permit,
    };
    Ok(stream::respond(&world, served, place).await)
}

/// The event that a client has seen last.
async fn seen(served: &Served, key: &ThreadKey, last: &HeaderValue) -> Result<u64, Problem> {
    let thread = served.engine.state(key).await?;
    let version = thread.map_or(0, |thread| thread.version);
    let id = last.to_str().ok().and_then(|text| text.parse().ok());
    id.filter(|id| *id <= version).ok_or_else(|| {
        Problem::new(
            "bad_event_id",
            format!("`Last-Event-ID` must be a number up to {version}: the id of an event of this run's thread"),
        )
    })
}

async fn view(
    world: &World,
    caller: &Caller,
    run_id: &str,
) -> Result<(RunView, Arc<Thread>), Problem> {
    let (run, served, key, _) = world.run(caller.tenant(), run_id).await?;
    let thread = served.engine.run_state(&key, run).await?;
    let thread = thread.ok_or_else(|| Problem::not_found("run"))?;
    let transcript = served.engine.transcript(&key, &thread).await?;
    let engine = &served.engine;
    let mut view = engine.show_run(&key.tenant, &thread, &transcript).await?;
    // What is due is closed by whoever looks next; reading changes nothing.
    let now = served.engine.store().now();
    view.interrupts.retain(|view| {
        let interrupt = thread.interrupts.get(&view.id);
        let due = interrupt.and_then(|interrupt| interrupt.due_at());
        due.is_none_or(|due| now < due)
    });
    Ok((view, thread))
}

/// The last event of a run, or the last there is while it goes on.
async fn last_event(served: &Served, key: &ThreadKey, run: RunId) -> Result<u64, Problem> {
    let thread = served.engine.run_state(key, run).await?;
    Ok(thread.map_or(0, |thread| thread.version))
}

/// Cuts a list to a page, where one more than fits was read.
fn page<T>(mut items: Vec<T>, limit: usize, place: impl Fn(&T) -> u64) -> Page<T> {
    let more = items.len() > limit;
    items.truncate(limit);
    let next_cursor = items.last().filter(|_| more);
    Page {
        next_cursor: next_cursor.map(|item| place(item).to_string()),
        items,
    }
}

/// Whether an event ends this run.
pub(crate) fn ends(event: &Event) -> bool {
    matches!(event, Event::RunEnded { .. })
}
