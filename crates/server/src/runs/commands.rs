//! Beginning a run, answering it, stopping it, and going on elsewhere from where it stood.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use holdpoint_core::{Answers, Bond, Refusal, RunId, Supersede};
use holdpoint_engine::{Engine, Error, Request, Submitted};
use holdpoint_store::ThreadKey;
use serde_json::Value;

use super::wire::{ByToken, NewFork, NewRun, Nothing, Standing, answer_example};
use crate::{
    caller::Caller,
    chat::routes::session_id,
    once::{Sent, replayed},
    path::Path,
    problem::Problem,
    token::{self, Claims, Form},
    world::{Placed, World},
};

/// Begins a run.
#[utoipa::path(
    post, path = "/api/v1/runs", tag = "runs",
    request_body = NewRun,
    responses(
        (status = 201, description = "It has begun", body = Standing),
        crate::openapi::Problems,
    )
)]
pub(crate) async fn start(
    State(world): State<Arc<World>>,
    sent: Sent<NewRun>,
) -> Result<Response, Problem> {
    let Sent {
        caller,
        value,
        request,
        ..
    } = sent;
    if value.session_id.is_empty() {
        return Err(Problem::new("bad_request", "session_id is required"));
    }
    let session = session_id(&value.session_id)?;
    let (offered, served) = world.agent(&value.agent_id)?;
    let place = world.has_room(served, &caller).await?;
    let tenant = caller.tenant();
    let agent = world
        .publish(&served.engine, tenant, &offered.agent)
        .await?;
    let supersede = if value.supersede {
        Supersede::Waiting
    } else {
        Supersede::Nothing
    };
    let engine = served.engine.clone();
    let work = async move {
        engine
            .start_instead(request, &agent, &session, &value.input, supersede)
            .await
    };
    let placed = world.begin(served, tenant, place, Box::pin(work)).await?;
    Ok(created(&placed))
}

/// Answers what a run asks.
///
/// Either `{"decisions": […]}`, for the only question that is pending, or a map from interrupt ids to such answers or single
/// decisions. All of them are taken, or none. Or `{"resume_token": "…", "approval": {"approved": true, "params_hash": "…"}}`, by a
/// token of `POST /api/v1/interrupts/{interrupt_id}/token`.
#[utoipa::path(
    post, path = "/api/v1/runs/{run_id}/resume", tag = "runs",
    params(("run_id" = String, Path, description = "The run")),
    request_body(content = Object, example = json!(answer_example())),
    responses(
        (status = 200, description = "The answer is taken, and the run goes on", body = Standing),
        crate::openapi::Problems,
    )
)]
pub(crate) async fn resume(
    State(world): State<Arc<World>>,
    Path(run_id): Path<String>,
    sent: Sent<Value>,
) -> Result<Response, Problem> {
    let Sent {
        caller,
        value,
        canonical,
        request,
    } = sent;
    if value.get("resume_token").is_some() {
        return by_token(&world, &run_id, caller, request, value).await;
    }
    let (run, served, key, _) = world.run(caller.tenant(), &run_id).await?;
    let answers = Answers::parse(&canonical).map_err(Error::from)?;
    world.is_batch(&answers)?;
    let engine = served.engine.clone();
    let work = async move { engine.answer_run(request, &key, run, answers).await };
    let placed = world
        .submit(served, caller.tenant(), Box::pin(work))
        .await?;
    Ok(told(run, &placed))
}

/// Answers by a token, as whoever it was given to.
async fn by_token(
    world: &World,
    run_id: &str,
    caller: Caller,
    request: Request,
    value: Value,
) -> Result<Response, Problem> {
    let ByToken {
        resume_token,
        approval,
    } = serde_json::from_value(value).map_err(Problem::bad_body)?;
    let tenant = caller.tenant();
    let (run, _, _, _) = world.run(tenant, run_id).await?;
    let opened = token::open(Form::Token, &resume_token, world.keyring()?);
    let (claims, key): (Claims, String) = opened.map_err(Error::from)?;
    let bad = |why| Problem::from(Error::from(Refusal::BadPass { why }));
    if claims.tenant != tenant || claims.run != run {
        return Err(bad("it is for another run"));
    }
    world.expect_good(claims.issuer_key.as_deref()).await?;
    let (served, question) = world
        .question(tenant, &claims.interrupt.to_string())
        .await?;
    let seen = approval.seen(&question)?;
    let reply = approval.into_reply(&claims.user)?;
    let bond = Bond {
        pass: Some(Box::new(claims.pass(key, &caller.principal.actor))),
        seen,
    };
    let by = claims.holder();
    let request = Request { by, ..request };
    let engine = served.engine.clone();
    let work = async move { engine.respond(request, &question, reply, bond).await };
    let placed = world.submit(served, tenant, Box::pin(work)).await?;
    Ok(told(run, &placed))
}

/// Stops a run: nothing starts any more, and what is in the air is awaited.
#[utoipa::path(
    post, path = "/api/v1/runs/{run_id}/cancel", tag = "runs",
    params(("run_id" = String, Path, description = "The run")),
    request_body = Nothing,
    responses(
        (status = 200, description = "It is being stopped", body = Standing),
        crate::openapi::Problems,
    )
)]
pub(crate) async fn cancel(
    State(world): State<Arc<World>>,
    Path(run_id): Path<String>,
    sent: Sent<Nothing>,
) -> Result<Response, Problem> {
    tell(&world, &run_id, sent, Told::Cancel).await
}

/// Lets a run stand still: what is in the air goes on to its end, and nothing starts.
#[utoipa::path(
    post, path = "/api/v1/runs/{run_id}/pause", tag = "runs",
    params(("run_id" = String, Path, description = "The run")),
    request_body = Nothing,
    responses(
        (status = 200, description = "It stands still soon", body = Standing),
        crate::openapi::Problems,
    )
)]
pub(crate) async fn pause(
    State(world): State<Arc<World>>,
    Path(run_id): Path<String>,
    sent: Sent<Nothing>,
) -> Result<Response, Problem> {
    tell(&world, &run_id, sent, Told::Pause).await
}

/// Lets a paused run go on.
#[utoipa::path(
    post, path = "/api/v1/runs/{run_id}/continue", tag = "runs",
    params(("run_id" = String, Path, description = "The run")),
    request_body = Nothing,
    responses(
        (status = 200, description = "It goes on", body = Standing),
        crate::openapi::Problems,
    )
)]
pub(crate) async fn go_on(
    State(world): State<Arc<World>>,
    Path(run_id): Path<String>,
    sent: Sent<Nothing>,
) -> Result<Response, Problem> {
    tell(&world, &run_id, sent, Told::Continue).await
}

/// Begins another conversation where this run stands, or stood.
///
/// What was done is a fact there; what is open is asked anew, and nothing that anybody allowed is carried over.
#[utoipa::path(
    post, path = "/api/v1/runs/{run_id}/fork", tag = "runs",
    params(("run_id" = String, Path, description = "The run")),
    request_body = NewFork,
    responses(
        (status = 201, description = "It has begun", body = Standing),
        crate::openapi::Problems,
    )
)]
pub(crate) async fn fork(
    State(world): State<Arc<World>>,
    Path(run_id): Path<String>,
    sent: Sent<NewFork>,
) -> Result<Response, Problem> {
    let Sent {
        caller,
        value,
        request,
        ..
    } = sent;
    if value.session_id.is_empty() {
        return Err(Problem::new("bad_request", "session_id is required"));
    }
    let session = session_id(&value.session_id)?;
    let (run, served, key, _) = world.run(caller.tenant(), &run_id).await?;
    let state = served.engine.run_state(&key, run).await?;
    let state = state.ok_or_else(|| Problem::not_found("run"))?;
    let at = match &value.checkpoint_id {
        None => state.version,
        Some(text) => place(text)?,
    };
    if at > state.version {
        return Err(no_checkpoint(&format!("ckpt_{at}")));
    }
    let room = world.has_room(served, &caller).await?;
    let engine = served.engine.clone();
    let work = async move { engine.fork(request, &key, Some(at), &session).await };
    let placed = world
        .begin(served, caller.tenant(), room, Box::pin(work))
        .await?;
    Ok(created(&placed))
}

/// The event that a checkpoint's name means.
pub(crate) fn place(text: &str) -> Result<u64, Problem> {
    let number = text.strip_prefix("ckpt_").and_then(|it| it.parse().ok());
    number.ok_or_else(|| no_checkpoint(text))
}

fn no_checkpoint(text: &str) -> Problem {
    let error = format!("`{text}` is no checkpoint; `GET /runs/{{id}}/history` lists them");
    Problem::new("not_found", error)
}

/// What a run can be told.
#[derive(Debug, Clone, Copy)]
enum Told {
    Cancel,
    Pause,
    Continue,
}

impl Told {
    async fn to(
        self,
        engine: Engine,
        request: Request,
        key: ThreadKey,
        run: RunId,
    ) -> Result<Submitted, Error> {
        match self {
            Self::Cancel => engine.cancel(request, &key, Some(run)).await,
            Self::Pause => engine.pause(request, &key, Some(run)).await,
            Self::Continue => engine.unpause(request, &key, Some(run)).await,
        }
    }
}

async fn tell(
    world: &World,
    run_id: &str,
    sent: Sent<Nothing>,
    what: Told,
) -> Result<Response, Problem> {
    let Sent {
        caller, request, ..
    } = sent;
    let (run, served, key, _) = world.run(caller.tenant(), run_id).await?;
    let work = what.to(served.engine.clone(), request, key, run);
    let placed = world
        .submit(served, caller.tenant(), Box::pin(work))
        .await?;
    Ok(told(run, &placed))
}

fn told(run: RunId, placed: &Placed) -> Response {
    let standing = Standing::new(Some(run), &placed.state);
    replayed(Json(standing).into_response(), placed.replayed)
}

fn created(placed: &Placed) -> Response {
    let standing = Standing::new(placed.run, &placed.state);
    let location = placed.run.map(|run| format!("/api/v1/runs/{run}"));
    let mut response = (StatusCode::CREATED, Json(standing)).into_response();
    if let Some(location) = location.and_then(|it| HeaderValue::from_str(&it).ok()) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    replayed(response, placed.replayed)
}
