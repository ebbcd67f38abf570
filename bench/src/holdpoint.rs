//! Holdpoint itself, through its engine.

use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use anyhow::{Context as _, ensure};
use holdpoint_core::{Answer, Decision, InterruptId, Principal, RunId, State, Status, ThreadId};
use holdpoint_engine::{Agent, Engine, Options, PendingPage};
use holdpoint_store::{SharedStore, ThreadKey};
use tokio::{task::JoinSet, time::Instant};

use crate::{
    scene::{Asking, Ledger, Scene},
    workload::{Parking, Spent, Steps, Stopwatch, Tenths},
};

/// How many runs are parked at a time where nobody measures it.
const GATHERING: usize = 128;

/// An engine with the bench's agent.
pub(crate) struct Bench {
    engine: Engine,
    agent: Arc<Agent>,
    operator: Principal,
    ledger: Arc<Ledger>,
}

impl Bench {
    /// On this store. The model makes so many calls before it is done; their results have so many characters.
    ///
    /// # Errors
    ///
    /// The store fails.
    pub(crate) async fn new(
        store: SharedStore,
        asking: Asking,
        steps: usize,
        characters: usize,
    ) -> anyhow::Result<Self> {
        let Scene {
            definition,
            kit,
            ledger,
        } = Scene::new(asking, steps, characters);
        let engine = Engine::new(store, kit, Options::default(), None);
        // Who a server without keys knows.
        let operator = Principal::local("dev");
        let agent = engine.publish(&operator.actor.tenant, definition).await?;
        Ok(Self {
            engine,
            agent,
            operator,
            ledger,
        })
    }

    /// The thread of a session.
    pub(crate) fn key(&self, session: &str) -> ThreadKey {
        let tenant = &self.operator.actor.tenant;
        let thread = ThreadId::of_session(tenant, &self.agent.definition.name, session);
        ThreadKey {
            tenant: tenant.as_str().into(),
            thread,
        }
    }

    /// Starts a run and drives it until it parks or ends. Returns the thread as it stands then.
    ///
    /// # Errors
    ///
    /// The store fails, or the session has a run that is not over.
    pub(crate) async fn start(&self, session: &str) -> anyhow::Result<(ThreadKey, Arc<State>)> {
        let input = "Transfer the money, please.";
        let run = self
            .engine
            .start(&self.operator, &self.agent, session, input)
            .await?;
        let key = run.key().clone();
        Ok((key, run.finish().await?))
    }

    /// Reads which question is pending, approves it, and drives the run to its end.
    ///
    /// # Errors
    ///
    /// The store fails, or nothing is pending.
    pub(crate) async fn resume(&self, key: &ThreadKey) -> anyhow::Result<()> {
        let state = self.engine.state(key).await?.context("no such thread")?;
        self.approve(key, &state).await
    }

    /// Approves what a thread waits for, and drives the run to its end.
    ///
    /// # Errors
    ///
    /// The store fails, or nothing is pending.
    pub(crate) async fn approve(&self, key: &ThreadKey, state: &State) -> anyhow::Result<()> {
        let interrupt = *state.interrupts.keys().next().context("it did not park")?;
        let answer = Answer::All(Decision::APPROVE);
        self.engine
            .answer(&self.operator, key, interrupt, answer)
            .await?
            .finish()
            .await?;
        Ok(())
    }

    /// The run of a session.
    ///
    /// # Errors
    ///
    /// The store fails, or the session has none.
    pub(crate) async fn run(&self, session: &str) -> anyhow::Result<RunId> {
        let state = self.engine.state(&self.key(session)).await?;
        let run = state.and_then(|state| state.run.as_ref().map(|run| run.id));
        run.with_context(|| format!("`{session}` has no run"))
    }

    /// A page of what is pending.
    ///
    /// # Errors
    ///
    /// The store fails.
    pub(crate) async fn pending(
        &self,
        after: Option<InterruptId>,
        limit: usize,
    ) -> anyhow::Result<PendingPage> {
        let tenant = &self.operator.actor.tenant;
        Ok(self.engine.pending(tenant, after, limit).await?)
    }

    /// Whether the run of a session is finished.
    ///
    /// # Errors
    ///
    /// The store fails.
    pub(crate) async fn is_finished(&self, session: &str) -> anyhow::Result<bool> {
        let state = self.engine.state(&self.key(session)).await?;
        Ok(state.and_then(|state| state.status()) == Some(Status::Finished))
    }

    /// How often the tool was called.
    pub(crate) fn effects(&self) -> usize {
        self.ledger.effects()
    }
}

/// The session of a run.
pub(crate) fn session(run: usize) -> String {
    format!("session-{run:06}")
}

/// Opens the store as every user of Holdpoint does.
///
/// # Errors
///
/// It cannot be opened.
pub(crate) async fn open(url: &str) -> anyhow::Result<SharedStore> {
    Ok(holdpoint_store::open(url, holdpoint_store::Options::default()).await?)
}

/// W1: runs that are parked and resumed.
pub(crate) struct Cycles {
    bench: Arc<Bench>,
    /// How many there were so far.
    runs: usize,
}

impl Cycles {
    /// On this store.
    ///
    /// # Errors
    ///
    /// It fails.
    pub(crate) async fn new(store: SharedStore) -> anyhow::Result<Self> {
        let bench = Arc::new(Bench::new(store, Asking::Always, 1, 0).await?);
        Ok(Self { bench, runs: 0 })
    }

    /// Parks and resumes as many runs more, `concurrency` of them at a time. Returns what all of them took.
    ///
    /// # Errors
    ///
    /// A run fails.
    pub(crate) async fn go(&mut self, work: Parking) -> anyhow::Result<Spent> {
        let runs = self.runs..self.runs + work.runs;
        self.runs = runs.end;
        let watch = Stopwatch::start();
        by_clients(
            &self.bench,
            work.concurrency,
            runs,
            |bench, session| async move {
                let (key, parked) = bench.start(&session).await?;
                bench.approve(&key, &parked).await
            },
        )
        .await?;
        Ok(watch.stop())
    }

    /// Looks at all of them.
    ///
    /// # Errors
    ///
    /// A run did not end as finished, or its effect did not happen exactly once.
    pub(crate) async fn check(self) -> anyhow::Result<()> {
        for run in 0..self.runs {
            ensure!(
                self.bench.is_finished(&session(run)).await?,
                "run {run} is not finished"
            );
        }
        let (effects, runs) = (self.bench.effects(), self.runs);
        ensure!(effects == runs, "{effects} effects in {runs} runs");
        Ok(())
    }
}

/// Parks runs and leaves them so.
///
/// # Errors
///
/// A run fails, or does not park.
pub(crate) async fn gather(bench: Bench, runs: Range<usize>) -> anyhow::Result<()> {
    let bench = Arc::new(bench);
    by_clients(&bench, GATHERING, runs, |bench, session| async move {
        bench.start(&session).await?;
        Ok(())
    })
    .await?;
    let effects = bench.effects();
    ensure!(effects == 0, "{effects} runs did not park");
    Ok(())
}

/// Has clients work through runs, each taking the next one when it is done.
async fn by_clients<W, F>(
    bench: &Arc<Bench>,
    clients: usize,
    runs: Range<usize>,
    work: W,
) -> anyhow::Result<()>
where
    W: Fn(Arc<Bench>, String) -> F + Copy + Send + 'static,
    F: Future<Output = anyhow::Result<()>> + Send,
{
    let next = Arc::new(AtomicUsize::new(runs.start));
    let mut tasks = JoinSet::new();
    for _ in 0..clients {
        let (bench, next) = (Arc::clone(bench), Arc::clone(&next));
        tasks.spawn(async move {
            loop {
                let run = next.fetch_add(1, Ordering::Relaxed);
                if run >= runs.end {
                    return anyhow::Ok(());
                }
                work(Arc::clone(&bench), session(run)).await?;
            }
        });
    }
    while let Some(task) = tasks.join_next().await {
        task??;
    }
    Ok(())
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
