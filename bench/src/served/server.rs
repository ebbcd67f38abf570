//! A server in a process of its own: the bench, started once more as a program that serves its agent over HTTP.

use std::{net::SocketAddr, process::Stdio};

use anyhow::Context as _;
use holdpoint_server::{Access, Opening, ServerFile, ServerLimits};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout},
};

use crate::{
    crowd::tell,
    program::Program,
    scene::{Asking, Scene},
};

/// Serves a database until stdin ends, as a program does that embeds a server: without keys, on an address of this
/// machine, with the durability that it has when nobody says anything. It logs nothing.
///
/// The first line that it says is its address, the last one how often the tool was called.
///
/// # Errors
///
/// The database or the address cannot be used.
pub(crate) async fn serve(url: &str) -> anyhow::Result<()> {
    let scene = Scene::new(Asking::Always, 1, 0);
    let configuration = ServerFile {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        store: url.to_owned(),
        // With room for the clients of the bench, and for all that they leave parked.
        limits: ServerLimits {
            streams_per_key: 1_000,
            pending_per_user: 1_000_000,
            ..ServerLimits::default()
        },
        ..ServerFile::default()
    };
    let server = Opening::new(configuration, Access::Dev)
        .with_kit(scene.kit)
        .with_agent(scene.definition)
        .start()
        .await?;
    tell(&server.address())?;
    let told_to_go = async {
        // However it ends, whoever started this is gone.
        let until_gone = || std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        let _ = tokio::task::spawn_blocking(until_gone).await;
    };
    Box::pin(server.run(told_to_go)).await;
    tell(&scene.ledger.effects())
}

/// The process, which can be reached.
#[derive(Debug)]
pub(super) struct Server {
    child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    address: SocketAddr,
}

impl Server {
    /// Starts it on a database.
    ///
    /// # Errors
    ///
    /// It does not start.
    pub(super) async fn start(url: &str) -> anyhow::Result<Self> {
        let mut child = Program::ourselves()?
            .command("serve", url)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("a server cannot be started")?;
        let stdin = child.stdin.take().context("it cannot be told to go")?;
        let stdout = child.stdout.take().context("it says nothing")?;
        let mut lines = BufReader::new(stdout).lines();
        let address = lines.next_line().await?.context("the server ended")?;
        Ok(Self {
            child,
            stdin,
            lines,
            address: serde_json::from_str(&address)?,
        })
    }

    /// Where it is reached.
    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its process.
    ///
    /// # Errors
    ///
    /// It has ended.
    pub(super) fn pid(&self) -> anyhow::Result<u32> {
        self.child.id().context("the server has ended")
    }

    /// Lets it go. Returns how often the tool was called.
    ///
    /// # Errors
    ///
    /// It does not say.
    pub(super) async fn stop(self) -> anyhow::Result<usize> {
        let Self {
            mut child,
            stdin,
            mut lines,
            ..
        } = self;
        drop(stdin);
        let effects = lines.next_line().await?.context("the server ended")?;
        child.wait().await?;
        Ok(serde_json::from_str(&effects)?)
    }
}
