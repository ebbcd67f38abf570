//! W3: one thread of many steps.

use std::sync::Arc;

use anyhow::Context as _;

use super::{Rounds, scripts, setting};
use crate::{
    ceiling, database, holdpoint,
    langgraph::Channel,
    measurement::System,
    recording::Recording,
    script::{Script, Weight},
    workload::{Tenths, Workload},
};

impl Rounds<'_> {
    /// What Holdpoint writes.
    pub(super) async fn record_steps(&mut self) -> anyhow::Result<Option<Arc<Script>>> {
        if !self.needs_script(Workload::W3) {
            return Ok(None);
        }
        let file = self.databases.fresh();
        let recording = Arc::new(Recording::new(holdpoint::open(&file)?));
        let work = self.plan.steps;
        holdpoint::step(recording.clone(), work).await?;
        let scripts = scripts(&recording);
        drop(recording);
        database::remove(&file)?;
        let weight = Weight::of(&scripts);
        self.weights
            .push(format!("W3, per step: {}.", weight.per(work.steps)));
        Ok(scripts.into_iter().next())
    }

    /// Measures everyone once.
    pub(super) async fn step(&mut self, script: Option<&Arc<Script>>) -> anyhow::Result<()> {
        let work = self.plan.steps;
        for system in self.plan.systems(Workload::W3) {
            let file = self.databases.fresh();
            let Tenths { first, last } = match system {
                System::Holdpoint => holdpoint::step(holdpoint::open(&file)?, work).await?,
                System::Ceiling => {
                    let script = script.context("nothing was recorded")?;
                    ceiling::step(&file, script, work).await?
                }
                System::Langgraph => self.langgraph()?.step(&file, work, Channel::Plain).await?,
                System::Restate => anyhow::bail!("Restate has no part in W3"),
            };
            let disk = database::remove(&file)? as f64;
            eprintln!("W3, {}: {first:.0} µs, {last:.0} µs", system.as_str());
            let setting = setting(Workload::W3, system, 1, 0);
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
                self.step_with_deltas().await?;
            }
        }
        Ok(())
    }

    /// The peer once more, with the channel that keeps only what is new.
    async fn step_with_deltas(&mut self) -> anyhow::Result<()> {
        let work = self.plan.steps;
        let file = self.databases.fresh();
        let Tenths { first, last } = self.langgraph()?.step(&file, work, Channel::Delta).await?;
        let disk = database::remove(&file)? as f64;
        eprintln!("W3, langgraph (delta): {first:.0} µs, {last:.0} µs");
        let setting = setting(Workload::W3, System::Langgraph, 1, 0);
        self.add(setting, "delta_step_us_first_tenth", "us", first);
        self.add(setting, "delta_step_us_last_tenth", "us", last);
        self.add(setting, "delta_last_over_first", "ratio", last / first);
        self.add(setting, "delta_disk_bytes", "bytes", disk);
        let over_text = disk / work.text() as f64;
        self.add(setting, "delta_disk_over_text", "ratio", over_text);
        Ok(())
    }
}
