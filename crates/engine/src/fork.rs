//! A thread that begins where another one stood.

use std::sync::Arc;

use holdpoint_core::{Command, Refusal, State, ThreadId, fold};
use holdpoint_store::ThreadKey;

use crate::{
    Engine, Error, Request, Submitted,
    thread::{Thread, read_journal, read_transcript},
};

impl Engine {
    /// A thread as it stood after an event, if it may be looked at there: `None` between the events of one append, and
    /// beyond the end.
    ///
    /// # Errors
    ///
    /// There is no such thread in its tenant; the store fails, or the journal was tampered with.
    pub async fn state_at(&self, key: &ThreadKey, at: u64) -> Result<Option<State>, Error> {
        let Some(head) = self.state(key).await? else {
            return Err(Refusal::NotFound.into());
        };
        if at == head.version {
            return Ok(Some(State::clone(&head)));
        }
        let mut state = State::default();
        for entry in read_journal(self.store(), key).await? {
            fold(&mut state, &entry);
            if entry.seq == at {
                return Ok(entry.header.end.then_some(state));
            }
        }
        Ok(None)
    }

    /// Begins a thread of the same agent where this one stands, or stood after an event. What is open there is asked
    /// anew, and nothing that anybody allowed is carried over.
    ///
    /// # Errors
    ///
    /// The session exists; something is in the air there; there is no such thread or event; the store fails.
    pub async fn fork(
        &self,
        request: impl Into<Request>,
        key: &ThreadKey,
        at: Option<u64>,
        session: &str,
    ) -> Result<Submitted, Error> {
        let request = request.into();
        let forked = self.fork_once(&request, key, at, session);
        self.once(&request, Box::pin(forked)).await
    }

    async fn fork_once(
        &self,
        request: &Request,
        key: &ThreadKey,
        at: Option<u64>,
        session: &str,
    ) -> Result<Submitted, Error> {
        let Some(head) = self.state(key).await? else {
            return Err(Refusal::NotFound.into());
        };
        let at = at.unwrap_or(head.version);
        if at > head.version {
            return Err(Refusal::NotFound.into());
        }
        let between =
            || Refusal::NotForkable("it lies in the middle of what was committed at once");
        let from = self.state_at(key, at).await?.ok_or_else(between)?;
        let transcript = read_transcript(self.store(), key, (at, from.hash)).await?;
        let thread = ThreadId::of_session(&key.tenant, &from.agent, session);
        let fork = ThreadKey {
            tenant: Arc::clone(&key.tenant),
            thread,
        };
        let head = self.store().load(&fork).await?;
        let mut begun = self.thread(&fork, head.as_ref())?;
        if head.is_none() {
            begun = Thread {
                transcript: Some(Arc::new(transcript)),
                ..begun
            };
        }
        let command = Command::Fork {
            thread,
            session: session.to_owned(),
            from: Box::new(from),
        };
        self.submit_on(begun, head.as_ref(), request.order(command))
            .await
    }
}
