//! The one task that drives a thread: it decides, commits, and only then acts.
//!
//! Each round gathers what came in (outcomes, a caller's command), adds the records of everything that may start now,
//! and commits it all in one append. Calls are made after that append and never before. When nothing is left to do, the
//! same append gives the lease back.

mod launch;
mod starts;
mod steps;
mod tenure;
#[cfg(feature = "weak-no-started")]
mod weak;

use std::{collections::HashMap, sync::Arc, time::Duration};

use holdpoint_core::{Batch, Command, Context, Principal, Refusal, Seed, State, Timestamp, next};
use holdpoint_store::{AppendError, Epoch, Fence, LeaseAfter, Space};
use tokio::{
    sync::watch,
    task::{AbortHandle, Id, JoinSet},
    time::Instant,
};

use self::steps::Entries;
use crate::{
    Engine, Error, Mark,
    agent::Current,
    drivers::Registration,
    error::from_append,
    flight::{Flight, Landing},
    thread::{Refused, Thread, engine_principal, fresh_seed, late_outcome},
};

/// Something to be decided: by a caller, or by this driver.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    pub(crate) command: Command,
    pub(crate) by: Principal,
    /// By what the caller's request is known again.
    pub(crate) mark: Option<Mark>,
    /// The definition that it was compared with, without looking whether it is the current one still.
    pub(crate) relies_on: Option<Current>,
}

/// What an order is refused with whose definition is not the current one any more.
pub(crate) const OUTDATED: Refusal = Refusal::Stale("the agent's definition has changed");

impl Order {
    /// A command that nobody asked for under a mark.
    pub(crate) const fn new(command: Command, by: Principal) -> Self {
        Self {
            command,
            by,
            mark: None,
            relies_on: None,
        }
    }
}

/// A thread as a command left it.
#[derive(Debug, Clone)]
pub(crate) struct Standing {
    /// As it was before. What the command led to comes after.
    pub(crate) before: Arc<State>,
    pub(crate) state: Arc<State>,
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
    /// Where the randomness of every command comes from.
    seed: Seed,
    /// What is to be decided in the next round.
    orders: Vec<Order>,
    /// The thread before this driver's first append, once that is committed.
    before: Option<Arc<State>>,
    lease: Lease,
    flights: JoinSet<Landing>,
    aloft: HashMap<Flight, AbortHandle>,
    entries: Entries,
    by_task: HashMap<Id, Flight>,
    /// The agent's current definition, if something that this round starts was compared with it.
    current: Option<Current>,
    /// When work that cannot go on yet can.
    wake_at: Option<Timestamp>,
    /// Whether anything happened since the last round.
    has_news: bool,
    /// What other tasks of this process append.
    poke: Registration,
    /// What other processes append.
    foreign: watch::Receiver<u64>,
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
    Driving(Box<Driver>, Standing),
    /// It is committed, and nothing is left to do.
    Stopped(Standing),
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
    ///
    /// # Errors
    ///
    /// There is no randomness.
    pub(crate) fn taking(engine: Engine, thread: Thread, order: Order) -> Result<Self, Error> {
        let after = thread.epoch;
        Self::new(engine, thread, vec![order], Lease::Wanted { after })
    }

    /// A driver of a thread whose lease was just taken.
    ///
    /// # Errors
    ///
    /// There is no randomness.
    pub(crate) fn holding(engine: Engine, thread: Thread, epoch: Epoch) -> Result<Self, Error> {
        let until = Instant::now() + Duration::from(engine.options().lease);
        Self::new(engine, thread, Vec::new(), Lease::Held { epoch, until })
    }

    fn new(
        engine: Engine,
        thread: Thread,
        orders: Vec<Order>,
        lease: Lease,
    ) -> Result<Self, Error> {
        let seed = fresh_seed(engine.store().now())?;
        let poke = engine.register(&thread.key);
        let foreign = engine.store().foreign_changes();
        Ok(Self {
            engine,
            thread,
            seed,
            orders,
            before: None,
            lease,
            flights: JoinSet::new(),
            aloft: HashMap::new(),
            entries: Entries::new(),
            by_task: HashMap::new(),
            current: None,
            wake_at: None,
            has_news: true,
            poke,
            foreign,
        })
    }

    /// Commits the caller's command.
    ///
    /// # Errors
    ///
    /// The command is refused, or the store fails.
    pub(crate) async fn begin(mut self) -> Result<Begun, Error> {
        let order = self.orders.first().cloned();
        let round = self.round().await?;
        let state = Arc::clone(&self.thread.state);
        let standing = Standing {
            before: self.before.clone().unwrap_or_else(|| Arc::clone(&state)),
            state,
        };
        if let (Some(order), None) = (&order, &self.before)
            && !matches!(round, Round::Exit(Exit::NotOurs))
        {
            self.engine.note(order, &standing.state).await?;
        }
        Ok(match round {
            Round::Committed => Begun::Driving(Box::new(self), standing),
            Round::Exit(Exit::Stopped) => Begun::Stopped(standing),
            Round::Exit(Exit::NotOurs) => Begun::NotOurs,
        })
    }

    /// Drives until nothing is left to do, and returns the thread as it stands then; `None` if another driver takes over.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future is like the death of the process: calls in flight are lost and found again by whoever drives
    /// the thread next, once the lease has ended.
    pub(crate) async fn run(mut self) -> Result<Option<Arc<State>>, Error> {
        match self.drive().await {
            Ok(Exit::Stopped) => Ok(Some(self.thread.state)),
            Ok(Exit::NotOurs) => Ok(None),
            Err(error) => {
                self.let_go().await;
                Err(error)
            }
        }
    }

    async fn drive(&mut self) -> Result<Exit, Error> {
        loop {
            if (self.has_news || !self.orders.is_empty() || self.entries.has_wishes())
                && let Round::Exit(exit) = self.round().await?
            {
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
                () = sleep_until(&self.engine, self.wake_at), if self.wake_at.is_some() => {
                    self.has_news = true;
                }
                () = tokio::time::sleep_until(renew_at) => {
                    if let Some(exit) = self.renew().await? {
                        return Ok(exit);
                    }
                }
                wish = self.entries.next() => {
                    self.has_news |= self.entries.hear(wish);
                }
                _ = self.foreign.changed() => self.look_again().await?,
                () = self.poke.notified() => self.look_again().await?,
            }
        }
    }

    /// Decides everything that can be decided now, commits it, and launches what it started.
    async fn round(&mut self) -> Result<Round, Error> {
        self.has_news = false;
        loop {
            let mut batch = Batch::new(Arc::clone(&self.thread.state));
            self.current = None;
            self.decide_due(&mut batch)?;
            self.decide_orders(&mut batch).await?;
            let granted = self.decide_wishes(&mut batch).await?;
            let started = self.decide_starts(&mut batch).await?;
            let goes = self.engine.is_draining() && self.aloft.is_empty() && started.is_empty();
            let idle = goes || next(batch.state()).is_empty();
            if batch.is_empty() {
                if !idle {
                    if let Lease::Wanted { .. } = self.lease
                        && let Some(exit) = self.take().await?
                    {
                        return Ok(Round::Exit(exit));
                    }
                    self.grant(granted);
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
            let before = Arc::clone(&self.thread.state);
            let mark = |order: &Order| {
                self.engine
                    .mark_change(order, before.version, batch.state())
            };
            let marks = self.orders.iter().filter_map(mark);
            let relied_on = self.orders.iter().find_map(|order| order.relies_on);
            let current = self.current.or(relied_on);
            let cells = current.map(unchanged).into_iter().chain(marks);
            let cells = cells.collect();
            match self
                .thread
                .append(&self.engine, batch, cells, fence, lease)
                .await
            {
                Ok((entries, head)) => {
                    if let Lease::Wanted { .. } = self.lease {
                        self.lease = Lease::Held {
                            epoch: self.thread.epoch,
                            until,
                        };
                    }
                    self.orders.clear();
                    let (key, state) = (&self.thread.key, &self.thread.state);
                    self.engine.tell_own(key, entries, &before, state);
                    self.before.get_or_insert(before);
                    self.grant(granted);
                    self.drop_unwanted();
                    if idle {
                        self.engine.remember(&self.thread, head);
                        self.engine.poke(&self.thread.key);
                        self.hand_over().await?;
                        return Ok(Round::Exit(Exit::Stopped));
                    }
                    self.launch(&started).await?;
                    return Ok(Round::Committed);
                }
                Err(Refused::Append(AppendError::Conflict { .. })) => self.look_again().await?,
                Err(Refused::Append(AppendError::CellConflict {
                    space: Space::Request,
                    ..
                })) => {
                    if let Some(order) = self.orders.iter().find(|it| it.mark.is_some()) {
                        return Err(self.engine.replayed(order).await?);
                    }
                }
                Err(Refused::Append(AppendError::CellConflict {
                    space: Space::Definition,
                    ..
                })) => {
                    let agent = self.thread.state.agent.clone();
                    self.engine.current(&self.thread.key, &agent).await?;
                    if self.orders.iter().any(|it| it.relies_on.is_some()) {
                        return Err(OUTDATED.into());
                    }
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

    fn context(&mut self, by: Principal) -> Context {
        let now = self.engine.store().now();
        let seed = self.seed.fork(now);
        Context { now, by, seed }
    }

    /// Does what is due by now.
    fn decide_due(&mut self, batch: &mut Batch) -> Result<(), Error> {
        let due = batch.state().due_at();
        if due.is_some_and(|at| at <= self.engine.store().now()) {
            let mut context = self.context(engine_principal(&self.thread.key.tenant));
            batch.decide(Command::Tick, &mut context)?;
        }
        Ok(())
    }

    async fn decide_orders(&mut self, batch: &mut Batch) -> Result<(), Error> {
        let orders = std::mem::take(&mut self.orders);
        let decided = self.decide_each(&orders, batch).await;
        // They count until an append has them.
        self.orders = orders;
        decided
    }

    async fn decide_each(&mut self, orders: &[Order], batch: &mut Batch) -> Result<(), Error> {
        for order in orders {
            let mut context = self.context(order.by.clone());
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

    fn order(&mut self, command: Command) {
        let by = engine_principal(&self.thread.key.tenant);
        self.orders.push(Order::new(command, by));
    }
}

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
        | Command::HoldOutput { .. }
        | Command::ModelFailed { .. }
        | Command::ModelLost { .. }
        | Command::ActionEnded { .. }
        | Command::ActionWithheld { .. }
        | Command::ActionOutdated { .. }
        | Command::ActionOrphaned { .. }
        | Command::LookedUp { .. } => true,
        Command::StartRun { .. }
        | Command::Ask { .. }
        | Command::Withdraw { .. }
        | Command::Fork { .. }
        | Command::Cancel { .. }
        | Command::Pause { .. }
        | Command::Continue { .. }
        | Command::Tick
        | Command::BeginStep { .. }
        | Command::Suspend { .. }
        | Command::Yield { .. }
        | Command::UseGrant { .. }
        | Command::RevokeGrant { .. }
        | Command::StartModel { .. }
        | Command::StartAction { .. }
        | Command::Answer { .. }
        | Command::Restate { .. }
        | Command::Restore { .. } => false,
    }
}

const fn is_call_outcome(command: &Command) -> bool {
    matches!(
        command,
        Command::ActionEnded { .. }
            | Command::ActionWithheld { .. }
            | Command::ActionOutdated { .. }
    )
}
