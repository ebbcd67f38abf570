//! The head: what is open in a thread, and nothing that only grows.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

use crate::{
    Action, ActionId, ActionStatus, Ask, Breakpoints, Cause, Digest, FORMAT, Grant, GrantId,
    Interrupt, InterruptId, Limits, Principal, Role, RunId, RunOutcome, Span, Stop, Subject,
    ThreadId, Timestamp, Usage, Work, next,
};

/// Where a frame is: empty for the run's own agent, `researcher#2/reader#1` for a subagent inside a subagent of it.
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

    /// The frame of this subagent, the `number`-th that is opened in this one.
    #[must_use]
    pub(crate) fn child(&self, subagent: &str, number: u32) -> Self {
        let between = if self.is_root() { "" } else { "/" };
        Self(format!("{}{between}{subagent}#{number}", self.0))
    }

    /// The frame that opened this one.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        if self.is_root() {
            return None;
        }
        let parent = self.0.rsplit_once('/').map_or("", |(parent, _)| parent);
        Some(Self(parent.to_owned()))
    }

    /// This frame, the one that opened it, and so on up to the run's own agent.
    pub(crate) fn ancestry(&self) -> impl Iterator<Item = Self> {
        std::iter::successors(Some(self.clone()), Self::parent)
    }

    /// The names of the subagents on the way to it.
    pub fn lineage(&self) -> impl Iterator<Item = &str> {
        let segments = self.0.split('/').filter(|segment| !segment.is_empty());
        segments.map(|segment| segment.rsplit_once('#').map_or(segment, |(name, _)| name))
    }

    /// How many subagents deep it is.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.lineage().count()
    }

    /// As it is written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
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
    /// What it is for.
    #[serde(default, skip_serializing_if = "ThreadKind::is_agent")]
    pub kind: ThreadKind,
    /// The tenant it belongs to.
    pub tenant: String,
    /// The agent it belongs to; for a question from outside, the workflow.
    pub agent: String,
    /// Its session; for a question from outside, the node.
    pub session: String,
    /// Where it began, if it is a fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked: Option<Origin>,
    /// When the backup was made that it was last restored from, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored: Option<Timestamp>,
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
    /// What people allowed once and for several calls.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub grants: BTreeMap<GrantId, Grant>,
}

/// Where a fork began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The thread that it goes on from.
    pub parent: ThreadId,
    /// The event after which.
    pub at: u64,
    /// The chain up to there.
    pub hash: Digest,
    /// How many threads its conversation goes through.
    pub depth: u32,
}

/// What a thread is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThreadKind {
    /// The runs of an agent.
    #[default]
    Agent,
    /// Questions that a program outside asks.
    Outside,
    /// The uses of a grant that is wider than a thread.
    Grant,
}

impl ThreadKind {
    const fn is_agent(&self) -> bool {
        matches!(self, Self::Agent)
    }
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
    /// What its model turns have cost.
    #[serde(default, skip_serializing_if = "Usage::is_zero")]
    pub usage: Usage,
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
    /// Whether a user paused it: nothing starts until one continues it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// When one of its questions was last answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered: Option<Timestamp>,
    /// Where it stops to be looked at.
    #[serde(default, skip_serializing_if = "Breakpoints::is_empty")]
    pub breakpoints: Breakpoints,
    /// Its frames; the root is always there.
    pub frames: BTreeMap<FramePath, Frame>,
}

impl Active {
    /// How often a call with these parameters was rejected in a frame and in those above it.
    pub(crate) fn rejections(&self, path: &FramePath, hash: Digest) -> u32 {
        let frames = path.ancestry().filter_map(|path| self.frames.get(&path));
        let counts = frames.filter_map(|frame| frame.rejected.get(&hash));
        counts.fold(0, |sum, count| sum.saturating_add(*count))
    }
}

/// One level of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// The definition in which its agent is found.
    pub definition: Digest,
    /// The action whose task it carries out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<ActionId>,
    /// How many frames were opened in it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub opened: u32,
    /// What it is doing.
    pub phase: FramePhase,
    /// How often its provider wanted to be left alone, since its model last answered.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rests: u32,
    /// How often calls with these parameters were rejected in it, since one of them was last allowed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rejected: BTreeMap<Digest, u32>,
}

const fn is_zero(number: &u32) -> bool {
    *number == 0
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
        /// The breakpoint before it was passed.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        passed: bool,
    },
    /// Its provider wants to be left alone: it sleeps until then, and nobody drives it.
    Resting {
        /// Until when.
        until: Timestamp,
        /// How often the call failed already.
        failures: u32,
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
    /// What its model said is held back, and a person is asked.
    Held {
        /// The try in which it was said.
        attempt: u32,
        /// The digest of the whole text.
        text: Digest,
    },
    /// A person lets what was held be said, which is about to happen.
    Cleared {
        /// The try in which it was said.
        attempt: u32,
        /// The digest of the text that they saw.
        text: Digest,
    },
    /// It waits until its actions are settled.
    Acting,
    /// Its model has said its last word.
    Done,
}

impl FramePhase {
    /// When it is to be woken, if it rests.
    pub(crate) const fn rests_until(&self) -> Option<Timestamp> {
        match self {
            Self::Resting { until, .. } => Some(*until),
            Self::Turn { .. }
            | Self::Thinking { .. }
            | Self::Stuck { .. }
            | Self::Held { .. }
            | Self::Cleared { .. }
            | Self::Acting
            | Self::Done => None,
        }
    }

    /// Its model is to be called, for the first time in this turn.
    pub(crate) const TURN: Self = Self::Turn {
        failures: 0,
        not_before: None,
        passed: false,
    };
}

/// How a thread's run stands.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// Something is in flight or can go on.
    Running,
    /// It waits for someone.
    Waiting(Cause),
    /// It waits for a time; why, where it is not a tool that wants to.
    Sleeping(Option<Cause>),
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
    /// All names on the wire.
    pub const NAMES: [&str; 7] = [
        "running",
        "waiting",
        "sleeping",
        "paused",
        "finished",
        "failed",
        "cancelled",
    ];

    /// The name on the wire.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Waiting(_) => "waiting",
            Self::Sleeping(_) => "sleeping",
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
            kind: ThreadKind::Agent,
            tenant: String::new(),
            agent: String::new(),
            session: String::new(),
            forked: None,
            restored: None,
            plan_version: 0,
            run: None,
            actions: BTreeMap::new(),
            interrupts: BTreeMap::new(),
            grants: BTreeMap::new(),
        }
    }
}

impl State {
    /// Whether an answer that names no question may still be meant for one that was answered a moment ago: a double click
    /// must not answer a question that nobody has seen.
    #[must_use]
    pub fn was_just_answered(&self, now: Timestamp) -> bool {
        const DOUBLE_CLICK: Span = Span::from_secs(1);
        let answered = self.active().and_then(|active| active.answered);
        answered.is_some_and(|at| now < at + DOUBLE_CLICK)
    }

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

    /// What a question is about, in one word: the tool (of a step `TOOL.STEP`), `model`, `confirmation` where the model asks in plain words,
    /// `output` where what it said is held back,
    /// `question` where a program outside asks, or `run` where it is whether a restored run goes on.
    #[must_use]
    pub fn asked_name(&self, ask: &Ask) -> String {
        let named = |action: &ActionId| self.actions.get(action).map(Action::shown_name);
        match &ask.subject {
            Subject::Node { node, .. } => node.clone(),
            Subject::Confirmation { .. } => "confirmation".to_owned(),
            Subject::Output { .. } => "output".to_owned(),
            Subject::Restored { .. } => "run".to_owned(),
            Subject::Question { action, .. } => action
                .as_ref()
                .and_then(named)
                .unwrap_or_else(|| "question".to_owned()),
            Subject::Action { .. } | Subject::Effect { .. } | Subject::Model => {
                named(&ask.action_id).unwrap_or_else(|| "model".to_owned())
            }
        }
    }

    /// Whether the policy wants a token for letting run what this is about. Steps are a part of their tool.
    #[must_use]
    pub fn requires_token(&self, ask: &Ask) -> bool {
        let asked = self.actions.get(&ask.action_id);
        asked.is_some_and(Action::requires_token)
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
            Phase::Ended(RunOutcome::Cancelled | RunOutcome::TimedOut) => Status::Cancelled,
            Phase::Active(_) if !next(self).is_empty() => Status::Running,
            Phase::Active(active) if active.paused && active.stop.is_none() => Status::Paused,
            Phase::Active(_) => match self
                .interrupts
                .values()
                .min_by_key(|interrupt| interrupt.asked_at)
            {
                Some(interrupt) => Status::Waiting(interrupt.cause),
                None if self.rests_until().is_some() => Status::Sleeping(Some(Cause::RateLimit)),
                None if self.sleeps_until().is_some() => Status::Sleeping(None),
                None => Status::Running,
            },
        })
    }

    /// Whether a frame stands at a breakpoint, or nobody said yet that its restored run goes on: nothing of it starts until
    /// that is answered.
    #[must_use]
    pub fn is_held(&self, frame: &FramePath) -> bool {
        let holds = |interrupt: &Interrupt| {
            let mut asks = interrupt.asks.iter();
            asks.any(|ask| match ask.subject {
                Subject::Restored { .. } => true,
                Subject::Node { .. } | Subject::Confirmation { .. } => interrupt.frame == *frame,
                Subject::Action { .. }
                | Subject::Effect { .. }
                | Subject::Model
                // Its frame says itself that it is held.
                | Subject::Output { .. }
                | Subject::Question { .. } => false,
            })
        };
        let mut interrupts = self.interrupts.values();
        interrupts.any(holds)
    }

    /// When the first of its sleeping actions, or of its frames that rest, is to be woken.
    #[must_use]
    pub fn sleeps_until(&self) -> Option<Timestamp> {
        let untils = self.actions.values().filter_map(Action::sleeps_until);
        untils.chain(self.rests_until()).min()
    }

    /// When the first frame is to be woken whose provider wanted to be left alone.
    fn rests_until(&self) -> Option<Timestamp> {
        let frames = self.active().into_iter().flat_map(|it| it.frames.values());
        frames.filter_map(|frame| frame.phase.rests_until()).min()
    }

    /// When something is due that nobody has to ask for: a question expires, or a sleep ends.
    #[must_use]
    pub fn due_at(&self) -> Option<Timestamp> {
        let expiries = self.interrupts.values().filter_map(Interrupt::due_at);
        expiries.chain(self.sleeps_until()).min()
    }

    /// The steps of an action that are open.
    pub fn steps_of(&self, action: ActionId) -> impl Iterator<Item = &Action> {
        self.actions
            .values()
            .filter(move |step| step.role == Role::Step && step.parent == Some(action))
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
