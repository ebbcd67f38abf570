//! The engine: what callers ask of it, and who drives then.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use holdpoint_core::{
    Action, Answer, Batch, Command, Context, Decision, Definition, Digest, Entry, Index,
    InterruptId, Principal, Refusal, RestatedCall, RunId, Span, State, Subject, ThreadId, closing,
    decide, decode_records, next,
};
use holdpoint_models::Delta;
use holdpoint_store::{
    AppendError, Fence, Head, Holder, LeaseAfter, LeaseError, Scan, SharedStore, ThreadKey,
};
use tokio::sync::Notify;

use crate::{
    Agent, Error, Kit,
    agent::{Agents, Current},
    driver::{Begun, Driver, Exit, Order, is_report},
    error::{from_append, from_lease},
    judge,
    thread::{
        Refused, Thread, engine_principal, fresh_seed, late_outcome, read_journal, read_transcript,
    },
};

/// How often a thread that another process drives is looked at, where nothing tells us of a change.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// How an engine behaves.
#[derive(Debug, Clone)]
pub struct Options {
    /// How long a lease lasts unless it is renewed. A dead process on this machine is noticed at once; this is for
    /// those on others.
    pub lease: Span,
    /// How long one model call may take.
    pub model_timeout: Span,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            lease: Span::from_secs(10),
            model_timeout: Span::from_secs(120),
        }
    }
}

/// Is told what happens in this process, for showing it. It cannot change anything.
pub trait Watcher: Send + Sync + std::fmt::Debug {
    /// Events of a thread that this process drives were committed, by it or by another one.
    fn committed(&self, key: &ThreadKey, entries: &[Entry]);
    /// A model said a part of something that is not committed yet.
    fn delta(&self, key: &ThreadKey, delta: &Delta);
}

/// Drives runs on a store. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Engine(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: SharedStore,
    agents: Agents,
    options: Options,
    watcher: Option<Arc<dyn Watcher>>,
    /// The threads that this process drives, to be told of appends by other tasks.
    drivers: Mutex<HashMap<ThreadKey, Arc<Notify>>>,
}

/// A command that was committed.
#[derive(Debug)]
#[must_use = "nothing drives the run until `finish` is called"]
pub struct Submitted {
    engine: Engine,
    key: ThreadKey,
    next: Next,
}

/// What is left to do after a command was committed.
#[derive(Debug)]
enum Next {
    /// This process drives.
    Drive(Box<Driver>),
    /// Another process drives, or may.
    Follow,
    /// Nothing.
    Nothing,
}

impl Submitted {
    /// The thread it was committed to.
    #[must_use]
    pub const fn key(&self) -> &ThreadKey {
        &self.key
    }

    /// Drives the run, or follows whoever drives it, until it stops: at its end, or because it waits.
    ///
    /// # Errors
    ///
    /// The store fails. What is committed stays, and `recover` goes on from there.
    pub async fn finish(self) -> Result<(), Error> {
        match self.next {
            Next::Nothing => Ok(()),
            Next::Follow => self.engine.drive(&self.key).await,
            Next::Drive(driver) => match driver.run().await? {
                Exit::Stopped => Ok(()),
                Exit::NotOurs => self.engine.drive(&self.key).await,
            },
        }
    }
}

impl Engine {
    /// An engine on this store.
    #[must_use]
    pub fn new(
        store: SharedStore,
        kit: Kit,
        options: Options,
        watcher: Option<Arc<dyn Watcher>>,
    ) -> Self {
        let agents = Agents::new(kit);
        Self(Arc::new(Inner {
            store,
            agents,
            options,
            watcher,
            drivers: Mutex::default(),
        }))
    }

    /// The store it works on.
    #[must_use]
    pub fn store(&self) -> &SharedStore {
        &self.0.store
    }

    pub(crate) fn options(&self) -> &Options {
        &self.0.options
    }

    pub(crate) async fn agent(&self, tenant: &str, digest: Digest) -> Result<Arc<Agent>, Error> {
        self.0.agents.pinned(&self.0.store, tenant, digest).await
    }

    pub(crate) fn tell(&self, key: &ThreadKey, entries: &[Entry]) {
        if let Some(watcher) = &self.0.watcher
            && !entries.is_empty()
        {
            watcher.committed(key, entries);
        }
    }

    pub(crate) fn tell_delta(&self, key: &ThreadKey, delta: &Delta) {
        if let Some(watcher) = &self.0.watcher {
            watcher.delta(key, delta);
        }
    }

    /// Stores a definition and makes it its agent's current one.
    ///
    /// # Errors
    ///
    /// A tool, schema or model cannot be used; the store fails.
    pub async fn publish(&self, tenant: &str, definition: Definition) -> Result<Arc<Agent>, Error> {
        self.0
            .agents
            .publish(&self.0.store, tenant, definition)
            .await
    }

    /// Starts a run in the thread of this agent and session.
    ///
    /// # Errors
    ///
    /// The thread waits or has a run that is not over; the agent asks people but the store forgets; the store fails.
    pub async fn start(
        &self,
        by: &Principal,
        agent: &Agent,
        session: &str,
        input: &str,
    ) -> Result<Submitted, Error> {
        let tenant = &by.actor.tenant;
        let name = &agent.definition.name;
        if agent.is_gated() && !self.0.store.is_durable() {
            return Err(Error::VolatileStore {
                agent: name.clone(),
            });
        }
        let thread = ThreadId::of_session(tenant, name, session);
        let command = Command::StartRun {
            thread,
            tenant: tenant.clone(),
            agent: name.clone(),
            session: session.to_owned(),
            definition: agent.digest,
            input: input.to_owned(),
            limits: agent.definition.limits,
        };
        let key = ThreadKey {
            tenant: tenant.as_str().into(),
            thread,
        };
        self.submit(
            key,
            Order {
                command,
                by: by.clone(),
            },
        )
        .await
    }

    /// Answers a pending interrupt.
    ///
    /// # Errors
    ///
    /// The answer is refused, and nothing has changed; or the question was stale, and stands anew.
    pub async fn answer(
        &self,
        by: &Principal,
        key: &ThreadKey,
        interrupt: InterruptId,
        answer: Answer,
    ) -> Result<Submitted, Error> {
        let head = self.0.store.load(key).await?;
        let thread = Thread::of(key, head.as_ref())?;
        let misfits = self.misfits(&thread, interrupt, &answer).await?;
        let command = Command::Answer {
            interrupt,
            answer: answer.clone(),
            misfits,
        };
        let now = self.0.store.now();
        let mut context = Context {
            now,
            by: by.clone(),
            seed: fresh_seed(now)?,
        };
        // Gates are passed in their order: the tool's version is looked at only once the answer fits.
        if let Err(refusal) = decide(&thread.state, command.clone(), &mut context) {
            return Err(self.explain(key, refusal).await?);
        }
        if let Some(restate) = self.stale(&thread, interrupt, &answer).await? {
            let by = engine_principal(&key.tenant);
            let state = self
                .append_open(
                    key,
                    Order {
                        command: restate,
                        by,
                    },
                )
                .await?;
            let again = state
                .interrupts
                .values()
                .find(|new| new.supersedes == Some(interrupt));
            return Err(match again {
                Some(new) => Refusal::StaleQuestion {
                    old: interrupt,
                    new: new.id,
                }
                .into(),
                None => Refusal::NotPending { interrupt }.into(),
            });
        }
        let order = Order {
            command,
            by: by.clone(),
        };
        match self.submit_on(thread, head.as_ref(), order).await {
            Err(Error::Refused(refusal)) => Err(self.explain(key, refusal).await?),
            other => other,
        }
    }

    /// Edited arguments that do not fit their tool's schema.
    async fn misfits(
        &self,
        thread: &Thread,
        interrupt: InterruptId,
        answer: &Answer,
    ) -> Result<Vec<(holdpoint_core::ActionId, String)>, Error> {
        let mut misfits = Vec::new();
        let Some(interrupt) = thread.state.interrupts.get(&interrupt) else {
            return Ok(misfits);
        };
        let Ok(assigned) = interrupt.assign(answer) else {
            return Ok(misfits);
        };
        for (ask, decision) in assigned {
            let Some(action) = thread.state.actions.get(&ask.action_id) else {
                continue;
            };
            if let Decision::Edit { edited_action } = &decision {
                let agent = self.agent(&thread.key.tenant, action.definition).await?;
                if let Err(misfit) = agent.check(&action.tool.name, &edited_action.args) {
                    misfits.push((ask.action_id, misfit));
                }
            }
        }
        Ok(misfits)
    }

    /// The command that asks again, where a tool that the answer would let run has changed.
    async fn stale(
        &self,
        thread: &Thread,
        id: InterruptId,
        answer: &Answer,
    ) -> Result<Option<Command>, Error> {
        let Some(interrupt) = thread.state.interrupts.get(&id) else {
            return Ok(None);
        };
        let Ok(assigned) = interrupt.assign(answer) else {
            return Ok(None);
        };
        let Some(current) = self.current(&thread.key, &thread.state.agent).await? else {
            return Ok(None);
        };
        let mut calls = Vec::new();
        for (ask, decision) in assigned {
            let runs = matches!(decision, Decision::Approve | Decision::Edit { .. });
            let Some(action) = thread.state.actions.get(&ask.action_id) else {
                continue;
            };
            if runs && matches!(ask.subject, Subject::Action { .. }) {
                calls.extend(self.drift(&thread.key, action, current).await?);
            }
        }
        let definition = current.digest();
        Ok((!calls.is_empty()).then_some(Command::Restate {
            definition,
            interrupt: Some(id),
            calls,
        }))
    }

    /// Which definition of an agent is the current one.
    pub(crate) async fn current(
        &self,
        key: &ThreadKey,
        agent: &str,
    ) -> Result<Option<Current>, Error> {
        self.0
            .agents
            .current(&self.0.store, &key.tenant, agent)
            .await
    }

    /// What the current definition changes for an action; `None` if nothing that matters.
    pub(crate) async fn drift(
        &self,
        key: &ThreadKey,
        action: &Action,
        current: Current,
    ) -> Result<Option<RestatedCall>, Error> {
        if current.digest() == action.definition {
            return Ok(None);
        }
        let pinned = self.agent(&key.tenant, action.definition).await?;
        let current = self.agent(&key.tenant, current.digest()).await?;
        Ok(judge::drift(action, &pinned, &current))
    }

    /// Adds to a refusal who decided before, which only the journal knows.
    async fn explain(&self, key: &ThreadKey, refusal: Refusal) -> Result<Error, Error> {
        let Refusal::NotPending { interrupt } = refusal else {
            return Ok(refusal.into());
        };
        let scan = Scan {
            index: Index::Closed,
            key: Some(interrupt.to_string()),
            up_to: None,
            after: None,
            limit: 1,
        };
        let rows = self.0.store.scan(&key.tenant, scan).await?;
        let Some(row) = rows.first().filter(|row| row.thread == key.thread) else {
            return Ok(Refusal::NotPending { interrupt }.into());
        };
        let seq = u64::try_from(row.sort).unwrap_or(0);
        let before = seq.saturating_sub(2);
        let records = self.0.store.read(key, before, 2).await?;
        // The record before only serves to check the link.
        let previous = if before + 1 == seq {
            Digest::default()
        } else {
            records
                .first()
                .map_or_else(Digest::default, |record| record.hash)
        };
        let last: Vec<_> = records
            .into_iter()
            .filter(|record| record.seq == seq)
            .collect();
        let entries = decode_records(previous, &last)?;
        Ok(
            match entries.first().and_then(|entry| closing(entry, interrupt)) {
                Some(closing) => Error::AlreadyDecided {
                    interrupt,
                    status: closing.status,
                    by: closing.by,
                },
                None => Refusal::NotPending { interrupt }.into(),
            },
        )
    }

    /// Asks for the run to be stopped.
    ///
    /// # Errors
    ///
    /// There is no such thread, or its run is over.
    pub async fn cancel(&self, by: &Principal, key: &ThreadKey) -> Result<Submitted, Error> {
        if self.0.store.load(key).await?.is_none() {
            return Err(Refusal::NotFound.into());
        }
        self.submit(
            key.clone(),
            Order {
                command: Command::Cancel,
                by: by.clone(),
            },
        )
        .await
    }

    /// Commits a command to a thread as it is now.
    async fn submit(&self, key: ThreadKey, order: Order) -> Result<Submitted, Error> {
        let head = self.0.store.load(&key).await?;
        let thread = Thread::of(&key, head.as_ref())?;
        self.submit_on(thread, head.as_ref(), order).await
    }

    /// Commits a command to a thread that was just read, and takes the lease with it where it is free.
    async fn submit_on(
        &self,
        thread: Thread,
        head: Option<&Head>,
        order: Order,
    ) -> Result<Submitted, Error> {
        let key = thread.key.clone();
        if self.may_take(head) {
            let begun = Driver::taking(self.clone(), thread, order.clone())
                .begin()
                .await;
            match begun {
                Ok(Begun::Driving(driver)) => return Ok(self.submitted(key, Next::Drive(driver))),
                Ok(Begun::Stopped) => return Ok(self.submitted(key, Next::Nothing)),
                // Another driver was faster; and a process that cannot drive may still decide.
                Ok(Begun::NotOurs) | Err(Error::CannotDrive(_)) => {}
                Err(error) => return Err(error),
            }
        }
        self.append_open(&key, order).await?;
        Ok(self.submitted(key, Next::Follow))
    }

    fn submitted(&self, key: ThreadKey, next: Next) -> Submitted {
        Submitted {
            engine: self.clone(),
            key,
            next,
        }
    }

    /// Whether a lease looks free. The store decides; this only spares a refused attempt.
    fn may_take(&self, head: Option<&Head>) -> bool {
        let Some(lease) = head.and_then(|head| head.lease.as_ref()) else {
            return true;
        };
        lease.holder == Holder::Dead || lease.until <= self.0.store.now()
    }

    /// Commits a command without a lease, deciding it again whenever someone else was first. Returns the state after.
    pub(crate) async fn append_open(&self, key: &ThreadKey, order: Order) -> Result<State, Error> {
        loop {
            let mut thread = Thread::load(&self.0.store, key).await?;
            let now = self.0.store.now();
            let mut context = Context {
                now,
                by: order.by.clone(),
                seed: fresh_seed(now)?,
            };
            let mut batch = Batch::new(thread.state.clone());
            match batch.decide(order.command.clone(), &mut context) {
                Ok(()) => {}
                Err(Refusal::Stale(_) | Refusal::RunOver) if is_report(&order.command) => {
                    let Some(late) = late_outcome(&self.0.store, key, &order.command).await? else {
                        return Ok(thread.state);
                    };
                    batch.decide(late, &mut context)?;
                }
                Err(refusal) => return Err(refusal.into()),
            }
            if batch.is_empty() {
                return Ok(thread.state);
            }
            match thread
                .append(
                    &self.0.store,
                    batch,
                    Vec::new(),
                    Fence::Open,
                    LeaseAfter::Keep,
                )
                .await
            {
                Ok(entries) => {
                    self.tell(key, &entries);
                    self.poke(key);
                    return Ok(thread.state);
                }
                Err(Refused::Append(AppendError::Conflict { .. })) => {}
                Err(Refused::Append(error)) => return Err(from_append(error)),
                Err(Refused::Other(error)) => return Err(error),
            }
        }
    }

    /// Drives a thread, or follows whoever drives it, until there is nothing to do.
    ///
    /// # Errors
    ///
    /// The store fails.
    pub async fn drive(&self, key: &ThreadKey) -> Result<(), Error> {
        let mut foreign = self.0.store.foreign_changes();
        loop {
            let Some(head) = self.0.store.load(key).await? else {
                return Ok(());
            };
            let thread = Thread::from_head(key, &head)?;
            if next(&thread.state).is_empty() {
                return Ok(());
            }
            match self.take_over(thread).await? {
                Some(Exit::Stopped) => return Ok(()),
                Some(Exit::NotOurs) | None => {}
            }
            // Someone else drives: look again when something changes, and now and then in case they die.
            tokio::select! {
                _ = foreign.changed() => {}
                () = tokio::time::sleep(LOOK_AGAIN) => {}
            }
        }
    }

    /// Drives a thread if its lease can be taken.
    async fn take_over(&self, mut thread: Thread) -> Result<Option<Exit>, Error> {
        let store = &self.0.store;
        let epoch = match store.take(&thread.key, self.0.options.lease).await {
            Ok(epoch) => epoch,
            Err(LeaseError::Held { .. }) => return Ok(None),
            Err(error) => return Err(from_lease(error)),
        };
        // What was read before the lease was taken may be out of date.
        let news = thread.catch_up(store).await?;
        self.tell(&thread.key, &news);
        Driver::holding(self.clone(), thread, epoch)
            .run()
            .await
            .map(Some)
    }

    /// The threads with work that nobody alive is known to drive, after waiting for leases that may run out.
    ///
    /// # Errors
    ///
    /// The store fails.
    pub async fn abandoned(&self) -> Result<Vec<ThreadKey>, Error> {
        let store = &self.0.store;
        let mut found = Vec::new();
        let mut doubtful = Vec::new();
        for tenant in store.tenants(Index::Runnable).await? {
            for key in self.runnable(&tenant).await? {
                let Some(head) = store.load(&key).await? else {
                    continue;
                };
                match &head.lease {
                    Some(lease) if !self.may_take(Some(&head)) => doubtful.push((key, lease.until)),
                    Some(_) | None => found.push(key),
                }
            }
        }
        // A live driver renews its lease long before it ends; a dead one lets it run out.
        let mut foreign = store.foreign_changes();
        while !doubtful.is_empty() {
            tokio::select! {
                _ = foreign.changed() => {}
                () = tokio::time::sleep(LOOK_AGAIN) => {}
            }
            let mut still = Vec::new();
            for (key, until) in doubtful {
                let head = store.load(&key).await?;
                let lease = head.as_ref().and_then(|head| head.lease.as_ref());
                if self.may_take(head.as_ref()) {
                    found.extend(Self::is_open(&key, head.as_ref())?.then_some(key));
                } else if lease.is_some_and(|lease| lease.until == until) {
                    still.push((key, until));
                }
            }
            doubtful = still;
        }
        Ok(found)
    }

    /// Whether there is anything to drive.
    fn is_open(key: &ThreadKey, head: Option<&Head>) -> Result<bool, Error> {
        let Some(head) = head else { return Ok(false) };
        Ok(!next(&Thread::from_head(key, head)?.state).is_empty())
    }

    async fn runnable(&self, tenant: &Arc<str>) -> Result<Vec<ThreadKey>, Error> {
        let mut keys = Vec::new();
        let mut after = None;
        loop {
            let scan = Scan {
                index: Index::Runnable,
                key: None,
                up_to: None,
                after,
                limit: 500,
            };
            let rows = self.0.store.scan(tenant, scan).await?;
            keys.extend(rows.iter().map(|row| ThreadKey {
                tenant: Arc::clone(tenant),
                thread: row.thread,
            }));
            after = rows.last().cloned();
            if rows.len() < 500 {
                return Ok(keys);
            }
        }
    }

    /// A thread's current state, or `None` if there is no such thread in its tenant.
    ///
    /// # Errors
    ///
    /// The store fails, or what it holds cannot be read.
    pub async fn state(&self, key: &ThreadKey) -> Result<Option<State>, Error> {
        match self.0.store.load(key).await? {
            None => Ok(None),
            Some(head) => Ok(Some(Thread::from_head(key, &head)?.state)),
        }
    }

    /// A thread's whole journal, its chain checked.
    ///
    /// # Errors
    ///
    /// The store fails, or the journal was tampered with.
    pub async fn journal(&self, key: &ThreadKey) -> Result<Vec<Entry>, Error> {
        read_journal(&self.0.store, key).await
    }

    /// A thread's conversation up to a version.
    ///
    /// # Errors
    ///
    /// As [`Engine::journal`].
    pub async fn transcript(
        &self,
        key: &ThreadKey,
        version: u64,
    ) -> Result<holdpoint_core::Transcript, Error> {
        read_transcript(&self.0.store, key, version).await
    }

    /// The threads of a tenant whose session has this name.
    ///
    /// # Errors
    ///
    /// The store fails.
    pub async fn sessions(&self, tenant: &str, session: &str) -> Result<Vec<ThreadKey>, Error> {
        let scan = Scan {
            index: Index::Session,
            key: Some(session.to_owned()),
            up_to: None,
            after: None,
            limit: 100,
        };
        let rows = self.0.store.scan(tenant, scan).await?;
        Ok(rows
            .into_iter()
            .map(|row| ThreadKey {
                tenant: tenant.into(),
                thread: row.thread,
            })
            .collect())
    }

    /// The runs of a tenant, oldest first, with the threads they belong to.
    ///
    /// # Errors
    ///
    /// The store fails.
    pub async fn runs(&self, tenant: &str) -> Result<Vec<(RunId, ThreadKey)>, Error> {
        let mut runs = Vec::new();
        let mut after = None;
        loop {
            let scan = Scan {
                index: Index::Run,
                key: None,
                up_to: None,
                after,
                limit: 500,
            };
            let rows = self.0.store.scan(tenant, scan).await?;
            for row in &rows {
                if let Ok(run) = row.key.parse() {
                    runs.push((
                        run,
                        ThreadKey {
                            tenant: tenant.into(),
                            thread: row.thread,
                        },
                    ));
                }
            }
            if rows.len() < 500 {
                return Ok(runs);
            }
            after = rows.last().cloned();
        }
    }

    /// Registers a driver, to be told of what other tasks of this process append.
    pub(crate) fn register(&self, key: &ThreadKey) -> Registration {
        let poke = Arc::new(Notify::new());
        let mut drivers = self
            .0
            .drivers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        drivers.insert(key.clone(), Arc::clone(&poke));
        Registration {
            engine: self.clone(),
            key: key.clone(),
            poke,
        }
    }

    fn poke(&self, key: &ThreadKey) {
        let drivers = self
            .0
            .drivers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(poke) = drivers.get(key) {
            poke.notify_one();
        }
    }
}

/// A driver's place in the list of those that this process runs.
#[derive(Debug)]
pub(crate) struct Registration {
    engine: Engine,
    key: ThreadKey,
    poke: Arc<Notify>,
}

impl Registration {
    pub(crate) async fn notified(&self) {
        self.poke.notified().await;
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut drivers = self
            .engine
            .0
            .drivers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // A later driver of the same thread keeps its own place.
        if drivers
            .get(&self.key)
            .is_some_and(|poke| Arc::ptr_eq(poke, &self.poke))
        {
            drivers.remove(&self.key);
        }
    }
}
