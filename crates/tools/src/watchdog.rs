//! A command's deadline holds without its driver.
//!
//! The driver does not start a tool's program itself. It starts a watchdog, which is this executable entered again by
//! [`enter`], and the watchdog starts the program. Each is in a process group of its own, so that a terminal's Ctrl-C
//! reaches neither. The watchdog kills the program's whole group at the deadline, at once when the driver is gone
//! (which it notices by the pipe between them closing), and when the program itself ends while its children do not.
//! A process that has left the group (`setsid`) is out of its reach.
//!
//! A stepped tool's program speaks with the driver while it runs: then the watchdog passes lines on, both ways.
//!
//! Should the watchdog itself be killed, the call is unknown and the driver kills the program's group. It knows the group
//! before the program gets its arguments; one that acts without reading them could escape within its first moments.

mod clock;
mod pipe;
mod process;
mod protocol;
mod relay;
mod surroundings;

use std::{
    collections::BTreeSet,
    path::PathBuf,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use holdpoint_core::Providers;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, Signal, kill_process_group},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Take},
    process::{ChildStdin, ChildStdout, Command},
    time::timeout,
};

use crate::confine;
pub(crate) use protocol::{
    Captured, End, Environment, Garbled, Kept, MAX_LINE, MAX_RELAYED, MAX_STDOUT, Speech,
};
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
    if std::env::args_os()
        .nth(1)
        .is_some_and(|argument| argument == confine::ARGUMENT)
    {
        std::process::exit(confine::become_it());
    }
    ENTERED.store(true, Ordering::Relaxed);
}

/// Which executable is started as the watchdog of a command. The default is the one that is running.
#[derive(Debug, Clone)]
pub struct Watchdog {
    program: Option<PathBuf>,
    /// Variables of the environment that are not passed on.
    withheld: Arc<BTreeSet<String>>,
}

impl Default for Watchdog {
    fn default() -> Self {
        Self {
            program: None,
            withheld: Arc::new(Providers::default().secret_variables()),
        }
    }
}

/// What to run.
#[derive(Debug)]
pub(crate) struct Job<'a> {
    pub(crate) argv: &'a [String],
    pub(crate) cwd: &'a str,
    /// Set, or unset.
    pub(crate) env: Vec<(&'a str, Option<String>)>,
    pub(crate) stdin: &'a str,
    pub(crate) speech: Speech,
    pub(crate) remaining: Duration,
    pub(crate) environment: Environment,
    pub(crate) stderr: Kept,
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
            ..Self::default()
        }
    }

    /// Passes these variables of the environment on to no program. Unless this is said, they are those with the keys of the
    /// model providers that everybody knows.
    #[must_use]
    pub fn withholding(mut self, variables: BTreeSet<String>) -> Self {
        self.withheld = Arc::new(variables);
        self
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
        let mut watched = match self.start(job).await {
            Ok(watched) => watched,
            Err(run) => return run,
        };
        watched.over().await
    }

    /// Starts a watchdog for a program, which it starts in its turn.
    ///
    /// # Errors
    ///
    /// What became of it, where there is no watchdog.
    pub(crate) async fn start(&self, job: &Job<'_>) -> Result<Watched, Run> {
        let order = Order::new(job);
        let not_started = |reason: String| Run::NotStarted { reason };
        let ready = timeout(job.remaining, self.ready()).await;
        let ready = ready
            .map_err(|_| not_started("its time was over before it could be started".to_owned()));
        let (mut leash, reports) = ready?.map_err(not_started)?;
        // The order ends with a newline, and without it the watchdog starts nothing.
        let ordered = leash.write_all(order.to_line().as_bytes()).await;
        ordered.map_err(|error| {
            not_started(format!("the watchdog did not take the order: {error}"))
        })?;
        Ok(Watched {
            leash: Some(leash),
            reports,
            group: None,
        })
    }

    /// A watchdog that waits for an order. One that dies before is no loss: another is started.
    async fn ready(&self) -> Result<(ChildStdin, Reports), String> {
        for _ in 0..TRIES {
            let spawned = self.program().and_then(|program| {
                let mut command = Command::new(program);
                for variable in self.withheld.iter() {
                    command.env_remove(variable);
                }
                command
                    .arg(protocol::ARGUMENT)
                    .process_group(0)
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped())
                    .stderr(Stdio::null())
                    .spawn()
            });
            let mut child = match spawned {
                Ok(child) => child,
                Err(error) => return Err(format!("the watchdog could not be started: {error}")),
            };
            let (Some(leash), Some(reports)) = (child.stdin.take(), child.stdout.take()) else {
                continue;
            };
            let mut reports = BufReader::new(reports.take(MAX_REPORT));
            let mut line = String::new();
            let read = reports.read_line(&mut line).await;
            let report = read.ok().and_then(|_| serde_json::from_str(&line).ok());
            if let Some(Report::Ready) = report {
                return Ok((leash, reports));
            }
        }
        Err("its watchdog died before it could take the order".to_owned())
    }
}

/// How often a watchdog is started that dies at once.
const TRIES: usize = 3;

/// What a watchdog says, line by line.
type Reports = BufReader<Take<ChildStdout>>;

/// A program under its watchdog. Dropping it kills the program.
#[derive(Debug)]
pub(crate) struct Watched {
    /// Its closing kills the program.
    leash: Option<ChildStdin>,
    reports: Reports,
    /// Known once the program was started.
    group: Option<Pid>,
}

/// The driver's end of a program that it speaks with. Once it is dropped, the program is killed.
#[derive(Debug)]
pub(crate) struct Leash(ChildStdin);

impl Leash {
    /// Tells the program something.
    ///
    /// # Errors
    ///
    /// Its watchdog is gone. Nobody knows how much of it the program has read.
    pub(crate) async fn say(&mut self, line: &str) -> std::io::Result<()> {
        self.0.write_all(line.as_bytes()).await?;
        self.0.write_all(b"\n").await
    }
}

/// What a watchdog reports.
#[derive(Debug)]
pub(crate) enum News {
    /// The program printed this line.
    Line(String),
    /// The program is over.
    Over(Run),
}

/// Whether a watchdog takes what its program is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listens {
    /// It does.
    Yes,
    /// The program has ended, or is about to be.
    No,
}

impl Watched {
    /// The next that happens.
    ///
    /// # Cancel safety
    ///
    /// None: a report may be lost in part.
    pub(crate) async fn next(&mut self) -> News {
        loop {
            if let Some(news) = self.heard().await {
                return news;
            }
        }
    }

    /// `None`: the program was started, which is no news.
    async fn heard(&mut self) -> Option<News> {
        loop {
            self.reports.get_mut().set_limit(MAX_REPORT);
            let mut line = String::new();
            let read = self.reports.read_line(&mut line).await;
            let report = if read.is_ok() {
                serde_json::from_str(&line).ok()
            } else {
                None
            };
            return Some(match report {
                Some(Report::Ready) => continue,
                Some(Report::Started { pid }) => {
                    self.group = Pid::from_raw(pid);
                    return None;
                }
                Some(Report::Line { text }) => News::Line(text),
                Some(Report::NotStarted { reason }) => News::Over(Run::NotStarted { reason }),
                Some(Report::Ended {
                    end,
                    stdout,
                    stderr,
                }) => News::Over(Run::Ended {
                    end,
                    stdout,
                    stderr,
                }),
                None => {
                    if let Some(group) = self.group {
                        // It is fine if the group is gone already.
                        let _ = kill_process_group(group, Signal::KILL);
                    }
                    News::Over(Run::Lost)
                }
            });
        }
    }

    /// Tells the program something, if it is relayed. It is fine if its watchdog no longer listens: the next news say why.
    pub(crate) async fn say(&mut self, line: &str) {
        let Some(leash) = &mut self.leash else { return };
        let mut text = line.to_owned();
        text.push('\n');
        let _ = leash.write_all(text.as_bytes()).await;
    }

    /// Waits until the program was started, and parts what is said to it from what it says: then both can wait at once.
    ///
    /// # Errors
    ///
    /// What became of it, where it was not started.
    pub(crate) async fn started(mut self) -> Result<(Leash, Self), Run> {
        match self.heard().await {
            None => {}
            Some(News::Over(run)) => return Err(run),
            // It is said first that a program was started.
            Some(News::Line(_)) => return Err(Run::Lost),
        }
        match self.leash.take() {
            Some(leash) => Ok((Leash(leash), self)),
            None => Err(Run::Lost),
        }
    }

    /// Whether the watchdog still listens. It does not once the program has ended.
    pub(crate) fn listens(&self) -> Listens {
        let Some(leash) = &self.leash else {
            return Listens::No;
        };
        let mut pipe = [PollFd::new(leash, PollFlags::empty())];
        let at_once = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        match poll(&mut pipe, Some(&at_once)) {
            Ok(0) | Err(_) => Listens::Yes,
            Ok(_) => Listens::No,
        }
    }

    /// Kills the program, and says how it ended.
    pub(crate) async fn kill(mut self) -> Run {
        // The only other end of the pipe is the watchdog's.
        self.leash = None;
        self.over().await
    }

    /// Waits for the end, whatever is said before.
    pub(crate) async fn over(&mut self) -> Run {
        loop {
            if let News::Over(run) = self.next().await {
                return run;
            }
        }
    }
}
