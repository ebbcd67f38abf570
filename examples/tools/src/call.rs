//! One call of a command tool, seen from inside the program.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use anyhow::Context;
use serde_json::{Map, Value, json};

/// What Holdpoint tells a program about the call that it is to make.
#[derive(Debug, Clone)]
pub struct Call {
    /// The same for every attempt at one action, and for its lookup and compensation.
    pub key: String,
    /// Grows with every new driver of the run.
    pub epoch: u64,
    /// The arguments.
    pub args: Map<String, Value>,
}

/// How a program ends when it does not succeed.
#[derive(Debug)]
pub enum Ended {
    /// Certainly without an effect; the model is told why.
    Refused(String),
    /// Nobody knows how far it got.
    Unknown(anyhow::Error),
}

impl From<anyhow::Error> for Ended {
    fn from(error: anyhow::Error) -> Self {
        Self::Unknown(error)
    }
}

impl Call {
    /// Reads the call from stdin and the environment.
    ///
    /// # Errors
    ///
    /// [`Ended::Refused`] if anything is missing: nothing was done yet.
    pub fn receive() -> Result<Self, Ended> {
        let refused = |message: String| Ended::Refused(message);
        let key = environment("HOLDPOINT_IDEMPOTENCY_KEY")
            .ok_or_else(|| refused("HOLDPOINT_IDEMPOTENCY_KEY is not set".to_owned()))?;
        let epoch = environment("HOLDPOINT_EPOCH").unwrap_or_else(|| "0".to_owned());
        let epoch = epoch
            .parse()
            .map_err(|_| refused(format!("HOLDPOINT_EPOCH `{epoch}` is no number")))?;
        let text = io::read_to_string(io::stdin())
            .map_err(|error| refused(format!("stdin cannot be read: {error}")))?;
        let args = serde_json::from_str(&text)
            .map_err(|error| refused(format!("stdin is no JSON object: {error}")))?;
        Ok(Self { key, epoch, args })
    }

    /// A text among the arguments.
    ///
    /// # Errors
    ///
    /// [`Ended::Refused`] if it is missing or no text.
    pub fn text(&self, name: &str) -> Result<&str, Ended> {
        let value = self.args.get(name).and_then(Value::as_str);
        value.ok_or_else(|| Ended::Refused(format!("`{name}` must be a text")))
    }
}

/// A variable of the environment that says something.
#[must_use]
#[expect(
    clippy::disallowed_methods,
    reason = "for a command tool the environment is its interface"
)]
pub fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Prints what a program has to say, and turns it into an exit code.
#[must_use]
pub fn finish(result: Result<Value, Ended>) -> ExitCode {
    let (text, code) = match result {
        Ok(value) => (value.to_string(), ExitCode::SUCCESS),
        Err(Ended::Refused(message)) => {
            (json!({ "error": message }).to_string(), ExitCode::FAILURE)
        }
        Err(Ended::Unknown(error)) => {
            eprintln!("{error:#}");
            return ExitCode::from(2);
        }
    };
    let printed = writeln!(io::stdout().lock(), "{text}").context("stdout is closed");
    match printed {
        Ok(()) => code,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::from(2)
        }
    }
}
