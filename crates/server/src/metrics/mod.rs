//! How a server does, in numbers: `GET /metrics`.
//!
//! What happens to runs is counted from the journal's events, and only from those that this process committed itself, so
//! the sums over several servers on one store are right. What stands still is looked at now and then. Every series is
//! described in `docs/metrics.md`.

mod agents;
mod observer;
mod route;
mod sample;
mod series;

pub(crate) use observer::Observer;
pub(crate) use route::{PATH, show};
pub(crate) use sample::sample;
pub(crate) use series::{Metrics, Prevented};
