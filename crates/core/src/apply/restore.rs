//! A run that was found in a backup: what was in the air is in doubt, and what was allowed is not any more.

use super::settle::unsettle;
use crate::{ActionId, ActionStatus, FramePhase, InterruptId, State};

/// Nobody knows whether these calls were made. What follows asks about them.
pub(super) fn doubt(state: &mut State, doubted: &[ActionId]) {
    for action in doubted {
        unsettle(state, *action);
    }
}

/// The run stands still until it is said whether it goes on. These calls wait for that too, and have lost what allowed
/// them; what else was held was never asked about, and is free.
pub(super) fn hold(state: &mut State, interrupt: InterruptId, held: &[ActionId]) {
    let plan_version = state.plan_version;
    for action in state.actions.values_mut() {
        if held.contains(&action.id) {
            action.status = ActionStatus::Held { interrupt };
        } else if matches!(action.status, ActionStatus::Held { .. }) {
            action.status = ActionStatus::Ready {
                warrant: action.unasked(plan_version),
                not_before: None,
            };
        }
    }
    let frames = state
        .active_mut()
        .into_iter()
        .flat_map(|it| it.frames.values_mut());
    for frame in frames {
        // What a model was asked leaves nothing behind: it is asked again.
        let failures = match frame.phase {
            FramePhase::Thinking { attempt, .. } => attempt,
            FramePhase::Resting { failures, .. } => failures,
            // That somebody let it be said does not count any more, and nobody has heard it.
            FramePhase::Stuck { .. } | FramePhase::Cleared { .. } => 0,
            FramePhase::Turn { .. }
            | FramePhase::Held { .. }
            | FramePhase::Acting
            | FramePhase::Done => continue,
        };
        frame.phase = FramePhase::Turn {
            failures,
            not_before: None,
            passed: true,
        };
    }
}
