//! Measures Holdpoint on SQLite and on PostgreSQL, beside it the most that these would let anyone do, and its peers.
//!
//! `--quick` does little of everything, to see that it works; its figures mean nothing. Without it the figures go to
//! `target/bench/results.json` and `docs/performance.md`, and a missed target ends with exit code 1.

mod ceiling;
mod crowd;
mod database;
mod events;
mod holdpoint;
mod http;
mod langgraph;
mod lean;
mod machine;
mod measurement;
mod plan;
mod postgres;
mod process;
mod program;
mod recording;
mod report;
mod restate;
mod rounds;
mod scene;
mod script;
mod served;
mod target;
mod workload;

use std::{fs, path::Path, process::ExitCode};

use anyhow::Context as _;
use clap::Parser;
use holdpoint_store::{Trade, workers};

use crate::{
    crowd::Errand,
    database::Databases,
    langgraph::Langgraph,
    machine::Machine,
    measurement::System,
    plan::Plan,
    postgres::Postgres,
    report::Report,
    restate::Restate,
    rounds::{Peers, Rounds},
    target::TARGETS,
    workload::Workload,
};

/// The one of the `holdpoint` binary; the ceiling has it too.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measures Holdpoint.
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Args {
    /// What the bench starts itself for.
    #[command(subcommand)]
    errand: Option<Errand>,
    /// Do little of everything, to see that it works. Targets are shown but not enforced, and no page is written.
    #[arg(long)]
    quick: bool,
    /// Only this workload; may be given more than once. Nothing but the table is written then.
    #[arg(long)]
    workload: Vec<Workload>,
    /// Only this many clients (W1, W1-http, W1-pg). Nothing but the table is written then.
    #[arg(long)]
    concurrency: Option<usize>,
    /// Only so many parked (W2, W2-http, W2-pg, W4, W4-pg); may be given more than once. Nothing but the table is written then.
    #[arg(long)]
    parked: Vec<usize>,
    /// Only this system; may be given more than once. Nothing but the table is written then.
    #[arg(long)]
    system: Vec<System>,
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
        if !self.workload.is_empty() {
            plan.workloads.clone_from(&self.workload);
        }
        if let Some(concurrency) = self.concurrency {
            plan.concurrencies = vec![concurrency];
            plan.postgres_concurrencies = vec![concurrency];
        }
        if !self.parked.is_empty() {
            plan.parked.clone_from(&self.parked);
            plan.parked.sort_unstable();
            plan.parked.dedup();
        }
        if !self.system.is_empty() {
            plan.systems.retain(|system| self.system.contains(system));
        }
        if let Some(rounds) = self.rounds {
            plan.rounds = rounds.max(1);
        }
        plan
    }

    const fn is_partial(&self) -> bool {
        !self.workload.is_empty()
            || self.concurrency.is_some()
            || !self.parked.is_empty()
            || !self.system.is_empty()
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    // As in the `holdpoint` binary.
    let trade = match &args.errand {
        Some(Errand::Serve { .. }) => Trade::Serving,
        Some(Errand::Resume { .. } | Errand::Work { .. } | Errand::Start { .. }) | None => {
            Trade::Driving
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers(trade))
        .enable_all()
        .build();
    let done = runtime.map_err(anyhow::Error::from);
    match done.and_then(|runtime| runtime.block_on(run(&args))) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Installs those who have a part in what is planned.
async fn install(plan: &Plan, root: &Path, out: &Path) -> anyhow::Result<Peers> {
    let mut peers = Peers::default();
    if plan.needs(System::Langgraph) {
        let langgraph = Langgraph::install(root, &out.join("langgraph")).await?;
        peers.langgraph = Some(langgraph);
    }
    if plan.needs(System::Restate) {
        let restate = Restate::install(root, &out.join("restate")).await?;
        peers.restate = Some(restate);
    }
    Ok(peers)
}

async fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if let Some(errand) = &args.errand {
        errand.run().await?;
        return Ok(ExitCode::SUCCESS);
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .context("the bench lies in no folder")?;
    let out = root.join("target/bench");
    fs::create_dir_all(&out)?;
    // Beside the results and not where temporary files go: that may be memory.
    let folder = tempfile::tempdir_in(&out)?;
    let plan = args.plan();
    // First, because it may fail, and so that it is no part of the load that the machine has.
    let peers = install(&plan, root, &out).await?;
    // Not in the folder of the others: who runs PostgreSQL may not be let into it.
    let postgres = plan.needs_postgres().then(|| Postgres::start(&out));
    let postgres = postgres.transpose()?;
    let server = postgres.as_ref().map(Postgres::about);
    let server = server.map(|about| format!("Server: {about}"));
    let versions = peers.about().chain(server).collect();
    let machine = Machine::look(folder.path())?;
    let rounds = plan.rounds;
    let mut runner = Rounds::new(plan, Databases::new(folder.path(), postgres), peers);
    runner.run().await?;
    let (samples, weights) = runner.into_results();
    let measured = samples.medians();
    let verdicts: Vec<_> = TARGETS
        .iter()
        .map(|target| target.judge(&measured))
        .collect();
    let report = Report {
        machine,
        versions,
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
