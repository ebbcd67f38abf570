//! How a command ends: the exit codes that scripts rely on.

use std::process::ExitCode;

use holdpoint_core::Status;

/// The exit codes of every command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Done,
    /// Failed or cancelled.
    Failed,
    /// A usage, definition or store error; nothing was started.
    Usage,
    /// It is not over: waiting, sleeping or paused.
    Waiting,
    /// Refused; nothing was changed.
    Refused,
}

impl Exit {
    /// What a command ends with that leaves a run like this.
    pub(crate) fn of(status: Option<&Status>) -> Self {
        match status {
            None | Some(Status::Finished) => Self::Done,
            Some(Status::Failed | Status::Cancelled) => Self::Failed,
            // Running: somebody stopped watching, and it can go on.
            Some(_) => Self::Waiting,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Waiting => 3,
            Exit::Refused => 4,
        })
    }
}
