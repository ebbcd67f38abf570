//! Leaves an endpoint alone that answers nobody.

use std::time::Duration;

use tokio::time::Instant;

/// How many things are under way to one endpoint at most.
const AT_ONCE: usize = 8;
/// How many tries in vain, one after the other, mean that it is the endpoint and not what it was told.
const ENOUGH: u32 = 5;
const LONGEST: Duration = Duration::from_mins(1);

/// How an endpoint does.
#[derive(Debug, Default)]
pub(super) struct Breaker {
    in_vain: u32,
    until: Option<Instant>,
}

impl Breaker {
    pub(super) fn succeeded(&mut self) {
        *self = Self::default();
    }

    pub(super) fn failed(&mut self, now: Instant) {
        // What was under way when the pause began says nothing new.
        if self.until.is_some_and(|until| now < until) {
            return;
        }
        self.in_vain = self.in_vain.saturating_add(1);
        if let Some(beyond) = self.in_vain.checked_sub(ENOUGH) {
            let pause = Duration::from_secs(1 << beyond.min(6));
            self.until = Some(now + pause.min(LONGEST));
        }
    }

    /// How many things may be under way to it now: while it answers nobody, one at a time, and with pauses.
    pub(super) fn room(&self, now: Instant) -> usize {
        match self.until {
            None => AT_ONCE,
            Some(until) if now < until => 0,
            Some(_) => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_together_is_one_pause() {
        let start = Instant::now();
        let mut breaker = Breaker::default();
        for _ in 0..AT_ONCE {
            breaker.failed(start);
        }
        assert_eq!(breaker.room(start + Duration::from_secs(1)), 1);
    }

    #[test]
    fn an_endpoint_that_answers_nobody_is_asked_ever_more_seldom_and_by_one() {
        let start = Instant::now();
        let mut breaker = Breaker::default();
        for _ in 1..ENOUGH {
            breaker.failed(start);
            assert_eq!(breaker.room(start), AT_ONCE);
        }
        let mut now = start;
        for pause in [1, 2, 4, 8, 16, 32, 60, 60] {
            breaker.failed(now);
            let end = now + Duration::from_secs(pause);
            assert_eq!(breaker.room(end - Duration::from_millis(1)), 0, "{pause}");
            assert_eq!(breaker.room(end), 1, "{pause}");
            now = end;
        }
        breaker.succeeded();
        assert_eq!(breaker.room(now), AT_ONCE);
        breaker.failed(now);
        assert_eq!(breaker.room(now), AT_ONCE, "it counts anew");
    }
}
