//! A folder to play in, and commands that are shown as a person would type them.

use std::{
    fs,
    io::ErrorKind,
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context, ensure};

use crate::env::{self, Watch};

const PATIENCE: Duration = Duration::from_secs(20);

/// Variables that a command is given.
type Variables<'a> = [(&'a str, &'a str)];

/// A copy of an example, and the programs that it needs.
#[derive(Debug)]
pub(super) struct Stage {
    folder: PathBuf,
    programs: PathBuf,
}

impl Stage {
    /// Copies the files of an example into a new folder.
    pub(super) fn set(programs: PathBuf, example: &str) -> anyhow::Result<Self> {
        let folder = new_folder()?;
        for file in ["agent.yaml", "scenario.yaml"] {
            let from = env::root().join(example).join(file);
            fs::copy(&from, folder.join(file)).with_context(|| from.display().to_string())?;
        }
        Ok(Self { folder, programs })
    }

    /// Says something to the person who watches.
    pub(super) fn tell(&self, text: &str) {
        println!("\n{text}\n");
    }

    /// Shows how to get to where the commands are run.
    pub(super) fn show_setting(&self) {
        println!("$ cd {}", self.folder.display());
        println!("$ export PATH=\"{}:$PATH\"", self.programs.display());
    }

    /// Shows a command.
    pub(super) fn type_out(&self, line: &str, variables: &Variables<'_>) {
        let set: String = variables
            .iter()
            .map(|(name, value)| format!("{name}={value} "))
            .collect();
        println!("$ {set}{line}");
    }

    /// Runs a command whose exit code must be `expected`.
    pub(super) fn run(
        &self,
        words: &[&str],
        variables: &Variables<'_>,
        expected: i32,
    ) -> anyhow::Result<()> {
        let status = self.spawn(words, variables)?.wait()?;
        println!("[exit code {}]\n", status.code().unwrap_or(-1));
        ensure!(
            status.code() == Some(expected),
            "`{}` ended with {status}, not with {expected}",
            quoted(words)
        );
        Ok(())
    }

    /// Starts a command, and shows it.
    pub(super) fn spawn(&self, words: &[&str], variables: &Variables<'_>) -> anyhow::Result<Child> {
        self.type_out(&quoted(words), variables);
        self.command(words)?
            .envs(variables.iter().copied())
            .spawn()
            .with_context(|| quoted(words))
    }

    /// Runs a command unseen, for what it prints.
    pub(super) fn read(&self, words: &[&str]) -> anyhow::Result<String> {
        let output = self
            .command(words)?
            .output()
            .with_context(|| quoted(words))?;
        Ok(String::from_utf8(output.stdout)?)
    }

    /// How many events of the run have this name.
    pub(super) fn count_events(&self, name: &str) -> anyhow::Result<usize> {
        let trace = self.read(&["holdpoint", "trace", super::THREAD, "--json"])?;
        Ok(trace.lines().filter(|line| line.contains(name)).count())
    }

    /// Looks until something is so.
    pub(super) fn wait_until(
        &self,
        what: &str,
        mut is_so: impl FnMut() -> anyhow::Result<bool>,
    ) -> anyhow::Result<()> {
        let watch = Watch::start();
        while !is_so()? {
            ensure!(watch.elapsed() < PATIENCE, "waited in vain until {what}");
            thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    fn command(&self, words: &[&str]) -> anyhow::Result<Command> {
        let (program, arguments) = words.split_first().context("no command")?;
        let mut command = Command::new(self.programs.join(program));
        command
            .args(arguments)
            .current_dir(&self.folder)
            .env("PATH", env::path_with(&self.programs)?)
            // Without a terminal it shows what is pending, and does not ask.
            .stdin(Stdio::null());
        for inherited in [
            "HOLDPOINT_STORE",
            "LEDGER",
            "LEDGER_DELAY_BEFORE_MS",
            "LEDGER_DELAY_AFTER_MS",
        ] {
            command.env_remove(inherited);
        }
        Ok(command)
    }
}

fn new_folder() -> anyhow::Result<PathBuf> {
    let mut number = std::process::id();
    loop {
        let folder = std::env::temp_dir().join(format!("holdpoint-demo-{number}"));
        match fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            // The files of an earlier demo are left to whoever plays with them.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(error).context(folder.display().to_string()),
        }
    }
}

/// Words as a shell takes them.
fn quoted(words: &[&str]) -> String {
    let quote = |word: &&str| {
        if word.contains(' ') {
            format!("\"{word}\"")
        } else {
            (*word).to_owned()
        }
    };
    words.iter().map(quote).collect::<Vec<_>>().join(" ")
}
