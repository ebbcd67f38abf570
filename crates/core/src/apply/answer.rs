//! What an answer changes: for calls that wait, and for effects that are in doubt.

use super::{
    set_phase,
    settle::{close, close_done, is_wanted, make_ready, settle_frames, unsettle},
};
use crate::{
    Action, ActionStatus, Actor, Decided, Decision, FramePhase, InterruptId, Role, State, Subject,
    Timestamp, Verdict, Warrant, WarrantFrom,
};

/// How many rejected calls a frame remembers; bounds the head.
const MAX_REMEMBERED_REJECTIONS: usize = 32;

pub(super) fn answered(
    state: &mut State,
    at: Timestamp,
    by: &Actor,
    id: InterruptId,
    decisions: &[Decided],
) {
    let Some(interrupt) = state.interrupts.remove(&id) else {
        return;
    };
    let plan_version = state.plan_version;
    let person = WarrantFrom::Person {
        interrupt: id,
        by: by.clone(),
        at,
    };
    for (ask, decided) in interrupt.asks.iter().zip(decisions) {
        match &ask.subject {
            Subject::Model => {
                if decided.decision == Decision::Approve {
                    set_phase(
                        state,
                        &interrupt.frame,
                        FramePhase::Turn {
                            failures: 0,
                            not_before: None,
                        },
                    );
                }
            }
            Subject::Action { .. } => decide_action(state, &person, plan_version, decided),
            Subject::Effect { .. } => decide_effect(state, decided),
        }
    }
    // What only shared the turn with something that was asked about may go on now.
    let warrant = |action: &Action| Warrant {
        from: WarrantFrom::Policy,
        params_hash: action.params_hash,
        tool_version: action.tool.version.clone(),
        plan_version,
    };
    for action in state.actions.values_mut() {
        if action.status == (ActionStatus::Held { interrupt: id })
            && action.verdict == Verdict::Allow
        {
            action.status = ActionStatus::Ready {
                warrant: warrant(action),
                not_before: None,
            };
        }
    }
    settle_frames(state);
}

pub(super) fn decide_action(
    state: &mut State,
    person: &WarrantFrom,
    plan_version: u32,
    decided: &Decided,
) {
    let Some(action) = state.actions.get_mut(&decided.action_id) else {
        return;
    };
    let old_hash = action.params_hash;
    let frame = action.frame.clone();
    let allow = |action: &mut Action| {
        let warrant = Warrant {
            from: person.clone(),
            params_hash: action.params_hash,
            tool_version: action.tool.version.clone(),
            plan_version,
        };
        action.status = ActionStatus::Ready {
            warrant,
            not_before: None,
        };
    };
    let rejected = match &decided.decision {
        Decision::Approve => {
            allow(action);
            false
        }
        Decision::Edit { edited_action } => {
            action.version += 1;
            action.params = edited_action.args.clone();
            action.params_hash = action.params.hash(&action.tool.name, &action.tool.version);
            allow(action);
            false
        }
        Decision::Reject { .. } => {
            state.actions.remove(&decided.action_id);
            true
        }
        Decision::Respond { .. } => {
            state.actions.remove(&decided.action_id);
            false
        }
        Decision::Committed { .. } | Decision::NotCommitted | Decision::Compensate => return,
    };
    let Some(frame) = state
        .active_mut()
        .and_then(|active| active.frames.get_mut(&frame))
    else {
        return;
    };
    if !rejected {
        frame.rejected.remove(&old_hash);
        return;
    }
    if frame.rejected.len() >= MAX_REMEMBERED_REJECTIONS
        && !frame.rejected.contains_key(&old_hash)
        && let Some(least) = frame
            .rejected
            .iter()
            .min_by_key(|(_, count)| **count)
            .map(|(hash, _)| *hash)
    {
        frame.rejected.remove(&least);
    }
    *frame.rejected.entry(old_hash).or_insert(0) += 1;
}

pub(super) fn decide_effect(state: &mut State, decided: &Decided) {
    let Some(action) = state.actions.get(&decided.action_id) else {
        return;
    };
    let wanted = is_wanted(state, action);
    let settle_at = action.settle_at;
    match &decided.decision {
        Decision::Committed { .. } => close_done(state, decided.action_id),
        Decision::NotCommitted => {
            // A compensation goes on even while the run is being stopped.
            if wanted || action.role == Role::Compensation {
                make_ready(state, decided.action_id, settle_at);
            } else {
                close(state, decided.action_id);
            }
        }
        Decision::Compensate => unsettle(state, decided.action_id),
        // It is left as it stands.
        Decision::Reject { .. } => close_done(state, decided.action_id),
        Decision::Approve | Decision::Edit { .. } | Decision::Respond { .. } => {}
    }
}
