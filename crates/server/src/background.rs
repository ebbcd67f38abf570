//! What goes on without being asked: runs that nobody drives, questions that are due, files that changed.

use std::{
    collections::{BTreeMap, HashMap},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use holdpoint_store::ThreadKey;
use tokio::{sync::Semaphore, time::Instant};

use crate::{
    catalog::{self, Stamp},
    server::{publish_for_all, ready},
    world::{Served, World},
};

/// How often the store is looked at.
const LOOK: Duration = Duration::from_millis(250);
/// How many runs that nobody drives are taken up at once.
const AT_ONCE: usize = 64;
/// How often what has ended is swept away.
const SWEEP: Duration = Duration::from_secs(60);
const SWEPT_AT_ONCE: usize = 1_000;
/// How often a server says that it lives: several times before that would be forgotten.
const ANNOUNCE: Duration = Duration::from_secs(3);
/// How often agents' files are looked at.
const GLANCE: Duration = Duration::from_secs(1);
/// The longest time that a thread that cannot be driven is left alone.
const MAX_PATIENCE: Duration = Duration::from_secs(60);

/// How often the log is told of an outage that goes on.
const REMINDER: Duration = Duration::from_secs(30);

/// Keeps one store going.
pub(crate) async fn keep(world: Arc<World>, served: Served) {
    let mut foreign = served.engine.store().foreign_changes();
    let mut patience = Patience::default();
    let mut outage = Outage::default();
    let mut versions: HashMap<ThreadKey, u64> = HashMap::new();
    let mut swept = Instant::now();
    let mut announced: Option<Instant> = None;
    let room = Arc::new(Semaphore::new(AT_ONCE));
    loop {
        // At once after the start: a server that dies again soon must have got on with what the one before it left.
        if announced.is_none_or(|at| at.elapsed() >= ANNOUNCE) {
            announced = Some(Instant::now());
            served.announce().await;
        }
        notice(&served, &mut versions).await;
        served.hub.forget(|key| served.engine.drives(key));
        take_up(&world, &served, &room, &mut patience, &mut outage).await;
        if swept.elapsed() >= SWEEP {
            swept = Instant::now();
            world.rooms.forget();
            if let Err(error) = served.engine.store().sweep(SWEPT_AT_ONCE).await {
                tracing::warn!(%error, "what has ended could not be swept away");
            }
        }
        tokio::select! {
            () = world.closing.cancelled() => return,
            () = tokio::time::sleep(LOOK) => {}
            _ = foreign.changed() => {
                // A busy neighbour changes something all the time.
                tokio::time::sleep(LOOK / 5).await;
            }
        }
    }
}

/// Wakes whoever follows a thread to which another process committed something.
async fn notice(served: &Served, versions: &mut HashMap<ThreadKey, u64>) {
    let heard = served.hub.heard();
    versions.retain(|key, _| heard.contains(key));
    if heard.is_empty() {
        return;
    }
    let Ok(now) = served.engine.store().versions(&heard).await else {
        return;
    };
    for (key, version) in heard.into_iter().zip(now) {
        if versions.get(&key) != Some(&version) {
            served.hub.moved(&key, version);
            versions.insert(key, version);
        }
    }
}

/// Drives what nobody drives, and does what is due.
async fn take_up(
    world: &Arc<World>,
    served: &Served,
    room: &Arc<Semaphore>,
    patience: &mut Patience,
    outage: &mut Outage,
) {
    let engine = &served.engine;
    let (due, left) = match (engine.due().await, engine.left_behind(AT_ONCE).await) {
        (Ok(due), Ok(left)) => (due, left),
        (Err(error), _) | (_, Err(error)) => {
            outage.goes_on(&error);
            return;
        }
    };
    outage.is_over();
    patience.forget();
    for (key, is_due) in due
        .into_iter()
        .map(|key| (key, true))
        .chain(left.into_iter().map(|key| (key, false)))
    {
        if !patience.allows(&key) {
            continue;
        }
        let Ok(permit) = Arc::clone(room).try_acquire_owned() else {
            return;
        };
        let engine = engine.clone();
        let failures = patience.sender();
        world.tasks.spawn(async move {
            let work = async {
                if is_due {
                    engine.tick(&key).await?.drive().await
                } else {
                    tracing::info!(thread = %key.thread, "a run that nobody drives is taken up");
                    engine.take_up(&key).await
                }
            };
            if let Err(error) = Box::pin(work).await {
                tracing::warn!(thread = %key.thread, %error, "a run could not be taken up");
                let _ = failures.send(key);
            }
            drop(permit);
        });
    }
}

/// Tells the log of a store that cannot be looked at: that it begins, now and then that it goes on, and that it is over.
#[derive(Debug, Default)]
struct Outage {
    since: Option<Instant>,
    told: Option<Instant>,
}

impl Outage {
    fn goes_on(&mut self, error: &holdpoint_engine::Error) {
        self.since.get_or_insert_with(Instant::now);
        if self.told.is_none_or(|told| told.elapsed() >= REMINDER) {
            self.told = Some(Instant::now());
            tracing::warn!(%error, "the store cannot be looked at");
        }
    }

    fn is_over(&mut self) {
        if let Some(since) = self.since.take() {
            let seconds = since.elapsed().as_secs();
            tracing::info!(seconds, "the store can be looked at again");
        }
        self.told = None;
    }
}

/// Leaves threads alone for a while that could not be driven.
#[derive(Debug)]
struct Patience {
    until: HashMap<ThreadKey, (u32, Instant)>,
    sender: tokio::sync::mpsc::UnboundedSender<ThreadKey>,
    failed: tokio::sync::mpsc::UnboundedReceiver<ThreadKey>,
}

impl Default for Patience {
    fn default() -> Self {
        let (sender, failed) = tokio::sync::mpsc::unbounded_channel();
        Self {
            until: HashMap::new(),
            sender,
            failed,
        }
    }
}

impl Patience {
    fn sender(&self) -> tokio::sync::mpsc::UnboundedSender<ThreadKey> {
        self.sender.clone()
    }

    /// Takes in what failed, and forgets what failed long ago.
    fn forget(&mut self) {
        while let Ok(key) = self.failed.try_recv() {
            let (failures, until) = self.until.entry(key).or_insert((0, Instant::now()));
            *failures = failures.saturating_add(1);
            let wait = LOOK * 2_u32.saturating_pow((*failures).min(10));
            *until = Instant::now() + wait.min(MAX_PATIENCE);
        }
        let now = Instant::now();
        self.until
            .retain(|_, (_, until)| now < *until + MAX_PATIENCE);
    }

    fn allows(&self, key: &ThreadKey) -> bool {
        self.until
            .get(key)
            .is_none_or(|(_, until)| *until <= Instant::now())
    }
}

/// Reads agents' files again when they change. A file that cannot be used leaves its agent as it was.
pub(crate) async fn reload(world: Arc<World>, agents: Vec<PathBuf>) {
    let mut known: BTreeMap<PathBuf, Stamp> = stamps(&agents).unwrap_or_default();
    let mut seen = known.clone();
    let mut trouble = String::new();
    loop {
        tokio::select! {
            () = world.closing.cancelled() => return,
            () = tokio::time::sleep(GLANCE) => {}
        }
        let paths = agents.clone();
        let now = match tokio::task::spawn_blocking(move || stamps(&paths)).await {
            Ok(Ok(now)) => now,
            // What cannot be looked at now is not gone.
            Ok(Err(problem)) => {
                if problem != trouble {
                    tracing::error!(%problem, "agents' files; what they said before goes on");
                    trouble = problem;
                }
                continue;
            }
            Err(_) => continue,
        };
        trouble.clear();
        // Only what has stood still since the last glance counts: a file that is being written may be whole YAML, and yet
        // lack its gates.
        let still = now == seen;
        seen = now;
        if still && seen != known {
            known = seen.clone();
            read_again(&world, &seen).await;
        }
    }
}

/// What the files are now. One that is not there any more is left out; one that cannot be read is an error.
fn stamps(agents: &[PathBuf]) -> Result<BTreeMap<PathBuf, Stamp>, String> {
    let files =
        holdpoint_definition::agent_files(agents).map_err(|problems| problems.to_string())?;
    let mut stamps = BTreeMap::new();
    for file in files {
        match Stamp::of(&file) {
            Ok(stamp) => {
                stamps.insert(file, stamp);
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(format!("`{}` cannot be read: {error}", file.display())),
        }
    }
    Ok(stamps)
}

async fn read_again(world: &World, files: &BTreeMap<PathBuf, Stamp>) {
    let old = world.catalog();
    let mut new = catalog::Catalog::default();
    let own = old.agents.iter().filter(|(_, it)| it.file.is_none());
    new.agents
        .extend(own.map(|(name, it)| (name.clone(), it.clone())));
    for file in files.keys() {
        let offered = read(world, file, &old).await;
        match offered {
            Ok(offered) => {
                let name = offered.agent.definition.name.clone();
                if let Some(twin) = new.agents.get(&name) {
                    let problem = format!("the agent `{name}` stands in {} too", twin.place());
                    tracing::error!(file = %file.display(), %problem, "an agent's file");
                    new.problems.insert(file.clone(), problem);
                    continue;
                }
                new.agents.insert(name, offered);
            }
            Err(problem) => {
                tracing::error!(file = %file.display(), %problem, "an agent's file; what it said before goes on");
                let before = old
                    .agents
                    .iter()
                    .find(|(_, it)| it.file.as_ref() == Some(file));
                if let Some((name, offered)) = before {
                    new.agents.insert(name.clone(), offered.clone());
                }
                new.problems.insert(file.clone(), problem);
            }
        }
    }
    for (name, offered) in &new.agents {
        let before = old.agents.get(name).map(|it| it.agent.digest);
        if before != Some(offered.agent.digest) {
            tracing::info!(agent = %name, definition = %offered.agent.digest, "an agent was read again");
        }
    }
    for name in old.agents.keys().filter(|it| !new.agents.contains_key(*it)) {
        tracing::warn!(agent = %name, "an agent is gone; its runs go on, and no new ones begin");
    }
    world.offer(new);
    world.forget_published();
    if let Err(error) = publish_for_all(world).await {
        tracing::error!(%error, "agents could not be stored");
    }
}

async fn read(
    world: &World,
    file: &Path,
    old: &catalog::Catalog,
) -> Result<catalog::Offered, String> {
    let loaded = catalog::load(file, &world.names, world.search.as_deref())
        .map_err(|problems| problems.to_string())?;
    let offered = ready(world, Some(file.to_owned()), loaded).await;
    let offered = offered.map_err(|error| error.to_string())?;
    let before = old
        .agents
        .values()
        .find(|it| it.file.as_deref() == Some(file));
    if before.is_some_and(|before| before.store != offered.store) {
        return Err(
            "its threads live in another store; start the server again to move it".to_owned(),
        );
    }
    Ok(offered)
}
