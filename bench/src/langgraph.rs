//! The peer: LangGraph on its checkpointers for SQLite and PostgreSQL, in Python.
//!
//! What it does is written in `bench/peers/langgraph/peer.py`; here is how it is started and understood.

mod venv;

use std::{ops::Range, path::Path, time::Duration};

use serde::Deserialize;
use serde_json::Value;

use crate::{
    database::Database,
    program::Program,
    workload::{Parking, Spent, Steps, Tenths},
};

/// Which form of its checkpointer it uses.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Saver {
    /// `SqliteSaver` or `PostgresSaver`, with a thread for each client and one saver for all of them.
    Sync,
    /// `PostgresSaver`, with a thread and a saver for each client.
    Apart,
    /// `AsyncSqliteSaver` or `AsyncPostgresSaver`, with all clients in one event loop.
    Async,
}

impl Saver {
    /// Its name.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::Apart => "apart",
            Self::Async => "async",
        }
    }
}

/// How it keeps a list that grows.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Channel {
    /// As its documentation does: a list with a reducer, written in full with every checkpoint.
    Plain,
    /// With its `DeltaChannel`, which is in beta.
    Delta,
}

impl Channel {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Delta => "delta",
        }
    }
}

/// LangGraph, installed.
#[derive(Debug)]
pub(crate) struct Langgraph {
    program: Program,
    about: String,
}

/// What W1 took it, in seconds.
#[derive(Debug, Deserialize)]
struct Took {
    time: f64,
    processor: f64,
}

/// When the steps of W3 began and the last one ended, in seconds.
#[derive(Debug, Deserialize)]
struct Times {
    times: Vec<f64>,
}

impl Langgraph {
    /// Installs it beneath a folder, unless that was done before.
    ///
    /// # Errors
    ///
    /// There is no Python that is new enough, or nothing to install from.
    pub(crate) async fn install(root: &Path, folder: &Path) -> anyhow::Result<Self> {
        let source = root.join("bench/peers/langgraph");
        let python = venv::install(&source.join("requirements.txt"), folder).await?;
        let program = Program::new(python, vec![source.join("peer.py").into_os_string()]);
        let about = program.measure(program.command("about", "-")).await?;
        Ok(Self { program, about })
    }

    /// Which versions of what it is.
    pub(crate) fn about(&self) -> &str {
        &self.about
    }

    /// What to start for W2 and W4.
    pub(crate) fn program(&self) -> Program {
        self.program.clone()
    }

    /// W1.
    ///
    /// # Errors
    ///
    /// It fails, or did not do what it should.
    pub(crate) async fn park_and_resume(
        &self,
        database: &Database,
        work: Parking,
        saver: Saver,
    ) -> anyhow::Result<Spent> {
        let mut command = self.program.command("cycle", &database.url());
        if let Database::Server(_) = database {
            command.args(["--warm-up", &work.warm_up().to_string()]);
        }
        command.args(["--runs", &work.runs.to_string()]);
        command.args(["--concurrency", &work.concurrency.to_string()]);
        command.args(["--saver", saver.as_str()]);
        let took: Took = self.program.measure(command).await?;
        Ok(Spent {
            time: Duration::try_from_secs_f64(took.time)?,
            processor: Duration::try_from_secs_f64(took.processor)?,
        })
    }

    /// W3.
    ///
    /// # Errors
    ///
    /// It fails, or did not do what it should.
    pub(crate) async fn step(
        &self,
        url: &str,
        work: Steps,
        channel: Channel,
    ) -> anyhow::Result<Tenths> {
        let mut command = self.program.command("steps", url);
        command.args(["--steps", &work.steps.to_string()]);
        command.args(["--characters", &work.characters.to_string()]);
        command.args(["--channel", channel.as_str()]);
        let Times { times } = self.program.measure(command).await?;
        Ok(Tenths::of_seconds(&times, work.steps))
    }

    /// Parks these runs.
    ///
    /// # Errors
    ///
    /// It fails.
    pub(crate) async fn park(&self, url: &str, runs: Range<usize>) -> anyhow::Result<()> {
        let mut command = self.program.command("park", url);
        command.args(["--first", &runs.start.to_string()]);
        command.args(["--parked", &runs.end.to_string()]);
        let _: Value = self.program.measure(command).await?;
        Ok(())
    }
}
