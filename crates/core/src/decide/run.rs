//! Beginning, stopping and ending a run.

use super::{Draft, Supersede};
use crate::{
    Action, ActionId, ActionStatus, Active, Ask, Breakpoints, Digest, Doubt, Effect, Event,
    InterruptId, InterruptStatus, LimitKind, Limits, Refusal, Role, RunId, RunOutcome, State,
    Status, Stop, Subject, ThreadId, ThreadKind, confirm::UNANSWERED,
};

pub(super) struct Start {
    pub(super) thread: ThreadId,
    pub(super) tenant: String,
    pub(super) agent: String,
    pub(super) session: String,
    pub(super) definition: Digest,
    pub(super) input: String,
    pub(super) limits: Limits,
    pub(super) breakpoints: Breakpoints,
    pub(super) supersede: Supersede,
}

pub(super) fn start(draft: &mut Draft<'_>, start: Start) -> Result<(), Refusal> {
    let state = &draft.state;
    if state.version > 0 && (state.tenant != start.tenant || state.kind != ThreadKind::Agent) {
        return Err(Refusal::NotFound);
    }
    if is_superseded(state, start.supersede) && has_say(draft) {
        stop(draft, Stop::Cancelled);
        conclude(draft);
    }
    let state = &draft.state;
    if !state.interrupts.is_empty() {
        return Err(Refusal::InterruptPending {
            pending: state.interrupts.keys().copied().collect(),
        });
    }
    if state.active().is_some() || !state.actions.is_empty() {
        return Err(Refusal::RunActive);
    }
    let plan_version = state.plan_version + 1;
    if state.version == 0 {
        draft.emit(Event::ThreadCreated {
            thread: start.thread,
            tenant: start.tenant,
            agent: start.agent,
            session: start.session,
            kind: ThreadKind::Agent,
        });
    }
    draft.emit(Event::RunStarted {
        run: draft.context.seed.run_id(),
        definition: start.definition,
        input: start.input,
        plan_version,
        limits: start.limits,
        requester: draft.context.by.clone(),
        breakpoints: start.breakpoints,
    });
    Ok(())
}

/// Whether a run makes way for a new input. It stands still, so that nothing of it is in the air; and where an effect is
/// in doubt, a person must see to that first.
fn is_superseded(state: &State, supersede: Supersede) -> bool {
    let stands_still = matches!(state.status(), Some(Status::Waiting(_)));
    let mut asks = state.interrupts.values().flat_map(|it| &it.asks);
    stands_still
        && asks.all(|ask| match (&ask.subject, supersede) {
            (_, Supersede::Nothing) | (Subject::Effect { .. }, _) => false,
            (Subject::Model, _) | (_, Supersede::Waiting) => true,
            (_, Supersede::Failed) => false,
        })
}

/// The run that is active, and meant.
fn meant<'s>(draft: &'s Draft<'_>, run: Option<RunId>) -> Result<&'s Active, Refusal> {
    let state = &draft.state;
    if state.version > 0 && draft.context.by.actor.tenant != state.tenant {
        return Err(Refusal::NotFound);
    }
    let current = state.run.as_ref().map(|run| run.id);
    if run.is_some() && run != current {
        return Err(Refusal::RunOver);
    }
    let active = state.active().ok_or(Refusal::RunOver)?;
    if !has_say(draft) {
        let by = draft.context.by.actor.to_string();
        return Err(Refusal::Forbidden { by });
    }
    Ok(active)
}

/// Whether whoever commands may stop or hold this run: a question of somebody else's run is not for an agent to close.
fn has_say(draft: &Draft<'_>) -> bool {
    let by = &draft.context.by.actor;
    let run = draft.state.run.as_ref();
    by.may_decide() || run.is_none_or(|run| run.requester.actor == *by)
}

pub(super) fn cancel(draft: &mut Draft<'_>, run: Option<RunId>) -> Result<(), Refusal> {
    if meant(draft, run)?.stop.is_none() {
        stop(draft, Stop::Cancelled);
    }
    Ok(())
}

/// A user wants it to stand still, or to go on.
pub(super) fn pause(
    draft: &mut Draft<'_>,
    run: Option<RunId>,
    paused: bool,
) -> Result<(), Refusal> {
    let active = meant(draft, run)?;
    // Whoever paused it had a reason, and only people weigh it.
    if !paused && !draft.context.by.actor.may_decide() {
        let by = draft.context.by.actor.to_string();
        return Err(Refusal::Forbidden { by });
    }
    if active.stop.is_some() || draft.state.kind != ThreadKind::Agent {
        return Err(Refusal::RunOver);
    }
    if active.paused != paused {
        draft.emit(if paused {
            Event::Paused
        } else {
            Event::Continued
        });
    }
    Ok(())
}

/// What a model that asked in plain words is told where its question is closed without an answer.
pub(super) fn unanswered(state: &State, id: InterruptId) -> Option<String> {
    let asks = &state.interrupts.get(&id)?.asks;
    let asked = |ask: &Ask| matches!(ask.subject, Subject::Confirmation { .. });
    asks.iter().any(asked).then(|| UNANSWERED.to_owned())
}

/// From here on nothing starts. Questions about what has not happened yet are withdrawn; questions about effects stay.
pub(super) fn stop(draft: &mut Draft<'_>, stop: Stop) {
    // One append may hold several reasons; the first one counts.
    if draft.state.stop().is_some() {
        return;
    }
    let reason = match &stop {
        Stop::Cancelled => "the run was cancelled".to_owned(),
        Stop::TimedOut { interrupt } => format!("nobody answered {interrupt} in time"),
        Stop::Limit { .. } | Stop::Loop { .. } | Stop::ModelUnavailable { .. } => {
            "the run was stopped".to_owned()
        }
    };
    let about_effects = |subject: &Subject| matches!(subject, Subject::Effect { .. });
    let withdrawn: Vec<InterruptId> = draft
        .state
        .interrupts
        .values()
        .filter(|interrupt| !interrupt.asks.iter().any(|ask| about_effects(&ask.subject)))
        .map(|interrupt| interrupt.id)
        .collect();
    for interrupt in withdrawn {
        let status = InterruptStatus::Canceled;
        draft.emit(Event::InterruptClosed {
            interrupt,
            status,
            reason: reason.clone(),
            rejected: Vec::new(),
            says: unanswered(&draft.state, interrupt),
        });
    }
    let closed: Vec<ActionId> = draft
        .state
        .actions
        .values()
        .filter(|action| closes(&draft.state, action))
        .map(|action| action.id)
        .collect();
    draft.emit(Event::StopRequested { stop, closed });
}

/// Whether an action is closed because its run is being stopped.
fn closes(state: &State, action: &Action) -> bool {
    match action.status {
        // It closes with the last of its steps of which something is still to be found out.
        ActionStatus::Started { .. } if action.is_entered() => {
            state.steps_of(action.id).all(|step| closes(state, step))
        }
        ActionStatus::Held { .. } | ActionStatus::Waiting { .. } => true,
        ActionStatus::Ready { .. } => action.role != Role::Compensation,
        // A read is dropped where it is; whatever else was started is awaited.
        ActionStatus::Started { .. } => action.tool.effect == Effect::Read,
        ActionStatus::Unknown { .. }
        | ActionStatus::Unsettled { .. }
        | ActionStatus::InDoubt { .. }
        | ActionStatus::Undoing { .. } => false,
    }
}

/// Ends a run that is being stopped once nothing of it is open.
pub(super) fn conclude(draft: &mut Draft<'_>) {
    let reopened = |action: &crate::Action| action.doubt == Doubt::Reopened;
    if !draft.state.actions.values().all(reopened) {
        return;
    }
    let Some(stop) = draft.state.stop() else {
        return;
    };
    let failed = |code: &str, message: String| RunOutcome::Failed {
        code: code.to_owned(),
        message,
    };
    let outcome = match stop {
        Stop::Cancelled => RunOutcome::Cancelled,
        Stop::TimedOut { .. } => RunOutcome::TimedOut,
        Stop::Limit {
            limit: LimitKind::Turns,
        } => failed(
            "limit_turns",
            "the limit of model turns is reached".to_owned(),
        ),
        Stop::Limit {
            limit: LimitKind::Calls,
        } => failed(
            "limit_calls",
            "the limit of tool calls is reached".to_owned(),
        ),
        Stop::Limit {
            limit: LimitKind::Time,
        } => failed(
            "limit_time",
            "the limit of working time is reached".to_owned(),
        ),
        Stop::Loop { tool, rejections } => failed(
            "rejected_repeatedly",
            format!(
                "the model asked for the same call of `{tool}` {rejections} times and it was rejected each time"
            ),
        ),
        Stop::ModelUnavailable { error } => failed("model_unavailable", error.clone()),
    };
    draft.emit(Event::RunEnded { outcome });
}
