//! What was measured: samples of several rounds, and their medians.

use serde::Serialize;

use crate::workload::Workload;

/// Whose figure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum System {
    /// Holdpoint itself.
    Holdpoint,
    /// The same rows, written by a bare loop.
    Ceiling,
    /// Commits of one row, by PostgreSQL's own program.
    Pgbench,
    /// A peer: LangGraph with the checkpointer for what is measured on.
    Langgraph,
    /// A peer behind HTTP: Restate.
    Restate,
}

impl System {
    /// All of them, in the order in which they are measured.
    pub(crate) const ALL: [Self; 5] = [
        Self::Holdpoint,
        Self::Ceiling,
        Self::Pgbench,
        Self::Langgraph,
        Self::Restate,
    ];

    /// The name in tables.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Holdpoint => "holdpoint",
            Self::Ceiling => "ceiling",
            Self::Pgbench => "pgbench",
            Self::Langgraph => "langgraph",
            Self::Restate => "restate",
        }
    }
}

/// Under what conditions something is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Setting {
    /// Which workload.
    pub(crate) workload: Workload,
    /// Whose figure.
    pub(crate) system: System,
    /// How many clients there are.
    pub(crate) concurrency: usize,
    /// How many runs are parked meanwhile.
    pub(crate) parked: usize,
}

/// One figure: the median of its rounds.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Measurement {
    /// Under what conditions.
    #[serde(flatten)]
    pub(crate) setting: Setting,
    /// What.
    pub(crate) metric: &'static str,
    /// How much.
    pub(crate) value: f64,
    /// Of what.
    pub(crate) unit: &'static str,
}

#[derive(Debug)]
struct Series {
    setting: Setting,
    metric: &'static str,
    unit: &'static str,
    samples: Vec<f64>,
}

/// All samples, in the order in which they first came up.
#[derive(Debug, Default)]
pub(crate) struct Samples(Vec<Series>);

impl Samples {
    /// Adds a sample of one round.
    pub(crate) fn add(
        &mut self,
        setting: Setting,
        metric: &'static str,
        unit: &'static str,
        value: f64,
    ) {
        let known = self
            .0
            .iter_mut()
            .find(|series| series.setting == setting && series.metric == metric);
        match known {
            Some(series) => series.samples.push(value),
            None => self.0.push(Series {
                setting,
                metric,
                unit,
                samples: vec![value],
            }),
        }
    }

    /// The medians.
    pub(crate) fn medians(&self) -> Vec<Measurement> {
        let measure = |series: &Series| Measurement {
            setting: series.setting,
            metric: series.metric,
            value: median(&series.samples),
            unit: series.unit,
        };
        self.0.iter().map(measure).collect()
    }
}

/// The middle value, or the mean of the two in the middle.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let at = |index: usize| sorted.get(index).copied().unwrap_or(f64::NAN);
    if sorted.len().is_multiple_of(2) {
        f64::midpoint(at(middle.wrapping_sub(1)), at(middle))
    } else {
        at(middle)
    }
}

/// The value that this share of all values does not exceed.
pub(crate) fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    // Not negative and at most the length, so that nothing is lost.
    let rank = (share.clamp(0.0, 1.0) * sorted.len() as f64).ceil() as usize;
    let at = sorted.get(rank.saturating_sub(1));
    at.copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_a_value_that_was_measured() {
        let values: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        assert_eq!(quantile(&values, 0.99), 198.0);
        assert_eq!(quantile(&values, 0.50), 100.0);
        assert_eq!(quantile(&values[..1], 0.99), 200.0);
        assert!(quantile(&[], 0.99).is_nan());
    }

    #[test]
    fn the_median_is_the_middle_or_the_mean_of_the_two_in_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
    }
}
