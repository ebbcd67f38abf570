//! A person's answer, through the gates in their order.

use super::{Draft, MAX_REJECTIONS, Reply, effect, grant, guard, restore, run};
use crate::{
    ActionId, Ask, Asked, Decided, Decision, DecisionKind, Digest, Event, FramePath, FramePhase,
    Interrupt, InterruptId, InterruptKind, InterruptStatus, Misfit, Refusal, Scope, State, Stop,
    Subject, Via,
    confirm::{BadField, Filled},
};

/// Takes all of these answers, or none.
pub(super) fn answer(draft: &mut Draft<'_>, replies: &[Reply]) -> Result<(), Refusal> {
    let mut taken = Vec::with_capacity(replies.len());
    for (at, reply) in replies.iter().enumerate() {
        let id = reply.interrupt;
        if replies[..at].iter().any(|earlier| earlier.interrupt == id) {
            return Err(Refusal::Stale("a question is answered twice"));
        }
        let granted = taken.iter().map(|taken: &Taken| granted(&taken.decisions));
        let granted = granted.sum();
        taken.push(check(draft, reply, granted)?);
    }
    if taken.is_empty() {
        return Err(Refusal::Stale("nothing is answered"));
    }
    let principal = &draft.context.by;
    let (roles, permissions) = (principal.roles.clone(), principal.permissions.clone());
    for answered in &taken {
        draft.emit(Event::Answered {
            interrupt: answered.interrupt,
            status: answered.status,
            decisions: answered.decisions.clone(),
            roles: roles.clone(),
            permissions: permissions.clone(),
            says: answered.says.clone(),
            via: answered.via.clone(),
        });
    }
    // Only now what follows, since it may withdraw other questions.
    for answered in taken {
        follow(draft, answered);
    }
    Ok(())
}

/// An answer that has passed every gate.
struct Taken {
    interrupt: InterruptId,
    kind: InterruptKind,
    /// How it is closed.
    status: InterruptStatus,
    /// What the model is told, where it asked in plain words or its words were held back.
    says: Option<String>,
    /// What is said instead of what the model said.
    said_instead: Option<String>,
    /// The pass by which it was given.
    via: Option<Box<Via>>,
    /// It let the run go on from a breakpoint, or from a backup; or not.
    at_a_node: bool,
    /// What was pending in the backup that the run goes on from, or not.
    restored: Option<Vec<Interrupt>>,
    frame: FramePath,
    decisions: Vec<Decided>,
    rejected: Vec<Rejected>,
}

/// A call that was rejected: where, which, and by what name.
type Rejected = (FramePath, Digest, String);

/// How many grants for this thread are given by these decisions.
fn granted(decisions: &[Decided]) -> usize {
    let grants = decisions.iter().filter_map(|it| it.grant.as_ref());
    let grants = grants.filter(|grant| grant.terms.scope == Scope::Thread);
    grants.count()
}

/// The gates, in their order. `given_before` counts the grants that earlier answers of the same command give.
fn check(draft: &Draft<'_>, reply: &Reply, given_before: usize) -> Result<Taken, Refusal> {
    let state = &draft.state;
    let by = &draft.context.by.actor;
    let id = reply.interrupt;
    if by.tenant != state.tenant {
        return Err(Refusal::NotFound);
    }
    let interrupt = state
        .interrupts
        .get(&id)
        .ok_or(Refusal::NotPending { interrupt: id })?;
    if interrupt.due_at().is_some_and(|at| draft.now >= at) {
        return Err(Refusal::Expired { interrupt: id });
    }
    if !by.may_decide() {
        return Err(Refusal::Forbidden { by: by.to_string() });
    }
    reply.bond.check(interrupt, by, draft.now)?;
    let assigned = interrupt.assign(&reply.answer, state)?;
    let mut decisions = Vec::with_capacity(assigned.len());
    for (at, (ask, decision)) in assigned.into_iter().enumerate() {
        let params_hash = fit(state, at, ask, &decision, &reply.misfits)?;
        let given_before = given_before + granted(&decisions);
        let grant = grant::given(draft, given_before, at, id, ask, &decision)?;
        let shown = reply.shown.iter().find(|(id, _)| *id == ask.action_id);
        let shown = shown.filter(|_| decision.kind() == DecisionKind::Edit);
        decisions.push(Decided {
            action_id: ask.action_id,
            decision,
            params_hash,
            grant,
            shown: shown.map(|(_, shown)| Box::new(shown.clone())),
        });
    }
    if reply.bond.pass.is_some() {
        expect_seen(reply, interrupt, &decisions)?;
    } else {
        expect_token(state, interrupt, &decisions)?;
    }
    // What runs nothing needs no proof that it is still what was shown.
    let running = decisions.iter().filter(|decided| runs(&decided.decision));
    let running: Vec<ActionId> = running.map(|decided| decided.action_id).collect();
    if !running.is_empty() && interrupt.plan_version != state.plan_version {
        return Err(Refusal::PlanVersionMismatch {
            allowed: interrupt.plan_version,
            current: state.plan_version,
        });
    }
    expect_permitted(state, reply, &running)?;
    prove_unchanged(state, interrupt, &running)?;
    Ok(Taken {
        interrupt: id,
        kind: interrupt.kind,
        status: interrupt.status_after(&decisions),
        says: says(interrupt, &decisions).or_else(|| guard::told(interrupt, &decisions)),
        said_instead: guard::said_instead(interrupt, &decisions),
        via: reply.bond.pass.as_ref().map(|pass| Box::new(pass.via())),
        at_a_node: interrupt
            .asks
            .iter()
            .any(|ask| matches!(ask.subject, Subject::Node { .. } | Subject::Restored { .. })),
        restored: restore::asked_in(interrupt).map(<[Interrupt]>::to_vec),
        frame: interrupt.frame.clone(),
        rejected: rejections(state, &decisions),
        decisions,
    })
}

/// What a model that asked in plain words is told.
fn says(interrupt: &Interrupt, decisions: &[Decided]) -> Option<String> {
    let mut pairs = interrupt.asks.iter().zip(decisions);
    pairs.find_map(|(ask, decided)| match &ask.subject {
        Subject::Confirmation { fields, .. } => {
            let filled = Filled::new(fields, &decided.decision);
            filled.ok().map(|filled| filled.says())
        }
        Subject::Action { .. }
        | Subject::Effect { .. }
        | Subject::Model
        | Subject::Node { .. }
        | Subject::Question { .. }
        | Subject::Output { .. }
        | Subject::Restored { .. } => None,
    })
}

/// What follows from an answer that was taken.
fn follow(draft: &mut Draft<'_>, taken: Taken) {
    for decided in &taken.decisions {
        if decided.decision == Decision::Compensate {
            effect::compensate(draft, decided.action_id);
        }
        effect::ask_about_steps(draft, decided.action_id);
    }
    if taken.kind == InterruptKind::Error
        && let [
            Decided {
                decision: Decision::Reject { .. },
                params_hash: None,
                ..
            },
        ] = taken.decisions.as_slice()
        && let Some(FramePhase::Stuck { error }) = draft
            .state
            .active()
            .and_then(|active| active.frames.get(&taken.frame))
            .map(|frame| &frame.phase)
    {
        let error = error.clone();
        run::stop(draft, Stop::ModelUnavailable { error });
    }
    if let Some(text) = taken.said_instead {
        guard::say_instead(draft, taken.frame, text);
    }
    let rejected = |decided: &Decided| decided.decision.kind() == DecisionKind::Reject;
    if taken.at_a_node && taken.decisions.iter().any(rejected) {
        run::stop(draft, Stop::Cancelled);
    } else if let Some(asked) = taken.restored {
        restore::go_on(draft, taken.interrupt, asked);
    }
    guard_against_loops(draft, taken.rejected);
}

/// Checks one decision against what it is about. Returns the digest of the call that is decided on.
fn fit(
    state: &State,
    at: usize,
    ask: &Ask,
    decision: &Decision,
    misfits: &[(ActionId, String)],
) -> Result<Option<Digest>, Misfit> {
    let params_hash = match &ask.subject {
        Subject::Model | Subject::Node { .. } | Subject::Restored { .. } => return Ok(None),
        Subject::Question { .. } => {
            let misfit = misfits.iter().find(|(id, _)| *id == ask.action_id);
            return match misfit {
                None => Ok(None),
                Some((_, problem)) => Err(Misfit::Value {
                    action: Asked::new(state, at, ask),
                    problem: problem.clone(),
                }),
            };
        }
        Subject::Confirmation { fields, .. } => {
            let misfit = |BadField { name, problem }| Misfit::Field {
                action: Asked::new(state, at, ask),
                name,
                problem,
            };
            return Filled::new(fields, decision).map(|_| None).map_err(misfit);
        }
        Subject::Output { .. } => {
            let empty =
                matches!(decision, Decision::Respond { message } if message.trim().is_empty());
            let problem = "say what is to be said instead".to_owned();
            let action = Asked::new(state, at, ask);
            return if empty {
                Err(Misfit::Value { action, problem })
            } else {
                Ok(None)
            };
        }
        Subject::Effect { params_hash, .. } => return Ok(Some(*params_hash)),
        Subject::Action { params_hash, .. } => params_hash,
    };
    let Decision::Edit { edited_action } = decision else {
        return Ok(Some(*params_hash));
    };
    let asked = || Asked::new(state, at, ask);
    let Some(action) = state.actions.get(&ask.action_id) else {
        return Err(Misfit::NotOpen { action: asked() });
    };
    if edited_action.name != action.tool.name {
        return Err(Misfit::OtherTool {
            action: asked(),
            named: edited_action.name.clone(),
        });
    }
    if let Some((_, misfit)) = misfits.iter().find(|(id, _)| *id == ask.action_id) {
        return Err(Misfit::Arguments {
            action: asked(),
            problem: misfit.clone(),
        });
    }
    Ok(Some(
        edited_action
            .args
            .hash(&action.tool.name, &action.tool.version),
    ))
}

/// Nobody has a call made, by whoever's approval, that they may not have made any more.
fn expect_permitted(state: &State, reply: &Reply, running: &[ActionId]) -> Result<(), Refusal> {
    let lacking = reply.lacking.iter().find(|(id, _)| running.contains(id));
    let (Some((id, permission)), Some(run)) = (lacking, &state.run) else {
        return Ok(());
    };
    let tool = state.actions.get(id).map(|action| action.tool.name.clone());
    Err(Refusal::PermissionLost {
        tool: tool.unwrap_or_default(),
        requester: run.requester.actor.to_string(),
        permission: permission.clone(),
    })
}

/// Whoever answers by a pass says what they saw of every call that their answer sets going: what they were shown, and by
/// whom, nobody here knows.
fn expect_seen(reply: &Reply, interrupt: &Interrupt, decisions: &[Decided]) -> Result<(), Refusal> {
    for (ask, decided) in interrupt.asks.iter().zip(decisions) {
        let is_seen = reply.bond.seen.iter().any(|(id, _)| *id == ask.action_id);
        let is_call = ask.subject.params_hash().is_some();
        if is_call && !is_seen && sets_going(&decided.decision) {
            let action = ask.action_id;
            return Err(Refusal::Unseen { action });
        }
    }
    Ok(())
}

/// Without a pass, an answer sets nothing going that the policy wants one for. They may always say no.
fn expect_token(
    state: &State,
    interrupt: &Interrupt,
    decisions: &[Decided],
) -> Result<(), Refusal> {
    for (ask, decided) in interrupt.asks.iter().zip(decisions) {
        if sets_going(&decided.decision) && state.requires_token(ask) {
            let tool = state.asked_name(ask);
            return Err(Refusal::TokenRequired { tool });
        }
    }
    Ok(())
}

/// Whether something is called, again or to undo it, because of a decision.
const fn sets_going(decision: &Decision) -> bool {
    match decision {
        Decision::Approve { .. }
        | Decision::Edit { .. }
        | Decision::NotCommitted
        | Decision::Compensate => true,
        Decision::Reject { .. }
        | Decision::Respond { .. }
        | Decision::Committed { .. }
        | Decision::Answer { .. } => false,
    }
}

/// Whether a decision lets something run that the question showed.
const fn runs(decision: &Decision) -> bool {
    match decision {
        Decision::Approve { .. } | Decision::Edit { .. } => true,
        Decision::Reject { .. }
        | Decision::Respond { .. }
        | Decision::Committed { .. }
        | Decision::NotCommitted
        | Decision::Compensate
        | Decision::Answer { .. } => false,
    }
}

/// What the question shows must still be what would run.
fn prove_unchanged(
    state: &State,
    interrupt: &Interrupt,
    running: &[ActionId],
) -> Result<(), Refusal> {
    for ask in interrupt
        .asks
        .iter()
        .filter(|ask| running.contains(&ask.action_id))
    {
        let Subject::Action {
            tool_version,
            params_hash,
            ..
        } = &ask.subject
        else {
            continue;
        };
        let Some(action) = state.actions.get(&ask.action_id) else {
            return Err(Refusal::ParamsChanged {
                action: ask.action_id,
            });
        };
        if action.tool.version != *tool_version {
            let (allowed, current) = (tool_version.clone(), action.tool.version.clone());
            return Err(Refusal::ToolChanged { allowed, current });
        }
        let now = action.params.hash(&action.tool.name, &action.tool.version);
        if action.params_hash != *params_hash || now != *params_hash {
            return Err(Refusal::ParamsChanged {
                action: ask.action_id,
            });
        }
    }
    Ok(())
}

/// The calls that this answer rejects: where, which, and by what name.
fn rejections(state: &State, decisions: &[Decided]) -> Vec<Rejected> {
    let rejected = decisions
        .iter()
        .filter(|decided| decided.decision.kind() == DecisionKind::Reject);
    let rejected: Vec<ActionId> = rejected.map(|decided| decided.action_id).collect();
    counted(state, &rejected)
}

/// What the loop guard counts of these actions.
pub(super) fn counted(state: &State, rejected: &[ActionId]) -> Vec<Rejected> {
    rejected
        .iter()
        .filter_map(|action| state.actions.get(action))
        .map(|action| {
            (
                action.frame.clone(),
                action.params_hash,
                action.tool.name.clone(),
            )
        })
        .collect()
}

/// A model that keeps asking for what people keep rejecting is stopped.
pub(super) fn guard_against_loops(draft: &mut Draft<'_>, rejected: Vec<Rejected>) {
    for (frame, hash, tool) in rejected {
        let Some(active) = draft.state.active().filter(|active| active.stop.is_none()) else {
            return;
        };
        let count = active.rejections(&frame, hash);
        if count >= MAX_REJECTIONS {
            run::stop(
                draft,
                Stop::Loop {
                    tool,
                    rejections: count,
                },
            );
        }
    }
}
