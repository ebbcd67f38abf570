//! A command's deadline holds without its driver.
//!
//! The driver does not start a tool's program itself. It starts a watchdog, which is this executable entered again by
//! [`enter`], and the watchdog starts the program. Each is in a process group of its own, so that a terminal's Ctrl-C
//! reaches neither. The watchdog kills the program's whole group at the deadline, at once when the driver is gone
//! (which it notices by the pipe between them closing), and when the program itself ends while its children do not.
//! A process that has left the group (`setsid`) is out of its reach.
//!
//! Should the watchdog itself be killed, the call is unknown and the driver kills the program's group. It knows the group
//! before the program gets its arguments; one that acts without reading them could escape within its first moments.

mod clock;
mod process;
mod protocol;

use std::{
    path::PathBuf,
    process::Stdio,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    process::Command,
};

pub(crate) use protocol::{Captured, End, MAX_STDOUT};
use protocol::{MAX_REPORT, Order, Report};

/// Whether this process may start itself again: without [`enter`] in its `main` that would not be a watchdog, but the
/// whole program once more.
static ENTERED: AtomicBool = AtomicBool::new(false);

/// Must come first in the `main` of a program that runs command tools.
///
/// If this process was started as a watchdog, it does that work and exits; otherwise this returns at once.
pub fn enter() {
    if std::env::args_os()
        .nth(1)
        .is_some_and(|argument| argument == protocol::ARGUMENT)
    {
        process::watch();
        std::process::exit(0);
    }
    ENTERED.store(true, Ordering::Relaxed);
}

/// Which executable is started as the watchdog of a command. The default is the one that is running.
#[derive(Debug, Clone, Default)]
pub struct Watchdog {
    program: Option<PathBuf>,
}

/// What to run.
#[derive(Debug)]
pub(crate) struct Job<'a> {
    pub(crate) argv: &'a [String],
    pub(crate) cwd: &'a str,
    pub(crate) env: Vec<(&'a str, String)>,
    pub(crate) stdin: &'a str,
    pub(crate) remaining: Duration,
}

/// What became of it.
#[derive(Debug)]
pub(crate) enum Run {
    /// It is certain that the program never ran.
    NotStarted { reason: String },
    /// It ran and is over.
    Ended {
        end: End,
        stdout: Captured,
        stderr: String,
    },
    /// The watchdog is gone without a report.
    Lost,
}

impl Watchdog {
    /// Another executable, whose `main` begins with [`enter`].
    #[must_use]
    pub fn at(program: impl Into<PathBuf>) -> Self {
        Self {
            program: Some(program.into()),
        }
    }

    pub(crate) fn is_usable(&self) -> bool {
        self.program.is_some() || ENTERED.load(Ordering::Relaxed)
    }

    fn program(&self) -> std::io::Result<PathBuf> {
        match &self.program {
            Some(program) => Ok(program.clone()),
            // Also right after the file was replaced by an upgrade, or deleted.
            None if cfg!(target_os = "linux") => Ok(PathBuf::from("/proc/self/exe")),
            None => std::env::current_exe(),
        }
    }

    /// Runs a program to its end or its deadline.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the pipe, and the watchdog kills the program.
    pub(crate) async fn run(&self, job: &Job<'_>) -> Run {
        let order = Order::new(job);
        let spawned = self.program().and_then(|program| {
            Command::new(program)
                .arg(protocol::ARGUMENT)
                .process_group(0)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
        });
        let mut child = match spawned {
            Ok(child) => child,
            Err(error) => {
                return Run::NotStarted {
                    reason: format!("the watchdog could not be started: {error}"),
                };
            }
        };
        let (Some(mut leash), Some(reports)) = (child.stdin.take(), child.stdout.take()) else {
            return Run::Lost;
        };
        // The order ends with a newline, and without it the watchdog starts nothing.
        if let Err(error) = leash.write_all(order.to_line().as_bytes()).await {
            return Run::NotStarted {
                reason: format!("the watchdog did not take the order: {error}"),
            };
        }
        let mut reports = BufReader::new(reports.take(MAX_REPORT));
        let mut started = None;
        loop {
            let mut line = String::new();
            let read = reports.read_line(&mut line).await;
            let report = if read.is_ok() {
                serde_json::from_str(&line).ok()
            } else {
                None
            };
            match report {
                Some(Report::Started { pid }) => started = Pid::from_raw(pid),
                Some(Report::NotStarted { reason }) => return Run::NotStarted { reason },
                Some(Report::Ended {
                    end,
                    stdout,
                    stderr,
                }) => {
                    return Run::Ended {
                        end,
                        stdout,
                        stderr,
                    };
                }
                None => {
                    if let Some(group) = started {
                        // It is fine if the group is gone already.
                        let _ = kill_process_group(group, Signal::KILL);
                    }
                    return Run::Lost;
                }
            }
        }
    }
}
