//! A process of `holdpoint serve`.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Stdio,
};

use anyhow::{Context as _, ensure};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
};

use crate::process;

/// What it says once it can be reached.
const LISTENS: &str = "Holdpoint listens on http://";

/// The binary, which is built beside the bench.
///
/// # Errors
///
/// It is not there.
pub(super) fn binary() -> anyhow::Result<PathBuf> {
    let bench = std::env::current_exe().context("the bench cannot find itself")?;
    let binary = bench.with_file_name("holdpoint");
    ensure!(
        binary.exists(),
        "there is no `{}`; `cargo xtask bench` builds it, and so does `cargo build --release -p holdpoint-cli`",
        binary.display()
    );
    Ok(binary)
}

/// A server that can be reached.
#[derive(Debug)]
pub(super) struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    /// Starts it on a database, as a user does: without keys, on an address of this machine, with the durability that
    /// it has when nobody says anything. It does not log each request.
    ///
    /// # Errors
    ///
    /// It does not start.
    pub(super) async fn start(binary: &Path, folder: &Path, file: &Path) -> anyhow::Result<Self> {
        let mut child = Command::new(binary)
            .args(["serve", "--dev", "--config"])
            .arg(folder.join("server.yaml"))
            .arg("--store")
            .arg(format!("sqlite:{}", file.display()))
            .env("HOLDPOINT_LOG", "warn")
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("`holdpoint serve` cannot be started")?;
        let said = child.stderr.take().context("it says nothing")?;
        let mut lines = BufReader::new(said).lines();
        let mut unexpected = String::new();
        let address = loop {
            let line = lines.next_line().await?;
            let line = line.with_context(|| format!("`holdpoint serve` ended: {unexpected}"))?;
            match line.strip_prefix(LISTENS) {
                Some(address) => break address.parse()?,
                None => unexpected = line,
            }
        };
        // What else it says must be read, or it waits; only what went wrong is of interest.
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                if line.contains("WARN") || line.contains("ERROR") {
                    eprintln!("{line}");
                }
            }
        });
        Ok(Self { child, address })
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

    /// Lets it go.
    ///
    /// # Errors
    ///
    /// It cannot be asked to.
    pub(super) async fn stop(self) -> anyhow::Result<()> {
        process::stop(self.child).await
    }
}
