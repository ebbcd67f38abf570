//! Questions of anybody, pending or closed, as they stand.
//!
//! What is pending is read from heads. What was asked by a question that is closed only the journal knows.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use holdpoint_core::{
    Actor, Decided, Decision, Entry, Event, Index, IndexRow, Interrupt, InterruptId, InterruptKind,
    InterruptStatus, Prompt, State, Subject, ThreadId, ThreadKind, Timestamp, closing, fold,
};
use holdpoint_store::{Direction, Scan, ThreadKey};

use crate::{Engine, Error, InterruptView};

/// How many rows of an index are read at once.
const ROWS: usize = 100;
/// How many rows one page may cost, however few of them are wanted.
const BUDGET: usize = 1_000;

/// A question of an agent, or of a program outside, as it stands.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Question {
    /// The thread that asks.
    pub key: ThreadKey,
    /// Whether an agent asks, or a program outside.
    pub asker: ThreadKind,
    /// The agent, or the workflow outside.
    pub workflow: String,
    /// The session, or the node of the workflow.
    pub node: String,
    /// The question.
    pub interrupt: Interrupt,
    /// What it shows.
    pub shown: InterruptView,
    /// The same as one text, for people; where a model asks in plain words, these words.
    pub text: String,
    /// How it stands. One that nobody answered in time counts as such from that moment on.
    pub status: InterruptStatus,
    /// How it was closed, once it is.
    pub closed: Option<Closed>,
}

/// How a question was closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed {
    /// What was decided; nothing where it was withdrawn, or nobody answered.
    pub decisions: Vec<Decided>,
    /// By whom.
    pub by: Actor,
    /// When.
    pub at: Timestamp,
}

/// Which questions are wanted.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// Only of this agent, or of this workflow.
    pub workflow: Option<String>,
    /// Only of this kind.
    pub kind: Option<InterruptKind>,
    /// Only those that stand so.
    pub status: Option<InterruptStatus>,
}

impl Wanted {
    fn is(&self, question: &Question) -> bool {
        self.is_of(&question.workflow)
            && self.kind.is_none_or(|kind| kind == question.interrupt.kind)
            && self.status.is_none_or(|status| status == question.status)
    }

    fn is_of(&self, workflow: &str) -> bool {
        let wanted = self.workflow.as_deref();
        wanted.is_none_or(|wanted| wanted == workflow)
    }

    /// Which indexes have what is wanted. Pending ones first: one that is closed in between is then seen twice, and not
    /// missed.
    fn indexes(&self) -> &'static [Index] {
        match self.status {
            None => &[Index::Pending, Index::Closed],
            // What is due and not closed yet is found among the pending ones.
            Some(InterruptStatus::Timeout) => &[Index::Pending, Index::Closed],
            Some(InterruptStatus::Pending) => &[Index::Pending],
            Some(
                InterruptStatus::Resolved | InterruptStatus::Rejected | InterruptStatus::Canceled,
            ) => &[Index::Closed],
        }
    }
}

impl Question {
    /// What is asked, where it is not about a call.
    #[must_use]
    pub fn prompt(&self) -> Option<&Prompt> {
        prompt_of(&self.interrupt)
    }

    /// What a person is told where this only asks whether a question that was found in a backup is asked anew.
    #[must_use]
    pub fn restored(&self) -> Option<&str> {
        let ask = self.interrupt.asks.first()?;
        let is_restored = matches!(ask.subject, Subject::Restored { .. });
        ask.description.as_deref().filter(|_| is_restored)
    }

    /// Shows no more what was held back: that was for whoever decided, and the journal has it.
    fn hide_held(&mut self) {
        let requests = &mut self.shown.value.action_requests;
        for (ask, request) in self.interrupt.asks.iter().zip(requests) {
            if let Subject::Output { .. } = ask.subject {
                request.preview = None;
            }
        }
    }

    /// The only decision, where there is one.
    #[must_use]
    pub fn decision(&self) -> Option<&Decision> {
        match self.closed.as_ref()?.decisions.as_slice() {
            [decided] => Some(&decided.decision),
            _ => None,
        }
    }
}

/// What a question asks that is not about a call.
pub(crate) fn prompt_of(interrupt: &Interrupt) -> Option<&Prompt> {
    interrupt.asks.iter().find_map(|ask| match &ask.subject {
        Subject::Question { prompt, .. } => Some(&**prompt),
        Subject::Action { .. }
        | Subject::Effect { .. }
        | Subject::Model
        | Subject::Node { .. }
        | Subject::Confirmation { .. }
        | Subject::Output { .. }
        | Subject::Restored { .. } => None,
    })
}

impl Engine {
    /// One question, however it stands.
    ///
    /// # Errors
    ///
    /// The store fails, or what it holds cannot be read.
    pub async fn question(&self, tenant: &str, id: InterruptId) -> Result<Option<Question>, Error> {
        // In this order: one that is closed in between is found by the second look.
        for index in [Index::Pending, Index::Closed] {
            let Some(row) = self.row_of(tenant, index, id).await? else {
                continue;
            };
            let key = ThreadKey {
                tenant: tenant.into(),
                thread: row.thread,
            };
            let found = if index == Index::Pending {
                let state = self.state(&key).await?;
                self.pending_in(&key, state.as_deref(), id).await?
            } else {
                let told = self.told(&key, |it| it == id).await?;
                told.into_iter().next()
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Where a question is asked, or was.
    ///
    /// # Errors
    ///
    /// The store fails.
    pub async fn find_question(
        &self,
        tenant: &str,
        id: InterruptId,
    ) -> Result<Option<ThreadKey>, Error> {
        for index in [Index::Pending, Index::Closed] {
            if let Some(row) = self.row_of(tenant, index, id).await? {
                let (tenant, thread) = (tenant.into(), row.thread);
                return Ok(Some(ThreadKey { tenant, thread }));
            }
        }
        Ok(None)
    }

    pub(crate) async fn row_of(
        &self,
        tenant: &str,
        index: Index,
        id: InterruptId,
    ) -> Result<Option<IndexRow>, Error> {
        let scan = Scan {
            index,
            key: Some(id.to_string()),
            up_to: None,
            direction: Direction::Forward,
            after: None,
            limit: 1,
        };
        Ok(self.store().scan(tenant, scan).await?.into_iter().next())
    }

    /// Questions of a tenant by age, from after this one on; more than `limit` where one look found more. With them, up to
    /// where was looked; nothing if there are no more.
    ///
    /// # Errors
    ///
    /// The store fails, or what it holds cannot be read.
    pub async fn questions(
        &self,
        tenant: &str,
        mut after: Option<InterruptId>,
        limit: usize,
        wanted: &Wanted,
    ) -> Result<(Vec<Question>, Option<InterruptId>), Error> {
        let mut found = Vec::new();
        let mut cost = 0;
        loop {
            let mut rows: BTreeMap<InterruptId, IndexRow> = BTreeMap::new();
            let mut looked_to: Option<InterruptId> = None;
            for index in wanted.indexes() {
                let scan = Scan {
                    index: *index,
                    key: None,
                    up_to: None,
                    direction: Direction::Forward,
                    after: after.map(|id| last_row(*index, id)),
                    limit: ROWS,
                };
                let scanned = self.store().scan(tenant, scan).await?;
                cost += scanned.len();
                let known = |row: IndexRow| Some((row.key.parse::<InterruptId>().ok()?, row));
                let full = scanned.len() == ROWS;
                let scanned: Vec<_> = scanned.into_iter().filter_map(known).collect();
                if let (true, Some((last, _))) = (full, scanned.last()) {
                    looked_to = Some(looked_to.map_or(*last, |to| to.min(*last)));
                }
                rows.extend(scanned);
            }
            rows.retain(|id, _| looked_to.is_none_or(|to| *id <= to));
            found.extend(self.shown_in(tenant, rows, wanted).await?);
            if looked_to.is_none() || found.len() > limit || cost >= BUDGET {
                return Ok((found, looked_to));
            }
            after = looked_to;
        }
    }

    /// Those of these rows that are wanted, by age.
    async fn shown_in(
        &self,
        tenant: &str,
        rows: BTreeMap<InterruptId, IndexRow>,
        wanted: &Wanted,
    ) -> Result<Vec<Question>, Error> {
        let threads: BTreeSet<ThreadId> = rows.values().map(|row| row.thread).collect();
        let threads: Vec<ThreadId> = threads.into_iter().collect();
        let tenant: Arc<str> = tenant.into();
        let heads = self.store().load_all(&tenant, &threads).await?;
        let mut found = Vec::new();
        for (thread, head) in threads.into_iter().zip(heads) {
            let Some(head) = head else { continue };
            let key = ThreadKey {
                tenant: Arc::clone(&tenant),
                thread,
            };
            let state = self.thread(&key, Some(&head))?.state;
            if !wanted.is_of(&state.agent) {
                continue;
            }
            let asked = rows.iter().filter(|(_, row)| row.thread == thread);
            let (mut open, mut over) = (Vec::new(), BTreeSet::new());
            for (id, _) in asked {
                if state.interrupts.contains_key(id) {
                    open.push(*id);
                } else {
                    over.insert(*id);
                }
            }
            for id in open {
                found.extend(self.pending_in(&key, Some(&state), id).await?);
            }
            // Those that were closed a moment ago are looked for, too, unless only what is pending is wanted.
            if !over.is_empty() && wanted.status != Some(InterruptStatus::Pending) {
                found.extend(self.told(&key, |id| over.contains(&id)).await?);
            }
        }
        found.retain(|question| wanted.is(question));
        found.sort_by_key(|question| question.interrupt.id);
        Ok(found)
    }

    /// A question that is pending in this state.
    async fn pending_in(
        &self,
        key: &ThreadKey,
        state: Option<&State>,
        id: InterruptId,
    ) -> Result<Option<Question>, Error> {
        let Some((state, interrupt)) =
            state.and_then(|state| Some((state, state.interrupts.get(&id)?)))
        else {
            return Ok(None);
        };
        let mut question = self.asked(key, state, interrupt).await?;
        let due = interrupt.due_at();
        if due.is_some_and(|due| due <= self.store().now()) {
            question.status = InterruptStatus::Timeout;
        }
        Ok(Some(question))
    }

    /// A question as it was asked in this state.
    async fn asked(
        &self,
        key: &ThreadKey,
        state: &State,
        interrupt: &Interrupt,
    ) -> Result<Question, Error> {
        let mut shown = InterruptView::new(state, interrupt);
        self.fill_previews(&key.tenant, state, std::slice::from_mut(&mut shown))
            .await?;
        Ok(Question {
            key: key.clone(),
            asker: state.kind,
            workflow: state.agent.clone(),
            node: state.session.clone(),
            shown,
            text: self.words(key, state, interrupt).await?,
            interrupt: interrupt.clone(),
            status: InterruptStatus::Pending,
            closed: None,
        })
    }

    /// Questions of a thread as its journal tells them, in the order they were asked.
    pub(crate) async fn told(
        &self,
        key: &ThreadKey,
        wanted: impl Fn(InterruptId) -> bool,
    ) -> Result<Vec<Question>, Error> {
        let journal = self.journal(key).await?;
        self.told_by(key, journal, wanted).await
    }

    /// Questions of a thread as this much of its journal tells them.
    pub(crate) async fn told_by(
        &self,
        key: &ThreadKey,
        journal: Vec<Entry>,
        wanted: impl Fn(InterruptId) -> bool,
    ) -> Result<Vec<Question>, Error> {
        let mut questions: Vec<Question> = Vec::new();
        let mut state = State::default();
        for entry in journal {
            fold(&mut state, &entry);
            if let Event::InterruptRaised(interrupt) = &entry.event {
                if wanted(interrupt.id) {
                    questions.push(self.asked(key, &state, interrupt).await?);
                }
                continue;
            }
            for question in &mut questions {
                let Some(closing) = closing(&entry, question.interrupt.id) else {
                    continue;
                };
                question.status = closing.status;
                question.closed = Some(Closed {
                    decisions: decisions_in(&entry.event),
                    by: closing.by,
                    at: entry.header.at,
                });
                question.hide_held();
            }
        }
        Ok(questions)
    }
}

fn decisions_in(event: &Event) -> Vec<Decided> {
    if let Event::Answered { decisions, .. } = event {
        return decisions.clone();
    }
    Vec::new()
}

/// Comes after every row of an interrupt, and before those of the next.
pub(crate) fn last_row(index: Index, id: InterruptId) -> IndexRow {
    IndexRow {
        index,
        key: id.to_string(),
        sort: i64::MAX,
        thread: ThreadId::from_bytes([u8::MAX; 16]),
    }
}

/// By when they were asked, then by id: how questions of one workflow are listed.
pub(crate) fn by_age(left: &Question, right: &Question) -> Ordering {
    let age = |it: &Question| (it.interrupt.asked_at, it.interrupt.id);
    age(left).cmp(&age(right))
}
