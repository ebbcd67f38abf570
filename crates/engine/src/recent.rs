//! The threads that this process parked last, so that an answer that comes soon need not read them again.
//!
//! A parked run costs no memory: this holds a bounded number of them, and forgetting one only costs a read. What is
//! remembered counts only while the stored head is byte for byte the same, or for an append at the version that is remembered.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use holdpoint_core::{Payload, State, Transcript};
use holdpoint_store::{Epoch, ThreadKey};

/// How many threads are remembered.
const MAX_THREADS: usize = 256;

/// How many messages a remembered conversation may have.
const MAX_MESSAGES: usize = 64;

/// The threads that this process parked last.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    threads: HashMap<ThreadKey, Parked>,
    /// In the order they were parked.
    order: VecDeque<ThreadKey>,
}

/// A thread as it was parked.
#[derive(Debug)]
pub(crate) struct Parked {
    pub(crate) head: Payload,
    pub(crate) epoch: Epoch,
    pub(crate) state: Arc<State>,
    pub(crate) transcript: Arc<Transcript>,
}

impl Recent {
    /// Remembers a thread, forgetting the one that was parked longest ago.
    pub(crate) fn remember(&mut self, key: ThreadKey, parked: Parked) {
        if parked.transcript.len() > MAX_MESSAGES {
            return;
        }
        if self.threads.insert(key.clone(), parked).is_none() {
            self.order.push_back(key);
        }
        while self.order.len() > MAX_THREADS {
            if let Some(oldest) = self.order.pop_front() {
                self.threads.remove(&oldest);
            }
        }
    }

    /// What is remembered of a thread, for one who bets on it; nobody else should.
    pub(crate) fn take(&mut self, key: &ThreadKey) -> Option<Parked> {
        let parked = self.threads.remove(key)?;
        self.order.retain(|it| it != key);
        Some(parked)
    }

    /// What is remembered of a thread whose stored head is this one.
    pub(crate) fn recall(
        &self,
        key: &ThreadKey,
        head: &Payload,
    ) -> Option<(Arc<State>, Arc<Transcript>)> {
        let parked = self.threads.get(key)?;
        (parked.head == *head).then(|| (Arc::clone(&parked.state), Arc::clone(&parked.transcript)))
    }
}

#[cfg(test)]
mod tests {
    use holdpoint_core::ThreadId;

    use super::*;

    fn key(session: &str) -> ThreadKey {
        let thread = ThreadId::of_session("t", "a", session);
        ThreadKey {
            tenant: "t".into(),
            thread,
        }
    }

    fn parked(head: &str) -> Parked {
        Parked {
            head: Payload::json(head.as_bytes().to_vec()),
            epoch: 1,
            state: Arc::default(),
            transcript: Arc::default(),
        }
    }

    #[test]
    fn a_thread_that_moved_on_is_not_recalled() {
        let mut recent = Recent::default();
        recent.remember(key("s"), parked("1"));
        assert!(recent.recall(&key("s"), &parked("1").head).is_some());
        assert!(recent.recall(&key("s"), &parked("2").head).is_none());
        assert!(recent.recall(&key("other"), &parked("1").head).is_none());
    }

    #[test]
    fn one_only_bets_on_what_is_remembered() {
        let mut recent = Recent::default();
        recent.remember(key("s"), parked("1"));
        assert_eq!(recent.take(&key("s")).map(|it| it.epoch), Some(1));
        assert!(recent.take(&key("s")).is_none());
        assert!(recent.recall(&key("s"), &parked("1").head).is_none());
        assert!(recent.threads.is_empty() && recent.order.is_empty());
    }

    #[test]
    fn only_so_many_threads_are_remembered() {
        let mut recent = Recent::default();
        for at in 0..3 * MAX_THREADS {
            recent.remember(key(&at.to_string()), parked("1"));
            recent.remember(key("again"), parked("1"));
        }
        assert!(recent.threads.len() <= MAX_THREADS && recent.order.len() <= MAX_THREADS);
        assert_eq!(recent.threads.len(), recent.order.len());
    }
}
