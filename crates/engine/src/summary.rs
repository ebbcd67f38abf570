//! Runs at a glance.

use std::collections::HashMap;

use holdpoint_core::{Cause, Event, Phase, RunId, RunOutcome, State, Status, ThreadId, Timestamp};
use holdpoint_store::ThreadKey;

use crate::{Engine, Error};

/// A run in a line.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunSummary {
    /// The run.
    pub run_id: RunId,
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// The agent.
    pub agent: String,
    /// The session.
    pub session: String,
    /// How it stands.
    pub status: &'static str,
    /// Why it waits, or why it failed.
    pub cause: Option<String>,
    /// When it began.
    pub started_at: Timestamp,
}

impl Engine {
    /// The runs of a thread that are over.
    pub(crate) async fn past_runs(
        &self,
        key: &ThreadKey,
        state: &State,
        found: &mut HashMap<RunId, RunSummary>,
    ) -> Result<(), Error> {
        let mut current = None;
        for entry in self.journal(key).await? {
            if let Event::RunStarted { run, .. } = entry.event {
                current = Some((run, entry.header.at));
            } else if let Event::Forked { head, .. } = &entry.event {
                let run = head.run.as_ref();
                current = run.map(|run| (run.id, entry.header.at));
            } else if let Event::RunEnded { outcome } = entry.event
                && let Some((run_id, started_at)) = current.take()
            {
                let (status, cause) = ended(&outcome);
                let summary = RunSummary {
                    run_id,
                    thread_id: state.thread,
                    agent: state.agent.clone(),
                    session: state.session.clone(),
                    status,
                    cause,
                    started_at,
                };
                found.insert(run_id, summary);
            }
        }
        Ok(())
    }
}

impl RunSummary {
    /// The last run of a thread; `None` if it has none.
    #[must_use]
    pub fn of(state: &State) -> Option<Self> {
        let run = state.run.as_ref()?;
        let status = state.status()?;
        let cause = match (&status, &run.phase) {
            (Status::Waiting(cause) | Status::Sleeping(Some(cause)), _) => {
                Some(cause.as_str().to_owned())
            }
            (Status::Paused, _) => Some(Cause::UserPause.as_str().to_owned()),
            (_, Phase::Ended(outcome)) => ended(outcome).1,
            (_, Phase::Active(_)) => None,
        };
        Some(Self {
            run_id: run.id,
            thread_id: state.thread,
            agent: state.agent.clone(),
            session: state.session.clone(),
            status: status.as_str(),
            cause,
            started_at: run.started_at,
        })
    }
}

fn ended(outcome: &RunOutcome) -> (&'static str, Option<String>) {
    match outcome {
        RunOutcome::Finished => (Status::Finished.as_str(), None),
        RunOutcome::Failed { code, .. } => (Status::Failed.as_str(), Some(code.clone())),
        RunOutcome::Cancelled => (Status::Cancelled.as_str(), None),
        RunOutcome::TimedOut => (Status::Cancelled.as_str(), Some("timeout".to_owned())),
        _ => ("ended", None),
    }
}
