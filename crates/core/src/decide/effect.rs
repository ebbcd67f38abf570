//! Calls: starting them, and finding out what became of them.

use super::{
    Draft, MAX_ATTEMPTS, Past, Proof, Reported, breakpoint, clip, frame, grant, late, model,
    model::Question, run,
};
use crate::{
    Action, ActionId, ActionStatus, AfterLookup, AfterUnknown, Allowed, Artifact, Ask, Cause,
    DecisionKind, Digest, Doubt, Effect, Event, Finish, InterruptKind, LimitKind, Lookup, Outcome,
    Refusal, Role, Seen, Shown, Side, State, Stop, Subject, ToolKind, Verdict, Warrant,
    WarrantFrom, apply::may_be_retried, event::content_of, next::may_start,
    preview::default_description, shown::digest_of_shown,
};

/// What a person is told when two attempts at one write may both have been done.
pub(super) const EARLIER_ATTEMPT_DONE: &str =
    "An earlier attempt, recorded as not done, was done after all: it may have taken effect twice.";

/// The last gates before a call: what is about to run must be what was allowed, under the plan it was allowed for.
pub(super) fn start(
    draft: &mut Draft<'_>,
    id: ActionId,
    epoch: u64,
    proof: &Proof,
) -> Result<(), Refusal> {
    let state = &draft.state;
    let Some(action) = state.actions.get(&id) else {
        return Err(Refusal::Stale("the action is settled"));
    };
    let ActionStatus::Ready { warrant, .. } = &action.status else {
        return Err(Refusal::Stale("the action is not ready to start"));
    };
    if action.role == Role::Step {
        return Err(Refusal::Stale("a step is begun by its tool"));
    }
    if action.role != Role::Compensation {
        let active = state.active().ok_or(Refusal::RunOver)?;
        if active.stop.is_some() {
            return Err(Refusal::Stale("the run is being stopped"));
        }
        if !may_start(state, &action.frame) {
            return Err(Refusal::Stale("nothing may start now"));
        }
        if active.worked >= active.limits.time {
            run::stop(
                draft,
                Stop::Limit {
                    limit: LimitKind::Time,
                },
            );
            return Ok(());
        }
    }
    if let Some(refusal) = disproved(state, action, warrant, proof) {
        let comes_back = matches!(refusal, Refusal::PermissionLost { .. });
        if comes_back && !may_have_acted(action) {
            ask_after_all(draft, id, refusal.to_string());
        } else {
            void(draft, id, &refusal);
        }
        return Ok(());
    }
    if let WarrantFrom::Grant(used) = &warrant.from
        && !grant::still_holds(draft, used, proof.granted)
    {
        let reason = "the grant that let it pass was revoked or has expired";
        ask_after_all(draft, id, reason.to_owned());
        return Ok(());
    }
    if !action.passed && breakpoint::is_set(state, &action.tool.name, Side::Before) {
        let (frame, node) = (action.frame.clone(), action.tool.name.clone());
        breakpoint::stop_at(draft, frame, &node, Side::Before, Some(id));
        return Ok(());
    }
    if action.tool.kind == ToolKind::Task {
        frame::open(draft, id);
        return Ok(());
    }
    let deadline = draft.now + action.tool.timeout;
    let event = Event::ActionStarted {
        action: id,
        attempt: action.attempts + 1,
        key: action.idempotency_key(state.thread),
        epoch,
        deadline,
    };
    draft.emit(event);
    Ok(())
}

/// What is about to run must be what was allowed.
fn disproved(state: &State, action: &Action, warrant: &Warrant, proof: &Proof) -> Option<Refusal> {
    if action.role != Role::Compensation && warrant.plan_version != state.plan_version {
        let (allowed, current) = (warrant.plan_version, state.plan_version);
        return Some(Refusal::PlanVersionMismatch { allowed, current });
    }
    // What undoes an effect is bound to that, and not to what anybody may do.
    if let Some(permission) = &proof.lacking
        && action.role != Role::Compensation
    {
        let run = state.run.as_ref()?;
        return Some(Refusal::PermissionLost {
            tool: action.tool.name.clone(),
            requester: run.requester.actor.to_string(),
            permission: permission.clone(),
        });
    }
    if proof.tool_version != warrant.tool_version {
        let (allowed, current) = (warrant.tool_version.clone(), proof.tool_version.clone());
        return Some(Refusal::ToolChanged { allowed, current });
    }
    let same =
        proof.params_hash == warrant.params_hash && action.params_hash == warrant.params_hash;
    let by_policy = warrant.from == WarrantFrom::Policy;
    if !same || (by_policy && action.verdict != Verdict::Allow) {
        return Some(Refusal::ParamsChanged { action: action.id });
    }
    None
}

/// An earlier attempt may still report what it did.
fn may_have_acted(action: &Action) -> bool {
    action.attempts > 0 && action.tool.effect == Effect::Write && !action.is_entered()
}

/// What let an action pass does not hold any more, and may again: a person is asked, as the policy wants it.
fn ask_after_all(draft: &mut Draft<'_>, id: ActionId, reason: String) {
    let interrupt = draft.context.seed.interrupt_id();
    let Some(action) = draft.state.actions.get(&id) else {
        return;
    };
    let (ask, frame) = (ask_by_policy(&draft.state, action), action.frame.clone());
    draft.emit(Event::WarrantVoided {
        action: id,
        reason: reason.clone(),
        interrupt,
        shown: None,
    });
    let (kind, cause) = (InterruptKind::Approval, Cause::HumanApproval);
    let question = Question {
        id: interrupt,
        kind,
        cause,
        frame,
        asks: vec![ask],
    };
    model::raise_instead(draft, question, None, vec![reason]);
}

/// What of this may be decided about a call. One that has steps or answers behind it is the call that they belong to, and stays
/// what it is: with other arguments it would be another one.
pub(super) fn decidable(state: &State, action: &Action, allowed: Allowed) -> Allowed {
    let is_begun = action.progress > 0 || state.steps_of(action.id).next().is_some();
    if action.tool.kind != ToolKind::Stepped || !is_begun {
        return allowed;
    }
    let mut kinds = allowed.as_slice().to_vec();
    kinds.retain(|kind| *kind != DecisionKind::Edit);
    let kinds = Allowed::new(kinds);
    kinds
        .or_else(|_| Allowed::new(vec![DecisionKind::Reject, DecisionKind::Respond]))
        .unwrap_or(allowed)
}

/// What a person is asked about a call that was allowed before, as the policy wants it.
pub(super) fn ask_by_policy(state: &State, action: &Action) -> Ask {
    let (allowed, description) = match &action.verdict {
        Verdict::Ask(terms) => (
            terms.allowed.clone(),
            terms.told(&action.tool.name, &action.params),
        ),
        Verdict::Allow => (Allowed::standard(), None),
        Verdict::Deny => {
            let refuse = Allowed::new(vec![DecisionKind::Reject, DecisionKind::Respond]);
            // INVARIANT: the list is neither empty nor repetitive.
            (refuse.unwrap_or_else(|_| Allowed::standard()), None)
        }
    };
    let shown = description
        .clone()
        .unwrap_or_else(|| default_description(&action.tool.name, &action.params));
    Ask {
        action_id: action.id,
        subject: Subject::Action {
            tool_version: action.tool.version.clone(),
            schema: Digest::default(),
            params_hash: action.params_hash,
            preview: digest_of_shown(&shown, action.shown.as_deref()),
        },
        allowed: decidable(state, action, allowed),
        description,
    }
}

/// Takes back what allowed an action, and tells a person why.
fn void(draft: &mut Draft<'_>, id: ActionId, refusal: &Refusal) {
    let Some(action) = draft.state.actions.get(&id) else {
        return;
    };
    let text = format!("It was not executed: {refusal}");
    if action.role == Role::Compensation {
        // What it undoes closes together with it, so it cannot just be put aside.
        return ask_about(draft, id, Cause::ToolFailure, &text, &[]);
    }
    if may_have_acted(action) {
        // So the action stays open as what it was.
        let only = [
            DecisionKind::Committed,
            DecisionKind::NotCommitted,
            DecisionKind::Reject,
        ];
        return ask_about(draft, id, Cause::ToolFailure, &text, &only);
    }
    let interrupt = draft.context.seed.interrupt_id();
    let frame = action.frame.clone();
    let subject = Subject::Action {
        tool_version: action.tool.version.clone(),
        schema: Digest::default(),
        params_hash: action.params_hash,
        preview: Digest::default(),
    };
    let description = Some(format!(
        "It was not executed: {refusal}\n\nTool: {}\nArgs: {}",
        action.tool.name,
        action.params.canonical()
    ));
    // INVARIANT: the list is neither empty nor repetitive.
    let Ok(allowed) = Allowed::new(vec![DecisionKind::Reject, DecisionKind::Respond]) else {
        return;
    };
    draft.emit(Event::WarrantVoided {
        action: id,
        reason: refusal.to_string(),
        interrupt,
        shown: None,
    });
    let ask = Ask {
        action_id: id,
        subject,
        allowed,
        description,
    };
    let (kind, cause) = (InterruptKind::Error, Cause::ToolFailure);
    model::raise(
        draft,
        Question {
            id: interrupt,
            kind,
            cause,
            frame,
            asks: vec![ask],
        },
    );
}

/// A call ended. Whatever the state, its outcome is recorded.
pub(super) fn ended(
    draft: &mut Draft<'_>,
    id: ActionId,
    attempt: u32,
    reported: Reported,
    past: Option<Box<Past>>,
) -> Result<(), Refusal> {
    let Some(action) = draft.state.actions.get(&id) else {
        let Some(past) = past else {
            return Err(Refusal::Stale("the action is unknown here"));
        };
        late::for_settled(draft, attempt, reported, *past);
        return Ok(());
    };
    let in_flight =
        matches!(action.status, ActionStatus::Started { .. }) && action.attempts == attempt;
    if !in_flight {
        let action = action.clone();
        late::for_open(draft, attempt, reported, action);
        return Ok(());
    }
    if action.is_entered() && left_in_a_step(draft, id) {
        let reason = "it ended in the middle of a step";
        unknown(draft, id, reason, Seen::ByItsDriver);
        return Ok(());
    }
    let Reported { outcome, artifact } = reported;
    match outcome {
        Outcome::Done { content } => {
            finish(draft, id, attempt, Finish::Done { content }, artifact);
        }
        Outcome::Failed { error } => finish(draft, id, attempt, Finish::Failed { error }, artifact),
        Outcome::Unknown { reason } => unknown(draft, id, &reason, Seen::ByItsDriver),
    }
    Ok(())
}

/// A call was not made, because it would not do any more what a person was shown: they are shown what it would do now.
pub(super) fn outdated(
    draft: &mut Draft<'_>,
    id: ActionId,
    attempt: u32,
    reason: String,
    shown: Box<Shown>,
) -> Result<(), Refusal> {
    let action = draft.state.actions.get(&id).filter(|action| {
        let in_flight = matches!(action.status, ActionStatus::Started { .. });
        let undone = action.doubt != Doubt::EarlierAttemptDone;
        // Of nothing else is anybody shown what it would do.
        let is_plain = action.role == Role::Call && !action.is_entered();
        let current = in_flight && action.attempts == attempt;
        current && is_plain && undone && draft.wants(action)
    });
    let Some(action) = action else {
        let error = format!("the call was not made: {reason}");
        return ended(draft, id, attempt, Outcome::Failed { error }.into(), None);
    };
    let (frame, asked) = match action.warrant().map(|warrant| &warrant.from) {
        Some(WarrantFrom::Person { interrupt, .. }) => (action.frame.clone(), Some(*interrupt)),
        Some(_) | None => (action.frame.clone(), None),
    };
    let retry_at = draft.now;
    draft.emit(Event::ActionWithheld {
        action: id,
        attempt,
        reason: reason.clone(),
        retry_at,
    });
    let interrupt = draft.context.seed.interrupt_id();
    draft.emit(Event::WarrantVoided {
        action: id,
        reason: reason.clone(),
        interrupt,
        shown: Some(shown),
    });
    let Some(action) = draft.state.actions.get(&id) else {
        return Ok(());
    };
    let question = Question {
        id: interrupt,
        kind: InterruptKind::Approval,
        cause: Cause::HumanApproval,
        frame,
        asks: vec![ask_by_policy(&draft.state, action)],
    };
    model::raise_instead(draft, question, asked, vec![reason]);
    Ok(())
}

/// A call was not made, so whoever allowed it is not asked again: it is tried again, a bounded number of times.
pub(super) fn withheld(
    draft: &mut Draft<'_>,
    id: ActionId,
    attempt: u32,
    reason: String,
) -> Result<(), Refusal> {
    let action = draft.state.actions.get(&id).filter(|action| {
        let in_flight = matches!(action.status, ActionStatus::Started { .. });
        let wanted = action.role == Role::Compensation || draft.wants(action);
        // What an earlier attempt has done is not done again, although this one was not made.
        let undone = action.doubt != Doubt::EarlierAttemptDone;
        in_flight && action.attempts == attempt && wanted && undone
    });
    let failures = action.map(|action| attempt.saturating_sub(action.progress));
    match failures {
        Some(failures) if failures < MAX_ATTEMPTS => {
            let retry_at = draft.back_off(failures);
            draft.emit(Event::ActionWithheld {
                action: id,
                attempt,
                reason,
                retry_at,
            });
            Ok(())
        }
        Some(_) | None => {
            let error = format!("the call was not made: {reason}");
            ended(draft, id, attempt, Outcome::Failed { error }.into(), None)
        }
    }
}

/// A stepped tool has ended. What became of steps that it did not end nobody knows; and as long as that is so, its own end
/// does not count.
fn left_in_a_step(draft: &mut Draft<'_>, id: ActionId) -> bool {
    let in_flight = |step: &&Action| matches!(step.status, ActionStatus::Started { .. });
    let steps = draft.state.steps_of(id).filter(in_flight);
    let left: Vec<ActionId> = steps.map(|step| step.id).collect();
    for step in &left {
        let reason = "its tool ended without saying what became of it";
        unknown(draft, *step, reason, Seen::ByItsDriver);
    }
    !left.is_empty() || has_open_steps(&draft.state, id)
}

/// Whether something is still to be found out about a step of this action.
pub(super) fn has_open_steps(state: &State, id: ActionId) -> bool {
    let mut steps = state.steps_of(id);
    steps.any(|step| !matches!(step.status, ActionStatus::Ready { .. }))
}

/// Steps that may have taken effect, and that nobody will take again because their tool has ended, are put before a person.
pub(super) fn ask_about_steps(draft: &mut Draft<'_>, parent: ActionId) {
    if draft.state.actions.contains_key(&parent) {
        return;
    }
    let idle = |step: &&Action| matches!(step.status, ActionStatus::Ready { .. });
    let steps = draft.state.steps_of(parent).filter(idle);
    let steps: Vec<ActionId> = steps.map(|step| step.id).collect();
    for step in steps {
        let text = "Its tool has ended without taking this step again, and nobody knows whether it took effect.";
        ask_about(draft, step, Cause::ToolFailure, text, &[]);
    }
}

fn finish(
    draft: &mut Draft<'_>,
    action: ActionId,
    attempt: u32,
    outcome: Finish,
    artifact: Option<Box<Artifact>>,
) {
    let failure = match &outcome {
        Finish::Done { .. } => None,
        Finish::Failed { error } => Some(error.clone()),
    };
    draft.emit(Event::ActionFinished {
        action,
        attempt,
        outcome,
        artifact,
    });
    ask_about_steps(draft, action);
    follow_up(draft, action, failure.as_deref());
}

/// What must happen to an action that is settled in itself but not in the eyes of the run.
pub(super) fn follow_up(draft: &mut Draft<'_>, id: ActionId, failure: Option<&str>) {
    let Some(action) = draft.state.actions.get(&id) else {
        return;
    };
    if !matches!(action.status, ActionStatus::Unsettled { .. }) {
        return;
    }
    match (action.role, failure) {
        (Role::Compensation, _) if action.doubt == Doubt::EarlierAttemptDone => {
            let only = [DecisionKind::Committed];
            ask_about(draft, id, Cause::ToolFailure, EARLIER_ATTEMPT_DONE, &only);
        }
        (Role::Compensation, failure) => {
            let reason = clip(failure.unwrap_or("it could not be confirmed"));
            ask_about(
                draft,
                id,
                Cause::ToolFailure,
                &format!("The compensation failed: {reason}"),
                &[],
            );
        }
        (Role::Call | Role::Step, _) if action.doubt == Doubt::EarlierAttemptDone => {
            let only = [DecisionKind::Committed];
            ask_about(draft, id, Cause::WriteUnknown, EARLIER_ATTEMPT_DONE, &only);
        }
        (Role::Call | Role::Step, _) if action.tool.hooks.compensate => compensate(draft, id),
        (Role::Call | Role::Step, _) => {
            let text = "It took effect, but the run was stopped meanwhile and the tool has no compensation.";
            ask_about(
                draft,
                id,
                Cause::WriteUnknown,
                text,
                &[DecisionKind::Committed],
            );
        }
    }
}

/// Binds the tool's own compensation to an effect.
pub(super) fn compensate(draft: &mut Draft<'_>, action: ActionId) {
    let compensation = draft.context.seed.action_id();
    draft.emit(Event::CompensationBound {
        action,
        compensation,
    });
}

/// The driver died with the call in flight, and nothing can come of it any more.
pub(super) fn orphaned(draft: &mut Draft<'_>, id: ActionId, attempt: u32) -> Result<(), Refusal> {
    let Some(action) = draft.state.actions.get(&id) else {
        return Err(Refusal::Stale("the action is settled"));
    };
    match action.status {
        ActionStatus::Started { deadline, .. } if action.attempts == attempt => {
            let settle_at = action.settle_at.unwrap_or(deadline);
            let effect = action.tool.effect != Effect::Read && !action.is_entered();
            if effect && draft.now < settle_at {
                return Err(Refusal::Stale("the call may still take effect"));
            }
            unknown(
                draft,
                id,
                "the call was cut off before it ended",
                Seen::ByAnother,
            );
            Ok(())
        }
        ActionStatus::Held { .. }
        | ActionStatus::Ready { .. }
        | ActionStatus::Started { .. }
        | ActionStatus::Unknown { .. }
        | ActionStatus::Unsettled { .. }
        | ActionStatus::InDoubt { .. }
        | ActionStatus::Waiting { .. }
        | ActionStatus::Undoing { .. } => Err(Refusal::Stale("the action is not in flight")),
    }
}

/// The recovery table: what follows when nobody knows whether a call took effect.
pub(super) fn unknown(draft: &mut Draft<'_>, id: ActionId, reason: &str, seen: Seen) {
    let Some(action) = draft.state.actions.get(&id) else {
        return;
    };
    let stopped = !draft.wants(action);
    let reason = &clip(reason);
    let attempt = action.attempts;
    let failures = attempt.saturating_sub(action.progress);
    let entered = action.is_entered();
    // What became of a step is told to its tool, so that is not given up before.
    let again = failures < MAX_ATTEMPTS || has_open_steps(&draft.state, id);
    let retry_at = match seen {
        Seen::ByItsDriver => draft.back_off(failures),
        Seen::ByAnother => draft.now,
    };
    let look_up_at = match seen {
        // The call has ended: only the time an effect takes to appear is left to wait.
        Seen::ByItsDriver => draft.now + action.tool.settle,
        Seen::ByAnother => draft.now,
    };
    let then = match action.tool.effect {
        // Entering it has no effect of its own.
        _ if entered && again && !stopped => AfterUnknown::RetryAt { at: retry_at },
        _ if entered => AfterUnknown::GiveUp,
        Effect::Read | Effect::Idempotent if stopped => AfterUnknown::GiveUp,
        Effect::Read | Effect::Idempotent if again => AfterUnknown::RetryAt { at: retry_at },
        Effect::Read => AfterUnknown::GiveUp,
        Effect::Write if action.tool.hooks.lookup && action.doubt != Doubt::EarlierAttemptDone => {
            AfterUnknown::LookUpAt { at: look_up_at }
        }
        Effect::Idempotent | Effect::Write => AfterUnknown::Ask,
    };
    let cause = if action.tool.effect == Effect::Write {
        Cause::WriteUnknown
    } else {
        Cause::ToolFailure
    };
    let twice = action.doubt == Doubt::EarlierAttemptDone;
    draft.emit(Event::ActionUnknown {
        action: id,
        attempt,
        reason: reason.clone(),
        seen,
        then,
    });
    ask_about_steps(draft, id);
    if then == AfterUnknown::Ask && twice {
        let only = [DecisionKind::Committed];
        ask_about(draft, id, cause, EARLIER_ATTEMPT_DONE, &only);
    } else if then == AfterUnknown::Ask {
        ask_about(
            draft,
            id,
            cause,
            &format!("Nobody knows whether it took effect: {reason}"),
            &[],
        );
    }
}

/// Asks a person what became of a call.
pub(super) fn ask_about(
    draft: &mut Draft<'_>,
    id: ActionId,
    cause: Cause,
    what: &str,
    only: &[DecisionKind],
) {
    let Some(action) = draft.state.actions.get(&id) else {
        return;
    };
    let mut kinds = if only.is_empty() {
        vec![DecisionKind::Committed, DecisionKind::NotCommitted]
    } else {
        only.to_vec()
    };
    // What does no harm when it is done once more does none when it is given up.
    if only.is_empty() && action.tool.effect != Effect::Write {
        kinds.push(DecisionKind::Reject);
    }
    match action.role {
        Role::Call | Role::Step if action.tool.hooks.compensate => {
            kinds.push(DecisionKind::Compensate)
        }
        Role::Call | Role::Step => {}
        // It may be given up: the effect then stands.
        Role::Compensation => kinds.push(DecisionKind::Reject),
    }
    // INVARIANT: the list is neither empty nor repetitive.
    let Ok(allowed) = Allowed::new(kinds) else {
        return;
    };
    let frame = action.frame.clone();
    let about = match action.role {
        Role::Call | Role::Step => what.to_owned(),
        Role::Compensation => format!(
            "This is about undoing the effect, not about the effect itself. {what}\n\n\
             committed: it is undone. not_committed: try to undo it again. reject: give up, the effect stands."
        ),
    };
    let description = format!(
        "{about}\n\nTool: {}\nArgs: {}\nKey: {}",
        action.tool.name,
        action.params.canonical(),
        action.idempotency_key(draft.state.thread)
    );
    let subject = Subject::Effect {
        attempt: action.attempts,
        params_hash: action.params_hash,
    };
    let ask = Ask {
        action_id: id,
        subject,
        allowed,
        description: Some(description),
    };
    let id = draft.context.seed.interrupt_id();
    model::raise(
        draft,
        Question {
            id,
            kind: InterruptKind::Error,
            cause,
            frame,
            asks: vec![ask],
        },
    );
}

/// The tool said what became of a call.
pub(super) fn looked_up(
    draft: &mut Draft<'_>,
    id: ActionId,
    lookup: Lookup,
    artifact: Option<Box<Artifact>>,
) -> Result<(), Refusal> {
    let Some(action) = draft.state.actions.get(&id) else {
        return Err(Refusal::Stale("the action is settled"));
    };
    let ActionStatus::Unknown { lookups, .. } = action.status else {
        return Err(Refusal::Stale("the action is not being looked up"));
    };
    if lookup == Lookup::NotFound && action.settle_at.is_some_and(|at| draft.now < at) {
        return Err(Refusal::Stale("the call may still take effect"));
    }
    let stopped = !may_be_retried(&draft.state, action);
    let (then, text) = match &lookup {
        Lookup::Committed { .. } => (AfterLookup::Settled, String::new()),
        Lookup::NotFound if stopped => (AfterLookup::NotDone, String::new()),
        Lookup::NotFound if action.attempts < MAX_ATTEMPTS => {
            (AfterLookup::RetryAt { at: draft.now }, String::new())
        }
        Lookup::NotFound => {
            let text = format!(
                "It was tried {} times and never took effect.",
                action.attempts
            );
            (AfterLookup::Ask, text)
        }
        Lookup::Partial { receipt } => (
            AfterLookup::Ask,
            format!("It took effect in part: {}", clip(&content_of(receipt))),
        ),
        Lookup::Unknown { .. } if lookups + 1 < MAX_ATTEMPTS => (
            AfterLookup::LookUpAt {
                at: draft
                    .back_off(lookups + 1)
                    .max(action.settle_at.unwrap_or_default()),
            },
            String::new(),
        ),
        Lookup::Unknown { reason } => (
            AfterLookup::Ask,
            format!(
                "Nobody knows whether it took effect, and its lookup does not tell: {}",
                clip(reason)
            ),
        ),
    };
    draft.emit(Event::ActionLookedUp {
        action: id,
        lookup,
        artifact,
        then,
    });
    match then {
        AfterLookup::Ask => ask_about(draft, id, Cause::WriteUnknown, &text, &[]),
        AfterLookup::Settled => follow_up(draft, id, None),
        AfterLookup::RetryAt { .. } | AfterLookup::NotDone | AfterLookup::LookUpAt { .. } => {}
    }
    Ok(())
}
