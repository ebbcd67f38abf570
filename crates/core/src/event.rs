//! What can happen to a thread. The journal is a list of these, and the only truth.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Action, ActionId, Artifact, Breakpoints, Decision, Digest, Effect, Flag, FramePath, Grant,
    GrantId, GrantUse, HeldReply, Hooks, Interrupt, InterruptId, InterruptStatus, Limits, Lookup,
    Outcome, Params, Principal, RunId, Shown, Span, State, ThreadId, ThreadKind, Timestamp,
    ToolCall, ToolFacts, ToolKind, Verdict, Via,
};

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// The thread began.
    ThreadCreated {
        /// The thread.
        thread: ThreadId,
        /// The tenant it belongs to.
        tenant: String,
        /// The agent it belongs to.
        agent: String,
        /// Its session, unique within tenant and agent.
        session: String,
        /// What it is for.
        #[serde(default, skip_serializing_if = "is_default")]
        kind: ThreadKind,
    },
    /// The thread goes on from where another one stood. What was said before is read there.
    Forked {
        /// The other thread.
        parent: ThreadId,
        /// The event after which it stood there.
        at: u64,
        /// The chain up to there.
        hash: Digest,
        /// How many threads the conversation goes through.
        depth: u32,
        /// What was open there, without what was asked and what was allowed.
        head: Box<State>,
    },
    /// The store was restored from a backup, and somebody adopted it. What came after the backup is not known here: what
    /// was allowed is not allowed any more, and nothing goes on until a person says so.
    Restored {
        /// When the backup was made.
        backup: Timestamp,
        /// The question that follows: whether the run goes on. Absent where it is being stopped or is over.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        interrupt: Option<InterruptId>,
        /// The calls that wait for that question, and are asked about anew if the run goes on. Whatever allowed them is void.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        held: Vec<ActionId>,
        /// The calls of which nobody knows whether they were made. A question about each follows.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        doubted: Vec<ActionId>,
    },
    /// A run began.
    RunStarted {
        /// The run.
        run: RunId,
        /// The definition it is pinned to.
        definition: Digest,
        /// What the user asked for.
        input: String,
        /// The plan it begins with.
        plan_version: u32,
        /// Where it must stop.
        limits: Limits,
        /// Who asked, with what they were permitted then.
        requester: Principal,
        /// Where it stops to be looked at.
        #[serde(default, skip_serializing_if = "Breakpoints::is_empty")]
        breakpoints: Breakpoints,
    },
    /// A model is about to be called.
    ModelStarted {
        /// For this frame.
        #[serde(default, skip_serializing_if = "FramePath::is_root")]
        frame: FramePath,
        /// The how-manieth time for this turn.
        #[serde(default = "first", skip_serializing_if = "is_first")]
        attempt: u32,
        /// By the driver with this epoch.
        epoch: u64,
    },
    /// A model answered. The message is now part of the transcript.
    ModelReplied {
        /// In this frame.
        #[serde(default, skip_serializing_if = "FramePath::is_root")]
        frame: FramePath,
        /// What it said.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        text: String,
        /// What it wants done.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<Called>,
        /// What it cost.
        #[serde(default, skip_serializing_if = "Usage::is_zero")]
        usage: Usage,
        /// Which model it was, by the reference under which the definition or its provider knows it.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        model: String,
        /// What that model wants to be given back together with this message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        carried: Option<Box<Carried>>,
    },
    /// A model answered, and guardrails want a person to look at it before anybody is told. The question follows.
    OutputHeld {
        /// In this frame.
        #[serde(default, skip_serializing_if = "FramePath::is_root")]
        frame: FramePath,
        /// What it answered. It is no part of a conversation unless a person lets it be said.
        reply: Box<HeldReply>,
        /// Why.
        flags: Vec<Flag>,
    },
    /// A model call failed or was lost.
    ModelFailed {
        /// In this frame.
        #[serde(default, skip_serializing_if = "FramePath::is_root")]
        frame: FramePath,
        /// The how-manieth time for this turn.
        #[serde(default = "first", skip_serializing_if = "is_first")]
        attempt: u32,
        /// What was seen.
        error: String,
        /// Whether its driver saw it, or died.
        #[serde(default, skip_serializing_if = "is_default")]
        seen: Seen,
        /// What follows.
        then: AfterModel,
    },
    /// A question was asked.
    InterruptRaised(Box<Interrupt>),
    /// A question was answered. The header says by whom.
    Answered {
        /// The question.
        interrupt: InterruptId,
        /// How it is closed by that.
        status: InterruptStatus,
        /// A decision for everything it asked about, in its order.
        decisions: Vec<Decided>,
        /// The roles that whoever answered had at that moment.
        #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
        roles: BTreeSet<String>,
        /// The permissions that whoever answered had at that moment.
        #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
        permissions: BTreeSet<String>,
        /// What the model is thereby told, where it asked in plain words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        says: Option<String>,
        /// The pass by which it was given, where it was given by one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        via: Option<Box<Via>>,
    },
    /// A question was closed without an answer.
    InterruptClosed {
        /// The question.
        interrupt: InterruptId,
        /// How.
        status: InterruptStatus,
        /// Why, for a person to read.
        reason: String,
        /// The calls that are thereby rejected, as by the system: nobody decided in time.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        rejected: Vec<ActionId>,
        /// What the model is thereby told, where it asked in plain words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        says: Option<String>,
    },
    /// A call is about to be made.
    ActionStarted {
        /// The action.
        action: ActionId,
        /// The how-manieth time.
        #[serde(default = "first", skip_serializing_if = "is_first")]
        attempt: u32,
        /// Under this key.
        key: String,
        /// By the driver with this epoch.
        epoch: u64,
        /// Until then at the latest. The tool's settle time comes on top.
        deadline: Timestamp,
    },
    /// A call was made and reported its outcome.
    ActionFinished {
        /// The action.
        action: ActionId,
        /// The how-manieth time.
        #[serde(default = "first", skip_serializing_if = "is_first")]
        attempt: u32,
        /// What it reported.
        outcome: Finish,
        /// What is kept of it apart, where it was too long for a conversation: then it is both ends of that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        artifact: Option<Box<Artifact>>,
    },
    /// A call was made, or may have been made, and its outcome is not known.
    ActionUnknown {
        /// The action.
        action: ActionId,
        /// The how-manieth time.
        #[serde(default = "first", skip_serializing_if = "is_first")]
        attempt: u32,
        /// What was seen.
        reason: String,
        /// Whether its driver saw it, or died.
        #[serde(default, skip_serializing_if = "is_default")]
        seen: Seen,
        /// What follows.
        then: AfterUnknown,
    },
    /// A call was recorded as about to be made, and then certainly not made. It is tried again.
    ActionWithheld {
        /// The action.
        action: ActionId,
        /// The how-manieth time.
        #[serde(default = "first", skip_serializing_if = "is_first")]
        attempt: u32,
        /// Why it was not made.
        reason: String,
        /// Not before then.
        retry_at: Timestamp,
    },
    /// The tool was asked what became of a call.
    ActionLookedUp {
        /// The action.
        action: ActionId,
        /// What it said.
        lookup: Lookup,
        /// What is kept of its receipt apart, where that was too long for a conversation: then it is both ends of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        artifact: Option<Box<Artifact>>,
        /// What follows.
        then: AfterLookup,
    },
    /// An outcome came after the action had been settled otherwise, or by a driver that had lost its lease.
    LateOutcome {
        /// The action.
        action: ActionId,
        /// The attempt it belongs to.
        #[serde(default = "first", skip_serializing_if = "is_first")]
        attempt: u32,
        /// What it reported.
        outcome: Outcome,
        /// What is kept of it apart, where it was too long for a conversation: then it is both ends of that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        artifact: Option<Box<Artifact>>,
        /// What follows.
        then: AfterLate,
    },
    /// What was about to run is not what was allowed. The action waits for the question that follows.
    WarrantVoided {
        /// The action.
        action: ActionId,
        /// The difference.
        reason: String,
        /// The question that follows.
        interrupt: InterruptId,
        /// What a person is shown of it now, where that has changed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shown: Option<Box<Shown>>,
    },
    /// The tool's own compensation is bound to an effect.
    CompensationBound {
        /// The action whose effect is undone.
        action: ActionId,
        /// The id of the compensating action.
        compensation: ActionId,
    },
    /// The definition changed under the run, which is now pinned to the new one.
    Repinned {
        /// The new definition.
        definition: Digest,
        /// The question that follows, for which these actions wait.
        interrupt: InterruptId,
        /// What that changes for open actions. Whatever allowed them before is void.
        actions: Vec<Restated>,
    },
    /// From here on nothing starts; what is in flight is awaited.
    StopRequested {
        /// Why.
        stop: Stop,
        /// The actions that are closed by it: nothing of them had started, or only a read.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        closed: Vec<ActionId>,
    },
    /// A user paused the run: what is in flight goes on, and nothing starts.
    Paused,
    /// A user let it go on.
    Continued,
    /// A subagent was given a task.
    FrameOpened {
        /// Its frame.
        frame: FramePath,
        /// The action that gave it.
        action: ActionId,
        /// The task.
        input: String,
    },
    /// A subagent has said its last word, which is the result of the action that gave it the task.
    FrameClosed {
        /// Its frame.
        frame: FramePath,
    },
    /// A stepped tool is about to take a step.
    StepStarted {
        /// The tool's action.
        action: ActionId,
        /// The step's own.
        step: ActionId,
        /// The step's name within the action.
        name: String,
        /// What repeating it would do.
        effect: Effect,
        /// What it is about to be done with.
        params: Params,
        /// The how-manieth time.
        #[serde(default = "first", skip_serializing_if = "is_first")]
        attempt: u32,
        /// Under this key.
        key: String,
        /// By the driver with this epoch.
        epoch: u64,
        /// Until then at the latest. The tool's settle time comes on top.
        deadline: Timestamp,
    },
    /// A stepped tool asks something, by the interrupt that follows, and is entered again with the answer.
    Suspended {
        /// The tool's action.
        action: ActionId,
        /// The question's name within the action.
        name: String,
        /// The question that follows.
        interrupt: InterruptId,
    },
    /// A stepped tool sleeps, and is entered again when it is woken.
    Slept {
        /// The tool's action.
        action: ActionId,
        /// The sleep's name within the action.
        name: String,
        /// Until when.
        until: Timestamp,
    },
    /// A frame whose model wanted to be left alone may call it again.
    FrameWoken {
        /// The frame.
        frame: FramePath,
    },
    /// A sleep is over.
    Woken {
        /// The tool's action.
        action: ActionId,
    },
    /// A stepped tool was left between two steps, because nothing may start now. It is entered again.
    Yielded {
        /// The tool's action.
        action: ActionId,
    },
    /// A grant that is wider than a thread is counted here from now on.
    GrantKept(Box<Grant>),
    /// A call of some thread passes by this grant.
    GrantUsed {
        /// The grant.
        grant: GrantId,
        /// The call.
        action: ActionId,
        /// Where.
        thread: ThreadId,
    },
    /// A grant was taken back.
    GrantRevoked {
        /// The grant.
        grant: GrantId,
    },
    /// The run is over.
    RunEnded {
        /// How.
        outcome: RunOutcome,
    },
}

impl Event {
    /// What it tells of that is kept apart.
    #[must_use]
    pub fn artifact(&self) -> Option<&Artifact> {
        if let Self::ActionFinished { artifact, .. }
        | Self::ActionLookedUp { artifact, .. }
        | Self::LateOutcome { artifact, .. } = self
        {
            artifact.as_deref()
        } else {
            None
        }
    }

    /// Its name on the wire.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::ThreadCreated { .. } => "thread_created",
            Self::Forked { .. } => "forked",
            Self::Restored { .. } => "restored",
            Self::RunStarted { .. } => "run_started",
            Self::ModelStarted { .. } => "model_started",
            Self::ModelReplied { .. } => "model_replied",
            Self::OutputHeld { .. } => "output_held",
            Self::ModelFailed { .. } => "model_failed",
            Self::InterruptRaised(_) => "interrupt_raised",
            Self::Answered { .. } => "answered",
            Self::InterruptClosed { .. } => "interrupt_closed",
            Self::ActionStarted { .. } => "action_started",
            Self::ActionFinished { .. } => "action_finished",
            Self::ActionUnknown { .. } => "action_unknown",
            Self::ActionWithheld { .. } => "action_withheld",
            Self::ActionLookedUp { .. } => "action_looked_up",
            Self::LateOutcome { .. } => "late_outcome",
            Self::WarrantVoided { .. } => "warrant_voided",
            Self::CompensationBound { .. } => "compensation_bound",
            Self::Repinned { .. } => "repinned",
            Self::StopRequested { .. } => "stop_requested",
            Self::Paused => "paused",
            Self::Continued => "continued",
            Self::FrameOpened { .. } => "frame_opened",
            Self::FrameClosed { .. } => "frame_closed",
            Self::StepStarted { .. } => "step_started",
            Self::Suspended { .. } => "suspended",
            Self::Slept { .. } => "slept",
            Self::FrameWoken { .. } => "frame_woken",
            Self::Woken { .. } => "woken",
            Self::Yielded { .. } => "yielded",
            Self::GrantKept(_) => "grant_kept",
            Self::GrantUsed { .. } => "grant_used",
            Self::GrantRevoked { .. } => "grant_revoked",
            Self::RunEnded { .. } => "run_ended",
        }
    }
}

/// One call of a model's turn, and what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Called {
    /// The call exactly as the model wrote it.
    pub call: ToolCall,
    /// What becomes of it.
    pub fate: Fate,
}

/// What becomes of a call that a model asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly every call is an action, and a turn has few calls"
)]
pub enum Fate {
    /// It is an action. Its parameters are the call's arguments in their canonical spelling.
    Action {
        /// The action's id.
        id: ActionId,
        /// Version of the tool.
        version: String,
        /// What repeating it would do.
        effect: Effect,
        /// How long one attempt may take.
        timeout: Span,
        /// How long after the deadline an effect may still appear.
        settle: Span,
        /// Its recovery hooks.
        #[serde(default, skip_serializing_if = "is_default")]
        hooks: Hooks,
        /// What the policy said.
        #[serde(default = "allowed", skip_serializing_if = "is_allowed")]
        verdict: Verdict,
        /// What a call of it is made of.
        #[serde(default, skip_serializing_if = "is_default")]
        kind: ToolKind,
        /// The rule that decided, where one did; or why it could not be told.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<String>,
        /// The grant that lets it pass without asking anybody.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        grant: Option<GrantUse>,
        /// What a person is shown of it beside its arguments.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shown: Option<Box<Shown>>,
        /// The question that follows, for which it waits: because it is asked about, or because it shares the turn with
        /// a call that is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        held_by: Option<InterruptId>,
    },
    /// It is not done, and the model is told why.
    Refused {
        /// What the model is told.
        message: String,
    },
}

// What is nearly always the same is not written, because a journal keeps it for ever.

const fn allowed() -> Verdict {
    Verdict::Allow
}

fn is_allowed(verdict: &Verdict) -> bool {
    *verdict == Verdict::Allow
}

const fn first() -> u32 {
    1
}

const fn is_first(attempt: &u32) -> bool {
    *attempt == 1
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// What model turns cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens read, those that were known already among them.
    #[serde(rename = "in")]
    pub input_tokens: u64,
    /// Tokens written.
    #[serde(rename = "out")]
    pub output_tokens: u64,
    /// Tokens read that the provider knew from before, and that cost less.
    #[serde(default, skip_serializing_if = "is_none")]
    pub cached_tokens: u64,
    /// What that cost in billionths of a US dollar, as far as prices are known here.
    #[serde(default, skip_serializing_if = "is_none")]
    pub cost_nano_usd: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives references")]
const fn is_none(number: &u64) -> bool {
    *number == 0
}

impl Usage {
    /// Whether nothing is known to have been used.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }

    /// Together with another one.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            cached_tokens: self.cached_tokens.saturating_add(other.cached_tokens),
            cost_nano_usd: self.cost_nano_usd.saturating_add(other.cost_nano_usd),
        }
    }
}

/// What a provider wants to be given back together with what its model said: reasoning that it has signed or encrypted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Carried {
    /// The model that said it, as a definition refers to it. Nobody else can make anything of it.
    pub by: String,
    /// What it is, as JSON text in the provider's own form.
    pub items: String,
}

/// Whether a call's end was seen by the driver that made it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Seen {
    /// It was.
    #[default]
    ByItsDriver,
    /// Its driver died before. The time until then does not count as work.
    ByAnother,
}

/// What follows when a model call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum AfterModel {
    /// It is tried again, not before this.
    RetryAt {
        /// When.
        at: Timestamp,
    },
    /// The provider wants to be left alone for a while. The run sleeps, and nobody drives it.
    SleepUntil {
        /// Until when.
        at: Timestamp,
    },
    /// A person is asked, by the interrupt that follows.
    Ask,
}

/// The decision about one thing that was asked about, with what it was about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    /// What was asked about.
    pub action_id: ActionId,
    /// What was decided.
    pub decision: Decision,
    /// The call that was decided on: for an edit the edited one. Absent where the question was not about a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params_hash: Option<Digest>,
    /// What was allowed for further calls by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<Box<Grant>>,
    /// What an edited call would do, as its tool says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<Box<Shown>>,
}

/// How a call that reported its outcome ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Finish {
    /// It did what it was asked to.
    Done {
        /// What the model gets.
        content: String,
    },
    /// It failed without effect.
    Failed {
        /// What the model gets.
        error: String,
    },
}

/// What follows when an outcome is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum AfterUnknown {
    /// It is tried again with the same key, not before this.
    RetryAt {
        /// When.
        at: Timestamp,
    },
    /// The tool is asked, not before this.
    LookUpAt {
        /// When.
        at: Timestamp,
    },
    /// A person is asked, by the interrupt that follows.
    Ask,
    /// It is given up: it had no effect worth asking about, and the model is told so.
    GiveUp,
}

/// What follows when a tool was asked what became of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum AfterLookup {
    /// It is done.
    Settled,
    /// It did not happen, and is tried again with the same key, not before this.
    RetryAt {
        /// When.
        at: Timestamp,
    },
    /// It did not happen, and will not.
    NotDone,
    /// The tool is asked again, not before this.
    LookUpAt {
        /// When.
        at: Timestamp,
    },
    /// A person is asked, by the interrupt that follows.
    Ask,
}

/// What follows from an outcome that came late.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum AfterLate {
    /// It agrees with what is known, or adds nothing: it is only recorded.
    Recorded,
    /// It settles the action.
    Settled,
    /// It says that an earlier attempt was done, while a later one is out: a person sees both once that one ends.
    Noted,
    /// It contradicts what was settled: the action is (again) open, and a person is asked by the interrupt that follows.
    Contradicts {
        /// The action as it is reopened.
        reopened: Box<Action>,
    },
}

/// What a new definition changes for an open action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restated {
    /// The action.
    pub action: ActionId,
    /// The tool as it is now; unchanged where the tool is gone.
    pub tool: ToolFacts,
    /// What will run.
    pub params_hash: Digest,
    /// The tighter of the old and the new verdict.
    pub verdict: Verdict,
}

/// Why a run is being stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Stop {
    /// Someone cancelled it.
    Cancelled,
    /// A limit was reached.
    Limit {
        /// Which one: `turns`, `calls` or `time`.
        limit: LimitKind,
    },
    /// The model keeps asking for a call that people keep rejecting.
    Loop {
        /// The tool.
        tool: String,
        /// How often it was rejected.
        rejections: u32,
    },
    /// Nobody answered in time.
    TimedOut {
        /// The question.
        interrupt: InterruptId,
    },
    /// A person gave up on it after its model did not answer.
    ModelUnavailable {
        /// What was seen last.
        error: String,
    },
}

/// The limits of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitKind {
    /// Model turns.
    Turns,
    /// Tool calls.
    Calls,
    /// Working time.
    Time,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunOutcome {
    /// The model said its last word.
    Finished,
    /// It could not go on.
    Failed {
        /// A stable code.
        code: String,
        /// For a person to read.
        message: String,
    },
    /// It was stopped.
    Cancelled,
    /// It was stopped, because nobody answered in time.
    TimedOut,
}

/// A result for the model from a value that a person or a lookup gave.
#[must_use]
pub fn content_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}
