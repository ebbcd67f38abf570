//! W1: runs that are parked and resumed.

use std::sync::Arc;

use super::{Rounds, scripts, setting};
use crate::{
    ceiling,
    database::Database,
    holdpoint::{self, Cycles},
    langgraph::Saver,
    measurement::System,
    recording::Recording,
    script::{Script, Weight},
    workload::{Backend, Parking, Spent, Workload},
};

impl Rounds<'_> {
    /// What Holdpoint writes.
    pub(super) async fn record_parking(&mut self) -> anyhow::Result<Arc<Vec<Arc<Script>>>> {
        if !self.needs_script(Workload::W1) {
            return Ok(Arc::default());
        }
        let database = self.databases.fresh(Backend::Sqlite)?;
        let store = holdpoint::open(&database.url()).await?;
        let recording = Arc::new(Recording::new(store));
        let work = Parking {
            runs: self.plan.runs,
            concurrency: 32,
        };
        let mut cycles = Cycles::new(recording.clone()).await?;
        cycles.go(work).await?;
        cycles.check().await?;
        let scripts = scripts(&recording);
        drop(recording);
        database.remove()?;
        let weight = Weight::of(&scripts);
        self.weights
            .push(format!("W1, per run: {}.", weight.per(work.runs)));
        Ok(Arc::new(scripts))
    }

    /// Measures everyone once.
    pub(super) async fn park(
        &mut self,
        workload: Workload,
        concurrency: usize,
        scripts: &Arc<Vec<Arc<Script>>>,
    ) -> anyhow::Result<()> {
        for system in self.plan.systems(workload) {
            let runs = match system {
                System::Langgraph => self.plan.peer_runs,
                System::Holdpoint | System::Ceiling | System::Pgbench | System::Restate => {
                    self.plan.runs
                }
            };
            let work = Parking { runs, concurrency };
            let spent = match system {
                System::Holdpoint => self.park_ourselves(workload, work).await?,
                System::Ceiling => {
                    let database = self.databases.fresh(Backend::Sqlite)?;
                    let spent = ceiling::park(database.file()?, scripts, work).await?;
                    database.remove()?;
                    spent
                }
                System::Pgbench => {
                    self.commit(concurrency)?;
                    continue;
                }
                System::Restate => anyhow::bail!("Restate has no part in W1"),
                System::Langgraph => self.park_peer(workload, work).await?,
            };
            let rate = runs as f64 / spent.time.as_secs_f64();
            let processor = spent.processor.as_secs_f64() * 1e6 / runs as f64;
            eprintln!(
                "{} at {concurrency}, {}: {rate:.0} runs/s, {processor:.0} µs of processor each",
                workload.as_str(),
                system.as_str()
            );
            let setting = setting(workload, system, concurrency, 0);
            self.add(setting, "runs_per_s", "1/s", rate);
            self.add(setting, "processor_us_per_run", "us", processor);
            self.rates.note(setting, "runs_per_s", rate);
        }
        self.compare(workload, concurrency);
        Ok(())
    }

    async fn park_ourselves(&mut self, workload: Workload, work: Parking) -> anyhow::Result<Spent> {
        let database = self.databases.fresh(workload.backend())?;
        let mut cycles = Cycles::new(holdpoint::open(&database.url()).await?).await?;
        let spent = match &database {
            Database::File(_) => cycles.go(work).await?,
            Database::Server(on) => self.park_metered(&mut cycles, on, work).await?,
        };
        cycles.check().await?;
        if let Database::Server(_) = database {
            let setting = setting(workload, System::Holdpoint, work.concurrency, 0);
            let all = (work.warm_up() + work.runs) as f64;
            let size = database.size()? as f64;
            self.add(setting, "bytes_per_run", "bytes", size / all);
        }
        database.remove()?;
        Ok(spent)
    }

    /// The peer in each of its forms. On SQLite the fastest counts; on PostgreSQL the one of its documentation, and the fastest
    /// is told beside it.
    async fn park_peer(&mut self, workload: Workload, work: Parking) -> anyhow::Result<Spent> {
        let documented = self.park_peer_with(workload, work, Saver::Sync).await?;
        let others: &[Saver] = match workload.backend() {
            Backend::Sqlite => &[Saver::Async],
            Backend::Postgres => &[Saver::Apart, Saver::Async],
        };
        let mut fastest = documented;
        for saver in others {
            let spent = self.park_peer_with(workload, work, *saver).await?;
            if spent.time < fastest.time {
                fastest = spent;
            }
        }
        if workload.backend() == Backend::Sqlite {
            return Ok(fastest);
        }
        let setting = setting(workload, System::Langgraph, work.concurrency, 0);
        let rate = work.runs as f64 / fastest.time.as_secs_f64();
        let processor = fastest.processor.as_secs_f64() * 1e6 / work.runs as f64;
        self.add(setting, "tuned_runs_per_s", "1/s", rate);
        self.add(setting, "tuned_processor_us_per_run", "us", processor);
        self.rates.note(setting, "tuned_runs_per_s", rate);
        Ok(documented)
    }

    async fn park_peer_with(
        &mut self,
        workload: Workload,
        work: Parking,
        saver: Saver,
    ) -> anyhow::Result<Spent> {
        let database = self.databases.fresh(workload.backend())?;
        let spent = self
            .langgraph()?
            .park_and_resume(&database, work, saver)
            .await?;
        database.remove()?;
        let rate = work.runs as f64 / spent.time.as_secs_f64();
        eprintln!(
            "{} at {}, langgraph ({}): {rate:.1} runs/s",
            workload.as_str(),
            work.concurrency,
            saver.as_str()
        );
        Ok(spent)
    }
}
