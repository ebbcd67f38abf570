//! The rounds: every system in turn, on a new file each time, so that all of them see the same machine.

mod killed;
mod parked;
mod parking;
mod steps;

use std::{path::Path, sync::Arc};

use anyhow::Context as _;

use crate::{
    database::Databases,
    langgraph::Langgraph,
    measurement::{Samples, Setting, System},
    plan::Plan,
    program::Program,
    recording::Recording,
    rounds::parked::Crowds,
    script::Script,
    workload::Workload,
};

/// Measures round by round.
#[derive(Debug)]
pub(crate) struct Rounds<'a> {
    plan: Plan,
    databases: Databases<'a>,
    peer: Option<Langgraph>,
    samples: Samples,
    weights: Vec<String>,
}

impl<'a> Rounds<'a> {
    /// With databases in this folder, and the peer if it is to be measured.
    pub(crate) fn new(plan: Plan, folder: &'a Path, peer: Option<Langgraph>) -> Self {
        Self {
            plan,
            databases: Databases::new(folder),
            peer,
            samples: Samples::default(),
            weights: Vec::new(),
        }
    }

    /// The samples, and what was written, in words.
    pub(crate) fn into_results(self) -> (Samples, Vec<String>) {
        (self.samples, self.weights)
    }

    /// Measures everything.
    ///
    /// # Errors
    ///
    /// Something failed, or did not do what it should.
    pub(crate) async fn run(&mut self) -> anyhow::Result<()> {
        let parking = self.record_parking().await?;
        let steps = self.record_steps().await?;
        let crowds = self.gather().await?;
        for round in 1..=self.plan.rounds {
            eprintln!("round {round} of {}", self.plan.rounds);
            if self.plan.has(Workload::W1) {
                for concurrency in self.plan.concurrencies.clone() {
                    self.park(concurrency, &parking).await?;
                }
            }
            if self.plan.has(Workload::W2) {
                self.resume(&crowds).await?;
            }
            if self.plan.has(Workload::W3) {
                self.step(steps.as_ref()).await?;
            }
            if self.plan.has(Workload::W4) {
                self.kill(&crowds).await?;
            }
        }
        Ok(())
    }

    fn needs_script(&self, workload: Workload) -> bool {
        self.plan.systems.contains(&System::Ceiling) && self.plan.has(workload)
    }

    fn add(&mut self, setting: Setting, metric: &'static str, unit: &'static str, value: f64) {
        self.samples.add(setting, metric, unit, value);
    }

    /// The peer.
    fn peer(&self) -> anyhow::Result<&Langgraph> {
        self.peer.as_ref().context("the peer is not installed")
    }

    /// What to start for W2 and W4; nothing for a system that has no part in them.
    fn program(&self, system: System) -> anyhow::Result<Option<Program>> {
        Ok(match system {
            System::Holdpoint => Some(Program::ourselves()?),
            System::Langgraph => self.peer.as_ref().map(Langgraph::program),
            System::Ceiling => None,
        })
    }

    /// The largest of what is parked for a system.
    fn largest(&self, crowds: &Crowds, system: System) -> Option<usize> {
        let parked = self.plan.parked(system);
        parked
            .into_iter()
            .rfind(|parked| crowds.has(system, *parked))
    }
}

const fn setting(workload: Workload, system: System, concurrency: usize, parked: usize) -> Setting {
    Setting {
        workload,
        system,
        concurrency,
        parked,
    }
}

fn scripts(recording: &Recording) -> Vec<Arc<Script>> {
    let threads = recording.take();
    threads
        .into_iter()
        .map(|(key, commits)| Arc::new(Script::new(&key, commits)))
        .collect()
}
