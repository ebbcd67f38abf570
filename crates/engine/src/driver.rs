//! The one task that drives a thread: it decides, commits, and only then acts.
//!
//! Each round gathers what came in (outcomes, a caller's command), adds the records of everything that may start now,
//! and commits it all in one append. Calls are made after that append and never before. When nothing is left to do, the
//! same append gives the lease back.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use holdpoint_core::{
    ActionId, Batch, Command, Context, Entry, FramePath, Outcome, Principal, Refusal, Timestamp,
    Transcript, Work, next,
};
use holdpoint_store::{AppendError, Epoch, Fence, LeaseAfter, LeaseError};
use tokio::{
    task::{AbortHandle, Id, JoinError, JoinSet},
    time::Instant,
};

use crate::{
    Engine, Error,
    agent::Current,
    error::{from_append, from_lease},
    flight::{Flight, Landing},
    thread::{Refused, Thread, engine_principal, fresh_seed, late_outcome, read_transcript},
};

/// Something to be decided: by a caller, or by this driver.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    pub(crate) command: Command,
    pub(crate) by: Principal,
}

/// Why a driver stopped driving.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Nothing is left to do now; the lease is given back.
    Stopped,
    /// Another driver has the thread.
    NotOurs,
}

/// Drives one thread.
#[derive(Debug)]
pub(crate) struct Driver {
    engine: Engine,
    thread: Thread,
    transcript: Option<Arc<Transcript>>,
    /// What is to be decided in the next round.
    orders: Vec<Order>,
    lease: Lease,
    flights: JoinSet<Landing>,
    aloft: HashMap<Flight, AbortHandle>,
    by_task: HashMap<Id, Flight>,
    /// The agent's current definition, if something that this round starts was compared with it.
    current: Option<Current>,
    /// When work that cannot go on yet can.
    wake_at: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy)]
enum Lease {
    /// The next append takes it.
    Wanted { after: Epoch },
    /// Held, for sure until then.
    Held { epoch: Epoch, until: Instant },
}

/// What became of a caller's command.
pub(crate) enum Begun {
    /// It is committed, and there is work.
    Driving(Box<Driver>),
    /// It is committed, and nothing is left to do.
    Stopped,
    /// Another driver holds the lease, and nothing was committed.
    NotOurs,
}

/// What a round came to.
enum Round {
    Committed,
    Exit(Exit),
}

impl Driver {
    /// A driver whose first append carries `order` and takes the lease.
    pub(crate) fn taking(engine: Engine, thread: Thread, order: Order) -> Self {
        let after = thread.epoch;
        Self::new(engine, thread, vec![order], Lease::Wanted { after })
    }

    /// A driver of a thread whose lease was just taken.
    pub(crate) fn holding(engine: Engine, thread: Thread, epoch: Epoch) -> Self {
        let until = Instant::now() + Duration::from(engine.options().lease);
        Self::new(engine, thread, Vec::new(), Lease::Held { epoch, until })
    }

    fn new(engine: Engine, thread: Thread, orders: Vec<Order>, lease: Lease) -> Self {
        // A thread that does not exist yet has nothing to read.
        let transcript = (thread.state.version == 0).then(Arc::default);
        Self {
            engine,
            thread,
            transcript,
            orders,
            lease,
            flights: JoinSet::new(),
            aloft: HashMap::new(),
            by_task: HashMap::new(),
            current: None,
            wake_at: None,
        }
    }

    /// Commits the caller's command.
    ///
    /// # Errors
    ///
    /// The command is refused, or the store fails.
    pub(crate) async fn begin(mut self) -> Result<Begun, Error> {
        Ok(match self.round().await? {
            Round::Committed => Begun::Driving(Box::new(self)),
            Round::Exit(Exit::Stopped) => Begun::Stopped,
            Round::Exit(Exit::NotOurs) => Begun::NotOurs,
        })
    }

    /// Drives until nothing is left to do, or another driver takes over.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future is like the death of the process: calls in flight are lost and found again by whoever drives
    /// the thread next, once the lease has ended.
    pub(crate) async fn run(mut self) -> Result<Exit, Error> {
        let poke = self.engine.register(&self.thread.key);
        let mut foreign = self.engine.store().foreign_changes();
        loop {
            if let Round::Exit(exit) = self.round().await? {
                return Ok(exit);
            }
            let renew_at = match self.lease {
                Lease::Held { until, .. } => {
                    until - Duration::from(self.engine.options().lease) * 2 / 3
                }
                Lease::Wanted { .. } => Instant::now(),
            };
            tokio::select! {
                // Cancel safe: every arm is, and what one of them took is handled before the next wait.
                landed = self.flights.join_next_with_id(), if !self.flights.is_empty() => {
                    self.land(landed);
                    while let Some(landed) = self.flights.try_join_next_with_id() {
                        self.land(Some(landed));
                    }
                }
                () = sleep_until(&self.engine, self.wake_at), if self.wake_at.is_some() => {}
                () = tokio::time::sleep_until(renew_at) => {
                    if let Some(exit) = self.renew().await? {
                        return Ok(exit);
                    }
                }
                _ = foreign.changed() => self.look_again().await?,
                () = poke.notified() => self.look_again().await?,
            }
        }
    }

    /// Decides everything that can be decided now, commits it, and launches what it started.
    async fn round(&mut self) -> Result<Round, Error> {
        loop {
            let mut batch = Batch::new(self.thread.state.clone());
            self.current = None;
            self.decide_orders(&mut batch).await?;
            let started = self.decide_starts(&mut batch).await?;
            let idle = next(batch.state()).is_empty();
            if batch.is_empty() {
                if !idle {
                    self.launch(&started).await?;
                    return Ok(Round::Committed);
                }
                match self.give_back().await? {
                    Some(exit) => return Ok(Round::Exit(exit)),
                    None => continue,
                }
            }
            let fence = match self.lease {
                Lease::Wanted { after } => Fence::Take {
                    after,
                    lasts: self.engine.options().lease,
                },
                Lease::Held { epoch, .. } => Fence::Driver(epoch),
            };
            let lease = if idle {
                LeaseAfter::Release
            } else {
                LeaseAfter::Keep
            };
            // Counted from before the commit, so that we never believe to hold it longer than the store does.
            let until = Instant::now() + Duration::from(self.engine.options().lease);
            let unchanged = |current: Current| current.unchanged(&self.thread.state.agent);
            let cells = self.current.map(unchanged).into_iter().collect();
            match self
                .thread
                .append(self.engine.store(), batch, cells, fence, lease)
                .await
            {
                Ok(entries) => {
                    if let Lease::Wanted { .. } = self.lease {
                        self.lease = Lease::Held {
                            epoch: self.thread.epoch,
                            until,
                        };
                    }
                    self.orders.clear();
                    self.note(&entries);
                    if idle {
                        self.hand_over().await?;
                        return Ok(Round::Exit(Exit::Stopped));
                    }
                    self.launch(&started).await?;
                    return Ok(Round::Committed);
                }
                Err(Refused::Append(
                    AppendError::Conflict { .. } | AppendError::CellConflict { .. },
                )) => {
                    self.look_again().await?;
                }
                Err(Refused::Append(AppendError::Fenced { .. })) => {
                    return self.hand_over().await.map(Round::Exit);
                }
                Err(Refused::Append(AppendError::LeaseHeld { .. })) => {
                    return Ok(Round::Exit(Exit::NotOurs));
                }
                Err(Refused::Append(error)) => return Err(from_append(error)),
                Err(Refused::Other(error)) => return Err(error),
            }
        }
    }

    fn context(&self, by: &Principal) -> Result<Context, Error> {
        let now = self.engine.store().now();
        Ok(Context {
            now,
            by: by.clone(),
            seed: fresh_seed(now)?,
        })
    }

    async fn decide_orders(&self, batch: &mut Batch) -> Result<(), Error> {
        for order in &self.orders {
            let mut context = self.context(&order.by)?;
            match batch.decide(order.command.clone(), &mut context) {
                Ok(()) => {}
                Err(Refusal::Stale(_) | Refusal::RunOver) if is_report(&order.command) => {
                    let late = late_outcome(self.engine.store(), &self.thread.key, &order.command);
                    if let Some(late) = late.await? {
                        batch.decide(late, &mut context)?;
                    }
                }
                Err(refusal) => return Err(refusal.into()),
            }
        }
        Ok(())
    }

    /// Adds the records of everything that may start now. Returns what is to be launched once they are committed.
    async fn decide_starts(&mut self, batch: &mut Batch) -> Result<Vec<Flight>, Error> {
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
                let ours = self.aloft.contains_key(&flight) || started.contains(&flight);
                let found = match work {
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
                    // Wrong on purpose: a call found as started is repeated as if nothing had been recorded.
                    Work::Settle { .. } if !ours && cfg!(feature = "weak-no-started") => {
                        started.insert(flight);
                        None
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
                    Work::CallModel { .. }
                    | Work::AwaitModel { .. }
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
                self.wake_at = wake_at;
                break;
            };
            let mut context = self.context(&by)?;
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
    const fn next_epoch(&self) -> Epoch {
        match self.lease {
            Lease::Wanted { after } => after + 1,
            Lease::Held { epoch, .. } => epoch,
        }
    }

    /// Proves at the last moment that an action would run what was allowed; or asks again, where its tool has changed.
    async fn start_command(
        &mut self,
        batch: &Batch,
        id: ActionId,
    ) -> Result<Option<Command>, Error> {
        let Some(action) = batch.state().actions.get(&id) else {
            return Ok(None);
        };
        // What was started once goes on as what it was.
        if action.attempts == 0 {
            if self.current.is_none() {
                self.current = self
                    .engine
                    .current(&self.thread.key, &batch.state().agent)
                    .await?;
            }
            if let Some(current) = self.current
                && let Some(call) = self.engine.drift(&self.thread.key, action, current).await?
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
            .definition
            .tool(&action.tool.name)
            .map(|tool| tool.version.clone());
        let proof = holdpoint_core::Proof {
            params_hash: action.params.hash(
                &action.tool.name,
                tool_version.as_deref().unwrap_or_default(),
            ),
            tool_version: tool_version.unwrap_or_default(),
        };
        Ok(Some(Command::StartAction {
            action: id,
            epoch: self.next_epoch(),
            proof,
        }))
    }

    /// Makes the calls whose records are committed.
    async fn launch(&mut self, started: &[Flight]) -> Result<(), Error> {
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
                    self.launch_model(frame.clone(), *attempt).await?
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

    /// Reports calls that were recorded as started but certainly not made.
    fn disown(&mut self, started: &[Flight]) {
        for flight in started {
            if let Flight::Call { action, attempt } = flight {
                let error =
                    "the call was not made: another process took over just before".to_owned();
                self.order(Command::ActionEnded {
                    action: *action,
                    attempt: *attempt,
                    outcome: Outcome::Failed { error },
                    past: None,
                });
            }
        }
    }

    fn order(&mut self, command: Command) {
        let by = engine_principal(&self.thread.key.tenant);
        self.orders.push(Order { command, by });
    }

    async fn launch_model(
        &mut self,
        frame: FramePath,
        attempt: u32,
    ) -> Result<Option<AbortHandle>, Error> {
        let Some(definition) = self.thread.state.run.as_ref().map(|run| run.definition) else {
            return Ok(None);
        };
        let agent = self
            .engine
            .agent(&self.thread.key.tenant, definition)
            .await?;
        let transcript = self.transcript().await?;
        let engine = self.engine.clone();
        let key = self.thread.key.clone();
        let flight = async move {
            crate::flight::call_model(&engine, &key, &agent, transcript, frame, attempt).await
        };
        Ok(Some(self.flights.spawn(flight)))
    }

    async fn launch_call(
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
        let key = action.idempotency_key(self.thread.state.thread);
        let now = self.engine.store().now();
        Ok(Some(self.flights.spawn(crate::flight::make_call(
            agent, action, attempt, key, now,
        ))))
    }

    async fn launch_lookup(&mut self, id: ActionId) -> Result<Option<AbortHandle>, Error> {
        let Some(action) = self.thread.state.actions.get(&id).cloned() else {
            return Ok(None);
        };
        let agent = self
            .engine
            .agent(&self.thread.key.tenant, action.definition)
            .await?;
        let key = action.idempotency_key(self.thread.state.thread);
        let epoch = self.next_epoch();
        Ok(Some(
            self.flights
                .spawn(crate::flight::look_up(agent, action, key, epoch)),
        ))
    }

    async fn transcript(&mut self) -> Result<Arc<Transcript>, Error> {
        if let Some(transcript) = &self.transcript {
            return Ok(Arc::clone(transcript));
        }
        let read = read_transcript(
            self.engine.store(),
            &self.thread.key,
            self.thread.state.version,
        )
        .await?;
        Ok(Arc::clone(self.transcript.insert(Arc::new(read))))
    }

    /// Takes in what was committed.
    fn note(&mut self, entries: &[Entry]) {
        self.engine.tell(&self.thread.key, entries);
        if let Some(transcript) = &mut self.transcript {
            // Only shared while a model is being called, and then nothing of it changes.
            let transcript = Arc::make_mut(transcript);
            for entry in entries {
                transcript.apply(&entry.event);
            }
        }
    }

    fn land(&mut self, landed: Option<Result<(Id, Landing), JoinError>>) {
        match landed {
            None => {}
            Some(Ok((task, landing))) => {
                if let Some(flight) = self.by_task.remove(&task) {
                    self.aloft.remove(&flight);
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
                if !error.is_cancelled() {
                    self.order(flight.crashed());
                }
            }
        }
    }

    /// Someone else appended: reads it, and drops calls that nobody waits for any more.
    async fn look_again(&mut self) -> Result<(), Error> {
        let entries = self.thread.catch_up(self.engine.store()).await?;
        self.note(&entries);
        if let Lease::Wanted { after } = &mut self.lease {
            *after = self
                .thread
                .reload_epoch(self.engine.store())
                .await?
                .unwrap_or(*after);
        }
        let open: HashSet<Flight> = next(&self.thread.state).iter().map(Flight::of).collect();
        self.drop_flights(&open);
        Ok(())
    }

    /// Drops calls that are no longer awaited. Only models and reads: whatever else was made is awaited to its end.
    fn drop_flights(&mut self, open: &HashSet<Flight>) {
        self.aloft.retain(|flight, handle| {
            let keep = open.contains(flight) || !flight.may_be_dropped(&self.thread.state);
            if !keep {
                handle.abort();
            }
            keep
        });
    }

    async fn renew(&mut self) -> Result<Option<Exit>, Error> {
        match self.prolong().await? {
            Ok(()) => Ok(None),
            Err(Taken) => self.hand_over().await.map(Some),
        }
    }

    async fn prolong(&mut self) -> Result<Result<(), Taken>, Error> {
        let Lease::Held { epoch, .. } = self.lease else {
            return Ok(Ok(()));
        };
        let lasts = self.engine.options().lease;
        let until = Instant::now() + Duration::from(lasts);
        match self
            .engine
            .store()
            .renew(&self.thread.key, epoch, lasts)
            .await
        {
            Ok(()) => {
                self.lease = Lease::Held { epoch, until };
                Ok(Ok(()))
            }
            Err(LeaseError::Fenced { .. } | LeaseError::NotFound) => Ok(Err(Taken)),
            Err(error) => Err(from_lease(error)),
        }
    }

    /// Gives the lease back at the version at which nothing was left to do; `None` if there is news.
    async fn give_back(&mut self) -> Result<Option<Exit>, Error> {
        let Lease::Held { epoch, .. } = self.lease else {
            return Ok(Some(Exit::Stopped));
        };
        match self
            .engine
            .store()
            .release(&self.thread.key, epoch, self.thread.state.version)
            .await
        {
            Ok(()) => Ok(Some(Exit::Stopped)),
            Err(LeaseError::Conflict { .. }) => {
                self.look_again().await?;
                Ok(None)
            }
            Err(LeaseError::Fenced { .. }) => self.hand_over().await.map(Some),
            Err(error) => Err(from_lease(error)),
        }
    }

    /// The lease is no longer ours. The outcomes of calls that were made are never dropped: they are reported late.
    async fn hand_over(&mut self) -> Result<Exit, Error> {
        let mut reports: Vec<Order> = self
            .orders
            .drain(..)
            .filter(|order| is_call_outcome(&order.command))
            .collect();
        self.drop_flights(&HashSet::new());
        while let Some(landed) = self.flights.join_next_with_id().await {
            self.land(Some(landed));
            reports.extend(
                self.orders
                    .drain(..)
                    .filter(|order| is_call_outcome(&order.command)),
            );
        }
        for report in reports {
            self.engine.append_open(&self.thread.key, report).await?;
        }
        Ok(Exit::NotOurs)
    }
}

/// Another driver has the lease.
struct Taken;

async fn sleep_until(engine: &Engine, at: Option<Timestamp>) {
    let Some(at) = at else { return };
    let span = at.since(engine.store().now());
    // The store's clock may be changed under us, so a long wait looks at it now and then.
    tokio::time::sleep(Duration::from(span).min(Duration::from_secs(1))).await;
}

/// Whether a command reports what a driver saw, so that it may come too late.
pub(crate) const fn is_report(command: &Command) -> bool {
    match command {
        Command::ModelReplied { .. }
        | Command::ModelFailed { .. }
        | Command::ModelLost { .. }
        | Command::ActionEnded { .. }
        | Command::ActionOrphaned { .. }
        | Command::LookedUp { .. } => true,
        Command::StartRun { .. }
        | Command::Cancel
        | Command::StartModel { .. }
        | Command::StartAction { .. }
        | Command::Answer { .. }
        | Command::Restate { .. } => false,
    }
}

const fn is_call_outcome(command: &Command) -> bool {
    matches!(command, Command::ActionEnded { .. })
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
