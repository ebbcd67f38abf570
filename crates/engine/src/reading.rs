//! What callers may read: states, journals, conversations, and which threads there are.

use std::sync::Arc;

use holdpoint_core::{
    Damaged, Digest, Entry, Event, Index, Interrupt, InterruptId, Refusal, RunId, State, Subject,
    ThreadId, Transcript, decode_records,
};
use holdpoint_store::{Direction, Scan, ThreadKey};

use crate::{
    Engine, Error, InterruptView, PendingPage, PendingView, RunView,
    questions::last_row,
    thread::{leads_to, read_journal, read_transcript},
    view::explain,
};

/// How many rows are counted with one read.
const COUNTED_AT_ONCE: usize = 1_000;

impl Engine {
    /// A thread's current state, or `None` if there is no such thread in its tenant.
    ///
    /// # Errors
    ///
    /// The store fails, or what it holds cannot be read.
    pub async fn state(&self, key: &ThreadKey) -> Result<Option<Arc<State>>, Error> {
        match self.store().load(key).await? {
            None => Ok(None),
            Some(head) => Ok(Some(self.thread(key, Some(&head))?.state)),
        }
    }

    /// A thread's whole journal, its chain checked.
    ///
    /// # Errors
    ///
    /// The store fails, or the journal was tampered with.
    pub async fn journal(&self, key: &ThreadKey) -> Result<Vec<Entry>, Error> {
        let head = self.state(key).await?;
        let journal = read_journal(self.store(), key).await?;
        if let Some(head) = head {
            leads_to(&journal, (head.version, head.hash))?;
        }
        Ok(journal)
    }

    /// Some events of a thread: those after this one, at most so many. Their chain is checked from there on.
    ///
    /// # Errors
    ///
    /// The store fails, or the journal was tampered with.
    pub async fn entries(
        &self,
        key: &ThreadKey,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Entry>, Error> {
        let Some(before) = after.checked_sub(1) else {
            let records = self.store().read(key, 0, limit).await?;
            return Ok(decode_records(Digest::default(), &records)?);
        };
        // The event before them comes along for its hash.
        let records = self.store().read(key, before, limit + 1).await?;
        match records.split_first() {
            Some((first, rest)) => Ok(decode_records(first.hash, rest)?),
            None => Ok(Vec::new()),
        }
    }

    /// A thread's conversation up to a state that was read before.
    ///
    /// # Errors
    ///
    /// As [`Engine::journal`].
    pub async fn transcript(&self, key: &ThreadKey, state: &State) -> Result<Transcript, Error> {
        read_transcript(self.store(), key, (state.version, state.hash)).await
    }

    /// A thread as it is shown: how it stands, what was said, what is asked.
    ///
    /// # Errors
    ///
    /// There is no such thread in its tenant; or as [`Engine::journal`].
    pub async fn view(&self, key: &ThreadKey) -> Result<RunView, Error> {
        let Some(state) = self.state(key).await? else {
            return Err(Refusal::NotFound.into());
        };
        let transcript = self.transcript(key, &state).await?;
        self.show_run(&key.tenant, &state, &transcript).await
    }

    /// What a pending interrupt asks, for doors that know nothing but words: with what its calls would do. What a model said that is
    /// held back is not in it: such a door is that of the one who is not to hear it.
    ///
    /// # Errors
    ///
    /// The store fails, or the journal or what was shown was tampered with.
    pub async fn reason(
        &self,
        key: &ThreadKey,
        state: &State,
        interrupt: &Interrupt,
    ) -> Result<String, Error> {
        let mut reason = self.words(key, state, interrupt).await?;
        let mut view = InterruptView::new(state, interrupt);
        self.fill_shown(&key.tenant, state, &mut view).await?;
        for preview in view.value.action_requests.iter().flat_map(|it| &it.preview) {
            reason.push_str("\n\n");
            reason.push_str(&preview.title);
            reason.push_str("\n\n");
            reason.push_str(&preview.body);
        }
        Ok(reason)
    }

    /// What a pending interrupt asks: where the model asks in plain words, these words.
    ///
    /// # Errors
    ///
    /// As [`Engine::reason`].
    pub(crate) async fn words(
        &self,
        key: &ThreadKey,
        state: &State,
        interrupt: &Interrupt,
    ) -> Result<String, Error> {
        for ask in &interrupt.asks {
            if let Subject::Confirmation {
                reply, text, from, ..
            } = &ask.subject
            {
                let said = match reply.checked_sub(1) {
                    Some(before) => self.said(key, before).await?,
                    // It was said in the thread that this one was forked from.
                    None => {
                        let transcript = self.transcript(key, state).await?;
                        transcript.last_text().map(str::to_owned)
                    }
                };
                let said = said.filter(|said| Digest::of(said.as_bytes()) == *text);
                let from = usize::try_from(*from).unwrap_or(usize::MAX);
                let words = said.as_deref().and_then(|said| said.get(from..));
                let words = words.ok_or(Damaged::BrokenChain { seq: *reply })?;
                return Ok(words.trim().to_owned());
            }
        }
        Ok(explain(state, interrupt))
    }

    /// What a model said that is held back, all of it.
    pub(crate) async fn held_words(
        &self,
        key: &ThreadKey,
        state: &State,
        interrupt: &Interrupt,
        reply: u64,
        text: Digest,
    ) -> Result<String, Error> {
        let held = match reply.checked_sub(1) {
            Some(before) => {
                let entry = self.entries(key, before, 1).await?.pop();
                entry.and_then(|entry| {
                    if let Event::OutputHeld { reply, .. } = entry.event {
                        return Some(reply.text);
                    }
                    None
                })
            }
            // It was said in the thread that this one was forked from.
            None => {
                let transcript = self.transcript(key, state).await?;
                let held = transcript.held(&interrupt.frame);
                held.map(|held| held.text.clone())
            }
        };
        let held = held.filter(|held| Digest::of(held.as_bytes()) == text);
        Ok(held.ok_or(Damaged::BrokenChain { seq: reply })?)
    }

    /// What a model said in the event after this one.
    async fn said(&self, key: &ThreadKey, after: u64) -> Result<Option<String>, Error> {
        let entry = self.entries(key, after, 1).await?.pop();
        let Some(entry) = entry else { return Ok(None) };
        if let Event::ModelReplied { text, .. } = entry.event {
            return Ok(Some(text));
        }
        Ok(None)
    }

    /// How many questions of runs that this principal asked for are open; counted up to this number.
    ///
    /// # Errors
    ///
    /// The store fails.
    pub async fn count_asked(
        &self,
        tenant: &str,
        principal: &str,
        up_to: usize,
    ) -> Result<usize, Error> {
        let mut count = 0;
        let mut after = None;
        loop {
            let limit = COUNTED_AT_ONCE.min(up_to - count);
            let scan = Scan {
                index: Index::Asked,
                key: Some(principal.to_owned()),
                up_to: None,
                direction: Direction::Forward,
                after,
                limit,
            };
            let rows = self.store().scan(tenant, scan).await?;
            count += rows.len();
            if rows.len() < limit || count >= up_to {
                return Ok(count);
            }
            after = rows.last().cloned();
        }
    }

    /// The threads of a tenant whose session has this name.
    ///
    /// # Errors
    ///
    /// The store fails.
    pub async fn sessions(&self, tenant: &str, session: &str) -> Result<Vec<ThreadKey>, Error> {
        let scan = Scan {
            index: Index::Session,
            key: Some(session.to_owned()),
            up_to: None,
            direction: Direction::Forward,
            after: None,
            limit: 100,
        };
        let rows = self.store().scan(tenant, scan).await?;
        Ok(rows
            .into_iter()
            .map(|row| ThreadKey {
                tenant: tenant.into(),
                thread: row.thread,
            })
            .collect())
    }

    /// The runs of a tenant, oldest first, with the threads they belong to.
    ///
    /// # Errors
    ///
    /// The store fails.
    pub async fn runs(&self, tenant: &str) -> Result<Vec<(RunId, ThreadKey)>, Error> {
        let mut runs = Vec::new();
        let mut after = None;
        loop {
            let scan = Scan {
                index: Index::Run,
                key: None,
                up_to: None,
                direction: Direction::Forward,
                after,
                limit: 500,
            };
            let rows = self.store().scan(tenant, scan).await?;
            for row in &rows {
                if let Ok(run) = row.key.parse() {
                    runs.push((
                        run,
                        ThreadKey {
                            tenant: tenant.into(),
                            thread: row.thread,
                        },
                    ));
                }
            }
            if rows.len() < 500 {
                return Ok(runs);
            }
            after = rows.last().cloned();
        }
    }

    /// A page of what a tenant is asked, oldest first: at most `limit` questions, the first of them the one after
    /// `after`. It reads no more than that, however many there are.
    ///
    /// # Errors
    ///
    /// The store fails, or what it holds cannot be read.
    pub async fn pending(
        &self,
        tenant: &str,
        after: Option<InterruptId>,
        limit: usize,
    ) -> Result<PendingPage, Error> {
        let scan = Scan {
            index: Index::Pending,
            key: None,
            up_to: None,
            direction: Direction::Forward,
            after: after.map(|id| last_row(Index::Pending, id)),
            limit,
        };
        let rows = self.store().scan(tenant, scan).await?;
        let mut page = PendingPage::default();
        if rows.len() == limit {
            page.next = rows.last().and_then(|row| row.key.parse().ok());
        }
        let tenant: Arc<str> = tenant.into();
        let threads: Vec<ThreadId> = rows.iter().map(|row| row.thread).collect();
        let heads = self.store().load_all(&tenant, &threads).await?;
        for (row, head) in rows.into_iter().zip(heads) {
            let key = ThreadKey {
                tenant: Arc::clone(&tenant),
                thread: row.thread,
            };
            let (Ok(id), Some(head)) = (row.key.parse::<InterruptId>(), head) else {
                continue;
            };
            let state = self.thread(&key, Some(&head))?.state;
            // It may have been answered since the rows were read.
            if let Some(interrupt) = state.interrupts.get(&id) {
                let mut shown = InterruptView::new(&state, interrupt);
                self.fill_previews(&tenant, &state, std::slice::from_mut(&mut shown))
                    .await?;
                page.interrupts.push(PendingView {
                    thread_id: row.thread,
                    agent: state.agent.clone(),
                    session: state.session.clone(),
                    run: state.run.as_ref().map(|run| run.id),
                    text: explain(&state, interrupt),
                    interrupt: shown,
                });
            }
        }
        Ok(page)
    }
}
