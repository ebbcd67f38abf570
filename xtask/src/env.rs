//! What the world outside looks like: where things are, and what time it is.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::Context;

/// The folder of the workspace. Cargo says which; a target directory may be shared by several copies of it.
pub(crate) fn root() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let package = package.unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    package.parent().unwrap_or(&package).to_owned()
}

/// The cargo that started us, so that everything is built by one toolchain.
pub(crate) fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Where cargo puts what it builds.
pub(crate) fn target_dir() -> anyhow::Result<PathBuf> {
    let output = std::process::Command::new(cargo())
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(root())
        .stderr(std::process::Stdio::inherit())
        .output()
        .context("cargo cannot be started")?;
    anyhow::ensure!(output.status.success(), "cargo metadata failed");
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let path = metadata["target_directory"].as_str();
    Ok(path
        .context("cargo metadata names no target directory")?
        .into())
}

/// `PATH` with a folder in front of it.
pub(crate) fn path_with(folder: &Path) -> anyhow::Result<OsString> {
    let old = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&old));
    std::env::join_paths(folders).context("PATH cannot be extended")
}

/// Measures how long something takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Watch(Instant);

impl Watch {
    #[expect(
        clippy::disallowed_methods,
        reason = "a developer waits in real time, and nothing here is simulated"
    )]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}
