//! W2 over HTTP: what a resume costs through a server while others are parked.

use super::{Rounds, parked::Crowds, setting};
use crate::{database, lean::alone, measurement::quantile, workload::Workload};

impl Rounds<'_> {
    /// Measures a server of each size once.
    pub(super) fn resume_over_http(&mut self, crowds: &Crowds) -> anyhow::Result<()> {
        for system in self.plan.systems(Workload::W2Http) {
            let mut fewest: Option<(f64, f64)> = None;
            for parked in self.plan.parked(system) {
                let file = crowds.file(Workload::W2Http, system, parked)?;
                let file = self.databases.copy(file)?;
                let resumes = self.plan.resumes(system);
                let measured = alone(self.site()?.resume(&file, parked, resumes))?;
                database::remove(&file)?;
                let p50 = quantile(&measured.resume_ms, 0.50);
                let p99 = quantile(&measured.resume_ms, 0.99);
                let rss = measured.rss_kb as f64 / 1024.0;
                eprintln!(
                    "W2-http with {parked} parked, {}: p50 {p50:.2} ms, p99 {p99:.2} ms, {rss:.1} MB",
                    system.as_str()
                );
                let setting = setting(Workload::W2Http, system, 1, parked);
                self.add(setting, "resume_p50_ms", "ms", p50);
                self.add(setting, "resume_p99_ms", "ms", p99);
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
