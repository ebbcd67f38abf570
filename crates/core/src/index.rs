//! Which index rows follow from what happened.
//!
//! Rows about what is open now are the difference of two heads; rows about the past follow from the events.

use std::collections::BTreeSet;

use crate::{Entry, Event, Index, IndexChange, IndexRow, Scope, State, ThreadKind, next};

/// What changes in the indexes between two states, with what happened in between.
pub(crate) fn changes(before: &State, after: &State, entries: &[Entry]) -> Vec<IndexChange> {
    let (old, new) = (open_rows(before), open_rows(after));
    let removed = old.difference(&new).cloned().map(IndexChange::Remove);
    let added = new.difference(&old).cloned().map(IndexChange::Put);
    let past = entries
        .iter()
        .flat_map(|entry| past_rows(after, entry))
        .map(IndexChange::Put);
    removed.chain(added).chain(past).collect()
}

/// Rows about what is open in this state.
#[must_use]
pub fn open_rows(state: &State) -> BTreeSet<IndexRow> {
    let mut rows = BTreeSet::new();
    let mut add = |index, key: String, sort| {
        rows.insert(IndexRow {
            index,
            key,
            sort,
            thread: state.thread,
        });
    };
    if !next(state).is_empty() {
        // The run's start, not the last change, so that the row stays while it runs.
        let since = state
            .run
            .as_ref()
            .map_or(0, |run| run.started_at.as_micros());
        add(Index::Runnable, String::new(), since);
    }
    for interrupt in state.interrupts.values() {
        add(
            Index::Pending,
            interrupt.id.to_string(),
            interrupt.asked_at.as_micros(),
        );
        if state.kind != ThreadKind::Grant {
            add(
                Index::Asked,
                interrupt.requester.to_string(),
                interrupt.asked_at.as_micros(),
            );
        }
    }
    if let Some(due_at) = state.due_at() {
        add(Index::Due, String::new(), due_at.as_micros());
    }
    rows
}

/// Rows that an event leaves behind for good, in the thread with this state.
#[must_use]
pub fn past_rows(state: &State, entry: &Entry) -> Vec<IndexRow> {
    let seq = i64::try_from(entry.seq).unwrap_or(i64::MAX);
    let row = |index, key: String, sort| IndexRow {
        index,
        key,
        sort,
        thread: state.thread,
    };
    match &entry.event {
        Event::ThreadCreated { session, kind, .. } => match kind {
            ThreadKind::Agent => vec![row(Index::Session, session.clone(), 0)],
            ThreadKind::Outside | ThreadKind::Grant => Vec::new(),
        },
        Event::RunStarted { run, .. } => vec![row(Index::Run, run.to_string(), seq)],
        Event::Forked {
            parent, at, head, ..
        } => {
            let at = i64::try_from(*at).unwrap_or(i64::MAX);
            let run = head.run.as_ref();
            let run = run.map(|run| row(Index::Run, run.id.to_string(), seq));
            let fork = row(Index::Fork, parent.to_string(), at);
            run.into_iter().chain([fork]).collect()
        }
        Event::Answered {
            interrupt,
            decisions,
            ..
        } => {
            let mut rows = vec![row(Index::Closed, interrupt.to_string(), seq)];
            let mut grants = decisions
                .iter()
                .filter_map(|decided| decided.grant.as_ref());
            if grants.any(|grant| grant.terms.scope == Scope::Agent) {
                rows.push(row(Index::Grant, state.agent.clone(), seq));
            }
            rows
        }
        Event::InterruptClosed { interrupt, .. } => {
            vec![row(Index::Closed, interrupt.to_string(), seq)]
        }
        Event::InterruptRaised(interrupt) if state.kind == ThreadKind::Outside => {
            let asked_at = interrupt.asked_at.as_micros();
            vec![row(Index::Workflow, state.agent.clone(), asked_at)]
        }
        Event::ModelStarted { .. }
        | Event::ModelReplied { .. }
        | Event::OutputHeld { .. }
        | Event::ModelFailed { .. }
        | Event::InterruptRaised(_)
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
        | Event::RunEnded { .. } => Vec::new(),
    }
}
