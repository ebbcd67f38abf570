//! Outcomes that come late: never dropped, and never in the way of what was settled meanwhile.

use super::{
    Draft, Past, Reported, SettledAs, clip,
    effect::{ask_about, follow_up},
};
use crate::{
    Action, ActionStatus, AfterLate, Cause, DecisionKind, Doubt, Effect, Event, InterruptStatus,
    Outcome,
};

/// An outcome for an action that is open, but not waiting for this attempt.
pub(super) fn for_open(
    draft: &mut Draft<'_>,
    attempt: u32,
    reported: Reported,
    mut action: Action,
) {
    let Reported { outcome, artifact } = reported;
    let id = action.id;
    // A question that does not offer *not committed* is not whether it was done: it stays with the person it was put to.
    let offers = |interrupt| {
        let asks = draft.state.interrupts.get(interrupt).map(|it| &it.asks);
        asks.is_some_and(|asks| {
            asks.iter()
                .any(|ask| ask.allowed.contains(DecisionKind::NotCommitted))
        })
    };
    let undecided = match &action.status {
        ActionStatus::Unknown { .. } => true,
        ActionStatus::InDoubt { interrupt, .. } => offers(interrupt),
        ActionStatus::Held { .. }
        | ActionStatus::Ready { .. }
        | ActionStatus::Started { .. }
        | ActionStatus::Unsettled { .. }
        | ActionStatus::Waiting { .. }
        | ActionStatus::Undoing { .. } => false,
    };
    let (done, conclusive) = match &outcome {
        Outcome::Done { .. } => (true, true),
        Outcome::Failed { .. } => (false, true),
        Outcome::Unknown { .. } => (false, false),
    };
    // What an earlier entry of a stepped tool says is of no use: the tool was entered again, or will be.
    if action.is_entered() {
        draft.emit(Event::LateOutcome {
            action: id,
            attempt,
            outcome,
            artifact,
            then: AfterLate::Recorded,
        });
        return;
    }
    let repeatable = action.tool.effect != Effect::Write;
    // It was recorded as not made, and a person is asked whether it may be: it was made already.
    let is_held = matches!(action.status, ActionStatus::Held { .. });
    let at_once = repeatable || is_held;
    if (undecided && action.attempts == attempt && conclusive) || (at_once && done) {
        withdraw(draft, &action);
        let failure = match &outcome {
            Outcome::Failed { error } => Some(error.clone()),
            Outcome::Done { .. } | Outcome::Unknown { .. } => None,
        };
        draft.emit(Event::LateOutcome {
            action: id,
            attempt,
            outcome,
            artifact,
            then: AfterLate::Settled,
        });
        follow_up(draft, id, failure.as_deref());
        return;
    }
    if !done {
        draft.emit(Event::LateOutcome {
            action: id,
            attempt,
            outcome,
            artifact,
            then: AfterLate::Recorded,
        });
        return;
    }
    // A write that had been declared as not done was done after all.
    match (&action.status, action.warrant().cloned()) {
        (
            ActionStatus::Ready { .. }
            | ActionStatus::Unknown { .. }
            | ActionStatus::InDoubt { .. },
            Some(warrant),
        ) if undecided || matches!(action.status, ActionStatus::Ready { .. }) => {
            withdraw(draft, &action);
            action.status = ActionStatus::Unsettled { warrant };
            contradict(draft, attempt, Reported { outcome, artifact }, action);
        }
        // The next attempt is out already: a person sees both once it ends.
        (ActionStatus::Started { .. }, _) => {
            draft.emit(Event::LateOutcome {
                action: id,
                attempt,
                outcome,
                artifact,
                then: AfterLate::Noted,
            });
        }
        (
            ActionStatus::Held { .. }
            | ActionStatus::Ready { .. }
            | ActionStatus::Unknown { .. }
            | ActionStatus::Unsettled { .. }
            | ActionStatus::InDoubt { .. }
            | ActionStatus::Waiting { .. }
            | ActionStatus::Undoing { .. },
            _,
        ) => draft.emit(Event::LateOutcome {
            action: id,
            attempt,
            outcome,
            artifact,
            then: AfterLate::Recorded,
        }),
    }
}

/// Takes back the question about an action that has reported after all. One that is not about it stays.
fn withdraw(draft: &mut Draft<'_>, action: &Action) {
    let asks = |interrupt| {
        let asks = draft.state.interrupts.get(interrupt).map(|it| &it.asks);
        asks.is_some_and(|asks| asks.iter().any(|ask| ask.action_id == action.id))
    };
    if let ActionStatus::InDoubt { interrupt, .. } | ActionStatus::Held { interrupt } =
        action.status
        && asks(&interrupt)
    {
        draft.emit(Event::InterruptClosed {
            interrupt,
            status: InterruptStatus::Canceled,
            reason: "the call reported its outcome after all".to_owned(),
            rejected: Vec::new(),
            says: None,
        });
    }
}

/// An outcome for an action that was settled by other means.
pub(super) fn for_settled(draft: &mut Draft<'_>, attempt: u32, reported: Reported, past: Past) {
    let Reported { outcome, artifact } = reported;
    let Past {
        mut action,
        settled,
    } = past;
    let contradicts = match (&outcome, settled) {
        (Outcome::Done { .. }, SettledAs::NotDone)
        | (Outcome::Failed { .. }, SettledAs::Done | SettledAs::Undone) => {
            action.tool.effect == Effect::Write && !action.is_entered()
        }
        (Outcome::Done { .. }, SettledAs::Done | SettledAs::Undone)
        | (Outcome::Failed { .. }, SettledAs::NotDone)
        | (Outcome::Unknown { .. }, _) => false,
    };
    if let (true, Some(warrant)) = (contradicts, action.warrant().cloned()) {
        action.status = ActionStatus::Unsettled { warrant };
        action.doubt = Doubt::Reopened;
        contradict(draft, attempt, Reported { outcome, artifact }, action);
    } else {
        draft.emit(Event::LateOutcome {
            action: action.id,
            attempt,
            outcome,
            artifact,
            then: AfterLate::Recorded,
        });
    }
}

fn contradict(draft: &mut Draft<'_>, attempt: u32, reported: Reported, action: Action) {
    let Reported { outcome, artifact } = reported;
    let id = action.id;
    let said = match &outcome {
        Outcome::Done { content } => format!("it was done: {}", clip(content)),
        Outcome::Failed { error } => format!("it failed without effect: {}", clip(error)),
        Outcome::Unknown { reason } => format!("its outcome is unknown: {}", clip(reason)),
    };
    let then = AfterLate::Contradicts {
        reopened: Box::new(action),
    };
    draft.emit(Event::LateOutcome {
        action: id,
        attempt,
        outcome,
        artifact,
        then,
    });
    let text = format!(
        "Attempt {attempt} reported, after the action had been settled otherwise, that {said}"
    );
    ask_about(
        draft,
        id,
        Cause::WriteUnknown,
        &text,
        &[DecisionKind::Committed],
    );
}
