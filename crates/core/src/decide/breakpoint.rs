//! Stopping before or after a node, to be looked at.

use super::{Draft, model, model::Question};
use crate::{
    ActionId, Allowed, Ask, Breakpoints, Cause, DecisionKind, FramePath, InterruptKind, Role, Side,
    State, Subject,
};

/// A call after which a run stops.
pub(super) struct Watched {
    action: ActionId,
    frame: FramePath,
    tool: String,
}

/// The calls that were made and after which the run stops.
pub(super) fn watched(state: &State) -> Vec<Watched> {
    let Some(active) = state.active().filter(|active| active.stop.is_none()) else {
        return Vec::new();
    };
    let after = &active.breakpoints.after;
    let calls = state.actions.values().filter(|action| {
        action.role == Role::Call && action.attempts > 0 && after.contains(&action.tool.name)
    });
    calls
        .map(|action| Watched {
            action: action.id,
            frame: action.frame.clone(),
            tool: action.tool.name.clone(),
        })
        .collect()
}

/// Stops after those of them that are settled by now.
pub(super) fn stop_after(draft: &mut Draft<'_>, watched: Vec<Watched>) {
    for call in watched {
        let goes_on = draft
            .state
            .active()
            .is_some_and(|active| active.stop.is_none() && active.frames.contains_key(&call.frame));
        if goes_on && !draft.state.actions.contains_key(&call.action) {
            stop_at(
                draft,
                call.frame,
                &call.tool,
                Side::After,
                Some(call.action),
            );
        }
    }
}

/// Whether the run stops on this side of a node.
pub(super) fn is_set(state: &State, node: &str, side: Side) -> bool {
    let active = state.active().filter(|active| active.stop.is_none());
    active.is_some_and(|active| match side {
        Side::Before => active.breakpoints.before.contains(node),
        Side::After => active.breakpoints.after.contains(node),
    })
}

/// Stops a frame there. `action` is the call that is about to be made, or was.
pub(super) fn stop_at(
    draft: &mut Draft<'_>,
    frame: FramePath,
    node: &str,
    side: Side,
    action: Option<ActionId>,
) {
    let word = match side {
        Side::Before => "before",
        Side::After => "after",
    };
    let what = if node == Breakpoints::MODEL {
        "the model's turn".to_owned()
    } else {
        format!("the tool `{node}`")
    };
    // INVARIANT: the list is neither empty nor repetitive.
    let Ok(allowed) = Allowed::new(vec![DecisionKind::Approve, DecisionKind::Reject]) else {
        return;
    };
    let ask = Ask {
        action_id: draft.context.seed.action_id(),
        subject: Subject::Node {
            node: node.to_owned(),
            side,
            action,
        },
        allowed,
        description: Some(format!(
            "Stopped {word} {what}.\n\nApprove to go on, reject to cancel the run."
        )),
    };
    let id = draft.context.seed.interrupt_id();
    model::raise(
        draft,
        Question {
            id,
            kind: InterruptKind::Breakpoint,
            cause: Cause::Breakpoint,
            frame,
            asks: vec![ask],
        },
    );
}
