//! A client of the chat API, with one connection: what it says is answered by all that follows from it.

use std::net::SocketAddr;

use anyhow::ensure;
use hyper::body::Bytes;
use serde_json::{Value, json};

use crate::{holdpoint::session, http::Connection, lean::Client};

/// A client.
#[derive(Debug)]
pub(super) struct Chatter(Connection);

impl Chatter {
    /// Connects to a server.
    ///
    /// # Errors
    ///
    /// It is not there.
    pub(super) async fn connect(server: SocketAddr) -> anyhow::Result<Self> {
        Ok(Self(Connection::open(server).await?))
    }

    /// Says something. Returns what is answered until the run stands still.
    async fn say(&mut self, path: &str, body: &Value) -> anyhow::Result<Bytes> {
        self.0.post(path, body.to_string()).await
    }
}

impl Client for Chatter {
    async fn cycle(&mut self, run: usize) -> anyhow::Result<()> {
        let (session, message) = (session(run), "Transfer the money, please.");
        let body = json!({"agent_id": "bench", "session_id": session, "message": message});
        let answer = self.say("/api/v1/chat/stream", &body).await?;
        let answer = String::from_utf8_lossy(&answer);
        ensure!(answer.contains("INTERRUPT:"), "it did not park: {answer}");
        let body = json!({"agent_id": "bench", "session_id": session, "input": {"confirm": true}});
        let answer = self.say("/api/v1/chat/resume", &body).await?;
        // The model's last word, which it says only after the tool's result; then the stream ends.
        let answer = String::from_utf8_lossy(&answer);
        let is_done = answer.contains("It is done.") && answer.ends_with("data: [DONE]\n\n");
        ensure!(is_done, "it did not finish: {answer}");
        Ok(())
    }
}
