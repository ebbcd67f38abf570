//! How many questions of each caller's runs may be open.
//!
//! A run may ask as long as it is under way, so those that are count too. What is known is an upper bound, and the store
//! is asked only where that has reached the limit.

use std::{
    collections::HashMap,
    future::Future,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use crate::problem::Problem;

/// A tenant, and one of its callers.
type Whose = (String, String);

/// The rooms of all callers.
#[derive(Debug)]
pub(crate) struct Rooms {
    limit: usize,
    /// How many questions a run may ask at once.
    each: usize,
    rooms: Mutex<HashMap<Whose, Arc<Room>>>,
}

#[derive(Debug, Default)]
struct Room {
    /// How many questions are open at most; held while they are counted, so that two who come at once are two.
    bound: tokio::sync::Mutex<Option<usize>>,
    /// How many runs are under way.
    under_way: AtomicUsize,
}

/// A run that is under way.
#[derive(Debug)]
pub(crate) struct Place(Arc<Room>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Rooms {
    pub(crate) fn new(limit: usize, each: usize) -> Self {
        Self {
            limit,
            each,
            rooms: Mutex::default(),
        }
    }

    fn rooms(&self) -> MutexGuard<'_, HashMap<Whose, Arc<Room>>> {
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Room for one more run. `count` says how many questions are open, up to the number that it is given.
    ///
    /// # Errors
    ///
    /// There is none; or they could not be counted.
    pub(crate) async fn enter<F>(
        &self,
        whose: Whose,
        count: impl FnOnce(usize) -> F,
    ) -> Result<Place, Problem>
    where
        F: Future<Output = Result<usize, Problem>>,
    {
        let room = Arc::clone(self.rooms().entry(whose).or_default());
        let mut bound = room.bound.lock().await;
        let known = match *bound {
            Some(known) if known < self.limit => known,
            Some(_) | None => {
                // Before the count: whoever parks meanwhile is in one of the two, or in both.
                let under_way = room.under_way.load(Ordering::SeqCst);
                count(self.limit).await?.saturating_add(under_way)
            }
        };
        if known >= self.limit {
            *bound = None;
            let limit = self.limit;
            let error = format!(
                "{limit} questions of your runs are open, or may be soon, which is the limit; answer or cancel some first"
            );
            return Err(
                Problem::new("too_many_pending", error).with(serde_json::json!({ "limit": limit }))
            );
        }
        *bound = Some(known.saturating_add(self.each));
        drop(bound);
        room.under_way.fetch_add(1, Ordering::SeqCst);
        Ok(Place(room))
    }

    /// Counts anew from now on.
    pub(crate) fn forget(&self) {
        self.rooms().retain(|_, room| {
            if let Ok(mut bound) = room.bound.try_lock() {
                *bound = None;
            }
            // Whoever is under way, or about to be, is known by nothing else.
            Arc::strong_count(room) > 1
        });
    }
}
