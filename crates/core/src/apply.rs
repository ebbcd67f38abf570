//! The fold: how each event changes the head.
//!
//! `apply` is total. It checks nothing, because `decide` did, and because the past cannot be refused; an event that does
//! not fit (which only a damaged journal could hold) changes nothing.

mod answer;
mod frame;
mod guard;
mod restore;
mod settle;
mod step;

use std::collections::BTreeMap;

use crate::{
    Action, ActionStatus, Active, Actor, AfterLate, AfterLookup, AfterModel, AfterUnknown, Allowed,
    Called, Digest, Doubt, Event, Fate, Finish, Frame, FramePath, FramePhase, GrantId, InterruptId,
    Origin, Outcome, Params, Phase, Role, Run, Seen, State, Subject, Terms, ThreadKind, Timestamp,
    ToolFacts, ToolKind, Usage, Verdict, Wait,
};

pub(crate) use self::settle::{is_wanted, may_be_retried};
use self::{
    answer::{answered, withdrawn},
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
            kind,
        } => {
            state.thread = *thread;
            state.kind = *kind;
            state.tenant.clone_from(tenant);
            state.agent.clone_from(agent);
            state.session.clone_from(session);
        }
        Event::Forked {
            parent,
            at,
            hash,
            depth,
            head,
        } => {
            state.forked = Some(Origin {
                parent: *parent,
                at: *at,
                hash: *hash,
                depth: *depth,
            });
            state.plan_version = head.plan_version;
            state.run.clone_from(&head.run);
            state.actions.clone_from(&head.actions);
        }
        Event::Restored {
            backup,
            interrupt,
            held,
            doubted,
        } => {
            state.restored = Some(*backup);
            restore::doubt(state, doubted);
            if let Some(interrupt) = interrupt {
                restore::hold(state, *interrupt, held);
            }
            rest(state, at, Seen::ByAnother);
        }
        Event::RunStarted {
            run,
            definition,
            input: _,
            plan_version,
            limits,
            requester,
            breakpoints,
        } => {
            // A question from outside has nobody that thinks.
            let frames = match state.kind {
                ThreadKind::Agent => {
                    BTreeMap::from([(FramePath::root(), Frame::new(*definition, None))])
                }
                ThreadKind::Outside | ThreadKind::Grant => BTreeMap::new(),
            };
            let active = Active {
                limits: *limits,
                turns: 0,
                calls: 0,
                worked: crate::Span::ZERO,
                busy_since: None,
                stop: None,
                answered: None,
                paused: false,
                breakpoints: breakpoints.clone(),
                frames,
            };
            state.plan_version = *plan_version;
            state.run = Some(Run {
                id: *run,
                definition: *definition,
                requester: requester.clone(),
                started_at: at,
                usage: Usage::default(),
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
            usage,
            model: _,
            carried: _,
        } => {
            if let Some(run) = &mut state.run {
                run.usage = run.usage.plus(*usage);
            }
            model_replied(state, frame, calls);
            rest(state, at, Seen::ByItsDriver);
        }
        Event::OutputHeld {
            frame,
            reply,
            flags: _,
        } => {
            if let Some(run) = &mut state.run {
                run.usage = run.usage.plus(reply.usage);
            }
            guard::hold(state, frame, Digest::of(reply.text.as_bytes()));
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
                    passed: true,
                },
                AfterModel::SleepUntil { at } => FramePhase::Resting {
                    until: *at,
                    failures: *attempt,
                },
                AfterModel::Ask => FramePhase::Stuck {
                    error: error.clone(),
                },
            };
            if let Some(frame) = frame_mut(state, frame) {
                frame.rests += u32::from(matches!(phase, FramePhase::Resting { .. }));
                frame.phase = phase;
            }
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
                    (Subject::Effect { .. }, None) | (Subject::Action { .. }, _) => {
                        ActionStatus::Held {
                            interrupt: interrupt.id,
                        }
                    }
                    (
                        Subject::Model
                        | Subject::Node { .. }
                        | Subject::Question { .. }
                        | Subject::Confirmation { .. }
                        | Subject::Output { .. }
                        | Subject::Restored { .. },
                        _,
                    ) => continue,
                };
            }
            if let Some(old) = interrupt.supersedes {
                // What only waited for the old question waits for the new one.
                for action in state.actions.values_mut() {
                    wait_for_another(action, old, interrupt.id);
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
            says: _,
            via: _,
        } => {
            answered(state, at, by, *interrupt, decisions);
            if let Some(active) = state.active_mut() {
                active.answered = Some(at);
            }
        }
        Event::InterruptClosed {
            interrupt,
            status: _,
            reason: _,
            rejected,
            says: _,
        } => withdrawn(state, *interrupt, rejected),
        Event::Paused => {
            if let Some(active) = state.active_mut() {
                active.paused = true;
            }
        }
        Event::Continued => {
            if let Some(active) = state.active_mut() {
                active.paused = false;
            }
        }
        Event::FrameOpened {
            frame,
            action,
            input: _,
        } => frame::open(state, frame, *action),
        Event::FrameClosed { frame } => frame::close(state, frame),
        Event::StepStarted {
            action,
            step,
            name,
            effect,
            params,
            attempt,
            key: _,
            epoch,
            deadline,
        } => {
            let begun = step::Begun {
                id: *step,
                name,
                effect: *effect,
                params,
                attempt: *attempt,
                epoch: *epoch,
                deadline: *deadline,
            };
            step::start(state, *action, &begun);
        }
        Event::Suspended {
            action,
            name: _,
            interrupt,
        } => {
            let interrupt = *interrupt;
            step::wait(state, *action, Wait::Answer { interrupt });
            rest(state, at, Seen::ByItsDriver);
        }
        Event::Slept {
            action,
            name: _,
            until,
        } => {
            step::wait(state, *action, Wait::Until { time: *until });
            rest(state, at, Seen::ByItsDriver);
        }
        Event::FrameWoken { frame } => wake(state, frame),
        Event::Woken { action } => make_ready(state, *action, None),
        Event::Yielded { action } => {
            step::progress(state, *action);
            make_ready(state, *action, None);
            rest(state, at, Seen::ByItsDriver);
        }
        Event::GrantKept(grant) => {
            state.grants.insert(grant.id, (**grant).clone());
        }
        Event::GrantUsed { grant, .. } => use_grant(state, *grant),
        Event::GrantRevoked { grant } => {
            if let Some(grant) = state.grants.get_mut(grant) {
                grant.revoked = true;
            }
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
            artifact: _,
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
        Event::ActionWithheld {
            action,
            attempt: _,
            reason: _,
            retry_at,
        } => {
            make_ready(state, *action, Some(*retry_at));
            rest(state, at, Seen::ByAnother);
        }
        Event::ActionLookedUp {
            action,
            lookup: _,
            artifact: _,
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
            artifact: _,
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
            shown,
        } => {
            if let Some(action) = state.actions.get_mut(action) {
                if shown.is_some() {
                    action.shown.clone_from(shown);
                }
                action.status = ActionStatus::Held {
                    interrupt: *interrupt,
                };
                // From now on it takes a person, whatever becomes of that question.
                if action.verdict == Verdict::Allow {
                    action.verdict = Verdict::Ask(Terms::new(Allowed::standard()));
                }
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
            for restated in actions {
                // Of what was started nothing may be forgotten; only a stepped tool starts nothing by being entered.
                let Some(action) = state.actions.get_mut(&restated.action) else {
                    continue;
                };
                let path = action.frame.clone();
                if matches!(
                    action.status,
                    ActionStatus::Held { .. }
                        | ActionStatus::Ready { .. }
                        | ActionStatus::Waiting { .. }
                ) && (action.attempts == 0 || action.tool.kind == ToolKind::Stepped)
                {
                    action.definition = *definition;
                    action.tool = restated.tool.clone();
                    action.params_hash = restated.params_hash;
                    action.verdict = restated.verdict.clone();
                    action.status = ActionStatus::Held {
                        interrupt: *interrupt,
                    };
                }
                repin(state, &path, *definition);
            }
        }
        Event::StopRequested { stop, closed } => {
            for action in closed {
                state.actions.remove(action);
            }
            if let Some(active) = state.active_mut() {
                active.stop = Some(stop.clone());
                active.frames.retain(|path, _| path.is_root());
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

/// A question was replaced by another one.
fn wait_for_another(action: &mut Action, old: InterruptId, new: InterruptId) {
    match &mut action.status {
        ActionStatus::Held { interrupt }
        | ActionStatus::Waiting {
            on: Wait::Answer { interrupt },
            ..
        } if *interrupt == old => *interrupt = new,
        ActionStatus::Held { .. }
        | ActionStatus::Ready { .. }
        | ActionStatus::Started { .. }
        | ActionStatus::Unknown { .. }
        | ActionStatus::Unsettled { .. }
        | ActionStatus::InDoubt { .. }
        | ActionStatus::Waiting { .. }
        | ActionStatus::Undoing { .. } => {}
    }
}

/// A frame goes on with another definition.
fn repin(state: &mut State, path: &FramePath, definition: Digest) {
    if let Some(frame) = frame_mut(state, path) {
        frame.definition = definition;
    }
    if let Some(run) = state.run.as_mut().filter(|_| path.is_root()) {
        run.definition = definition;
    }
}

fn frame_mut<'s>(state: &'s mut State, path: &FramePath) -> Option<&'s mut Frame> {
    state.active_mut()?.frames.get_mut(path)
}

fn set_phase(state: &mut State, path: &FramePath, phase: FramePhase) {
    if let Some(frame) = frame_mut(state, path) {
        frame.phase = phase;
    }
}

/// A frame that rested may call its model again.
fn wake(state: &mut State, path: &FramePath) {
    if let Some(frame) = frame_mut(state, path)
        && let FramePhase::Resting { failures, .. } = frame.phase
    {
        frame.phase = FramePhase::Turn {
            failures,
            not_before: None,
            passed: true,
        };
    }
}

fn use_grant(state: &mut State, grant: GrantId) {
    if let Some(grant) = state.grants.get_mut(&grant) {
        grant.used = grant.used.saturating_add(1);
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

fn model_replied(state: &mut State, path: &FramePath, calls: &[Called]) {
    let Some(run) = state.run.as_ref().map(|run| run.id) else {
        return;
    };
    let Some(definition) = frame_mut(state, path).map(|frame| frame.definition) else {
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
            kind,
            rule: _,
            grant,
            shown,
            held_by,
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
            kind: *kind,
        };
        let params = Params::from_stored(&called.call.arguments);
        let params_hash = params.hash(&tool.name, &tool.version);
        if let Some(grant) = grant {
            use_grant(state, grant.grant);
        }
        let mut action = Action {
            id: *id,
            run,
            frame: path.clone(),
            parent: None,
            role: Role::Call,
            step: None,
            call_id: called.call.id.clone(),
            order: u32::try_from(order).unwrap_or(u32::MAX),
            version: 1,
            definition,
            tool,
            params,
            params_hash,
            verdict: verdict.clone(),
            grant: grant.clone(),
            attempts: 0,
            progress: 0,
            settle_at: None,
            shown: shown.clone(),
            of_token: false,
            passed: false,
            doubt: Doubt::None,
            status: ActionStatus::Held {
                interrupt: held_by.unwrap_or_else(|| InterruptId::from_bytes([0; 16])),
            },
        };
        if held_by.is_none() {
            action.status = ActionStatus::Ready {
                warrant: action.unasked(plan_version),
                not_before: None,
            };
        }
        state.actions.insert(*id, action);
    }
    if let Some(active) = state.active_mut() {
        active.calls = active
            .calls
            .saturating_add(u32::try_from(calls.len()).unwrap_or(u32::MAX));
    }
    let phase = if acting {
        FramePhase::Acting
    } else if calls.is_empty() {
        FramePhase::Done
    } else {
        FramePhase::TURN
    };
    if let Some(frame) = frame_mut(state, path) {
        frame.phase = phase;
        frame.rests = 0;
    }
}
