//! Holdpoint itself, through its engine, on its SQLite store.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use anyhow::{Context as _, ensure};
use holdpoint_core::{Answer, Decision, Principal, Status, ThreadId};
use holdpoint_engine::{Agent, Engine, Kit, Options};
use holdpoint_models::Model;
use holdpoint_store::{SharedStore, SqliteStore, ThreadKey};
use holdpoint_tools::{Registry, Watchdog};
use tokio::{task::JoinSet, time::Instant};

use crate::{
    scene::{Asking, Counter, Ledger, MODEL, Stepper, TOOL, definition},
    workload::{Parking, Spent, Steps, Stopwatch, Tenths},
};

/// An engine with the bench's agent.
struct Bench {
    engine: Engine,
    agent: Arc<Agent>,
    operator: Principal,
    ledger: Arc<Ledger>,
}

impl Bench {
    async fn new(
        store: SharedStore,
        asking: Asking,
        steps: usize,
        characters: usize,
    ) -> anyhow::Result<Self> {
        let ledger = Arc::new(Ledger::default());
        let tool = Counter::new(Arc::clone(&ledger), characters);
        let model: Arc<dyn Model> = Arc::new(Stepper { steps });
        let kit = Kit {
            registry: Registry::new().with(TOOL, tool),
            watchdog: Watchdog::default(),
            models: BTreeMap::from([(MODEL.to_owned(), model)]),
        };
        let engine = Engine::new(store, kit, Options::default(), None);
        let operator = Principal::local("bench");
        let agent = engine
            .publish(&operator.actor.tenant, definition(asking))
            .await?;
        Ok(Self {
            engine,
            agent,
            operator,
            ledger,
        })
    }

    async fn start(&self, session: &str) -> anyhow::Result<ThreadKey> {
        let input = "Transfer the money, please.";
        let run = self
            .engine
            .start(&self.operator, &self.agent, session, input)
            .await?;
        let key = run.key().clone();
        run.finish().await?;
        Ok(key)
    }

    /// One run: it parks at the gated call, is approved, and ends.
    async fn park_and_resume(&self, run: usize) -> anyhow::Result<()> {
        let key = self.start(&session(run)).await?;
        let state = self.engine.state(&key).await?.context("no such thread")?;
        let interrupt = *state.interrupts.keys().next().context("it did not park")?;
        let answer = Answer::All(Decision::APPROVE);
        self.engine
            .answer(&self.operator, &key, interrupt, answer)
            .await?
            .finish()
            .await?;
        Ok(())
    }

    async fn is_finished(&self, session: &str) -> anyhow::Result<bool> {
        let tenant = &self.operator.actor.tenant;
        let thread = ThreadId::of_session(tenant, &self.agent.definition.name, session);
        let key = ThreadKey {
            tenant: tenant.as_str().into(),
            thread,
        };
        let state = self.engine.state(&key).await?;
        Ok(state.and_then(|state| state.status()) == Some(Status::Finished))
    }
}

fn session(run: usize) -> String {
    format!("session-{run:06}")
}

/// Opens the store as every user of Holdpoint does.
pub(crate) fn open(file: &Path) -> anyhow::Result<SharedStore> {
    let store = SqliteStore::open(file, &holdpoint_store::Options::default())?;
    Ok(Arc::new(store))
}

/// W1: parks and resumes runs, `concurrency` of them at a time. Returns what all of them took.
///
/// # Errors
///
/// A run fails, does not end as finished, or its effect did not happen exactly once.
pub(crate) async fn park(store: SharedStore, work: Parking) -> anyhow::Result<Spent> {
    let bench = Arc::new(Bench::new(store, Asking::Always, 1, 0).await?);
    let next = Arc::new(AtomicUsize::new(0));
    let mut clients = JoinSet::new();
    let watch = Stopwatch::start();
    for _ in 0..work.concurrency {
        let (bench, next) = (Arc::clone(&bench), Arc::clone(&next));
        clients.spawn(async move {
            loop {
                let run = next.fetch_add(1, Ordering::Relaxed);
                if run >= work.runs {
                    return anyhow::Ok(());
                }
                bench.park_and_resume(run).await?;
            }
        });
    }
    while let Some(client) = clients.join_next().await {
        client??;
    }
    let spent = watch.stop();
    for run in 0..work.runs {
        ensure!(
            bench.is_finished(&session(run)).await?,
            "run {run} is not finished"
        );
    }
    let effects = bench.ledger.effects();
    ensure!(
        effects == work.runs,
        "{effects} effects in {} runs",
        work.runs
    );
    Ok(spent)
}

/// W3: one thread with many steps. Returns how long the steps of its first and its last tenth took.
///
/// # Errors
///
/// The run fails, does not end as finished, or a step's effect did not happen exactly once.
pub(crate) async fn step(store: SharedStore, work: Steps) -> anyhow::Result<Tenths> {
    let bench = Bench::new(store, Asking::Never, work.steps, work.characters).await?;
    bench.start(&session(0)).await?;
    let ended = Instant::now();
    ensure!(
        bench.is_finished(&session(0)).await?,
        "the run is not finished"
    );
    let mut times = bench.ledger.times();
    ensure!(
        times.len() == work.steps,
        "{} effects in {} steps",
        times.len(),
        work.steps
    );
    // A step is from one call to the next, so the last one ends with the run.
    times.push(ended);
    Ok(Tenths::new(&times, work.steps))
}
