//! The engine: what it is made of, and what callers ask of it.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use holdpoint_core::{
    Command, Definition, Digest, Entry, FramePath, Payload, Refusal, RunId, Span, State, Supersede,
    ThreadId, Timestamp,
};
use holdpoint_store::{Epoch, SharedStore, ThreadKey};
use tokio::sync::Notify;

use crate::{
    Agent, Completed, Drives, Error, Kit, Request, Submitted,
    agent::Agents,
    grants::WideGrants,
    outbox::Outbox,
    recent::{Parked, Recent},
    thread::{Thread, engine_principal},
};

/// How an engine behaves.
#[derive(Debug, Clone)]
pub struct Options {
    /// How long a lease lasts unless it is renewed. A dead process on this machine is noticed at once; this is for
    /// those on others.
    pub lease: Span,
    /// For how long a model that is called may be silent. As long as something of its answer comes, it takes its time.
    pub model_timeout: Span,
    /// What an agent that asks people may do on a store that forgets.
    pub forgetful: Forgetful,
    /// How many calls of one run may wait for people at once. What a model asks for beyond that is not done, and it is told
    /// so.
    pub pending_per_run: usize,
    /// Who drives what is decided.
    pub drives: Drives,
}

/// What an agent that asks people may do on a store that forgets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Forgetful {
    /// Nothing: nobody would be there to hear the answer.
    #[default]
    Refuse,
    /// Run, because the process stays and whoever runs it said so.
    Allow,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            lease: Span::from_secs(10),
            model_timeout: Span::from_secs(120),
            forgetful: Forgetful::Refuse,
            pending_per_run: 64,
            drives: Drives::Itself,
        }
    }
}

/// Is told what happens in this process, for showing it. It cannot change anything.
pub trait Watcher: Send + Sync + std::fmt::Debug {
    /// Events of a thread were committed, and this is the state after them. It is a hint: the same events may be told
    /// twice, and not in their order.
    fn committed(&self, key: &ThreadKey, entries: &Arc<[Entry]>, after: &Arc<State>);
    /// This process itself committed events: told once for each append, and never of what others committed. Only an append
    /// whose confirmation was lost is not told. [`Watcher::committed`] is told of the same events, too.
    fn appended(&self, append: &OwnAppend<'_>) {
        let _ = append;
    }
    /// A model said a part of something that is not committed yet.
    fn said(&self, key: &ThreadKey, said: Said<'_>);
}

/// What this process itself committed.
#[derive(Debug, Clone, Copy)]
pub struct OwnAppend<'a> {
    /// To this thread.
    pub key: &'a ThreadKey,
    /// The events.
    pub entries: &'a [Entry],
    /// The thread before them.
    pub before: &'a State,
    /// The thread after them.
    pub after: &'a State,
    /// When they were committed, by the store's clock.
    pub at: Timestamp,
}

/// A part of what a model says, before it is committed.
#[derive(Debug, Clone, Copy)]
pub struct Said<'a> {
    /// In this run.
    pub run: RunId,
    /// In this frame.
    pub frame: &'a FramePath,
    /// The how-manieth try of this turn.
    pub attempt: u32,
    /// By the driver with this epoch.
    pub epoch: Epoch,
    /// How many bytes were said before, in this try.
    pub from: usize,
    /// What is said.
    pub text: &'a str,
}

/// Drives runs on a store. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Engine(Arc<Inner>);

/// How to reach the drivers of each thread.
pub(crate) type Drivers = HashMap<ThreadKey, Vec<Arc<Notify>>>;

#[derive(Debug)]
struct Inner {
    store: SharedStore,
    agents: Agents,
    options: Options,
    watcher: Option<Arc<dyn Watcher>>,
    /// The threads that this process drives, to be told of appends by other tasks.
    drivers: Mutex<Drivers>,
    recent: Mutex<Recent>,
    wide: WideGrants,
    outbox: Outbox,
    /// Whether this process is about to go, and starts nothing any more.
    draining: AtomicBool,
    /// Whether the store is known to be no backup. Once it is none, it never becomes one.
    present: AtomicBool,
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
            recent: Mutex::default(),
            wide: WideGrants::default(),
            outbox: Outbox::default(),
            draining: AtomicBool::new(false),
            present: AtomicBool::new(false),
        }))
    }

    /// The store it works on.
    #[must_use]
    pub fn store(&self) -> &SharedStore {
        &self.0.store
    }

    /// The threads that this process parked last.
    pub(crate) fn recent(&self) -> MutexGuard<'_, Recent> {
        self.0.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers a thread that was parked with this head.
    pub(crate) fn remember(&self, thread: &Thread, head: Payload) {
        if let (Some(_), Some(transcript)) = (thread.state.active(), &thread.transcript) {
            let (state, transcript) = (Arc::clone(&thread.state), Arc::clone(transcript));
            let parked = Parked {
                head,
                epoch: thread.epoch,
                state,
                transcript,
            };
            self.recent().remember(thread.key.clone(), parked);
        }
    }

    pub(crate) fn agents(&self) -> &Agents {
        &self.0.agents
    }

    /// The threads that this process drives.
    pub(crate) fn drivers(&self) -> MutexGuard<'_, Drivers> {
        self.0
            .drivers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this process drives a thread, or waits for it.
    #[must_use]
    pub fn drives(&self, key: &ThreadKey) -> bool {
        self.drivers().contains_key(key)
    }

    /// Whether the store is known to be no backup.
    pub(crate) fn present(&self) -> &AtomicBool {
        &self.0.present
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.0.draining.load(Ordering::Relaxed)
    }

    /// Starts nothing any more, and waits until what is in the air has come down and is recorded; but no longer than
    /// this. What is left to do is found again by whoever recovers the store; returned is what was still in the air.
    pub async fn drain(&self, grace: Duration) -> Vec<ThreadKey> {
        self.0.draining.store(true, Ordering::Relaxed);
        let keys: Vec<ThreadKey> = self.drivers().keys().cloned().collect();
        for key in &keys {
            self.poke(key);
        }
        let landed = async {
            while !self.drivers().is_empty() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        // Whoever is not done by then is as if the process had died.
        let _ = tokio::time::timeout(grace, landed).await;
        self.drivers().keys().cloned().collect()
    }

    pub(crate) fn options(&self) -> &Options {
        &self.0.options
    }

    pub(crate) async fn agent(&self, tenant: &str, digest: Digest) -> Result<Arc<Agent>, Error> {
        self.0.agents.pinned(&self.0.store, tenant, digest).await
    }

    /// The grants of agents, as this process last read them.
    pub(crate) fn wide(&self) -> &WideGrants {
        &self.0.wide
    }

    pub(crate) fn outbox(&self) -> &Outbox {
        &self.0.outbox
    }

    /// Tells what this process itself committed.
    pub(crate) fn tell_own(
        &self,
        key: &ThreadKey,
        entries: Vec<Entry>,
        before: &State,
        after: &Arc<State>,
    ) {
        if let Some(watcher) = &self.0.watcher {
            watcher.appended(&OwnAppend {
                key,
                entries: &entries,
                before,
                after,
                at: self.0.store.now(),
            });
        }
        self.tell(key, entries, after);
    }

    /// Tells what was seen to be committed, by whomever.
    pub(crate) fn tell(&self, key: &ThreadKey, entries: Vec<Entry>, after: &Arc<State>) {
        self.0.wide.note(&entries);
        if let Some(watcher) = &self.0.watcher
            && !entries.is_empty()
        {
            watcher.committed(key, &entries.into(), after);
        }
    }

    pub(crate) fn tell_said(&self, key: &ThreadKey, said: Said<'_>) {
        if let Some(watcher) = &self.0.watcher {
            watcher.said(key, said);
        }
    }

    /// Asks the servers of a definition what they offer, so that it can be [prepared](Self::prepare). Where one cannot be asked,
    /// what was stored of the same definition before is good enough.
    ///
    /// # Errors
    ///
    /// A server cannot be asked, and nothing is stored; it offers what the definition does not expect.
    pub async fn complete(&self, definition: Definition) -> Result<Completed, Error> {
        self.0.agents.complete(&self.0.store, definition).await
    }

    /// Makes a definition ready, without storing it: whether its tools, schemas and model can be used shows at once.
    ///
    /// # Errors
    ///
    /// As [`Engine::publish`].
    pub fn prepare(&self, definition: Definition) -> Result<Arc<Agent>, Error> {
        Ok(self.0.agents.prepare(definition)?.0)
    }

    /// Stores a definition and makes it its agent's current one. Servers that were not asked yet what they offer are asked.
    ///
    /// # Errors
    ///
    /// As [`Engine::complete`]. The definition has a flaw; a tool, schema or model of it cannot be used; the store fails.
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
        request: impl Into<Request>,
        agent: &Agent,
        session: &str,
        input: &str,
    ) -> Result<Submitted, Error> {
        self.start_instead(request, agent, session, input, Supersede::Nothing)
            .await
    }

    /// As [`Engine::start`], in place of a run that stands still.
    ///
    /// # Errors
    ///
    /// As [`Engine::start`].
    pub async fn start_instead(
        &self,
        request: impl Into<Request>,
        agent: &Agent,
        session: &str,
        input: &str,
        supersede: Supersede,
    ) -> Result<Submitted, Error> {
        let request = request.into();
        let started = self.start_once(&request, agent, session, input, supersede);
        self.once(&request, Box::pin(started)).await
    }

    async fn start_once(
        &self,
        request: &Request,
        agent: &Agent,
        session: &str,
        input: &str,
        supersede: Supersede,
    ) -> Result<Submitted, Error> {
        let tenant = &request.by.actor.tenant;
        let name = &agent.definition.name;
        if agent.is_gated()
            && !self.0.store.is_durable()
            && self.options().forgetful == Forgetful::Refuse
        {
            return Err(Error::VolatileStore {
                agent: name.clone(),
            });
        }
        let agents = self.agents();
        if agents
            .last_seen(self.store(), tenant, name)
            .await?
            .is_none()
        {
            let agent = name.clone();
            let reason = format!("it was not published for the tenant `{tenant}`");
            return Err(Error::Definition { agent, reason });
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
            breakpoints: agent.definition.breakpoints.clone(),
            supersede,
        };
        let key = ThreadKey {
            tenant: tenant.as_str().into(),
            thread,
        };
        self.submit(key, request.order(command)).await
    }

    /// Asks for the run to be stopped.
    ///
    /// # Errors
    ///
    /// There is no such thread, or its run is over.
    pub async fn cancel(
        &self,
        request: impl Into<Request>,
        key: &ThreadKey,
        run: Option<RunId>,
    ) -> Result<Submitted, Error> {
        self.steer(request.into(), key, Command::Cancel { run })
            .await
    }

    /// Lets nothing start until someone lets it go on. What is in flight goes on to its end.
    ///
    /// # Errors
    ///
    /// There is no such thread, or its run is over.
    pub async fn pause(
        &self,
        request: impl Into<Request>,
        key: &ThreadKey,
        run: Option<RunId>,
    ) -> Result<Submitted, Error> {
        self.steer(request.into(), key, Command::Pause { run })
            .await
    }

    /// Lets a paused run go on.
    ///
    /// # Errors
    ///
    /// There is no such thread, or its run is over.
    pub async fn unpause(
        &self,
        request: impl Into<Request>,
        key: &ThreadKey,
        run: Option<RunId>,
    ) -> Result<Submitted, Error> {
        self.steer(request.into(), key, Command::Continue { run })
            .await
    }

    async fn steer(
        &self,
        request: Request,
        key: &ThreadKey,
        command: Command,
    ) -> Result<Submitted, Error> {
        let command = self.command(&request, key, command);
        self.once(&request, Box::pin(command)).await
    }

    /// Does what is due in a thread: questions that nobody answered in time, sleeps that are over.
    ///
    /// # Errors
    ///
    /// There is no such thread; the store fails.
    pub async fn tick(&self, key: &ThreadKey) -> Result<Submitted, Error> {
        let request = Request::from(&engine_principal(&key.tenant));
        self.command(&request, key, Command::Tick).await
    }

    /// Commits a command to a thread that exists.
    async fn command(
        &self,
        request: &Request,
        key: &ThreadKey,
        command: Command,
    ) -> Result<Submitted, Error> {
        if self.0.store.load(key).await?.is_none() {
            return Err(Refusal::NotFound.into());
        }
        self.submit(key.clone(), request.order(command)).await
    }
}
