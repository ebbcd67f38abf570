//! W2: what a resume costs while others are parked.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::{Rounds, setting};
use crate::{
    crowd::Resumed,
    database,
    holdpoint::{self, Bench},
    measurement::{Setting, System, median, quantile},
    scene::Asking,
    workload::Workload,
};

/// The databases with parked runs: made once, copied for each measurement.
#[derive(Debug, Default)]
pub(super) struct Crowds(Vec<(System, usize, PathBuf)>);

impl Crowds {
    /// Whether so many were parked.
    pub(super) fn has(&self, system: System, parked: usize) -> bool {
        self.file(system, parked).is_ok()
    }

    /// The database in which so many were parked.
    pub(super) fn file(&self, system: System, parked: usize) -> anyhow::Result<&Path> {
        let found = self
            .0
            .iter()
            .find(|(by, many, _)| (*by, *many) == (system, parked));
        found
            .map(|(_, _, file)| file.as_path())
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
        let workloads = [Workload::W2, Workload::W2Http, Workload::W4];
        for system in self.plan.systems(Workload::W2) {
            let has_part = |workload: &Workload| {
                self.plan.has(*workload) && self.plan.systems(*workload).contains(&system)
            };
            if workloads.iter().any(has_part) {
                self.gather_for(system, &mut crowds).await?;
            }
        }
        Ok(crowds)
    }

    async fn gather_for(&mut self, system: System, crowds: &mut Crowds) -> anyhow::Result<()> {
        let mut before: Option<(usize, PathBuf)> = None;
        for parked in self.plan.parked(system) {
            eprintln!("parking {parked}, {}", system.as_str());
            let (first, file) = match &before {
                None => (0, self.databases.fresh()),
                Some((first, file)) => (*first, self.databases.copy(file)?),
            };
            let runs = first..parked;
            match system {
                System::Holdpoint => {
                    let bench = Bench::new(holdpoint::open(&file)?, Asking::Always, 1, 0);
                    holdpoint::gather(bench.await?, runs).await?;
                }
                System::Langgraph => self.langgraph()?.park(&file, runs).await?,
                System::Ceiling | System::Restate => continue,
            }
            database::settle(&file)?;
            before = Some((parked, file.clone()));
            crowds.0.push((system, parked, file));
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
    pub(super) async fn resume(&mut self, crowds: &Crowds) -> anyhow::Result<()> {
        for system in self.plan.systems(Workload::W2) {
            let Some(program) = self.program(system)? else {
                continue;
            };
            let mut fewest = None;
            for parked in self.plan.parked(system) {
                let file = self.databases.copy(crowds.file(system, parked)?)?;
                let resumes = self.plan.resumes(system);
                let mut command = program.command("resume", &file);
                command.args(["--parked", &parked.to_string()]);
                command.args(["--resumes", &resumes.to_string()]);
                let measured: Resumed = program.measure(command).await?;
                database::remove(&file)?;
                let setting = setting(Workload::W2, system, 1, parked);
                let page = median(&measured.page_ms);
                self.add(setting, "page_ms", "ms", page);
                self.note_resumes(setting, &measured.resume_ms, measured.rss_kb, &mut fewest);
            }
        }
        Ok(())
    }
}
