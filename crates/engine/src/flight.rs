//! Calls to the outside, made after their records are committed; each ends as commands for the driver.

use std::{sync::Arc, time::Duration};

use holdpoint_core::{
    Action, ActionId, ActionStatus, Command, Effect, FramePath, Lookup, ModelTrouble, Outcome,
    Preview, Role, State, Timestamp, Work,
};
use holdpoint_store::{ThreadKey, failpoint};
use holdpoint_tools::{Call, SharedSteps};
use tokio::time::Instant;

use crate::{
    Agent, Engine,
    artifact::Found,
    shown::{self, Again},
};

/// How long after its deadline a tool is given to report that it was stopped.
const GRACE: Duration = Duration::from_millis(500);

/// Names a call to the outside.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Flight {
    Model { frame: FramePath, attempt: u32 },
    Say { frame: FramePath, attempt: u32 },
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
            Work::Say { frame, attempt } => Self::Say {
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
            Self::Model { .. } | Self::Say { .. } | Self::LookUp { .. } => true,
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

    /// What a call that ended in a panic comes to, if anything was recorded of it.
    pub(crate) fn crashed(self) -> Option<Command> {
        let reason = "the code that made the call panicked".to_owned();
        let command = match self {
            Self::Model { frame, attempt } => {
                let trouble = ModelTrouble::Unavailable { error: reason };
                Command::ModelFailed {
                    frame,
                    attempt,
                    trouble,
                }
            }
            Self::Say { .. } => return None,
            Self::Call { action, attempt } => Command::ActionEnded {
                action,
                attempt,
                outcome: Outcome::Unknown { reason },
                artifact: None,
                past: None,
            },
            Self::LookUp { action } => Command::LookedUp {
                action,
                lookup: Lookup::Unknown { reason },
                artifact: None,
            },
        };
        Some(command)
    }
}

/// How a call is made.
pub(crate) enum Way {
    /// By its tool.
    Call,
    /// By its tool, which takes steps.
    Enter(SharedSteps),
    /// It reads what was kept apart, which its tool does not know.
    ReadKept(Found),
}

/// Makes one call, whose *started* record is committed.
pub(crate) async fn make_call(
    engine: Engine,
    thread: ThreadKey,
    agent: Arc<Agent>,
    action: Action,
    attempt: u32,
    now: Timestamp,
    way: Way,
) -> Landing {
    let key = action.idempotency_key(thread.thread);
    let made = outcome_of(&engine, &thread, &agent, &action, &key, now, way).await;
    failpoint::hit("engine.call.after");
    let command = match made {
        Ok(outcome) => {
            let kept = engine.keep_outcome(&thread, &agent, &action, attempt, outcome);
            let (outcome, artifact) = kept.await;
            Command::ActionEnded {
                action: action.id,
                attempt,
                outcome,
                artifact,
                past: None,
            }
        }
        Err(NotMade::Withheld { reason }) => Command::ActionWithheld {
            action: action.id,
            attempt,
            reason,
        },
        Err(NotMade::Outdated(preview)) => match engine.keep_shown(&thread, &preview).await {
            Ok(shown) => Command::ActionOutdated {
                action: action.id,
                attempt,
                reason: format!("{}: that is not what was shown", preview.title),
                shown: Box::new(shown),
            },
            Err(error) => Command::ActionWithheld {
                action: action.id,
                attempt,
                reason: error.to_string(),
            },
        },
    };
    Landing::of(command)
}

/// A call was certainly not made.
enum NotMade {
    /// It may be tried again, and then it is looked at anew whether it may be made.
    Withheld { reason: String },
    /// It would not do any more what was approved, but this.
    Outdated(Box<Preview>),
}

async fn outcome_of(
    engine: &Engine,
    thread: &ThreadKey,
    agent: &Agent,
    action: &Action,
    key: &str,
    now: Timestamp,
    way: Way,
) -> Result<Outcome, NotMade> {
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
    let late = Instant::now() + Duration::from(deadline.since(now));
    // A call is made with most of its time before it, whatever went before.
    let remaining = |what: &str| {
        let remaining = late - Instant::now();
        if remaining < Duration::from(action.tool.timeout) / 2 {
            let reason = format!("{what} took too much of its time");
            return Err(NotMade::Withheld { reason });
        }
        Ok(remaining)
    };
    let basis = action.basis();
    let scope = scope(thread);
    let call = Call {
        tool: name,
        args: &action.params,
        key,
        epoch,
        remaining: remaining("recording that it starts")?,
        step: action.step.as_deref(),
        scope: &scope,
        basis: basis.as_ref(),
    };
    if action.role == Role::Call
        && let Some(changed) = tool.changed(call).await
    {
        let agents = engine.agents();
        let agent = &agent.definition.name;
        let noted = agents.note_change(engine.store(), &thread.tenant, agent, &changed);
        let reason = match noted.await {
            Ok(()) => format!(
                "the MCP server `{}` offers `{name}` otherwise than when this was decided",
                changed.server.name
            ),
            Err(error) => error.to_string(),
        };
        return Err(NotMade::Withheld { reason });
    }
    match shown::look_again(&*tool, action).await {
        Again::Same => {}
        Again::Other(preview) => return Err(NotMade::Outdated(preview)),
        Again::Impossible(error) => return Ok(Outcome::Failed { error }),
    }
    let remaining = remaining("looking at what it would do")?;
    let call = Call { remaining, ..call };
    failpoint::hit("engine.call.before");
    let made = async {
        match way {
            _ if action.role == Role::Compensation => tool.compensate(call).await,
            Way::Enter(steps) => tool.enter(call, steps).await,
            Way::ReadKept(found) => {
                let args = &action.params;
                engine.read_found(&thread.tenant, args, &found).await
            }
            Way::Call => tool.call(call).await,
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

/// Whose calls those of this thread are, for what tools keep between calls.
fn scope(thread: &ThreadKey) -> String {
    format!("{}/{}", thread.tenant, thread.thread)
}

/// Asks a tool what became of a call.
pub(crate) async fn look_up(
    engine: Engine,
    thread: ThreadKey,
    agent: Arc<Agent>,
    action: Action,
    epoch: u64,
) -> Landing {
    let key = action.idempotency_key(thread.thread);
    let scope = scope(&thread);
    let tool = agent
        .at(&action.frame)
        .and_then(|agent| agent.runner(&action.tool.name));
    let lookup = match tool {
        None => Lookup::Unknown {
            reason: format!("there is no tool `{}`", action.tool.name),
        },
        Some(tool) => {
            let remaining = Duration::from(action.tool.timeout);
            let basis = action.basis();
            let call = Call {
                tool: &action.tool.name,
                args: &action.params,
                key: &key,
                epoch,
                remaining,
                step: action.step.as_deref(),
                scope: &scope,
                basis: basis.as_ref(),
            };
            let asked = tokio::time::timeout(remaining + GRACE, tool.lookup(call)).await;
            asked.unwrap_or_else(|_| Lookup::Unknown {
                reason: "it did not end by its deadline".to_owned(),
            })
        }
    };
    let kept = engine.keep_lookup(&thread, &agent, &action, lookup);
    let (lookup, artifact) = kept.await;
    Landing::of(Command::LookedUp {
        action: action.id,
        lookup,
        artifact,
    })
}
