//! The fold: how each event changes the head.
//!
//! `apply` is total. It checks nothing, because `decide` did, and because the past cannot be refused; an event that does
//! not fit (which only a damaged journal could hold) changes nothing.

mod answer;
mod settle;

use std::collections::BTreeMap;

use crate::{
    Action, ActionStatus, Active, Actor, AfterLate, AfterLookup, AfterModel, AfterUnknown, Called,
    Doubt, Event, Fate, Finish, Frame, FramePath, FramePhase, InterruptId, Outcome, Params, Phase,
    Role, Run, Seen, State, Subject, Timestamp, ToolFacts, Warrant, WarrantFrom,
};

pub(crate) use self::settle::is_wanted;
use self::{
    answer::answered,
    settle::{bind_compensation, close, finished, look_up, make_ready, unsettle},
};

/// Applies one event, which `by` caused at `at`, to the head.
pub fn apply(state: &mut State, at: Timestamp, by: &Actor, event: &Event) {
    state.version += 1;
    state.now = state.now.max(at);
    match event {
        Event::ThreadCreated {
            thread,
            tenant,
            agent,
            session,
        } => {
            state.thread = *thread;
            state.tenant.clone_from(tenant);
            state.agent.clone_from(agent);
            state.session.clone_from(session);
        }
        Event::RunStarted {
            run,
            definition,
            input: _,
            plan_version,
            limits,
            requester,
        } => {
            let root = Frame {
                phase: FramePhase::Turn {
                    failures: 0,
                    not_before: None,
                },
                rejected: BTreeMap::new(),
            };
            let active = Active {
                limits: *limits,
                turns: 0,
                calls: 0,
                worked: crate::Span::ZERO,
                busy_since: None,
                stop: None,
                frames: BTreeMap::from([(FramePath::root(), root)]),
            };
            state.plan_version = *plan_version;
            state.run = Some(Run {
                id: *run,
                definition: *definition,
                requester: requester.clone(),
                started_at: at,
                phase: Phase::Active(active),
            });
        }
        Event::ModelStarted {
            frame,
            attempt,
            epoch,
        } => {
            if let Some(active) = state.active_mut() {
                active.turns += u32::from(*attempt == 1);
                active.busy_since.get_or_insert(at);
            }
            set_phase(
                state,
                frame,
                FramePhase::Thinking {
                    attempt: *attempt,
                    epoch: *epoch,
                },
            );
        }
        Event::ModelReplied {
            frame,
            text: _,
            calls,
            interrupt,
            usage: _,
        } => {
            model_replied(state, frame, calls, *interrupt);
            rest(state, at, Seen::ByItsDriver);
        }
        Event::ModelFailed {
            frame,
            attempt,
            error,
            seen,
            then,
        } => {
            let phase = match then {
                AfterModel::RetryAt { at } => FramePhase::Turn {
                    failures: *attempt,
                    not_before: Some(*at),
                },
                AfterModel::Ask => FramePhase::Stuck {
                    error: error.clone(),
                },
            };
            set_phase(state, frame, phase);
            rest(state, at, *seen);
        }
        Event::InterruptRaised(interrupt) => {
            for ask in &interrupt.asks {
                let Some(action) = state.actions.get_mut(&ask.action_id) else {
                    continue;
                };
                action.status = match (&ask.subject, action.warrant()) {
                    (Subject::Effect { .. }, Some(warrant)) => ActionStatus::InDoubt {
                        warrant: warrant.clone(),
                        interrupt: interrupt.id,
                    },
                    (Subject::Effect { .. }, None)
                    | (Subject::Action { .. } | Subject::Model, _) => ActionStatus::Held {
                        interrupt: interrupt.id,
                    },
                };
            }
            if let Some(old) = interrupt.supersedes {
                // What only waited for the old question waits for the new one.
                for action in state.actions.values_mut() {
                    if action.status == (ActionStatus::Held { interrupt: old }) {
                        action.status = ActionStatus::Held {
                            interrupt: interrupt.id,
                        };
                    }
                }
            }
            state.interrupts.insert(interrupt.id, (**interrupt).clone());
        }
        Event::Answered {
            interrupt,
            status: _,
            decisions,
            roles: _,
            permissions: _,
        } => answered(state, at, by, *interrupt, decisions),
        Event::InterruptClosed { interrupt, .. } => {
            state.interrupts.remove(interrupt);
        }
        Event::ActionStarted {
            action,
            attempt,
            key: _,
            epoch,
            deadline,
        } => {
            if let Some(action) = state.actions.get_mut(action)
                && let Some(warrant) = action.warrant().cloned()
            {
                action.attempts = *attempt;
                action.settle_at = Some(*deadline + action.tool.settle);
                action.status = ActionStatus::Started {
                    warrant,
                    epoch: *epoch,
                    deadline: *deadline,
                };
            }
            if let Some(active) = state.active_mut() {
                active.busy_since.get_or_insert(at);
            }
        }
        Event::ActionFinished {
            action,
            attempt: _,
            outcome,
        } => {
            finished(state, *action, matches!(outcome, Finish::Done { .. }));
            rest(state, at, Seen::ByItsDriver);
        }
        Event::ActionUnknown {
            action,
            attempt: _,
            reason: _,
            seen,
            then,
        } => {
            if let (Seen::ByItsDriver, Some(action)) = (seen, state.actions.get_mut(action)) {
                // The call has ended, so only the time an effect takes to appear is left to wait.
                let settled = at + action.tool.settle;
                action.settle_at = action.settle_at.map(|old| old.min(settled));
            }
            match then {
                AfterUnknown::RetryAt { at } => make_ready(state, *action, Some(*at)),
                AfterUnknown::LookUpAt { at } => {
                    // By the clock that the lookup waits for, which may lag behind the journal's time.
                    if let Some(action) = state.actions.get_mut(action) {
                        action.settle_at = Some(*at);
                    }
                    look_up(state, *action, 0, *at);
                }
                AfterUnknown::Ask => unsettle(state, *action),
                AfterUnknown::GiveUp => close(state, *action),
            }
            rest(state, at, *seen);
        }
        Event::ActionLookedUp {
            action,
            lookup: _,
            then,
        } => match then {
            AfterLookup::Settled => finished(state, *action, true),
            AfterLookup::RetryAt { at } => make_ready(state, *action, Some(*at)),
            AfterLookup::NotDone => close(state, *action),
            AfterLookup::LookUpAt { at } => {
                let lookups = match state.actions.get(action).map(|action| &action.status) {
                    Some(ActionStatus::Unknown { lookups, .. }) => *lookups,
                    Some(_) | None => 0,
                };
                look_up(state, *action, lookups + 1, *at);
            }
            AfterLookup::Ask => unsettle(state, *action),
        },
        Event::LateOutcome {
            action,
            attempt: _,
            outcome,
            then,
        } => {
            match then {
                AfterLate::Recorded => {}
                AfterLate::Settled => {
                    finished(state, *action, matches!(outcome, Outcome::Done { .. }))
                }
                AfterLate::Noted => {
                    if let Some(action) = state.actions.get_mut(action)
                        && action.doubt == Doubt::None
                    {
                        action.doubt = Doubt::EarlierAttemptDone;
                    }
                }
                AfterLate::Contradicts { reopened } => {
                    state.actions.insert(reopened.id, (**reopened).clone());
                }
            }
            rest(state, at, Seen::ByAnother);
        }
        Event::WarrantVoided {
            action,
            reason: _,
            interrupt,
        } => {
            if let Some(action) = state.actions.get_mut(action) {
                action.status = ActionStatus::Held {
                    interrupt: *interrupt,
                };
            }
        }
        Event::CompensationBound {
            action,
            compensation,
        } => bind_compensation(state, *action, *compensation),
        Event::Repinned {
            definition,
            interrupt,
            actions,
        } => {
            if let Some(run) = &mut state.run {
                run.definition = *definition;
            }
            for restated in actions {
                // Of what was started nothing may be forgotten.
                if let Some(action) = state.actions.get_mut(&restated.action)
                    && matches!(
                        action.status,
                        ActionStatus::Held { .. } | ActionStatus::Ready { .. }
                    )
                    && action.attempts == 0
                {
                    action.definition = *definition;
                    action.tool = restated.tool.clone();
                    action.params_hash = restated.params_hash;
                    action.verdict = restated.verdict.clone();
                    action.status = ActionStatus::Held {
                        interrupt: *interrupt,
                    };
                }
            }
        }
        Event::StopRequested { stop, closed } => {
            for action in closed {
                state.actions.remove(action);
            }
            if let Some(active) = state.active_mut() {
                active.stop = Some(stop.clone());
                for frame in active.frames.values_mut() {
                    frame.phase = FramePhase::Acting;
                }
            }
            rest(state, at, Seen::ByItsDriver);
        }
        Event::RunEnded { outcome } => {
            if let Some(run) = &mut state.run {
                run.phase = Phase::Ended(outcome.clone());
            }
        }
    }
}

fn set_phase(state: &mut State, path: &FramePath, phase: FramePhase) {
    if let Some(frame) = state
        .active_mut()
        .and_then(|active| active.frames.get_mut(path))
    {
        frame.phase = phase;
    }
}

/// Counts the time since something was in flight as work, once nothing is.
fn rest(state: &mut State, at: Timestamp, seen: Seen) {
    if state.in_flight() {
        return;
    }
    if let Some(active) = state.active_mut()
        && let Some(since) = active.busy_since.take()
    {
        match seen {
            Seen::ByItsDriver => active.worked = active.worked.saturating_add(at.since(since)),
            Seen::ByAnother => {}
        }
    }
}

fn model_replied(
    state: &mut State,
    path: &FramePath,
    calls: &[Called],
    interrupt: Option<InterruptId>,
) {
    let Some((run, definition)) = state.run.as_ref().map(|run| (run.id, run.definition)) else {
        return;
    };
    let plan_version = state.plan_version;
    let mut acting = false;
    for (order, called) in calls.iter().enumerate() {
        let Fate::Action {
            id,
            version,
            effect,
            timeout,
            settle,
            hooks,
            verdict,
        } = &called.fate
        else {
            continue;
        };
        acting = true;
        let tool = ToolFacts {
            name: called.call.name.clone(),
            version: version.clone(),
            effect: *effect,
            timeout: *timeout,
            settle: *settle,
            hooks: *hooks,
        };
        let params = Params::from_stored(&called.call.arguments);
        let params_hash = params.hash(&tool.name, &tool.version);
        let warrant = Warrant {
            from: WarrantFrom::Policy,
            params_hash,
            tool_version: version.clone(),
            plan_version,
        };
        let status = match interrupt {
            Some(interrupt) => ActionStatus::Held { interrupt },
            None => ActionStatus::Ready {
                warrant,
                not_before: None,
            },
        };
        let action = Action {
            id: *id,
            run,
            frame: path.clone(),
            parent: None,
            role: Role::Call,
            call_id: called.call.id.clone(),
            order: u32::try_from(order).unwrap_or(u32::MAX),
            version: 1,
            definition,
            tool,
            params,
            params_hash,
            verdict: verdict.clone(),
            attempts: 0,
            settle_at: None,
            doubt: Doubt::None,
            status,
        };
        state.actions.insert(*id, action);
    }
    if let Some(active) = state.active_mut() {
        active.calls = active
            .calls
            .saturating_add(u32::try_from(calls.len()).unwrap_or(u32::MAX));
    }
    let phase = if acting {
        FramePhase::Acting
    } else {
        FramePhase::Turn {
            failures: 0,
            not_before: None,
        }
    };
    set_phase(state, path, phase);
}
