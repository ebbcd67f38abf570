//! A thread that was found in a backup. What came after the backup is not known here, so nothing goes on by itself.
//!
//! What was asked is closed. What was allowed is not allowed any more, and grants end. A write of which nobody can say
//! whether it was made is put before a person, as after a crash; and so is the run itself: if it is to go on, everything
//! that needs a person is asked anew.

use std::collections::BTreeMap;

use super::{
    Draft, effect, fork,
    model::{self, Question},
};
use crate::{
    Action, ActionId, ActionStatus, Allowed, Ask, Cause, DecisionKind, Doubt, Effect, Event,
    FramePath, GrantId, Interrupt, InterruptId, InterruptKind, InterruptStatus, Refusal, Role,
    Seen, Side, State, Subject, ThreadKind, Timestamp, Verdict, Wait, WarrantFrom,
};

/// How much of what was open is named in the question, at most.
const MAX_NAMED: usize = 8;

pub(super) fn restore(
    draft: &mut Draft<'_>,
    backup: Timestamp,
    spelt: &str,
) -> Result<(), Refusal> {
    let by = &draft.context.by.actor;
    if draft.state.version == 0 || by.tenant != draft.state.tenant {
        return Err(Refusal::NotFound);
    }
    if !by.may_decide() {
        return Err(Refusal::Forbidden { by: by.to_string() });
    }
    // A crash in the middle of adopting leaves some threads behind it.
    if draft.state.restored == Some(backup) {
        return Ok(());
    }
    end_grants(draft);
    let state = &draft.state;
    if state.active().is_none() && state.actions.is_empty() && state.interrupts.is_empty() {
        return Ok(());
    }
    let (about_effects, asked): (Vec<Interrupt>, Vec<Interrupt>) = state
        .interrupts
        .values()
        .cloned()
        .partition(is_about_effect);
    let asked: Vec<Interrupt> = asked.into_iter().flat_map(unfold).collect();
    let reason = format!("it was found in a backup of {spelt}");
    let old: Vec<InterruptId> = state.interrupts.keys().copied().collect();
    cut_off(draft, &reason);
    for interrupt in old {
        draft.emit(Event::InterruptClosed {
            interrupt,
            status: InterruptStatus::Canceled,
            reason: reason.clone(),
            rejected: Vec::new(),
            says: None,
        });
    }
    let state = &draft.state;
    let goes_on = state.active().is_some_and(|active| active.stop.is_none());
    let doubted = chosen(state, |action| is_doubted(state, action));
    let held = chosen(state, |action| {
        goes_on && !doubted.contains(&action.id) && must_be_asked(action, &asked)
    });
    let description = describe(state, spelt, &asked, &held);
    let interrupt = goes_on.then(|| draft.context.seed.interrupt_id());
    draft.emit(Event::Restored {
        backup,
        interrupt,
        held,
        doubted: doubted.clone(),
    });
    if let Some(id) = interrupt {
        ask_whether_it_goes_on(draft, id, Subject::Restored { backup, asked }, description);
    }
    for action in doubted {
        ask_what_became(draft, action, spelt, &about_effects);
    }
    Ok(())
}

/// What was allowed for several calls may have been used up, or taken back, since.
fn end_grants(draft: &mut Draft<'_>) {
    let good = draft.state.grants.values().filter(|grant| !grant.revoked);
    let good: Vec<GrantId> = good.map(|grant| grant.id).collect();
    for grant in good {
        draft.emit(Event::GrantRevoked { grant });
    }
}

/// What was being called, and may be called again, is as after a crash. Steps come first, since their tools close over them.
fn cut_off(draft: &mut Draft<'_>, reason: &str) {
    let repeatable = |action: &Action| !is_write(action) && action.is_in_flight();
    let mut calls = chosen(&draft.state, repeatable);
    calls.sort_by_key(|id| {
        let action = draft.state.actions.get(id);
        action.is_some_and(Action::is_entered)
    });
    for call in calls {
        effect::unknown(draft, call, reason, Seen::ByAnother);
    }
}

fn chosen(state: &State, wanted: impl Fn(&Action) -> bool) -> Vec<ActionId> {
    let wanted = state.actions.values().filter(|action| wanted(action));
    wanted.map(|action| action.id).collect()
}

/// Whether it leaves something behind that must not be done twice: a call, a step or a compensation.
fn is_write(action: &Action) -> bool {
    action.tool.effect == Effect::Write && !action.is_entered()
}

/// Whether it may have been made, or made once more, without anybody here knowing.
fn is_doubted(state: &State, action: &Action) -> bool {
    match &action.status {
        ActionStatus::Started { .. } => is_write(action),
        ActionStatus::Ready { .. } => {
            let begun = action.attempts > 0 || action.role == Role::Compensation;
            is_write(action) && begun
        }
        ActionStatus::Unknown { .. } => true,
        // Its question was closed; one that is pending is new.
        ActionStatus::InDoubt { interrupt, .. } => !state.interrupts.contains_key(interrupt),
        ActionStatus::Held { .. }
        | ActionStatus::Unsettled { .. }
        | ActionStatus::Waiting { .. }
        | ActionStatus::Undoing { .. } => false,
    }
}

/// Whether a call that did not begin, or goes on later, is asked about before it does: somebody was asked, or allowed it;
/// or it writes, which may have been done since.
fn must_be_asked(action: &Action, asked: &[Interrupt]) -> bool {
    let open = match &action.status {
        ActionStatus::Held { .. } | ActionStatus::Ready { .. } => true,
        // A subagent that is at work is asked about by its own calls.
        ActionStatus::Waiting { on, .. } => !matches!(on, Wait::Frame { .. }),
        ActionStatus::Started { .. }
        | ActionStatus::Unknown { .. }
        | ActionStatus::Unsettled { .. }
        | ActionStatus::InDoubt { .. }
        | ActionStatus::Undoing { .. } => false,
    };
    let allowed = action
        .warrant()
        .is_some_and(|it| it.from != WarrantFrom::Policy);
    let gated = action.verdict != Verdict::Allow || action.grant.is_some();
    let mut asks = asked.iter().flat_map(|interrupt| &interrupt.asks);
    let was_asked = asks.any(|ask| ask.action_id == action.id);
    let writes = action.tool.effect == Effect::Write;
    action.role == Role::Call && open && (was_asked || allowed || gated || writes)
}

fn is_about_effect(interrupt: &Interrupt) -> bool {
    let effect = |ask: &Ask| matches!(ask.subject, Subject::Effect { .. });
    interrupt.asks.iter().any(effect)
}

/// What was pending in the backup that a question is about, where it is about one.
pub(super) fn asked_in(interrupt: &Interrupt) -> Option<&[Interrupt]> {
    interrupt.asks.iter().find_map(|ask| match &ask.subject {
        Subject::Restored { asked, .. } => Some(asked.as_slice()),
        Subject::Action { .. }
        | Subject::Effect { .. }
        | Subject::Model
        | Subject::Node { .. }
        | Subject::Question { .. }
        | Subject::Output { .. }
        | Subject::Confirmation { .. } => None,
    })
}

/// A question that nobody answered since an earlier backup stands for those that it held.
fn unfold(interrupt: Interrupt) -> Vec<Interrupt> {
    match asked_in(&interrupt) {
        Some(asked) => asked.to_vec(),
        None => vec![interrupt],
    }
}

fn ask_whether_it_goes_on(
    draft: &mut Draft<'_>,
    id: InterruptId,
    subject: Subject,
    description: String,
) {
    let allowed = Allowed::new(vec![DecisionKind::Approve, DecisionKind::Reject]);
    let ask = Ask {
        action_id: draft.context.seed.action_id(),
        subject,
        // INVARIANT: the list is neither empty nor repetitive.
        allowed: allowed.unwrap_or_else(|_| Allowed::standard()),
        description: Some(description),
    };
    let question = Question {
        id,
        kind: InterruptKind::Error,
        cause: Cause::SystemRestart,
        frame: FramePath::root(),
        asks: vec![ask],
    };
    model::raise(draft, question);
}

/// Asks what became of a call; in the words of the question that was pending, if one was.
fn ask_what_became(draft: &mut Draft<'_>, id: ActionId, spelt: &str, before: &[Interrupt]) {
    let about = |old: &&Interrupt| old.asks.iter().any(|ask| ask.action_id == id);
    let note = format!(
        "asked anew: the store was restored from a backup of {spelt}, and this may have been settled since"
    );
    if let Some(old) = before.iter().find(about) {
        let mut again = old.clone();
        again.changes.push(note);
        return fork::ask_anew(draft, again);
    }
    let Some(action) = draft.state.actions.get(&id) else {
        return;
    };
    let only = match action.doubt {
        Doubt::EarlierAttemptDone => vec![DecisionKind::Committed],
        Doubt::None | Doubt::Reopened => Vec::new(),
    };
    let twice = match action.doubt {
        Doubt::EarlierAttemptDone => format!(" {}", effect::EARLIER_ATTEMPT_DONE),
        Doubt::None | Doubt::Reopened => String::new(),
    };
    let text = format!(
        "The store was restored from a backup of {spelt}, in which this was begun and not ended. Nobody here knows whether \
         it took effect: look where it would have.{twice}"
    );
    effect::ask_about(draft, id, Cause::WriteUnknown, &text, &only);
}

/// What a person is told who is to say whether a run goes on.
fn describe(state: &State, spelt: &str, asked: &[Interrupt], held: &[ActionId]) -> String {
    let mut open: Vec<String> = Vec::new();
    for ask in asked.iter().flat_map(|interrupt| &interrupt.asks) {
        let call = state.actions.get(&ask.action_id);
        let what = match (call, &ask.subject) {
            (Some(action), _) => shown(action),
            (
                None,
                Subject::Confirmation { .. } | Subject::Question { .. } | Subject::Output { .. },
            ) => {
                let text = ask.description.clone().unwrap_or_default();
                text.lines().next().unwrap_or_default().to_owned()
            }
            (None, _) => state.asked_name(ask),
        };
        open.push(format!("- was asked: {what}"));
    }
    let was_asked = |id: &ActionId| {
        let mut asks = asked.iter().flat_map(|interrupt| &interrupt.asks);
        asks.any(|ask| ask.action_id == *id)
    };
    let unasked = held.iter().filter(|id| !was_asked(id));
    let unasked = unasked.filter_map(|id| state.actions.get(id));
    open.extend(
        unasked.map(|action| format!("- was allowed and may have been done: {}", shown(action))),
    );
    let more = open.len().saturating_sub(MAX_NAMED);
    open.truncate(MAX_NAMED);
    if more > 0 {
        open.push(format!("- and {more} more"));
    }
    let open = match open.as_slice() {
        [] => String::new(),
        lines => format!("\n\nOpen then:\n{}", lines.join("\n")),
    };
    let how = if state.kind == ThreadKind::Outside {
        "Approve to ask it anew, reject to withdraw it."
    } else {
        "Approve to go on: whatever needs a person is asked anew, and what was allowed before does not count. Reject to end \
         the run."
    };
    format!(
        "This was restored from a backup of {spelt}. What came after is not known here: it may have gone on elsewhere, and \
         what it is about to do may have been done already.{open}\n\n{how}"
    )
}

/// A call in a line.
fn shown(action: &Action) -> String {
    let line = format!("{} {}", action.shown_name(), action.params.canonical());
    match line.char_indices().nth(200) {
        None => line,
        Some((end, _)) => format!("{}…", &line[..end]),
    }
}

/// A person lets a restored run go on: whatever waits for that is asked anew.
pub(super) fn go_on(draft: &mut Draft<'_>, restored: InterruptId, asked: Vec<Interrupt>) {
    for mut old in asked {
        let state = &draft.state;
        old.asks.retain(|ask| is_asked_anew(state, restored, ask));
        // A frame that is gone asks nothing any more.
        if old.asks.is_empty() {
            continue;
        }
        old.changes
            .push("asked anew: the store was restored from a backup since".to_owned());
        fork::ask_anew(draft, old);
    }
    let mut left: BTreeMap<(FramePath, Option<ActionId>), Vec<&Action>> = BTreeMap::new();
    for action in draft.state.actions.values() {
        if action.status
            == (ActionStatus::Held {
                interrupt: restored,
            })
        {
            // What was tried before may still report, and would take its question along.
            let apart = (action.attempts > 0).then_some(action.id);
            left.entry((action.frame.clone(), apart))
                .or_default()
                .push(action);
        }
    }
    let mut questions = Vec::new();
    for ((frame, _), mut actions) in left {
        actions.sort_by_key(|action| action.order);
        let asks = actions.into_iter();
        let asks: Vec<Ask> = asks
            .map(|it| effect::ask_by_policy(&draft.state, it))
            .collect();
        questions.push((frame, asks));
    }
    for (frame, asks) in questions {
        let question = Question {
            id: draft.context.seed.interrupt_id(),
            kind: InterruptKind::Approval,
            cause: Cause::HumanApproval,
            frame,
            asks,
        };
        let why = "it was allowed before the backup that the store was restored from, and may have been done since";
        model::raise_instead(draft, question, None, vec![why.to_owned()]);
    }
}

/// Whether something that was asked is asked again in its own words. Where not, the run comes by it again.
fn is_asked_anew(state: &State, restored: InterruptId, ask: &Ask) -> bool {
    let held = ActionStatus::Held {
        interrupt: restored,
    };
    match &ask.subject {
        Subject::Action { .. } => {
            let action = state.actions.get(&ask.action_id);
            action.is_some_and(|action| action.status == held)
        }
        Subject::Node { side, .. } => *side == Side::After,
        Subject::Confirmation { .. } | Subject::Output { .. } => true,
        // A tool is entered again, and asks again.
        Subject::Question { action, .. } => action.is_none(),
        Subject::Model | Subject::Effect { .. } | Subject::Restored { .. } => false,
    }
}
