//! What is to be reached.

use std::fmt;

use crate::measurement::{Measurement, System};

/// A bound that one of Holdpoint's figures must keep.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    workload: &'static str,
    concurrency: usize,
    metric: &'static str,
    bound: Bound,
}

#[derive(Debug, Clone, Copy)]
enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

/// The targets.
pub(crate) const TARGETS: [Target; 4] = [
    Target {
        workload: "W1",
        concurrency: 32,
        metric: "of_ceiling",
        bound: Bound::AtLeast(0.5),
    },
    Target {
        workload: "W1",
        concurrency: 128,
        metric: "of_ceiling",
        bound: Bound::AtLeast(0.5),
    },
    Target {
        workload: "W3",
        concurrency: 1,
        metric: "last_over_first",
        bound: Bound::AtMost(1.2),
    },
    Target {
        workload: "W3",
        concurrency: 1,
        metric: "disk_over_text",
        bound: Bound::AtMost(4.0),
    },
];

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
        })
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Target {
            workload,
            concurrency,
            metric,
            bound,
        } = self.target;
        write!(f, "{workload} at {concurrency}: `{metric}` ")?;
        match bound {
            Bound::AtLeast(least) => write!(f, "at least {least}: ")?,
            Bound::AtMost(most) => write!(f, "at most {most}: ")?,
        }
        match self.value {
            None => f.write_str("not measured"),
            Some(value) if self.is_missed() => write!(f, "**missed** with {value:.2}"),
            Some(value) => write!(f, "met with {value:.2}"),
        }
    }
}
