//! W3: one thread of many steps.

use std::sync::Arc;

use anyhow::Context as _;

use super::{Rounds, scripts, setting};
use crate::{
    ceiling, holdpoint,
    langgraph::Channel,
    measurement::System,
    recording::Recording,
    script::{Script, Weight},
    workload::{Backend, Tenths, Workload},
};

impl Rounds<'_> {
    /// What Holdpoint writes.
    pub(super) async fn record_steps(&mut self) -> anyhow::Result<Option<Arc<Script>>> {
        if !self.needs_script(Workload::W3) {
            return Ok(None);
        }
        let database = self.databases.fresh(Backend::Sqlite)?;
        let store = holdpoint::open(&database.url()).await?;
        let recording = Arc::new(Recording::new(store));
        let work = self.plan.steps;
        holdpoint::step(recording.clone(), work).await?;
        let scripts = scripts(&recording);
        drop(recording);
        database.remove()?;
        let weight = Weight::of(&scripts);
        self.weights
            .push(format!("W3, per step: {}.", weight.per(work.steps)));
        Ok(scripts.into_iter().next())
    }

    /// Measures everyone once.
    pub(super) async fn step(
        &mut self,
        workload: Workload,
        script: Option<&Arc<Script>>,
    ) -> anyhow::Result<()> {
        let work = self.plan.steps;
        for system in self.plan.systems(workload) {
            let database = self.databases.fresh(workload.backend())?;
            let url = database.url();
            let Tenths { first, last } = match system {
                System::Holdpoint => holdpoint::step(holdpoint::open(&url).await?, work).await?,
                System::Ceiling => {
                    let script = script.context("nothing was recorded")?;
                    ceiling::step(database.file()?, script, work).await?
                }
                System::Langgraph => self.langgraph()?.step(&url, work, Channel::Plain).await?,
                System::Pgbench | System::Restate => {
                    anyhow::bail!("{} has no part in W3", system.as_str())
                }
            };
            let disk = database.size()? as f64;
            database.remove()?;
            eprintln!(
                "{}, {}: {first:.0} µs, {last:.0} µs, {disk:.0} bytes",
                workload.as_str(),
                system.as_str()
            );
            let setting = setting(workload, system, 1, 0);
            self.add(setting, "step_us_first_tenth", "us", first);
            self.add(setting, "step_us_last_tenth", "us", last);
            self.add(setting, "last_over_first", "ratio", last / first);
            self.add(setting, "disk_bytes", "bytes", disk);
            self.add(
                setting,
                "disk_over_text",
                "ratio",
                disk / work.text() as f64,
            );
            if system == System::Langgraph {
                self.step_with_deltas(workload).await?;
            }
        }
        Ok(())
    }

    /// The peer once more, with the channel that keeps only what is new.
    async fn step_with_deltas(&mut self, workload: Workload) -> anyhow::Result<()> {
        let work = self.plan.steps;
        let database = self.databases.fresh(workload.backend())?;
        let url = database.url();
        let Tenths { first, last } = self.langgraph()?.step(&url, work, Channel::Delta).await?;
        let disk = database.size()? as f64;
        database.remove()?;
        eprintln!(
            "{}, langgraph (delta): {first:.0} µs, {last:.0} µs, {disk:.0} bytes",
            workload.as_str()
        );
        let setting = setting(workload, System::Langgraph, 1, 0);
        self.add(setting, "delta_step_us_first_tenth", "us", first);
        self.add(setting, "delta_step_us_last_tenth", "us", last);
        self.add(setting, "delta_last_over_first", "ratio", last / first);
        self.add(setting, "delta_disk_bytes", "bytes", disk);
        let over_text = disk / work.text() as f64;
        self.add(setting, "delta_disk_over_text", "ratio", over_text);
        Ok(())
    }
}
