//! What may go on now, over all frames.

use crate::{ActionId, ActionStatus, Effect, FramePath, FramePhase, Role, State, Timestamp};

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

/// All that may go on now. Where it is empty, there is nothing to drive: the run is over or waits.
#[must_use]
pub fn next(state: &State) -> Vec<Work> {
    let mut work = Vec::new();
    let going_on = state.active().filter(|active| active.stop.is_none());
    if let Some(active) = going_on {
        for (path, frame) in &active.frames {
            match frame.phase {
                FramePhase::Turn { not_before, .. } => {
                    work.push(Work::CallModel {
                        frame: path.clone(),
                        not_before,
                    });
                }
                FramePhase::Thinking { attempt, .. } => {
                    work.push(Work::AwaitModel {
                        frame: path.clone(),
                        attempt,
                    });
                }
                FramePhase::Stuck { .. } | FramePhase::Acting => {}
            }
        }
    }
    for action in state.actions.values() {
        match action.status {
            ActionStatus::Ready { not_before, .. } => {
                if going_on.is_some() || action.role == Role::Compensation {
                    work.push(Work::Start {
                        action: action.id,
                        not_before,
                    });
                }
            }
            ActionStatus::Started { deadline, .. } => {
                // A read has no effect to wait for.
                let at = match action.tool.effect {
                    Effect::Read => Timestamp::default(),
                    Effect::Idempotent | Effect::Write => action.settle_at.unwrap_or(deadline),
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
            | ActionStatus::Undoing { .. } => {}
        }
    }
    work
}
