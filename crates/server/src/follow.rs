//! Following a thread from a place in its journal: every event once and in order, and between them what models are
//! saying.

use std::{
    collections::{BTreeMap, VecDeque},
    ops::Deref,
    sync::Arc,
};

use holdpoint_core::{Entry, Event, FramePath};
use holdpoint_engine::{Engine, Error};
use holdpoint_store::{Epoch, ThreadKey};

use crate::hub::{Hub, Listener, News, Speech};

/// How many events one read fetches.
const PAGE: usize = 256;

/// What is seen next.
#[derive(Debug, Clone)]
pub(crate) enum Seen {
    /// This was committed.
    Event(Shared),
    /// A model said more; it follows on what was said before.
    Said(Speech),
    /// What a model was saying is this, whatever was heard before.
    Reset(Speech),
}

/// One of the events of an append, which whoever else follows the thread holds too.
#[derive(Debug, Clone)]
pub(crate) struct Shared {
    entries: Arc<[Entry]>,
    nth: usize,
}

impl Deref for Shared {
    type Target = Entry;

    fn deref(&self) -> &Entry {
        // INVARIANT: it was made for an event that is there.
        &self.entries[self.nth]
    }
}

/// One try of a model's turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Try {
    attempt: u32,
    epoch: Epoch,
}

/// Somebody's way through a thread.
#[derive(Debug)]
pub(crate) struct Follow {
    engine: Engine,
    listener: Listener,
    key: ThreadKey,
    /// The last event that was seen.
    at: u64,
    /// What is known and not handed out yet.
    queue: VecDeque<Seen>,
    /// How far the speech of each frame was heard.
    heard: BTreeMap<FramePath, Speech>,
    /// Which try of a turn each frame is at; `None` where its model is not asked. What is not known is absent.
    turns: BTreeMap<FramePath, Option<Try>>,
    /// Whether the store may have more than was read.
    behind: bool,
    /// Whether something that was said may have been missed.
    deaf: bool,
}

impl Follow {
    /// From after this event on, which may be long ago.
    pub(crate) fn new(engine: &Engine, hub: &Arc<Hub>, key: &ThreadKey, after: u64) -> Self {
        // Listened to first, read after: nothing is missed in between.
        let listener = hub.listen(key);
        Self {
            behind: true,
            deaf: true,
            ..Self::with(engine, listener, after)
        }
    }

    /// From after this event on, by somebody who has listened since before the next one was committed: so what was said
    /// since then is heard as it was said.
    pub(crate) fn with(engine: &Engine, listener: Listener, after: u64) -> Self {
        Self {
            engine: engine.clone(),
            key: listener.key().clone(),
            listener,
            at: after,
            queue: VecDeque::new(),
            heard: BTreeMap::new(),
            turns: BTreeMap::new(),
            behind: false,
            deaf: false,
        }
    }

    /// What is seen next. It waits for ever where nothing happens any more.
    ///
    /// # Errors
    ///
    /// The store fails, or the journal was tampered with.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when the future is dropped.
    pub(crate) async fn next(&mut self) -> Result<Seen, Error> {
        loop {
            if let Some(seen) = self.queue.pop_front() {
                return Ok(seen);
            }
            if self.behind {
                self.read().await?;
                continue;
            }
            match self.listener.next().await {
                None => (self.behind, self.deaf) = (true, true),
                // What is said comes by the same way as before.
                Some(News::Moved { to }) => self.behind |= to > self.at,
                Some(News::Committed(entries)) => self.take(&entries),
                Some(News::Said(said)) => self.hear(said),
            }
        }
    }

    /// Reads what the store has.
    async fn read(&mut self) -> Result<(), Error> {
        let entries = self.engine.entries(&self.key, self.at, PAGE).await?;
        self.behind = entries.len() == PAGE;
        self.take(&entries.into());
        if !self.behind && std::mem::take(&mut self.deaf) {
            // Whoever comes in the middle, or missed something, hears what was said so far.
            for speech in self.listener.speech() {
                self.catch_up_on(speech);
            }
        }
        Ok(())
    }

    /// Takes events that follow; where there is a gap, the store is read.
    fn take(&mut self, entries: &Arc<[Entry]>) {
        for (nth, entry) in entries.iter().enumerate() {
            if entry.seq == self.at + 1 {
                let entries = Arc::clone(entries);
                self.pass(Shared { entries, nth });
            } else if entry.seq > self.at {
                self.behind = true;
                return;
            }
        }
    }

    fn pass(&mut self, entry: Shared) {
        let event = &entry.event;
        if let Event::ModelStarted {
            frame,
            attempt,
            epoch,
        } = event
        {
            let (attempt, epoch) = (*attempt, *epoch);
            let turn = Some(Try { attempt, epoch });
            self.turns.insert(frame.clone(), turn);
        } else if let Event::ModelReplied { frame, .. }
        | Event::OutputHeld { frame, .. }
        | Event::ModelFailed { frame, .. } = event
        {
            self.heard.remove(frame);
            self.turns.insert(frame.clone(), None);
        } else if let Event::StopRequested { .. } | Event::RunEnded { .. } = event {
            self.heard.clear();
            self.turns.values_mut().for_each(|turn| *turn = None);
        }
        self.at = entry.seq;
        self.queue.push_back(Seen::Event(entry));
    }

    /// Whether a speech is of the turn that its frame is at. One that comes late belongs to a message that was seen.
    fn counts(&self, speech: &Speech) -> bool {
        let (attempt, epoch) = (speech.attempt, speech.epoch);
        let turn = self.turns.get(&speech.frame);
        turn.is_none_or(|turn| *turn == Some(Try { attempt, epoch }))
    }

    fn hear(&mut self, said: Speech) {
        if !self.counts(&said) {
            return;
        }
        let end = said.from + said.text.len();
        let heard = self.heard.get_mut(&said.frame);
        match heard.filter(|heard| heard.is_of(&said)) {
            // It was heard already, with what was said so far.
            Some(heard) if end <= heard.from => return,
            Some(heard) if said.from == heard.from => {
                heard.from = end;
                self.queue.push_back(Seen::Said(said));
                return;
            }
            Some(_) => {}
            None if said.from == 0 && self.turns.contains_key(&said.frame) => {
                let place = Speech {
                    from: end,
                    text: String::new(),
                    ..said.clone()
                };
                self.heard.insert(said.frame.clone(), place);
                self.queue.push_back(Seen::Said(said));
                return;
            }
            None => {}
        }
        if let Some(speech) = self.listener.speech_in(&said.frame) {
            self.catch_up_on(speech);
        }
    }

    /// Hands out all that a model has said in this try, unless just that was heard.
    fn catch_up_on(&mut self, speech: Speech) {
        if !self.counts(&speech) {
            return;
        }
        let said = speech.text.len();
        let heard = self.heard.get(&speech.frame);
        if heard.is_some_and(|heard| heard.is_of(&speech) && heard.from == said) {
            return;
        }
        let place = Speech {
            from: said,
            text: String::new(),
            ..speech.clone()
        };
        self.heard.insert(speech.frame.clone(), place);
        self.queue.push_back(Seen::Reset(speech));
    }
}

#[cfg(test)]
mod tests {
    use holdpoint_core::{Definition, Principal, State};
    use holdpoint_engine::{Kit, Options, Said, Watcher as _};
    use holdpoint_models::Scripted;
    use holdpoint_store::MemoryStore;

    use super::*;

    /// A thread with three runs that are over, on an engine that tells nobody of them.
    async fn journal() -> (Engine, ThreadKey, Vec<Entry>) {
        let text =
            "apiVersion: holdpoint/v1\nkind: Scenario\nrules:\n  - say: Hello there, whoever\n";
        let model = Scripted::parse("scenario.yaml", text).unwrap();
        let kit = Kit::new().with_model("test", model);
        let store = Arc::new(MemoryStore::new(&Default::default()));
        let engine = Engine::new(store, kit, Options::default(), None);
        let ann = Principal::local("ann");
        let definition = Definition::new("echo", "test");
        let agent = engine.publish("local", definition).await.unwrap();
        let mut key = None;
        for _ in 0..3 {
            let run = engine.start(&ann, &agent, "s", "go").await.unwrap();
            key = Some(run.key().clone());
            run.finish().await.unwrap();
        }
        let key = key.unwrap();
        let entries = engine.journal(&key).await.unwrap();
        (engine, key, entries)
    }

    fn tell(hub: &Hub, key: &ThreadKey, entries: &[Entry]) {
        hub.committed(key, &entries.into(), &Arc::new(State::default()));
    }

    async fn seqs(follow: &mut Follow, count: usize) -> Vec<u64> {
        let mut seen = Vec::new();
        while seen.len() < count {
            if let Seen::Event(entry) = follow.next().await.unwrap() {
                seen.push(entry.seq);
            }
        }
        seen
    }

    #[tokio::test]
    async fn every_event_is_seen_once_and_in_order_however_the_hints_come() {
        let (engine, key, entries) = journal().await;
        let all: Vec<u64> = entries.iter().map(|entry| entry.seq).collect();
        assert!(all.len() > 10);
        // Twice, backwards, with gaps, from the middle, none at all.
        let orders: [Vec<&[Entry]>; 5] = [
            vec![&entries[..4], &entries[..4], &entries[2..], &entries[..]],
            entries.chunks(3).rev().collect(),
            vec![&entries[..2], &entries[7..8]],
            vec![&entries[5..]],
            vec![],
        ];
        for hints in orders {
            let hub = Arc::new(Hub::default());
            let mut follow = Follow::with(&engine, hub.listen(&key), 0);
            for hint in &hints {
                tell(&hub, &key, hint);
            }
            hub.moved(&key, all.len() as u64);
            assert_eq!(seqs(&mut follow, all.len()).await, all);
            assert!(follow.queue.is_empty(), "nothing follows");
            for from in [0, 3, all.len()] {
                let mut late = Follow::new(&engine, &hub, &key, from as u64);
                assert_eq!(seqs(&mut late, all.len() - from).await, all[from..]);
            }
        }
    }

    #[tokio::test]
    async fn more_hints_than_a_listener_can_hold_are_made_up_from_the_store() {
        let (engine, key, entries) = journal().await;
        let hub = Arc::new(Hub::default());
        let mut follow = Follow::with(&engine, hub.listen(&key), 0);
        for _ in 0..100 {
            entries
                .iter()
                .rev()
                .for_each(|entry| tell(&hub, &key, std::slice::from_ref(entry)));
        }
        let all: Vec<u64> = entries.iter().map(|entry| entry.seq).collect();
        assert_eq!(seqs(&mut follow, all.len()).await, all);
    }

    fn is_started(entry: &&Entry) -> bool {
        matches!(entry.event, Event::ModelStarted { .. })
    }

    /// Says words as the model of the first turn does.
    fn say(hub: &Hub, key: &ThreadKey, started: &Entry, from: usize, text: &str) {
        let Event::ModelStarted {
            frame,
            attempt,
            epoch,
        } = &started.event
        else {
            panic!("{started:?}");
        };
        let said = Said {
            run: holdpoint_core::RunId::from_bytes([1; 16]),
            frame,
            attempt: *attempt,
            epoch: *epoch,
            from,
            text,
        };
        hub.said(key, said);
    }

    #[tokio::test]
    async fn words_are_heard_as_they_come_and_whole_by_who_comes_late_and_never_after_their_message()
     {
        let (engine, key, entries) = journal().await;
        let at = entries.iter().position(|it| is_started(&it)).unwrap();
        let hub = Arc::new(Hub::default());
        let mut early = Follow::with(&engine, hub.listen(&key), 0);
        tell(&hub, &key, &entries[..=at]);
        // That the store has what was told already takes no word away.
        hub.moved(&key, entries[at].seq);
        say(&hub, &key, &entries[at], 0, "Hel");
        say(&hub, &key, &entries[at], 3, "lo");
        // Who comes in the middle of it has read the journal so far.
        let mut late = Follow::with(&engine, hub.listen(&key), entries[at].seq);
        say(&hub, &key, &entries[at], 5, " there");
        assert_eq!(seqs(&mut early, at + 1).await.len(), at + 1);
        let mut heard = Vec::new();
        for _ in 0..3 {
            let seen = early.next().await.unwrap();
            let Seen::Said(speech) = seen else {
                panic!("{seen:?}");
            };
            heard.push(speech.text);
        }
        assert_eq!(heard, ["Hel", "lo", " there"]);
        let seen = late.next().await.unwrap();
        let Seen::Reset(speech) = seen else {
            panic!("{seen:?}");
        };
        assert_eq!(speech.text, "Hello there");
        // The message is committed; a word of it that was on its way is not heard any more.
        tell(&hub, &key, &entries[at + 1..]);
        say(&hub, &key, &entries[at], 11, "!");
        let rest = entries.len() - at - 1;
        for follow in [&mut early, &mut late] {
            for _ in 0..rest {
                assert!(matches!(follow.next().await.unwrap(), Seen::Event(_)));
            }
        }
    }
}
