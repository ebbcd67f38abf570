//! The rates of one round, so that they can be compared with each other.

use super::{Rounds, setting};
use crate::{
    measurement::{Setting, System},
    workload::Workload,
};

/// The rate that others are compared by.
const RATE: &str = "runs_per_s";

/// What everyone did a second in this round.
#[derive(Debug, Default)]
pub(super) struct Rates(Vec<(Setting, &'static str, f64)>);

impl Rates {
    /// Notes what somebody did.
    pub(super) fn note(&mut self, setting: Setting, metric: &'static str, rate: f64) {
        self.0.push((setting, metric, rate));
    }

    /// Forgets the round.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    fn of(&self, setting: Setting, metric: &str) -> Option<f64> {
        let mut all = self.0.iter();
        let found = all.find(|(noted, name, _)| (*noted, *name) == (setting, metric));
        found.map(|(_, _, rate)| *rate)
    }
}

impl Rounds<'_> {
    /// Divides Holdpoint's rate by those of the others in the same round, as far as they were measured. What has no part in
    /// a workload over HTTP is taken from the one without.
    pub(super) fn compare(&mut self, workload: Workload, concurrency: usize) {
        let without = if workload == Workload::W1Http {
            Workload::W1
        } else {
            workload
        };
        let others = [
            (without, System::Ceiling, RATE, "of_ceiling"),
            (without, System::Langgraph, RATE, "over_langgraph"),
            (
                workload,
                System::Langgraph,
                "tuned_runs_per_s",
                "over_langgraph_tuned",
            ),
            (workload, System::Pgbench, "commits_per_s", "over_pgbench"),
            (workload, System::Restate, RATE, "over_restate"),
            (
                workload,
                System::Restate,
                "tuned_runs_per_s",
                "over_restate_tuned",
            ),
        ];
        let us = setting(workload, System::Holdpoint, concurrency, 0);
        let Some(ours) = self.rates.of(us, RATE) else {
            return;
        };
        for (theirs, system, rate, metric) in others {
            let them = setting(theirs, system, concurrency, 0);
            if let Some(theirs) = self.rates.of(them, rate) {
                self.add(us, metric, "ratio", ours / theirs);
            }
        }
    }
}
