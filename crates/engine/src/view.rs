//! How a thread is shown: the one object that every door prints, and its checkpoint.
//!
//! These are wire types. Doors translate them to their own spelling and add nothing.

use holdpoint_core::{
    Action, ActionStatus, Actor, Allowed, Artifact, Ask, Cause, Digest, Effect, FramePath,
    FramePhase, InputField, Interrupt, InterruptId, InterruptKind, Message, OnTimeout, Phase,
    Preview, Prompt, Role, RunId, RunOutcome, State, Status, Step, Stop, Subject, ThreadId,
    Timestamp, Transcript, Usage, call_lines, default_description,
};
use serde::Serialize;
use serde_json::Value;

/// A thread and its current or last run.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct RunView {
    /// The thread.
    pub thread_id: ThreadId,
    /// The run.
    pub run_id: Option<RunId>,
    /// The agent.
    pub agent: String,
    /// The session.
    pub session: String,
    /// How it stands.
    pub status: &'static str,
    /// Why it waits, or why it failed.
    pub cause: Option<String>,
    /// Whether it is being stopped.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cancel_requested: bool,
    /// Whether a user paused it: it stands still as soon as nothing is in flight.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub pause_requested: bool,
    /// Until when it sleeps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sleeps_until: Option<Timestamp>,
    /// Why it failed, for a person to read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What the model said last, once the run is finished.
    pub output: Option<String>,
    /// What the models of the run took so far; absent where nobody counts it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageView>,
    /// The conversation.
    pub messages: Vec<Message>,
    /// What is pending; absent when nothing is.
    #[serde(rename = "__interrupt__", skip_serializing_if = "Vec::is_empty")]
    pub interrupts: Vec<InterruptView>,
}

/// What models took.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct UsageView {
    /// Tokens read, those that were known already among them.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// Tokens read that a provider knew from before.
    pub cached_tokens: u64,
    /// What that cost in US dollars, as far as prices are configured; absent where none is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

impl UsageView {
    fn of(usage: Usage) -> Option<Self> {
        let cost = usage.cost_nano_usd;
        (!usage.is_zero()).then_some(Self {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cached_tokens: usage.cached_tokens,
            cost_usd: (cost > 0).then(|| cost as f64 / 1e9),
        })
    }
}

/// A pending interrupt.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct InterruptView {
    /// Its id.
    pub id: InterruptId,
    /// What kind of question it is.
    pub kind: InterruptKind,
    /// The subagents on the way to whoever asks, for instance `researcher#1/reader#2`; absent for the agent itself.
    #[serde(skip_serializing_if = "FramePath::is_root")]
    pub frame: FramePath,
    /// What is asked.
    pub value: RequestView,
    /// Why the run waits. Its door shows it once, with the run.
    #[serde(skip)]
    pub cause: Cause,
    /// When it expires.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// What happens then.
    #[serde(skip)]
    pub on_timeout: OnTimeout,
    /// The question it replaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supersedes: Option<InterruptId>,
    /// What has changed since that was asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<String>,
}

/// A pending interrupt, and where it is asked.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct PendingView {
    /// The thread.
    pub thread_id: ThreadId,
    /// The agent.
    pub agent: String,
    /// The session.
    pub session: String,
    /// The run, where it is one that asks.
    #[serde(skip)]
    pub run: Option<RunId>,
    /// What is asked.
    pub interrupt: InterruptView,
    /// The same as one text, for people.
    #[serde(skip)]
    pub text: String,
}

/// Some of the pending interrupts of a tenant.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct PendingPage {
    /// The oldest first. Fewer than were wanted if some were answered while the page was read.
    pub interrupts: Vec<PendingView>,
    /// After which one the next page begins; absent if this is the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<InterruptId>,
}

/// What an interrupt asks.
#[derive(Debug, Clone, Serialize)]
pub struct RequestView {
    /// What it is about, in order.
    pub action_requests: Vec<ActionRequest>,
    /// What may be said of each, in the same order.
    pub review_configs: Vec<ReviewConfig>,
    /// What a tool's own code, or a program outside, wants to know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<QuestionView>,
    /// The form to be filled in, where the model asks for a confirmation in plain words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<InputField>,
}

/// A question that is not about a call.
#[derive(Debug, Clone, Serialize)]
pub struct QuestionView {
    /// Its name within the call that asks.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// What is asked.
    #[serde(flatten)]
    pub prompt: Prompt,
}

/// One thing an interrupt asks about.
#[derive(Debug, Clone, Serialize)]
pub struct ActionRequest {
    /// What an answer may name instead of relying on order.
    pub action_id: holdpoint_core::ActionId,
    /// The tool.
    pub name: String,
    /// Its arguments.
    pub args: Value,
    /// What the person is told.
    pub description: String,
    /// What it would do, where its tool says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview: Option<Preview>,
}

/// What may be said of one thing that is asked about.
#[derive(Debug, Clone, Serialize)]
pub struct ReviewConfig {
    /// The tool.
    pub action_name: String,
    /// The decisions.
    pub allowed_decisions: Allowed,
    /// Whether what lets it run is taken by a token only.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub requires_token: bool,
}

impl RunView {
    /// Shows a thread.
    #[must_use]
    pub fn new(state: &State, transcript: &Transcript) -> Self {
        let status = state.status();
        let (cause, error) = match (&status, state.run.as_ref().map(|run| &run.phase)) {
            (Some(Status::Waiting(cause) | Status::Sleeping(Some(cause))), _) => {
                (Some(cause.as_str().to_owned()), None)
            }
            (_, Some(Phase::Ended(RunOutcome::Failed { code, message }))) => {
                (Some(code.clone()), Some(message.clone()))
            }
            (_, Some(Phase::Ended(RunOutcome::TimedOut))) => (Some("timeout".to_owned()), None),
            (Some(Status::Paused), _) => (Some(Cause::UserPause.as_str().to_owned()), None),
            (_, _) => (None, None),
        };
        let output = match status {
            Some(Status::Finished) => transcript.last_text().map(str::to_owned),
            _ => None,
        };
        Self {
            thread_id: state.thread,
            run_id: state.run.as_ref().map(|run| run.id),
            agent: state.agent.clone(),
            session: state.session.clone(),
            status: status.as_ref().map_or("new", Status::as_str),
            cause,
            cancel_requested: matches!(state.stop(), Some(Stop::Cancelled)),
            pause_requested: state.active().is_some_and(|active| active.paused),
            sleeps_until: state.sleeps_until(),
            error,
            output,
            usage: state.run.as_ref().and_then(|run| UsageView::of(run.usage)),
            messages: transcript.messages(),
            interrupts: state
                .interrupts
                .values()
                .map(|interrupt| InterruptView::new(state, interrupt))
                .collect(),
        }
    }
}

impl InterruptView {
    /// Shows a pending interrupt from what is stored, never from what the model said about it.
    #[must_use]
    pub fn new(state: &State, interrupt: &Interrupt) -> Self {
        let mut action_requests = Vec::with_capacity(interrupt.asks.len());
        let mut review_configs = Vec::with_capacity(interrupt.asks.len());
        let mut question = None;
        let mut form = Vec::new();
        for ask in &interrupt.asks {
            let action = state.actions.get(&ask.action_id);
            let name = state.asked_name(ask);
            let args = action.map_or_else(
                || Value::Object(serde_json::Map::new()),
                |action| action.params.to_value(),
            );
            if let Subject::Question {
                name: asked,
                prompt,
                ..
            } = &ask.subject
            {
                question = Some(QuestionView {
                    name: asked.clone(),
                    prompt: (**prompt).clone(),
                });
            }
            if let Subject::Confirmation { fields, .. } = &ask.subject {
                form.clone_from(fields);
            }
            let description = describe(ask, action);
            let allowed_decisions = ask.allowed.clone();
            review_configs.push(ReviewConfig {
                action_name: name.clone(),
                allowed_decisions,
                requires_token: state.requires_token(ask),
            });
            action_requests.push(ActionRequest {
                action_id: ask.action_id,
                name,
                args,
                description,
                preview: None,
            });
        }
        Self {
            id: interrupt.id,
            kind: interrupt.kind,
            frame: interrupt.frame.clone(),
            value: RequestView {
                action_requests,
                review_configs,
                question,
                fields: form,
            },
            cause: interrupt.cause,
            expires_at: interrupt.expires_at,
            on_timeout: interrupt.on_timeout,
            supersedes: interrupt.supersedes,
            changes: interrupt.changes.clone(),
        }
    }
}

/// All that a person is asked, as one text: what is said about each call, the call itself, and what has changed since the
/// question was asked before.
pub(crate) fn explain(state: &State, interrupt: &Interrupt) -> String {
    let mut parts = Vec::new();
    for ask in &interrupt.asks {
        let action = state.actions.get(&ask.action_id);
        let words = describe(ask, action);
        // Words that somebody wrote beforehand must not stand for what would really be done.
        let call = action.map(|it| call_lines(&it.tool.name, &it.params));
        let call = call.filter(|call| !words.contains(call.as_str()));
        parts.push(words);
        parts.extend(call);
    }
    if !interrupt.changes.is_empty() {
        let changes = interrupt.changes.join("\n- ");
        parts.push(format!("Changed since it was asked before:\n- {changes}"));
    }
    parts.join("\n\n")
}

fn describe(ask: &Ask, action: Option<&Action>) -> String {
    match (&ask.description, action) {
        (Some(description), _) => description.clone(),
        (None, Some(action)) => default_description(&action.tool.name, &action.params),
        (None, None) => "No description available".to_owned(),
    }
}

/// A position from which a run can go on, in the form of an engineering handbook's checkpoint.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Checkpoint {
    /// The version of this form.
    pub schema_version: u16,
    /// The position.
    pub checkpoint_id: String,
    /// The run.
    pub run_id: Option<RunId>,
    /// When the position was reached, in RFC 3339.
    pub created_at: String,
    /// Whether it goes on by itself: `running`, `interrupted`, `completed`, `failed`, `cancelled`, `manual_reconcile`.
    pub status: &'static str,
    /// Why it is interrupted.
    pub cause: Option<&'static str>,
    /// What the run is at.
    pub node: &'static str,
    /// The step it is at: the pending action, if there is one.
    pub current_step: Option<String>,
    /// The plan it follows.
    pub plan_version: u32,
    /// The tools whose calls are settled, in order.
    pub completed_steps: Vec<String>,
    /// The effects that are there.
    pub side_effects: Vec<SideEffect>,
    /// What waits for a decision.
    pub pending_action: Option<PendingAction>,
    /// Pending questions, as graph checkpointers list what was written for the next step: channel and value.
    pub pending_writes: Vec<(&'static str, RequestView)>,
    /// Effects whose outcome is not recorded.
    pub pending_side_effects: Vec<SideEffect>,
    /// Large results kept apart.
    pub artifact_refs: serde_json::Map<String, Value>,
    /// What the requester was permitted when the run began.
    pub permissions_snapshot: Vec<String>,
    /// Who asked for it.
    pub requester: Option<Actor>,
    /// What going on takes.
    pub resume_policy: &'static str,
    /// The chain up to here.
    pub hash: Digest,
}

/// An effect.
#[derive(Debug, Clone, Serialize)]
pub struct SideEffect {
    /// The tool.
    pub tool: String,
    /// The key it was made under.
    pub idempotency_key: String,
}

/// What waits for a decision.
#[derive(Debug, Clone, Serialize)]
pub struct PendingAction {
    /// The tool.
    pub tool: String,
    /// What would run.
    pub params_hash: Digest,
}

impl Checkpoint {
    /// The checkpoint at a thread's head. `created_at` is the head's time, spelt by the caller.
    #[must_use]
    pub fn new(state: &State, steps: &[Step], created_at: String) -> Self {
        let asked = state
            .interrupts
            .values()
            .flat_map(|interrupt| &interrupt.asks);
        let pending = asked
            .filter_map(|ask| state.actions.get(&ask.action_id))
            .next();
        let run = state.run.as_ref();
        let (status, cause, node, resume_policy) = standing(state);
        let effects = |step: &&Step| step.done && step.effect != Effect::Read;
        let unsettled = |action: &&Action| {
            action.role != Role::Compensation
                && matches!(
                    action.status,
                    ActionStatus::Started { .. }
                        | ActionStatus::Unknown { .. }
                        | ActionStatus::InDoubt { .. }
                        | ActionStatus::Undoing { .. }
                )
                && action.tool.effect != Effect::Read
        };
        Self {
            schema_version: 1,
            checkpoint_id: format!("ckpt_{}", state.version),
            run_id: run.map(|run| run.id),
            created_at,
            status,
            cause,
            node,
            current_step: pending.map(Action::shown_name),
            plan_version: state.plan_version,
            completed_steps: steps.iter().map(|step| step.tool.clone()).collect(),
            side_effects: steps
                .iter()
                .filter(effects)
                .map(|step| SideEffect {
                    tool: step.tool.clone(),
                    idempotency_key: step.key.clone(),
                })
                .collect(),
            pending_action: pending.map(|action| PendingAction {
                tool: action.tool.name.clone(),
                params_hash: action.params_hash,
            }),
            pending_writes: state
                .interrupts
                .values()
                .map(|interrupt| ("__interrupt__", InterruptView::new(state, interrupt).value))
                .collect(),
            pending_side_effects: state
                .actions
                .values()
                .filter(unsettled)
                .map(|action| SideEffect {
                    tool: action.shown_name(),
                    idempotency_key: action.idempotency_key(state.thread),
                })
                .collect(),
            artifact_refs: serde_json::Map::new(),
            permissions_snapshot: run.map_or_else(Vec::new, |run| {
                run.requester.permissions.iter().cloned().collect()
            }),
            requester: run.map(|run| run.requester.actor.clone()),
            resume_policy,
            hash: state.hash,
        }
    }

    /// With the results that are kept apart. Of several versions of one, it names the last.
    #[must_use]
    pub fn with_artifacts(mut self, artifacts: &[Artifact]) -> Self {
        let named = artifacts.iter().map(|it| {
            let address = &it.address;
            (address.name().to_owned(), address.to_string().into())
        });
        self.artifact_refs = named.collect();
        self
    }
}

/// Status, cause, node and resume policy in the handbook's words.
fn standing(
    state: &State,
) -> (
    &'static str,
    Option<&'static str>,
    &'static str,
    &'static str,
) {
    let goes_on = "recheck_permissions_then_continue";
    match state.run.as_ref().map(|run| &run.phase) {
        None => return ("running", None, "start", goes_on),
        Some(Phase::Ended(RunOutcome::Finished)) => return ("completed", None, "end", goes_on),
        Some(Phase::Ended(RunOutcome::Cancelled | RunOutcome::TimedOut)) => {
            return ("cancelled", None, "end", goes_on);
        }
        Some(Phase::Ended(_)) => return ("failed", None, "end", goes_on),
        Some(Phase::Active(_)) => {}
    }
    let cause = match state.status() {
        Some(Status::Waiting(cause)) => cause,
        Some(Status::Paused) => Cause::UserPause,
        Some(Status::Sleeping(cause)) => {
            return (
                "interrupted",
                cause.map(Cause::as_str),
                "sleep",
                "wait_event",
            );
        }
        _ => return ("running", None, node(state), goes_on),
    };
    let (status, node, policy) = match cause {
        Cause::WriteUnknown => ("manual_reconcile", "reconcile", "manual_reconcile"),
        Cause::HumanApproval => ("interrupted", "approval_wait", "after_human_approval"),
        Cause::ModelTimeout | Cause::ModelError | Cause::RateLimit | Cause::ToolFailure => {
            ("interrupted", "error_wait", "retry_from_step")
        }
        Cause::ExternalEvent => ("interrupted", "event_wait", "wait_event"),
        Cause::RequirementChange => ("interrupted", "plan", "new_plan_version"),
        Cause::HumanInput
        | Cause::Review
        | Cause::Breakpoint
        | Cause::UserPause
        | Cause::BudgetExhausted
        | Cause::SystemRestart => ("interrupted", "wait", goes_on),
    };
    (status, Some(cause.as_str()), node, policy)
}

fn node(state: &State) -> &'static str {
    let frames = state
        .active()
        .into_iter()
        .flat_map(|active| active.frames.values());
    let acting = frames
        .into_iter()
        .any(|frame| frame.phase == FramePhase::Acting);
    if acting { "tools" } else { "model" }
}
