//! W2: what a resume costs while others are parked.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::{Rounds, setting};
use crate::{
    crowd::Resumed,
    database,
    holdpoint::{self, Bench},
    measurement::{System, median, quantile},
    scene::Asking,
    workload::Workload,
};

/// The databases with parked runs: made once, copied for each measurement.
#[derive(Debug, Default)]
pub(super) struct Crowds(Vec<(Workload, System, usize, PathBuf)>);

impl Crowds {
    /// Whether so many were parked.
    pub(super) fn has(&self, workload: Workload, system: System, parked: usize) -> bool {
        self.file(workload, system, parked).is_ok()
    }

    /// The database in which so many were parked for a workload.
    pub(super) fn file(
        &self,
        workload: Workload,
        system: System,
        parked: usize,
    ) -> anyhow::Result<&Path> {
        let found = self
            .0
            .iter()
            .find(|(of, by, many, _)| (*of, *by, *many) == (workload, system, parked));
        found
            .map(|(_, _, _, file)| file.as_path())
            .with_context(|| format!("{parked} were never parked"))
    }
}

impl Rounds<'_> {
    /// Parks what W2 and W4 need. A larger crowd is the one before and more.
    pub(super) async fn gather(&mut self) -> anyhow::Result<Crowds> {
        let mut crowds = Crowds::default();
        if self.plan.has(Workload::W2) || self.plan.has(Workload::W4) {
            for system in self.plan.systems(Workload::W2) {
                self.gather_for(Workload::W2, system, &mut crowds).await?;
            }
        }
        if self.plan.has(Workload::W2Http) {
            for system in self.plan.systems(Workload::W2Http) {
                self.gather_for(Workload::W2Http, system, &mut crowds)
                    .await?;
            }
        }
        Ok(crowds)
    }

    async fn gather_for(
        &mut self,
        workload: Workload,
        system: System,
        crowds: &mut Crowds,
    ) -> anyhow::Result<()> {
        let mut before: Option<(usize, PathBuf)> = None;
        for parked in self.plan.parked(system) {
            let (name, whose) = (workload.as_str(), system.as_str());
            eprintln!("parking {parked} for {name}, {whose}");
            let (first, file) = match &before {
                None => (0, self.databases.fresh()),
                Some((first, file)) => (*first, self.databases.copy(file)?),
            };
            let runs = first..parked;
            match (system, workload) {
                (System::Holdpoint, Workload::W2Http) => {
                    holdpoint::gather(self.site()?.bench(&file).await?, runs).await?;
                }
                (System::Holdpoint, _) => {
                    let bench = Bench::new(holdpoint::open(&file)?, Asking::Always, 1, 0);
                    holdpoint::gather(bench.await?, runs).await?;
                }
                (System::Langgraph, _) => self.langgraph()?.park(&file, runs).await?,
                (System::Ceiling | System::Restate, _) => continue,
            }
            database::settle(&file)?;
            before = Some((parked, file.clone()));
            crowds.0.push((workload, system, parked, file));
        }
        Ok(())
    }

    /// Measures everyone once, in processes of their own.
    pub(super) async fn resume(&mut self, crowds: &Crowds) -> anyhow::Result<()> {
        for system in self.plan.systems(Workload::W2) {
            let Some(program) = self.program(system)? else {
                continue;
            };
            let mut fewest: Option<(f64, f64)> = None;
            for parked in self.plan.parked(system) {
                let file = self
                    .databases
                    .copy(crowds.file(Workload::W2, system, parked)?)?;
                let resumes = self.plan.resumes(system);
                let mut command = program.command("resume", &file);
                command.args(["--parked", &parked.to_string()]);
                command.args(["--resumes", &resumes.to_string()]);
                let measured: Resumed = program.measure(command).await?;
                database::remove(&file)?;
                let page = median(&measured.page_ms);
                let p50 = quantile(&measured.resume_ms, 0.50);
                let p99 = quantile(&measured.resume_ms, 0.99);
                let rss = measured.rss_kb as f64 / 1024.0;
                eprintln!(
                    "W2 with {parked} parked, {}: p50 {p50:.2} ms, p99 {p99:.2} ms, a page {page:.2} ms, {rss:.1} MB",
                    system.as_str()
                );
                let setting = setting(Workload::W2, system, 1, parked);
                self.add(setting, "resume_p50_ms", "ms", p50);
                self.add(setting, "resume_p99_ms", "ms", p99);
                self.add(setting, "page_ms", "ms", page);
                self.add(setting, "rss_mb", "MB", rss);
                match fewest {
                    None => fewest = Some((p99, rss)),
                    Some((few_p99, few_rss)) => {
                        self.add(setting, "p99_over_fewest", "ratio", p99 / few_p99);
                        self.add(setting, "rss_growth_mb", "MB", rss - few_rss);
                    }
                }
            }
        }
        Ok(())
    }
}
