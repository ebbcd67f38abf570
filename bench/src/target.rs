//! What is to be reached.

use std::fmt;

use crate::{
    measurement::{Measurement, System},
    workload::Workload,
};

/// A bound that one of Holdpoint's figures must keep.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    workload: Workload,
    concurrency: usize,
    parked: usize,
    metric: &'static str,
    bound: Bound,
}

#[derive(Debug, Clone, Copy)]
enum Bound {
    AtLeast(f64),
    AtMost(f64),
    Under(f64),
}

/// The targets.
pub(crate) const TARGETS: [Target; 23] = [
    at(Workload::W1, 32, "of_ceiling", Bound::AtLeast(0.5)),
    at(Workload::W1, 128, "of_ceiling", Bound::AtLeast(0.5)),
    at(Workload::W1, 32, "over_langgraph", Bound::AtLeast(25.0)),
    at(Workload::W1, 128, "over_langgraph", Bound::AtLeast(40.0)),
    at(Workload::W1Http, 32, "over_restate", Bound::AtLeast(5.0)),
    at(Workload::W1Http, 32, "over_langgraph", Bound::AtLeast(12.0)),
    among(Workload::W2, "p99_over_fewest", Bound::AtMost(1.5)),
    among(Workload::W2, "rss_growth_mb", Bound::Under(16.0)),
    among(Workload::W2, "page_ms", Bound::Under(5.0)),
    among(Workload::W2Http, "p99_over_fewest", Bound::AtMost(1.5)),
    at(Workload::W3, 1, "last_over_first", Bound::AtMost(1.2)),
    at(Workload::W3, 1, "disk_over_text", Bound::AtMost(4.0)),
    among(Workload::W4, "ready_ms", Bound::Under(1_000.0)),
    among(Workload::W4, "first_resume_ms", Bound::Under(1_000.0)),
    at(Workload::W1Pg, 32, "over_langgraph", Bound::AtLeast(25.0)),
    at(Workload::W1Pg, 64, "commits_per_run", Bound::Under(1.0)),
    among(Workload::W2Pg, "p99_over_fewest", Bound::AtMost(1.5)),
    among(Workload::W2Pg, "rss_growth_mb", Bound::Under(16.0)),
    among(Workload::W2Pg, "page_ms", Bound::Under(5.0)),
    at(Workload::W3Pg, 1, "last_over_first", Bound::AtMost(1.2)),
    at(Workload::W3Pg, 1, "disk_over_text", Bound::AtMost(4.0)),
    among(Workload::W4Pg, "ready_ms", Bound::Under(1_000.0)),
    among(Workload::W4Pg, "first_resume_ms", Bound::Under(1_000.0)),
];

const fn at(workload: Workload, concurrency: usize, metric: &'static str, bound: Bound) -> Target {
    Target {
        workload,
        concurrency,
        parked: 0,
        metric,
        bound,
    }
}

/// With as many parked as there ever are.
const fn among(workload: Workload, metric: &'static str, bound: Bound) -> Target {
    Target {
        parked: 100_000,
        ..at(workload, 1, metric, bound)
    }
}

/// What became of a target.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Verdict {
    target: Target,
    value: Option<f64>,
}

impl Target {
    /// Looks for its figure.
    pub(crate) fn judge(self, measured: &[Measurement]) -> Verdict {
        let found = measured.iter().find(|measurement| {
            measurement.setting.system == System::Holdpoint
                && measurement.setting.workload == self.workload
                && measurement.setting.concurrency == self.concurrency
                && measurement.setting.parked == self.parked
                && measurement.metric == self.metric
        });
        Verdict {
            target: self,
            value: found.map(|measurement| measurement.value),
        }
    }
}

impl Verdict {
    /// Whether it was measured and not reached.
    pub(crate) fn is_missed(&self) -> bool {
        self.value.is_some_and(|value| match self.target.bound {
            Bound::AtLeast(least) => value.is_nan() || value < least,
            Bound::AtMost(most) => value.is_nan() || value > most,
            Bound::Under(limit) => value.is_nan() || value >= limit,
        })
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Target {
            workload,
            concurrency,
            parked,
            metric,
            bound,
        } = self.target;
        let workload = workload.as_str();
        match parked {
            0 => write!(f, "{workload} at {concurrency}: `{metric}` ")?,
            parked => write!(f, "{workload} with {parked} parked: `{metric}` ")?,
        }
        match bound {
            Bound::AtLeast(least) => write!(f, "at least {least}: ")?,
            Bound::AtMost(most) => write!(f, "at most {most}: ")?,
            Bound::Under(limit) => write!(f, "under {limit}: ")?,
        }
        match self.value {
            None => f.write_str("not measured"),
            Some(value) if self.is_missed() => write!(f, "**missed** with {value:.2}"),
            Some(value) => write!(f, "met with {value:.2}"),
        }
    }
}
