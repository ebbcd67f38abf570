//! W1: runs that are parked and resumed.

use std::sync::Arc;

use super::{Rounds, scripts, setting};
use crate::{
    ceiling, database, holdpoint,
    langgraph::Saver,
    measurement::System,
    recording::Recording,
    script::{Script, Weight},
    workload::{Parking, Spent, Workload},
};

impl Rounds<'_> {
    /// What Holdpoint writes.
    pub(super) async fn record_parking(&mut self) -> anyhow::Result<Arc<Vec<Arc<Script>>>> {
        if !self.needs_script(Workload::W1) {
            return Ok(Arc::default());
        }
        let file = self.databases.fresh();
        let recording = Arc::new(Recording::new(holdpoint::open(&file)?));
        let work = Parking {
            runs: self.plan.runs,
            concurrency: 32,
        };
        holdpoint::park(recording.clone(), work).await?;
        let scripts = scripts(&recording);
        drop(recording);
        database::remove(&file)?;
        let weight = Weight::of(&scripts);
        self.weights
            .push(format!("W1, per run: {}.", weight.per(work.runs)));
        Ok(Arc::new(scripts))
    }

    /// Measures everyone once.
    pub(super) async fn park(
        &mut self,
        concurrency: usize,
        scripts: &Arc<Vec<Arc<Script>>>,
    ) -> anyhow::Result<()> {
        let work = Parking {
            runs: self.plan.runs,
            concurrency,
        };
        for system in self.plan.systems(Workload::W1) {
            let (spent, runs) = match system {
                System::Holdpoint => {
                    let file = self.databases.fresh();
                    let spent = holdpoint::park(holdpoint::open(&file)?, work).await?;
                    database::remove(&file)?;
                    (spent, work.runs)
                }
                System::Ceiling => {
                    let file = self.databases.fresh();
                    let spent = ceiling::park(&file, scripts, work).await?;
                    database::remove(&file)?;
                    (spent, work.runs)
                }
                System::Restate => anyhow::bail!("Restate has no part in W1"),
                System::Langgraph => {
                    let work = Parking {
                        runs: self.plan.peer_runs,
                        concurrency,
                    };
                    (self.park_peer(work).await?, work.runs)
                }
            };
            let rate = runs as f64 / spent.time.as_secs_f64();
            let processor = spent.processor.as_secs_f64() * 1e6 / runs as f64;
            let name = system.as_str();
            eprintln!(
                "W1 at {concurrency}, {name}: {rate:.0} runs/s, {processor:.0} µs of processor each"
            );
            let setting = setting(Workload::W1, system, concurrency, 0);
            self.add(setting, "runs_per_s", "1/s", rate);
            self.add(setting, "processor_us_per_run", "us", processor);
            self.rates.note(setting, "runs_per_s", rate);
        }
        self.compare(Workload::W1, concurrency);
        Ok(())
    }

    /// The peer with either of its savers: the faster one counts.
    async fn park_peer(&mut self, work: Parking) -> anyhow::Result<Spent> {
        let mut fastest: Option<Spent> = None;
        for saver in [Saver::Sync, Saver::Async] {
            let file = self.databases.fresh();
            let spent = self
                .langgraph()?
                .park_and_resume(&file, work, saver)
                .await?;
            database::remove(&file)?;
            let rate = work.runs as f64 / spent.time.as_secs_f64();
            let name = saver.as_str();
            eprintln!(
                "W1 at {}, langgraph ({name}): {rate:.1} runs/s",
                work.concurrency
            );
            if fastest.is_none_or(|fastest| spent.time < fastest.time) {
                fastest = Some(spent);
            }
        }
        fastest.ok_or_else(|| anyhow::anyhow!("the peer has no saver"))
    }
}
