//! Why something may not happen. Nothing was changed by it.

use crate::{ActionId, Cause, Effect, InterruptId, Misfit};

/// Why a command was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// It is not there, or not for this principal to see.
    #[error("there is no such thread")]
    NotFound,
    /// A new input came while questions are pending.
    #[error("the thread waits for an answer to {}", list(.pending))]
    InterruptPending {
        /// What is pending.
        pending: Vec<InterruptId>,
    },
    /// A new input came while a run is active.
    #[error("the thread has a run that is not over")]
    RunActive,
    /// A thread was to begin that is there already.
    #[error("the session exists already; name another one")]
    ThreadExists,
    /// No thread can begin where this one stands.
    #[error("no fork can begin there: {0}; choose a checkpoint at which the run stands still")]
    NotForkable(&'static str),
    /// There is no run, or it is over.
    #[error("the run is over")]
    RunOver,
    /// The interrupt is not pending in this thread.
    #[error("interrupt `{interrupt}` is not pending")]
    NotPending {
        /// The interrupt.
        interrupt: InterruptId,
    },
    /// The answer names no question, and another one was answered a moment ago.
    #[error("another question was answered a moment ago, so it is not clear that this is meant for {}: name it", list(.pending))]
    JustAnswered {
        /// What is pending.
        pending: Vec<InterruptId>,
    },
    /// The interrupt expired.
    #[error("interrupt `{interrupt}` expired before it was answered")]
    Expired {
        /// The interrupt.
        interrupt: InterruptId,
    },
    /// The principal may not decide.
    #[error("{by} may not decide: an agent never decides, and stops no run but its own")]
    Forbidden {
        /// Who tried.
        by: String,
    },
    /// The principal lacks a permission.
    #[error("this takes the permission `{permission}`")]
    NotPermitted {
        /// The permission.
        permission: &'static str,
    },
    /// The token by which an answer is given is not for this.
    #[error("the token does not hold here: {why}")]
    BadPass {
        /// Why not.
        why: &'static str,
    },
    /// The token by which an answer is given does not hold any more.
    #[error("the token has expired: ask for a new one")]
    PassExpired,
    /// The policy wants a token for what the answer sets going.
    #[error(
        "`{tool}` runs only where it is approved by a token: ask for a token or a link, and answer by it"
    )]
    TokenRequired {
        /// What would run.
        tool: String,
    },
    /// Whoever asked for the run may not have this done any more.
    #[error(
        "{requester}, for whom `{tool}` would run, lacks the permission `{permission}` now: give it back, or reject the call"
    )]
    PermissionLost {
        /// What would run.
        tool: String,
        /// For whom.
        requester: String,
        /// What they lack.
        permission: String,
    },
    /// An answer by a token lets something run, and does not say that it was seen.
    #[error("`params_hash` is missing for `{action}`: an approval by a token says what was seen")]
    Unseen {
        /// The action.
        action: ActionId,
    },
    /// The answer does not fit the question.
    #[error("the answer does not fit the question: {0}")]
    Misfit(#[from] Misfit),
    /// The question was replaced, because what it asked about has changed.
    #[error("what `{old}` asked about has changed; it is asked again as `{new}`")]
    StaleQuestion {
        /// The question that was answered.
        old: InterruptId,
        /// The question that stands now.
        new: InterruptId,
    },
    /// The plan changed since the question was asked or the action was allowed.
    #[error("allowed under plan version {allowed}, but the plan is now at version {current}")]
    PlanVersionMismatch {
        /// The version it was allowed under.
        allowed: u32,
        /// The version now.
        current: u32,
    },
    /// The tool changed since the action was allowed.
    #[error("allowed for version `{allowed}` of the tool, which is now `{current}`")]
    ToolChanged {
        /// The version it was allowed for.
        allowed: String,
        /// The version now.
        current: String,
    },
    /// What would run is not what was allowed.
    #[error("approval parameters changed: `{action}` would not run what was allowed")]
    ParamsChanged {
        /// The action.
        action: ActionId,
    },
    /// A step of a tool would do more than the tool is declared to do.
    #[error("the step `{step}` is a `{}`, and its tool is declared as `{}` at most", .effect.as_str(), .declared.as_str())]
    BeyondItsTool {
        /// The step.
        step: String,
        /// What it would do.
        effect: Effect,
        /// What the tool does at most.
        declared: Effect,
    },
    /// The command speaks of something that is no longer so; whoever sent it looks again.
    #[error("out of date: {0}")]
    Stale(&'static str),
}

impl Refusal {
    /// The stable code that doors show.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NotFound => "not_found",
            Self::InterruptPending { .. } => "interrupt_pending",
            Self::RunActive => "run_active",
            Self::ThreadExists => "thread_exists",
            Self::NotForkable(_) => "not_forkable",
            Self::RunOver => "run_over",
            Self::NotPending { .. } => "not_pending",
            Self::JustAnswered { .. } => "just_answered",
            Self::Expired { .. } => "expired",
            Self::Forbidden { .. } => "forbidden",
            Self::NotPermitted { .. } => "forbidden",
            Self::BadPass { .. } => "bad_token",
            Self::PassExpired => "token_expired",
            Self::TokenRequired { .. } => "token_required",
            Self::PermissionLost { .. } => "permission_lost",
            Self::Unseen { .. } => "bad_answer",
            Self::Misfit(_) => "misfit",
            Self::StaleQuestion { .. } => "stale_question",
            Self::PlanVersionMismatch { .. } => "plan_version_mismatch",
            Self::ToolChanged { .. } => "tool_changed",
            Self::ParamsChanged { .. } => "params_changed",
            Self::BeyondItsTool { .. } => "beyond_its_tool",
            Self::Stale(_) => "stale",
        }
    }
}

fn list(ids: &[InterruptId]) -> String {
    ids.iter()
        .map(|id| format!("`{id}`"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// What a person is told when a run waits for this cause.
#[must_use]
pub const fn explain_cause(cause: Cause) -> &'static str {
    match cause {
        Cause::HumanApproval => "a person must allow an action",
        Cause::HumanInput => "a person must supply something",
        Cause::Review => "a person must look at something",
        Cause::Breakpoint => "a breakpoint was reached",
        Cause::UserPause => "a user paused it",
        Cause::ToolFailure => "a tool cannot be used",
        Cause::RateLimit => "a provider asked to wait",
        Cause::BudgetExhausted => "a budget is used up",
        Cause::ExternalEvent => "an outside event is awaited",
        Cause::ModelTimeout => "the model did not answer in time",
        Cause::ModelError => "the model failed or refused",
        Cause::WriteUnknown => "a write took effect, or may have, and a person must see to it",
        Cause::RequirementChange => "the request changed",
        Cause::SystemRestart => "it was restored from a backup",
    }
}
