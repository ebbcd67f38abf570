//! Wrong on purpose, and only in a build for that: what is found as started is repeated as if nothing had been recorded.

use holdpoint_core::{Action, ActionId, Command, Lookup, Outcome, Role, State, Timestamp, Work};

/// What is done instead of finding out what became of it.
pub(super) enum Wrong {
    /// The call is made again.
    Launch,
    /// The step is held to be not done.
    Decide(Box<Command>),
}

/// Whether this work, which no call of ours is behind, is done wrong.
pub(super) fn instead(state: &State, work: &Work, now: Timestamp) -> Option<Wrong> {
    let action = |id: &ActionId| state.actions.get(id);
    let is_step = |id: &ActionId| action(id).is_some_and(|it| it.role == Role::Step);
    match work {
        Work::Settle {
            action, attempt, ..
        } if is_step(action) => Some(Wrong::Decide(Box::new(Command::ActionEnded {
            action: *action,
            attempt: *attempt,
            outcome: Outcome::Unknown {
                reason: "nobody looked".to_owned(),
            },
            artifact: None,
            past: None,
        }))),
        Work::LookUp { action, not_before } if is_step(action) && *not_before <= now => {
            Some(Wrong::Decide(Box::new(Command::LookedUp {
                action: *action,
                lookup: Lookup::NotFound,
                artifact: None,
            })))
        }
        // To enter a stepped tool again is right.
        Work::Settle { action: id, .. } => {
            (!action(id).is_some_and(Action::is_entered)).then_some(Wrong::Launch)
        }
        Work::CallModel { .. }
        | Work::AwaitModel { .. }
        | Work::Say { .. }
        | Work::Start { .. }
        | Work::LookUp { .. } => None,
    }
}
