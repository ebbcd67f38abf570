//! Holdpoint behind HTTP: `holdpoint serve` as a process of its own, and clients of it.
//!
//! The agent is the one of all workloads, as a file: its model is a scenario, and its tool is an HTTP service that the
//! bench plays and that counts.

mod chat;
mod runs;
mod server;

use std::{
    fs,
    path::{Path, PathBuf},
    pin::pin,
};

use anyhow::{Context as _, ensure};
use futures::future::try_join_all;
use tokio::time::Instant;

use self::{chat::Chatter, runs::Caller, server::Server};
use crate::{
    crowd::{Crowd, WARM_UP},
    holdpoint::{Bench, open},
    lean, process,
    till::Till,
    workload::{Parking, Shared},
};

/// The files that a server is started with, and the service that its agent's tool talks to.
#[derive(Debug)]
pub(crate) struct Site {
    binary: PathBuf,
    folder: PathBuf,
    till: Till,
}

/// By which of its doors a server is reached.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Door {
    /// The runs API: a command, the stream of the run, another command.
    Runs,
    /// The chat API: two messages, each answered by a stream.
    Chat,
}

/// What W2 over HTTP measures.
#[derive(Debug)]
pub(crate) struct ResumedOverHttp {
    /// What each resume took.
    pub(crate) resume_ms: Vec<f64>,
    /// The memory that the server has in the end.
    pub(crate) rss_kb: u64,
}

impl Site {
    /// Lays the files out in a folder.
    ///
    /// # Errors
    ///
    /// There is no binary, or the folder cannot be written.
    pub(crate) fn new(folder: &Path) -> anyhow::Result<Self> {
        let till = Till::open()?;
        let port = till.port()?.to_string();
        let agent = include_str!("../served/agent.yaml").replace("PORT", &port);
        fs::write(folder.join("agent.yaml"), agent)?;
        let scenario = include_str!("../served/scenario.yaml");
        fs::write(folder.join("scenario.yaml"), scenario)?;
        let server = include_str!("../served/server.yaml");
        fs::write(folder.join("server.yaml"), server)?;
        Ok(Self {
            binary: server::binary()?,
            folder: folder.to_owned(),
            till,
        })
    }

    /// The same agent in this process, without a server. What it parks, a server finds.
    ///
    /// # Errors
    ///
    /// The store fails.
    pub(crate) async fn bench(&self, file: &Path) -> anyhow::Result<Bench> {
        Bench::of_file(open(file)?, &self.folder.join("agent.yaml")).await
    }

    /// W1: parks and resumes runs, `concurrency` of them at a time, after some that do not count.
    ///
    /// # Errors
    ///
    /// A run fails, does not end as finished, or its effect did not happen exactly once.
    pub(crate) async fn park(
        &self,
        file: &Path,
        work: Parking,
        door: Door,
    ) -> anyhow::Result<Shared> {
        self.while_called(async {
            let before = self.till.calls();
            let server = Server::start(&self.binary, &self.folder, file).await?;
            let (address, servers) = (server.address(), [server.pid()?]);
            let clients = 0..work.concurrency;
            let spent = match door {
                Door::Runs => {
                    let clients = clients.map(|_| Caller::connect(address));
                    let mut clients = try_join_all(clients).await?;
                    lean::park(&mut clients, work, &servers).await?
                }
                Door::Chat => {
                    let clients = clients.map(|_| Chatter::connect(address));
                    let mut clients = try_join_all(clients).await?;
                    lean::park(&mut clients, work, &servers).await?
                }
            };
            server.stop().await?;
            let (effects, expected) = (self.till.calls() - before, work.warm_up() + work.runs);
            ensure!(effects == expected, "{effects} effects in {expected} runs");
            Ok(spent)
        })
        .await
    }

    /// W2: resumes some of those that are parked in a file, drawn at random, one after the other.
    ///
    /// # Errors
    ///
    /// A run fails, does not end as finished, or its effect did not happen exactly once.
    pub(crate) async fn resume(
        &self,
        file: &Path,
        parked: usize,
        resumes: usize,
    ) -> anyhow::Result<ResumedOverHttp> {
        let work = async {
            let before = self.till.calls();
            let server = Server::start(&self.binary, &self.folder, file).await?;
            // A server remembers what it parked last. Nobody answers within milliseconds, so another process parks.
            let other = self.bench(file).await?;
            let mut client = Caller::connect(server.address()).await?;
            let mut crowd = Crowd::new(0..parked);
            let mut resume_ms = Vec::with_capacity(resumes);
            for nth in 0..WARM_UP + resumes {
                let (place, session) = crowd.any();
                let run = other.run(&session).await?;
                let began = Instant::now();
                client.resume(&run.to_string()).await?;
                if nth >= WARM_UP {
                    resume_ms.push(began.elapsed().as_secs_f64() * 1e3);
                }
                other.start(&crowd.replace(place)).await?;
            }
            let rss_kb = process::rss_kb(server.pid()?)?;
            drop((client, other));
            server.stop().await?;
            let (effects, expected) = (self.till.calls() - before, WARM_UP + resumes);
            ensure!(effects == expected, "{effects} effects in {expected} runs");
            Ok(ResumedOverHttp { resume_ms, rss_kb })
        };
        self.while_called(Box::pin(work)).await
    }

    /// Has the tool's service answer for as long as something is done.
    async fn while_called<T>(
        &self,
        work: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<T> {
        let (work, serving) = (pin!(work), pin!(self.till.serve()));
        tokio::select! {
            done = work => done,
            failed = serving => match failed {
                Ok(never) => match never {},
                Err(error) => Err(error).context("the tool's service failed"),
            },
        }
    }
}
