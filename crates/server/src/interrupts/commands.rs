//! Raising an interrupt, answering it, taking it back.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use holdpoint_core::{Bond, ThreadKind};
use holdpoint_engine::{
    News, Question,
    question::{Interrupt, InterruptOptions, Reply},
};

use super::wire::{NewInterrupt, Rejected, Said};
use crate::{
    metrics::Prevented,
    once::{Sent, replayed},
    path::Path,
    problem::Problem,
    runs::wire::Nothing,
    world::{Served, World},
};

/// Raises an interrupt.
///
/// The same question of the same node is the same interrupt while it is pending; with a `checkpoint_id` it is so even once it
/// is answered. So a program that was restarted asks again, and gets what it would have got.
#[utoipa::path(
    post, path = "/api/v1/interrupts", tag = "interrupts",
    request_body = NewInterrupt,
    responses(
        (status = 201, description = "It is raised, and kept", body = Object),
        (status = 200, description = "It was raised before", body = Object),
        crate::openapi::Problems,
    )
)]
pub(crate) async fn create(
    State(world): State<Arc<World>>,
    sent: Sent<InterruptOptions>,
) -> Result<Response, Problem> {
    let Sent {
        caller,
        value,
        request,
        ..
    } = sent;
    let bad = |reason: String| Problem::new("bad_question", reason);
    if value.bind_to_caller {
        return Err(bad(
            "`bind_to_caller`: over HTTP nobody knows when you are gone; cancel it, or set a `timeout`"
                .to_owned(),
        ));
    }
    let asking = value.into_asking().map_err(|it| bad(it.into_reason()))?;
    let served = world.home()?;
    let _place = world.has_room(served, &caller).await?;
    let asked = served.engine.ask(request, asking).await?;
    match asked.news {
        News::New => {}
        News::Known => world.metrics.prevented(Prevented::SameQuestion),
        News::Replayed => world.metrics.prevented(Prevented::IdempotencyKey),
    }
    let id = asked.interrupt;
    let question = served.engine.question(caller.tenant(), id).await?;
    let question = question.ok_or_else(|| Problem::not_found("interrupt"))?;
    let status = match asked.news {
        News::New => StatusCode::CREATED,
        News::Known | News::Replayed => StatusCode::OK,
    };
    let mut response = (status, Json(Interrupt::from(question))).into_response();
    if let Ok(location) = HeaderValue::from_str(&format!("/api/v1/interrupts/{id}")) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(replayed(response, asked.news == News::Replayed))
}

/// Answers an interrupt.
///
/// The first answer that fits is taken; whoever comes later is told who was first. One that does not fit changes nothing.
#[utoipa::path(
    post, path = "/api/v1/interrupts/{interrupt_id}/resolve", tag = "interrupts",
    params(("interrupt_id" = String, Path, description = "The interrupt")),
    request_body = Said,
    responses(
        (status = 200, description = "The answer is taken", body = Object),
        crate::openapi::Problems,
    )
)]
pub(crate) async fn resolve(
    State(world): State<Arc<World>>,
    Path(id): Path<String>,
    sent: Sent<Said>,
) -> Result<Response, Problem> {
    let (served, question) = world.question(sent.caller.tenant(), &id).await?;
    let (said, sent) = sent.taken();
    let bond = Bond {
        seen: said.seen(&question)?,
        ..Bond::default()
    };
    let reply = said.into_reply(&sent.caller.principal.actor.name)?;
    answer(&world, served, question, sent, (reply, bond)).await
}

/// Says no to an interrupt.
#[utoipa::path(
    post, path = "/api/v1/interrupts/{interrupt_id}/reject", tag = "interrupts",
    params(("interrupt_id" = String, Path, description = "The interrupt")),
    request_body = Rejected,
    responses(
        (status = 200, description = "It is rejected", body = Object),
        crate::openapi::Problems,
    )
)]
pub(crate) async fn reject(
    State(world): State<Arc<World>>,
    Path(id): Path<String>,
    sent: Sent<Rejected>,
) -> Result<Response, Problem> {
    let (served, question) = world.question(sent.caller.tenant(), &id).await?;
    let (rejected, sent) = sent.taken();
    let reply = (rejected.into_reply(), Bond::default());
    answer(&world, served, question, sent, reply).await
}

async fn answer(
    world: &World,
    served: &Served,
    question: Question,
    sent: Sent<()>,
    (reply, bond): (Reply, Bond),
) -> Result<Response, Problem> {
    if let Reply::Decisions(answer) = &reply {
        world.is_batch(&holdpoint_core::Answers::Only(answer.clone()))?;
    }
    let id = question.interrupt.id;
    let engine = served.engine.clone();
    let tenant = sent.caller.tenant();
    let request = sent.request.clone();
    let work = async move { engine.respond(request, &question, reply, bond).await };
    let placed = world.submit(served, tenant, Box::pin(work)).await?;
    let question = served.engine.question(tenant, id).await?;
    let question = question.ok_or_else(|| Problem::not_found("interrupt"))?;
    let response = Json(Interrupt::from(question)).into_response();
    Ok(replayed(response, placed.replayed))
}

/// Takes an interrupt back that a program raised. Whoever waits for it is told.
#[utoipa::path(
    post, path = "/api/v1/interrupts/{interrupt_id}/cancel", tag = "interrupts",
    params(("interrupt_id" = String, Path, description = "The interrupt")),
    request_body = Nothing,
    responses(
        (status = 200, description = "It is canceled", body = Object),
        crate::openapi::Problems,
    )
)]
pub(crate) async fn cancel(
    State(world): State<Arc<World>>,
    Path(id): Path<String>,
    sent: Sent<Nothing>,
) -> Result<Response, Problem> {
    let tenant = sent.caller.tenant();
    let (served, question) = world.question(tenant, &id).await?;
    let id = question.interrupt.id;
    if question.asker == ThreadKind::Agent {
        let run = question.interrupt.run;
        let error = format!("an agent asks this; `POST /api/v1/runs/{run}/cancel` stops its run");
        return Err(Problem::new("use_runs_api", error));
    }
    let news = served.engine.withdraw(sent.request, id).await?;
    if news == News::Replayed {
        world.metrics.prevented(Prevented::IdempotencyKey);
    }
    let question = served.engine.question(tenant, id).await?;
    let question = question.ok_or_else(|| Problem::not_found("interrupt"))?;
    let response = Json(Interrupt::from(question)).into_response();
    Ok(replayed(response, news == News::Replayed))
}
