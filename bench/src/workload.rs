//! The workloads: how much is done, and what is measured of it.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::time::Instant;

/// W1: runs that are parked and resumed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parking {
    /// How many.
    pub(crate) runs: usize,
    /// How many at a time.
    pub(crate) concurrency: usize,
}

/// What something took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spent {
    /// In time.
    pub(crate) time: Duration,
    /// In time of all processors, with what the kernel did for us.
    pub(crate) processor: Duration,
}

/// Measures what something takes.
#[derive(Debug)]
pub(crate) struct Stopwatch {
    began: Instant,
    processor: Duration,
}

impl Stopwatch {
    /// From now on.
    pub(crate) fn start() -> Self {
        Self {
            began: Instant::now(),
            processor: processor(),
        }
    }

    /// Until now.
    pub(crate) fn stop(&self) -> Spent {
        Spent {
            time: self.began.elapsed(),
            processor: processor().saturating_sub(self.processor),
        }
    }
}

/// What this process has had of all processors.
fn processor() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// W3: one thread of many steps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Steps {
    /// How many.
    pub(crate) steps: usize,
    /// How many characters each result has.
    pub(crate) characters: usize,
}

impl Steps {
    /// How much text there is to keep.
    pub(crate) const fn text(self) -> usize {
        self.steps * self.characters
    }
}

/// How long one step takes, in microseconds, at the beginning and at the end of a thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tenths {
    /// On average over the first tenth.
    pub(crate) first: f64,
    /// On average over the last tenth.
    pub(crate) last: f64,
}

impl Tenths {
    /// From the times at which steps began, and the time at which the last one ended. Each step may consist of several
    /// equal parts that each have a time.
    pub(crate) fn new(times: &[Instant], steps: usize) -> Self {
        let parts = times.len().saturating_sub(1);
        let tenth = (parts / 10).max(1);
        let share = tenth as f64 * steps as f64 / parts.max(1) as f64;
        let mean = |from: usize| {
            let (Some(begin), Some(end)) = (times.get(from), times.get(from + tenth)) else {
                return f64::NAN;
            };
            end.duration_since(*begin).as_secs_f64() * 1e6 / share
        };
        Self {
            first: mean(0),
            last: mean(parts.saturating_sub(tenth)),
        }
    }
}
