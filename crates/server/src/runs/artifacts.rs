//! Results that are too long for a run's conversation.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::header,
    response::{IntoResponse as _, Response},
};
use holdpoint_core::{Artifact, ArtifactAddress};
use holdpoint_store::ThreadKey;

use super::{
    reading::Part,
    wire::{ArtifactView, Page},
};
use crate::{
    caller::Caller,
    page_of::{cursor, limit},
    path::Path,
    problem::Problem,
    query::Query,
    world::{Served, World},
};

/// Lists the results of a run's conversation that are kept apart because they are too long for it, the oldest first.
#[utoipa::path(
    get, path = "/api/v1/runs/{run_id}/artifacts", tag = "runs",
    params(("run_id" = String, Path, description = "The run"), Part),
    responses(
        (status = 200, description = "Some of them", body = Page<ArtifactView>),
        crate::openapi::Problems,
    )
)]
pub(crate) async fn list(
    State(world): State<Arc<World>>,
    caller: Caller,
    Path(run_id): Path<String>,
    Query(part): Query<Part>,
) -> Result<Json<Page<ArtifactView>>, Problem> {
    let (_, _, known) = artifacts(&world, &caller, &run_id).await?;
    let limit = limit(part.limit.as_deref())?;
    let after: Option<ArtifactAddress> = part.cursor.as_deref().map(cursor).transpose()?;
    let begin = match &after {
        None => 0,
        // One that is not there ends the list, as its last one does.
        Some(after) => {
            let place = known.iter().position(|it| it.address == *after);
            place.map_or(known.len(), |place| place + 1)
        }
    };
    let rest = &known[begin..];
    let items: Vec<_> = rest.iter().take(limit).map(ArtifactView::new).collect();
    let last = rest.get(..limit).and_then(<[Artifact]>::last);
    let next = last.filter(|_| rest.len() > limit);
    Ok(Json(Page {
        next_cursor: next.map(|it| it.address.to_string()),
        items,
    }))
}

/// Gives a result that is kept apart, as the call returned it.
#[utoipa::path(
    get, path = "/api/v1/runs/{run_id}/artifacts/{name}/{version}", tag = "runs",
    params(
        ("run_id" = String, Path, description = "The run"),
        ("name" = String, Path, description = "What stands in its address before the last `/`"),
        ("version" = String, Path, description = "What stands in its address after the last `/`, for instance `v1`"),
    ),
    responses(
        (status = 200, description = "The result, to be saved", body = String, content_type = "text/plain"),
        crate::openapi::Problems,
    )
)]
pub(crate) async fn get(
    State(world): State<Arc<World>>,
    caller: Caller,
    Path((run_id, name, version)): Path<(String, String, String)>,
) -> Result<Response, Problem> {
    let (served, key, known) = artifacts(&world, &caller, &run_id).await?;
    // What is no address is as absent as one that is not there.
    let address = ArtifactAddress::of_parts(&name, &version).ok();
    let artifact = address.and_then(|address| known.iter().find(|it| it.address == address));
    let artifact = artifact.ok_or_else(|| Problem::not_found("artifact"))?;
    let text = served.engine.read_artifact(&key.tenant, artifact).await?;
    let address = &artifact.address;
    // INVARIANT: a name has nothing in it that would have to be quoted.
    let file = format!(
        "attachment; filename=\"{}-v{}.txt\"",
        address.name(),
        address.version()
    );
    // A tool may return what others wrote: no browser shows it as a page of ours.
    let headers = [
        (header::CONTENT_TYPE, "text/plain; charset=utf-8"),
        (header::CONTENT_DISPOSITION, &file),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; sandbox; frame-ancestors 'none'",
        ),
        (header::CACHE_CONTROL, "no-store"),
    ];
    Ok((headers, text).into_response())
}

/// What is kept apart of the conversation as this run sees it.
async fn artifacts<'w>(
    world: &'w World,
    caller: &Caller,
    run_id: &str,
) -> Result<(&'w Served, ThreadKey, Vec<Artifact>), Problem> {
    let (run, served, key, _) = world.run(caller.tenant(), run_id).await?;
    let thread = served.engine.run_state(&key, run).await?;
    let thread = thread.ok_or_else(|| Problem::not_found("run"))?;
    let artifacts = served.engine.artifacts(&key, &thread).await?;
    Ok((served, key, artifacts))
}
