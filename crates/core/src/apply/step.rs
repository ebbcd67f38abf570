//! Steps of a stepped tool, and what it waits for between them.

use crate::{
    Action, ActionId, ActionStatus, Doubt, Effect, Params, Role, State, Timestamp, ToolKind,
    Verdict, Wait, Warrant,
};

/// A step that was begun.
pub(super) struct Begun<'a> {
    pub(super) id: ActionId,
    pub(super) name: &'a str,
    pub(super) effect: Effect,
    pub(super) params: &'a Params,
    pub(super) attempt: u32,
    pub(super) epoch: u64,
    pub(super) deadline: Timestamp,
}

pub(super) fn start(state: &mut State, parent: ActionId, begun: &Begun<'_>) {
    let plan_version = state.plan_version;
    let Some(call) = state.actions.get(&parent) else {
        return;
    };
    let Some(allowed) = call.warrant() else {
        return;
    };
    let mut tool = call.tool.clone();
    tool.effect = begun.effect;
    // A step takes no steps of its own.
    tool.kind = ToolKind::Plain;
    let params_hash = begun.params.hash(&tool.name, &tool.version);
    let warrant = Warrant {
        from: allowed.from.clone(),
        params_hash,
        tool_version: tool.version.clone(),
        plan_version,
    };
    let action = Action {
        id: begun.id,
        run: call.run,
        frame: call.frame.clone(),
        parent: Some(parent),
        role: Role::Step,
        step: Some(begun.name.to_owned()),
        call_id: call.call_id.clone(),
        order: call.order,
        version: 1,
        definition: call.definition,
        settle_at: Some(begun.deadline + tool.settle),
        tool,
        params: begun.params.clone(),
        params_hash,
        verdict: Verdict::Allow,
        grant: None,
        attempts: begun.attempt,
        progress: 0,
        shown: None,
        of_token: call.requires_token(),
        passed: true,
        doubt: Doubt::None,
        status: ActionStatus::Started {
            warrant,
            epoch: begun.epoch,
            deadline: begun.deadline,
        },
    };
    let is_new = state.actions.insert(begun.id, action).is_none();
    if let Some(active) = state.active_mut() {
        active.calls = active.calls.saturating_add(u32::from(is_new));
    }
}

/// The tool got somewhere: what failed before does not count any more.
pub(super) fn progress(state: &mut State, id: ActionId) {
    if let Some(action) = state.actions.get_mut(&id) {
        action.progress = action.attempts;
    }
}

/// The tool was left, and is entered again when this is there.
pub(super) fn wait(state: &mut State, id: ActionId, on: Wait) {
    progress(state, id);
    if let Some(action) = state.actions.get_mut(&id)
        && let Some(warrant) = action.warrant().cloned()
    {
        action.status = ActionStatus::Waiting { warrant, on };
    }
}
