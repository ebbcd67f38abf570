//! Stepped tools that are programs.
//!
//! The program is entered with its arguments and with what it has behind it, and then speaks in lines: it asks for a step
//! and takes it when it is told to, or asks a person and is ended, to be entered again with the answer. [`message`] has what is said.

use std::collections::BTreeSet;

use async_trait::async_trait;
use holdpoint_core::{Lookup, Outcome, Recalled, Suspension};

use crate::{
    Begun, Call, SharedSteps, StepRefused, Tool,
    command::{CommandTool, ended, environment, reason, text_of, with_stderr},
    message::{self, Message},
    quote::quote,
    watchdog::{End, Environment, Job, Kept, Listens, News, Run, Speech, Watched},
};

/// A stepped tool that is a program, with the programs that look its steps up and undo them.
#[derive(Debug)]
pub(crate) struct SteppedCommand(pub(crate) CommandTool);

#[async_trait]
impl Tool for SteppedCommand {
    async fn call(&self, _: Call<'_>) -> Outcome {
        only_entered()
    }

    async fn enter(&self, call: Call<'_>, steps: SharedSteps) -> Outcome {
        let opening = message::opening(call.args, steps.memo());
        let job = Job {
            argv: &self.0.command,
            cwd: &self.0.cwd,
            // Each step has a key of its own.
            env: environment(call, None),
            stdin: &opening,
            speech: Speech::Relayed,
            remaining: call.remaining,
            environment: Environment::Inherited,
            stderr: Kept::Little,
        };
        match self.0.watchdog.start(&job).await {
            Ok(watched) => Entry::new(steps).follow(watched).await,
            Err(run) => Entry::new(steps).over(run),
        }
    }

    async fn lookup(&self, call: Call<'_>) -> Lookup {
        self.0.lookup(call).await
    }

    async fn compensate(&self, call: Call<'_>) -> Outcome {
        self.0.compensate(call).await
    }
}

/// What a stepped tool says that is called like a plain one.
pub(crate) fn only_entered() -> Outcome {
    Outcome::Failed {
        error: "this tool takes steps, and cannot be called as one effect".to_owned(),
    }
}

/// One entry of a program, as far as it got.
#[derive(Debug)]
struct Entry {
    steps: SharedSteps,
    /// The steps that were begun by it and have not ended.
    open: BTreeSet<String>,
    /// A step that it wanted to take, but did not wait for.
    missed: Option<String>,
    /// What it said last.
    last: Option<Last>,
}

#[derive(Debug)]
enum Last {
    Result(String),
    Error(String),
}

/// What follows from a line.
enum Next {
    /// Nothing: the program goes on.
    Listen,
    /// It is told this.
    Say(String),
    /// It is ended, because it waits for this.
    Wait { name: String, on: Suspension },
    /// It is ended, because it may not do that.
    Refuse(String),
    /// It is ended, because nobody knows what it means.
    Distrust(String),
}

impl Entry {
    fn new(steps: SharedSteps) -> Self {
        Self {
            steps,
            open: BTreeSet::new(),
            missed: None,
            last: None,
        }
    }

    async fn follow(mut self, mut watched: Watched) -> Outcome {
        loop {
            let line = match watched.next().await {
                News::Line(line) => line,
                News::Over(run) => return self.over(run),
            };
            match self.hear(&line, &watched).await {
                Next::Listen => {}
                Next::Say(line) => watched.say(&line).await,
                Next::Wait { name, on } => {
                    watched.kill().await;
                    return self.wait(name, on).await;
                }
                Next::Refuse(error) => {
                    watched.kill().await;
                    return Outcome::Failed { error };
                }
                Next::Distrust(reason) => {
                    let run = watched.kill().await;
                    let stderr = match &run {
                        Run::Ended { stderr, .. } => stderr,
                        Run::NotStarted { .. } | Run::Lost => "",
                    };
                    return Outcome::Unknown {
                        reason: with_stderr(&reason, stderr),
                    };
                }
            }
        }
    }

    async fn hear(&mut self, line: &str, watched: &Watched) -> Next {
        let quoted = || quote(line);
        let message = match Message::read(line) {
            Ok(message) => message,
            Err(error) => {
                let quoted = quoted();
                return Next::Distrust(format!(
                    "it printed a line that is no message: {error}: `{quoted}`"
                ));
            }
        };
        if self.last.is_some() {
            let quoted = quoted();
            return Next::Distrust(format!("it printed more after its last word: `{quoted}`"));
        }
        match message {
            Message::Step { name, .. } if self.open.contains(&name) => Next::Distrust(format!(
                "it wants to take the step `{name}`, which it is taking already"
            )),
            // The record of a step that nobody can take any more would put it in doubt.
            Message::Step { name, .. } if watched.listens() == Listens::No => {
                self.missed = Some(name);
                Next::Listen
            }
            Message::Step { name, effect, args } => {
                match self.steps.begin(&name, effect, args).await {
                    Ok(Begun::Run { key }) => {
                        let line = message::run(&name, &key);
                        self.open.insert(name);
                        Next::Say(line)
                    }
                    Ok(Begun::Ended(end)) => Next::Say(message::ended(&name, &end)),
                    Err(StepRefused(error)) => Next::Refuse(error),
                }
            }
            Message::Done { name, result } => {
                let content = result.to_string();
                self.end(name, Outcome::Done { content }).await
            }
            Message::Failed { name, error } => {
                let error = text_of(error);
                self.end(name, Outcome::Failed { error }).await
            }
            Message::Interrupt { name, question } => {
                let answer = self.steps.memo().answer(&name, question.prompt());
                match answer {
                    Ok(Some(answer)) => Next::Say(message::answered(&name, answer)),
                    Ok(None) => match question.suspension(&name) {
                        Ok(on) => self.suspend(name, on),
                        Err(error) => Next::Refuse(error),
                    },
                    Err(misnamed) => Next::Refuse(misnamed.to_string()),
                }
            }
            Message::Sleep { name, time } => match self.steps.memo().sleep(&name) {
                Ok(Some(slept)) => Next::Say(message::answered(&name, slept)),
                Ok(None) => self.suspend(name, Suspension::Sleep { time }),
                Err(misnamed) => Next::Refuse(misnamed.to_string()),
            },
            Message::Result(result) => self.conclude(Last::Result(text_of(result))),
            Message::Error(error) => self.conclude(Last::Error(text_of(error))),
        }
    }

    async fn end(&mut self, name: String, outcome: Outcome) -> Next {
        if !self.open.remove(&name) {
            return Next::Distrust(format!(
                "it says what became of the step `{name}`, which it was not told to take"
            ));
        }
        match self.steps.end(&name, outcome).await {
            Ok(()) => Next::Listen,
            Err(StepRefused(error)) => Next::Distrust(format!("the step `{name}`: {error}")),
        }
    }

    fn unfinished(&self) -> Option<&String> {
        self.open.first().or(self.missed.as_ref())
    }

    fn suspend(&self, name: String, on: Suspension) -> Next {
        match self.unfinished() {
            Some(step) => Next::Distrust(format!(
                "it waits for `{name}` without having said what became of its step `{step}`"
            )),
            None => Next::Wait { name, on },
        }
    }

    fn conclude(&mut self, last: Last) -> Next {
        if let Some(step) = self.unfinished() {
            return Next::Distrust(format!(
                "it printed its last word without having said what became of its step `{step}`"
            ));
        }
        self.last = Some(last);
        Next::Listen
    }

    /// The program is dead by now, so that nothing of it goes on while a person thinks.
    async fn wait(self, name: String, on: Suspension) -> Outcome {
        match self.steps.wait(&name, on).await {
            Ok(Recalled::Answer { .. } | Recalled::TimedOut | Recalled::Slept) => {
                Outcome::Unknown {
                    reason: format!("it was ended to wait for `{name}`, which is there by now"),
                }
            }
            Err(StepRefused(error)) => Outcome::Failed { error },
        }
    }

    fn over(self, run: Run) -> Outcome {
        let (end, _, stderr) = match ended(run) {
            Ok(ended) => ended,
            Err(outcome) => return outcome,
        };
        let detail = match (end, &self.last) {
            (End::Code(0), Some(Last::Result(result))) => {
                return Outcome::Done {
                    content: result.clone(),
                };
            }
            (End::Code(_), Some(Last::Error(error))) => {
                return Outcome::Failed {
                    error: error.clone(),
                };
            }
            (_, Some(Last::Result(_))) => ", after it printed its result".to_owned(),
            (_, Some(Last::Error(_))) => ", after it printed its error".to_owned(),
            (_, None) => match (self.open.first(), &self.missed) {
                (Some(step), _) => format!(", in the middle of its step `{step}`"),
                (None, Some(step)) => format!(", before its step `{step}` was begun"),
                (None, None) => ", without a result or an error".to_owned(),
            },
        };
        Outcome::Unknown {
            reason: reason(end, &detail, &stderr),
        }
    }
}
