//! The workloads: how much is done, and what is measured of it.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use tokio::time::Instant;

use crate::process;

/// The workloads there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
pub(crate) enum Workload {
    /// Runs that are parked and resumed.
    #[value(name = "W1")]
    W1,
    /// The same on PostgreSQL.
    #[value(name = "W1-pg")]
    #[serde(rename = "W1-pg")]
    W1Pg,
    /// The same through a server.
    #[value(name = "W1-http")]
    #[serde(rename = "W1-http")]
    W1Http,
    /// Resumes while others are parked.
    #[value(name = "W2")]
    W2,
    /// The same on PostgreSQL.
    #[value(name = "W2-pg")]
    #[serde(rename = "W2-pg")]
    W2Pg,
    /// The same through a server.
    #[value(name = "W2-http")]
    #[serde(rename = "W2-http")]
    W2Http,
    /// One thread of many steps.
    #[value(name = "W3")]
    W3,
    /// The same on PostgreSQL.
    #[value(name = "W3-pg")]
    #[serde(rename = "W3-pg")]
    W3Pg,
    /// A start after `kill -9`.
    #[value(name = "W4")]
    W4,
    /// The same on PostgreSQL.
    #[value(name = "W4-pg")]
    #[serde(rename = "W4-pg")]
    W4Pg,
}

/// In what something is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backend {
    Sqlite,
    Postgres,
}

impl Backend {
    /// Both.
    pub(crate) const ALL: [Self; 2] = [Self::Sqlite, Self::Postgres];
}

impl Workload {
    /// All of them.
    pub(crate) const ALL: [Self; 10] = [
        Self::W1,
        Self::W1Http,
        Self::W2,
        Self::W2Http,
        Self::W3,
        Self::W4,
        Self::W1Pg,
        Self::W2Pg,
        Self::W3Pg,
        Self::W4Pg,
    ];

    /// In what it is stored.
    pub(crate) const fn backend(self) -> Backend {
        match self {
            Self::W1 | Self::W1Http | Self::W2 | Self::W2Http | Self::W3 | Self::W4 => {
                Backend::Sqlite
            }
            Self::W1Pg | Self::W2Pg | Self::W3Pg | Self::W4Pg => Backend::Postgres,
        }
    }

    /// The name in tables.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::W1 => "W1",
            Self::W1Pg => "W1-pg",
            Self::W1Http => "W1-http",
            Self::W2 => "W2",
            Self::W2Pg => "W2-pg",
            Self::W2Http => "W2-http",
            Self::W3 => "W3",
            Self::W3Pg => "W3-pg",
            Self::W4 => "W4",
            Self::W4Pg => "W4-pg",
        }
    }
}

/// W1: runs that are parked and resumed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parking {
    /// How many.
    pub(crate) runs: usize,
    /// How many at a time.
    pub(crate) concurrency: usize,
}

impl Parking {
    /// How many come before those that count, where a server is measured: so that nobody is measured while connecting.
    pub(crate) fn warm_up(self) -> usize {
        (self.runs / 10).max(self.concurrency)
    }
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

/// What something took that others did for us.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shared {
    /// In time.
    pub(crate) time: Duration,
    /// In time of all processors, by the others.
    pub(crate) server: Duration,
    /// In time of all processors, by this process.
    pub(crate) client: Duration,
}

/// Measures what something takes that other processes do for us.
#[derive(Debug)]
pub(crate) struct SharedWatch<'a> {
    ours: Stopwatch,
    others: &'a [u32],
    theirs: Duration,
}

impl<'a> SharedWatch<'a> {
    /// From now on.
    ///
    /// # Errors
    ///
    /// One of the others is gone.
    pub(crate) fn start(others: &'a [u32]) -> anyhow::Result<Self> {
        let theirs = had(others)?;
        let ours = Stopwatch::start();
        Ok(Self {
            ours,
            others,
            theirs,
        })
    }

    /// Until now.
    ///
    /// # Errors
    ///
    /// One of the others is gone.
    pub(crate) fn stop(&self) -> anyhow::Result<Shared> {
        let Spent { time, processor } = self.ours.stop();
        Ok(Shared {
            time,
            server: had(self.others)?.saturating_sub(self.theirs),
            client: processor,
        })
    }
}

/// What processes have had of all processors.
fn had(processes: &[u32]) -> anyhow::Result<Duration> {
    processes.iter().map(|pid| process::processor(*pid)).sum()
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
        let Some(begin) = times.first() else {
            return Self::of_seconds(&[], steps);
        };
        let seconds = times
            .iter()
            .map(|time| time.duration_since(*begin).as_secs_f64());
        Self::of_seconds(&seconds.collect::<Vec<_>>(), steps)
    }

    /// The same, from times in seconds.
    pub(crate) fn of_seconds(times: &[f64], steps: usize) -> Self {
        let parts = times.len().saturating_sub(1);
        let tenth = (parts / 10).max(1);
        let share = tenth as f64 * steps as f64 / parts.max(1) as f64;
        let mean = |from: usize| {
            let (Some(begin), Some(end)) = (times.get(from), times.get(from + tenth)) else {
                return f64::NAN;
            };
            (end - begin) * 1e6 / share
        };
        Self {
            first: mean(0),
            last: mean(parts.saturating_sub(tenth)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenths_are_means_over_the_first_and_the_last_tenth_of_the_steps() {
        let times: Vec<f64> = (0..=40_u32).map(|at| f64::from(at * at)).collect();
        let tenths = Tenths::of_seconds(&times, 20);
        // Forty parts are twenty steps; four parts are two.
        assert_eq!(
            (tenths.first, tenths.last),
            (16e6 / 2.0, (1600.0 - 1296.0) * 1e6 / 2.0)
        );
    }
}
