//! `/api/v1/chat`: talk, see what is asked, answer, stop.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::HeaderMap,
    response::{IntoResponse as _, Response},
};
use holdpoint_core::{InterruptId, Refusal, Supersede, ThreadId};
use holdpoint_engine::Error;
use holdpoint_store::ThreadKey;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    form, state,
    stream::{self, Reader},
    teller::{Format, When},
};
use crate::{
    caller::Caller, catalog::Offered, frames::InterruptState, once::Sent, problem::Problem,
    query::Query, world::World,
};

/// The longest session id.
const MAX_SESSION: usize = 256;

/// A message to an agent.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
pub(crate) struct Message {
    /// The agent.
    #[schema(value_type = String, example = "approval-agent")]
    agent_id: Option<Value>,
    /// The conversation.
    #[schema(value_type = String, example = "deploy-123")]
    session_id: Option<Value>,
    /// What is said to it.
    #[schema(value_type = String, example = "部署 v2.0 到生产环境")]
    message: Option<Value>,
    /// Whether a question that is pending makes way: it is canceled, in the same transaction.
    #[serde(default)]
    supersede: bool,
}

/// An answer to what an agent asks. A word that is not known is refused: it might be a misspelt name of a question.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Resume {
    /// The agent.
    #[schema(value_type = String, example = "approval-agent")]
    agent_id: Option<Value>,
    /// The conversation.
    #[schema(value_type = String, example = "deploy-123")]
    session_id: Option<Value>,
    /// The form, filled in: a value for each field.
    #[schema(value_type = Object, example = json!({"confirm": true}))]
    input: Option<Value>,
    /// Which question is meant. Without it, the one that is pending.
    #[serde(default, alias = "interruptId")]
    #[schema(value_type = Option<String>)]
    interrupt_id: Option<InterruptId>,
    /// The same by its checkpoint.
    #[serde(default, alias = "checkpointId")]
    checkpoint_id: Option<String>,
}

/// A conversation.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
pub(crate) struct Session {
    /// The agent.
    #[schema(value_type = String, example = "approval-agent")]
    agent_id: Option<Value>,
    /// The conversation.
    #[schema(value_type = String, example = "deploy-123")]
    session_id: Option<Value>,
}

/// Which conversation is meant.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Which {
    /// The agent.
    agent_id: Option<String>,
    /// The conversation.
    session_id: Option<String>,
}

/// How the stream is wanted.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Wanted {
    /// `true` for events with names (A2UI); the header `X-A2UI: true` says the same.
    a2ui: Option<String>,
}

/// Whether a conversation waits for an answer.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct Interrupted {
    /// Whether it does.
    interrupted: bool,
    /// For what.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<InterruptState>,
}

/// What became of an abort.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct Aborted {
    /// `aborted`, or `no_active_loop` where nothing was going on.
    #[schema(example = "aborted")]
    status: &'static str,
}

/// Talks to an agent.
///
/// The answer is a stream of Server-Sent Events, and ends when the agent has answered, or asks something.
#[utoipa::path(
    post, path = "/api/v1/chat/stream", tag = "chat", params(Wanted, ("X-A2UI" = Option<String>, Header, description = "`true` for events with names (A2UI)")),
    request_body = Message,
    responses(
        (status = 200, description = "The answer, as it comes", content_type = "text/event-stream", body = crate::openapi::StreamEvent),
        crate::openapi::Problems,
    )
)]
pub(crate) async fn talk(
    State(world): State<Arc<World>>,
    Query(wanted): Query<Wanted>,
    headers: HeaderMap,
    sent: Sent<Message>,
) -> Result<Response, Problem> {
    let Sent {
        caller,
        value,
        request,
        ..
    } = sent;
    let (agent_id, session) = named(value.agent_id, value.session_id)?;
    let message = required("message", value.message)?;
    let (offered, served) = world.agent(&agent_id)?;
    let permit = world.streams.enter(&caller.name())?;
    let place = world.has_room(served, &caller).await?;
    let tenant = caller.tenant().to_owned();
    let agent = world
        .publish(&served.engine, &tenant, &offered.agent)
        .await?;
    // A run that only waits because its model gave no answer is no conversation any more.
    let supersede = if value.supersede {
        Supersede::Waiting
    } else {
        Supersede::Failed
    };
    let listener = served.hub.listen(&thread(&caller, &agent_id, &session));
    let engine = served.engine.clone();
    let work = async move {
        engine
            .start_instead(request, &agent, &session, &message, supersede)
            .await
    };
    let placed = world.begin(served, &tenant, place, Box::pin(work)).await?;
    let reader = Reader {
        format: format(&headers, &wanted),
        when: when(&offered),
        pass: caller.pass,
        permit,
        listener,
    };
    Ok(stream::respond(&world, served, &placed, reader).await)
}

/// Says what a conversation waits for.
#[utoipa::path(
    get, path = "/api/v1/chat/interrupt_state", tag = "chat", params(Which),
    responses(
        (status = 200, description = "Whether it waits, and for what", body = Interrupted),
        crate::openapi::Problems,
    )
)]
pub(crate) async fn interrupt_state(
    State(world): State<Arc<World>>,
    caller: Caller,
    Query(which): Query<Which>,
) -> Result<Json<Interrupted>, Problem> {
    let given = |text: Option<String>| text.filter(|text| !text.is_empty());
    let (Some(agent_id), Some(session)) = (given(which.agent_id), given(which.session_id)) else {
        return Err(Problem::new(
            "bad_request",
            "agent_id and session_id are required",
        ));
    };
    let key = thread(&caller, &agent_id, &session);
    let (_, served) = world.conversation(&agent_id, &key).await?;
    let thread = served.engine.state(&key).await?;
    let state = match thread {
        Some(thread) => state::asked(&served.engine, &key, &thread).await?,
        None => None,
    };
    Ok(Json(Interrupted {
        interrupted: state.is_some(),
        state,
    }))
}

/// Answers what an agent asks.
///
/// The answer's answer is a stream like that of `/chat/stream`.
#[utoipa::path(
    post, path = "/api/v1/chat/resume", tag = "chat", params(Wanted, ("X-A2UI" = Option<String>, Header, description = "`true` for events with names (A2UI)")),
    request_body = Resume,
    responses(
        (status = 200, description = "What the agent says to it, as it comes", content_type = "text/event-stream", body = crate::openapi::StreamEvent),
        crate::openapi::Problems,
    )
)]
pub(crate) async fn resume(
    State(world): State<Arc<World>>,
    Query(wanted): Query<Wanted>,
    headers: HeaderMap,
    sent: Sent<Resume>,
) -> Result<Response, Problem> {
    let Sent {
        caller,
        value,
        request,
        ..
    } = sent;
    let (agent_id, session) = named(value.agent_id, value.session_id)?;
    let input = match value.input {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(input)) => input,
        Some(_) => return Err(Problem::bad_body("`input` must be an object")),
    };
    let key = thread(&caller, &agent_id, &session);
    let (offered, served) = world.conversation(&agent_id, &key).await?;
    let permit = world.streams.enter(&caller.name())?;
    let listener = served.hub.listen(&key);
    let never_asks = offered.as_ref().is_some_and(|it| !it.agent.is_gated());
    let none_pending = || {
        if never_asks {
            return Problem::new(
                "not_interruptable",
                format!("agent does not support interrupt/resume: {agent_id}"),
            );
        }
        Problem::new(
            "no_pending_interrupt",
            format!("no pending interrupt for session: {session}"),
        )
    };
    let replayed = match &request.mark {
        Some(mark) => served.engine.marked(caller.tenant(), mark).await?,
        None => None,
    };
    let placed = if let Some(marked) = replayed {
        let again = async move { Err(Error::Replayed(Box::new(marked))) };
        world
            .submit(served, caller.tenant(), Box::pin(again))
            .await?
    } else {
        let thread = served.engine.state(&key).await?.ok_or_else(none_pending)?;
        let interrupt = state::pending(&served.engine, &thread).ok_or_else(none_pending)?;
        let checkpoint = state::checkpoint_of(&thread, interrupt);
        let is_unnamed = value.interrupt_id.is_none() && value.checkpoint_id.is_none();
        let meant = value.interrupt_id.is_none_or(|id| id == interrupt.id)
            && value.checkpoint_id.is_none_or(|id| id == checkpoint);
        if !meant {
            let other = format!(
                "no such pending interrupt for session: {session}; it waits for the answer to another one"
            );
            return Err(Problem::new("no_pending_interrupt", other)
                .with(serde_json::json!({"pending": interrupt.id})));
        }
        if is_unnamed && thread.was_just_answered(served.engine.store().now()) {
            let pending = vec![interrupt.id];
            return Err(Error::from(Refusal::JustAnswered { pending }).into());
        }
        let answer = form::answer(interrupt, &input)?;
        let (engine, id) = (served.engine.clone(), interrupt.id);
        let work = async move { engine.answer(request, &key, id, answer).await };
        let placed = world.submit(served, caller.tenant(), Box::pin(work)).await;
        // Whoever was slower has nothing left to answer.
        placed.map_err(|problem| match problem.code {
            "already_decided" | "expired" | "not_pending" | "not_found" | "run_over" => {
                none_pending().with(problem.details)
            }
            _ => problem,
        })?
    };
    let reader = Reader {
        format: format(&headers, &wanted),
        // What nobody serves any more may be one whose words are looked at.
        when: offered.as_ref().map_or(When::Committed, when),
        pass: caller.pass,
        permit,
        listener,
    };
    Ok(stream::respond(&world, served, &placed, reader).await)
}

/// Stops what goes on in a conversation.
#[utoipa::path(
    post, path = "/api/v1/chat/abort", tag = "chat",
    request_body = Session,
    responses(
        (status = 200, description = "What became of it", body = Aborted),
        crate::openapi::Problems,
    )
)]
pub(crate) async fn abort(
    State(world): State<Arc<World>>,
    sent: Sent<Session>,
) -> Result<Response, Problem> {
    let Sent {
        caller,
        value,
        request,
        ..
    } = sent;
    let (agent_id, session) = named(value.agent_id, value.session_id)?;
    let key = thread(&caller, &agent_id, &session);
    let (_, served) = world.conversation(&agent_id, &key).await?;
    let engine = served.engine.clone();
    let work = async move { engine.cancel(request, &key, None).await };
    let status = match world.submit(served, caller.tenant(), Box::pin(work)).await {
        Ok(_) => "aborted",
        Err(problem) if matches!(problem.code, "run_over" | "not_found") => "no_active_loop",
        Err(problem) => return Err(problem),
    };
    Ok(Json(Aborted { status }).into_response())
}

fn required(name: &str, value: Option<Value>) -> Result<String, Problem> {
    match value {
        Some(Value::String(text)) if !text.is_empty() => Ok(text),
        None | Some(Value::Null | Value::String(_)) => {
            Err(Problem::new("bad_request", format!("{name} is required")))
        }
        Some(_) => Err(Problem::bad_body(format!("`{name}` must be a text"))),
    }
}

/// The agent and the session that a body names.
fn named(agent: Option<Value>, session: Option<Value>) -> Result<(String, String), Problem> {
    let agent = required("agent_id", agent)?;
    let session = session_id(&required("session_id", session)?)?;
    Ok((agent, session))
}

/// A session id that can be part of other names.
///
/// # Errors
///
/// It is too long, or holds characters that nobody sees.
pub(crate) fn session_id(text: &str) -> Result<String, Problem> {
    if text.chars().count() > MAX_SESSION || text.chars().any(char::is_control) {
        let error = format!(
            "session_id must have 1 to {MAX_SESSION} characters, none of them a control character"
        );
        return Err(Problem::new("bad_request", error));
    }
    Ok(text.to_owned())
}

fn thread(caller: &Caller, agent: &str, session: &str) -> ThreadKey {
    let tenant = caller.tenant();
    ThreadKey {
        tenant: tenant.into(),
        thread: ThreadId::of_session(tenant, agent, session),
    }
}

fn format(headers: &HeaderMap, wanted: &Wanted) -> Format {
    let header = headers.get("x-a2ui").and_then(|value| value.to_str().ok());
    let says_so = |text: &str| text.eq_ignore_ascii_case("true");
    if header.is_some_and(says_so) || wanted.a2ui.as_deref().is_some_and(says_so) {
        Format::A2ui
    } else {
        Format::Legacy
    }
}

/// An agent whose words are looked at speaks once they are committed: neither format can take them back.
fn when(offered: &Offered) -> When {
    if offered.agent.definition.confirm.is_some() {
        When::Committed
    } else {
        When::Said
    }
}
