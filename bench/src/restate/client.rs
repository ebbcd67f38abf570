//! A client of Restate's ingress, with two connections: one for the call, one for what it answers meanwhile.

use std::net::SocketAddr;

use anyhow::{Context as _, ensure};
use serde::Deserialize;
use tokio::sync::oneshot;

use super::Waiting;
use crate::{holdpoint::session, http::Connection, lean::Client};

/// What a person's answer is sent to.
#[derive(Debug, Deserialize)]
pub(super) struct Awakeable(String);

/// A client.
#[derive(Debug)]
pub(super) struct Caller<'a> {
    calling: Connection,
    answering: Connection,
    waiting: &'a Waiting,
}

impl<'a> Caller<'a> {
    /// Connects to the ingress. `waiting` is where the service's word is handed out.
    pub(super) async fn connect(ingress: SocketAddr, waiting: &'a Waiting) -> anyhow::Result<Self> {
        Ok(Self {
            calling: Connection::open(ingress).await?,
            answering: Connection::open(ingress).await?,
            waiting,
        })
    }
}

impl Client for Caller<'_> {
    /// One call, whose answer is the end of the run, and between them the approval: no request could be left out.
    async fn cycle(&mut self, run: usize) -> anyhow::Result<()> {
        let session = session(run);
        let (tell, told) = oneshot::channel();
        let body = serde_json::to_string(&session)?;
        self.waiting.borrow_mut().insert(session, tell);
        let calling = self.calling.post("/transfers/transfer", body);
        let answering = async {
            let Awakeable(id) = told.await.context("the service is gone")?;
            approve(&mut self.answering, &id).await
        };
        let (result, ()) = tokio::try_join!(calling, answering)?;
        ensure!(&*result == b"\"transferred\"", "it did not finish");
        Ok(())
    }
}

/// Says yes.
async fn approve(connection: &mut Connection, awakeable: &str) -> anyhow::Result<()> {
    let path = format!("/restate/awakeables/{awakeable}/resolve");
    connection.post(&path, "\"approve\"".to_owned()).await?;
    Ok(())
}
