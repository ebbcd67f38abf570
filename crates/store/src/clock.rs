//! Where a store's time comes from.
//!
//! Leases and deadlines are compared with this time by several processes, so it is the wall clock; but it never runs
//! backwards, because a deadline that has passed must stay passed.

use std::{
    fmt::Debug,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use holdpoint_core::{Span, Timestamp};

/// Tells the time, and never an earlier one than it told before.
pub trait Clock: Send + Sync + Debug {
    /// The time now.
    fn now(&self) -> Timestamp;
}

/// The machine's wall clock.
///
/// When the wall clock is set back, this one goes on at half its speed until the two meet again: had it stood still
/// instead, no lease would end until then.
#[derive(Debug, Default)]
pub struct SystemClock {
    last: Mutex<Option<Told>>,
}

/// What a clock said last, and when by a clock that nobody sets.
#[derive(Debug, Clone, Copy)]
struct Told {
    time: Timestamp,
    at: Instant,
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        // No code can panic while it holds the lock, so what a poisoned one holds is whole.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let told = Told::following(*last, wall(), tick());
        *last = Some(told);
        told.time
    }
}

impl Told {
    fn following(last: Option<Self>, wall: Timestamp, at: Instant) -> Self {
        let time = last.map_or(wall, |last| {
            let half = at.saturating_duration_since(last.at).as_micros() / 2;
            wall.max(last.time + Span::from_micros(u64::try_from(half).unwrap_or(u64::MAX)))
        });
        Self { time, at }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is the clock that everything else is told to use"
)]
fn wall() -> Timestamp {
    let since_1970 = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or(Duration::ZERO);
    Timestamp::from_micros(i64::try_from(since_1970.as_micros()).unwrap_or(i64::MAX))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the clock must tick outside of a runtime too, and is replaced whole in tests"
)]
fn tick() -> Instant {
    Instant::now()
}

/// A clock that stands still until it is told otherwise, for tests.
#[derive(Debug)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// A clock that shows `now`.
    #[must_use]
    pub const fn new(now: Timestamp) -> Self {
        Self(AtomicI64::new(now.as_micros()))
    }

    /// Shows `now` from here on, unless that is in its past.
    pub fn set(&self, now: Timestamp) {
        self.0.fetch_max(now.as_micros(), Ordering::SeqCst);
    }

    /// Moves on by `span`.
    pub fn advance(&self, span: Span) {
        self.set(self.now() + span);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wall_clock_that_is_set_back_slows_time_down_but_does_not_turn_it() {
        let start = tick();
        let at = |secs: u64| start + Duration::from_secs(secs);
        let time = |secs: i64| Timestamp::from_millis(secs * 1_000);
        let mut told = Told::following(None, time(1_000), at(0));
        let mut times = vec![told.time];
        // It is set back by 10 s after the first second, so it is 10 s behind, then catches up at half speed.
        for (wall, seconds) in [(1_001, 1), (992, 2), (1_000, 10), (1_011, 21), (1_020, 30)] {
            told = Told::following(Some(told), time(wall), at(seconds));
            times.push(told.time);
        }
        assert_eq!(
            times,
            [
                time(1_000),
                time(1_001),
                Timestamp::from_millis(1_001_500),
                Timestamp::from_millis(1_005_500),
                time(1_011),
                time(1_020),
            ]
        );
    }

    #[test]
    fn a_manual_clock_cannot_be_set_back() {
        let clock = ManualClock::new(Timestamp::from_micros(5));
        clock.set(Timestamp::from_micros(3));
        assert_eq!(clock.now(), Timestamp::from_micros(5));
        clock.advance(Span::from_micros(2));
        assert_eq!(clock.now(), Timestamp::from_micros(7));
    }
}
