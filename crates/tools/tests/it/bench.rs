//! A folder to run programs in, and the means to look at what they do.

use std::{fs, future::Future, path::PathBuf, sync::Arc, time::Duration};

use holdpoint_core::{Effect, Hooks, Lookup, Outcome, Params, Runner, Span, ToolKind, ToolSpec};
use holdpoint_tools::{Call, Registry, Tool, Watchdog, instantiate};
use rustix::process::{Pid, test_kill_process};
use tempfile::TempDir;
use tokio::time::Instant;

/// Long enough for a program that must come to its end, however busy the machine.
pub(crate) const PLENTY: Duration = Duration::from_secs(60);

/// A folder of its own for one test.
pub(crate) struct Bench {
    folder: TempDir,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn cwd(&self) -> String {
        self.folder.path().to_str().unwrap().to_owned()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A tool that is this shell script.
    pub(crate) fn script(&self, script: &str) -> Arc<dyn Tool> {
        self.tool(Runner::Command {
            command: shell(script),
            cwd: self.cwd(),
            lookup: None,
            compensate: None,
        })
    }

    /// A stepped tool that is this shell script.
    pub(crate) fn stepped(&self, script: &str) -> Arc<dyn Tool> {
        stepped(shell(script), self.cwd())
    }

    pub(crate) fn tool(&self, runner: Runner) -> Arc<dyn Tool> {
        instantiate(&spec(runner), &[], &Registry::new(), &Watchdog::default()).unwrap()
    }

    /// Calls a shell script to its end.
    pub(crate) fn run(&self, script: &str) -> Outcome {
        self.run_for(script, PLENTY)
    }

    pub(crate) fn run_for(&self, script: &str, remaining: Duration) -> Outcome {
        let tool = self.script(script);
        block_on(async { tool.call(call(&params("{}"), remaining)).await })
    }

    /// Waits for a file that a program writes in one go, and reads it.
    pub(crate) fn wait_for(&self, name: &str) -> String {
        block_on(async {
            let begin = Instant::now();
            loop {
                if let Some(line) = self.written(name) {
                    return line;
                }
                assert!(begin.elapsed() < PLENTY, "no file `{name}`");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
    }

    /// What a program wrote into this file, once it is whole: a shell makes the file before it
    /// writes the line.
    pub(crate) fn written(&self, name: &str) -> Option<String> {
        let text = fs::read_to_string(self.path(name)).ok()?;
        text.ends_with('\n').then(|| text.trim().to_owned())
    }

    /// Waits for the process whose number is in this file to be gone.
    pub(crate) fn must_die(&self, name: &str, within: Duration) {
        self.wait_for(name);
        block_on(self.dies(name, within));
    }

    pub(crate) async fn dies(&self, name: &str, within: Duration) {
        let pid = self.written(name).unwrap().parse().unwrap();
        let begin = Instant::now();
        while is_alive(Pid::from_raw(pid).unwrap()) {
            assert!(begin.elapsed() < within, "`{name}` lives");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// One that nobody has reaped yet is dead all the same.
fn is_alive(pid: Pid) -> bool {
    let stat =
        fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    test_kill_process(pid).is_ok() && !stat.contains(") Z ")
}

pub(crate) fn shell(script: &str) -> Vec<String> {
    ["/bin/sh", "-c", script].map(str::to_owned).to_vec()
}

pub(crate) fn params(text: &str) -> Params {
    Params::parse(text).unwrap()
}

pub(crate) fn call(args: &Params, remaining: Duration) -> Call<'_> {
    Call {
        tool: "t",
        args,
        key: "key-1",
        epoch: 7,
        remaining,
        step: None,
        scope: "",
        basis: None,
    }
}

pub(crate) fn spec(runner: Runner) -> ToolSpec {
    ToolSpec {
        name: "t".to_owned(),
        description: String::new(),
        version: "1".to_owned(),
        effect: Effect::Write,
        input_schema: true.into(),
        runner,
        kind: ToolKind::Plain,
        timeout: Span::from_secs(1),
        settle: Span::ZERO,
        permissions: Vec::new(),
    }
}

pub(crate) fn stepped(command: Vec<String>, cwd: String) -> Arc<dyn Tool> {
    let runner = Runner::Command {
        command,
        cwd,
        lookup: None,
        compensate: None,
    };
    let spec = ToolSpec {
        kind: ToolKind::Stepped,
        ..spec(runner)
    };
    instantiate(&spec, &[], &Registry::new(), &Watchdog::default()).unwrap()
}

pub(crate) fn code() -> Runner {
    Runner::Code {
        hooks: Hooks::default(),
    }
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

pub(crate) fn done(content: &str) -> Outcome {
    Outcome::Done {
        content: content.to_owned(),
    }
}

pub(crate) fn failed(error: &str) -> Outcome {
    Outcome::Failed {
        error: error.to_owned(),
    }
}

pub(crate) fn unknown(reason: &str) -> Outcome {
    Outcome::Unknown {
        reason: reason.to_owned(),
    }
}

pub(crate) fn not_known(reason: &str) -> Lookup {
    Lookup::Unknown {
        reason: reason.to_owned(),
    }
}
