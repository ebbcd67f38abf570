//! A thread as this process last saw it, and how it catches up.

use std::sync::Arc;

use holdpoint_core::{
    Batch, Command, Damaged, Digest, Entry, Event, Index, IndexChange, Payload, Principal,
    PrincipalKind, Seed, State, Timestamp, Transcript, decode_head, decode_records, fold, letters,
    past_action,
};
use holdpoint_store::{
    Append, AppendError, Appended, CellChange, Epoch, Fence, Head, LeaseAfter, SharedStore,
    ThreadKey, Unavailable,
};

use crate::{Engine, Error};

/// How many records one read fetches.
const PAGE: usize = 512;

/// A thread's head, and its lease at the time of reading.
#[derive(Debug, Clone)]
pub(crate) struct Thread {
    pub(crate) key: ThreadKey,
    pub(crate) state: Arc<State>,
    pub(crate) epoch: Epoch,
    /// The conversation up to the state's version, where it is known.
    pub(crate) transcript: Option<Arc<Transcript>>,
}

impl Engine {
    /// Reads a thread; a thread that does not exist is empty.
    pub(crate) async fn load(&self, key: &ThreadKey) -> Result<Thread, Error> {
        self.thread(key, self.store().load(key).await?.as_ref())
    }

    /// A thread with this head; without one it is empty.
    pub(crate) fn thread(&self, key: &ThreadKey, head: Option<&Head>) -> Result<Thread, Error> {
        let Some(head) = head else {
            return Ok(Thread::new(key));
        };
        let parked = self.recent().recall(key, &head.payload);
        let (state, transcript) = match parked {
            Some((state, transcript)) => (state, Some(transcript)),
            None => (Arc::new(decode_head(&head.payload)?), None),
        };
        // Nothing could ever be appended to such a thread.
        if state.version != head.version {
            let version = head.version;
            return Err(Damaged::Incomplete { version }.into());
        }
        Ok(Thread {
            key: key.clone(),
            state,
            epoch: head.epoch,
            transcript,
        })
    }
}

impl Thread {
    /// A thread that does not exist yet: nothing is said in it.
    fn new(key: &ThreadKey) -> Self {
        Self {
            key: key.clone(),
            state: Arc::default(),
            epoch: 0,
            transcript: Some(Arc::default()),
        }
    }

    /// The epoch as it is now, for an append that takes the lease; `None` while the thread does not exist.
    pub(crate) async fn reload_epoch(&self, store: &SharedStore) -> Result<Option<Epoch>, Error> {
        Ok(store.load(&self.key).await?.map(|head| head.epoch))
    }

    /// Reads what was appended meanwhile, checking that it follows.
    pub(crate) async fn catch_up(&mut self, store: &SharedStore) -> Result<Vec<Entry>, Error> {
        let mut news = Vec::new();
        loop {
            let records = store.read(&self.key, self.state.version, PAGE).await?;
            let is_last = records.len() < PAGE;
            for entry in decode_records(self.state.hash, &records)? {
                fold(Arc::make_mut(&mut self.state), &entry);
                // What was said before is in another thread, and read there when it is needed.
                if let Event::Forked { .. } = entry.event {
                    self.transcript = None;
                }
                if let Some(transcript) = &mut self.transcript {
                    Arc::make_mut(transcript).apply(&entry.event);
                }
                news.push(entry);
            }
            if is_last {
                return Ok(news);
            }
        }
    }

    /// Commits a batch. On success the thread is what the batch made of it. Returns what was appended and the head.
    pub(crate) async fn append(
        &mut self,
        engine: &Engine,
        batch: Batch,
        cells: Vec<CellChange>,
        fence: Fence,
        lease: LeaseAfter,
    ) -> Result<(Vec<Entry>, Payload), Refused> {
        let mut sealed = batch
            .seal()
            .map_err(|damage| Refused::Other(damage.into()))?;
        let hearing = engine.hearing().await.map_err(Refused::Other)?;
        let letters = letters(&hearing, &self.state, &sealed.state, &sealed.entries);
        let posted = letters.iter().map(|letter| letter.row(Index::Outbox));
        sealed.index.extend(posted.map(IndexChange::Put));
        let append = Append {
            key: self.key.clone(),
            expect: sealed.expect,
            fence,
            records: sealed.records,
            head: sealed.head.clone(),
            index: sealed.index,
            cells,
            lease,
        };
        let appended = engine.store().append(append).await;
        let Appended { epoch, .. } = appended.map_err(Refused::Append)?;
        if !letters.is_empty() {
            engine.outbox().was_filled();
        }
        self.state = Arc::new(sealed.state);
        self.epoch = epoch;
        if let Some(transcript) = &mut self.transcript {
            // Only shared while a model is being called, and then nothing of it changes.
            let transcript = Arc::make_mut(transcript);
            for entry in &sealed.entries {
                transcript.apply(&entry.event);
            }
        }
        Ok((sealed.entries, sealed.head))
    }
}

impl Engine {
    /// Reads a thread's journal where it is not known yet, and makes sure that it leads to the head. Nothing is decided
    /// or done on a journal that was tampered with.
    pub(crate) async fn verify(&self, thread: &mut Thread) -> Result<(), Error> {
        if thread.transcript.is_none() {
            let head = (thread.state.version, thread.state.hash);
            let read = read_transcript(self.store(), &thread.key, head).await?;
            thread.transcript = Some(Arc::new(read));
        }
        Ok(())
    }
}

/// Why a batch was not committed.
#[derive(Debug)]
pub(crate) enum Refused {
    Append(AppendError),
    Other(Error),
}

/// Reads a whole journal, checking its chain.
pub(crate) async fn read_journal(
    store: &SharedStore,
    key: &ThreadKey,
) -> Result<Vec<Entry>, Error> {
    let mut thread = Thread::new(key);
    thread.transcript = None;
    thread.catch_up(store).await
}

/// Makes sure that a journal leads to a head with this version and hash. It may go on after it.
pub(crate) fn leads_to(journal: &[Entry], (version, hash): (u64, Digest)) -> Result<(), Damaged> {
    let at = usize::try_from(version)
        .ok()
        .and_then(|version| version.checked_sub(1));
    match at.and_then(|at| journal.get(at)) {
        Some(entry) if entry.seq == version && entry.hash == hash => Ok(()),
        Some(_) | None => Err(Damaged::Incomplete { version }),
    }
}

/// Folds the conversation of a journal that leads to this head, up to there; of a fork, through the threads before it.
pub(crate) async fn read_transcript(
    store: &SharedStore,
    key: &ThreadKey,
    head: (u64, Digest),
) -> Result<Transcript, Error> {
    let (mut key, mut head) = (key.clone(), head);
    let mut journals = Vec::new();
    loop {
        let mut journal = read_journal(store, &key).await?;
        leads_to(&journal, head)?;
        journal.retain(|entry| entry.seq <= head.0);
        let origin = journal.iter().find_map(|entry| {
            if let Event::Forked {
                parent, at, hash, ..
            } = &entry.event
            {
                return Some((*parent, (*at, *hash)));
            }
            None
        });
        journals.push(journal);
        let Some((parent, stood)) = origin else { break };
        (key.thread, head) = (parent, stood);
    }
    let mut transcript = Transcript::default();
    for entry in journals.into_iter().rev().flatten() {
        transcript.apply(&entry.event);
    }
    Ok(transcript)
}

/// Fresh randomness for one command.
pub(crate) fn fresh_seed(now: Timestamp) -> Result<Seed, Error> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|error| {
        Unavailable::new(format!("the operating system gave no randomness: {error}"))
    })?;
    Ok(Seed::new(random, now))
}

/// Who the engine itself acts as.
pub(crate) fn engine_principal(tenant: &str) -> Principal {
    Principal::new(PrincipalKind::Service, tenant, "holdpoint")
}

/// The outcome of an action that is no longer open, together with what the journal says of it.
pub(crate) async fn late_outcome(
    store: &SharedStore,
    key: &ThreadKey,
    command: &Command,
) -> Result<Option<Command>, Error> {
    let Command::ActionEnded {
        action,
        attempt,
        outcome,
        artifact,
        past: None,
    } = command
    else {
        return Ok(None);
    };
    let journal = read_journal(store, key).await?;
    Ok(
        past_action(&journal, *action).map(|past| Command::ActionEnded {
            action: *action,
            attempt: *attempt,
            outcome: outcome.clone(),
            artifact: artifact.clone(),
            past: Some(Box::new(past)),
        }),
    )
}
