//! A person's answer, through the gates in their order.

use super::{Draft, MAX_REJECTIONS, effect, run};
use crate::{
    ActionId, Answer, Ask, Asked, Decided, Decision, DecisionKind, Digest, Event, FramePath,
    FramePhase, Interrupt, InterruptId, InterruptKind, Misfit, PrincipalKind, Refusal, State, Stop,
    Subject,
};

pub(super) fn answer(
    draft: &mut Draft<'_>,
    id: InterruptId,
    answer: &Answer,
    misfits: &[(ActionId, String)],
) -> Result<(), Refusal> {
    let state = &draft.state;
    let by = &draft.context.by.actor;
    if by.tenant != state.tenant {
        return Err(Refusal::NotFound);
    }
    let interrupt = state
        .interrupts
        .get(&id)
        .ok_or(Refusal::NotPending { interrupt: id })?;
    if interrupt.expires_at.is_some_and(|at| draft.now >= at) {
        return Err(Refusal::Expired { interrupt: id });
    }
    if by.kind == PrincipalKind::Agent {
        return Err(Refusal::Forbidden { by: by.to_string() });
    }
    let assigned = interrupt.assign(answer, state)?;
    let mut decisions = Vec::with_capacity(assigned.len());
    for (at, (ask, decision)) in assigned.into_iter().enumerate() {
        let params_hash = fit(state, at, ask, &decision, misfits)?;
        decisions.push(Decided {
            action_id: ask.action_id,
            decision,
            params_hash,
        });
    }
    // What runs nothing needs no proof that it is still what was shown.
    let running = decisions.iter().filter(|decided| runs(&decided.decision));
    let running: Vec<ActionId> = running.map(|decided| decided.action_id).collect();
    if !running.is_empty() && interrupt.plan_version != state.plan_version {
        return Err(Refusal::PlanVersionMismatch {
            allowed: interrupt.plan_version,
            current: state.plan_version,
        });
    }
    prove_unchanged(state, interrupt, &running)?;
    let (kind, frame) = (interrupt.kind, interrupt.frame.clone());
    let status = Interrupt::status_after(decisions.iter().map(|decided| &decided.decision));
    let rejected = rejections(state, &decisions);
    let (roles, permissions) = (
        draft.context.by.roles.clone(),
        draft.context.by.permissions.clone(),
    );
    draft.emit(Event::Answered {
        interrupt: id,
        status,
        decisions: decisions.clone(),
        roles,
        permissions,
    });
    for decided in &decisions {
        if decided.decision == Decision::Compensate {
            effect::compensate(draft, decided.action_id);
        }
    }
    if kind == InterruptKind::Error
        && let [
            Decided {
                decision: Decision::Reject { .. },
                params_hash: None,
                ..
            },
        ] = decisions.as_slice()
        && let Some(FramePhase::Stuck { error }) = draft
            .state
            .active()
            .and_then(|active| active.frames.get(&frame))
            .map(|frame| &frame.phase)
    {
        let error = error.clone();
        run::stop(draft, Stop::ModelUnavailable { error });
    }
    guard_against_loops(draft, rejected);
    Ok(())
}

/// Checks one decision against what it is about. Returns the digest of the call that is decided on.
fn fit(
    state: &State,
    at: usize,
    ask: &Ask,
    decision: &Decision,
    misfits: &[(ActionId, String)],
) -> Result<Option<Digest>, Misfit> {
    let params_hash = match &ask.subject {
        Subject::Model => return Ok(None),
        Subject::Effect { params_hash, .. } => return Ok(Some(*params_hash)),
        Subject::Action { params_hash, .. } => params_hash,
    };
    let Decision::Edit { edited_action } = decision else {
        return Ok(Some(*params_hash));
    };
    let asked = || Asked::new(state, at, ask);
    let Some(action) = state.actions.get(&ask.action_id) else {
        return Err(Misfit::NotOpen { action: asked() });
    };
    if edited_action.name != action.tool.name {
        return Err(Misfit::OtherTool {
            action: asked(),
            named: edited_action.name.clone(),
        });
    }
    if let Some((_, misfit)) = misfits.iter().find(|(id, _)| *id == ask.action_id) {
        return Err(Misfit::Arguments {
            action: asked(),
            problem: misfit.clone(),
        });
    }
    Ok(Some(
        edited_action
            .args
            .hash(&action.tool.name, &action.tool.version),
    ))
}

/// Whether a decision lets something run that the question showed.
const fn runs(decision: &Decision) -> bool {
    match decision {
        Decision::Approve | Decision::Edit { .. } => true,
        Decision::Reject { .. }
        | Decision::Respond { .. }
        | Decision::Committed { .. }
        | Decision::NotCommitted
        | Decision::Compensate => false,
    }
}

/// What the question shows must still be what would run.
fn prove_unchanged(
    state: &State,
    interrupt: &Interrupt,
    running: &[ActionId],
) -> Result<(), Refusal> {
    for ask in interrupt
        .asks
        .iter()
        .filter(|ask| running.contains(&ask.action_id))
    {
        let Subject::Action {
            tool_version,
            params_hash,
            ..
        } = &ask.subject
        else {
            continue;
        };
        let Some(action) = state.actions.get(&ask.action_id) else {
            return Err(Refusal::ParamsChanged {
                action: ask.action_id,
            });
        };
        if action.tool.version != *tool_version {
            let (allowed, current) = (tool_version.clone(), action.tool.version.clone());
            return Err(Refusal::ToolChanged { allowed, current });
        }
        let now = action.params.hash(&action.tool.name, &action.tool.version);
        if action.params_hash != *params_hash || now != *params_hash {
            return Err(Refusal::ParamsChanged {
                action: ask.action_id,
            });
        }
    }
    Ok(())
}

/// The calls that this answer rejects: where, which, and by what name.
fn rejections(state: &State, decisions: &[Decided]) -> Vec<(FramePath, Digest, String)> {
    let rejected = decisions
        .iter()
        .filter(|decided| decided.decision.kind() == DecisionKind::Reject);
    rejected
        .filter_map(|decided| state.actions.get(&decided.action_id))
        .map(|action| {
            (
                action.frame.clone(),
                action.params_hash,
                action.tool.name.clone(),
            )
        })
        .collect()
}

/// A model that keeps asking for what people keep rejecting is stopped.
fn guard_against_loops(draft: &mut Draft<'_>, rejected: Vec<(FramePath, Digest, String)>) {
    for (frame, hash, tool) in rejected {
        let Some(active) = draft.state.active().filter(|active| active.stop.is_none()) else {
            return;
        };
        let count = active
            .frames
            .get(&frame)
            .and_then(|frame| frame.rejected.get(&hash))
            .copied()
            .unwrap_or(0);
        if count >= MAX_REJECTIONS {
            run::stop(
                draft,
                Stop::Loop {
                    tool,
                    rejections: count,
                },
            );
        }
    }
}
