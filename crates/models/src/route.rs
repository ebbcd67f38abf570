//! A model with others behind it.

use std::{
    future::Future,
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use holdpoint_core::PROVIDER_SILENCE;
use tokio::time::Instant;

use crate::{Delta, Failure, Model, Reply, Request, breaker::Breakers};

/// One of the models of a route.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub(crate) reference: String,
    pub(crate) model: Arc<dyn Model>,
}

impl Candidate {
    fn silence(&self) -> Duration {
        let unsaid = PROVIDER_SILENCE.into();
        self.model.silence().unwrap_or(unsaid)
    }
}

/// Models in the order in which they are asked, until one answers. Once something was said nobody else goes on with it: the
/// turn fails, and the journal has it tried again.
#[derive(Debug)]
pub(crate) struct Route {
    candidates: Vec<Candidate>,
    breakers: Breakers,
}

impl Route {
    pub(crate) const fn new(candidates: Vec<Candidate>, breakers: Breakers) -> Self {
        Self {
            candidates,
            breakers,
        }
    }

    /// All of them, those last that are passed over now.
    fn in_order(&self) -> Vec<&Candidate> {
        let (mut now, later): (Vec<_>, Vec<_>) = self
            .candidates
            .iter()
            .partition(|candidate| self.breakers.admits(&candidate.reference));
        now.extend(later);
        now
    }
}

#[async_trait]
impl Model for Route {
    async fn turn(
        &self,
        request: Request<'_>,
        deltas: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Reply, Failure> {
        let mut best: Option<Failure> = None;
        for candidate in self.in_order() {
            let heard = Mutex::new(Heard {
                at: Instant::now(),
                is_text: false,
            });
            let mut hear = |delta: Delta| {
                let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
                heard.at = Instant::now();
                heard.is_text |= matches!(delta, Delta::Text(_));
                drop(heard);
                deltas(delta);
            };
            hear(Delta::Alive);
            let spoken = candidate.model.turn(request, &mut hear);
            let spoken = not_silent(spoken, &heard, candidate.silence()).await;
            let has_spoken = heard
                .into_inner()
                .unwrap_or_else(PoisonError::into_inner)
                .is_text;
            let failure = match spoken {
                Ok(reply) => {
                    self.breakers.is_well(&candidate.reference);
                    return Ok(reply);
                }
                Err(failure @ Failure::Rejected { .. }) => {
                    self.breakers.is_well(&candidate.reference);
                    return Err(failure);
                }
                Err(failure) => failure,
            };
            self.breakers.has_failed(&candidate.reference, &failure);
            if has_spoken {
                return Err(failure);
            }
            best = Some(match best {
                Some(before) => more_hopeful(before, failure),
                None => failure,
            });
        }
        Err(best.unwrap_or_else(|| Failure::Barred {
            reason: "no model is named".to_owned(),
        }))
    }

    fn silence(&self) -> Option<Duration> {
        self.candidates.iter().map(Candidate::silence).max()
    }
}

#[derive(Debug, Clone, Copy)]
struct Heard {
    at: Instant,
    is_text: bool,
}

async fn not_silent(
    spoken: impl Future<Output = Result<Reply, Failure>>,
    heard: &Mutex<Heard>,
    silence: Duration,
) -> Result<Reply, Failure> {
    let mut spoken = pin!(spoken);
    loop {
        let at = heard.lock().unwrap_or_else(PoisonError::into_inner).at;
        tokio::select! {
            // Cancel safe: the answer is only borrowed, and a sleep has nothing to lose.
            reply = &mut spoken => return reply,
            () = tokio::time::sleep_until(at + silence) => {
                if heard.lock().unwrap_or_else(PoisonError::into_inner).at == at {
                    return Err(Failure::Timeout);
                }
            }
        }
    }
}

/// For longer than this nobody waits who may be let in at any time by somebody else.
const SOON: Duration = Duration::from_secs(60);

/// The one of two failures after which another try helps soonest: when somebody said when, if that is soon, else what may be over
/// at any time, else what is over later, else what somebody has to mend.
fn more_hopeful(before: Failure, after: Failure) -> Failure {
    let rank = |failure: &Failure| match failure {
        Failure::RateLimited {
            retry_after: Some(wait),
            ..
        } => {
            let wait = Duration::from(*wait);
            (if wait <= SOON { 0 } else { 2 }, wait)
        }
        Failure::RateLimited {
            retry_after: None, ..
        }
        | Failure::Unavailable { .. }
        | Failure::Timeout => (1, Duration::ZERO),
        Failure::Rejected { .. } | Failure::Barred { .. } | Failure::Withheld { .. } => {
            (3, Duration::ZERO)
        }
    };
    if rank(&before) < rank(&after) {
        before
    } else {
        after
    }
}

#[cfg(test)]
mod tests {
    use holdpoint_core::Span;

    use super::*;

    #[test]
    fn who_is_to_be_left_alone_for_long_keeps_nobody_from_trying_the_others() {
        let down = || Failure::Unavailable {
            reason: "down".to_owned(),
        };
        let busy = |secs: u64| Failure::RateLimited {
            reason: "busy".to_owned(),
            retry_after: Some(Span::from_secs(secs)),
        };
        let barred = || Failure::Barred {
            reason: "no key".to_owned(),
        };
        for (one, other, expected) in [
            (down(), busy(3_600), down()),
            (down(), busy(61), down()),
            (down(), busy(60), busy(60)),
            (busy(3_600), busy(90), busy(90)),
            (busy(3_600), barred(), busy(3_600)),
            (down(), barred(), down()),
        ] {
            assert_eq!(more_hopeful(one.clone(), other.clone()), expected);
            assert_eq!(more_hopeful(other, one), expected);
        }
    }
}
