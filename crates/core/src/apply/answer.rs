//! What an answer changes: for calls that wait, and for effects that are in doubt.

use super::{
    frame_mut, guard, set_phase,
    settle::{close, close_done, drop_steps, make_ready, may_be_retried, settle_frames, unsettle},
};
use crate::{
    Action, ActionId, ActionStatus, Actor, Decided, Decision, DecisionKind, Digest, FramePath,
    FramePhase, Grant, GrantId, Interrupt, InterruptId, Role, Scope, Side, State, Subject,
    Timestamp, Wait, Warrant, WarrantFrom,
};

/// How many rejected calls a run remembers, over all its frames; bounds the head.
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
                if decided.decision.kind() == DecisionKind::Approve {
                    let again = FramePhase::Turn {
                        failures: 0,
                        not_before: None,
                        passed: true,
                    };
                    if let Some(frame) = frame_mut(state, &interrupt.frame) {
                        frame.phase = again;
                        frame.rests = 0;
                    }
                }
            }
            Subject::Node { side, action, .. } => pass(state, &interrupt.frame, *side, *action),
            Subject::Question { action, .. } => go_on(state, id, *action),
            Subject::Output { .. } => guard::decide(state, &interrupt.frame, &decided.decision),
            Subject::Confirmation { .. } => set_phase(state, &interrupt.frame, FramePhase::TURN),
            Subject::Action { .. } => {
                decide_action(state, &person, plan_version, decided);
                if let Some(grant) = &decided.grant
                    && grant.terms.scope == Scope::Thread
                {
                    keep_grant(state, grant);
                }
            }
            Subject::Effect { .. } => decide_effect(state, decided),
            // What waits for it is asked about anew, or closed, by what follows; it is not released by this.
            Subject::Restored { .. } => return,
        }
    }
    release_others(state, &interrupt);
    settle_frames(state);
}

/// A question was closed without an answer; these calls are rejected by that.
pub(super) fn withdrawn(state: &mut State, id: InterruptId, rejected: &[ActionId]) {
    let Some(interrupt) = state.interrupts.remove(&id) else {
        return;
    };
    for action in rejected {
        reject(state, *action);
    }
    for ask in &interrupt.asks {
        if let Subject::Question { action, .. } = &ask.subject {
            go_on(state, id, *action);
        }
    }
    if !rejected.is_empty() {
        release_others(state, &interrupt);
    }
    settle_frames(state);
}

/// What only shared the turn with something that was asked about may go on now.
fn release_others(state: &mut State, interrupt: &Interrupt) {
    let plan_version = state.plan_version;
    let id = interrupt.id;
    for action in state.actions.values_mut() {
        let asked = interrupt.asks.iter().any(|ask| ask.action_id == action.id);
        if action.status == (ActionStatus::Held { interrupt: id }) && !asked {
            action.status = ActionStatus::Ready {
                warrant: action.unasked(plan_version),
                not_before: None,
            };
        }
    }
}

/// A breakpoint is left behind.
fn pass(state: &mut State, path: &FramePath, side: Side, action: Option<ActionId>) {
    if side == Side::After {
        return;
    }
    match action {
        Some(action) => {
            if let Some(action) = state.actions.get_mut(&action) {
                action.passed = true;
            }
        }
        None => {
            if let Some(frame) = frame_mut(state, path)
                && let FramePhase::Turn { passed, .. } = &mut frame.phase
            {
                *passed = true;
            }
        }
    }
}

/// The tool that asked is entered again.
fn go_on(state: &mut State, interrupt: InterruptId, action: Option<ActionId>) {
    let Some(action) = action else { return };
    let waits = |action: &Action| {
        let on = Wait::Answer { interrupt };
        matches!(&action.status, ActionStatus::Waiting { on: waits, .. } if *waits == on)
    };
    if state.actions.get(&action).is_some_and(waits) {
        make_ready(state, action, None);
    }
}

/// Grants that nobody can use any more make room, once nothing waits to run by them.
fn keep_grant(state: &mut State, grant: &Grant) {
    let now = state.now;
    let used = state.actions.values().filter_map(|it| it.grant.as_ref());
    let used: Vec<GrantId> = used.map(|used| used.grant).collect();
    let grants = &mut state.grants;
    grants.retain(|id, old| old.is_good(now) || used.contains(id));
    state.grants.insert(grant.id, grant.clone());
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
    let (path, old_hash) = (action.frame.clone(), action.params_hash);
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
    match &decided.decision {
        Decision::Approve { .. } => allow(action),
        Decision::Edit { edited_action } => {
            action.version += 1;
            action.params = edited_action.args.clone();
            action.params_hash = action.params.hash(&action.tool.name, &action.tool.version);
            action.shown.clone_from(&decided.shown);
            allow(action);
        }
        Decision::Reject { .. } => return reject(state, decided.action_id),
        Decision::Respond { .. } => {
            state.actions.remove(&decided.action_id);
            drop_steps(state, decided.action_id);
        }
        Decision::Committed { .. }
        | Decision::NotCommitted
        | Decision::Compensate
        | Decision::Answer { .. } => return,
    }
    for path in path.ancestry() {
        if let Some(frame) = frame_mut(state, &path) {
            frame.rejected.remove(&old_hash);
        }
    }
}

/// An action is not done, because somebody did not want it or nobody wanted it in time.
fn reject(state: &mut State, id: ActionId) {
    let Some(action) = state.actions.remove(&id) else {
        return;
    };
    drop_steps(state, id);
    remember_rejections(state, &action.frame, action.params_hash, 1);
}

/// Notes that a call was rejected so many times more, forgetting the least rejected one where there is no room.
pub(super) fn remember_rejections(state: &mut State, path: &FramePath, hash: Digest, more: u32) {
    let Some(active) = state.active_mut() else {
        return;
    };
    let remembered = active.frames.iter().flat_map(|(path, frame)| {
        let counts = frame.rejected.iter();
        counts.map(move |(hash, count)| (*count, path.clone(), *hash))
    });
    let remembered: Vec<(u32, FramePath, Digest)> = remembered.collect();
    let known = |(_, at, old): &(u32, FramePath, Digest)| at == path && *old == hash;
    if remembered.len() >= MAX_REMEMBERED_REJECTIONS
        && !remembered.iter().any(known)
        && let Some((_, path, least)) = remembered.iter().min_by_key(|(count, ..)| *count)
        && let Some(frame) = active.frames.get_mut(path)
    {
        frame.rejected.remove(least);
    }
    if let Some(frame) = active.frames.get_mut(path) {
        let count = frame.rejected.entry(hash).or_insert(0);
        *count = count.saturating_add(more);
    }
}

pub(super) fn decide_effect(state: &mut State, decided: &Decided) {
    let Some(action) = state.actions.get(&decided.action_id) else {
        return;
    };
    let retried = may_be_retried(state, action);
    let settle_at = action.settle_at;
    match &decided.decision {
        Decision::Committed { .. } => close_done(state, decided.action_id),
        Decision::NotCommitted => {
            // A compensation goes on even while the run is being stopped.
            if retried || action.role == Role::Compensation {
                make_ready(state, decided.action_id, settle_at);
            } else {
                close(state, decided.action_id);
            }
        }
        Decision::Compensate => unsettle(state, decided.action_id),
        // It is left as it stands.
        Decision::Reject { .. } => close_done(state, decided.action_id),
        Decision::Approve { .. }
        | Decision::Edit { .. }
        | Decision::Respond { .. }
        | Decision::Answer { .. } => {}
    }
}
