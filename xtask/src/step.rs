//! Steps: commands that are shown before they run, and summed up after.

use std::{
    fmt::Write as _,
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::Context;

use crate::env::{self, Watch};

/// The cargo command with these words, in the folder of the workspace.
pub(crate) fn cargo(words: &[&str]) -> Command {
    let mut command = Command::new(env::cargo());
    command.args(words).current_dir(env::root());
    command
}

/// Runs a command that must succeed.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    let shown = show(command);
    eprintln!("$ {shown}");
    let status = command
        .status()
        .with_context(|| format!("`{shown}` cannot be started"))?;
    anyhow::ensure!(status.success(), "`{shown}` failed: {status}");
    Ok(())
}

/// Whether `cargo nextest` is there. Without it `cargo test` does the same, more slowly.
pub(crate) fn has_nextest() -> bool {
    cargo(&["nextest", "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn show(command: &Command) -> String {
    let mut shown = "cargo".to_owned();
    if command.get_program() != env::cargo() {
        shown = command.get_program().to_string_lossy().into_owned();
    }
    for word in command.get_args() {
        // Writing to a text cannot fail.
        let _ = write!(shown, " {}", word.to_string_lossy());
    }
    shown
}

/// What was done, and how it ended.
#[derive(Debug, Default)]
pub(crate) struct Steps(Vec<(String, Duration, Result<(), String>)>);

impl Steps {
    /// Does one thing. Returns whether it went well; later steps may not need it.
    pub(crate) fn take(
        &mut self,
        name: &str,
        step: impl FnOnce() -> anyhow::Result<()>,
    ) -> Option<()> {
        eprintln!("\n── {name}");
        let watch = Watch::start();
        let result = step().map_err(|error| format!("{error:#}"));
        if let Err(error) = &result {
            eprintln!("{error}");
        }
        let done = result.is_ok().then_some(());
        self.0.push((name.to_owned(), watch.elapsed(), result));
        done
    }

    /// Sums up.
    pub(crate) fn finish(self) -> anyhow::Result<()> {
        eprintln!("\n── summary");
        for (name, took, result) in &self.0 {
            let mark = if result.is_ok() { "ok    " } else { "FAILED" };
            eprintln!("{mark} {:>6.1} s  {name}", took.as_secs_f64());
        }
        let failed: Vec<_> = self
            .0
            .iter()
            .filter_map(|(name, _, result)| result.as_ref().err().map(|error| (name, error)))
            .collect();
        if failed.is_empty() {
            return Ok(());
        }
        for (name, error) in &failed {
            eprintln!("\n{name}:\n{error}");
        }
        anyhow::bail!("{} of {} steps failed", failed.len(), self.0.len())
    }
}
