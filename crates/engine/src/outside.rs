//! Questions of programs outside: asked, waited for, listed.

use std::{collections::BTreeSet, time::Duration};

use holdpoint_core::{
    Actor, Command, Decision, Entry, Event, Index, Interrupt, InterruptId, InterruptKind,
    InterruptStatus, OnTimeout, Principal, Prompt, Refusal, Span, Subject, ThreadId, ThreadKind,
    Timestamp,
};
use holdpoint_store::{Direction, Scan, ThreadKey};
use holdpoint_tools::unanswerable;

use crate::{
    Engine, Error,
    driver::{Order, Standing},
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

/// A question of a program outside, as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outside {
    /// The thread of this node's questions.
    pub key: ThreadKey,
    /// The workflow that asks.
    pub workflow: String,
    /// The node of it.
    pub node: String,
    /// The question.
    pub interrupt: Interrupt,
    /// How it stands.
    pub status: InterruptStatus,
    /// What was decided, by whom, and when it was closed.
    pub closed: Option<OutsideClosed>,
}

/// How a question was closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutsideClosed {
    /// The answer; `None` where there was none.
    pub decision: Option<Decision>,
    /// By whom.
    pub by: Actor,
    /// When.
    pub at: Timestamp,
}

/// How often a question is looked at, where nothing tells us of a change.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

impl Engine {
    /// Asks. Where the same question of the same node is pending already, that one is meant.
    ///
    /// # Errors
    ///
    /// Another question of that node is pending; nobody could answer this one; the store fails.
    pub async fn ask(&self, by: &Principal, asking: Asking) -> Result<InterruptId, Error> {
        let on_timeout = asking.expiry.map(|(_, on_timeout)| on_timeout);
        if let Some(problem) = unanswerable(&asking.prompt, on_timeout.unwrap_or_default()) {
            return Err(Error::BadQuestion(problem));
        }
        let tenant = &by.actor.tenant;
        let thread = ThreadId::of_node(tenant, &asking.workflow, &asking.node);
        let key = ThreadKey {
            tenant: tenant.as_str().into(),
            thread,
        };
        let (kind, digest) = (asking.kind, asking.prompt.digest());
        let command = Command::Ask {
            thread,
            tenant: tenant.clone(),
            workflow: asking.workflow,
            node: asking.node,
            kind: asking.kind,
            prompt: Box::new(asking.prompt),
            expiry: asking.expiry,
        };
        let order = Order::new(command, by.clone());
        let state = match self.append_open(&key, order).await {
            Ok(Standing { state, .. }) => state,
            Err(Error::Refused(refusal @ Refusal::InterruptPending { .. })) => {
                let state = self.state(&key).await?.unwrap_or_default();
                let same = state.interrupts.values().find(|interrupt| {
                    let prompt = prompt_of(interrupt);
                    interrupt.kind == kind && prompt.is_some_and(|it| it.digest() == digest)
                });
                return same.map(|same| same.id).ok_or_else(|| refusal.into());
            }
            Err(error) => return Err(error),
        };
        let asked = state.interrupts.keys().next().copied();
        asked.ok_or_else(|| Refusal::RunOver.into())
    }

    /// Waits until a question is closed. Dropping the future changes nothing.
    ///
    /// # Errors
    ///
    /// There is no such question; the store fails.
    pub async fn wait(&self, tenant: &str, interrupt: InterruptId) -> Result<Outside, Error> {
        let mut foreign = self.store().foreign_changes();
        let mut told = None;
        loop {
            let Some(found) = self.outside(tenant, interrupt).await? else {
                return Err(Refusal::NotPending { interrupt }.into());
            };
            if found.status != InterruptStatus::Pending {
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

    /// One question, however it stands.
    ///
    /// # Errors
    ///
    /// The store fails.
    pub async fn outside(
        &self,
        tenant: &str,
        interrupt: InterruptId,
    ) -> Result<Option<Outside>, Error> {
        for index in [Index::Pending, Index::Closed] {
            let scan = Scan {
                index,
                key: Some(interrupt.to_string()),
                up_to: None,
                direction: Direction::Forward,
                after: None,
                limit: 1,
            };
            if let Some(row) = self.store().scan(tenant, scan).await?.first() {
                let key = ThreadKey {
                    tenant: tenant.into(),
                    thread: row.thread,
                };
                let all = self.questions_of(&key).await?;
                return Ok(all.into_iter().find(|one| one.interrupt.id == interrupt));
            }
        }
        Ok(None)
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
    ) -> Result<Vec<Outside>, Error> {
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
            all.extend(self.questions_of(&key).await?);
        }
        all.sort_by_key(|one| (one.interrupt.asked_at, one.interrupt.id));
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
    ) -> Result<Vec<Outside>, Error> {
        let key = ThreadKey {
            tenant: tenant.into(),
            thread: ThreadId::of_node(tenant, workflow, node),
        };
        self.questions_of(&key).await
    }

    /// Takes a question back. Whoever waits for it is told.
    ///
    /// # Errors
    ///
    /// There is no such question, or it is closed; the store fails.
    pub async fn withdraw(&self, by: &Principal, interrupt: InterruptId) -> Result<(), Error> {
        let Some(found) = self.outside(&by.actor.tenant, interrupt).await? else {
            return Err(Refusal::NotFound.into());
        };
        let order = Order::new(Command::Withdraw { interrupt }, by.clone());
        match self.append_open(&found.key, order).await {
            Ok(_) => Ok(()),
            Err(Error::Refused(refusal)) => Err(self.explain(&found.key, refusal).await?),
            Err(error) => Err(error),
        }
    }

    /// All questions of one node, as its journal tells them; none of a thread of another kind.
    async fn questions_of(&self, key: &ThreadKey) -> Result<Vec<Outside>, Error> {
        let mut questions: Vec<Outside> = Vec::new();
        let (mut workflow, mut node) = (String::new(), String::new());
        for Entry { header, event, .. } in self.journal(key).await? {
            if let Event::ThreadCreated {
                agent,
                session,
                kind,
                ..
            } = event
            {
                if kind != ThreadKind::Outside {
                    break;
                }
                (workflow, node) = (agent, session);
            } else if let Event::InterruptRaised(interrupt) = event {
                questions.push(Outside {
                    key: key.clone(),
                    workflow: workflow.clone(),
                    node: node.clone(),
                    interrupt: *interrupt,
                    status: InterruptStatus::Pending,
                    closed: None,
                });
            } else if let Event::Answered {
                interrupt,
                status,
                decisions,
                ..
            } = event
            {
                let decision = decisions.into_iter().next().map(|decided| decided.decision);
                close(&mut questions, interrupt, status, decision, &header);
            } else if let Event::InterruptClosed {
                interrupt, status, ..
            } = event
            {
                close(&mut questions, interrupt, status, None, &header);
            }
        }
        Ok(questions)
    }
}

impl Outside {
    /// What is asked.
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
}

fn prompt_of(interrupt: &Interrupt) -> Option<&Prompt> {
    interrupt.asks.iter().find_map(|ask| match &ask.subject {
        Subject::Question { prompt, .. } => Some(&**prompt),
        Subject::Action { .. }
        | Subject::Effect { .. }
        | Subject::Model
        | Subject::Node { .. }
        | Subject::Confirmation { .. }
        | Subject::Restored { .. } => None,
    })
}

fn close(
    questions: &mut [Outside],
    interrupt: InterruptId,
    status: InterruptStatus,
    decision: Option<Decision>,
    header: &holdpoint_core::Header,
) {
    if let Some(one) = questions
        .iter_mut()
        .find(|one| one.interrupt.id == interrupt)
    {
        one.status = status;
        one.closed = Some(OutsideClosed {
            decision,
            by: header.by.clone(),
            at: header.at,
        });
    }
}
