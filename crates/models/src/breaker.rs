//! Who does not answer right now, so that nobody waits for them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::Failure;

/// How many failures in a row make a model one that is not asked.
const MOST: u32 = 3;
/// For how long it is not asked.
const PAUSE: Duration = Duration::from_secs(30);

/// What this process knows of models that have others beside them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Breakers(Arc<Mutex<HashMap<String, Health>>>);

/// How it stands with a model.
#[derive(Debug, Clone, Copy, Default)]
struct Health {
    failures: u32,
    /// Until then it is passed over.
    until: Option<Instant>,
}

impl Breakers {
    /// Whether a model should be asked now. After a pause one who asks tries it; the others pass it over until that is known.
    pub(crate) fn admits(&self, reference: &str) -> bool {
        let now = Instant::now();
        let mut known = self.known();
        let Some(health) = known.get_mut(reference) else {
            return true;
        };
        match health.until {
            Some(until) if until > now => false,
            Some(_) if health.failures >= MOST => {
                health.until = Some(now + PAUSE);
                true
            }
            Some(_) | None => true,
        }
    }

    /// It answered, or said itself that it would if it were asked otherwise.
    pub(crate) fn is_well(&self, reference: &str) {
        self.known().remove(reference);
    }

    pub(crate) fn has_failed(&self, reference: &str, failure: &Failure) {
        let now = Instant::now();
        let mut known = self.known();
        let health = known.entry(reference.to_owned()).or_default();
        if let Failure::RateLimited { retry_after, .. } = failure {
            if let Some(wait) = retry_after {
                health.until = Some(now + Duration::from(*wait));
            }
            return;
        }
        health.failures += 1;
        if health.failures >= MOST {
            health.until = Some(now + PAUSE);
        }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, Health>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
