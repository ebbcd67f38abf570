//! What this process sees happen, handed to whoever listens.
//!
//! Everything here is a hint. The same events may come twice, or in another order, or not at all (because another process
//! committed them); a listener owns its place in the journal and reads the store wherever a hint does not fit.

use std::{
    collections::{BTreeMap, HashMap, hash_map},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use holdpoint_core::{Entry, Event, FramePath, RunId, State};
use holdpoint_engine::{Said, Watcher};
use holdpoint_store::{Epoch, ThreadKey};
use tokio::sync::broadcast;

/// How many hints a listener may be behind before it has to read the store. Room for them is made for every thread that
/// somebody listens to, so it is not larger than a moment needs.
const BACKLOG: usize = 32;

/// What happens in the threads of one store, as this process sees it.
#[derive(Debug, Default)]
pub(crate) struct Hub {
    threads: Mutex<HashMap<ThreadKey, Topic>>,
}

/// One thread that somebody listens to, or whose model is speaking.
#[derive(Debug)]
struct Topic {
    news: broadcast::Sender<News>,
    listeners: usize,
    /// What models are saying that is not committed yet.
    speech: BTreeMap<FramePath, Speech>,
}

impl Default for Topic {
    fn default() -> Self {
        Self {
            news: broadcast::channel(BACKLOG).0,
            listeners: 0,
            speech: BTreeMap::new(),
        }
    }
}

impl Topic {
    fn is_idle(&self) -> bool {
        self.listeners == 0 && self.speech.is_empty()
    }
}

/// What a model has said so far in one try of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Speech {
    pub(crate) run: RunId,
    pub(crate) frame: FramePath,
    pub(crate) epoch: Epoch,
    pub(crate) attempt: u32,
    /// How many bytes were said before `text`.
    pub(crate) from: usize,
    pub(crate) text: String,
}

impl Speech {
    /// Whether it is the same try.
    pub(crate) fn is_of(&self, other: &Self) -> bool {
        (self.run, self.epoch, self.attempt) == (other.run, other.epoch, other.attempt)
            && self.frame == other.frame
    }
}

/// A hint.
#[derive(Debug, Clone)]
pub(crate) enum News {
    /// These events were committed.
    Committed(Arc<[Entry]>),
    /// A model said this.
    Said(Speech),
    /// The store has events up to this one; another process may have committed them.
    Moved { to: u64 },
}

/// Somebody's place among the listeners of a thread.
#[derive(Debug)]
pub(crate) struct Listener {
    hub: Arc<Hub>,
    key: ThreadKey,
    news: broadcast::Receiver<News>,
}

impl Hub {
    fn threads(&self) -> MutexGuard<'_, HashMap<ThreadKey, Topic>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Listens to a thread. Hints that come from now on are not missed.
    pub(crate) fn listen(self: &Arc<Self>, key: &ThreadKey) -> Listener {
        let mut threads = self.threads();
        let topic = threads.entry(key.clone()).or_default();
        topic.listeners += 1;
        Listener {
            hub: Arc::clone(self),
            key: key.clone(),
            news: topic.news.subscribe(),
        }
    }

    /// The threads that somebody listens to.
    pub(crate) fn heard(&self) -> Vec<ThreadKey> {
        let threads = self.threads();
        let heard = threads.iter().filter(|(_, topic)| topic.listeners > 0);
        heard.map(|(key, _)| key.clone()).collect()
    }

    /// Forgets what models were saying in threads that are not driven here any more: another process goes on there.
    pub(crate) fn forget(&self, is_driven: impl Fn(&ThreadKey) -> bool) {
        self.threads().retain(|key, topic| {
            if !is_driven(key) {
                topic.speech.clear();
            }
            !topic.is_idle()
        });
    }

    /// The store has a thread's events up to this one.
    pub(crate) fn moved(&self, key: &ThreadKey, to: u64) {
        if let Some(topic) = self.threads().get(key) {
            // Nobody listening is no failure.
            let _ = topic.news.send(News::Moved { to });
        }
    }
}

impl Watcher for Hub {
    fn committed(&self, key: &ThreadKey, entries: &Arc<[Entry]>, _: &Arc<State>) {
        let mut threads = self.threads();
        let hash_map::Entry::Occupied(mut topic) = threads.entry(key.clone()) else {
            return;
        };
        for entry in entries.iter() {
            if let Event::ModelReplied { frame, .. }
            | Event::OutputHeld { frame, .. }
            | Event::ModelFailed { frame, .. } = &entry.event
            {
                topic.get_mut().speech.remove(frame);
            } else if let Event::StopRequested { .. } | Event::RunEnded { .. } = &entry.event {
                topic.get_mut().speech.clear();
            }
        }
        let _ = topic.get().news.send(News::Committed(Arc::clone(entries)));
        if topic.get().is_idle() {
            topic.remove();
        }
    }

    fn said(&self, key: &ThreadKey, said: Said<'_>) {
        let said = Speech {
            run: said.run,
            frame: said.frame.clone(),
            epoch: said.epoch,
            attempt: said.attempt,
            from: said.from,
            text: said.text.to_owned(),
        };
        let mut threads = self.threads();
        let topic = threads.entry(key.clone()).or_default();
        let frame = said.frame.clone();
        let speech = topic.speech.entry(frame).or_insert_with(|| Speech {
            text: String::new(),
            from: 0,
            ..said.clone()
        });
        if !speech.is_of(&said) {
            // A try that was given up may still speak; only the newest one counts.
            if (said.epoch, said.attempt) < (speech.epoch, speech.attempt) {
                return;
            }
            *speech = Speech {
                text: String::new(),
                from: 0,
                ..said.clone()
            };
        }
        if speech.text.len() == said.from {
            speech.text.push_str(&said.text);
        }
        let _ = topic.news.send(News::Said(said));
    }
}

impl Listener {
    /// The next hint; `None` if some were missed.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when the future is dropped.
    pub(crate) async fn next(&mut self) -> Option<News> {
        match self.news.recv().await {
            Ok(news) => Some(news),
            Err(broadcast::error::RecvError::Lagged(_)) => None,
            // The sender lives as long as somebody listens.
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        }
    }

    /// The thread that is listened to.
    pub(crate) const fn key(&self) -> &ThreadKey {
        &self.key
    }

    /// What models are saying right now.
    pub(crate) fn speech(&self) -> Vec<Speech> {
        let threads = self.hub.threads();
        let topic = threads.get(&self.key);
        topic.map_or_else(Vec::new, |topic| topic.speech.values().cloned().collect())
    }

    /// What the model of a frame is saying right now.
    pub(crate) fn speech_in(&self, frame: &FramePath) -> Option<Speech> {
        let threads = self.hub.threads();
        threads.get(&self.key)?.speech.get(frame).cloned()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut threads = self.hub.threads();
        if let hash_map::Entry::Occupied(mut topic) = threads.entry(self.key.clone()) {
            topic.get_mut().listeners -= 1;
            if topic.get().is_idle() {
                topic.remove();
            }
        }
    }
}
