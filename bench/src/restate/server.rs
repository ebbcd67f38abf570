//! The two processes: the server, and the service that it calls.

use std::{
    fs,
    net::{SocketAddr, TcpListener},
    path::Path,
    process::Stdio,
    time::Duration,
};

use anyhow::{Context as _, bail};
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    sync::Mutex,
    time::{Instant, sleep},
};

use super::{Shape, client::Awakeable, npm::Installed};
use crate::{http::Connection, process};

/// How long the server may take to be there.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server that can be reached.
#[derive(Debug)]
pub(super) struct Server {
    child: Child,
    ingress: SocketAddr,
    admin: SocketAddr,
}

impl Server {
    /// Starts it with what it keeps in a folder, and waits until it is ready. Its durability is what it is when nobody says
    /// anything.
    pub(super) async fn start(
        installed: &Installed,
        folder: &Path,
        partitions: usize,
    ) -> anyhow::Result<Self> {
        let [ingress, admin, node] = addresses()?;
        fs::create_dir_all(folder)?;
        let config = folder.join("restate.toml");
        let settings = include_str!("../../peers/restate/restate.toml")
            .replace("PARTITIONS", &partitions.to_string())
            .replace("INGRESS", &ingress.port().to_string())
            .replace("ADMIN", &admin.port().to_string())
            .replace("NODE", &node.port().to_string());
        fs::write(&config, settings)?;
        let child = Command::new(&installed.server)
            .args(["--no-logo", "--config-file"])
            .arg(&config)
            .arg("--base-dir")
            .arg(folder.join("data"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .context("Restate's server cannot be started")?;
        let server = Self {
            child,
            ingress,
            admin,
        };
        server.ready().await?;
        Ok(server)
    }

    /// Waits until it answers.
    async fn ready(&self) -> anyhow::Result<()> {
        let began = Instant::now();
        for (address, path) in [(self.admin, "/health"), (self.ingress, "/restate/health")] {
            while !is_well(address, path).await {
                if began.elapsed() > PATIENCE {
                    bail!("Restate's server is not ready after {PATIENCE:?}");
                }
                sleep(Duration::from_millis(50)).await;
            }
        }
        Ok(())
    }

    /// Tells it of a service.
    pub(super) async fn register(&self, service: &Service) -> anyhow::Result<()> {
        let mut admin = Connection::open(self.admin).await?;
        let deployment = json!({"uri": format!("http://127.0.0.1:{}", service.port)});
        admin.post("/deployments", deployment.to_string()).await?;
        Ok(())
    }

    /// Where clients reach it.
    pub(super) const fn ingress(&self) -> SocketAddr {
        self.ingress
    }

    pub(super) fn pid(&self) -> anyhow::Result<u32> {
        self.child.id().context("Restate's server has ended")
    }

    /// Lets it go.
    pub(super) async fn stop(self) -> anyhow::Result<()> {
        process::stop(self.child).await
    }
}

async fn is_well(address: SocketAddr, path: &str) -> bool {
    match Connection::open(address).await {
        Ok(mut connection) => connection.get(path).await.is_ok(),
        Err(_) => false,
    }
}

/// Addresses that nobody has.
fn addresses() -> anyhow::Result<[SocketAddr; 3]> {
    let free = || TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)));
    // All are held before any is let go, or they would be the same.
    let held = [free()?, free()?, free()?];
    let [ingress, admin, node] = held.each_ref().map(TcpListener::local_addr);
    Ok([ingress?, admin?, node?])
}

/// The service, in Node.
#[derive(Debug)]
pub(super) struct Service {
    child: Child,
    stdin: ChildStdin,
    lines: Mutex<Lines<BufReader<ChildStdout>>>,
    port: u16,
}

impl Service {
    /// Starts it.
    pub(super) async fn start(installed: &Installed, shape: Shape) -> anyhow::Result<Self> {
        let mut child = Command::new(&installed.node)
            .arg(&installed.service)
            .args(match shape {
                Shape::Shipped => None,
                Shape::Tuned => Some("unrecorded"),
            })
            .env("NODE_ENV", "production")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("Restate's service cannot be started")?;
        let stdin = child.stdin.take().context("it cannot be told to go")?;
        let stdout = child.stdout.take().context("it says nothing")?;
        let mut lines = BufReader::new(stdout).lines();
        let port = next(&mut lines).await?;
        let port = serde_json::from_str(&port).with_context(|| format!("it said `{port}`"))?;
        Ok(Self {
            child,
            stdin,
            lines: Mutex::new(lines),
            port,
        })
    }

    /// Waits until it tells of a run that parks: the run's name, and the awakeable that it waits for.
    pub(super) async fn told(&self) -> anyhow::Result<(String, Awakeable)> {
        let line = next(&mut *self.lines.lock().await).await?;
        serde_json::from_str(&line).with_context(|| format!("it said `{line}`"))
    }

    pub(super) fn pid(&self) -> anyhow::Result<u32> {
        self.child.id().context("Restate's service has ended")
    }

    /// Lets it go. Returns how often the effect happened.
    pub(super) async fn stop(self) -> anyhow::Result<usize> {
        drop(self.stdin);
        let mut lines = self.lines.into_inner();
        loop {
            let line = next(&mut lines).await?;
            // Whatever else is in the pipe was told before.
            if let Ok(effects) = serde_json::from_str(&line) {
                return Ok(effects);
            }
        }
    }
}

async fn next(lines: &mut Lines<BufReader<ChildStdout>>) -> anyhow::Result<String> {
    let line = lines.next_line().await?;
    line.context("Restate's service ended")
}
