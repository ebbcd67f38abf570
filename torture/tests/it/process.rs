//! Processes that are started, watched and killed.

use std::{
    fs,
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::{Child, ExitStatus},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Far longer than any process needs: one that is still there is stuck.
const PATIENCE: Duration = Duration::from_secs(90);
const SIGKILL: i32 = 9;

/// A process that was started.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) child: Child,
    pub(crate) words: String,
    pub(crate) stdout: PathBuf,
    pub(crate) stderr: PathBuf,
}

impl Running {
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits until a point was passed, or the process is over.
    pub(crate) fn wait_for_point(&mut self, log: &Path, point: &str) {
        self.wait_until(|| {
            fs::read_to_string(log).is_ok_and(|log| log.lines().any(|line| line == point))
        });
    }

    /// Waits until something holds, or the process is over.
    pub(crate) fn wait_until(&mut self, mut holds: impl FnMut() -> bool) {
        let watch = Watch::start();
        while !holds() && !self.has_ended() {
            watch.be_patient(&mut self.child, &self.words);
        }
    }

    pub(crate) fn wait(mut self) -> Ended {
        let watch = Watch::start();
        let status = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status,
                None => watch.be_patient(&mut self.child, &self.words),
            }
        };
        let text = fs::read_to_string(&self.stdout).unwrap();
        let json = |line: &str| serde_json::from_str(line).unwrap_or(Value::from(line));
        Ended {
            status,
            lines: text.lines().map(json).collect(),
            stderr: fs::read_to_string(&self.stderr).unwrap(),
            words: self.words,
        }
    }

    /// Stops it in the middle of whatever it does; it notices nothing of the time that passes.
    pub(crate) fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets it go on.
    pub(crate) fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    /// Asks it to go.
    pub(crate) fn ask_to_go(&self) {
        self.signal(Signal::TERM);
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.unwrap(), signal).unwrap();
    }

    /// Ends it as `kill -9` does.
    pub(crate) fn kill(mut self) -> Ended {
        self.child.kill().unwrap();
        self.wait()
    }
}

/// How a process ended.
#[derive(Debug)]
pub(crate) struct Ended {
    status: ExitStatus,
    pub(crate) lines: Vec<Value>,
    stderr: String,
    words: String,
}

impl Ended {
    pub(crate) fn was_killed(&self) -> bool {
        self.status.signal() == Some(SIGKILL)
    }

    pub(crate) fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// The code of the error that it printed.
    pub(crate) fn error_code(&self) -> Option<&str> {
        self.lines.first().and_then(|line| line["code"].as_str())
    }

    pub(crate) fn only_line(&self) -> Value {
        assert_eq!(self.lines.len(), 1, "{}", self.explain());
        self.lines.first().unwrap().clone()
    }

    pub(crate) fn explain(&self) -> String {
        let said: Vec<String> = self.lines.iter().map(Value::to_string).collect();
        format!(
            "`{}` ended with {}\n{}\n{}",
            self.words,
            self.status,
            said.join("\n"),
            self.stderr
        )
    }
}

/// Measures real time, in which the processes live.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Watch(Instant);

impl Watch {
    #[expect(
        clippy::disallowed_methods,
        reason = "other processes live in real time, which cannot be simulated"
    )]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }

    /// Lets a moment pass before the next look at a process, which must not be stuck.
    fn be_patient(self, child: &mut Child, words: &str) {
        if self.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("`{words}` did not end within {PATIENCE:?}");
        }
        thread::sleep(Duration::from_millis(3));
    }
}
