//! Calls to the outside, made after their records are committed; each ends as commands for the driver.

use std::{sync::Arc, time::Duration};

use holdpoint_core::{
    Action, ActionId, ActionStatus, Command, Effect, FramePath, Grant, JudgedCall, Lookup,
    ModelTrouble, Outcome, Principal, Role, RunId, State, Timestamp, Transcript, Usage, Verdict,
    Work,
};
use holdpoint_models::{Delta, Failure, Reply, Request};
use holdpoint_store::{Epoch, ThreadKey, failpoint};
use holdpoint_tools::{Call, SharedSteps};

use crate::{Agent, Engine, Said, judge::Caller};

/// How long after its deadline a tool is given to report that it was stopped.
const GRACE: Duration = Duration::from_millis(500);

/// Names a call to the outside.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Flight {
    Model { frame: FramePath, attempt: u32 },
    Call { action: ActionId, attempt: u32 },
    LookUp { action: ActionId },
}

/// A call that ended.
#[derive(Debug)]
pub(crate) struct Landing {
    pub(crate) commands: Vec<Command>,
}

impl Landing {
    fn of(command: Command) -> Self {
        Self {
            commands: vec![command],
        }
    }
}

impl Flight {
    /// The call that this work is, or would be.
    pub(crate) fn of(work: &Work) -> Self {
        match work {
            Work::CallModel { frame, .. } => Self::Model {
                frame: frame.clone(),
                attempt: 0,
            },
            Work::AwaitModel { frame, attempt } => Self::Model {
                frame: frame.clone(),
                attempt: *attempt,
            },
            Work::Start { action, .. } => Self::Call {
                action: *action,
                attempt: 0,
            },
            Work::Settle {
                action, attempt, ..
            } => Self::Call {
                action: *action,
                attempt: *attempt,
            },
            Work::LookUp { action, .. } => Self::LookUp { action: *action },
        }
    }

    /// Whether the call may be dropped when nobody waits for it: it has no effect that would be lost.
    pub(crate) fn may_be_dropped(&self, state: &State) -> bool {
        match self {
            Self::Model { .. } | Self::LookUp { .. } => true,
            // An action that a stop has closed while it was in flight was a read, or a stepped tool between two steps.
            Self::Call { action, .. } => state.actions.get(action).is_none_or(|action| {
                if action.is_entered() {
                    !state.steps_of(action.id).any(Action::is_in_flight)
                } else {
                    action.tool.effect == Effect::Read
                }
            }),
        }
    }

    /// What a call that ended in a panic comes to.
    pub(crate) fn crashed(self) -> Command {
        let reason = "the code that made the call panicked".to_owned();
        match self {
            Self::Model { frame, attempt } => {
                let trouble = ModelTrouble::Unavailable { error: reason };
                Command::ModelFailed {
                    frame,
                    attempt,
                    trouble,
                }
            }
            Self::Call { action, attempt } => Command::ActionEnded {
                action,
                attempt,
                outcome: Outcome::Unknown { reason },
                past: None,
            },
            Self::LookUp { action } => Command::LookedUp {
                action,
                lookup: Lookup::Unknown { reason },
            },
        }
    }
}

/// One call of a model.
pub(crate) struct Turn {
    pub(crate) frame: FramePath,
    pub(crate) attempt: u32,
    /// For this run.
    pub(crate) run: RunId,
    /// By the driver with this epoch.
    pub(crate) epoch: Epoch,
    /// How long it may take.
    pub(crate) limit: Duration,
    /// Who asked for the run.
    pub(crate) user: Principal,
    /// The grants of the thread.
    pub(crate) grants: Vec<Grant>,
    /// How many more calls may wait for people.
    pub(crate) room: usize,
}

/// Takes one turn of a model.
pub(crate) async fn call_model(
    engine: &Engine,
    key: &ThreadKey,
    agent: &Agent,
    transcript: &Transcript,
    turn: Turn,
) -> Landing {
    let Turn {
        frame,
        attempt,
        run,
        epoch,
        limit,
        user,
        grants,
        room,
    } = turn;
    let (Some(thinker), Some(conversation)) = (agent.at(&frame), transcript.frame(&frame)) else {
        let error = format!("there is no subagent at `{frame}` any more");
        let trouble = ModelTrouble::Rejected { error };
        return Landing::of(Command::ModelFailed {
            frame,
            attempt,
            trouble,
        });
    };
    let definition = &thinker.definition;
    let request = Request {
        system: definition.system_prompt.as_deref(),
        messages: conversation.settled(),
        tools: thinker.offered(),
        attempt,
    };
    let mut said = 0;
    let mut deltas = |delta: Delta| {
        let Delta::Text(text) = delta else { return };
        engine.tell_said(
            key,
            Said {
                run,
                frame: &frame,
                attempt,
                epoch,
                from: said,
                text: &text,
            },
        );
        said += text.len();
    };
    let turn = tokio::time::timeout(limit, thinker.model().turn(request, &mut deltas)).await;
    let command = match turn.unwrap_or(Err(Failure::Timeout)) {
        Ok(Reply { text, calls, usage }) => {
            let judged = async {
                let is_restricted = calls.iter().any(|it| thinker.is_restricted(&it.name));
                let user = if is_restricted {
                    engine.with_rights_of_now(&user).await?
                } else {
                    user
                };
                let caller = Caller {
                    root: agent,
                    frame: &frame,
                    user: &user,
                };
                engine.judged(key, caller, calls, &grants).await
            };
            let calls = match judged.await {
                Ok(calls) => calls,
                Err(error) => {
                    let error = error.to_string();
                    let trouble = ModelTrouble::Unavailable { error };
                    return Landing::of(Command::ModelFailed {
                        frame,
                        attempt,
                        trouble,
                    });
                }
            };
            let usage = Usage {
                input_tokens: usage.input_tokens,
                output_tokens: usage.output_tokens,
            };
            Command::ModelReplied {
                frame,
                attempt,
                text,
                calls: within(room, calls),
                mode: definition.interrupt_mode,
                usage,
                confirm: definition.confirm.clone().map(Box::new),
            }
        }
        Err(failure) => Command::ModelFailed {
            frame,
            attempt,
            trouble: trouble(&failure),
        },
    };
    Landing::of(command)
}

/// Refuses what would make more calls wait for people than there is room for.
fn within(room: usize, mut calls: Vec<JudgedCall>) -> Vec<JudgedCall> {
    let asked = |call: &&mut JudgedCall| {
        let judged = call.judged.as_ref();
        judged.is_ok_and(|it| matches!(it.verdict, Verdict::Ask(_)) && it.reserved.is_none())
    };
    for call in calls.iter_mut().filter(asked).skip(room) {
        call.judged = Err(format!(
            "Too many calls wait for a person's approval. `{}` was not executed. Ask for fewer at once.",
            call.call.name
        ));
    }
    calls
}

fn trouble(failure: &Failure) -> ModelTrouble {
    let error = failure.to_string();
    match failure {
        Failure::Timeout => ModelTrouble::TimedOut { error },
        Failure::RateLimited { retry_after, .. } => ModelTrouble::RateLimited {
            error,
            retry_after: *retry_after,
        },
        Failure::Rejected { .. } => ModelTrouble::Rejected { error },
        Failure::Unavailable { .. } => ModelTrouble::Unavailable { error },
        // What this version does not know may be over by the next attempt.
        _ => ModelTrouble::Unavailable { error },
    }
}

/// Makes one call, whose *started* record is committed.
pub(crate) async fn make_call(
    agent: Arc<Agent>,
    action: Action,
    attempt: u32,
    key: String,
    now: Timestamp,
    steps: Option<SharedSteps>,
) -> Landing {
    let made = outcome_of(&agent, &action, &key, now, steps).await;
    failpoint::hit("engine.call.after");
    let action = action.id;
    let command = match made {
        Ok(outcome) => Command::ActionEnded {
            action,
            attempt,
            outcome,
            past: None,
        },
        Err(TooLate { reason }) => Command::ActionWithheld {
            action,
            attempt,
            reason,
        },
    };
    Landing {
        commands: vec![command],
    }
}

/// A call was not made, because too little of its time was left when its record was committed.
struct TooLate {
    reason: String,
}

async fn outcome_of(
    agent: &Agent,
    action: &Action,
    key: &str,
    now: Timestamp,
    steps: Option<SharedSteps>,
) -> Result<Outcome, TooLate> {
    let name = &action.tool.name;
    let ActionStatus::Started {
        epoch, deadline, ..
    } = action.status
    else {
        return Ok(Outcome::Failed {
            error: format!("`{name}` was not made: it is not recorded as started"),
        });
    };
    let Some(tool) = agent.at(&action.frame).and_then(|agent| agent.runner(name)) else {
        return Ok(Outcome::Failed {
            error: format!("`{name}` was not made: there is no such tool"),
        });
    };
    let remaining = Duration::from(deadline.since(now));
    if remaining < Duration::from(action.tool.timeout) / 2 {
        let reason = "recording that it starts took too much of its time".to_owned();
        return Err(TooLate { reason });
    }
    failpoint::hit("engine.call.before");
    let call = Call {
        tool: name,
        args: &action.params,
        key,
        epoch,
        remaining,
        step: action.step.as_deref(),
    };
    let made = async {
        match steps {
            _ if action.role == Role::Compensation => tool.compensate(call).await,
            Some(steps) => tool.enter(call, steps).await,
            None => tool.call(call).await,
        }
    };
    let timed = tokio::time::timeout(remaining + GRACE, made);
    let ended = watched(timed).await;
    Ok(ended.unwrap_or_else(|_| Outcome::Unknown {
        reason: "it did not end by its deadline".to_owned(),
    }))
}

/// Passes a point while the call is in flight, where tests can kill the process.
#[cfg(feature = "failpoints")]
async fn watched<T>(call: impl Future<Output = T>) -> T {
    let mut call = std::pin::pin!(call);
    tokio::select! {
        ended = &mut call => return ended,
        () = tokio::time::sleep(Duration::from_millis(60)) => failpoint::hit("engine.call.running"),
    }
    call.await
}

#[cfg(not(feature = "failpoints"))]
async fn watched<T>(call: impl Future<Output = T>) -> T {
    call.await
}

/// Asks a tool what became of a call.
pub(crate) async fn look_up(agent: Arc<Agent>, action: Action, key: String, epoch: u64) -> Landing {
    let tool = agent
        .at(&action.frame)
        .and_then(|agent| agent.runner(&action.tool.name));
    let lookup = match tool {
        None => Lookup::Unknown {
            reason: format!("there is no tool `{}`", action.tool.name),
        },
        Some(tool) => {
            let remaining = Duration::from(action.tool.timeout);
            let call = Call {
                tool: &action.tool.name,
                args: &action.params,
                key: &key,
                epoch,
                remaining,
                step: action.step.as_deref(),
            };
            let asked = tokio::time::timeout(remaining + GRACE, tool.lookup(call)).await;
            asked.unwrap_or_else(|_| Lookup::Unknown {
                reason: "it did not end by its deadline".to_owned(),
            })
        }
    };
    Landing {
        commands: vec![Command::LookedUp {
            action: action.id,
            lookup,
        }],
    }
}
