//! Calls to the outside, made after their records are committed; each ends as commands for the driver.

use std::{sync::Arc, time::Duration};

use holdpoint_core::{
    Action, ActionId, ActionStatus, Command, Effect, FramePath, Lookup, ModelTrouble, Outcome,
    Role, State, Timestamp, Work,
};
use holdpoint_store::failpoint;
use holdpoint_tools::{Call, SharedSteps};

use crate::Agent;

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
    pub(crate) fn of(command: Command) -> Self {
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
        basis: None,
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
                basis: None,
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
