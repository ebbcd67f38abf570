//! W2: what a resume costs while others are parked.

use anyhow::Context as _;

use super::{Rounds, setting};
use crate::{
    crowd::Resumed,
    database::Database,
    holdpoint::{self, Bench},
    measurement::{Setting, System, median, quantile},
    scene::Asking,
    workload::{Backend, Workload},
};

/// The databases with parked runs: made once, copied for each measurement.
#[derive(Debug, Default)]
pub(super) struct Crowds(Vec<Crowd>);

#[derive(Debug)]
struct Crowd {
    backend: Backend,
    by: System,
    parked: usize,
    database: Database,
}

impl Crowds {
    fn of(&self, backend: Backend, by: System) -> impl DoubleEndedIterator<Item = &Crowd> {
        let all = self.0.iter();
        all.filter(move |crowd| (crowd.backend, crowd.by) == (backend, by))
    }

    /// How many were parked at most.
    pub(super) fn largest(&self, backend: Backend, by: System) -> Option<usize> {
        self.of(backend, by).map(|crowd| crowd.parked).max()
    }

    /// The database in which so many were parked.
    pub(super) fn get(
        &self,
        backend: Backend,
        by: System,
        parked: usize,
    ) -> anyhow::Result<&Database> {
        let found = self.of(backend, by).find(|crowd| crowd.parked == parked);
        found
            .map(|crowd| &crowd.database)
            .with_context(|| format!("{parked} were never parked"))
    }
}

/// What resumes and memory were with the fewest parked, to compare with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fewest {
    p99: f64,
    rss: f64,
}

impl Rounds<'_> {
    /// Parks what W2, over HTTP or not, and W4 need. A larger crowd is the one before and more.
    pub(super) async fn gather(&mut self) -> anyhow::Result<Crowds> {
        let mut crowds = Crowds::default();
        let workloads = [
            Workload::W2,
            Workload::W2Http,
            Workload::W4,
            Workload::W2Pg,
            Workload::W4Pg,
        ];
        for backend in Backend::ALL {
            let planned = self.plan.on(backend, &workloads);
            for system in self.plan.systems.clone() {
                let mut planned = planned.iter();
                if planned.any(|workload| self.plan.systems(*workload).contains(&system)) {
                    self.gather_for(backend, system, &mut crowds).await?;
                }
            }
        }
        Ok(crowds)
    }

    async fn gather_for(
        &mut self,
        backend: Backend,
        by: System,
        crowds: &mut Crowds,
    ) -> anyhow::Result<()> {
        for parked in self.plan.parked(by) {
            eprintln!("parking {parked}, {} on {backend:?}", by.as_str());
            let (first, database) = match crowds.of(backend, by).next_back() {
                None => (0, self.databases.fresh(backend)?),
                Some(before) => (before.parked, self.databases.copy(&before.database)?),
            };
            let (url, runs) = (database.url(), first..parked);
            match by {
                System::Holdpoint => {
                    let store = holdpoint::open(&url).await?;
                    let bench = Bench::new(store, Asking::Always, 1, 0).await?;
                    holdpoint::gather(bench, runs).await?;
                }
                System::Langgraph => self.langgraph()?.park(&url, runs).await?,
                System::Ceiling | System::Pgbench | System::Restate => continue,
            }
            database.settle()?;
            self.note_size(backend, by, parked, &database)?;
            crowds.0.push(Crowd {
                backend,
                by,
                parked,
                database,
            });
        }
        Ok(())
    }

    /// Notes how large a database with parked runs is, if it is on a server and anything else is measured on it.
    fn note_size(
        &mut self,
        backend: Backend,
        by: System,
        parked: usize,
        database: &Database,
    ) -> anyhow::Result<()> {
        if backend == Backend::Postgres && self.plan.has(Workload::W2Pg) {
            let setting = setting(Workload::W2Pg, by, 1, parked);
            let size = database.size()? as f64 / parked as f64;
            self.add(setting, "bytes_per_parked", "bytes", size);
        }
        Ok(())
    }

    /// Notes what resumes took and what memory there was, beside what it was with the fewest parked, which are the first.
    pub(super) fn note_resumes(
        &mut self,
        setting: Setting,
        resume_ms: &[f64],
        rss_kb: u64,
        fewest: &mut Option<Fewest>,
    ) {
        let (p50, p99) = (quantile(resume_ms, 0.50), quantile(resume_ms, 0.99));
        let rss = rss_kb as f64 / 1024.0;
        eprintln!(
            "{} with {} parked, {}: p50 {p50:.2} ms, p99 {p99:.2} ms, {rss:.1} MB",
            setting.workload.as_str(),
            setting.parked,
            setting.system.as_str()
        );
        self.add(setting, "resume_p50_ms", "ms", p50);
        self.add(setting, "resume_p99_ms", "ms", p99);
        self.add(setting, "rss_mb", "MB", rss);
        match *fewest {
            None => *fewest = Some(Fewest { p99, rss }),
            Some(few) => {
                self.add(setting, "p99_over_fewest", "ratio", p99 / few.p99);
                self.add(setting, "rss_growth_mb", "MB", rss - few.rss);
            }
        }
    }

    /// Measures everyone once, in processes of their own.
    pub(super) async fn resume(
        &mut self,
        workload: Workload,
        crowds: &Crowds,
    ) -> anyhow::Result<()> {
        for system in self.plan.systems(workload) {
            let Some(program) = self.program(system)? else {
                continue;
            };
            let mut fewest = None;
            for parked in self.plan.parked(system) {
                let crowd = crowds.get(workload.backend(), system, parked)?;
                let database = self.databases.copy(crowd)?;
                let resumes = self.plan.resumes(system);
                let mut command = program.command("resume", &database.url());
                command.args(["--parked", &parked.to_string()]);
                command.args(["--resumes", &resumes.to_string()]);
                let measured: Resumed = program.measure(command).await?;
                database.remove()?;
                let setting = setting(workload, system, 1, parked);
                let page = median(&measured.page_ms);
                self.add(setting, "page_ms", "ms", page);
                self.note_resumes(setting, &measured.resume_ms, measured.rss_kb, &mut fewest);
            }
        }
        Ok(())
    }
}
