//! What a stepped tool's program and its driver say to each other: JSON objects, one a line.

use holdpoint_core::{Effect, Memo, Params, Recalled, Span, StepEnd, parse_strict};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Question;

/// What a program says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// It wants to take a step.
    Step {
        name: String,
        effect: Effect,
        args: Params,
    },
    /// A step was done.
    Done { name: String, result: Value },
    /// A step failed, certainly without an effect.
    Failed { name: String, error: Value },
    /// It asks.
    Interrupt {
        name: String,
        question: Box<Question>,
    },
    /// It wants to be left alone for a while.
    Sleep { name: String, time: Span },
    /// It is through, with this result.
    Result(Value),
    /// It is through, and failed.
    Error(Value),
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Spelled {
    Step(Step),
    Done(Done),
    Failed(Failed),
    Interrupt(Interrupt),
    Sleep(Sleep),
    Result(Value),
    Error(Value),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    name: String,
    effect: Effect,
    #[serde(default, rename = "args")]
    _args: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Done {
    name: String,
    #[serde(default)]
    result: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Failed {
    name: String,
    error: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Interrupt {
    name: String,
    #[serde(default)]
    question: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sleep {
    name: String,
    #[serde(rename = "for")]
    time: String,
}

impl Message {
    /// Reads a line.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub(crate) fn read(line: &str) -> Result<Self, String> {
        let spelled = serde_json::from_str(line).map_err(|error| error.to_string())?;
        Ok(match spelled {
            Spelled::Step(Step { name, effect, .. }) => Self::Step {
                args: args_of(line).map_err(|error| format!("the step `{name}`: {error}"))?,
                name,
                effect,
            },
            Spelled::Done(Done { name, result }) => Self::Done { name, result },
            Spelled::Failed(Failed {
                error: Value::Null, ..
            })
            | Spelled::Error(Value::Null) => {
                return Err("an `error` that is null promises nothing".to_owned());
            }
            Spelled::Failed(Failed { name, error }) => Self::Failed { name, error },
            Spelled::Interrupt(Interrupt { name, question }) => Self::Interrupt {
                question: Box::new(
                    Question::read(&name, question)
                        .map_err(|error| format!("the question `{name}`: {error}"))?,
                ),
                name,
            },
            Spelled::Sleep(Sleep { name, time }) => Self::Sleep {
                time: Span::parse(&time).ok_or_else(|| {
                    format!("the sleep `{name}`: `{time}` is no time such as `10m`")
                })?,
                name,
            },
            Spelled::Result(result) => Self::Result(result),
            Spelled::Error(error) => Self::Error(error),
        })
    }
}

/// A step's arguments are read as strictly as a call's. Results are not: they have been had by then.
fn args_of(line: &str) -> Result<Params, String> {
    let message = parse_strict(line).map_err(|error| error.to_string())?;
    match message.pointer("/step/args") {
        None | Some(Value::Null) => Ok(Params::default()),
        Some(args) => Params::from_value(args).map_err(|error| error.to_string()),
    }
}

/// The first line that a program gets.
pub(crate) fn opening(args: &Params, memo: &Memo) -> String {
    let answers = Value::Object(memo.answers());
    let steps = Value::Object(memo.steps());
    // The arguments as they are: exactly the bytes that were hashed and shown.
    format!(
        r#"{{"args":{},"answers":{answers},"steps":{steps}}}{}"#,
        args.canonical(),
        '\n'
    )
}

/// The step may be taken.
pub(crate) fn run(name: &str, key: &str) -> String {
    json!({"run": {"name": name, "key": key}}).to_string()
}

/// The step has ended before.
pub(crate) fn ended(name: &str, end: &StepEnd) -> String {
    match end {
        StepEnd::Done { result } => json!({"ended": {"name": name, "result": result}}),
        StepEnd::NotDone { error } => json!({"ended": {"name": name, "error": error}}),
    }
    .to_string()
}

/// What is waited for is there already.
pub(crate) fn answered(name: &str, recalled: &Recalled) -> String {
    match recalled {
        Recalled::Answer { value } => json!({"answered": {"name": name, "answer": value}}),
        Recalled::TimedOut => json!({"answered": {"name": name, "timeout": true}}),
        Recalled::Slept => json!({"answered": {"name": name, "slept": true}}),
    }
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_message_is_read() {
        let args = Params::parse(r#"{"b":1,"a":"é"}"#).unwrap();
        let step = |args| Message::Step {
            name: "pay".to_owned(),
            effect: Effect::Write,
            args,
        };
        let name = || "pay".to_owned();
        let cases = [
            (
                r#"{"step":{"name":"pay","effect":"write","args":{"b":1.0,"a":"\u00e9"}}}"#,
                step(args),
            ),
            (
                r#" {"step":{"effect":"write","name":"pay"}} "#,
                step(Params::default()),
            ),
            (
                r#"{"done":{"name":"pay","result":{"id":18446744073709551615}}}"#,
                Message::Done {
                    name: name(),
                    result: json!({"id": u64::MAX}),
                },
            ),
            (
                r#"{"done":{"name":"pay"}}"#,
                Message::Done {
                    name: name(),
                    result: Value::Null,
                },
            ),
            (
                r#"{"failed":{"name":"pay","error":{"code":4}}}"#,
                Message::Failed {
                    name: name(),
                    error: json!({"code": 4}),
                },
            ),
            (
                r#"{"sleep":{"name":"pay","for":"10m"}}"#,
                Message::Sleep {
                    name: name(),
                    time: Span::from_secs(600),
                },
            ),
            (r#"{"result":null}"#, Message::Result(Value::Null)),
            (r#"{"error":"x"}"#, Message::Error(json!("x"))),
        ];
        for (line, expected) in cases {
            assert_eq!(Message::read(line), Ok(expected), "{line}");
        }
    }

    #[test]
    fn what_is_no_message_is_refused_with_what_is_wrong() {
        let cases = [
            ("", "EOF"),
            ("hello", "expected value"),
            (r#"{"stop":{}}"#, "unknown variant `stop`"),
            (r#"{"result":1,"error":2}"#, "expected"),
            (r#"{"result":1} {}"#, "trailing"),
            (r#"{"step":{"name":"pay"}}"#, "missing field `effect`"),
            (r#"{"step":{"effect":"read"}}"#, "missing field `name`"),
            (
                r#"{"step":{"name":"p","effect":"maybe"}}"#,
                "unknown variant `maybe`",
            ),
            (
                r#"{"step":{"name":"p","effect":"read","arg":{}}}"#,
                "unknown field `arg`",
            ),
            (
                r#"{"step":{"name":"p","effect":"read","args":[1]}}"#,
                "the step `p`: arguments must be a JSON object, not an array",
            ),
            (
                r#"{"step":{"name":"p","effect":"read","args":{"a":1,"a":2}}}"#,
                "the step `p`: the key `a` appears twice",
            ),
            (
                r#"{"step":{"name":"p","effect":"read","args":{"n":9007199254740993}}}"#,
                "send it as a string",
            ),
            (r#"{"failed":{"name":"p"}}"#, "missing field `error`"),
            (
                r#"{"failed":{"name":"p","error":null}}"#,
                "promises nothing",
            ),
            (r#"{"error":null}"#, "promises nothing"),
            (
                r#"{"sleep":{"name":"p","for":"soon"}}"#,
                "the sleep `p`: `soon` is no time such as `10m`",
            ),
            (r#"{"interrupt":{}}"#, "missing field `name`"),
            (
                r#"{"interrupt":{"name":"q","question":{"title":"t","colour":1}}}"#,
                "the question `q`: unknown field `colour`",
            ),
        ];
        for (line, expected) in cases {
            let error = Message::read(line).unwrap_err();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }
}
