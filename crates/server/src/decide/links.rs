//! Giving somebody a link.

use std::{collections::BTreeSet, sync::Arc};

use axum::{
    Json,
    extract::State,
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use holdpoint_core::{Holder, Span, Timestamp};
use holdpoint_engine::Question;
use serde::{Deserialize, Serialize};

use super::Waiting;
use crate::{
    clock::rfc3339,
    once::Sent,
    path::Path,
    problem::Problem,
    token::{Form, Giver, holder, lasting, leave, seal},
    world::World,
};

/// How long a link holds at most, and where nothing is said: a day, so that somebody can sleep over it.
const LONGEST: u64 = 24 * 60 * 60;

/// Who is given a link.
#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wish {
    /// The user; the caller if unsaid. For somebody else, the permission `tokens.issue` is needed.
    user_id: Option<String>,
    /// The roles that they answer with, of those that the caller has; one's own if unsaid, and none for somebody else.
    #[schema(value_type = Option<Vec<String>>)]
    roles: Option<BTreeSet<String>>,
    /// How long it holds, in seconds, from 1 to 86400; that if unsaid. Never longer than the question.
    #[schema(minimum = 1, maximum = 86400)]
    ttl_seconds: Option<u64>,
}

impl Wish {
    fn lasts(&self) -> Result<Span, Problem> {
        lasting(self.ttl_seconds.unwrap_or(LONGEST), LONGEST)
    }
}

/// A link. Whoever has it can open it, so it is for one person's eyes.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct Link {
    /// Where it leads.
    url: String,
    /// Who it is for.
    user_id: String,
    /// From when on it does not hold any more, in RFC 3339.
    expires_at: String,
}

/// Gives somebody a link to a page on which they answer an interrupt, once.
///
/// It is as a token: bound to the run, the question with all that it shows, the plan and the user. Opening it changes nothing.
#[utoipa::path(
    post, path = "/api/v1/interrupts/{interrupt_id}/link", tag = "interrupts",
    params(("interrupt_id" = String, Path, description = "The interrupt")),
    request_body = Wish,
    responses(
        (status = 201, description = "A link", body = Link),
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
    let lasts = value.lasts()?;
    let holder = holder(&caller, value.user_id.as_deref(), value.roles)?;
    let now = served.engine.store().now();
    let link = to_question(&world, &question, &(&caller).into(), holder, now, lasts)?;
    Ok((StatusCode::CREATED, Json(link)).into_response())
}

/// A link to the page of a question.
///
/// # Errors
///
/// The server has no keys to sign it with, or does not know where it is reached.
pub(crate) fn to_question(
    world: &World,
    question: &Question,
    giver: &Giver,
    holder: Holder,
    now: Timestamp,
    lasts: Span,
) -> Result<Link, Problem> {
    let claims = leave(question, giver, holder, now, lasts)?;
    let link = seal(Form::Link, &claims, world.keyring()?);
    Ok(Link {
        url: format!("{}/decide/{link}", world.public_url()?),
        user_id: claims.user,
        expires_at: rfc3339(claims.expires_at),
    })
}

impl Link {
    /// Where it leads.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

/// Gives somebody a link to a page that lists what waits, each with a link of its own.
#[utoipa::path(
    post, path = "/api/v1/waiting", tag = "interrupts",
    request_body = Wish,
    responses(
        (status = 201, description = "A link", body = Link),
        crate::openapi::Problems,
    )
)]
pub(crate) async fn issue_list(
    State(world): State<Arc<World>>,
    sent: Sent<Wish>,
) -> Result<Response, Problem> {
    let Sent { caller, value, .. } = sent;
    let lasts = value.lasts()?;
    let holder = holder(&caller, value.user_id.as_deref(), value.roles)?;
    let expires_at = world.home()?.engine.store().now() + lasts;
    let waiting = Waiting {
        tenant: caller.tenant().to_owned(),
        user: holder.user,
        roles: holder.roles,
        expires_at,
        issuer: caller.principal.actor.clone(),
        issuer_key: caller.pass.key().map(str::to_owned),
    };
    let link = seal(Form::Waiting, &waiting, world.keyring()?);
    let link = Link {
        url: format!("{}/waiting/{link}", world.public_url()?),
        user_id: waiting.user,
        expires_at: rfc3339(expires_at),
    };
    Ok((StatusCode::CREATED, Json(link)).into_response())
}
