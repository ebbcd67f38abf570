//! The database's clock, as this process knows it.
//!
//! Leases are compared with the time by the database itself. Here it is only reckoned: what it said last, and what has passed
//! since by a clock that nobody sets. Nothing that is told is earlier than what was told before.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdpoint_core::{Span, Timestamp};
use tokio::time::Instant;

use crate::Clock;

/// Where the time comes from.
#[derive(Debug, Clone)]
pub(super) enum Time {
    /// From the database.
    Database(Arc<Reckoned>),
    /// From a clock that was given, as tests do.
    Given(Arc<dyn Clock>),
}

impl Time {
    pub(super) fn now(&self) -> Timestamp {
        match self {
            Self::Database(reckoned) => reckoned.at(Instant::now()),
            Self::Given(clock) => clock.now(),
        }
    }

    /// The time for a statement; without one, the database takes its own.
    pub(super) fn given(&self) -> Option<i64> {
        match self {
            Self::Database(_) => None,
            Self::Given(clock) => Some(clock.now().as_micros()),
        }
    }
}

/// A time that is reckoned from what the database said.
#[derive(Debug)]
pub(super) struct Reckoned(Mutex<Told>);

#[derive(Debug, Clone, Copy)]
struct Told {
    /// What the database said, and when that was here.
    said: Timestamp,
    at: Instant,
    /// What was told last.
    last: Timestamp,
}

impl Reckoned {
    /// The database has said this, about then.
    pub(super) fn new(said: Timestamp, at: Instant) -> Self {
        Self(Mutex::new(Told {
            said,
            at,
            last: said,
        }))
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The database has said this, about then.
    pub(super) fn learn(&self, said: Timestamp, at: Instant) {
        let mut told = self.told();
        (told.said, told.at) = (said, at);
    }

    fn at(&self, here: Instant) -> Timestamp {
        let mut told = self.told();
        let passed = here.saturating_duration_since(told.at).as_micros();
        let now = told.said + Span::from_micros(u64::try_from(passed).unwrap_or(u64::MAX));
        told.last = told.last.max(now);
        told.last
    }
}

/// When an answer was given to a question that was sent then and answered now: in between.
pub(super) fn middle(sent: Instant) -> Instant {
    sent + sent.elapsed() / 2
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn time_passes_without_the_database_and_never_runs_backwards() {
        let begin = Instant::now();
        let here = |seconds: u64| begin + Duration::from_secs(seconds);
        let there = |seconds: i64| Timestamp::from_millis(seconds * 1_000);
        let clock = Reckoned::new(there(100), here(0));
        assert_eq!(clock.at(here(5)), there(105));
        // The database was set back: what was told stays true until it comes there again.
        clock.learn(there(102), here(5));
        assert_eq!(clock.at(here(5)), there(105));
        assert_eq!(clock.at(here(7)), there(105));
        assert_eq!(clock.at(here(9)), there(106));
    }
}
