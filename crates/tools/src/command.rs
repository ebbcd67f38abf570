//! Tools that are programs.
//!
//! The program gets the arguments as canonical JSON on stdin, and `HOLDPOINT_IDEMPOTENCY_KEY`, `HOLDPOINT_EPOCH` and
//! `HOLDPOINT_TOOL` in its environment; a lookup or a compensation of a step has `HOLDPOINT_STEP`, too. With exit code 0, what it prints is the result. With another code and
//! `{"error": …}` on stdout it failed, and promises that it had no effect. After anything else nobody knows.

use async_trait::async_trait;
use holdpoint_core::{Lookup, Outcome};
use serde_json::Value;

use crate::{
    Call, Tool, Watchdog,
    lookup::Finding,
    quote::quote,
    tool::{no_compensation, no_lookup},
    watchdog::{
        Captured, End, Environment, Garbled, Job, Kept, MAX_LINE, MAX_RELAYED, MAX_STDOUT, Run,
        Speech,
    },
};

/// A tool that is a program, with the programs that look its calls up and undo them.
#[derive(Debug)]
pub(crate) struct CommandTool {
    pub(crate) command: Vec<String>,
    pub(crate) lookup: Option<Vec<String>>,
    pub(crate) compensate: Option<Vec<String>>,
    pub(crate) cwd: String,
    pub(crate) watchdog: Watchdog,
}

#[async_trait]
impl Tool for CommandTool {
    async fn call(&self, call: Call<'_>) -> Outcome {
        outcome(self.run(&self.command, call).await)
    }

    async fn lookup(&self, call: Call<'_>) -> Lookup {
        match &self.lookup {
            Some(argv) => lookup(self.run(argv, call).await),
            None => no_lookup(),
        }
    }

    async fn compensate(&self, call: Call<'_>) -> Outcome {
        match &self.compensate {
            Some(argv) => outcome(self.run(argv, call).await),
            None => no_compensation(),
        }
    }
}

impl CommandTool {
    async fn run(&self, argv: &[String], call: Call<'_>) -> Run {
        self.watchdog
            .run(&Job {
                argv,
                cwd: &self.cwd,
                env: environment(call, Some(call.key)),
                stdin: call.args.canonical(),
                speech: Speech::Whole,
                remaining: call.remaining,
                environment: Environment::Inherited,
                stderr: Kept::Little,
            })
            .await
    }
}

/// What is not said is unset: this process may itself run under a tool.
pub(crate) fn environment(
    call: Call<'_>,
    key: Option<&str>,
) -> Vec<(&'static str, Option<String>)> {
    vec![
        ("HOLDPOINT_IDEMPOTENCY_KEY", key.map(str::to_owned)),
        ("HOLDPOINT_EPOCH", Some(call.epoch.to_string())),
        ("HOLDPOINT_TOOL", Some(call.tool.to_owned())),
        ("HOLDPOINT_STEP", call.step.map(str::to_owned)),
    ]
}

/// How a program ended, and what it printed; or what its call comes to where that is not known.
pub(crate) fn ended(run: Run) -> Result<(End, Captured, String), Outcome> {
    match run {
        Run::NotStarted { reason } => Err(Outcome::Failed {
            error: format!("not started: {reason}"),
        }),
        Run::Lost => Err(Outcome::Unknown {
            reason: LOST.to_owned(),
        }),
        Run::Ended {
            end,
            stdout,
            stderr,
        } => Ok((end, stdout, stderr)),
    }
}

fn outcome(run: Run) -> Outcome {
    let (end, stdout, stderr) = match ended(run) {
        Ok(ended) => ended,
        Err(outcome) => return outcome,
    };
    let unknown = |detail: &str| Outcome::Unknown {
        reason: reason(end, detail, &stderr),
    };
    match (end, stdout) {
        (End::Code(0), Captured::Text(text)) => Outcome::Done {
            content: without_newline(text),
        },
        (End::Code(_), Captured::Text(text)) => match error_of(&text) {
            Some(error) => Outcome::Failed { error },
            None => unknown(", and stdout is no JSON object with an `error`"),
        },
        (End::Code(_), Captured::NotUtf8(_)) => unknown(", and stdout is not UTF-8"),
        (End::Code(_), Captured::TooLong(_)) => unknown(&too_long()),
        (End::Signal(_) | End::TimedOut | End::LetGo | End::Garbled(_), _) => unknown(""),
    }
}

fn lookup(run: Run) -> Lookup {
    let (end, stdout, stderr) = match run {
        Run::NotStarted { reason } => {
            return Lookup::Unknown {
                reason: format!("the lookup was not started: {reason}"),
            };
        }
        Run::Lost => {
            return Lookup::Unknown {
                reason: format!("the lookup: {LOST}"),
            };
        }
        Run::Ended {
            end,
            stdout,
            stderr,
        } => (end, stdout, stderr),
    };
    let unknown = |detail: &str| Lookup::Unknown {
        reason: format!("the lookup ended with {}", reason(end, detail, &stderr)),
    };
    match (end, stdout) {
        (End::Code(0), Captured::Text(text)) => Finding::read(&text)
            .unwrap_or_else(|why| unknown(&format!(", and {}", why.of("stdout")))),
        (End::Code(0), Captured::NotUtf8(_)) => unknown(", and stdout is not UTF-8"),
        (End::Code(0), Captured::TooLong(_)) => unknown(&too_long()),
        (End::Code(_) | End::Signal(_) | End::TimedOut | End::LetGo | End::Garbled(_), _) => {
            unknown("")
        }
    }
}

const LOST: &str = "its watchdog ended without a report, and nobody knows how far it got";

fn too_long() -> String {
    format!(", and stdout is longer than {MAX_STDOUT} bytes")
}

/// One newline at the end belongs to the terminal, not to the result.
fn without_newline(mut text: String) -> String {
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    text
}

/// The promise that there was no effect. `"error": null` is how some programs say that there was no error: no promise.
fn error_of(stdout: &str) -> Option<String> {
    let Ok(Value::Object(mut object)) = serde_json::from_str(stdout) else {
        return None;
    };
    match object.remove("error")? {
        Value::Null => None,
        error @ (Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_)) => Some(text_of(error)),
    }
}

/// A JSON value as a model reads it: of a string the text.
pub(crate) fn text_of(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other @ (Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::Array(_)
        | Value::Object(_)) => other.to_string(),
    }
}

pub(crate) fn reason(end: End, detail: &str, stderr: &str) -> String {
    let end = match end {
        End::Code(code) => format!("exit code {code}"),
        End::Signal(signal) => format!("signal {signal}"),
        End::TimedOut => "a time-out: it was killed at its deadline".to_owned(),
        End::LetGo => "it was killed".to_owned(),
        End::Garbled(Garbled::LongLine) => {
            format!("it was killed, because it printed a line longer than {MAX_LINE} bytes")
        }
        End::Garbled(Garbled::TooMuch) => {
            format!("it was killed, because it printed more than {MAX_RELAYED} bytes")
        }
        End::Garbled(Garbled::NotUtf8) => {
            "it was killed, because it printed a line that is not UTF-8".to_owned()
        }
    };
    with_stderr(&format!("{end}{detail}"), stderr)
}

/// A reason, and what the program said to it.
pub(crate) fn with_stderr(reason: &str, stderr: &str) -> String {
    let quoted = quote(stderr);
    if quoted.is_empty() {
        reason.to_owned()
    } else {
        format!("{reason}; stderr: {quoted}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_object_with_an_error_promises_that_there_was_no_effect() {
        let cases = [
            (r#"{"error":"no such order"}"#, Some("no such order")),
            ("{\"error\":\"x\",\"code\":4}\n", Some("x")),
            (r#"{"error":{"code":4}}"#, Some(r#"{"code":4}"#)),
            (r#"{"error":false}"#, Some("false")),
            (r#"{"error":null}"#, None),
            (r#"{"err":"x"}"#, None),
            (r#"["error"]"#, None),
            (r#"{"error":"x"} trailing"#, None),
            ("error: x", None),
            ("", None),
        ];
        for (stdout, expected) in cases {
            assert_eq!(error_of(stdout).as_deref(), expected, "{stdout}");
        }
    }

    #[test]
    fn one_newline_at_the_end_is_not_part_of_the_result() {
        for (stdout, expected) in [
            ("a\n", "a"),
            ("a\r\n", "a"),
            ("a\n\n", "a\n"),
            ("\n", ""),
            ("a", "a"),
            ("", ""),
        ] {
            assert_eq!(without_newline(stdout.to_owned()), expected);
        }
    }
}
