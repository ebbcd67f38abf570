//! Making the calls whose records are committed, and taking in how they ended.

use std::sync::Arc;

use holdpoint_core::{ActionId, Command, FramePath, Transcript};
use tokio::{
    task::{AbortHandle, Id, JoinError},
    time::Instant,
};

use super::{Driver, Lease};
use crate::{
    Agent, Error,
    artifact::Found,
    flight::{Flight, Landing, Way},
    turn::Turn,
};

impl Driver {
    /// Makes the calls whose records are committed.
    pub(super) async fn launch(&mut self, started: &[Flight]) -> Result<(), Error> {
        if let Lease::Held { until, .. } = self.lease
            && Instant::now() >= until
        {
            // We were frozen since the commit: someone may have taken over.
            if self.prolong().await?.is_err() {
                self.disown(started);
                return Ok(());
            }
        }
        for flight in started {
            let handle = match flight {
                Flight::Model { frame, attempt } => {
                    self.launch_turn(frame.clone(), *attempt, false).await?
                }
                Flight::Say { frame, attempt } => {
                    self.launch_turn(frame.clone(), *attempt, true).await?
                }
                Flight::Call { action, attempt } => self.launch_call(*action, *attempt).await?,
                Flight::LookUp { action } => self.launch_lookup(*action).await?,
            };
            let Some(handle) = handle else { continue };
            self.by_task.insert(handle.id(), flight.clone());
            self.aloft.insert(flight.clone(), handle);
        }
        Ok(())
    }

    /// Reports calls that were recorded as started but certainly not made: whoever drives now makes them.
    pub(super) fn disown(&mut self, started: &[Flight]) {
        for flight in started {
            if let Flight::Call { action, attempt } = flight {
                let reason = "another process took over just before".to_owned();
                self.order(Command::ActionWithheld {
                    action: *action,
                    attempt: *attempt,
                    reason,
                });
            }
        }
    }

    /// One turn of a model; or the end of one whose words a person lets be said, which are judged as if they were said just now.
    pub(super) async fn launch_turn(
        &mut self,
        frame: FramePath,
        attempt: u32,
        is_held: bool,
    ) -> Result<Option<AbortHandle>, Error> {
        let Some((agent, turn)) = self.turn(frame, attempt).await? else {
            return Ok(None);
        };
        let transcript = self.transcript().await?;
        let (engine, key) = (self.engine.clone(), self.thread.key.clone());
        let flight = async move {
            if is_held {
                crate::turn::say_held(&engine, &key, &agent, &transcript, turn).await
            } else {
                crate::turn::call_model(&engine, &key, &agent, &transcript, turn).await
            }
        };
        Ok(Some(self.flights.spawn(flight)))
    }

    async fn turn(
        &self,
        frame: FramePath,
        attempt: u32,
    ) -> Result<Option<(Arc<Agent>, Turn)>, Error> {
        let state = &self.thread.state;
        let frame_state = state.active().and_then(|active| active.frames.get(&frame));
        let (Some(run), Some(definition)) = (&state.run, frame_state.map(|it| it.definition))
        else {
            return Ok(None);
        };
        let (run, user) = (run.id, run.requester.clone());
        let grants = state.grants.values().cloned().collect();
        let asked = state.interrupts.values().map(|it| it.asks.len()).sum();
        let room = self.engine.options().pending_per_run.saturating_sub(asked);
        let agent = self
            .engine
            .agent(&self.thread.key.tenant, definition)
            .await?;
        let active = self.thread.state.active();
        let left = active.map(|active| active.limits.time.saturating_sub(active.worked));
        let silence = self.engine.options().model_timeout.into();
        let turn = Turn {
            frame,
            attempt,
            run,
            epoch: self.thread.epoch,
            silence,
            left: left.map(Into::into),
            user,
            grants,
            room,
        };
        Ok(Some((agent, turn)))
    }

    pub(super) async fn launch_call(
        &mut self,
        id: ActionId,
        attempt: u32,
    ) -> Result<Option<AbortHandle>, Error> {
        let Some(action) = self.thread.state.actions.get(&id).cloned() else {
            return Ok(None);
        };
        let agent = self
            .engine
            .agent(&self.thread.key.tenant, action.definition)
            .await?;
        let caller = agent.at(&action.frame);
        let way = if action.is_entered() {
            Way::Enter(Arc::new(self.enter(id, attempt).await?))
        } else if let Some(path) = caller.and_then(|caller| caller.asks_for_kept(&action)) {
            Way::ReadKept(Found::new(path, &*self.transcript().await?))
        } else {
            Way::Call
        };
        let now = self.engine.store().now();
        let (engine, key) = (self.engine.clone(), self.thread.key.clone());
        Ok(Some(self.flights.spawn(crate::flight::make_call(
            engine, key, agent, action, attempt, now, way,
        ))))
    }

    pub(super) async fn launch_lookup(
        &mut self,
        id: ActionId,
    ) -> Result<Option<AbortHandle>, Error> {
        let Some(action) = self.thread.state.actions.get(&id).cloned() else {
            return Ok(None);
        };
        let agent = self
            .engine
            .agent(&self.thread.key.tenant, action.definition)
            .await?;
        let (thread, epoch) = (self.thread.key.clone(), self.next_epoch());
        let engine = self.engine.clone();
        Ok(Some(self.flights.spawn(crate::flight::look_up(
            engine, thread, agent, action, epoch,
        ))))
    }

    pub(super) async fn transcript(&mut self) -> Result<Arc<Transcript>, Error> {
        self.engine.verify(&mut self.thread).await?;
        Ok(self.thread.transcript.clone().unwrap_or_default())
    }

    pub(super) fn land(&mut self, landed: Option<Result<(Id, Landing), JoinError>>) {
        self.has_news = true;
        match landed {
            None => {}
            Some(Ok((task, landing))) => {
                if let Some(flight) = self.by_task.remove(&task) {
                    self.aloft.remove(&flight);
                    if !self.counts(&flight) {
                        return;
                    }
                }
                for command in landing.commands {
                    self.order(command);
                }
            }
            Some(Err(error)) => {
                let Some(flight) = self.by_task.remove(&error.id()) else {
                    return;
                };
                self.aloft.remove(&flight);
                if let Some(command) = flight.crashed().filter(|_| !error.is_cancelled()) {
                    self.order(command);
                }
            }
        }
    }
}
