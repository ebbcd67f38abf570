//! What can be asked of a thread.

use crate::{
    Action, ActionId, Answer, Digest, FramePath, InterruptId, Limits, Lookup, Outcome, Params,
    Span, ThreadId, ToolCall, ToolFacts, Usage, Verdict,
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
    },
    /// Stop the run.
    Cancel,
    /// A model is about to be called.
    StartModel {
        /// For this frame.
        frame: FramePath,
        /// By the driver with this epoch.
        epoch: u64,
    },
    /// A model answered.
    ModelReplied {
        /// In this frame.
        frame: FramePath,
        /// To this attempt.
        attempt: u32,
        /// What it said.
        text: String,
        /// What it wants done, judged by definition and policy.
        calls: Vec<JudgedCall>,
        /// What it cost.
        usage: Usage,
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
        /// What the journal says of the action, where it is no longer open.
        past: Option<Box<Past>>,
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
    },
    /// A person answers.
    Answer {
        /// Which question.
        interrupt: InterruptId,
        /// What they say.
        answer: Answer,
        /// Edited arguments that do not fit their tool's schema.
        misfits: Vec<(ActionId, String)>,
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
}

/// A call of a model's turn, judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgedCall {
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
