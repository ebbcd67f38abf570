//! A client of the runs API, with two connections: one for what it says, one for what it follows.

use std::net::SocketAddr;

use anyhow::{Context as _, ensure};
use serde::Deserialize;
use serde_json::json;

use crate::{events::Events, holdpoint::session, http::Connection, lean::Client};

/// The answer to a command.
#[derive(Debug, Deserialize)]
struct Standing {
    run_id: String,
}

/// An event of a run, as far as a client looks at it.
#[derive(Debug, Deserialize)]
struct Seen<T> {
    data: T,
}

/// A question.
#[derive(Debug, Deserialize)]
struct Raised {
    id: String,
}

/// The end of a run.
#[derive(Debug, Deserialize)]
struct Ended {
    outcome: Outcome,
}

/// How it ended.
#[derive(Debug, Deserialize)]
struct Outcome {
    status: String,
}

/// A client.
#[derive(Debug)]
pub(super) struct Caller {
    saying: Connection,
    following: Connection,
}

impl Caller {
    /// Connects to a server.
    ///
    /// # Errors
    ///
    /// It is not there.
    pub(super) async fn connect(server: SocketAddr) -> anyhow::Result<Self> {
        Ok(Self {
            saying: Connection::open(server).await?,
            following: Connection::open(server).await?,
        })
    }

    /// Begins a run. Returns its id as soon as the server has accepted it.
    async fn start(&mut self, session: &str) -> anyhow::Result<String> {
        let input = "Transfer the money, please.";
        let body = json!({"agent_id": "bench", "session_id": session, "input": input});
        let answer = self.saying.post("/api/v1/runs", body.to_string()).await?;
        let standing: Standing = serde_json::from_slice(&answer)?;
        Ok(standing.run_id)
    }

    /// Follows a run from its beginning: reads what it asks once it does, approves that, and sees the run end.
    ///
    /// # Errors
    ///
    /// It asks nothing, or does not end as finished.
    pub(super) async fn resume(&mut self, run: &str) -> anyhow::Result<()> {
        let stream = format!("/api/v1/runs/{run}/stream");
        let mut events = Events::new(self.following.get(&stream).await?);
        let raised = events.wait_for("interrupt_raised").await?;
        let raised: Seen<Raised> = serde_json::from_str(&raised)
            .with_context(|| format!("this question has no id: {raised}"))?;
        let answer = json!({ raised.data.id: {"decisions": [{"type": "approve"}]} });
        let path = format!("/api/v1/runs/{run}/resume");
        self.saying.post(&path, answer.to_string()).await?;
        let ended = events.wait_for("run_ended").await?;
        let told: Seen<Ended> = serde_json::from_str(&ended)
            .with_context(|| format!("this end says nothing: {ended}"))?;
        ensure!(
            told.data.outcome.status == "finished",
            "`{run}` is not finished: {ended}"
        );
        events.finish().await
    }
}

impl Client for Caller {
    async fn cycle(&mut self, run: usize) -> anyhow::Result<()> {
        let run = self.start(&session(run)).await?;
        self.resume(&run).await
    }
}
