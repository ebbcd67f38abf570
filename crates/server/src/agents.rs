//! Which agents there are.

use std::sync::Arc;

use axum::{Json, extract::State};
use serde::Serialize;

use crate::{
    caller::{Access, Caller},
    problem::Problem,
    runs::wire::Page,
    world::World,
};

/// An agent.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct AgentView {
    /// Its name, by which runs are begun.
    agent_id: String,
    /// Its version, for people.
    version: String,
    /// The digest of its whole definition, to which runs are pinned.
    definition: String,
    /// Its tools.
    tools: Vec<String>,
    /// Whether it may ask people.
    asks: bool,
    /// Whether its threads outlive the server.
    durable: bool,
    /// Whether its file cannot be used as it is now, so that this is what it said before.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// Lists the agents.
#[utoipa::path(
    get, path = "/api/v1/agents", tag = "agents",
    responses(
        (status = 200, description = "All of them", body = Page<AgentView>),
        crate::openapi::Problems,
    )
)]
pub(crate) async fn list(
    State(world): State<Arc<World>>,
    _: Caller,
) -> Result<Json<Page<AgentView>>, Problem> {
    let catalog = world.catalog();
    let items = catalog.agents.values().map(|offered| {
        let definition = &offered.agent.definition;
        let served = world.engines.get(&offered.store);
        let problem = offered
            .file
            .as_ref()
            .and_then(|file| catalog.problems.get(file));
        let problem = problem.map(|text| {
            // What a file says is for whoever runs the server.
            match world.access {
                Access::Dev => text.clone(),
                Access::Keys => "its file cannot be used as it is now".to_owned(),
            }
        });
        AgentView {
            agent_id: definition.name.clone(),
            version: definition.version.clone(),
            definition: offered.agent.digest.to_string(),
            tools: definition.tools.iter().map(|it| it.name.clone()).collect(),
            asks: offered.agent.is_gated(),
            durable: served.is_some_and(|served| served.engine.store().is_durable()),
            problem,
        }
    });
    Ok(Json(Page {
        items: items.collect(),
        next_cursor: None,
    }))
}
