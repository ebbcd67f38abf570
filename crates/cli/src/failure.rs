//! Why a command did not do what it was asked to, for people and for programs.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "what is not named here is a usage error without more to say, which changes nothing"
)]

use holdpoint_core::{Refusal, ThreadId};
use holdpoint_engine::Error;
use holdpoint_store::{CopyError, OpenError};
use serde_json::{Value, json};

use crate::{exit::Exit, safe_text, terminal};

/// Why a command ends without having done what it was asked to.
#[derive(Debug)]
pub(crate) struct Failure(Box<Parts>);

// On the heap, because every result carries the room for it.
#[derive(Debug)]
struct Parts {
    message: String,
    /// What a person is told instead, where it is more than one line.
    lines: Vec<String>,
    code: &'static str,
    help: Option<String>,
    details: Value,
    exit: Exit,
}

impl Failure {
    /// The command line does not say what to do.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new("usage", Exit::Usage, message)
    }

    /// It may not happen; nothing was changed.
    pub(crate) fn refused(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(code, Exit::Refused, message)
    }

    /// It cannot be tried from here; nothing was started.
    pub(crate) fn unusable(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(code, Exit::Usage, message)
    }

    /// It was begun, and did not come to its end.
    pub(crate) fn failed(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(code, Exit::Failed, message)
    }

    fn new(code: &'static str, exit: Exit, message: impl Into<String>) -> Self {
        Self(Box::new(Parts {
            message: message.into(),
            lines: Vec::new(),
            code,
            help: None,
            details: json!({}),
            exit,
        }))
    }

    /// With what would be right.
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.0.help = Some(help.into());
        self
    }

    /// With what a program wants to know.
    pub(crate) fn details(mut self, details: Value) -> Self {
        self.0.details = details;
        self
    }

    /// With what a person is told instead of the message.
    pub(crate) fn lines(mut self, lines: Vec<String>) -> Self {
        self.0.lines = lines;
        self
    }

    /// What the command ends with.
    pub(crate) const fn exit(&self) -> Exit {
        self.0.exit
    }

    /// Says which thread it is about.
    pub(crate) fn about(mut self, thread: ThreadId) -> Self {
        self.0.message = format!("{thread}: {}", self.0.message);
        if let Value::Object(details) = &mut self.0.details {
            details.insert("thread_id".to_owned(), Value::from(thread.to_string()));
        }
        self
    }

    /// Prints it for a person.
    pub(crate) fn print(&self) {
        if self.0.lines.is_empty() {
            terminal::note(&format!("error: {}", safe_text::line(&self.0.message)));
        }
        for line in &self.0.lines {
            terminal::note(&safe_text::line(line));
        }
        if let Some(help) = &self.0.help {
            terminal::note(&format!("help: {}", safe_text::line(help)));
        }
    }

    /// Prints it as the one object that a program gets.
    pub(crate) fn print_json(&self) {
        let Parts {
            message,
            code,
            details,
            ..
        } = &*self.0;
        terminal::json(&json!({"error": message, "code": code, "details": details}));
    }
}

impl From<CopyError> for Failure {
    fn from(error: CopyError) -> Self {
        let message = error.to_string();
        match error {
            CopyError::Same(_) => Self::usage(message),
            CopyError::Served(_) => Self::refused("served", message),
            CopyError::Driven { .. } => Self::refused("driven", message),
            CopyError::Backup(_) => Self::refused("not_adopted", message),
            CopyError::NotEmpty(_) => Self::refused("not_empty", message),
            CopyError::Elsewhere { .. } => Self::refused("cannot_drive", message),
            CopyError::Damaged { .. } => Self::failed("damaged", message)
                .help("`holdpoint store check` says what else is; `holdpoint store copy … --abandon` gives the copy up"),
            CopyError::Unavailable(_) => Self::failed("store_unavailable", message)
                .help("the same command goes on with it"),
            _ => Self::failed("copy_failed", message),
        }
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        Self::unusable("store_unusable", error.to_string())
    }
}

impl From<holdpoint_store::Unavailable> for Failure {
    fn from(error: holdpoint_store::Unavailable) -> Self {
        Error::from(error).into()
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let exit = match &error {
            Error::Refused(_) | Error::AlreadyDecided { .. } | Error::BadAnswer(_) => Exit::Refused,
            _ => Exit::Usage,
        };
        let failure = Self::new(error.code(), exit, error.to_string());
        let (help, details) = match &error {
            Error::Refused(refusal) => of_refusal(refusal),
            Error::AlreadyDecided {
                interrupt,
                status,
                by,
                ..
            } => (
                None,
                json!({"interrupt": interrupt, "status": status, "by": by.to_string()}),
            ),
            Error::BadAnswer(_) => (
                Some("`holdpoint resume --help` shows what an answer looks like"),
                json!({}),
            ),
            Error::VolatileStore { agent } => (
                Some("use `--store sqlite:PATH`, which keeps the question until it is answered"),
                json!({"agent": agent}),
            ),
            _ => (None, json!({})),
        };
        let failure = failure.details(details);
        match help {
            Some(help) => failure.help(help),
            None => failure,
        }
    }
}

fn of_refusal(refusal: &Refusal) -> (Option<&'static str>, Value) {
    match refusal {
        Refusal::NotFound => (Some("`holdpoint runs` lists what there is"), json!({})),
        Refusal::InterruptPending { pending } => (
            Some(
                "answer with `holdpoint resume`, or leave `--input` out to see what is asked; `holdpoint cancel` stops it",
            ),
            json!({"pending": pending}),
        ),
        Refusal::RunActive => (
            Some(
                "leave `--input` out to follow it or to go on with it; `holdpoint cancel` stops it",
            ),
            json!({}),
        ),
        Refusal::NotPending { interrupt } => (
            Some("`holdpoint show` says what is pending"),
            json!({"interrupt": interrupt}),
        ),
        Refusal::Expired { interrupt } => (
            Some(
                "it was closed as its `on_timeout` says: `holdpoint show` says how the run stands, `holdpoint recover` goes on with it",
            ),
            json!({"interrupt": interrupt}),
        ),
        Refusal::Misfit(misfit) => (
            Some("`holdpoint show` says what is asked and which decisions are allowed"),
            json!(misfit),
        ),
        Refusal::StaleQuestion { old, new } => (
            Some("look at what has changed with `holdpoint show`, then answer the new one"),
            json!({"old": old, "new": new}),
        ),
        _ => (None, json!({})),
    }
}
