//! The records of everything that may start now, proved at the last moment.

use std::collections::HashSet;

use holdpoint_core::{ActionId, Batch, Command, Role, Timestamp, WarrantFrom, Work, next};
use holdpoint_store::Epoch;

#[cfg(feature = "weak-no-started")]
use super::weak::{self, Wrong};
use super::{Driver, Lease};
use crate::{Error, flight::Flight, thread::engine_principal};

impl Driver {
    /// Adds the records of everything that may start now. Returns what is to be launched once they are committed.
    pub(super) async fn decide_starts(&mut self, batch: &mut Batch) -> Result<Vec<Flight>, Error> {
        let by = engine_principal(&self.thread.key.tenant);
        let mut started: HashSet<Flight> = HashSet::new();
        loop {
            let now = self.engine.store().now();
            let mut wake_at: Option<Timestamp> = None;
            let mut due = |time: Timestamp| {
                if time <= now {
                    return true;
                }
                wake_at = Some(wake_at.map_or(time, |earlier| earlier.min(time)));
                false
            };
            let mut command = None;
            for work in next(batch.state()) {
                let flight = Flight::of(&work);
                let ours = self.aloft.contains_key(&flight)
                    || started.contains(&flight)
                    || self.is_own_step(batch.state(), &flight);
                #[cfg(feature = "weak-no-started")]
                if !ours && let Some(wrong) = weak::instead(batch.state(), &work, now) {
                    match wrong {
                        Wrong::Launch => started.insert(flight),
                        Wrong::Decide(wrong) => {
                            command = Some(*wrong);
                            break;
                        }
                    };
                    continue;
                }
                let found = match work {
                    // What is in the air is awaited, and nothing follows.
                    Work::CallModel { .. }
                    | Work::Say { .. }
                    | Work::Start { .. }
                    | Work::LookUp { .. }
                        if self.engine.is_draining() =>
                    {
                        None
                    }
                    Work::CallModel { frame, not_before } if due(not_before.unwrap_or_default()) => {
                        Some(Command::StartModel {
                            frame,
                            epoch: self.next_epoch(),
                        })
                    }
                    Work::AwaitModel { frame, attempt } if !ours => {
                        Some(Command::ModelLost { frame, attempt })
                    }
                    Work::Start { action, not_before } if due(not_before.unwrap_or_default()) => {
                        self.start_command(batch, action).await?
                    }
                    Work::Settle {
                        action,
                        attempt,
                        at,
                    } if !ours && due(at) => Some(Command::ActionOrphaned { action, attempt }),
                    Work::LookUp { not_before, .. } if !ours && due(not_before) => {
                        started.insert(flight);
                        None
                    }
                    Work::Say { .. } if !ours => {
                        started.insert(flight);
                        None
                    }
                    Work::CallModel { .. }
                    | Work::AwaitModel { .. }
                    | Work::Say { .. }
                    | Work::Start { .. }
                    | Work::Settle { .. }
                    | Work::LookUp { .. } => None,
                };
                if found.is_some() {
                    command = found;
                    break;
                }
            }
            let Some(command) = command else {
                let times = wake_at.into_iter().chain(batch.state().due_at());
                self.wake_at = times.min();
                break;
            };
            let mut context = self.context(by.clone());
            match batch.decide(command.clone(), &mut context) {
                Ok(()) => {}
                // What was found to be due is decided by the same clock a moment later.
                Err(refusal) => return Err(refusal.into()),
            }
            for work in next(batch.state()) {
                if starts(&command, &work) {
                    started.insert(Flight::of(&work));
                }
            }
        }
        let open: HashSet<Flight> = next(batch.state()).iter().map(Flight::of).collect();
        Ok(started
            .into_iter()
            .filter(|flight| open.contains(flight))
            .collect())
    }

    /// The epoch under which this driver's next append will stand.
    pub(super) const fn next_epoch(&self) -> Epoch {
        match self.lease {
            Lease::Wanted { after } => after + 1,
            Lease::Held { epoch, .. } => epoch,
        }
    }

    /// Proves at the last moment that an action would run what was allowed; or asks again, where its tool has changed.
    pub(super) async fn start_command(
        &mut self,
        batch: &Batch,
        id: ActionId,
    ) -> Result<Option<Command>, Error> {
        let Some(action) = batch.state().actions.get(&id) else {
            return Ok(None);
        };
        // What was started once goes on as what it was; only a stepped tool starts nothing by being entered.
        let unstarted = action.attempts == 0 && action.role == Role::Call;
        if unstarted || action.is_entered() {
            if self.current.is_none() {
                let engine = &self.engine;
                let agent = &batch.state().agent;
                self.current = engine
                    .agents()
                    .last_seen(engine.store(), &self.thread.key.tenant, agent)
                    .await?;
            }
            if let Some(current) = self.current
                && let Some(call) = self.engine.drift(&self.thread, action, current).await?
            {
                return Ok(Some(Command::Restate {
                    definition: current.digest(),
                    interrupt: None,
                    calls: vec![call],
                }));
            }
        }
        let agent = self
            .engine
            .agent(&self.thread.key.tenant, action.definition)
            .await?;
        let tool_version = agent
            .at(&action.frame)
            .and_then(|agent| agent.facts(&action.tool.name, &action.params))
            .map(|tool| tool.version);
        let granted = match action.warrant().map(|warrant| &warrant.from) {
            Some(WarrantFrom::Grant(used)) => {
                self.engine.still_granted(&self.thread.key, used).await?
            }
            Some(_) | None => true,
        };
        // What undoes an effect is bound to that, and not to what anybody may do.
        let lacking = if action.role == Role::Compensation {
            None
        } else {
            let state = batch.state();
            self.engine.lacking_now(state, action, &agent).await?
        };
        let proof = holdpoint_core::Proof {
            params_hash: action.params.hash(
                &action.tool.name,
                tool_version.as_deref().unwrap_or_default(),
            ),
            tool_version: tool_version.unwrap_or_default(),
            granted,
            lacking,
        };
        Ok(Some(Command::StartAction {
            action: id,
            epoch: self.next_epoch(),
            proof,
        }))
    }
}

/// Whether this work was started by that command.
fn starts(command: &Command, work: &Work) -> bool {
    match (command, work) {
        (Command::StartModel { frame, .. }, Work::AwaitModel { frame: started, .. }) => {
            frame == started
        }
        (
            Command::StartAction { action, .. },
            Work::Settle {
                action: started, ..
            },
        ) => action == started,
        (_, _) => false,
    }
}
