//! Subagents: a task opens a frame, and the frame's last word is the task's result.

use super::Draft;
use crate::{ActionId, Event, FramePath, FramePhase, RunOutcome};

/// Gives the task of an action that may start to its subagent.
pub(super) fn open(draft: &mut Draft<'_>, id: ActionId) {
    let Some(action) = draft.state.actions.get(&id) else {
        return;
    };
    let args = action.params.to_value();
    let text = |key: &str| args.get(key).and_then(|value| value.as_str());
    let name = text("subagent_type").unwrap_or_default();
    let input = text("description").unwrap_or_default().to_owned();
    let active = draft.state.active();
    let opened = active
        .and_then(|active| active.frames.get(&action.frame))
        .map_or(0, |frame| frame.opened);
    let frame = action.frame.child(name, opened + 1);
    draft.emit(Event::FrameOpened {
        frame,
        action: id,
        input,
    });
}

/// Closes every frame whose model has said its last word and that is not held; the innermost first.
pub(super) fn conclude(draft: &mut Draft<'_>) {
    let Some(active) = draft.state.active().filter(|active| active.stop.is_none()) else {
        return;
    };
    let frames = active.frames.iter();
    let mut done: Vec<FramePath> = frames
        .filter(|(_, frame)| frame.phase == FramePhase::Done)
        .map(|(path, _)| path.clone())
        .collect();
    done.sort_by_key(|path| std::cmp::Reverse(path.depth()));
    for frame in done {
        if draft.state.is_held(&frame) {
            continue;
        }
        draft.emit(if frame.is_root() {
            Event::RunEnded {
                outcome: RunOutcome::Finished,
            }
        } else {
            Event::FrameClosed { frame }
        });
    }
}
