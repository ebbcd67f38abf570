//! What npm installs for the peer: a server, a library for its services, and a Node that is new enough for it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};

use anyhow::{Context as _, ensure};
use serde::Deserialize;
use tokio::process::Command;

/// What is said when it does not work.
const HELP: &str = "Restate could not be installed. It takes `npm` and a package registry that it can reach; to measure \
without it: `cargo xtask bench --system holdpoint --system ceiling --system langgraph`";

/// What belongs to it, beside what npm installs.
const FILES: [&str; 3] = ["package.json", "package-lock.json", "service.js"];

/// What was installed.
#[derive(Debug)]
pub(super) struct Installed {
    /// The server.
    pub(super) server: PathBuf,
    /// What services run on.
    pub(super) node: PathBuf,
    /// The service, in the folder where its library is.
    pub(super) service: PathBuf,
    /// Which versions.
    pub(super) about: String,
}

/// A package, as far as it matters.
#[derive(Debug, Deserialize)]
struct Package {
    version: String,
}

/// Installs what a folder's lock file lists, beneath another folder.
pub(super) async fn install(source: &Path, folder: &Path) -> anyhow::Result<Installed> {
    fs::create_dir_all(folder)?;
    for file in FILES {
        let from = source.join(file);
        fs::copy(&from, folder.join(file))
            .with_context(|| format!("cannot copy `{}`", from.display()))?;
    }
    let wanted = fs::read_to_string(source.join("package-lock.json"))?;
    // Written last, so that it stands for all before it.
    let stamp = folder.join("installed.txt");
    if !fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        eprintln!("installing Restate into `{}`", folder.display());
        // Scripts of packages are not run: all that the one that there is does is to report that it was installed.
        let words = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"];
        let mut npm = Command::new("npm");
        npm.args(words).current_dir(folder);
        npm.stdin(Stdio::null()).stdout(Stdio::null());
        let status = npm.status().await.context(HELP)?;
        ensure!(status.success(), "`npm ci` failed: {status}. {HELP}");
        fs::write(stamp, wanted)?;
    }
    let modules = folder.join("node_modules");
    let (server, server_version) = program(
        &modules.join("@restatedev"),
        "restate-server-",
        "bin/restate-server",
    )?;
    let (node, node_version) = program(&modules, "node-", "bin/node")?;
    let sdk = version(&modules.join("@restatedev/restate-sdk"))?;
    Ok(Installed {
        server,
        node,
        service: folder.join("service.js"),
        about: format!(
            "restate-server {server_version} with restate-sdk {sdk}, on Node {node_version}"
        ),
    })
}

/// The program in the package for this machine, and its version: npm installs no other.
fn program(folder: &Path, prefix: &str, path: &str) -> anyhow::Result<(PathBuf, String)> {
    for entry in fs::read_dir(folder).context(HELP)? {
        let package = entry?.path();
        let name = package.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(prefix) && package.join(path).exists() {
            return Ok((package.join(path), version(&package)?));
        }
    }
    anyhow::bail!("there is no `{prefix}…` for this machine. {HELP}")
}

fn version(package: &Path) -> anyhow::Result<String> {
    let text = fs::read_to_string(package.join("package.json")).context(HELP)?;
    let package: Package = serde_json::from_str(&text)?;
    Ok(package.version)
}
