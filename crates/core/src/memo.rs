//! What a stepped tool has behind it: its finished steps and its answers, folded from the journal.
//!
//! The head does not hold this, so that it does not grow with the results. A driver folds it once and keeps it while it
//! drives, like the conversation.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    ActionId, AfterLate, AfterLookup, AfterUnknown, Decision, Digest, Effect, Event, Finish,
    InterruptId, InterruptStatus, Lookup, Outcome, Params, Prompt, Subject,
};

/// The memos of all stepped tools that are open.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Memos {
    open: BTreeMap<ActionId, Memo>,
    /// Which step an action is, or undoes.
    steps: BTreeMap<ActionId, (ActionId, String)>,
    /// Which step a compensation undoes.
    undoing: BTreeMap<ActionId, ActionId>,
    /// Which call asked a question, and under what name.
    questions: BTreeMap<InterruptId, (ActionId, String)>,
}

/// What one call of a stepped tool has behind it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Memo {
    steps: BTreeMap<String, StepMemo>,
    answers: BTreeMap<String, AnswerMemo>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct StepMemo {
    effect: Effect,
    params: Params,
    end: Option<StepEnd>,
}

/// How a step ended, for good: a step that is settled is never taken again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepEnd {
    /// It was done, with this result.
    Done {
        /// The result.
        result: Value,
    },
    /// It is not done.
    NotDone {
        /// Why.
        error: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct AnswerMemo {
    /// The question; `None` for a sleep.
    question: Option<Digest>,
    answer: Option<Recalled>,
}

/// What a stepped tool gets for something that it waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recalled {
    /// This answer.
    Answer {
        /// What was said.
        value: Value,
    },
    /// Nobody answered in time.
    TimedOut,
    /// The sleep is over.
    Slept,
}

impl Memos {
    /// What this call has behind it.
    #[must_use]
    pub fn of(&self, action: ActionId) -> Memo {
        self.open.get(&action).cloned().unwrap_or_default()
    }

    /// Adds what an event contributes.
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::StepStarted {
                action,
                step,
                name,
                effect,
                params,
                ..
            } => {
                self.steps.insert(*step, (*action, name.clone()));
                let memo = self.open.entry(*action).or_default();
                memo.steps.entry(name.clone()).or_insert_with(|| StepMemo {
                    effect: *effect,
                    params: params.clone(),
                    end: None,
                });
            }
            Event::Suspended {
                action,
                name,
                interrupt,
            } => {
                self.questions.insert(*interrupt, (*action, name.clone()));
            }
            Event::InterruptRaised(interrupt) => {
                for ask in &interrupt.asks {
                    if let Subject::Question {
                        action: Some(action),
                        name,
                        prompt,
                    } = &ask.subject
                    {
                        let asker = (*action, name.clone());
                        self.questions.insert(interrupt.id, asker);
                        self.wait(*action, name, Some(prompt.digest()));
                    }
                }
            }
            Event::Slept { action, name, .. } => self.wait(*action, name, None),
            Event::Woken { action } => {
                let memo = self.open.entry(*action).or_default();
                let mut sleeps = memo.answers.values_mut();
                let asleep =
                    |memo: &&mut AnswerMemo| memo.question.is_none() && memo.answer.is_none();
                if let Some(sleep) = sleeps.find(asleep) {
                    sleep.answer = Some(Recalled::Slept);
                }
            }
            Event::Answered {
                interrupt,
                decisions,
                ..
            } => {
                if let Some(decided) = decisions.first() {
                    self.answered(*interrupt, &decided.decision);
                }
                for decided in decisions {
                    self.decided(decided.action_id, &decided.decision);
                }
            }
            Event::InterruptClosed {
                interrupt,
                status: InterruptStatus::Timeout,
                ..
            } => self.recall(*interrupt, Recalled::TimedOut),
            Event::ActionFinished {
                action, outcome, ..
            } => match outcome {
                Finish::Done { content } => self.done(*action, result_of(content)),
                Finish::Failed { error } => self.not_done(*action, error),
            },
            Event::ActionUnknown {
                action,
                reason,
                then: AfterUnknown::GiveUp,
                ..
            } => self.not_done(*action, reason),
            Event::ActionLookedUp {
                action,
                lookup,
                then,
                ..
            } => match (then, lookup) {
                (AfterLookup::Settled, Lookup::Committed { receipt }) => {
                    self.done(*action, receipt.clone());
                }
                (AfterLookup::NotDone, _) => self.not_done(*action, "it was not done"),
                (_, _) => {}
            },
            Event::LateOutcome {
                action,
                outcome,
                then: AfterLate::Settled,
                ..
            } => match outcome {
                Outcome::Done { content } => self.done(*action, result_of(content)),
                Outcome::Failed { error } => self.not_done(*action, error),
                Outcome::Unknown { .. } => {}
            },
            Event::CompensationBound {
                action,
                compensation,
            } => {
                self.undoing.insert(*compensation, *action);
            }
            Event::StopRequested { closed, .. } => {
                for action in closed {
                    self.open.remove(action);
                }
            }
            Event::RunEnded { .. } => *self = Self::default(),
            Event::ThreadCreated { .. }
            | Event::Forked { .. }
            | Event::RunStarted { .. }
            | Event::ModelStarted { .. }
            | Event::FrameWoken { .. }
            | Event::ModelReplied { .. }
            | Event::OutputHeld { .. }
            | Event::ModelFailed { .. }
            | Event::InterruptClosed { .. }
            | Event::ActionStarted { .. }
            | Event::ActionUnknown { .. }
            | Event::ActionWithheld { .. }
            | Event::LateOutcome { .. }
            | Event::WarrantVoided { .. }
            | Event::Repinned { .. }
            | Event::Restored { .. }
            | Event::Paused
            | Event::Continued
            | Event::FrameOpened { .. }
            | Event::FrameClosed { .. }
            | Event::Yielded { .. }
            | Event::GrantKept(_)
            | Event::GrantUsed { .. }
            | Event::GrantRevoked { .. } => {}
        }
    }

    fn wait(&mut self, action: ActionId, name: &str, question: Option<Digest>) {
        let memo = self.open.entry(action).or_default();
        let waits = AnswerMemo {
            question,
            answer: None,
        };
        memo.answers.entry(name.to_owned()).or_insert(waits);
    }

    fn answered(&mut self, interrupt: InterruptId, decision: &Decision) {
        let value = match decision {
            Decision::Answer { value } => value.clone(),
            Decision::Approve { .. } => serde_json::json!({"approved": true}),
            Decision::Reject { message: None } => serde_json::json!({"approved": false}),
            Decision::Reject {
                message: Some(reason),
            } => serde_json::json!({"approved": false, "reason": reason}),
            Decision::Edit { .. }
            | Decision::Respond { .. }
            | Decision::Committed { .. }
            | Decision::NotCommitted
            | Decision::Compensate => return,
        };
        self.recall(interrupt, Recalled::Answer { value });
    }

    fn recall(&mut self, interrupt: InterruptId, answer: Recalled) {
        if let Some((action, name)) = self.questions.remove(&interrupt)
            && let Some(memo) = self.open.get_mut(&action)
            && let Some(waits) = memo.answers.get_mut(&name)
        {
            waits.answer = Some(answer);
        }
    }

    /// What a person said of a step that was in doubt.
    fn decided(&mut self, action: ActionId, decision: &Decision) {
        match decision {
            Decision::Committed { result } => self.done(action, result.clone()),
            Decision::Reject { .. } => self.not_done(action, "a person gave it up"),
            Decision::Approve { .. }
            | Decision::Edit { .. }
            | Decision::Respond { .. }
            | Decision::NotCommitted
            | Decision::Compensate
            | Decision::Answer { .. } => {}
        }
    }

    fn done(&mut self, action: ActionId, result: Value) {
        if let Some(undone) = self.undoing.get(&action).copied() {
            return self.end(
                undone,
                StepEnd::NotDone {
                    error: "it was undone by its compensation".to_owned(),
                },
            );
        }
        self.end(action, StepEnd::Done { result });
        self.open.remove(&action);
    }

    fn not_done(&mut self, action: ActionId, error: &str) {
        // A compensation that failed or was given up says that the effect stands, which is not how the step ended.
        let step = self.undoing.get(&action).copied().unwrap_or(action);
        let error = if step == action {
            error.to_owned()
        } else {
            format!("it took effect, and undoing it failed: {error}")
        };
        self.end(step, StepEnd::NotDone { error });
        self.open.remove(&action);
    }

    fn end(&mut self, step: ActionId, end: StepEnd) {
        if let Some((action, name)) = self.steps.get(&step)
            && let Some(memo) = self.open.get_mut(action)
            && let Some(step) = memo.steps.get_mut(name)
        {
            step.end = Some(end);
        }
    }
}

/// A step's result as it was stored.
fn result_of(content: &str) -> Value {
    serde_json::from_str(content).unwrap_or_else(|_| Value::String(content.to_owned()))
}

/// Why a stepped tool may not do what it wants.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Misnamed {
    /// A step of this name was begun with other arguments.
    #[error(
        "the step `{0}` was begun before with other arguments or another effect; give every step a name of its own"
    )]
    OtherStep(String),
    /// Another question was asked under this name.
    #[error(
        "another question was asked under the name `{0}`; give every question and every sleep a name of its own"
    )]
    OtherQuestion(String),
}

impl Memo {
    /// How the step of this name ended, if it did.
    ///
    /// # Errors
    ///
    /// The name stands for another step.
    pub fn step(
        &self,
        name: &str,
        effect: Effect,
        params: &Params,
    ) -> Result<Option<&StepEnd>, Misnamed> {
        match self.steps.get(name) {
            None => Ok(None),
            Some(step) if step.effect == effect && step.params == *params => Ok(step.end.as_ref()),
            Some(_) => Err(Misnamed::OtherStep(name.to_owned())),
        }
    }

    /// What was answered to this question, if it was.
    ///
    /// # Errors
    ///
    /// The name stands for another question.
    pub fn answer(&self, name: &str, prompt: &Prompt) -> Result<Option<&Recalled>, Misnamed> {
        self.waited(name, Some(prompt.digest()))
    }

    /// Whether this sleep is over. How long it was to last does not matter: that may be counted from when it was begun.
    ///
    /// # Errors
    ///
    /// The name stands for a question.
    pub fn sleep(&self, name: &str) -> Result<Option<&Recalled>, Misnamed> {
        self.waited(name, None)
    }

    fn waited(&self, name: &str, question: Option<Digest>) -> Result<Option<&Recalled>, Misnamed> {
        match self.answers.get(name) {
            None => Ok(None),
            Some(waits) if waits.question == question => Ok(waits.answer.as_ref()),
            Some(_) => Err(Misnamed::OtherQuestion(name.to_owned())),
        }
    }

    /// Whether the step of this name ended, whatever it was.
    #[must_use]
    pub fn has_ended(&self, step: &str) -> bool {
        self.steps.get(step).is_some_and(|step| step.end.is_some())
    }

    /// How the step of this name ended, if it did and had these arguments. Its effect may have been another one: what a step
    /// came to stays true where its tool is held to be graver by now.
    #[must_use]
    pub fn ended_with(&self, step: &str, params: &Params) -> Option<&StepEnd> {
        let step = self.steps.get(step)?;
        step.end.as_ref().filter(|_| step.params == *params)
    }

    /// What there is for a name that was waited for, whatever was asked under it.
    #[must_use]
    pub fn recalled(&self, name: &str) -> Option<&Recalled> {
        self.answers.get(name)?.answer.as_ref()
    }

    /// All steps that ended, by name: `{"result": …}` or `{"error": …}`.
    #[must_use]
    pub fn steps(&self) -> serde_json::Map<String, Value> {
        let ended = self.steps.iter().filter_map(|(name, step)| {
            let end = match step.end.as_ref()? {
                StepEnd::Done { result } => serde_json::json!({"result": result}),
                StepEnd::NotDone { error } => serde_json::json!({"error": error}),
            };
            Some((name.clone(), end))
        });
        ended.collect()
    }

    /// All that was waited for, by name: `{"answer": …}`, `{"timeout": true}` or `{"slept": true}`.
    #[must_use]
    pub fn answers(&self) -> serde_json::Map<String, Value> {
        let there = self.answers.iter().filter_map(|(name, waits)| {
            let answer = match waits.answer.as_ref()? {
                Recalled::Answer { value } => serde_json::json!({"answer": value}),
                Recalled::TimedOut => serde_json::json!({"timeout": true}),
                Recalled::Slept => serde_json::json!({"slept": true}),
            };
            Some((name.clone(), answer))
        });
        there.collect()
    }
}
