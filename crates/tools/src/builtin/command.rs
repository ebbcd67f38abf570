//! `shell` and `execute`: commands that a model writes.

use std::{fmt::Write as _, path::Path, time::Duration};

use async_trait::async_trait;
use holdpoint_core::{Outcome, Preview, PreviewForm};
use serde::Deserialize;

use super::{args, shown};
use crate::{
    Call, Tool, Watchdog,
    command::ended,
    confine,
    watchdog::{Captured, End, Environment, Job, Kept, MAX_STDOUT, Run, Speech},
};

const SHELL: &str = "/bin/sh";

/// How long before its deadline a command is killed, so that there is time to tell.
const MARGIN: Duration = Duration::from_millis(500);

/// Variables that a command gets from this process. Everything else may be a secret.
pub(crate) const INHERITED: [&str; 8] = [
    "PATH", "HOME", "LANG", "TZ", "TERM", "TMPDIR", "LOGNAME", "USER",
];

/// A command line by `sh -c`, in the workspace.
#[derive(Debug)]
pub(super) struct CommandLine {
    folder: String,
    confined: bool,
    watchdog: Watchdog,
}

#[derive(Debug, Deserialize)]
struct Args {
    command: String,
    timeout: Option<u64>,
}

impl CommandLine {
    /// One that may do whatever this program may.
    pub(super) fn shell(folder: &Path, watchdog: &Watchdog) -> Self {
        Self {
            folder: folder.to_string_lossy().into_owned(),
            confined: false,
            watchdog: watchdog.clone(),
        }
    }

    /// One that the kernel confines.
    ///
    /// # Errors
    ///
    /// The kernel cannot.
    pub(super) fn execute(folder: &Path, watchdog: &Watchdog) -> Result<Self, String> {
        confine::is_possible()?;
        Ok(Self {
            confined: true,
            ..Self::shell(folder, watchdog)
        })
    }

    /// The names of variables that the command gets, where they are set.
    fn variables(&self) -> Vec<&'static str> {
        if self.confined {
            confine::VARIABLES.to_vec()
        } else {
            INHERITED.to_vec()
        }
    }
}

fn argv(command: &str) -> Vec<String> {
    [SHELL, "-c", command].map(str::to_owned).to_vec()
}

#[async_trait]
impl Tool for CommandLine {
    async fn call(&self, call: Call<'_>) -> Outcome {
        let args: Args = match args(call) {
            Ok(args) => args,
            Err(error) => return Outcome::Failed { error },
        };
        if args.command.contains('\0') {
            let error = "`command` has a NUL character".to_owned();
            return Outcome::Failed { error };
        }
        let asked = args.timeout.map_or(Duration::MAX, Duration::from_secs);
        let time = asked.min(call.remaining.saturating_sub(MARGIN));
        let argv = argv(&args.command);
        let job = Job {
            argv: &argv,
            cwd: &self.folder,
            env: Vec::new(),
            stdin: "",
            speech: Speech::Whole,
            remaining: time,
            environment: if self.confined {
                Environment::Confined
            } else {
                Environment::Listed
            },
            stderr: Kept::Much,
        };
        outcome(self.watchdog.run(&job).await, time)
    }

    async fn preview(&self, call: Call<'_>) -> Result<Option<Preview>, String> {
        let args: Args = args(call)?;
        let mut body = String::new();
        // Writing into a text cannot fail.
        let _ = writeln!(body, "folder: {}", shown::name(&self.folder));
        let _ = writeln!(body, "program: {SHELL} -c");
        let _ = writeln!(body, "environment: {}, LC_*", self.variables().join(", "));
        let _ = writeln!(
            body,
            "{}",
            if self.confined {
                "confined by the kernel: no network, no files but those of the folder and of the system's programs"
            } else {
                "not confined: it may do whatever this program may, in any folder and over the network"
            }
        );
        let _ = writeln!(body, "command:\n{}", args.command);
        if body.len() > Preview::MAX_BODY {
            return Err(
                "the command is too large to be shown to a person; write less at once".to_owned(),
            );
        }
        let title = if self.confined {
            "Execute a command in the sandbox"
        } else {
            "Execute a shell command"
        };
        Ok(Some(Preview::new(title, body, PreviewForm::Command)))
    }
}

/// Whatever the command made of it: it ran, and a model is told how it ended.
fn outcome(run: Run, time: Duration) -> Outcome {
    let (end, stdout, stderr) = match ended(run) {
        Ok(ended) => ended,
        Err(outcome) => return outcome,
    };
    let end = match end {
        End::Code(code) => format!("exit code {code}"),
        End::Signal(signal) => format!("ended by signal {signal}"),
        End::TimedOut => format!("killed after {} seconds, wherever it was", time.as_secs()),
        End::LetGo | End::Garbled(_) => {
            return Outcome::Unknown {
                reason: "it was killed".to_owned(),
            };
        }
    };
    let stdout = match stdout {
        Captured::Text(text) => text,
        Captured::NotUtf8(text) => format!("[what is not UTF-8 stands as U+FFFD]\n{text}"),
        Captured::TooLong(text) => {
            format!("[it printed more than {MAX_STDOUT} bytes; this is the beginning]\n{text}")
        }
    };
    let mut content = format!("[{end}]\n{stdout}");
    if !stderr.is_empty() {
        if !content.ends_with('\n') {
            content.push('\n');
        }
        content.push_str("[stderr]\n");
        content.push_str(&stderr);
    }
    content.truncate(content.trim_end().len());
    Outcome::Done { content }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(end: End, stdout: Captured, stderr: &str) -> Outcome {
        let stderr = stderr.to_owned();
        let run = Run::Ended {
            end,
            stdout,
            stderr,
        };
        outcome(run, Duration::from_secs(7))
    }

    #[test]
    fn a_model_is_told_how_a_command_ended_and_what_it_said() {
        let text = |text: &str| Captured::Text(text.to_owned());
        for (outcome, expected) in [
            (
                ended(End::Code(0), text("hello\n"), ""),
                "[exit code 0]\nhello",
            ),
            (
                ended(End::Code(2), text("a"), "no\n"),
                "[exit code 2]\na\n[stderr]\nno",
            ),
            (ended(End::Signal(11), text(""), ""), "[ended by signal 11]"),
            (
                ended(End::TimedOut, text("begun\n"), ""),
                "[killed after 7 seconds, wherever it was]\nbegun",
            ),
            (
                ended(End::Code(0), Captured::NotUtf8("t\u{fffd}".to_owned()), ""),
                "[exit code 0]\n[what is not UTF-8 stands as U+FFFD]\nt\u{fffd}",
            ),
            (
                ended(End::Code(0), Captured::TooLong("1\n2\n".to_owned()), "x"),
                "[exit code 0]\n[it printed more than 1048576 bytes; this is the beginning]\n1\n2\n[stderr]\nx",
            ),
        ] {
            let content = expected.to_owned();
            assert_eq!(outcome, Outcome::Done { content });
        }
        assert!(matches!(
            outcome(Run::Lost, MARGIN),
            Outcome::Unknown { .. }
        ));
    }
}
