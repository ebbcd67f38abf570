//! What can be asked of a thread.

use crate::{
    Action, ActionId, Answer, Artifact, Bond, Breakpoints, Carried, Confirmation, Digest, Effect,
    Flag, FramePath, Grant, GrantId, GrantUse, HeldReply, InterruptId, InterruptKind,
    InterruptMode, Limits, Lookup, OnTimeout, Outcome, Params, Prompt, RunId, Shown, Span, State,
    ThreadId, Timestamp, ToolCall, ToolFacts, Usage, Verdict,
};

/// What can be asked of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Begin a run, and the thread if it is new.
    StartRun {
        /// The thread.
        thread: ThreadId,
        /// Its tenant.
        tenant: String,
        /// Its agent.
        agent: String,
        /// Its session.
        session: String,
        /// The definition to pin.
        definition: Digest,
        /// What the user asks for.
        input: String,
        /// Where the run must stop.
        limits: Limits,
        /// Where it stops to be looked at.
        breakpoints: Breakpoints,
        /// What a run that stands still is worth.
        supersede: Supersede,
    },
    /// Begin a thread where another one stands, or stood.
    Fork {
        /// The new thread.
        thread: ThreadId,
        /// Its session.
        session: String,
        /// The other one, as it was there.
        from: Box<State>,
    },
    /// A program outside asks something.
    Ask {
        /// The thread.
        thread: ThreadId,
        /// Its tenant.
        tenant: String,
        /// The workflow that asks.
        workflow: String,
        /// The node of it.
        node: String,
        /// What kind of question it is.
        kind: InterruptKind,
        /// What is asked.
        prompt: Box<Prompt>,
        /// When it expires, and what happens then.
        expiry: Option<(Span, OnTimeout)>,
    },
    /// A program outside no longer wants to know.
    Withdraw {
        /// What it asked.
        interrupt: InterruptId,
    },
    /// Stop the run.
    Cancel {
        /// Only this one; otherwise whichever is active.
        run: Option<RunId>,
    },
    /// Let nothing start until someone lets it go on.
    Pause {
        /// Only this one; otherwise whichever is active.
        run: Option<RunId>,
    },
    /// Let a paused run go on.
    Continue {
        /// Only this one; otherwise whichever is active.
        run: Option<RunId>,
    },
    /// Time has passed: do what is due.
    Tick,
    /// A stepped tool wants to take a step.
    BeginStep {
        /// Its action.
        action: ActionId,
        /// This attempt.
        attempt: u32,
        /// The step's name within the action.
        name: String,
        /// What repeating it would do.
        effect: Effect,
        /// What it is to be done with.
        params: Params,
        /// By the driver with this epoch.
        epoch: u64,
    },
    /// A stepped tool was left, and waits.
    Suspend {
        /// Its action.
        action: ActionId,
        /// This attempt.
        attempt: u32,
        /// The name of what it waits for, within the action.
        name: String,
        /// For what.
        on: Suspension,
    },
    /// A stepped tool was left between two steps, because nothing may start now.
    Yield {
        /// Its action.
        action: ActionId,
        /// This attempt.
        attempt: u32,
    },
    /// A call of some thread is to pass by this grant, which is wider than a thread.
    UseGrant {
        /// The thread in which its uses are counted.
        thread: ThreadId,
        /// The grant, as it was given.
        grant: Box<Grant>,
        /// The call.
        action: ActionId,
        /// Where.
        caller: ThreadId,
    },
    /// Take a grant back.
    RevokeGrant {
        /// The thread in which its uses are counted.
        thread: ThreadId,
        /// The grant, as it was given; `None` where it is one of the thread itself.
        given: Option<Box<Grant>>,
        /// The grant.
        grant: GrantId,
    },
    /// A model is about to be called.
    StartModel {
        /// For this frame.
        frame: FramePath,
        /// By the driver with this epoch.
        epoch: u64,
    },
    /// A model answered; or what it answered was held, and a person lets it be said.
    ModelReplied {
        /// In this frame.
        frame: FramePath,
        /// To this attempt.
        attempt: u32,
        /// What it said.
        text: String,
        /// What it wants done, judged by definition and policy.
        calls: Vec<JudgedCall>,
        /// How those that need a person are asked about.
        mode: InterruptMode,
        /// What it cost.
        usage: Usage,
        /// Which model it was.
        model: String,
        /// What that model wants to be given back together with this message.
        carried: Option<Box<Carried>>,
        /// How the agent recognises that it asks for a confirmation in plain words.
        confirm: Option<Box<Confirmation>>,
    },
    /// A model answered, and guardrails want a person to look at it before anybody is told.
    HoldOutput {
        /// In this frame.
        frame: FramePath,
        /// To this attempt.
        attempt: u32,
        /// What it answered.
        reply: Box<HeldReply>,
        /// Why; at least one.
        flags: Vec<Flag>,
    },
    /// A model call failed.
    ModelFailed {
        /// In this frame.
        frame: FramePath,
        /// This attempt.
        attempt: u32,
        /// How.
        trouble: ModelTrouble,
    },
    /// The driver that called the model died.
    ModelLost {
        /// In this frame.
        frame: FramePath,
        /// This attempt.
        attempt: u32,
    },
    /// A call is about to be made.
    StartAction {
        /// The action.
        action: ActionId,
        /// By the driver with this epoch.
        epoch: u64,
        /// What is about to be called, looked at again.
        proof: Proof,
    },
    /// A call ended.
    ActionEnded {
        /// The action.
        action: ActionId,
        /// This attempt.
        attempt: u32,
        /// How.
        outcome: Outcome,
        /// What is kept of it apart, where it was too long: the outcome has both ends of that.
        artifact: Option<Box<Artifact>>,
        /// What the journal says of the action, where it is no longer open.
        past: Option<Box<Past>>,
    },
    /// A call that is recorded as started was certainly not made, and could be made now.
    ActionWithheld {
        /// The action.
        action: ActionId,
        /// This attempt.
        attempt: u32,
        /// Why.
        reason: String,
    },
    /// A call that is recorded as started was certainly not made, because it would not do any more what was shown.
    ActionOutdated {
        /// The action.
        action: ActionId,
        /// This attempt.
        attempt: u32,
        /// What has changed, for a person to read.
        reason: String,
        /// What it would do now.
        shown: Box<Shown>,
    },
    /// The driver that made a call died, and deadline and settle time have passed.
    ActionOrphaned {
        /// The action.
        action: ActionId,
        /// This attempt.
        attempt: u32,
    },
    /// The tool was asked what became of a call.
    LookedUp {
        /// The action.
        action: ActionId,
        /// What it said.
        lookup: Lookup,
        /// What is kept of its receipt apart, where that was too long: the lookup has both ends of it.
        artifact: Option<Box<Artifact>>,
    },
    /// A person answers one question or several: all of these answers are taken, or none.
    Answer {
        /// The answers, each to another question.
        answers: Vec<Reply>,
    },
    /// The definition changed under open actions.
    Restate {
        /// The current definition.
        definition: Digest,
        /// The pending question that is thereby stale; `None` where the actions were allowed already.
        interrupt: Option<InterruptId>,
        /// The actions whose tool or policy changed.
        calls: Vec<RestatedCall>,
    },
    /// The thread was found in a backup that is being adopted: what came after is not known here. Asked twice for the same
    /// backup, it changes nothing more.
    Restore {
        /// When the backup was made.
        backup: Timestamp,
        /// The same, as people read it.
        spelt: String,
    },
}

/// What becomes of a run that stands still when a new input comes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Supersede {
    /// It stays, and the input is refused.
    #[default]
    Nothing,
    /// It is cancelled if it only waits because its model gave no answer.
    Failed,
    /// It is cancelled if it waits for people; but not while an effect is in doubt.
    Waiting,
}

/// What a stepped tool waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Suspension {
    /// An answer.
    Question {
        /// What kind of question it is.
        kind: InterruptKind,
        /// What is asked.
        prompt: Box<Prompt>,
        /// When it expires, and what happens then.
        expiry: Option<(Span, OnTimeout)>,
    },
    /// A time.
    Sleep {
        /// How long.
        time: Span,
    },
}

/// A person's answer to one question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The question.
    pub interrupt: InterruptId,
    /// What they say.
    pub answer: Answer,
    /// What of it does not fit a schema: edited arguments, or an input.
    pub misfits: Vec<(ActionId, String)>,
    /// The calls it is about whose requester lacks a permission by now, and which.
    pub lacking: Vec<(ActionId, String)>,
    /// What edited calls would do, as their tools say.
    pub shown: Vec<(ActionId, Shown)>,
    /// What it is bound to besides the question.
    pub bond: Bond,
}

/// A call of a model's turn, judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgedCall {
    /// The id it gets if it is an action.
    pub id: ActionId,
    /// The call as the model wrote it.
    pub call: ToolCall,
    /// What the definition and the policy say of it; an error is what the model is told.
    pub judged: Result<Judged, String>,
}

/// What the definition and the policy say of a call that could be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// The tool.
    pub tool: ToolFacts,
    /// The digest of its argument schema.
    pub schema: Digest,
    /// The arguments.
    pub params: Params,
    /// What the policy says.
    pub verdict: Verdict,
    /// The rule that decided, where one did.
    pub rule: Option<String>,
    /// A grant that is wider than the thread, of which a use is reserved for this call.
    pub reserved: Option<GrantUse>,
    /// What a person is shown of it beside its arguments.
    pub shown: Option<Box<Shown>>,
}

/// How a model call failed. All but a rejection may work later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelTrouble {
    /// It did not answer in time.
    TimedOut {
        /// What was seen.
        error: String,
    },
    /// It was asked too often.
    RateLimited {
        /// What was seen.
        error: String,
        /// How long the provider wants to be left alone, if it said so.
        retry_after: Option<Span>,
    },
    /// It could not be reached, or broke off.
    Unavailable {
        /// What was seen.
        error: String,
    },
    /// It will not answer this, however often it is asked.
    Rejected {
        /// What was seen.
        error: String,
    },
}

/// What is about to be called, found out immediately before the call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    /// The tool's version.
    pub tool_version: String,
    /// The digest of tool, version and the very bytes that will be sent.
    pub params_hash: Digest,
    /// Whether the grant that it passes by, if it is wider than the thread, still holds.
    pub granted: bool,
    /// A permission that the tool needs and the requester has not, or not any more.
    pub lacking: Option<String>,
}

/// What the journal says of an action that is no longer open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Past {
    /// The action as it last was.
    pub action: Action,
    /// How it was settled.
    pub settled: SettledAs,
}

/// How an action was settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettledAs {
    /// Its effect is there.
    Done,
    /// Its effect is not there.
    NotDone,
    /// Its effect was undone by its compensation.
    Undone,
}

/// What a new definition says of an open action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestatedCall {
    /// The action.
    pub action: ActionId,
    /// The tool now.
    pub tool: ToolNow,
    /// The differences, for a person to read; at least one.
    pub changes: Vec<String>,
}

/// A tool as the current definition has it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly every tool is still there, and few calls are restated at once"
)]
pub enum ToolNow {
    /// It is there.
    There {
        /// What it is.
        tool: ToolFacts,
        /// The digest of its argument schema.
        schema: Digest,
        /// What the policy says.
        verdict: Verdict,
        /// Whether the arguments still fit the schema.
        fits: bool,
    },
    /// It is gone.
    Gone,
}
