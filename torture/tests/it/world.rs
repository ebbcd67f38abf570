//! A folder with an agent, a store and a ledger, and the processes that are started there.

use std::{
    ffi::OsString,
    fs::File,
    path::PathBuf,
    process::{Command, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::Duration,
};

use serde_json::Value;
use tempfile::TempDir;

use crate::{
    agent,
    ledger::Ledger,
    point::{CLOCK, LEDGER_WRITTEN, is_inside},
    process::{Ended, Running},
    programs::{Build, example_tools},
    scenario::Scenario,
};

/// The session in which everything happens.
pub(crate) const SESSION: &str = "s";

/// When a tool's program acts within the time it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timing {
    /// It acts and ends at once.
    Prompt,
    /// It runs for a while before it acts.
    ActsLate(u32),
    /// It acts, and runs on for a while.
    EndsLate(u32),
}

impl Timing {
    /// Long enough for another process to come in between, and short beside the call's time-out.
    pub(crate) const ACTS_LATE: Self = Self::ActsLate(500);
    pub(crate) const ENDS_LATE: Self = Self::EndsLate(500);
}

/// How a process is started.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub(crate) timing: Timing,
    /// The point at which it is killed, and at the how-manieth time.
    pub(crate) kill_at: Option<(&'static str, usize)>,
    /// Where the points are noted that it passes.
    pub(crate) log: Option<PathBuf>,
}

impl Setting {
    pub(crate) const PLAIN: Self = Self {
        timing: Timing::Prompt,
        kill_at: None,
        log: None,
    };
}

/// A folder of its own for one play.
#[derive(Debug)]
pub(crate) struct World {
    folder: TempDir,
    build: Build,
    started: AtomicUsize,
}

impl World {
    pub(crate) fn new(build: Build, scenario: &Scenario) -> Self {
        let folder = tempfile::tempdir().unwrap();
        agent::write(folder.path(), scenario);
        Self {
            folder,
            build,
            started: AtomicUsize::new(0),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn ledger(&self) -> Ledger {
        Ledger::read(&self.path("ledger.jsonl"))
    }

    /// Keeps the folder for a person to look at, unless what went wrong there was meant to.
    pub(crate) fn keep(self) -> Option<PathBuf> {
        (self.build == Build::Sound).then(|| self.folder.keep())
    }

    /// Starts `holdpoint` with these words.
    pub(crate) fn spawn(&self, words: &[&str], setting: &Setting) -> Running {
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let name = format!("{number:03}-{}", words.first().unwrap());
        let (stdout, stderr) = (
            self.path(&format!("{name}.out")),
            self.path(&format!("{name}.err")),
        );
        let mut command = Command::new(self.build.path());
        command
            .args(words)
            .arg("--json")
            .arg("--store")
            .arg(format!("sqlite:{}", self.path("store.db").display()))
            .env("PATH", path_with_tools())
            .env("LEDGER", self.path("ledger.jsonl"))
            .stdin(Stdio::null())
            .stdout(File::create(&stdout).unwrap())
            .stderr(File::create(&stderr).unwrap());
        for variable in ["HOLDPOINT_FAILPOINT", "HOLDPOINT_FAILPOINT_LOG"] {
            command.env_remove(variable);
        }
        if let Some((point, nth)) = setting.kill_at.filter(|(point, _)| is_inside(point)) {
            command.env("HOLDPOINT_FAILPOINT", format!("{point}:{nth}"));
        }
        if let Some(log) = &setting.log {
            command.env("HOLDPOINT_FAILPOINT_LOG", log);
        }
        match setting.timing {
            Timing::Prompt => {}
            Timing::ActsLate(millis) => {
                command.env("LEDGER_DELAY_BEFORE_MS", millis.to_string());
            }
            Timing::EndsLate(millis) => {
                command.env("LEDGER_DELAY_AFTER_MS", millis.to_string());
            }
        }
        Running {
            child: command.spawn().unwrap(),
            words: words.join(" "),
            stdout,
            stderr,
        }
    }

    /// Runs `holdpoint` with these words to its end.
    pub(crate) fn call(&self, words: &[&str], setting: &Setting) -> Ended {
        self.finish(self.spawn(words, setting), setting)
    }

    /// Lets a process run to its end, or to the point outside of it at which it is killed.
    pub(crate) fn finish(&self, mut running: Running, setting: &Setting) -> Ended {
        match setting.kill_at {
            Some((CLOCK, micros)) => {
                thread::sleep(Duration::from_micros(micros.try_into().unwrap()));
                running.kill()
            }
            Some((LEDGER_WRITTEN, acts)) => {
                running.wait_until(|| self.ledger().acts() >= acts);
                running.kill()
            }
            Some(_) | None => running.wait(),
        }
    }

    /// Starts the run.
    pub(crate) fn run(&self, session: &str, setting: &Setting) -> Ended {
        let agent = self.path("agent.yaml");
        let agent = agent.to_str().unwrap();
        let words = ["run", agent, "--input", "please", "--thread", session];
        self.call(&words, setting)
    }

    /// How the run stands; an error object if there is none.
    pub(crate) fn show(&self, session: &str) -> Value {
        let shown = self.call(&["show", session], &Setting::PLAIN);
        shown.only_line()
    }
}

fn path_with_tools() -> OsString {
    let old = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(example_tools()).chain(std::env::split_paths(&old));
    std::env::join_paths(folders).unwrap()
}
