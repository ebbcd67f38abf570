//! What is due: questions that nobody answered in time, and sleeps that are over.

use super::{Draft, answer, effect, run};
use crate::{ActionId, Event, FramePath, InterruptId, InterruptStatus, OnTimeout, Stop, Subject};

/// Does everything that is due. Nothing is due twice: the first append closes it.
pub(super) fn tick(draft: &mut Draft<'_>) {
    let now = draft.now;
    let interrupts = draft.state.interrupts.values();
    let mut due: Vec<(OnTimeout, InterruptId)> = interrupts
        .filter(|interrupt| interrupt.due_at().is_some_and(|at| at <= now))
        .map(|interrupt| (interrupt.on_timeout, interrupt.id))
        .collect();
    // What ends the run comes first, since it takes everything else along.
    due.sort_by_key(|(on_timeout, id)| (*on_timeout != OnTimeout::Expire, *id));
    for (_, interrupt) in due {
        expire(draft, interrupt);
    }
    let asleep = draft.state.actions.values();
    let awake: Vec<ActionId> = asleep
        .filter(|action| action.sleeps_until().is_some_and(|at| at <= now))
        .map(|action| action.id)
        .collect();
    for action in awake {
        draft.emit(Event::Woken { action });
    }
    let frames = draft.state.active().into_iter().flat_map(|it| &it.frames);
    let rested: Vec<FramePath> = frames
        .filter(|(_, frame)| frame.phase.rests_until().is_some_and(|at| at <= now))
        .map(|(path, _)| path.clone())
        .collect();
    for frame in rested {
        draft.emit(Event::FrameWoken { frame });
    }
}

fn expire(draft: &mut Draft<'_>, id: InterruptId) {
    // Another one that was due may have taken this one along.
    let Some(interrupt) = draft.state.interrupts.get(&id) else {
        return;
    };
    let calls = interrupt
        .asks
        .iter()
        .filter(|ask| matches!(ask.subject, Subject::Action { .. }));
    let calls: Vec<ActionId> = calls.map(|ask| ask.action_id).collect();
    let on_timeout = interrupt.on_timeout;
    let rejected = match on_timeout {
        OnTimeout::Reject => calls,
        OnTimeout::Expire | OnTimeout::Escalate | OnTimeout::Keep => Vec::new(),
    };
    let counted = answer::counted(&draft.state, &rejected);
    let says = run::unanswered(&draft.state, id);
    draft.emit(Event::InterruptClosed {
        interrupt: id,
        status: InterruptStatus::Timeout,
        reason: "nobody answered in time".to_owned(),
        rejected: rejected.clone(),
        says,
    });
    for action in rejected {
        effect::ask_about_steps(draft, action);
    }
    match on_timeout {
        OnTimeout::Expire => run::stop(draft, Stop::TimedOut { interrupt: id }),
        OnTimeout::Reject => answer::guard_against_loops(draft, counted),
        OnTimeout::Escalate | OnTimeout::Keep => {}
    }
}
