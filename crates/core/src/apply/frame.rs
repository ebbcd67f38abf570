//! Frames: a subagent begins with a task, and leaves its last word.

use std::collections::BTreeMap;

use super::{frame_mut, settle};
use crate::{
    ActionId, ActionStatus, Digest, Frame, FramePath, FramePhase, State, Wait,
    apply::answer::remember_rejections,
};

impl Frame {
    /// A frame whose model is to be called.
    pub(super) const fn new(definition: Digest, task: Option<ActionId>) -> Self {
        Self {
            definition,
            task,
            opened: 0,
            phase: FramePhase::TURN,
            rests: 0,
            rejected: BTreeMap::new(),
        }
    }
}

pub(super) fn open(state: &mut State, path: &FramePath, id: ActionId) {
    let Some(action) = state.actions.get_mut(&id) else {
        return;
    };
    let Some(warrant) = action.warrant().cloned() else {
        return;
    };
    action.attempts += 1;
    action.status = ActionStatus::Waiting {
        warrant,
        on: Wait::Frame {
            frame: path.clone(),
        },
    };
    let (definition, parent) = (action.definition, action.frame.clone());
    if let Some(parent) = frame_mut(state, &parent) {
        parent.opened += 1;
    }
    if let Some(active) = state.active_mut() {
        let frame = Frame::new(definition, Some(id));
        active.frames.insert(path.clone(), frame);
    }
}

pub(super) fn close(state: &mut State, path: &FramePath) {
    let Some(frame) = state
        .active_mut()
        .and_then(|active| active.frames.remove(path))
    else {
        return;
    };
    // What people did not want of a subagent is not wanted of the next one either.
    if let Some(parent) = path.parent() {
        for (hash, count) in frame.rejected {
            remember_rejections(state, &parent, hash, count);
        }
    }
    if let Some(task) = frame.task {
        settle::close(state, task);
    }
}
