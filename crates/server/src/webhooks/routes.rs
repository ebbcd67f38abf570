//! What could not be delivered: seen, sent again, discarded.

use std::{collections::BTreeMap, sync::Arc};

use axum::{Json, extract::State};
use holdpoint_core::{InterruptId, InterruptKind, Letter, Subscription, ThreadId};
use holdpoint_engine::DeadLetter;
use serde::{Deserialize, Serialize};

use crate::{
    body::Body,
    caller::Caller,
    clock::rfc3339,
    page_of::{cursor, limit},
    path::Path,
    problem::Problem,
    query::Query,
    runs::wire::Page,
    world::World,
};

/// Up to how many letters are counted.
const COUNTED: usize = 1_000;

/// Somebody outside who is told what becomes of questions.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct WebhookView {
    /// Its name.
    name: String,
    /// Whether this server delivers to it.
    configured: bool,
    /// Which kinds of questions it hears of; all of them if there are none.
    #[schema(value_type = Vec<String>)]
    types: Vec<InterruptKind>,
    /// How much of what concerns this tenant is still to be told; at most 1000.
    undelivered: usize,
    /// How much of it was given up; at most 1000.
    dead_letters: usize,
}

/// Something that could not be delivered.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct DeadLetterView {
    /// The question that it is about.
    #[schema(value_type = String)]
    interrupt_id: InterruptId,
    /// The place of the event in its journal.
    seq: u64,
    /// How often it was tried.
    attempts: u32,
    /// When first, in RFC 3339.
    first_attempt_at: Option<String>,
    /// When last, in RFC 3339.
    last_attempt_at: Option<String>,
    /// Why not, the last time.
    error: Option<String>,
}

impl From<DeadLetter> for DeadLetterView {
    fn from(DeadLetter { letter, tries }: DeadLetter) -> Self {
        let first_at = tries.as_ref().map(|tries| rfc3339(tries.first_at));
        let last_at = tries.as_ref().map(|tries| rfc3339(tries.last_at));
        Self {
            interrupt_id: letter.interrupt,
            seq: letter.seq,
            attempts: tries.as_ref().map_or(0, |tries| tries.count),
            first_attempt_at: first_at,
            last_attempt_at: last_at,
            error: tries.map(|tries| tries.error),
        }
    }
}

/// Which page.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Which {
    /// Where the page before said that this one begins.
    cursor: Option<String>,
    /// At most so many, from 1 to 200; 50 if unsaid.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 200)]
    limit: Option<String>,
}

/// Of which question.
#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Of {
    /// Only what is about this one; everything if unsaid.
    #[schema(value_type = Option<String>)]
    interrupt_id: Option<InterruptId>,
}

/// How many letters it was done with.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct Count {
    count: usize,
}

/// Lists who is told what becomes of questions.
#[utoipa::path(
    get, path = "/api/v1/webhooks", tag = "webhooks",
    responses(
        (status = 200, description = "All of them", body = Page<WebhookView>),
        crate::openapi::Problems,
    )
)]
pub(crate) async fn list(
    State(world): State<Arc<World>>,
    caller: Caller,
) -> Result<Json<Page<WebhookView>>, Problem> {
    let mut found: BTreeMap<String, WebhookView> = BTreeMap::new();
    for served in world.engines.values() {
        let engine = &served.engine;
        for (name, subscription) in engine.subscriptions().await? {
            if !subscription.covers(caller.tenant()) {
                continue;
            }
            let dead = engine.dead_letters(&caller.principal, &name, None, COUNTED);
            let dead = dead.await?.len();
            let undelivered = engine.undelivered(caller.tenant(), &name, None, COUNTED);
            let undelivered = undelivered.await?.len();
            let view = found
                .entry(name)
                .or_insert_with_key(|name| shown(&world, name, subscription));
            view.undelivered = COUNTED.min(view.undelivered + undelivered);
            view.dead_letters = COUNTED.min(view.dead_letters + dead);
        }
    }
    Ok(Json(Page {
        items: found.into_values().collect(),
        next_cursor: None,
    }))
}

fn shown(world: &World, name: &str, subscription: Subscription) -> WebhookView {
    WebhookView {
        name: name.to_owned(),
        configured: world.endpoints.iter().any(|it| it.webhook.name == name),
        types: subscription.kinds.into_iter().collect(),
        undelivered: 0,
        dead_letters: 0,
    }
}

/// Lists what could not be delivered, the oldest questions first.
#[utoipa::path(
    get, path = "/api/v1/webhooks/{name}/dead_letters", tag = "webhooks",
    params(("name" = String, Path, description = "The webhook"), Which),
    responses(
        (status = 200, description = "Some of it", body = Page<DeadLetterView>),
        crate::openapi::Problems,
    )
)]
pub(crate) async fn dead_letters(
    State(world): State<Arc<World>>,
    caller: Caller,
    Path(name): Path<String>,
    Query(which): Query<Which>,
) -> Result<Json<Page<DeadLetterView>>, Problem> {
    let limit = limit(which.limit.as_deref())?;
    let after = which.cursor.as_deref().map(place).transpose()?;
    let after = after.map(|(interrupt, seq)| last_at(&name, interrupt, seq));
    let mut found = Vec::new();
    expect_known(&world, &caller, &name).await?;
    for served in world.engines.values() {
        let engine = &served.engine;
        let dead = engine.dead_letters(&caller.principal, &name, after.as_ref(), limit + 1);
        found.extend(dead.await?);
    }
    found.sort_by(|left, right| left.letter.cmp(&right.letter));
    let has_more = found.len() > limit;
    found.truncate(limit);
    let last = found.last().filter(|_| has_more);
    let next_cursor = last.map(|it| format!("{}:{}", it.letter.interrupt, it.letter.seq));
    Ok(Json(Page {
        items: found.into_iter().map(DeadLetterView::from).collect(),
        next_cursor,
    }))
}

/// One that was mistyped has nothing that was given up either, and that would look like good news.
async fn expect_known(world: &World, caller: &Caller, name: &str) -> Result<(), Problem> {
    for served in world.engines.values() {
        let known = served.engine.subscriptions().await?;
        let known = known.get(name);
        if known.is_some_and(|it| it.covers(caller.tenant())) {
            return Ok(());
        }
    }
    Err(Problem::not_found("webhook"))
}

/// The place of a letter in the list.
fn place(text: &str) -> Result<(InterruptId, u64), Problem> {
    let (interrupt, seq) = text.split_once(':').unwrap_or((text, ""));
    Ok((cursor(interrupt)?, cursor(seq)?))
}

/// The last letter that can be at a place.
fn last_at(name: &str, interrupt: InterruptId, seq: u64) -> Letter {
    Letter {
        endpoint: name.to_owned(),
        interrupt,
        seq,
        thread: ThreadId::from_bytes([u8::MAX; 16]),
    }
}

/// Sends what could not be delivered once more, as if it had not been tried.
#[utoipa::path(
    post, path = "/api/v1/webhooks/{name}/resend", tag = "webhooks",
    params(("name" = String, Path, description = "The webhook")),
    request_body = Of,
    responses(
        (status = 200, description = "So many are sent again", body = Count),
        crate::openapi::Problems,
    )
)]
pub(crate) async fn resend(
    State(world): State<Arc<World>>,
    caller: Caller,
    Path(name): Path<String>,
    Body { value: of, .. }: Body<Of>,
) -> Result<Json<Count>, Problem> {
    expect_known(&world, &caller, &name).await?;
    let mut count = 0;
    for served in world.engines.values() {
        let engine = &served.engine;
        count += engine
            .send_again(&caller.principal, &name, of.interrupt_id)
            .await?;
    }
    Ok(Json(Count { count }))
}

/// Forgets what could not be delivered.
#[utoipa::path(
    post, path = "/api/v1/webhooks/{name}/discard", tag = "webhooks",
    params(("name" = String, Path, description = "The webhook")),
    request_body = Of,
    responses(
        (status = 200, description = "So many are forgotten", body = Count),
        crate::openapi::Problems,
    )
)]
pub(crate) async fn discard(
    State(world): State<Arc<World>>,
    caller: Caller,
    Path(name): Path<String>,
    Body { value: of, .. }: Body<Of>,
) -> Result<Json<Count>, Problem> {
    expect_known(&world, &caller, &name).await?;
    let mut count = 0;
    for served in world.engines.values() {
        let engine = &served.engine;
        count += engine
            .discard(&caller.principal, &name, of.interrupt_id)
            .await?;
    }
    Ok(Json(Count { count }))
}
