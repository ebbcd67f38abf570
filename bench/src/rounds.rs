//! The rounds: every system in turn, on a new file each time, so that all of them see the same machine.

mod killed;
mod metered;
mod parked;
mod parked_http;
mod parking;
mod parking_http;
mod rates;
mod steps;

use std::sync::Arc;

use anyhow::Context as _;

use crate::{
    database::Databases,
    langgraph::Langgraph,
    measurement::{Samples, Setting, System},
    plan::Plan,
    program::Program,
    recording::Recording,
    restate::Restate,
    rounds::rates::Rates,
    script::Script,
    workload::Workload,
};

/// Those who are measured beside Holdpoint, as far as they are to be.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    /// In this process's language and store.
    pub(crate) langgraph: Option<Langgraph>,
    /// Behind HTTP.
    pub(crate) restate: Option<Restate>,
}

impl Peers {
    /// Which versions of what they are.
    pub(crate) fn about(&self) -> impl Iterator<Item = String> {
        let langgraph = self.langgraph.as_ref().map(Langgraph::about);
        let restate = self.restate.as_ref().map(Restate::about);
        let all = langgraph.into_iter().chain(restate);
        all.map(|about| format!("Peer: {about}"))
    }
}

/// Measures round by round.
#[derive(Debug)]
pub(crate) struct Rounds<'a> {
    plan: Plan,
    databases: Databases<'a>,
    peers: Peers,
    samples: Samples,
    rates: Rates,
    weights: Vec<String>,
}

impl<'a> Rounds<'a> {
    /// With databases that are made there.
    pub(crate) fn new(plan: Plan, databases: Databases<'a>, peers: Peers) -> Self {
        Self {
            plan,
            databases,
            peers,
            samples: Samples::default(),
            rates: Rates::default(),
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
            self.rates.clear();
            for workload in self.plan.workloads.clone() {
                let concurrencies = self.plan.concurrencies(workload.backend());
                match workload {
                    Workload::W1 | Workload::W1Pg => {
                        for concurrency in concurrencies {
                            self.park(workload, concurrency, &parking).await?;
                        }
                    }
                    Workload::W1Http => {
                        for concurrency in concurrencies {
                            self.park_over_http(concurrency)?;
                        }
                    }
                    Workload::W2 | Workload::W2Pg => self.resume(workload, &crowds).await?,
                    Workload::W2Http => self.resume_over_http(&crowds)?,
                    Workload::W3 | Workload::W3Pg => self.step(workload, steps.as_ref()).await?,
                    Workload::W4 | Workload::W4Pg => self.kill(workload, &crowds).await?,
                }
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

    /// LangGraph.
    fn langgraph(&self) -> anyhow::Result<&Langgraph> {
        let langgraph = self.peers.langgraph.as_ref();
        langgraph.context("LangGraph is not installed")
    }

    /// Restate.
    fn restate(&self) -> anyhow::Result<&Restate> {
        let restate = self.peers.restate.as_ref();
        restate.context("Restate is not installed")
    }

    /// What to start for W2 and W4; nothing for a system that has no part in them.
    fn program(&self, system: System) -> anyhow::Result<Option<Program>> {
        Ok(match system {
            System::Holdpoint => Some(Program::ourselves()?),
            System::Langgraph => Some(self.langgraph()?.program()),
            System::Ceiling | System::Pgbench | System::Restate => None,
        })
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
