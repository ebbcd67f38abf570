//! Questions of programs outside: asked, waited for, listed.

use std::{collections::BTreeSet, time::Duration};

use holdpoint_core::{
    Command, Index, InterruptId, InterruptKind, InterruptStatus, OnTimeout, Prompt, Refusal, Span,
    ThreadId,
};
use holdpoint_store::{Direction, Scan, ThreadKey};
use holdpoint_tools::unanswerable;

use crate::{
    Engine, Error, Marked, Question, Request,
    driver::Standing,
    questions::{by_age, prompt_of},
};

/// A question of a program outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asking {
    /// The workflow that asks.
    pub workflow: String,
    /// The node of it.
    pub node: String,
    /// What kind of question it is.
    pub kind: InterruptKind,
    /// What is asked.
    pub prompt: Prompt,
    /// When it expires, and what happens then.
    pub expiry: Option<(Span, OnTimeout)>,
}

/// A question that was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Asked {
    /// The question.
    pub interrupt: InterruptId,
    /// Whether it was asked by this call.
    pub news: News,
}

/// Whether a question was asked before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News {
    /// It was not.
    New,
    /// The same question of the same node is pending, or was answered at the same checkpoint.
    Known,
    /// The same request came before.
    Replayed,
}

/// How often a question is looked at, where nothing tells us of a change.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

impl Engine {
    /// Asks. Where the same question of the same node is pending already, or was answered at the same checkpoint, that one
    /// is meant.
    ///
    /// # Errors
    ///
    /// Another question of that node is pending; nobody could answer this one; the store fails.
    pub async fn ask(&self, request: impl Into<Request>, asking: Asking) -> Result<Asked, Error> {
        let request = request.into();
        let on_timeout = asking.expiry.map(|(_, on_timeout)| on_timeout);
        if let Some(problem) = unanswerable(&asking.prompt, on_timeout.unwrap_or_default()) {
            return Err(Error::BadQuestion(problem));
        }
        let tenant = request.by.actor.tenant.clone();
        let thread = ThreadId::of_node(&tenant, &asking.workflow, &asking.node);
        let key = ThreadKey {
            tenant: tenant.as_str().into(),
            thread,
        };
        if let Some(mark) = &request.mark
            && let Some(marked) = self.marked(&tenant, mark).await?
        {
            return self.asked_by(&key, &marked).await;
        }
        if let Some(answered) = self.answered_at(&key, &asking).await? {
            return Ok(known(answered));
        }
        let (kind, digest) = (asking.kind, asking.prompt.digest());
        let order = request.order(Command::Ask {
            thread,
            tenant,
            workflow: asking.workflow,
            node: asking.node,
            kind,
            prompt: Box::new(asking.prompt),
            expiry: asking.expiry,
        });
        loop {
            let refusal = match self.append_open(&key, order.clone()).await {
                Ok(Standing { state, .. }) => {
                    let asked = state.interrupts.keys().next().copied();
                    return Ok(Asked {
                        interrupt: asked.ok_or(Refusal::RunOver)?,
                        news: News::New,
                    });
                }
                Err(Error::Replayed(marked)) => return self.asked_by(&key, &marked).await,
                Err(Error::Refused(refusal @ Refusal::InterruptPending { .. })) => refusal,
                Err(error) => return Err(error),
            };
            let state = self.state(&key).await?.unwrap_or_default();
            if state.due_at().is_some_and(|due| due <= self.store().now()) {
                self.tick(&key).await?.finish().await?;
                continue;
            }
            let same = state.interrupts.values().find(|interrupt| {
                let prompt = prompt_of(interrupt);
                interrupt.kind == kind && prompt.is_some_and(|it| it.digest() == digest)
            });
            let same = same.map(|same| same.id).ok_or(refusal)?;
            return match self.note(&order, &state).await {
                Ok(()) => Ok(known(same)),
                Err(Error::Replayed(marked)) => self.asked_by(&key, &marked).await,
                Err(error) => Err(error),
            };
        }
    }

    /// The question that a request asked when it came first.
    async fn asked_by(&self, key: &ThreadKey, marked: &Marked) -> Result<Asked, Error> {
        let mut told = self.told(key, |_| true).await?;
        told.retain(|question| Some(question.interrupt.run) == marked.run);
        let question = told.pop().filter(|_| marked.thread == key.thread);
        Ok(Asked {
            interrupt: question.ok_or(Refusal::NotFound)?.interrupt.id,
            news: News::Replayed,
        })
    }

    /// The same question, where the asking program says by its checkpoint that it asks once more what was answered.
    async fn answered_at(
        &self,
        key: &ThreadKey,
        asking: &Asking,
    ) -> Result<Option<InterruptId>, Error> {
        if asking.prompt.checkpoint_id.is_none() {
            return Ok(None);
        }
        let digest = asking.prompt.digest();
        let same = |it: &Question| {
            let prompt = it.prompt();
            it.interrupt.kind == asking.kind && prompt.is_some_and(|it| it.digest() == digest)
        };
        let told = self.told(key, |_| true).await?;
        let last = told.into_iter().rfind(same);
        let answered = last.filter(|last| match last.status {
            InterruptStatus::Resolved | InterruptStatus::Rejected => true,
            InterruptStatus::Pending | InterruptStatus::Timeout | InterruptStatus::Canceled => {
                false
            }
        });
        Ok(answered.map(|question| question.interrupt.id))
    }

    /// Waits until a question is closed. Dropping the future changes nothing.
    ///
    /// # Errors
    ///
    /// There is no such question; the store fails.
    pub async fn wait(&self, tenant: &str, interrupt: InterruptId) -> Result<Question, Error> {
        let mut foreign = self.store().foreign_changes();
        let mut told = None;
        loop {
            let Some(found) = self.question(tenant, interrupt).await? else {
                return Err(Refusal::NotPending { interrupt }.into());
            };
            if found.closed.is_some() {
                return Ok(found);
            }
            // Told first, then looked at: nothing is missed in between.
            let told = match &told {
                Some(told) => told,
                None => {
                    told = Some(self.register(&found.key));
                    continue;
                }
            };
            let now = self.store().now();
            let due = found.interrupt.due_at();
            if due.is_some_and(|due| due <= now) {
                self.tick(&found.key).await?.finish().await?;
                continue;
            }
            let rest = due.map_or(LOOK_AGAIN, |due| {
                Duration::from(due.since(now)).min(LOOK_AGAIN)
            });
            tokio::select! {
                _ = foreign.changed() => {}
                () = told.notified() => {}
                () = tokio::time::sleep(rest.max(Duration::from_millis(1))) => {}
            }
        }
    }

    /// The questions of a workflow, or of all, in the order they were asked.
    ///
    /// # Errors
    ///
    /// The store fails.
    pub async fn outside_of(
        &self,
        tenant: &str,
        workflow: Option<&str>,
    ) -> Result<Vec<Question>, Error> {
        let mut threads = BTreeSet::new();
        let mut after = None;
        loop {
            let scan = Scan {
                index: Index::Workflow,
                key: workflow.map(str::to_owned),
                up_to: None,
                direction: Direction::Forward,
                after,
                limit: 500,
            };
            let rows = self.store().scan(tenant, scan).await?;
            threads.extend(rows.iter().map(|row| row.thread));
            if rows.len() < 500 {
                break;
            }
            after = rows.last().cloned();
        }
        let mut all = Vec::new();
        for thread in threads {
            let key = ThreadKey {
                tenant: tenant.into(),
                thread,
            };
            all.extend(self.told(&key, |_| true).await?);
        }
        all.sort_by(by_age);
        Ok(all)
    }

    /// The questions of one node, in the order they were asked.
    ///
    /// # Errors
    ///
    /// The store fails.
    pub async fn outside_at(
        &self,
        tenant: &str,
        workflow: &str,
        node: &str,
    ) -> Result<Vec<Question>, Error> {
        let key = ThreadKey {
            tenant: tenant.into(),
            thread: ThreadId::of_node(tenant, workflow, node),
        };
        self.told(&key, |_| true).await
    }

    /// Takes a question back. Whoever waits for it is told.
    ///
    /// # Errors
    ///
    /// There is no such question, or it is closed; the store fails.
    pub async fn withdraw(
        &self,
        request: impl Into<Request>,
        interrupt: InterruptId,
    ) -> Result<News, Error> {
        let request = request.into();
        let tenant = &request.by.actor.tenant;
        let key = self.find_question(tenant, interrupt).await?;
        let key = key.ok_or(Refusal::NotFound)?;
        if let Some(mark) = &request.mark
            && self.marked(tenant, mark).await?.is_some()
        {
            return Ok(News::Replayed);
        }
        let order = request.order(Command::Withdraw { interrupt });
        match self.append_open(&key, order).await {
            Ok(_) => Ok(News::New),
            Err(Error::Replayed(_)) => Ok(News::Replayed),
            Err(Error::Refused(refusal)) => Err(self.explain(&key, refusal).await?),
            Err(error) => Err(error),
        }
    }
}

const fn known(interrupt: InterruptId) -> Asked {
    Asked {
        interrupt,
        news: News::Known,
    }
}
