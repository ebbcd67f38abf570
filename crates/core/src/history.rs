//! What the journal says of things that are no longer in the head.

use crate::{
    Action, ActionId, ActionStatus, Actor, AfterLate, AfterLookup, Decision, Digest, Effect, Entry,
    Event, Finish, InterruptId, InterruptStatus, Outcome, Past, SettledAs, State, fold,
};

/// Finds an action that was settled, and how, by folding the whole journal; `None` while it is open.
#[must_use]
pub fn past_action(entries: &[Entry], id: ActionId) -> Option<Past> {
    let mut state = State::default();
    let mut last: Option<Action> = None;
    let mut settled = SettledAs::NotDone;
    for entry in entries {
        fold(&mut state, entry);
        match state.actions.get(&id) {
            // An action that was held has no warrant, and nothing of it can come late.
            Some(action) => {
                if matches!(action.status, ActionStatus::Undoing { .. }) {
                    settled = SettledAs::Undone;
                } else {
                    last = Some(action.clone());
                    settled = SettledAs::NotDone;
                }
            }
            None => {
                if last.is_some() && settles_as_done(&entry.event, id) {
                    settled = SettledAs::Done;
                }
            }
        }
    }
    if state.actions.contains_key(&id) {
        return None;
    }
    Some(Past {
        action: last?,
        settled,
    })
}

fn settles_as_done(event: &Event, id: ActionId) -> bool {
    match event {
        Event::ActionFinished {
            action,
            outcome: Finish::Done { .. },
            ..
        } => *action == id,
        Event::ActionLookedUp {
            action,
            then: AfterLookup::Settled,
            ..
        } => *action == id,
        Event::LateOutcome {
            action,
            outcome: Outcome::Done { .. },
            then: AfterLate::Settled,
            ..
        } => *action == id,
        Event::Answered { decisions, .. } => decisions.iter().any(|decided| {
            decided.action_id == id && matches!(decided.decision, Decision::Committed { .. })
        }),
        Event::ThreadCreated { .. }
        | Event::Forked { .. }
        | Event::RunStarted { .. }
        | Event::ModelStarted { .. }
        | Event::ModelReplied { .. }
        | Event::OutputHeld { .. }
        | Event::ModelFailed { .. }
        | Event::InterruptRaised(_)
        | Event::InterruptClosed { .. }
        | Event::ActionStarted { .. }
        | Event::ActionFinished { .. }
        | Event::ActionUnknown { .. }
        | Event::ActionWithheld { .. }
        | Event::ActionLookedUp { .. }
        | Event::LateOutcome { .. }
        | Event::WarrantVoided { .. }
        | Event::CompensationBound { .. }
        | Event::Repinned { .. }
        | Event::StopRequested { .. }
        | Event::Restored { .. }
        | Event::Paused
        | Event::Continued
        | Event::FrameOpened { .. }
        | Event::FrameClosed { .. }
        | Event::StepStarted { .. }
        | Event::Suspended { .. }
        | Event::Slept { .. }
        | Event::FrameWoken { .. }
        | Event::Woken { .. }
        | Event::Yielded { .. }
        | Event::GrantKept(_)
        | Event::GrantUsed { .. }
        | Event::GrantRevoked { .. }
        | Event::RunEnded { .. } => false,
    }
}

/// How a closed interrupt was closed, and by whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closing {
    /// How.
    pub status: InterruptStatus,
    /// By whom.
    pub by: Actor,
    /// The pass by which it was answered, where there was one.
    pub token: Option<String>,
}

/// Reads how an interrupt was closed from the event that closed it.
#[must_use]
pub fn closing(entry: &Entry, id: InterruptId) -> Option<Closing> {
    let (status, via) = match &entry.event {
        Event::Answered {
            interrupt,
            status,
            via,
            ..
        } if *interrupt == id => (*status, via.as_ref()),
        Event::InterruptClosed {
            interrupt, status, ..
        } if *interrupt == id => (*status, None),
        Event::ThreadCreated { .. }
        | Event::Forked { .. }
        | Event::RunStarted { .. }
        | Event::ModelStarted { .. }
        | Event::ModelReplied { .. }
        | Event::OutputHeld { .. }
        | Event::ModelFailed { .. }
        | Event::InterruptRaised(_)
        | Event::Answered { .. }
        | Event::InterruptClosed { .. }
        | Event::ActionStarted { .. }
        | Event::ActionFinished { .. }
        | Event::ActionUnknown { .. }
        | Event::ActionWithheld { .. }
        | Event::ActionLookedUp { .. }
        | Event::LateOutcome { .. }
        | Event::WarrantVoided { .. }
        | Event::CompensationBound { .. }
        | Event::Repinned { .. }
        | Event::StopRequested { .. }
        | Event::Restored { .. }
        | Event::Paused
        | Event::Continued
        | Event::FrameOpened { .. }
        | Event::FrameClosed { .. }
        | Event::StepStarted { .. }
        | Event::Suspended { .. }
        | Event::Slept { .. }
        | Event::FrameWoken { .. }
        | Event::Woken { .. }
        | Event::Yielded { .. }
        | Event::GrantKept(_)
        | Event::GrantUsed { .. }
        | Event::GrantRevoked { .. }
        | Event::RunEnded { .. } => return None,
    };
    Some(Closing {
        status,
        by: entry.header.by.clone(),
        token: via.map(|via| via.token.clone()),
    })
}

/// A settled step of a run, for its checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The tool.
    pub tool: String,
    /// What repeating it would have done.
    pub effect: Effect,
    /// The key it was made under.
    pub key: String,
    /// Whether its effect is there.
    pub done: bool,
    /// What was done.
    pub params_hash: Digest,
}

/// The settled steps of the last run, in the order they were settled.
#[must_use]
pub fn steps(entries: &[Entry]) -> Vec<Step> {
    let mut state = State::default();
    let mut steps = Vec::new();
    for entry in entries {
        if matches!(entry.event, Event::RunStarted { .. }) {
            steps.clear();
        }
        let before = state.actions.clone();
        fold(&mut state, entry);
        for (id, action) in before {
            if !state.actions.contains_key(&id) && action.attempts > 0 {
                steps.push(Step {
                    tool: action.shown_name(),
                    effect: action.tool.effect,
                    key: action.idempotency_key(state.thread),
                    done: settles_as_done(&entry.event, id),
                    params_hash: action.params_hash,
                });
            }
        }
    }
    steps
}
