//! The head: what is open in a thread, and nothing that only grows.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

use crate::{
    Action, ActionId, ActionStatus, Ask, Cause, Digest, FORMAT, Interrupt, InterruptId, Limits,
    Principal, RunId, RunOutcome, Span, Stop, ThreadId, Timestamp, Work, next,
};

/// Where a frame is: empty for the run's own agent, `task#2/act#1` for a subagent inside it.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FramePath(String);

impl FramePath {
    /// The run's own agent.
    #[must_use]
    pub const fn root() -> Self {
        Self(String::new())
    }

    /// Whether it is the run's own agent.
    #[must_use]
    pub const fn is_root(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for FramePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The fold of a thread's journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// The stored format's version.
    #[serde(rename = "v")]
    pub format: u16,
    /// The sequence of the last event; 0 before the first.
    pub version: u64,
    /// The last event's hash.
    pub hash: Digest,
    /// The last event's time. Time does not run backwards in a thread.
    pub now: Timestamp,
    /// The thread.
    pub thread: ThreadId,
    /// The tenant it belongs to.
    pub tenant: String,
    /// The agent it belongs to.
    pub agent: String,
    /// Its session.
    pub session: String,
    /// Grows with every change of plan.
    pub plan_version: u32,
    /// The current run, or the last one.
    pub run: Option<Run>,
    /// Actions that are not settled.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub actions: BTreeMap<ActionId, Action>,
    /// Questions that nobody has answered.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub interrupts: BTreeMap<InterruptId, Interrupt>,
}

/// A run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Its id.
    pub id: RunId,
    /// The definition it is pinned to.
    pub definition: Digest,
    /// Who asked for it.
    pub requester: Principal,
    /// When it began.
    pub started_at: Timestamp,
    /// Whether it is over.
    pub phase: Phase,
}

/// Whether a run is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Phase {
    /// It is not.
    Active(Active),
    /// It is.
    Ended(RunOutcome),
}

/// What only a run that is not over has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Active {
    /// Where it must stop.
    pub limits: Limits,
    /// Model turns taken.
    pub turns: u32,
    /// Calls asked for.
    pub calls: u32,
    /// Time spent working.
    pub worked: Span,
    /// Since when something is in flight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_since: Option<Timestamp>,
    /// Why it is being stopped, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Stop>,
    /// Its frames; the root is always there.
    pub frames: BTreeMap<FramePath, Frame>,
}

/// One level of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// What it is doing.
    pub phase: FramePhase,
    /// How often calls with these parameters were rejected, since one of them was last allowed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rejected: BTreeMap<Digest, u32>,
}

/// What a frame is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum FramePhase {
    /// Its model is to be called.
    Turn {
        /// How often that failed already.
        failures: u32,
        /// Not before this.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        not_before: Option<Timestamp>,
    },
    /// Its model is being called, or was when the driver died.
    Thinking {
        /// The how-manieth time.
        attempt: u32,
        /// By the driver with this epoch.
        epoch: u64,
    },
    /// Its model does not answer, and a person is asked.
    Stuck {
        /// What was seen last.
        error: String,
    },
    /// It waits until its actions are settled.
    Acting,
}

/// How a thread's run stands.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// Something is in flight or can go on.
    Running,
    /// It waits for someone.
    Waiting(Cause),
    /// It waits for a time.
    Sleeping,
    /// A user paused it.
    Paused,
    /// It is done.
    Finished,
    /// It could not go on.
    Failed,
    /// It was stopped.
    Cancelled,
}

impl Status {
    /// The name on the wire.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Waiting(_) => "waiting",
            Self::Sleeping => "sleeping",
            Self::Paused => "paused",
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

impl Default for State {
    fn default() -> Self {
        Self {
            format: FORMAT,
            version: 0,
            hash: Digest::default(),
            now: Timestamp::default(),
            thread: ThreadId::from_bytes([0; 16]),
            tenant: String::new(),
            agent: String::new(),
            session: String::new(),
            plan_version: 0,
            run: None,
            actions: BTreeMap::new(),
            interrupts: BTreeMap::new(),
        }
    }
}

impl State {
    /// The run, while it is not over.
    #[must_use]
    pub fn active(&self) -> Option<&Active> {
        match &self.run.as_ref()?.phase {
            Phase::Active(active) => Some(active),
            Phase::Ended(_) => None,
        }
    }

    pub(crate) fn active_mut(&mut self) -> Option<&mut Active> {
        match &mut self.run.as_mut()?.phase {
            Phase::Active(active) => Some(active),
            Phase::Ended(_) => None,
        }
    }

    /// What a question is about, in one word: the tool, or `model`.
    #[must_use]
    pub fn asked_name(&self, ask: &Ask) -> &str {
        self.actions
            .get(&ask.action_id)
            .map_or("model", |action| &action.tool.name)
    }

    /// Whether a stop was requested and the run is not over yet.
    #[must_use]
    pub fn stop(&self) -> Option<&Stop> {
        self.active().and_then(|active| active.stop.as_ref())
    }

    /// How the current or last run stands; `None` before the first.
    #[must_use]
    pub fn status(&self) -> Option<Status> {
        let run = self.run.as_ref()?;
        Some(match &run.phase {
            Phase::Ended(RunOutcome::Finished) => Status::Finished,
            Phase::Ended(RunOutcome::Failed { .. }) => Status::Failed,
            Phase::Ended(RunOutcome::Cancelled) => Status::Cancelled,
            Phase::Active(_) if !next(self).is_empty() => Status::Running,
            Phase::Active(_) => match self
                .interrupts
                .values()
                .min_by_key(|interrupt| interrupt.asked_at)
            {
                Some(interrupt) => Status::Waiting(interrupt.cause),
                None => Status::Running,
            },
        })
    }

    /// Whether a call to a model or a tool was made whose outcome is not recorded.
    #[must_use]
    pub fn in_flight(&self) -> bool {
        self.actions
            .values()
            .any(|action| matches!(action.status, ActionStatus::Started { .. }))
            || self.active().is_some_and(|active| {
                active
                    .frames
                    .values()
                    .any(|frame| matches!(frame.phase, FramePhase::Thinking { .. }))
            })
    }

    /// All that may go on now.
    #[must_use]
    pub fn work(&self) -> Vec<Work> {
        next(self)
    }
}
