//! What a model said is held back until a person has seen it.

use super::frame_mut;
use crate::{Decision, Digest, FramePath, FramePhase, State};

/// What a frame's model just said is held.
pub(super) fn hold(state: &mut State, path: &FramePath, text: Digest) {
    if let Some(frame) = frame_mut(state, path) {
        if let FramePhase::Thinking { attempt, .. } = frame.phase {
            frame.phase = FramePhase::Held { attempt, text };
        }
        frame.rests = 0;
    }
}

/// A person has seen it.
pub(super) fn decide(state: &mut State, path: &FramePath, decision: &Decision) {
    let Some(frame) = frame_mut(state, path) else {
        return;
    };
    let FramePhase::Held { attempt, text } = frame.phase else {
        return;
    };
    frame.phase = match decision {
        Decision::Approve { .. } => FramePhase::Cleared { attempt, text },
        Decision::Reject { .. } => FramePhase::TURN,
        // What they say instead follows.
        Decision::Respond { .. }
        | Decision::Edit { .. }
        | Decision::Committed { .. }
        | Decision::NotCommitted
        | Decision::Compensate
        | Decision::Answer { .. } => return,
    };
}
