//! Beginning, stopping and ending a run.

use super::Draft;
use crate::{
    ActionId, ActionStatus, Digest, Doubt, Effect, Event, InterruptId, InterruptStatus, LimitKind,
    Limits, Refusal, Role, RunOutcome, Stop, Subject, ThreadId,
};

pub(super) struct Start {
    pub(super) thread: ThreadId,
    pub(super) tenant: String,
    pub(super) agent: String,
    pub(super) session: String,
    pub(super) definition: Digest,
    pub(super) input: String,
    pub(super) limits: Limits,
}

pub(super) fn start(draft: &mut Draft<'_>, start: Start) -> Result<(), Refusal> {
    let state = &draft.state;
    if state.version > 0 && state.tenant != start.tenant {
        return Err(Refusal::NotFound);
    }
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
        });
    }
    draft.emit(Event::RunStarted {
        run: draft.context.seed.run_id(),
        definition: start.definition,
        input: start.input,
        plan_version,
        limits: start.limits,
        requester: draft.context.by.clone(),
    });
    Ok(())
}

pub(super) fn cancel(draft: &mut Draft<'_>) -> Result<(), Refusal> {
    if draft.state.version > 0 && draft.context.by.actor.tenant != draft.state.tenant {
        return Err(Refusal::NotFound);
    }
    let active = draft.state.active().ok_or(Refusal::RunOver)?;
    if active.stop.is_none() {
        stop(draft, Stop::Cancelled);
    }
    Ok(())
}

/// From here on nothing starts. Questions about what has not happened yet are withdrawn; questions about effects stay.
pub(super) fn stop(draft: &mut Draft<'_>, stop: Stop) {
    let reason = match &stop {
        Stop::Cancelled => "the run was cancelled".to_owned(),
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
        });
    }
    let closed: Vec<ActionId> = draft
        .state
        .actions
        .values()
        .filter(|action| match action.status {
            ActionStatus::Held { .. } => true,
            ActionStatus::Ready { .. } => action.role != Role::Compensation,
            // A read is dropped where it is; whatever else was started is awaited.
            ActionStatus::Started { .. } => action.tool.effect == Effect::Read,
            ActionStatus::Unknown { .. }
            | ActionStatus::Unsettled { .. }
            | ActionStatus::InDoubt { .. }
            | ActionStatus::Undoing { .. } => false,
        })
        .map(|action| action.id)
        .collect();
    draft.emit(Event::StopRequested { stop, closed });
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
