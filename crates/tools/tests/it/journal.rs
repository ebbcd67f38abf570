//! The other side of a stepped tool, in memory: it keeps a memo as a journal does, and writes down what happened.

use std::{
    collections::BTreeSet,
    future::pending,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use holdpoint_core::{
    ActionId, Actor, Allowed, Ask, Cause, Decided, Decision, Digest, Effect, Event, Finish,
    FramePath, Interrupt, InterruptId, InterruptKind, InterruptStatus, Memo, Memos, Outcome,
    Params, PrincipalKind, Prompt, Recalled, Seed, Subject, Suspension, Timestamp,
};
use holdpoint_tools::{Begun, StepRefused, Steps, Tool};
use serde_json::Value;
use tokio::sync::Notify;

use crate::bench::{PLENTY, block_on, call};

/// What one call of a stepped tool has behind it, over all its entries.
#[derive(Debug, Clone)]
pub(crate) struct Journal {
    action: ActionId,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug)]
struct Shared {
    seed: Seed,
    memos: Memos,
    asked: Option<InterruptId>,
    log: Vec<String>,
}

/// How an entry was left.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// By itself.
    Ended(Outcome),
    /// It waits, or nobody knows what became of a step: it was dropped.
    Dropped,
}

impl Journal {
    pub(crate) fn new() -> Self {
        let mut seed = Seed::new([7; 16], Timestamp::from_millis(1));
        Self {
            action: seed.action_id(),
            shared: Arc::new(Mutex::new(Shared {
                seed,
                memos: Memos::default(),
                asked: None,
                log: Vec::new(),
            })),
        }
    }

    /// The other side of one more entry.
    pub(crate) fn side(&self) -> Arc<Side> {
        Arc::new(Side {
            journal: self.clone(),
            memo: self.shared.lock().unwrap().memos.of(self.action),
            open: Mutex::default(),
            suspended: Mutex::default(),
            drop_it: Notify::new(),
            stopped: BTreeSet::new(),
            gate: Notify::new(),
        })
    }

    /// Enters a tool, and drops it when it waits.
    pub(crate) fn enter(&self, tool: &dyn Tool, args: &Params) -> Left {
        self.enter_for(tool, args, PLENTY)
    }

    pub(crate) fn enter_for(&self, tool: &dyn Tool, args: &Params, remaining: Duration) -> Left {
        block_on(self.side().follow(tool, args, remaining))
    }

    pub(crate) fn apply(&self, event: &Event) {
        self.shared.lock().unwrap().memos.apply(event);
    }

    pub(crate) fn note(&self, line: String) {
        self.shared.lock().unwrap().log.push(line);
    }

    /// What happened since it was last asked for.
    pub(crate) fn log(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.lock().unwrap().log)
    }

    /// Someone answers the open question.
    pub(crate) fn answer(&self, value: Value) {
        let interrupt = self.shared.lock().unwrap().asked.take().unwrap();
        self.apply(&Event::Answered {
            interrupt,
            status: InterruptStatus::Resolved,
            decisions: vec![Decided {
                action_id: self.action,
                decision: Decision::Answer { value },
                params_hash: None,
                grant: None,
                shown: None,
            }],
            roles: BTreeSet::new(),
            permissions: BTreeSet::new(),
            says: None,
            via: None,
        });
    }

    /// Nobody answers the open question.
    pub(crate) fn time_out(&self) {
        let interrupt = self.shared.lock().unwrap().asked.take().unwrap();
        self.apply(&Event::InterruptClosed {
            interrupt,
            status: InterruptStatus::Timeout,
            reason: String::new(),
            rejected: Vec::new(),
            says: None,
        });
    }

    pub(crate) fn wake(&self) {
        let action = self.action;
        self.apply(&Event::Woken { action });
    }

    /// A step that was done in an earlier entry.
    pub(crate) fn did(&self, name: &str, effect: Effect, args: &Params, result: &Value) {
        self.began(name, effect, args.clone());
        self.ended(
            name,
            Finish::Done {
                content: result.to_string(),
            },
        );
    }

    fn began(&self, name: &str, effect: Effect, params: Params) {
        self.apply(&Event::StepStarted {
            action: self.action,
            step: self.action.step(name),
            name: name.to_owned(),
            effect,
            params,
            attempt: 1,
            key: format!("key of {name}"),
            epoch: 7,
            deadline: Timestamp::default(),
        });
    }

    fn ended(&self, name: &str, outcome: Finish) {
        self.apply(&Event::ActionFinished {
            action: self.action.step(name),
            attempt: 1,
            outcome,
            artifact: None,
        });
    }

    fn ask(&self, name: &str, kind: InterruptKind, prompt: Box<Prompt>) {
        let mut shared = self.shared.lock().unwrap();
        let (id, action_id) = (shared.seed.interrupt_id(), shared.seed.action_id());
        shared.asked = Some(id);
        let interrupt = Interrupt {
            id,
            kind,
            cause: Cause::HumanApproval,
            run: shared.seed.run_id(),
            frame: FramePath::root(),
            asks: vec![Ask {
                action_id,
                subject: Subject::Question {
                    action: Some(self.action),
                    name: name.to_owned(),
                    prompt,
                },
                allowed: Allowed::standard(),
                description: None,
            }],
            plan_version: 1,
            definition: Digest::default(),
            requester: Actor {
                tenant: "t".to_owned(),
                name: "ann".to_owned(),
                kind: PrincipalKind::User,
            },
            asked_at: Timestamp::default(),
            expires_at: None,
            on_timeout: Default::default(),
            nonce: String::new(),
            supersedes: None,
            changes: Vec::new(),
        };
        shared.memos.apply(&Event::Suspended {
            action: self.action,
            name: name.to_owned(),
            interrupt: id,
        });
        shared
            .memos
            .apply(&Event::InterruptRaised(Box::new(interrupt)));
    }
}

/// The other side of one entry.
#[derive(Debug)]
pub(crate) struct Side {
    journal: Journal,
    memo: Memo,
    open: Mutex<BTreeSet<String>>,
    suspended: Mutex<Option<(String, Suspension)>>,
    drop_it: Notify,
    /// Steps that are not begun before the gate opens.
    pub(crate) stopped: BTreeSet<&'static str>,
    pub(crate) gate: Notify,
}

impl Side {
    /// Runs the entry as a driver does: it is dropped where it waits and no step of it is in flight.
    pub(crate) async fn follow(
        self: Arc<Self>,
        tool: &dyn Tool,
        args: &Params,
        remaining: Duration,
    ) -> Left {
        let entry = tool.enter(call(args, remaining), self.clone());
        tokio::select! {
            biased;
            () = self.drop_it.notified() => {}
            outcome = entry => return Left::Ended(outcome),
        }
        let suspended = self.suspended.lock().unwrap().take();
        match suspended {
            Some((name, Suspension::Question { kind, prompt, .. })) => {
                self.journal.ask(&name, kind, prompt);
            }
            Some((name, Suspension::Sleep { .. })) => self.journal.apply(&Event::Slept {
                action: self.journal.action,
                name,
                until: Timestamp::default(),
            }),
            None => {}
        }
        Left::Dropped
    }

    fn drop_if_idle(&self) {
        if self.suspended.lock().unwrap().is_some() && self.open.lock().unwrap().is_empty() {
            self.drop_it.notify_one();
        }
    }
}

#[async_trait]
impl Steps for Side {
    fn memo(&self) -> &Memo {
        &self.memo
    }

    async fn begin(&self, name: &str, effect: Effect, args: Params) -> Result<Begun, StepRefused> {
        let memo = self.memo.step(name, effect, &args);
        if let Some(end) = memo.map_err(|misnamed| StepRefused(misnamed.to_string()))? {
            self.journal.note(format!("ended {name}"));
            return Ok(Begun::Ended(end.clone()));
        }
        if self.stopped.contains(name) {
            self.journal.note(format!("stopped {name}"));
            self.gate.notified().await;
        }
        if !self.open.lock().unwrap().insert(name.to_owned()) {
            return Err(StepRefused(format!("a step `{name}` is open")));
        }
        // An append takes its time.
        tokio::task::yield_now().await;
        let class = format!("{effect:?}").to_lowercase();
        self.journal.note(format!("begin {name} {class} {args:?}"));
        self.journal.began(name, effect, args);
        Ok(Begun::Run {
            key: format!("key of {name}"),
        })
    }

    async fn end(&self, name: &str, outcome: Outcome) -> Result<(), StepRefused> {
        tokio::task::yield_now().await;
        if !self.open.lock().unwrap().remove(name) || name == "gone" {
            return Err(StepRefused("no such step is open".to_owned()));
        }
        let (what, text) = match &outcome {
            Outcome::Done { content } => ("done", content),
            Outcome::Failed { error } => ("failed", error),
            Outcome::Unknown { reason } => ("unknown", reason),
        };
        self.journal.note(format!("{what} {name}: {text}"));
        match outcome {
            Outcome::Done { content } => self.journal.ended(name, Finish::Done { content }),
            Outcome::Failed { error } => self.journal.ended(name, Finish::Failed { error }),
            Outcome::Unknown { .. } => self.drop_it.notify_one(),
        }
        self.drop_if_idle();
        Ok(())
    }

    async fn wait(&self, name: &str, on: Suspension) -> Result<Recalled, StepRefused> {
        tokio::task::yield_now().await;
        let there = match &on {
            Suspension::Question { prompt, .. } => self.memo.answer(name, prompt),
            Suspension::Sleep { .. } => self.memo.sleep(name),
        };
        match there.map_err(|misnamed| StepRefused(misnamed.to_string()))? {
            Some(there) => return Ok(there.clone()),
            None => self.journal.note(format!("wait {name} {on:?}")),
        }
        assert!(
            self.suspended.lock().unwrap().is_none(),
            "a second wait under way"
        );
        *self.suspended.lock().unwrap() = Some((name.to_owned(), on));
        self.drop_if_idle();
        pending().await
    }
}
