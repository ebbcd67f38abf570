//! The server as a whole: opened, reached, and let go.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{OsStr, OsString},
    future::Future,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use axum::Router;
use holdpoint_core::{Definition, Index, Principal, Span, Timestamp};
use holdpoint_definition::{Loaded, Problems, ServerFile, ServerLimits};
use holdpoint_engine::{Engine, Error, Forgetful, Kit, Options, Watcher};
use holdpoint_store::{SharedStore, discreet};
use tokio::net::TcpListener;

use crate::{
    background,
    caller::{Access, Door},
    catalog::{self, Catalog, Offered},
    clock::rfc3339,
    connections::{self, Manners},
    descriptors,
    hub::Hub,
    jwt::Tokens,
    keys::{KeyError, Keys},
    metrics::{self, Metrics, Observer},
    reach, router,
    token::{Keyring, KeyringError},
    webhooks::{self, Secrets},
    world::{Served, Settings, World},
};

/// How long what is in the air is awaited when the server goes.
const GRACE: Duration = Duration::from_secs(10);
/// How long connections are given to end after that.
const FAREWELL: Duration = Duration::from_secs(2);
/// How long a connection may take to say what it wants, and how long it may want nothing.
const ASKING: Duration = Duration::from_secs(30);
/// How many connections there may be that are no streams.
const BESIDE_STREAMS: u64 = 1_000;
/// How many descriptors are left for stores, files and tools.
const OWN_DESCRIPTORS: u64 = 200;

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Agents' files cannot be used. All problems of all files.
    #[error("{}", problems(.0))]
    Agents(Vec<Problems>),
    /// An agent cannot be made ready.
    #[error(transparent)]
    Agent(#[from] Error),
    /// A store cannot be opened.
    #[error(transparent)]
    Store(#[from] holdpoint_store::OpenError),
    /// The keys cannot be read.
    #[error(transparent)]
    Keys(#[from] KeyError),
    /// The keys that tokens are signed with cannot be used.
    #[error(transparent)]
    TokenKeys(#[from] KeyringError),
    /// The tokens of an issuer could never be checked.
    #[error("{0}")]
    Issuer(String),
    /// A webhook cannot be used.
    #[error("{0}")]
    Webhook(String),
    /// A store is a backup that nobody has adopted.
    #[error(
        "`{store}` is a backup of {}, and nobody has adopted it: what it holds may have gone on elsewhere since",
        rfc3339(*.made_at)
    )]
    Backup {
        /// The store.
        store: String,
        /// When the backup was made.
        made_at: Timestamp,
    },
    /// A store is moving to another one, or has moved.
    #[error("`{store}`: {refusal}")]
    Moving {
        /// The store.
        store: String,
        /// What it says.
        refusal: String,
    },
    /// What is asked for would not be safe.
    #[error("{0}")]
    Unsafe(String),
    /// The address cannot be used.
    #[error("the address {address} cannot be used: {reason}")]
    Address {
        /// The address.
        address: SocketAddr,
        /// Why.
        reason: std::io::Error,
    },
}

fn problems(all: &[Problems]) -> String {
    let texts: Vec<String> = all.iter().map(ToString::to_string).collect();
    texts.join("\n")
}

/// A server that is ready to serve.
#[derive(Debug)]
pub struct Server {
    world: Arc<World>,
    router: Router,
    listener: TcpListener,
    address: SocketAddr,
    agents: Vec<PathBuf>,
    adopted: Vec<String>,
}

/// What becomes of a store that is a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IfBackup {
    Refuse,
    Adopt,
}

/// What a server is opened with.
#[derive(Debug)]
pub struct Opening {
    file: ServerFile,
    access: Access,
    if_backup: IfBackup,
    search: Option<OsString>,
    lease: Option<Span>,
    kit: Kit,
    own: Vec<Definition>,
    token_keys: Option<String>,
    secrets: Secrets,
    watcher: Option<Arc<dyn Watcher>>,
}

impl Opening {
    /// A server with the agents that its configuration names.
    #[must_use]
    pub fn new(file: ServerFile, access: Access) -> Self {
        Self {
            file,
            access,
            if_backup: IfBackup::Refuse,
            search: None,
            lease: None,
            kit: Kit::new(),
            own: Vec::new(),
            token_keys: None,
            secrets: Secrets::new(),
            watcher: None,
        }
    }

    /// Tells this watcher, too, what happens in all stores.
    #[must_use]
    pub fn watched_by(mut self, watcher: Arc<dyn Watcher>) -> Self {
        self.watcher = Some(watcher);
        self
    }

    /// Makes every store that is a backup the one to go on with: see [`Engine::adopt`]. Without it, it is refused.
    #[must_use]
    pub fn adopting(mut self) -> Self {
        self.if_backup = IfBackup::Adopt;
        self
    }

    /// Warns of programs of agents' tools that cannot be found here: a `PATH`.
    #[must_use]
    pub fn searching(mut self, path: OsString) -> Self {
        self.search = Some(path);
        self
    }

    /// With leases that last so long unless they are renewed: how soon others go on after a server that is gone.
    #[must_use]
    pub const fn with_lease(mut self, lease: Span) -> Self {
        self.lease = Some(lease);
        self
    }

    /// With keys to sign tokens with, `NAME:KEY` one after the other; the first signs, all are accepted. Without, they are kept
    /// in a file beside the server's store, where that is a file.
    #[must_use]
    pub fn with_token_keys(mut self, keys: String) -> Self {
        self.token_keys = Some(keys);
        self
    }

    /// With what webhooks are signed with, by the variable that the configuration names.
    #[must_use]
    pub fn with_secret(mut self, variable: &str, secret: String) -> Self {
        self.secrets.insert(variable.to_owned(), secret);
        self
    }

    /// With tools and models that are code of this program.
    #[must_use]
    pub fn with_kit(mut self, kit: Kit) -> Self {
        self.kit = kit;
        self
    }

    /// With an agent that no file describes. It lives in the server's own store.
    #[must_use]
    pub fn with_agent(mut self, definition: Definition) -> Self {
        self.own.push(definition);
        self
    }

    /// Opens the stores, reads the agents and takes the address.
    ///
    /// # Errors
    ///
    /// [`StartError`], with everything that is wrong; a store is a backup that nobody has adopted.
    pub async fn start(self) -> Result<Server, StartError> {
        let Self {
            mut file,
            access,
            if_backup,
            search,
            lease,
            kit,
            own: definitions,
            token_keys,
            secrets,
            watcher,
        } = self;
        let webhooks = std::mem::take(&mut file.webhooks);
        let endpoints = webhooks::endpoints(webhooks, &secrets).map_err(StartError::Webhook)?;
        if access == Access::Dev && !file.listen.ip().is_loopback() {
            return Err(StartError::Unsafe(format!(
                "`--dev` lets everybody in, so it listens on this machine's own address only, not on {}; use 127.0.0.1, or \
                 leave `--dev` out and make keys with `holdpoint keys create`",
                file.listen
            )));
        }
        let own = canonical(&file.store);
        if access == Access::Keys && own == MEMORY {
            return Err(StartError::Unsafe(
                "keys are kept in the server's store, and `memory:` keeps nothing; name another with `--store sqlite:PATH`"
                    .to_owned(),
            ));
        }
        let loaded = load_all(&file, search.as_deref())?;
        let metrics = Arc::new(Metrics::default());
        let mut engines = BTreeMap::new();
        let urls: BTreeSet<String> = loaded
            .iter()
            .filter_map(|(_, loaded)| loaded.store.as_deref().map(canonical))
            .chain([own.clone()])
            .collect();
        let store = reach::reach(&own).await?;
        let keys = Keys::new(Arc::clone(&store));
        // Where nothing is configured, those that the program itself brings along stay.
        let kit = if file.names.providers == holdpoint_core::Providers::default() {
            kit
        } else {
            kit.with_providers(file.names.providers.clone())
        };
        let kit = match kit.rights {
            Some(_) => kit,
            None => kit.with_rights(keys.clone()),
        };
        for url in urls {
            let hub = Arc::new(Hub::default());
            let observer = Observer {
                hub: Arc::clone(&hub),
                metrics: Arc::clone(&metrics),
                further: watcher.clone(),
            };
            let store = if url == own {
                Arc::clone(&store)
            } else {
                reach::reach(&url).await?
            };
            let engine = engine_on(store, &file.limits, kit.clone(), lease, observer);
            let served = Served::new(engine, hub);
            engines.insert(url, served);
        }
        let issuers = match access {
            // Everybody is let in without, so no issuer is asked anything.
            Access::Dev => Vec::new(),
            Access::Keys => std::mem::take(&mut file.issuers),
        };
        let tokens = Tokens::new(Arc::clone(&store), issuers)
            .map_err(|error| StartError::Issuer(error.to_string()))?;
        let listen = file.listen;
        let unusable = |reason| StartError::Address {
            address: listen,
            reason,
        };
        // Before anything is changed: an address that is taken may mean that the original of a backup still lives.
        let listener = TcpListener::bind(listen).await.map_err(unusable)?;
        let address = listener.local_addr().map_err(unusable)?;
        if access == Access::Dev && !address.ip().is_loopback() {
            return Err(StartError::Unsafe(format!(
                "{address} is reached from elsewhere"
            )));
        }
        let adopted = adopt(&engines, if_backup).await?;
        let ServerFile {
            agents,
            names,
            origins,
            limits,
            metrics: metrics_access,
            public_url,
            ..
        } = file;
        let keyring = keyring(&own, token_keys.as_deref())?;
        let door = Door {
            access,
            keys,
            tokens,
            keyring,
            metrics_access,
        };
        let settings = Settings {
            limits,
            names,
            search,
            own,
            endpoints,
            public_url,
        };
        let world = Arc::new(World::new(engines, door, metrics, settings));
        offer(&world, definitions, loaded).await?;
        publish_for_all(&world).await?;
        subscribe(&world).await?;
        world.bound_to(address);
        let router = router::router(Arc::clone(&world), &origins);
        Ok(Server {
            world,
            router,
            listener,
            address,
            agents,
            adopted,
        })
    }
}

impl Server {
    /// Where it is reached.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// What whoever starts it should know: which stores were adopted, which agents there are, and which of them forget.
    #[must_use]
    pub fn notices(&self) -> Vec<String> {
        let catalog = self.world.catalog();
        let lines = catalog.agents.iter().map(|(name, offered)| {
            let served = self.world.engines.get(&offered.store);
            let durable = served.is_some_and(|served| served.engine.store().is_durable());
            let model = &offered.agent.definition.model;
            if durable {
                format!("{name}: model {model}, store {}", discreet(&offered.store))
            } else {
                format!("{name}: model {model}, in memory: what it waits for is forgotten when the server ends")
            }
        });
        let webhooks = self.world.endpoints.iter().map(|endpoint| {
            let name = &endpoint.webhook.name;
            format!("webhook {name}: is told what becomes of questions")
        });
        self.adopted
            .iter()
            .cloned()
            .chain(lines)
            .chain(webhooks)
            .collect()
    }

    /// Serves until `stop` is there; then ends streams, lets what is in the air come down, and goes.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let Self {
            world,
            router,
            listener,
            agents,
            ..
        } = self;
        for (store, served) in &world.engines {
            let keeping = background::keep(Arc::clone(&world), served.clone());
            world.tasks.spawn(keeping);
            let sampling = metrics::sample(Arc::clone(&world), store.clone(), served.clone());
            world.tasks.spawn(sampling);
            for endpoint in &world.endpoints {
                let (engine, closing) = (served.engine.clone(), world.closing.clone());
                let carrying = webhooks::carry(engine, Arc::clone(endpoint), closing);
                world.tasks.spawn(carrying);
            }
        }
        world.tokens.keep(&world.tasks, &world.closing);
        let reloading = background::reload(Arc::clone(&world), agents);
        world.tasks.spawn(reloading);
        let manners = Manners {
            most: most_connections(&world.limits),
            asking: ASKING,
        };
        let closing = world.closing.clone();
        let serving = tokio::spawn(connections::serve(listener, router, manners, closing));
        stop.await;
        tracing::info!("closing");
        world.closing.cancel();
        for served in world.engines.values() {
            // From now on, whoever decides something drives it.
            if let Err(error) = served.engine.withdraw_presence().await {
                tracing::warn!(%error, "the store does not learn that this server goes");
            }
            for key in served.engine.drain(GRACE).await {
                tracing::warn!(
                    thread = %key.thread,
                    "cut off in the middle of a call; what became of it is found out when the store is served next"
                );
            }
        }
        world.tasks.close();
        // Whoever is not done by now is found again when the store is served next.
        let _ = tokio::time::timeout(FAREWELL, world.tasks.wait()).await;
        let _ = tokio::time::timeout(FAREWELL, serving).await;
    }
}

/// Lets endpoints hear of what happens in every store, before anything happens.
async fn subscribe(world: &World) -> Result<(), StartError> {
    for (store, served) in &world.engines {
        let store = discreet(store);
        for endpoint in &world.endpoints {
            let webhook = &endpoint.webhook;
            let (name, subscription) = (&webhook.name, &webhook.subscription);
            let before = served.engine.subscribe(name, subscription).await?;
            if before.is_some_and(|before| before != *subscription) {
                tracing::info!(
                    webhook = name,
                    store,
                    "hears of other questions from now on"
                );
            }
        }
        for name in served.engine.subscriptions().await?.keys() {
            if world.endpoints.iter().all(|it| it.webhook.name != *name) {
                tracing::warn!(
                    webhook = name,
                    store,
                    "the store has a webhook that is not in this server's configuration: what it should hear is kept until a server has it, or `holdpoint webhooks remove` forgets it"
                );
            }
        }
    }
    Ok(())
}

/// What tokens are signed with. Several servers on one database must have the same, and only whoever runs them can see to
/// that; servers on one file share a file beside it.
fn keyring(own: &str, given: Option<&str>) -> Result<Option<Keyring>, KeyringError> {
    if let Some(given) = given {
        return Keyring::parse(given, "HOLDPOINT_TOKEN_KEYS").map(Some);
    }
    if own == MEMORY {
        return Keyring::fleeting().map(Some);
    }
    let Some(path) = own.strip_prefix("sqlite:") else {
        return Ok(None);
    };
    Keyring::kept_in(Path::new(&format!("{path}.token-keys"))).map(Some)
}

/// How many connections there may be: one for each stream and some for everything else, as far as there are descriptors.
fn most_connections(limits: &ServerLimits) -> usize {
    let wanted = u64::from(limits.streams) + BESIDE_STREAMS;
    let there = descriptors::raise().saturating_sub(OWN_DESCRIPTORS);
    usize::try_from(wanted.min(there.max(1))).unwrap_or(usize::MAX)
}

const MEMORY: &str = "memory:";

/// One spelling for one store.
pub(crate) fn canonical(url: &str) -> String {
    let Some(path) = url.strip_prefix("sqlite:") else {
        // What names no store is refused when it is opened, by the name it has.
        return url.to_owned();
    };
    let path = Path::new(path);
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new(".")).canonicalize();
    let whole = match (path.canonicalize(), folder, path.file_name()) {
        (Ok(whole), _, _) => whole,
        (Err(_), Ok(folder), Some(name)) => folder.join(name),
        (Err(_), _, _) => path.to_owned(),
    };
    format!("sqlite:{}", whole.display())
}

/// Adopts every store that is a backup, if that is wanted; before anything else is done with any of them.
async fn adopt(
    engines: &BTreeMap<String, Served>,
    if_backup: IfBackup,
) -> Result<Vec<String>, StartError> {
    for (store, served) in engines {
        let part = served.engine.store().part().await;
        if let Some(part) = part.map_err(Error::from)? {
            let (store, refusal) = (discreet(store), part.refusal());
            return Err(StartError::Moving { store, refusal });
        }
    }
    if if_backup == IfBackup::Refuse {
        for (store, served) in engines {
            let made_at = served.engine.store().backup_made_at().await;
            if let Some(made_at) = made_at.map_err(Error::from)? {
                let store = discreet(store);
                return Err(StartError::Backup { store, made_at });
            }
        }
        return Ok(Vec::new());
    }
    let mut told = Vec::new();
    for (store, served) in engines {
        let Some(adopted) = served.engine.adopt().await? else {
            continue;
        };
        let store = discreet(store);
        told.push(format!(
            "{store}: adopted, from a backup of {}; threads that wait for a person's word: {}",
            rfc3339(adopted.made_at),
            adopted.asking.len()
        ));
        for key in &adopted.unreadable {
            tracing::error!(%store, thread = %key.thread, "a thread cannot be read, and was left as it is");
        }
    }
    Ok(told)
}

fn engine_on(
    store: SharedStore,
    limits: &ServerLimits,
    kit: Kit,
    lease: Option<Span>,
    watcher: Observer,
) -> Engine {
    let forgetful = if store.is_durable() {
        Forgetful::Refuse
    } else {
        Forgetful::Allow
    };
    let unsaid = Options::default();
    let options = Options {
        forgetful,
        pending_per_run: usize::try_from(limits.pending_per_run).unwrap_or(usize::MAX),
        lease: lease.unwrap_or(unsaid.lease),
        ..unsaid
    };
    Engine::new(store, kit, options, Some(Arc::new(watcher)))
}

fn load_all(
    file: &ServerFile,
    search: Option<&OsStr>,
) -> Result<Vec<(PathBuf, Loaded)>, StartError> {
    let files = holdpoint_definition::agent_files(&file.agents);
    let files = files.map_err(|problems| StartError::Agents(vec![problems]))?;
    let mut loaded: Vec<(PathBuf, Loaded)> = Vec::new();
    let mut wrong = Vec::new();
    for path in files {
        match catalog::load(&path, &file.names, search) {
            Ok(one) => loaded.push((path, one)),
            Err(problems) => wrong.push(problems),
        }
    }
    if wrong.is_empty() {
        Ok(loaded)
    } else {
        Err(StartError::Agents(wrong))
    }
}

async fn offer(
    world: &World,
    own: Vec<Definition>,
    loaded: Vec<(PathBuf, Loaded)>,
) -> Result<(), StartError> {
    let own = own.into_iter().map(|definition| {
        let loaded = Loaded {
            definition,
            store: None,
            warnings: Vec::new(),
        };
        (None, loaded)
    });
    let files = loaded.into_iter().map(|(file, one)| (Some(file), one));
    let mut catalog = Catalog::default();
    for (file, one) in own.chain(files) {
        for warning in &one.warnings {
            tracing::warn!(%warning, "an agent's file");
        }
        let offered = ready(world, file, one).await?;
        let (name, place) = (offered.agent.definition.name.clone(), offered.place());
        if let Some(twin) = catalog.agents.insert(name.clone(), offered) {
            return Err(StartError::Unsafe(format!(
                "two agents are called `{name}`: in {} and in {place}",
                twin.place()
            )));
        }
    }
    world.offer(catalog);
    Ok(())
}

/// Makes an agent ready on the store where it lives.
///
/// # Errors
///
/// Its tools, schemas or model cannot be used; one of its MCP servers does not answer and never did; its store is not open.
pub(crate) async fn ready(
    world: &World,
    file: Option<PathBuf>,
    loaded: Loaded,
) -> Result<Offered, Error> {
    let store = loaded.store.as_deref().map(canonical);
    let store = store.unwrap_or_else(|| world.own.clone());
    let Some(served) = world.engines.get(&store) else {
        return Err(Error::Definition {
            agent: loaded.definition.name,
            reason: format!("its store `{store}` is not open; start the server again"),
        });
    };
    let complete = served.engine.complete(loaded.definition).await?;
    for warning in complete.warnings {
        tracing::warn!(%warning, "what it offered before counts");
    }
    let agent = served.engine.prepare(complete.definition)?;
    Ok(Offered { agent, store, file })
}

/// Stores every agent's definition for every tenant that is known, so that a policy that was tightened holds for runs
/// that wait.
pub(crate) async fn publish_for_all(world: &World) -> Result<(), StartError> {
    let mut tenants: BTreeSet<String> = BTreeSet::new();
    match world.access {
        Access::Dev => {
            tenants.insert(Principal::LOCAL_TENANT.to_owned());
        }
        Access::Keys => {
            let keys = world.keys.list().await?;
            tenants.extend(keys.into_iter().map(|(_, key)| key.principal.actor.tenant));
            tenants.extend(world.tokens.tenants().map(str::to_owned));
        }
    }
    for (name, offered) in &world.catalog().agents {
        let Ok((_, served)) = world.agent(name) else {
            continue;
        };
        let store = served.engine.store();
        let known = store.tenants(Index::Session).await.map_err(Error::from)?;
        let known = known.iter().map(ToString::to_string);
        for tenant in tenants
            .iter()
            .cloned()
            .chain(known)
            .collect::<BTreeSet<_>>()
        {
            world
                .publish(&served.engine, &tenant, &offered.agent)
                .await?;
        }
    }
    Ok(())
}
