//! Checkers that are programs: the case as JSON on stdin, the finding as JSON on stdout, and the exit code 0.

use std::time::Duration;

use async_trait::async_trait;
use holdpoint_core::{Case, Finding};

use super::{
    Checker,
    answer::{document, finding},
};
use crate::{
    Watchdog,
    command::reason,
    watchdog::{Captured, End, Environment, Job, Kept, Run, Speech},
};

#[derive(Debug)]
pub(super) struct CommandChecker {
    pub(super) command: Vec<String>,
    pub(super) cwd: String,
    pub(super) timeout: Duration,
    pub(super) watchdog: Watchdog,
}

#[async_trait]
impl Checker for CommandChecker {
    async fn check(&self, case: &Case) -> Result<Finding, String> {
        let stdin = document(case)?;
        let job = Job {
            argv: &self.command,
            cwd: &self.cwd,
            // This process may itself run under a tool, whose call this is not.
            env: [
                "HOLDPOINT_IDEMPOTENCY_KEY",
                "HOLDPOINT_EPOCH",
                "HOLDPOINT_TOOL",
                "HOLDPOINT_STEP",
            ]
            .map(|name| (name, None))
            .to_vec(),
            stdin: &stdin,
            speech: Speech::Whole,
            remaining: self.timeout,
            environment: Environment::Inherited,
            stderr: Kept::Little,
        };
        match self.watchdog.run(&job).await {
            Run::NotStarted { reason } => Err(format!("it was not started: {reason}")),
            Run::Lost => Err("its watchdog ended without a report".to_owned()),
            Run::Ended {
                end,
                stdout,
                stderr,
            } => match (end, stdout) {
                (End::Code(0), Captured::Text(text)) => finding(&text),
                (End::Code(0), Captured::NotUtf8(_)) => Err("its answer is not UTF-8".to_owned()),
                (End::Code(0), Captured::TooLong(_)) => {
                    Err("its answer is far too long".to_owned())
                }
                (
                    End::Code(_) | End::Signal(_) | End::TimedOut | End::LetGo | End::Garbled(_),
                    _,
                ) => Err(format!("it ended with {}", reason(end, "", &stderr))),
            },
        }
    }
}
