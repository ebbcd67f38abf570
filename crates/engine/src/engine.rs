//! The engine: what it is made of, and what callers ask of it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use holdpoint_core::{
    Command, Definition, Digest, Entry, Payload, Principal, Refusal, Span, ThreadId,
};
use holdpoint_models::Delta;
use holdpoint_store::{SharedStore, ThreadKey};
use tokio::sync::Notify;

use crate::{
    Agent, Error, Kit, Submitted,
    agent::Agents,
    driver::Order,
    grants::WideGrants,
    recent::{Parked, Recent},
    thread::{Thread, engine_principal},
};

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

    pub(crate) fn tell(&self, key: &ThreadKey, entries: &[Entry]) {
        self.0.wide.note(entries);
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
    /// The definition has a flaw; a tool, schema or model of it cannot be used; the store fails.
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

    /// Asks for the run to be stopped.
    ///
    /// # Errors
    ///
    /// There is no such thread, or its run is over.
    pub async fn cancel(&self, by: &Principal, key: &ThreadKey) -> Result<Submitted, Error> {
        self.command(by, key, Command::Cancel).await
    }

    /// Lets nothing start until someone lets it go on. What is in flight goes on to its end.
    ///
    /// # Errors
    ///
    /// There is no such thread, or its run is over.
    pub async fn pause(&self, by: &Principal, key: &ThreadKey) -> Result<Submitted, Error> {
        self.command(by, key, Command::Pause).await
    }

    /// Lets a paused run go on.
    ///
    /// # Errors
    ///
    /// There is no such thread, or its run is over.
    pub async fn unpause(&self, by: &Principal, key: &ThreadKey) -> Result<Submitted, Error> {
        self.command(by, key, Command::Continue).await
    }

    /// Does what is due in a thread: questions that nobody answered in time, sleeps that are over.
    ///
    /// # Errors
    ///
    /// There is no such thread; the store fails.
    pub async fn tick(&self, key: &ThreadKey) -> Result<Submitted, Error> {
        self.command(&engine_principal(&key.tenant), key, Command::Tick)
            .await
    }

    /// Commits a command to a thread that exists.
    async fn command(
        &self,
        by: &Principal,
        key: &ThreadKey,
        command: Command,
    ) -> Result<Submitted, Error> {
        if self.0.store.load(key).await?.is_none() {
            return Err(Refusal::NotFound.into());
        }
        let by = by.clone();
        self.submit(key.clone(), Order { command, by }).await
    }
}
