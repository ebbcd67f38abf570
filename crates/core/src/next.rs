//! What may go on now, over all frames.

use crate::{
    Action, ActionId, ActionStatus, Effect, FramePath, FramePhase, Role, State, Timestamp, ToolKind,
};

/// One thing that may go on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Work {
    /// A model is to be called.
    CallModel {
        /// For this frame.
        frame: FramePath,
        /// Not before this.
        not_before: Option<Timestamp>,
    },
    /// A model is being called; or its driver died, and the call is lost.
    AwaitModel {
        /// For this frame.
        frame: FramePath,
        /// The how-manieth time for this turn.
        attempt: u32,
    },
    /// What a person let a model say is to be said, and the calls that came with it are to be judged.
    Say {
        /// In this frame.
        frame: FramePath,
        /// The try in which it was said.
        attempt: u32,
    },
    /// An action is to be started.
    Start {
        /// The action.
        action: ActionId,
        /// Not before this.
        not_before: Option<Timestamp>,
    },
    /// A call is being made; or its driver died, and from `at` on its outcome counts as unknown.
    Settle {
        /// The action.
        action: ActionId,
        /// The how-manieth time.
        attempt: u32,
        /// When an orphaned call may be judged.
        at: Timestamp,
    },
    /// The tool is to be asked what became of a call.
    LookUp {
        /// The action.
        action: ActionId,
        /// Not before this.
        not_before: Timestamp,
    },
}

/// How many subagents of one depth may be at work at once; each is part of the head. Those that are deeper never wait for
/// those above them, so that frames do not wait for each other in a circle.
const MAX_FRAMES: usize = 16;

/// All that may go on now. Where it is empty, there is nothing to drive: the run is over or waits.
#[must_use]
pub fn next(state: &State) -> Vec<Work> {
    let mut work = Vec::new();
    if let Some(active) = state.active().filter(|active| active.stop.is_none()) {
        for (path, frame) in &active.frames {
            match frame.phase {
                FramePhase::Turn { not_before, .. } => {
                    if may_start(state, path) {
                        work.push(Work::CallModel {
                            frame: path.clone(),
                            not_before,
                        });
                    }
                }
                FramePhase::Thinking { attempt, .. } => {
                    work.push(Work::AwaitModel {
                        frame: path.clone(),
                        attempt,
                    });
                }
                FramePhase::Cleared { attempt, .. } => {
                    if may_start(state, path) {
                        work.push(Work::Say {
                            frame: path.clone(),
                            attempt,
                        });
                    }
                }
                FramePhase::Resting { .. }
                | FramePhase::Stuck { .. }
                | FramePhase::Held { .. }
                | FramePhase::Acting
                | FramePhase::Done => {}
            }
        }
    }
    for action in state.actions.values() {
        match action.status {
            ActionStatus::Ready { not_before, .. } => {
                if can_start(state, action) {
                    // A stepped tool takes a step again only when that may be.
                    let steps = state.steps_of(action.id).map(Action::not_before);
                    work.push(Work::Start {
                        action: action.id,
                        not_before: steps.fold(not_before, Option::max),
                    });
                }
            }
            ActionStatus::Started { deadline, .. } => {
                // A read has no effect to wait for, and entering a stepped tool has none of its own.
                let at = match (action.tool.kind, action.tool.effect) {
                    (ToolKind::Stepped, _) if action.role == Role::Call => Timestamp::default(),
                    (_, Effect::Read) => Timestamp::default(),
                    (_, Effect::Idempotent | Effect::Write) => action.settle_at.unwrap_or(deadline),
                };
                work.push(Work::Settle {
                    action: action.id,
                    attempt: action.attempts,
                    at,
                });
            }
            ActionStatus::Unknown { not_before, .. } => work.push(Work::LookUp {
                action: action.id,
                not_before,
            }),
            ActionStatus::Held { .. }
            | ActionStatus::Unsettled { .. }
            | ActionStatus::InDoubt { .. }
            | ActionStatus::Waiting { .. }
            | ActionStatus::Undoing { .. } => {}
        }
    }
    work
}

/// Whether something of this frame may start: nobody stopped or paused the run, and it stands at no breakpoint.
#[must_use]
pub(crate) fn may_start(state: &State, frame: &FramePath) -> bool {
    state.active().is_some_and(|active| {
        active.stop.is_none()
            && !active.paused
            && active.frames.contains_key(frame)
            && !state.is_held(frame)
    })
}

/// Whether an action that is ready may start now.
fn can_start(state: &State, action: &Action) -> bool {
    match (action.role, action.tool.kind) {
        (Role::Compensation, _) => true,
        // It is begun by its tool, when that is entered again.
        (Role::Step, _) => false,
        (Role::Call, _) if !may_start(state, &action.frame) => false,
        (Role::Call, ToolKind::Plain) => true,
        // What its steps did must be known before it is entered again.
        (Role::Call, ToolKind::Stepped) => state
            .steps_of(action.id)
            .all(|step| matches!(step.status, ActionStatus::Ready { .. })),
        (Role::Call, ToolKind::Task) => state.active().is_some_and(|active| {
            let depth = action.frame.depth() + 1;
            let beside = active.frames.keys().filter(|path| path.depth() == depth);
            beside.count() < MAX_FRAMES
        }),
    }
}
