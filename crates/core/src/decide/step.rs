//! Stepped tools: taking steps, asking, sleeping.

use super::{Draft, Suspension, outside, outside::Posed, run};
use crate::{
    Action, ActionId, ActionStatus, Effect, Event, LimitKind, Params, Refusal, Stop, Timestamp,
    next::may_start,
};

/// A step that a tool wants to take.
pub(super) struct Wish {
    pub(super) name: String,
    pub(super) effect: Effect,
    pub(super) params: Params,
}

/// The call whose code speaks, as long as this attempt at it is the one in flight.
fn entered<'d>(
    draft: &'d Draft<'_>,
    id: ActionId,
    attempt: u32,
) -> Result<(&'d Action, Timestamp), Refusal> {
    let Some(action) = draft.state.actions.get(&id) else {
        return Err(Refusal::Stale("the action is settled"));
    };
    match action.status {
        ActionStatus::Started { deadline, .. }
            if action.attempts == attempt && action.is_entered() =>
        {
            Ok((action, deadline))
        }
        ActionStatus::Held { .. }
        | ActionStatus::Ready { .. }
        | ActionStatus::Started { .. }
        | ActionStatus::Unknown { .. }
        | ActionStatus::Unsettled { .. }
        | ActionStatus::InDoubt { .. }
        | ActionStatus::Waiting { .. }
        | ActionStatus::Undoing { .. } => {
            Err(Refusal::Stale("the tool is not entered by this attempt"))
        }
    }
}

pub(super) fn begin(
    draft: &mut Draft<'_>,
    id: ActionId,
    attempt: u32,
    wish: Wish,
    epoch: u64,
) -> Result<(), Refusal> {
    let (call, deadline) = entered(draft, id, attempt)?;
    let active = draft.state.active().ok_or(Refusal::RunOver)?;
    if !may_start(&draft.state, &call.frame) {
        return Err(Refusal::Stale("nothing may start now"));
    }
    if wish.effect > call.tool.effect {
        return Err(Refusal::BeyondItsTool {
            step: wish.name,
            effect: wish.effect,
            declared: call.tool.effect,
        });
    }
    let step = id.step(&wish.name);
    let before = draft.state.actions.get(&step);
    // Taking it again is no further call.
    let too_many = before.is_none() && active.calls >= active.limits.calls;
    let limit = if active.worked >= active.limits.time {
        Some(LimitKind::Time)
    } else {
        too_many.then_some(LimitKind::Calls)
    };
    if let Some(limit) = limit {
        run::stop(draft, Stop::Limit { limit });
        return Ok(());
    }
    if let Some(before) = before {
        if !matches!(before.status, ActionStatus::Ready { .. }) {
            return Err(Refusal::Stale("a step of this name is open"));
        }
        // By its parameters and not by their digest: the tool may have been approved anew in another version.
        if before.params != wish.params || before.tool.effect != wish.effect {
            return Err(Refusal::Stale("a step of this name was begun otherwise"));
        }
        if before.not_before().is_some_and(|at| draft.now < at) {
            return Err(Refusal::Stale("the step may not be taken again yet"));
        }
    }
    let attempt = before.map_or(0, |before| before.attempts) + 1;
    let mut action = call.clone();
    action.id = step;
    action.version = 1;
    let key = action.idempotency_key(draft.state.thread);
    draft.emit(Event::StepStarted {
        action: id,
        step,
        name: wish.name,
        effect: wish.effect,
        params: wish.params,
        attempt,
        key,
        epoch,
        deadline,
    });
    Ok(())
}

pub(super) fn suspend(
    draft: &mut Draft<'_>,
    id: ActionId,
    attempt: u32,
    name: String,
    on: Suspension,
) -> Result<(), Refusal> {
    let frame = entered(draft, id, attempt)?.0.frame.clone();
    let in_flight = |step: &Action| matches!(step.status, ActionStatus::Started { .. });
    if draft.state.steps_of(id).any(in_flight) {
        return Err(Refusal::Stale("a step of it is in flight"));
    }
    if draft.state.stop().is_some() {
        return Err(Refusal::Stale("the run is being stopped"));
    }
    match on {
        Suspension::Sleep { time } => {
            let until = draft.now + time;
            draft.emit(Event::Slept {
                action: id,
                name,
                until,
            });
        }
        Suspension::Question {
            kind,
            prompt,
            expiry,
        } => {
            let interrupt = draft.context.seed.interrupt_id();
            draft.emit(Event::Suspended {
                action: id,
                name: name.clone(),
                interrupt,
            });
            let posed = Posed {
                id: interrupt,
                kind,
                frame,
                action: Some(id),
                name,
                prompt,
            };
            outside::pose(draft, posed, expiry);
        }
    }
    Ok(())
}

/// Nothing may start now: the tool is left between two steps, and entered again later.
pub(super) fn give_way(draft: &mut Draft<'_>, id: ActionId, attempt: u32) -> Result<(), Refusal> {
    entered(draft, id, attempt)?;
    let in_flight = |step: &Action| matches!(step.status, ActionStatus::Started { .. });
    if draft.state.steps_of(id).any(in_flight) {
        return Err(Refusal::Stale("a step of it is in flight"));
    }
    draft.emit(Event::Yielded { action: id });
    Ok(())
}
