//! Measures Holdpoint, and beside it the most that SQLite would let anyone do with the same rows.
//!
//! `--quick` does little of everything, to see that it works; its figures mean nothing. Without it the figures go to
//! `target/bench/results.json` and `docs/performance.md`, and a missed target ends with exit code 1.

mod ceiling;
mod holdpoint;
mod machine;
mod measurement;
mod recording;
mod report;
mod rounds;
mod scene;
mod script;
mod target;
mod workload;

use std::{fs, path::Path, process::ExitCode};

use anyhow::Context as _;
use clap::Parser;

use crate::{
    machine::Machine,
    measurement::System,
    report::Report,
    rounds::{Plan, Rounds},
    target::TARGETS,
};

/// The one of the `holdpoint` binary; the ceiling has it too.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measures Holdpoint.
#[derive(Debug, Parser)]
struct Args {
    /// Do little of everything, to see that it works. Targets are shown but not enforced, and no page is written.
    #[arg(long)]
    quick: bool,
    /// Only this workload. Nothing but the table is written then.
    #[arg(long, value_parser = ["W1", "W3"])]
    workload: Option<String>,
    /// Only this many clients (W1). Nothing but the table is written then.
    #[arg(long)]
    concurrency: Option<usize>,
    /// Only this system. Nothing but the table is written then.
    #[arg(long)]
    system: Option<System>,
    /// How many rounds.
    #[arg(long)]
    rounds: Option<usize>,
}

impl Args {
    fn plan(&self) -> Plan {
        let mut plan = if self.quick {
            Plan::quick()
        } else {
            Plan::full()
        };
        if let Some(workload) = &self.workload {
            plan.workloads.retain(|planned| planned == workload);
        }
        if let Some(concurrency) = self.concurrency {
            plan.concurrencies = vec![concurrency];
        }
        if let Some(system) = self.system {
            plan.systems = vec![system];
        }
        if let Some(rounds) = self.rounds {
            plan.rounds = rounds.max(1);
        }
        plan
    }

    const fn is_partial(&self) -> bool {
        self.workload.is_some() || self.concurrency.is_some() || self.system.is_some()
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let args = Args::parse();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .context("the bench lies in no folder")?;
    let out = root.join("target/bench");
    fs::create_dir_all(&out)?;
    // Beside the results and not where temporary files go: that may be memory.
    let folder = tempfile::tempdir_in(&out)?;
    let machine = Machine::look(folder.path())?;
    let plan = args.plan();
    let rounds = plan.rounds;
    let mut runner = Rounds::new(plan, folder.path());
    runner.run().await?;
    let (samples, weights) = runner.into_results();
    let measured = samples.medians();
    let verdicts: Vec<_> = TARGETS
        .iter()
        .map(|target| target.judge(&measured))
        .collect();
    let report = Report {
        machine,
        rounds,
        weights,
        measured,
        verdicts,
    };
    print!("{}", report.markdown());
    if args.is_partial() {
        return Ok(ExitCode::SUCCESS);
    }
    if args.quick {
        report.save(&out.join("quick.json"))?;
        return Ok(ExitCode::SUCCESS);
    }
    report.save(&out.join("results.json"))?;
    report.publish(&root.join("docs/performance.md"))?;
    if report.verdicts.iter().any(target::Verdict::is_missed) {
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}
