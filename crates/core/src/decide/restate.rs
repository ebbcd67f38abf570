//! The definition changed while something was open: what was asked or allowed is asked again, with the difference shown.

use std::collections::BTreeMap;

use super::{Draft, RestatedCall, ToolNow, effect, model, model::Question};
use crate::{
    Action, ActionStatus, Allowed, Ask, Cause, DecisionKind, Digest, Event, FramePath, InterruptId,
    InterruptKind, InterruptStatus, Refusal, Restated, Role, State, Subject, ToolKind, Verdict,
    preview::default_description, shown::digest_of_shown,
};

/// A question belongs to one frame, so there is one for each.
pub(super) fn restate(
    draft: &mut Draft<'_>,
    definition: Digest,
    old: Option<InterruptId>,
    calls: Vec<RestatedCall>,
) -> Result<(), Refusal> {
    let mut frames: BTreeMap<FramePath, Vec<RestatedCall>> = BTreeMap::new();
    for call in calls {
        let action = draft.state.actions.get(&call.action);
        let action = action.ok_or(Refusal::Stale("the action is settled"))?;
        frames.entry(action.frame.clone()).or_default().push(call);
    }
    if frames.is_empty() {
        return Err(Refusal::Stale("nothing changed"));
    }
    for calls in frames.into_values() {
        restate_in_frame(draft, definition, old, calls)?;
    }
    Ok(())
}

fn restate_in_frame(
    draft: &mut Draft<'_>,
    definition: Digest,
    old: Option<InterruptId>,
    calls: Vec<RestatedCall>,
) -> Result<(), Refusal> {
    let new = draft.context.seed.interrupt_id();
    let state = &draft.state;
    let asked_before = match old {
        None => Vec::new(),
        Some(id) => state
            .interrupts
            .get(&id)
            .ok_or(Refusal::NotPending { interrupt: id })?
            .asks
            .clone(),
    };
    let restored = |ask: &Ask| matches!(ask.subject, Subject::Restored { .. });
    if asked_before.iter().any(restored) {
        return Err(Refusal::Stale("nobody said yet whether the run goes on"));
    }
    let mut asks = Vec::new();
    let mut restated = Vec::new();
    let mut changes = Vec::new();
    let mut impossible = 0;
    for call in calls {
        let action = state
            .actions
            .get(&call.action)
            .ok_or(Refusal::Stale("the action is settled"))?;
        expect_unstarted(action, old)?;
        // What its steps did must be known first, as before it is entered.
        if effect::has_open_steps(state, action.id) {
            return Err(Refusal::Stale("a step of it is not settled"));
        }
        if restated
            .iter()
            .any(|now: &Restated| now.action == call.action)
        {
            return Err(Refusal::Stale("an action is restated twice"));
        }
        if matches!(
            &call.tool,
            ToolNow::Gone
                | ToolNow::There {
                    verdict: Verdict::Deny,
                    ..
                }
        ) {
            impossible += 1;
        }
        changes.extend(call.changes.iter().cloned());
        let (now, ask) = ask_again(state, action, call);
        restated.push(now);
        asks.push((action.order, ask));
    }
    let Some(frame) = restated
        .first()
        .and_then(|now| state.actions.get(&now.action))
        .map(|action| action.frame.clone())
    else {
        return Err(Refusal::Stale("nothing changed"));
    };
    // What else the old question asked about is asked along, unchanged, so that it is not lost.
    for ask in asked_before {
        if !asks
            .iter()
            .any(|(_, again)| again.action_id == ask.action_id)
        {
            asks.push((order_of(state, &ask), ask));
        }
    }
    asks.sort_by_key(|(order, _)| *order);
    let asks: Vec<Ask> = asks.into_iter().map(|(_, ask)| ask).collect();
    let (kind, cause) = if impossible == asks.len() {
        (InterruptKind::Error, Cause::ToolFailure)
    } else {
        (InterruptKind::Approval, Cause::HumanApproval)
    };
    if let Some(interrupt) = old {
        let reason = format!("what it asked about has changed; asked again as {new}");
        draft.emit(Event::InterruptClosed {
            interrupt,
            status: InterruptStatus::Canceled,
            reason,
            rejected: Vec::new(),
            says: None,
        });
    }
    draft.emit(Event::Repinned {
        definition,
        interrupt: new,
        actions: restated,
    });
    model::raise_instead(
        draft,
        Question {
            id: new,
            kind,
            cause,
            frame,
            asks,
        },
        old,
        changes,
    );
    Ok(())
}

/// Only what has not started can be asked again.
fn expect_unstarted(action: &Action, old: Option<InterruptId>) -> Result<(), Refusal> {
    match (&action.status, old) {
        // What was started once goes on as what it was: it is one call, under one key. And a compensation belongs to the
        // effect it undoes, not to the definition of today. Only a stepped tool starts nothing by being entered.
        _ if (action.attempts > 0 && action.tool.kind != ToolKind::Stepped)
            || action.role == Role::Compensation =>
        {
            Err(Refusal::Stale("the action has moved on"))
        }
        (ActionStatus::Held { interrupt }, Some(old)) if *interrupt == old => Ok(()),
        (ActionStatus::Ready { .. }, None) => Ok(()),
        (
            ActionStatus::Held { .. }
            | ActionStatus::Ready { .. }
            | ActionStatus::Started { .. }
            | ActionStatus::Unknown { .. }
            | ActionStatus::Unsettled { .. }
            | ActionStatus::InDoubt { .. }
            | ActionStatus::Waiting { .. }
            | ActionStatus::Undoing { .. },
            _,
        ) => Err(Refusal::Stale("the action has moved on")),
    }
}

fn order_of(state: &State, ask: &Ask) -> u32 {
    state
        .actions
        .get(&ask.action_id)
        .map_or(u32::MAX, |action| action.order)
}

fn ask_again(state: &State, action: &Action, call: RestatedCall) -> (Restated, Ask) {
    let refuse_only = || Allowed::new(vec![DecisionKind::Reject, DecisionKind::Respond]);
    let (tool, schema, verdict, allowed, description) = match call.tool {
        ToolNow::Gone => {
            let schema = Digest::default();
            (
                action.tool.clone(),
                schema,
                action.verdict.clone(),
                refuse_only(),
                None,
            )
        }
        ToolNow::There {
            tool,
            schema,
            verdict: Verdict::Deny,
            fits: _,
        } => (tool, schema, Verdict::Deny, refuse_only(), None),
        ToolNow::There {
            tool,
            schema,
            verdict,
            fits,
        } => {
            let verdict = verdict.meet(&action.verdict);
            let (allowed, description) = match &verdict {
                Verdict::Ask(terms) => (
                    Ok(terms.allowed.clone()),
                    terms.told(&tool.name, &action.params),
                ),
                Verdict::Allow => (Ok(Allowed::standard()), None),
                Verdict::Deny => (refuse_only(), None),
            };
            let allowed = if fits {
                allowed
            } else {
                let allowed = allowed.unwrap_or_else(|_| Allowed::standard());
                let mut kinds = allowed.as_slice().to_vec();
                kinds.retain(|kind| *kind != DecisionKind::Approve);
                Allowed::new(kinds).or_else(|_| refuse_only())
            };
            (tool, schema, verdict, allowed, description)
        }
    };
    // INVARIANT: every list above is neither empty nor repetitive.
    let allowed = allowed.unwrap_or_else(|_| Allowed::standard());
    let allowed = effect::decidable(state, action, allowed);
    let params_hash = action.params.hash(&tool.name, &tool.version);
    let shown = description
        .clone()
        .unwrap_or_else(|| default_description(&tool.name, &action.params));
    let subject = Subject::Action {
        tool_version: tool.version.clone(),
        schema,
        params_hash,
        preview: digest_of_shown(&shown, action.shown.as_deref()),
    };
    let ask = Ask {
        action_id: action.id,
        subject,
        allowed,
        description,
    };
    (
        Restated {
            action: action.id,
            tool,
            params_hash,
            verdict,
        },
        ask,
    )
}
