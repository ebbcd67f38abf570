//! Stepped tools that this driver has entered: what they want is decided one by one, and answered once it is committed.

use std::{collections::HashMap, sync::Arc};

use holdpoint_core::{Action, ActionId, Batch, Command, Outcome, Refusal, State, Suspension};
use holdpoint_tools::{Begun, StepRefused};
use tokio::sync::mpsc;

use super::{Driver, Order};
use crate::{
    Error,
    entry::{Handle, What, Wish},
    flight::Flight,
    thread::{engine_principal, late_outcome},
};

/// The stepped tools that this driver has entered.
#[derive(Debug)]
pub(super) struct Entries {
    open: HashMap<ActionId, Entered>,
    /// What is to be decided in the next round.
    wishes: Vec<Wish>,
    sender: mpsc::UnboundedSender<Wish>,
    receiver: mpsc::UnboundedReceiver<Wish>,
}

#[derive(Debug)]
struct Entered {
    attempt: u32,
    /// Why it is left as soon as none of its steps is in flight. From then on it can begin nothing, and what it returns
    /// does not count: no code can swallow a question.
    leaving: Option<Leaving>,
}

#[derive(Debug, Clone)]
enum Leaving {
    /// It waits for something.
    Wait { name: String, on: Suspension },
    /// Nothing may start now, or what became of a step must be found out first.
    Yield,
}

/// What a wish came to, to be told once it is committed.
pub(super) enum Granted {
    /// The step may be taken, under this key; or it has ended, or may not be.
    Begin(Result<Begun, StepRefused>),
    /// The end of the step is recorded.
    End,
    /// Nothing is said: the entry will be dropped.
    Silence,
}

impl Entries {
    pub(super) fn new() -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        Self {
            open: HashMap::new(),
            wishes: Vec::new(),
            sender,
            receiver,
        }
    }

    /// The next wish that comes in.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when the future is dropped.
    pub(super) async fn next(&mut self) -> Wish {
        match self.receiver.recv().await {
            Some(wish) => wish,
            // We hold a sender ourselves.
            None => std::future::pending().await,
        }
    }

    /// Takes a wish in. `true` if something is to be decided.
    pub(super) fn hear(&mut self, wish: Wish) -> bool {
        let Some(entered) = self.open.get_mut(&wish.action) else {
            return false;
        };
        if entered.attempt != wish.attempt {
            return false;
        }
        match wish.what {
            What::End { .. } => self.wishes.push(wish),
            What::Begin { .. } if entered.leaving.is_some() => return false,
            What::Begin { .. } => self.wishes.push(wish),
            What::Wait { name, on } => {
                if entered.leaving.is_none() {
                    entered.leaving = Some(Leaving::Wait { name, on });
                }
            }
        }
        true
    }

    pub(super) fn is_entered(&self, action: ActionId) -> bool {
        self.open.contains_key(&action)
    }

    pub(super) fn has_wishes(&self) -> bool {
        !self.wishes.is_empty() || self.open.values().any(|entered| entered.leaving.is_some())
    }
}

impl Driver {
    /// The handle by which a stepped tool speaks to this driver.
    pub(super) async fn enter(&mut self, action: ActionId, attempt: u32) -> Result<Handle, Error> {
        let memo = self.transcript().await?.memo(action);
        let entered = Entered {
            attempt,
            leaving: None,
        };
        self.entries.open.insert(action, entered);
        Ok(Handle {
            action,
            attempt,
            memo,
            wishes: self.entries.sender.clone(),
        })
    }

    /// Whether a step in flight belongs to a tool that this driver has entered.
    pub(super) fn is_own_step(&self, state: &State, flight: &Flight) -> bool {
        let Flight::Call { action, .. } = flight else {
            return false;
        };
        let parent = state.actions.get(action).and_then(|step| step.parent);
        parent.is_some_and(|parent| self.entries.is_entered(parent))
    }

    /// Decides what entered tools want, each for itself: what one may not do concerns nobody else.
    pub(super) async fn decide_wishes(&mut self, batch: &mut Batch) -> Result<Vec<Granted>, Error> {
        let wishes = std::mem::take(&mut self.entries.wishes);
        let mut granted = Vec::with_capacity(wishes.len());
        for wish in &wishes {
            granted.push(self.decide_wish(batch, wish).await?);
        }
        // They are needed again if somebody else was faster.
        self.entries.wishes = wishes;
        self.leave(batch)?;
        Ok(granted)
    }

    async fn decide_wish(&mut self, batch: &mut Batch, wish: &Wish) -> Result<Granted, Error> {
        match &wish.what {
            What::Begin {
                name,
                effect,
                params,
                ..
            } => {
                let memo = self.transcript().await?.memo(wish.action);
                match memo.step(name, *effect, params) {
                    Err(misnamed) => {
                        return Ok(Granted::Begin(Err(StepRefused(misnamed.to_string()))));
                    }
                    Ok(Some(end)) => return Ok(Granted::Begin(Ok(Begun::Ended(end.clone())))),
                    Ok(None) => {}
                }
                if self.engine.is_draining() {
                    self.leave_soon(wish.action);
                    return Ok(Granted::Silence);
                }
                let command = Command::BeginStep {
                    action: wish.action,
                    attempt: wish.attempt,
                    name: name.clone(),
                    effect: *effect,
                    params: params.clone(),
                    epoch: self.next_epoch(),
                };
                let mut context = self.context(engine_principal(&self.thread.key.tenant));
                match batch.decide(command, &mut context) {
                    Ok(()) => {}
                    Err(Refusal::Stale("nothing may start now")) => {
                        self.leave_soon(wish.action);
                        return Ok(Granted::Silence);
                    }
                    Err(refusal) => {
                        return Ok(Granted::Begin(Err(StepRefused(refusal.to_string()))));
                    }
                }
                let state = batch.state();
                let step = state.actions.get(&wish.action.step(name));
                Ok(match step.filter(|step| step.is_in_flight()) {
                    Some(step) => Granted::Begin(Ok(Begun::Run {
                        key: step.idempotency_key(state.thread),
                    })),
                    // A limit was reached instead.
                    None => Granted::Silence,
                })
            }
            What::End { name, outcome, .. } => {
                let step = wish.action.step(name);
                let attempt = batch.state().actions.get(&step).map(|step| step.attempts);
                self.report(batch, step, attempt.unwrap_or(1), outcome.clone())
                    .await?;
                if let Outcome::Unknown { .. } = outcome {
                    self.leave_soon(wish.action);
                    return Ok(Granted::Silence);
                }
                Ok(Granted::End)
            }
            // It is no wish but a farewell.
            What::Wait { .. } => Ok(Granted::Silence),
        }
    }

    /// Records how a step ended, whatever the state.
    async fn report(
        &mut self,
        batch: &mut Batch,
        step: ActionId,
        attempt: u32,
        outcome: Outcome,
    ) -> Result<(), Error> {
        let command = Command::ActionEnded {
            action: step,
            attempt,
            outcome,
            artifact: None,
            past: None,
        };
        let mut context = self.context(engine_principal(&self.thread.key.tenant));
        match batch.decide(command.clone(), &mut context) {
            Ok(()) => Ok(()),
            Err(Refusal::Stale(_) | Refusal::RunOver) => {
                let late = late_outcome(self.engine.store(), &self.thread.key, &command);
                if let Some(late) = late.await? {
                    batch.decide(late, &mut context)?;
                }
                Ok(())
            }
            Err(refusal) => Err(refusal.into()),
        }
    }

    fn leave_soon(&mut self, action: ActionId) {
        if let Some(entered) = self.entries.open.get_mut(&action)
            && entered.leaving.is_none()
        {
            entered.leaving = Some(Leaving::Yield);
        }
    }

    /// Leaves the tools that are to be left and have no step in flight.
    fn leave(&mut self, batch: &mut Batch) -> Result<(), Error> {
        let mut commands = Vec::new();
        for (action, entered) in &self.entries.open {
            let (action, attempt) = (*action, entered.attempt);
            if batch.state().steps_of(action).any(Action::is_in_flight) {
                continue;
            }
            commands.extend(entered.leaving.clone().map(|leaving| match leaving {
                Leaving::Wait { name, on } => Command::Suspend {
                    action,
                    attempt,
                    name,
                    on,
                },
                Leaving::Yield => Command::Yield { action, attempt },
            }));
        }
        for command in commands {
            let mut context = self.context(engine_principal(&self.thread.key.tenant));
            match batch.decide(command, &mut context) {
                // What is over already need not be left.
                Ok(()) | Err(Refusal::Stale(_) | Refusal::RunOver) => {}
                Err(refusal) => return Err(refusal.into()),
            }
        }
        Ok(())
    }

    /// Tells the tools what became of their wishes, which is committed now; and drops what is over.
    pub(super) fn grant(&mut self, granted: Vec<Granted>) {
        let wishes = std::mem::take(&mut self.entries.wishes);
        for (wish, granted) in wishes.into_iter().zip(granted) {
            // A tool that does not listen any more has been dropped.
            match (wish.what, granted) {
                (What::Begin { reply, .. }, Granted::Begin(begun)) => drop(reply.send(begun)),
                (What::End { reply, .. }, Granted::End) => drop(reply.send(Ok(()))),
                (_, _) => {}
            }
        }
    }

    /// Forgets the tools that are no longer entered.
    pub(super) fn forget_left(&mut self) {
        let aloft = &self.aloft;
        self.entries.open.retain(|action, entered| {
            let flight = Flight::Call {
                action: *action,
                attempt: entered.attempt,
            };
            aloft.contains_key(&flight)
        });
    }

    /// Whether what a flight returns counts. A tool that was to be left returned all the same: of the steps that it had in
    /// flight nobody will hear again.
    pub(super) fn counts(&mut self, flight: &Flight) -> bool {
        let Flight::Call { action, .. } = flight else {
            return true;
        };
        let leaving = self.entries.open.get(action);
        if leaving.is_none_or(|entered| entered.leaving.is_none()) {
            return true;
        }
        let steps = self.thread.state.steps_of(*action);
        let lost: Vec<(ActionId, u32)> = steps
            .filter(|step| step.is_in_flight())
            .map(|step| (step.id, step.attempts))
            .collect();
        for (step, attempt) in lost {
            let reason = "its tool went on without waiting for it".to_owned();
            self.order(Command::ActionEnded {
                action: step,
                attempt,
                outcome: Outcome::Unknown { reason },
                artifact: None,
                past: None,
            });
        }
        false
    }

    /// The ends of steps that come in after the lease was lost.
    pub(super) fn late_end(&mut self, wish: Wish) -> Option<Order> {
        let What::End { name, outcome, .. } = wish.what else {
            return None;
        };
        let step = wish.action.step(&name);
        // What we know of the thread is out of date anyway; this step at least is not in flight any more.
        let attempt = Arc::make_mut(&mut self.thread.state)
            .actions
            .remove(&step)?
            .attempts;
        let command = Command::ActionEnded {
            action: step,
            attempt,
            outcome,
            artifact: None,
            past: None,
        };
        let by = engine_principal(&self.thread.key.tenant);
        Some(Order::new(command, by))
    }
}
