//! Processes of their own: for what must not share its memory with anything else, and for what is killed.

use std::{ffi::OsString, path::PathBuf, process::Stdio, time::Duration};

use anyhow::{Context as _, ensure};
use serde::de::DeserializeOwned;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines},
    process::{Child, ChildStdout, Command},
    time::Instant,
};

/// A program that is measured from outside. It says what it did in lines of JSON.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    path: PathBuf,
    leading: Vec<OsString>,
}

impl Program {
    /// This program with these words before all others.
    pub(crate) const fn new(path: PathBuf, leading: Vec<OsString>) -> Self {
        Self { path, leading }
    }

    /// The program that runs now.
    ///
    /// # Errors
    ///
    /// The system does not say where it is.
    pub(crate) fn ourselves() -> anyhow::Result<Self> {
        let path = std::env::current_exe().context("the bench cannot find itself")?;
        Ok(Self::new(path, Vec::new()))
    }

    /// The command to do `what` with the database of this url.
    pub(crate) fn command(&self, what: &str, url: &str) -> Command {
        let mut command = Command::new(&self.path);
        command.args(&self.leading).args([what, url]);
        command.stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    /// Runs a command to its end. Returns what it said.
    ///
    /// # Errors
    ///
    /// It fails, or says something else.
    pub(crate) async fn measure<T: DeserializeOwned>(
        &self,
        mut command: Command,
    ) -> anyhow::Result<T> {
        command.stdout(Stdio::piped());
        let shown = show(&command);
        let child = command
            .spawn()
            .with_context(|| format!("cannot start {shown}"))?;
        let output = child.wait_with_output().await?;
        ensure!(output.status.success(), "{shown} failed: {}", output.status);
        serde_json::from_slice(&output.stdout)
            .with_context(|| format!("{shown} said something else"))
    }

    /// Runs a command until it has counted so far, and kills it with no chance to put anything in order.
    ///
    /// # Errors
    ///
    /// It ends by itself, or does not count.
    pub(crate) async fn kill_after(command: Command, count: usize) -> anyhow::Result<()> {
        let shown = show(&command);
        let (mut child, mut lines) = spawn(command)?;
        let mut reached = 0;
        while reached < count {
            let line = lines.next_line().await?;
            let line = line.with_context(|| format!("{shown} ended before it was killed"))?;
            reached =
                serde_json::from_str(&line).with_context(|| format!("{shown} said `{line}`"))?;
        }
        // SIGKILL, and then it waits until the process is gone.
        child.kill().await?;
        Ok(())
    }

    /// Runs a command to its end. Returns what it said, line by line, with the time since before it was started.
    ///
    /// # Errors
    ///
    /// It fails.
    pub(crate) async fn times(command: Command) -> anyhow::Result<Vec<(String, Duration)>> {
        let shown = show(&command);
        let began = Instant::now();
        let (mut child, mut lines) = spawn(command)?;
        let mut times = Vec::new();
        while let Some(line) = lines.next_line().await? {
            let time = began.elapsed();
            let word =
                serde_json::from_str(&line).with_context(|| format!("{shown} said `{line}`"))?;
            times.push((word, time));
        }
        let status = child.wait().await?;
        ensure!(status.success(), "{shown} failed: {status}");
        Ok(times)
    }
}

fn spawn(mut command: Command) -> anyhow::Result<(Child, Lines<BufReader<ChildStdout>>)> {
    let shown = show(&command);
    command.stdout(Stdio::piped());
    let mut child = command
        .spawn()
        .with_context(|| format!("cannot start {shown}"))?;
    let stdout = child.stdout.take().context("it has no output")?;
    Ok((child, BufReader::new(stdout).lines()))
}

fn show(command: &Command) -> String {
    let command = command.as_std();
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    format!("`{}`", words.join(" "))
}
