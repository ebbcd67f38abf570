//! How many streams are open: in all, and for each caller.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::problem::Problem;

/// The streams that are open.
#[derive(Debug)]
pub(crate) struct Streams {
    open: Mutex<HashMap<String, usize>>,
    limit: usize,
    limit_each: usize,
}

/// One open stream.
#[derive(Debug)]
pub(crate) struct Permit {
    streams: Arc<Streams>,
    caller: String,
}

impl Streams {
    pub(crate) fn new(limit: usize, limit_each: usize) -> Arc<Self> {
        Arc::new(Self {
            open: Mutex::default(),
            limit,
            limit_each,
        })
    }

    fn open(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many are open.
    pub(crate) fn count(&self) -> usize {
        self.open().values().sum()
    }

    /// Room for one more.
    ///
    /// # Errors
    ///
    /// There is none.
    pub(crate) fn enter(self: &Arc<Self>, caller: &str) -> Result<Permit, Problem> {
        let mut open = self.open();
        let (all, own) = (
            open.values().sum::<usize>(),
            open.get(caller).copied().unwrap_or(0),
        );
        let (limit, whose) = if own >= self.limit_each {
            (self.limit_each, "for you")
        } else if all >= self.limit {
            (self.limit, "on this server")
        } else {
            *open.entry(caller.to_owned()).or_insert(0) += 1;
            return Ok(Permit {
                streams: Arc::clone(self),
                caller: caller.to_owned(),
            });
        };
        let error = format!("{limit} streams are open {whose}, which is the limit; close one");
        Err(Problem::new("too_many_streams", error).with(serde_json::json!({ "limit": limit })))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut open = self.streams.open();
        if let Some(count) = open.get_mut(&self.caller) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.caller);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_that_ends_makes_room_for_another() {
        let streams = Streams::new(3, 2);
        let first = streams.enter("ann").unwrap();
        let _second = streams.enter("ann").unwrap();
        assert_eq!(streams.enter("ann").unwrap_err().details["limit"], 2);
        let _third = streams.enter("bob").unwrap();
        assert_eq!(streams.enter("bob").unwrap_err().details["limit"], 3);
        drop(first);
        assert_eq!(streams.count(), 2);
        assert!(streams.enter("bob").is_ok());
    }
}
