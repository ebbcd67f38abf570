//! What a stepped tool's code does with the world.

use std::{error::Error, fmt, future::Future};

use holdpoint_core::{Effect, Memo, Outcome, Params, Recalled, Span, StepEnd, Suspension};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::oneshot;

use crate::{
    Begun, Question, SharedSteps, StepRefused,
    entry::{After, Entry, Taken, Want},
};

/// Why a step gave no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StepFailed {
    /// It is not done, for good: it failed without an effect, was undone, or was given up.
    #[error("{error}")]
    NotDone {
        /// Why.
        error: String,
    },
    /// It may not be taken, and nothing was done. The tool will take no more steps, and ends with this error, whatever it
    /// makes of it.
    #[error(transparent)]
    Refused(#[from] StepRefused),
}

/// How a step went wrong.
///
/// Any error becomes [`Unknown`](Self::Unknown) by `?`, since it may have come after the effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepTrouble {
    /// It failed, and it is certain that it had no effect.
    NoEffect {
        /// What the tool gets.
        error: String,
    },
    /// Nobody knows whether it had an effect.
    Unknown {
        /// What was seen.
        reason: String,
    },
}

impl StepTrouble {
    /// It failed, and it is certain that it had no effect.
    pub fn no_effect(error: impl fmt::Display) -> Self {
        Self::NoEffect {
            error: error.to_string(),
        }
    }

    /// Nobody knows whether it had an effect.
    pub fn unknown(reason: impl fmt::Display) -> Self {
        Self::Unknown {
            reason: reason.to_string(),
        }
    }
}

impl<E: Error> From<E> for StepTrouble {
    fn from(error: E) -> Self {
        Self::unknown(error)
    }
}

/// What a stepped tool takes steps with, asks with, and sleeps with. It is of one entry.
///
/// Steps may be taken at the same time, each under a name of its own. Where one future of this is dropped before it is
/// ready, as by `select!` or a time-out, the tool does not get past what it let go of: a question stays asked, and a step
/// that was being taken is one that nobody knows the end of.
pub struct StepContext {
    steps: SharedSteps,
    entry: Entry,
}

impl fmt::Debug for StepContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepContext")
            .field("steps", &self.steps)
            .finish_non_exhaustive()
    }
}

impl AsRef<Entry> for &StepContext {
    fn as_ref(&self) -> &Entry {
        &self.entry
    }
}

impl StepContext {
    pub(crate) fn new(steps: SharedSteps) -> Self {
        Self {
            steps,
            entry: Entry::default(),
        }
    }

    /// What this call has behind it, as of when it was entered.
    pub(crate) fn memo(&self) -> &Memo {
        self.steps.memo()
    }

    /// Takes a step, unless it has ended before: then this is its result, or its error.
    ///
    /// `act` is called with the step's key, which is the same for every attempt at it. When it says that nobody knows what
    /// became of the step, this never completes; the tool is entered again when that is known.
    ///
    /// The arguments are what the step is shown with, looked up and undone with: a JSON object, or `()`.
    ///
    /// # Errors
    ///
    /// The step is not done, or may not be taken.
    ///
    /// # Cancel safety
    ///
    /// A step that is being taken and is dropped is unknown, and the tool does not go on.
    pub async fn step<F, T>(
        &self,
        name: &str,
        effect: Effect,
        args: impl Serialize,
        act: impl FnOnce(String) -> F,
    ) -> Result<Value, StepFailed>
    where
        F: Future<Output = Result<T, StepTrouble>>,
        T: Serialize,
    {
        let args = params(&args)
            .map_err(|error| self.refuse(format!("the step `{name}` cannot be taken: {error}")))?;
        let mut step = Step {
            context: self,
            name: name.to_owned(),
            stage: Stage::Beginning(self.begin(name, effect, args)?),
        };
        let key = match step.begun().await? {
            Begun::Run { key } => key,
            Begun::Ended(StepEnd::Done { result }) => return Ok(result),
            Begun::Ended(StepEnd::NotDone { error }) => return Err(StepFailed::NotDone { error }),
        };
        let acted = act(key).await;
        let outcome = outcome_of(acted);
        step.end(outcome.clone()).await?;
        match outcome {
            // As it is read by a later entry, down to the spelling of its numbers.
            Outcome::Done { content } => Ok(serde_json::from_str(&content).unwrap_or(Value::Null)),
            Outcome::Failed { error } => Err(StepFailed::NotDone { error }),
            Outcome::Unknown { .. } => std::future::pending().await,
        }
    }

    /// Asks a person. It completes only in an entry after the answer, or after the question timed out.
    ///
    /// # Errors
    ///
    /// The name stands for something else, or the question is too long.
    ///
    /// # Cancel safety
    ///
    /// A question that is dropped is asked all the same, and the tool does not go on without the answer.
    pub async fn interrupt(&self, name: &str, question: Question) -> Result<Recalled, StepRefused> {
        let on = question.suspension(name);
        self.wait(name, on.map_err(|error| self.refuse(error))?)
            .await
    }

    /// Waits for some time. The tool is left meanwhile, and need not be in memory.
    ///
    /// # Errors
    ///
    /// The name stands for something else.
    ///
    /// # Cancel safety
    ///
    /// As [`interrupt`](Self::interrupt).
    pub async fn sleep(&self, name: &str, time: Span) -> Result<(), StepRefused> {
        match self.wait(name, Suspension::Sleep { time }).await? {
            Recalled::Slept | Recalled::Answer { .. } | Recalled::TimedOut => Ok(()),
        }
    }

    fn begin(
        &self,
        name: &str,
        effect: Effect,
        args: Params,
    ) -> Result<oneshot::Receiver<Begun>, StepRefused> {
        let (tell, told) = oneshot::channel();
        let (steps, name) = (SharedSteps::clone(&self.steps), name.to_owned());
        let request = Box::pin(async move {
            let begun = match steps.begin(&name, effect, args).await {
                Ok(begun) => begun,
                Err(refused) => return refused_by(refused),
            };
            let after = match begun {
                Begun::Run { .. } => After::Take,
                Begun::Ended(_) => After::GoOn,
            };
            match tell.send(begun) {
                Ok(()) => after,
                Err(Begun::Ended(_)) => After::GoOn,
                Err(Begun::Run { .. }) => record(&steps, &name, let_go()).await,
            }
        });
        self.entry.want(Want::Step, request)?;
        Ok(told)
    }

    async fn wait(&self, name: &str, on: Suspension) -> Result<Recalled, StepRefused> {
        let (tell, told) = oneshot::channel();
        let (steps, name) = (SharedSteps::clone(&self.steps), name.to_owned());
        let request = Box::pin(async move {
            match steps.wait(&name, on).await {
                Ok(recalled) => {
                    // It is fine if the tool no longer wants it: a later entry can have it.
                    let _ = tell.send(recalled);
                    After::GoOn
                }
                Err(refused) => refused_by(refused),
            }
        });
        self.entry.want(Want::Wait, request)?;
        self.told(told).await
    }

    /// What the other side said. Where it says nothing more, this never completes.
    async fn told<T>(
        &self,
        told: impl Future<Output = Result<T, Dropped>>,
    ) -> Result<T, StepRefused> {
        if let Ok(said) = told.await {
            return Ok(said);
        }
        match self.entry.spoiled() {
            Some(refused) => Err(refused),
            None => std::future::pending().await,
        }
    }

    fn refuse(&self, error: String) -> StepRefused {
        let refused = StepRefused(error.clone());
        self.entry.spoil(refused.clone(), Outcome::Failed { error });
        refused
    }
}

type Dropped = oneshot::error::RecvError;

/// A step that the tool has asked for. Dropping it says what became of it.
struct Step<'a> {
    context: &'a StepContext,
    name: String,
    stage: Stage,
}

enum Stage {
    Beginning(oneshot::Receiver<Begun>),
    Taking,
    Over,
}

impl Step<'_> {
    async fn begun(&mut self) -> Result<Begun, StepRefused> {
        let Stage::Beginning(told) = &mut self.stage else {
            return std::future::pending().await;
        };
        let begun = self.context.told(told).await?;
        self.stage = match begun {
            Begun::Run { .. } => Stage::Taking,
            Begun::Ended(_) => Stage::Over,
        };
        Ok(begun)
    }

    /// Completes once the end is recorded.
    async fn end(mut self, outcome: Outcome) -> Result<(), StepRefused> {
        self.stage = Stage::Over;
        let (tell, told) = oneshot::channel();
        let (steps, name) = (SharedSteps::clone(&self.context.steps), self.name.clone());
        let how = match outcome {
            Outcome::Done { .. } | Outcome::Failed { .. } => Taken::Known,
            Outcome::Unknown { .. } => Taken::Unknown,
        };
        let request = Box::pin(async move {
            let after = record(&steps, &name, outcome).await;
            if let After::GoOn = after {
                // It is fine if the tool does not wait for it.
                let _ = tell.send(());
            }
            after
        });
        self.context.entry.taken(how, request);
        self.context.told(told).await
    }
}

impl Drop for Step<'_> {
    fn drop(&mut self) {
        let (steps, name) = (SharedSteps::clone(&self.context.steps), self.name.clone());
        let entry = &self.context.entry;
        match &mut self.stage {
            Stage::Beginning(told) => {
                told.close();
                // Where it was not begun yet, whoever begins it finds the channel closed.
                if let Ok(Begun::Run { .. }) = told.try_recv() {
                    entry.taken(
                        Taken::Known,
                        Box::pin(async move { record(&steps, &name, let_go()).await }),
                    );
                }
            }
            Stage::Taking => {
                let reason = "its tool let go of it while it was being taken".to_owned();
                let outcome = Outcome::Unknown { reason };
                entry.taken(
                    Taken::Unknown,
                    Box::pin(async move { record(&steps, &name, outcome).await }),
                );
            }
            Stage::Over => {}
        }
    }
}

fn let_go() -> Outcome {
    Outcome::Failed {
        error: "its tool let go of it before it was taken".to_owned(),
    }
}

async fn record(steps: &SharedSteps, name: &str, outcome: Outcome) -> After {
    match steps.end(name, outcome).await {
        Ok(()) => After::GoOn,
        // Its effect may be there, and is not in the journal.
        Err(refused) => After::Spoil {
            end: Outcome::Unknown {
                reason: format!("the step `{name}`: {refused}"),
            },
            refused,
        },
    }
}

fn refused_by(refused: StepRefused) -> After {
    After::Spoil {
        end: Outcome::Failed {
            error: refused.to_string(),
        },
        refused,
    }
}

fn params(args: &impl Serialize) -> Result<Params, String> {
    let args = serde_json::to_value(args).map_err(|error| error.to_string())?;
    if args.is_null() {
        return Ok(Params::default());
    }
    Params::from_value(&args).map_err(|error| error.to_string())
}

fn outcome_of(acted: Result<impl Serialize, StepTrouble>) -> Outcome {
    match acted.map(|result| serde_json::to_string(&result)) {
        Ok(Ok(content)) => Outcome::Done { content },
        Ok(Err(error)) => Outcome::Unknown {
            reason: format!("it was done, but its result has no JSON spelling: {error}"),
        },
        Err(StepTrouble::NoEffect { error }) => Outcome::Failed { error },
        Err(StepTrouble::Unknown { reason }) => Outcome::Unknown { reason },
    }
}
