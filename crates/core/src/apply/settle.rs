//! How actions are settled, and frames go on.

use crate::{
    Action, ActionId, ActionStatus, Doubt, Effect, FramePath, FramePhase, Role, State, Timestamp,
    ToolKind, Verdict, Warrant, WarrantFrom,
};

/// Whether the run still wants the effect of this action.
pub(crate) fn is_wanted(state: &State, action: &Action) -> bool {
    action.doubt != Doubt::Reopened && state.active().is_some_and(|active| active.stop.is_none())
}

/// Whether an action that was not done may be tried again. A step is taken by its tool, as long as that is open.
pub(crate) fn may_be_retried(state: &State, action: &Action) -> bool {
    let has_tool = || {
        let tool = action.parent.and_then(|parent| state.actions.get(&parent));
        action.role != Role::Step || tool.is_some()
    };
    is_wanted(state, action) && has_tool()
}

/// A call reported that it was done (or that it failed without effect).
pub(super) fn finished(state: &mut State, id: ActionId, done: bool) {
    let Some(action) = state.actions.get(&id) else {
        return;
    };
    let has_effect = action.tool.effect == Effect::Write && !action.is_entered();
    let unwanted = has_effect && !is_wanted(state, action);
    match (action.role, done) {
        // Two effects where one was wanted are put before a person.
        (Role::Call | Role::Step, _) if action.doubt == Doubt::EarlierAttemptDone => {
            unsettle(state, id)
        }
        // An effect that nobody wants any more is undone or put before a person.
        (Role::Call | Role::Step, true) if unwanted => unsettle(state, id),
        (Role::Compensation, false) => unsettle(state, id),
        (Role::Compensation, true) => close_done(state, id),
        (Role::Call | Role::Step, true | false) => close(state, id),
    }
}

pub(super) fn make_ready(state: &mut State, id: ActionId, not_before: Option<Timestamp>) {
    if let Some(action) = state.actions.get_mut(&id)
        && let Some(warrant) = action.warrant().cloned()
    {
        action.status = ActionStatus::Ready {
            warrant,
            not_before,
        };
    }
}

pub(super) fn look_up(state: &mut State, id: ActionId, lookups: u32, not_before: Timestamp) {
    if let Some(action) = state.actions.get_mut(&id)
        && let Some(warrant) = action.warrant().cloned()
    {
        action.status = ActionStatus::Unknown {
            warrant,
            lookups,
            not_before,
        };
    }
}

pub(super) fn unsettle(state: &mut State, id: ActionId) {
    if let Some(action) = state.actions.get_mut(&id)
        && let Some(warrant) = action.warrant().cloned()
    {
        action.status = ActionStatus::Unsettled { warrant };
    }
}

pub(super) fn bind_compensation(state: &mut State, id: ActionId, compensation: ActionId) {
    let plan_version = state.plan_version;
    let Some(original) = state.actions.get_mut(&id) else {
        return;
    };
    let not_before = original.settle_at;
    original.status = ActionStatus::Undoing { by: compensation };
    let mut tool = original.tool.clone();
    tool.effect = Effect::Write;
    tool.hooks = crate::Hooks::default();
    tool.kind = ToolKind::Plain;
    let warrant = Warrant {
        from: WarrantFrom::Compensation,
        params_hash: original.params_hash,
        tool_version: tool.version.clone(),
        plan_version,
    };
    let action = Action {
        id: compensation,
        run: original.run,
        frame: original.frame.clone(),
        parent: Some(id),
        role: Role::Compensation,
        step: original.step.clone(),
        call_id: original.call_id.clone(),
        order: original.order,
        version: original.version,
        definition: original.definition,
        tool,
        params: original.params.clone(),
        params_hash: original.params_hash,
        verdict: Verdict::Allow,
        grant: None,
        attempts: 0,
        progress: 0,
        settle_at: None,
        shown: None,
        of_token: original.requires_token(),
        passed: true,
        doubt: match original.doubt {
            Doubt::Reopened => Doubt::Reopened,
            // That doubt is about the original's attempts.
            Doubt::None | Doubt::EarlierAttemptDone => Doubt::None,
        },
        status: ActionStatus::Ready {
            warrant,
            not_before,
        },
    };
    state.actions.insert(compensation, action);
}

/// Closes an action about which nothing is left to do; a compensation closes what it was to undo.
pub(super) fn close_done(state: &mut State, id: ActionId) {
    if let Some(action) = state.actions.get(&id)
        && action.role == Role::Compensation
        && let Some(parent) = action.parent
        && state
            .actions
            .get(&parent)
            .is_some_and(|parent| parent.status == ActionStatus::Undoing { by: id })
    {
        close(state, parent);
    }
    close(state, id);
}

pub(super) fn close(state: &mut State, id: ActionId) {
    if let Some(action) = state.actions.remove(&id) {
        match (action.role, action.parent) {
            (Role::Step, Some(parent)) => step_closed(state, parent),
            (Role::Call, _) => drop_steps(state, id),
            (Role::Step | Role::Compensation, _) => {}
        }
    }
    settle_frames(state);
}

/// A step of this action is settled. While the run is being stopped, the action closes with its last one.
fn step_closed(state: &mut State, parent: ActionId) {
    let stopping = state.stop().is_some();
    let last = state.steps_of(parent).next().is_none();
    if let Some(action) = state.actions.get_mut(&parent) {
        action.progress = action.attempts;
        if stopping && last {
            state.actions.remove(&parent);
        }
    }
}

/// Steps that were to be taken again are not, once their tool has ended. What such a step may have done stays open.
pub(super) fn drop_steps(state: &mut State, parent: ActionId) {
    state.actions.retain(|_, step| {
        let idle = matches!(step.status, ActionStatus::Ready { .. });
        let harmless = step.tool.effect != Effect::Idempotent || step.attempts == 0;
        !(step.role == Role::Step && step.parent == Some(parent) && idle && harmless)
    });
}

/// A frame whose actions are all settled takes its next turn.
pub(super) fn settle_frames(state: &mut State) {
    let run = state.run.as_ref().map(|run| run.id);
    let awaited = |action: &&Action| Some(action.run) == run && action.doubt != Doubt::Reopened;
    let open: Vec<FramePath> = state
        .actions
        .values()
        .filter(awaited)
        .map(|action| action.frame.clone())
        .collect();
    if let Some(active) = state.active_mut()
        && active.stop.is_none()
    {
        for (path, frame) in &mut active.frames {
            if frame.phase == FramePhase::Acting && !open.contains(path) {
                frame.phase = FramePhase::TURN;
            }
        }
    }
}
