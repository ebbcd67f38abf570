//! What all requests share: the engines, the agents, the keys, and what goes on in the background.

use std::{
    collections::{BTreeMap, HashMap},
    ffi::OsString,
    future::Future,
    net::SocketAddr,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock},
    time::Duration,
};

use holdpoint_core::{
    Answer, Answers, Digest, InterruptId, InterruptStatus, Refusal, RunId, State,
};
use holdpoint_definition::{MetricsAccess, Names, ServerLimits};
use holdpoint_engine::{Agent, Engine, Error, Question, Submitted, Wanted};
use holdpoint_store::ThreadKey;
use tokio::{sync::oneshot, time::Instant};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    caller::{Access, Caller, Door},
    catalog::{Catalog, Offered},
    hub::Hub,
    jwt::Tokens,
    keys::Keys,
    metrics::{Metrics, Prevented},
    problem::Problem,
    room::{Place, Rooms},
    streams::Streams,
    token::Keyring,
    webhooks::Endpoint,
};

/// What all requests share.
#[derive(Debug)]
pub(crate) struct World {
    /// By the URL of their store.
    pub(crate) engines: BTreeMap<String, Served>,
    pub(crate) keys: Keys,
    pub(crate) tokens: Tokens,
    pub(crate) access: Access,
    pub(crate) limits: ServerLimits,
    pub(crate) names: Names,
    /// What tokens are signed with, where there is something.
    keyring: Option<Keyring>,
    /// Where the system looks for programs.
    pub(crate) search: Option<OsString>,
    /// The URL of the server's own store.
    pub(crate) own: String,
    /// Who outside is told what happens.
    pub(crate) endpoints: Vec<Arc<Endpoint>>,
    pub(crate) streams: Arc<Streams>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) metrics_access: MetricsAccess,
    pub(crate) rooms: Rooms,
    /// Cancelled once the server is asked to go.
    pub(crate) closing: CancellationToken,
    /// Runs that are driven: no request's end ends them.
    pub(crate) tasks: TaskTracker,
    catalog: RwLock<Arc<Catalog>>,
    /// What is stored of which definition for which tenant.
    published: Mutex<HashMap<(String, Digest), Arc<Agent>>>,
    address: OnceLock<SocketAddr>,
    /// Where people reach it, if somebody said so.
    public_url: Option<String>,
}

/// How a server was told to be.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) limits: ServerLimits,
    pub(crate) names: Names,
    pub(crate) search: Option<OsString>,
    pub(crate) own: String,
    pub(crate) endpoints: Vec<Arc<Endpoint>>,
    pub(crate) public_url: Option<String>,
}

/// One store, and what is driven on it.
#[derive(Debug, Clone)]
pub(crate) struct Served {
    pub(crate) engine: Engine,
    pub(crate) hub: Arc<Hub>,
    /// How the store was when it was last written to in the background.
    health: Arc<Mutex<Health>>,
}

/// How a store is.
#[derive(Debug)]
struct Health {
    /// When it was last written.
    written: Instant,
    /// What went wrong since.
    trouble: Option<Problem>,
}

/// How long a store may not be written before the server is not ready: two announcements, and some.
const SILENCE: Duration = Duration::from_secs(8);

impl Served {
    pub(crate) fn new(engine: Engine, hub: Arc<Hub>) -> Self {
        Self {
            engine,
            hub,
            health: Arc::new(Mutex::new(Health {
                written: Instant::now(),
                trouble: None,
            })),
        }
    }

    /// Says on the store that this server lives, and so finds out whether it can be written.
    pub(crate) async fn announce(&self) {
        let said = self.engine.announce().await;
        if let Err(error) = &said {
            tracing::warn!(%error, "the store cannot be written");
        }
        let mut health = self.health.lock().unwrap_or_else(PoisonError::into_inner);
        if said.is_ok() {
            health.written = Instant::now();
        }
        // No request failed by it, so the log is not told that one did.
        health.trouble = said.err().map(|error| {
            if let Error::Unavailable(_) = error {
                return Problem::unavailable();
            }
            error.into()
        });
    }

    /// A question must be pending to be given to somebody.
    ///
    /// # Errors
    ///
    /// It is not; the store fails.
    pub(crate) async fn expect_pending(&self, question: &Question) -> Result<(), Problem> {
        if question.status == InterruptStatus::Pending {
            return Ok(());
        }
        Err(self.engine.why_not_pending(question).await?.into())
    }

    /// What is the matter with the store, if anything is.
    pub(crate) fn trouble(&self) -> Option<Problem> {
        let health = self.health.lock().unwrap_or_else(PoisonError::into_inner);
        let silent = health.written.elapsed();
        let silence = || {
            let error = format!("the store could not be written for {} s", silent.as_secs());
            Problem::new("store_unavailable", error)
        };
        let trouble = health.trouble.clone();
        trouble.or_else(|| (silent > SILENCE).then(silence))
    }
}

/// What a command was committed to.
#[derive(Debug, Clone)]
pub(crate) struct Placed {
    pub(crate) key: ThreadKey,
    /// The thread before the command.
    pub(crate) before: Arc<State>,
    /// The thread after it; or, where it was a repetition, as it is now.
    pub(crate) state: Arc<State>,
    /// The run that it concerned.
    pub(crate) run: Option<RunId>,
    /// Whether the same request came before, and was not done again.
    pub(crate) replayed: bool,
}

/// A command on its way.
pub(crate) type Submission = Pin<Box<dyn Future<Output = Result<Submitted, Error>> + Send>>;

impl World {
    pub(crate) fn new(
        engines: BTreeMap<String, Served>,
        door: Door,
        metrics: Arc<Metrics>,
        settings: Settings,
    ) -> Self {
        let Door {
            access,
            keys,
            tokens,
            keyring,
            metrics_access,
        } = door;
        let Settings {
            limits,
            names,
            search,
            own,
            endpoints,
            public_url,
        } = settings;
        let count = |limit: u32| usize::try_from(limit).unwrap_or(usize::MAX);
        let streams = Streams::new(count(limits.streams), count(limits.streams_per_key));
        let rooms = Rooms::new(
            count(limits.pending_per_user),
            count(limits.pending_per_run),
        );
        Self {
            engines,
            keys,
            tokens,
            access,
            limits,
            names,
            search,
            own,
            endpoints,
            keyring,
            streams,
            metrics,
            metrics_access,
            rooms,
            closing: CancellationToken::new(),
            tasks: TaskTracker::new(),
            catalog: RwLock::default(),
            published: Mutex::default(),
            address: OnceLock::new(),
            public_url,
        }
    }

    /// Where it is reached, once it is.
    pub(crate) fn address(&self) -> SocketAddr {
        let unbound = SocketAddr::from(([127, 0, 0, 1], 0));
        self.address.get().copied().unwrap_or(unbound)
    }

    /// Where people reach it, without a `/` at the end: what the configuration says, or this machine's own address.
    ///
    /// # Errors
    ///
    /// Nobody said so, and it is reached from elsewhere.
    pub(crate) fn public_url(&self) -> Result<String, Problem> {
        if let Some(url) = &self.public_url {
            return Ok(url.clone());
        }
        let address = self.address();
        if address.ip().is_loopback() {
            return Ok(format!("http://{address}"));
        }
        let error =
            "nobody said where people reach this server: set `public_url` in its configuration";
        Err(Problem::new("no_public_url", error))
    }

    /// The origins that its own pages have.
    pub(crate) fn own_origins(&self) -> Vec<String> {
        if let Some(url) = &self.public_url {
            return vec![url.clone()];
        }
        let address = self.address();
        if !address.ip().is_loopback() {
            return Vec::new();
        }
        let port = address.port();
        let hosts = ["127.0.0.1", "localhost", "[::1]"];
        hosts.map(|host| format!("http://{host}:{port}")).to_vec()
    }

    pub(crate) fn bound_to(&self, address: SocketAddr) {
        let _ = self.address.set(address);
    }

    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.catalog.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn offer(&self, catalog: Catalog) {
        *self.catalog.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(catalog);
    }

    /// The agent with this name, and where it lives.
    ///
    /// # Errors
    ///
    /// There is none.
    pub(crate) fn agent(&self, name: &str) -> Result<(Offered, &Served), Problem> {
        let absent = || Problem::new("agent_not_found", format!("agent not found: {name}"));
        let offered = self.catalog().agents.get(name).cloned();
        let offered = offered.ok_or_else(absent)?;
        let served = self.engines.get(&offered.store).ok_or_else(absent)?;
        Ok((offered, served))
    }

    /// The store where a conversation is: that of its agent, or, where the agent is not served any more, the one that has
    /// the conversation. What it asks can still be answered.
    ///
    /// # Errors
    ///
    /// There is no such agent, and no such conversation.
    pub(crate) async fn conversation(
        &self,
        agent: &str,
        key: &ThreadKey,
    ) -> Result<(Option<Offered>, &Served), Problem> {
        let absent = match self.agent(agent) {
            Ok((offered, served)) => return Ok((Some(offered), served)),
            Err(absent) => absent,
        };
        for served in self.engines.values() {
            if served.engine.state(key).await?.is_some() {
                return Ok((None, served));
            }
        }
        Err(absent)
    }

    /// Makes sure that a tenant's store knows an agent's definition. What is stored is what runs begin with: it may be more careful
    /// than what was read.
    ///
    /// # Errors
    ///
    /// The store fails.
    pub(crate) async fn publish(
        &self,
        engine: &Engine,
        tenant: &str,
        agent: &Agent,
    ) -> Result<Arc<Agent>, Error> {
        let known = (tenant.to_owned(), agent.digest);
        if let Some(stored) = self.published().get(&known) {
            return Ok(Arc::clone(stored));
        }
        let stored = engine.publish(tenant, agent.definition.clone()).await?;
        self.published().insert(known, Arc::clone(&stored));
        Ok(stored)
    }

    fn published(&self) -> MutexGuard<'_, HashMap<(String, Digest), Arc<Agent>>> {
        self.published
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets which tenants know which definitions, so that the next one is stored for all of them.
    pub(crate) fn forget_published(&self) {
        self.published().clear();
    }

    /// The run with this id, if it is there for this tenant: where it lives, and the event that began it.
    ///
    /// # Errors
    ///
    /// There is none; a store fails.
    pub(crate) async fn run(
        &self,
        tenant: &str,
        run: &str,
    ) -> Result<(RunId, &Served, ThreadKey, u64), Problem> {
        let absent = || Problem::not_found("run");
        // What is no id is as absent as an id that is not there.
        let run: RunId = run.parse().map_err(|_| absent())?;
        for served in self.engines.values() {
            if let Some((key, began)) = served.engine.find_run(tenant, run).await? {
                return Ok((run, served, key, began));
            }
        }
        Err(absent())
    }

    /// What tokens are signed with.
    ///
    /// # Errors
    ///
    /// Nobody gave this server keys.
    pub(crate) fn keyring(&self) -> Result<&Keyring, Problem> {
        self.keyring.as_ref().ok_or_else(|| {
            let error = "this server has no keys to sign tokens with: set `HOLDPOINT_TOKEN_KEYS`, the same for all servers of a store";
            Problem::new("no_token_keys", error)
        })
    }

    /// Whoever gave something by this key may still do so.
    ///
    /// # Errors
    ///
    /// The key was revoked, or has ended; the store fails.
    pub(crate) async fn expect_good(&self, issuer_key: Option<&str>) -> Result<(), Problem> {
        let Some(key) = issuer_key else { return Ok(()) };
        if self.keys.is_good(key).await.map_err(Error::from)? {
            return Ok(());
        }
        let why = "whoever gave it may not do so any more";
        Err(Error::from(Refusal::BadPass { why }).into())
    }

    /// The server's own store, where programs outside ask.
    ///
    /// # Errors
    ///
    /// It is missing, which is our own mistake.
    pub(crate) fn home(&self) -> Result<&Served, Problem> {
        let home = self.engines.get(&self.own);
        home.ok_or_else(|| Problem::new("internal", "the server's own store is missing"))
    }

    /// The question with this id, if it is there for this tenant, and where it lives.
    ///
    /// # Errors
    ///
    /// There is none; a store fails.
    pub(crate) async fn question(
        &self,
        tenant: &str,
        interrupt: &str,
    ) -> Result<(&Served, Question), Problem> {
        let absent = || Problem::not_found("interrupt");
        // What is no id is as absent as an id that is not there.
        let interrupt: InterruptId = interrupt.parse().map_err(|_| absent())?;
        for served in self.engines.values() {
            if let Some(question) = served.engine.question(tenant, interrupt).await? {
                return Ok((served, question));
            }
        }
        Err(absent())
    }

    /// The first questions of a tenant that are open, over all stores, and whether there are more.
    ///
    /// # Errors
    ///
    /// A store fails.
    pub(crate) async fn open_questions(
        &self,
        tenant: &str,
        limit: usize,
    ) -> Result<(Vec<Question>, bool), Problem> {
        let wanted = Wanted {
            status: Some(InterruptStatus::Pending),
            ..Wanted::default()
        };
        let (mut found, mut more) = (Vec::new(), false);
        for served in self.engines.values() {
            let questions = served.engine.questions(tenant, None, limit, &wanted);
            let (questions, next) = questions.await?;
            found.extend(questions);
            more |= next.is_some();
        }
        found.sort_by_key(|it| it.interrupt.id);
        more |= found.len() > limit;
        found.truncate(limit);
        Ok((found, more))
    }

    /// Whether a caller may begin one more run: where too many questions of theirs are open, they are answered first.
    ///
    /// # Errors
    ///
    /// Too many are; the store fails.
    pub(crate) async fn has_room(
        &self,
        served: &Served,
        caller: &Caller,
    ) -> Result<Place, Problem> {
        let (tenant, actor) = (caller.tenant(), caller.principal.actor.to_string());
        let count = async |limit| Ok(served.engine.count_asked(tenant, &actor, limit).await?);
        let whose = (tenant.to_owned(), actor.clone());
        self.rooms.enter(whose, count).await
    }

    /// Whether so many decisions may come at once.
    ///
    /// # Errors
    ///
    /// There are too many.
    pub(crate) fn is_batch(&self, answers: &Answers) -> Result<(), Problem> {
        let count = |answer: &Answer| match answer {
            Answer::ByPosition(decisions) => decisions.len(),
            Answer::ById(decisions) => decisions.len(),
            Answer::All(_) => 1,
        };
        let given: usize = match answers {
            Answers::Only(answer) => count(answer),
            Answers::ByInterrupt(answers) => answers.iter().map(|(_, answer)| count(answer)).sum(),
        };
        let limit = usize::try_from(self.limits.batch).unwrap_or(usize::MAX);
        if given <= limit {
            return Ok(());
        }
        let error =
            format!("{given} decisions at once are more than the {limit} that this server takes");
        Err(Problem::new("batch_too_large", error).with(serde_json::json!({ "limit": limit })))
    }

    /// As [`World::submit`], for a run that begins: it is under way until it stands still.
    ///
    /// # Errors
    ///
    /// As [`World::submit`].
    pub(crate) async fn begin(
        &self,
        served: &Served,
        tenant: &str,
        place: Place,
        work: Submission,
    ) -> Result<Placed, Problem> {
        self.submit_in(served, tenant, Some(place), work).await
    }

    /// Commits a command, and drives what follows. A client that goes away in the middle ends neither.
    ///
    /// # Errors
    ///
    /// The command is refused; the store fails.
    pub(crate) async fn submit(
        &self,
        served: &Served,
        tenant: &str,
        work: Submission,
    ) -> Result<Placed, Problem> {
        self.submit_in(served, tenant, None, work).await
    }

    async fn submit_in(
        &self,
        served: &Served,
        tenant: &str,
        place: Option<Place>,
        work: Submission,
    ) -> Result<Placed, Problem> {
        let (told, tell) = oneshot::channel();
        self.tasks.spawn(async move {
            match work.await {
                Ok(submitted) => {
                    let state = Arc::clone(submitted.state());
                    let placed = Placed {
                        key: submitted.key().clone(),
                        before: Arc::clone(submitted.before()),
                        run: state.run.as_ref().map(|run| run.id),
                        state,
                        replayed: false,
                    };
                    let thread = placed.key.thread;
                    // Whoever asked may be gone.
                    let _ = told.send(Ok(placed));
                    if let Err(error) = submitted.drive().await {
                        tracing::warn!(%thread, %error, "driving stopped; it is taken up again");
                    }
                }
                Err(error) => {
                    let _ = told.send(Err(error));
                }
            }
            drop(place);
        });
        match tell.await {
            Ok(Ok(placed)) => Ok(placed),
            Ok(Err(Error::Replayed(marked))) => {
                self.metrics.prevented(Prevented::IdempotencyKey);
                let key = ThreadKey {
                    tenant: tenant.into(),
                    thread: marked.thread,
                };
                let state = served.engine.state(&key).await?;
                let state = state.ok_or_else(|| Problem::not_found("thread"))?;
                let before = match marked.after {
                    0 => State::default(),
                    after => served
                        .engine
                        .state_at(&key, after)
                        .await?
                        .unwrap_or_default(),
                };
                Ok(Placed {
                    key,
                    before: Arc::new(before),
                    state,
                    run: marked.run,
                    replayed: true,
                })
            }
            Ok(Err(error)) => {
                self.count_late(&error);
                Err(error.into())
            }
            Err(_) => Err(Problem::new(
                "internal",
                "the request broke off; look whether it was done before you send it again",
            )),
        }
    }

    /// Counts an answer that came after another one, at whichever door.
    pub(crate) fn count_late(&self, error: &Error) {
        if let Error::AlreadyDecided { .. } | Error::TokenUsed { .. } = error {
            self.metrics.prevented(Prevented::AlreadyDecided);
        }
    }
}
