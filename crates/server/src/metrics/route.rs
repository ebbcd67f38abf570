//! `GET /metrics`.

use std::sync::Arc;

use axum::{
    Extension,
    extract::State,
    http::header,
    response::{IntoResponse as _, Response},
};
use holdpoint_definition::MetricsAccess;
use holdpoint_store::discreet;

use crate::{caller::Caller, problem::Problem, world::World};

/// Where they are read.
pub(crate) const PATH: &str = "/metrics";

/// What a key needs to read them.
const PERMISSION: &str = "metrics.read";

/// The text format of `OpenMetrics`.
const FORMAT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Shows how the server does, to whoever may know.
pub(crate) async fn show(
    State(world): State<Arc<World>>,
    caller: Option<Extension<Caller>>,
) -> Result<Response, Problem> {
    let is_permitted = match world.metrics_access {
        MetricsAccess::Open => true,
        MetricsAccess::Permitted => {
            caller.is_some_and(|Extension(caller)| caller.principal.may(PERMISSION))
        }
    };
    if !is_permitted {
        let error = format!(
            "this key may not read metrics; make one with `holdpoint keys create --permission {PERMISSION}`"
        );
        return Err(Problem::new("forbidden", error));
    }
    let stores = world.engines.iter();
    let stores = stores.map(|(url, served)| (discreet(url), served.trouble().is_none()));
    let text = world.metrics.show(world.streams.count(), stores);
    let text = text.map_err(|_| Problem::new("internal", "the metrics cannot be written"))?;
    Ok(([(header::CONTENT_TYPE, FORMAT)], text).into_response())
}
