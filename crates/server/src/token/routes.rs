//! Giving a token to somebody.

use std::{collections::BTreeSet, sync::Arc};

use axum::{
    Json,
    extract::State,
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use holdpoint_core::RunId;
use holdpoint_engine::Question;
use serde::{Deserialize, Serialize};

use super::{Form, holder, lasting, leave, seal};
use crate::{
    caller::Caller,
    clock::rfc3339,
    once::Sent,
    path::Path,
    problem::Problem,
    world::{Served, World},
};

/// How long a token holds where nothing is said.
const USUAL: u64 = 15 * 60;
/// The longest that one holds.
const LONGEST: u64 = 60 * 60;

/// Who is given a token.
#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wish {
    /// The user; the caller if unsaid. For somebody else, the permission `tokens.issue` is needed.
    user_id: Option<String>,
    /// The roles that they answer with, of those that the caller has; one's own if unsaid, and none for somebody else.
    #[schema(value_type = Option<Vec<String>>)]
    roles: Option<BTreeSet<String>>,
    /// How long it holds, in seconds, from 1 to 3600; 900 if unsaid. Never longer than the question.
    #[schema(minimum = 1, maximum = 3600)]
    ttl_seconds: Option<u64>,
}

/// A token. This is the only time that it is seen.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct Given {
    /// What the journal calls it once it is used.
    token_id: String,
    /// It itself.
    resume_token: String,
    /// The question it is for.
    #[schema(value_type = String)]
    interrupt_id: holdpoint_core::InterruptId,
    /// The run that asks.
    #[schema(value_type = String)]
    run_id: RunId,
    /// Who it is for.
    user_id: String,
    /// From when on it does not hold any more, in RFC 3339.
    expires_at: String,
}

/// Gives somebody leave to answer an interrupt, once.
///
/// The token is bound to the run, the question with all that it shows, the plan and the user, and holds for a while.
/// `POST /api/v1/runs/{run_id}/resume` takes it. It can be given again, to the same user or another, as long as the question is
/// pending; the first answer that is taken ends all of them.
#[utoipa::path(
    post, path = "/api/v1/interrupts/{interrupt_id}/token", tag = "interrupts",
    params(("interrupt_id" = String, Path, description = "The interrupt")),
    request_body = Wish,
    responses(
        (status = 201, description = "A token", body = Given),
        crate::openapi::Problems,
    )
)]
pub(crate) async fn issue(
    State(world): State<Arc<World>>,
    Path(id): Path<String>,
    sent: Sent<Wish>,
) -> Result<Response, Problem> {
    let Sent { caller, value, .. } = sent;
    let (served, question) = world.question(caller.tenant(), &id).await?;
    served.expect_pending(&question).await?;
    let given = give(&world, served, &question, &caller, value)?;
    Ok((StatusCode::CREATED, Json(given)).into_response())
}

fn give(
    world: &World,
    served: &Served,
    question: &Question,
    caller: &Caller,
    wish: Wish,
) -> Result<Given, Problem> {
    let holder = holder(caller, wish.user_id.as_deref(), wish.roles)?;
    let lasts = lasting(wish.ttl_seconds.unwrap_or(USUAL), LONGEST)?;
    let keyring = world.keyring()?;
    let now = served.engine.store().now();
    let claims = leave(question, &caller.into(), holder, now, lasts)?;
    Ok(Given {
        resume_token: seal(Form::Token, &claims, keyring),
        token_id: claims.id,
        interrupt_id: claims.interrupt,
        run_id: claims.run,
        user_id: claims.user,
        expires_at: rfc3339(claims.expires_at),
    })
}
