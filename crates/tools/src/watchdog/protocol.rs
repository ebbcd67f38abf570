//! What driver and watchdog say to each other: JSON, one line each.
//!
//! The watchdog says that it is `ready`, and only then the driver sends one [`Order`]: a watchdog that dies before (a
//! terminal's Ctrl-C reaches it until it has a process group of its own) has certainly started nothing. The driver holds
//! the pipe open: its closing means that the driver is gone. Further [`Report`]s are `started` and then `ended`, or
//! `not_started`.
//!
//! Where the order is to [relay](Speech::Relayed), each line that the program prints is a `line` in between, and what the
//! driver sends after the order is passed on to the program as it is. It sends nothing before the program is `started`.

use serde::{Deserialize, Serialize};

use super::{Job, clock};

/// The first argument of a process that is a watchdog.
pub(super) const ARGUMENT: &str = "__watchdog";

/// Grows when one side could misunderstand the other: an upgrade may replace the executable under a running driver.
pub(super) const VERSION: u16 = 6;

/// How much a program may print as its result.
pub(crate) const MAX_STDOUT: usize = 1 << 20;

/// How much of what a program says on stderr is kept where that is only to explain a failure.
const LITTLE_STDERR: usize = 4 << 10;
/// And where it is a part of the result.
const MUCH_STDERR: usize = 128 << 10;

/// How long a line may be that is relayed.
pub(crate) const MAX_LINE: usize = 1 << 20;

/// How much a program may print in all where it is relayed.
pub(crate) const MAX_RELAYED: usize = 16 << 20;

/// No honest watchdog says more in one report: in JSON a byte takes at most six.
pub(super) const MAX_REPORT: u64 = 8 << 20;

/// What to run.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) v: u16,
    pub(super) argv: Vec<String>,
    pub(super) cwd: String,
    /// Added to the environment that is inherited, or taken out of it.
    pub(super) env: Vec<(String, Option<String>)>,
    /// What the program gets first.
    pub(super) stdin: String,
    pub(super) speech: Speech,
    pub(super) environment: Environment,
    pub(super) stderr: Kept,
    /// By [`clock::now`], in microseconds. Absolute, so that a slow start of the watchdog gives no time away.
    pub(super) deadline: u64,
}

impl Order {
    pub(super) fn new(job: &Job<'_>) -> Self {
        let deadline = clock::now().saturating_add(job.remaining).as_micros();
        Self {
            v: VERSION,
            argv: job.argv.to_vec(),
            cwd: job.cwd.to_owned(),
            env: job
                .env
                .iter()
                .map(|(name, value)| ((*name).to_owned(), value.clone()))
                .collect(),
            stdin: job.stdin.to_owned(),
            speech: job.speech,
            environment: job.environment,
            stderr: job.stderr,
            deadline: u64::try_from(deadline).unwrap_or(u64::MAX),
        }
    }

    pub(super) fn to_line(&self) -> String {
        to_line(self)
    }
}

/// How a program is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Speech {
    /// It gets its input at once, and what it printed is looked at when it has ended.
    Whole,
    /// Lines go to and fro while it runs.
    Relayed,
    /// The same, for as long as it is wanted: what it prints is bounded line by line, and not in all.
    Served,
}

/// What surrounds a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Environment {
    /// The environment of this process.
    Inherited,
    /// Of the environment of this process only what is known to be harmless.
    Listed,
    /// The same, and nothing but its folder and the programs of the system.
    Confined,
}

/// How much of what a program says on stderr is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kept {
    /// The beginning, to explain a failure.
    Little,
    /// As much as a result may have.
    Much,
}

impl Kept {
    pub(super) const fn bytes(self) -> usize {
        match self {
            Self::Little => LITTLE_STDERR,
            Self::Much => MUCH_STDERR,
        }
    }
}

/// What became of it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "report", rename_all = "snake_case")]
pub(super) enum Report {
    /// The watchdog takes an order.
    Ready,
    /// The program runs, as the leader of its own process group.
    Started { pid: i32 },
    /// It is certain that the program never ran.
    NotStarted { reason: String },
    /// The program printed this line; the newline is left out.
    Line { text: String },
    /// The program and its group are dead.
    Ended {
        end: End,
        stdout: Captured,
        stderr: String,
    },
}

impl Report {
    pub(super) fn to_line(&self) -> String {
        to_line(self)
    }
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum End {
    /// By itself, with this code.
    Code(i32),
    /// By a signal that was not ours.
    Signal(i32),
    /// By us, at the deadline.
    TimedOut,
    /// By us, because the driver let go of it. A driver that lives still hears of it.
    LetGo,
    /// By us, because what it printed cannot be relayed.
    Garbled(Garbled),
}

/// Why what a program printed cannot be relayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Garbled {
    /// A line is longer than [`MAX_LINE`].
    LongLine,
    /// It is more than [`MAX_RELAYED`] in all.
    TooMuch,
    /// A line is not UTF-8.
    NotUtf8,
}

/// What a program printed on stdout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Captured {
    /// Text, complete.
    Text(String),
    /// Something that is not UTF-8, with U+FFFD in the place of what is not.
    NotUtf8(String),
    /// More than [`MAX_STDOUT`]; the beginning, and what of it is not UTF-8 is replaced as well.
    TooLong(String),
}

#[expect(
    clippy::expect_used,
    reason = "strings, numbers and lists of them always have a JSON spelling"
)]
fn to_line(message: &impl Serialize) -> String {
    let mut line = serde_json::to_string(message).expect("JSON");
    line.push('\n');
    line
}
