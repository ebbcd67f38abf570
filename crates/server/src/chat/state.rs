//! What a chat waits for, as the chat API shows it.

use holdpoint_core::{Interrupt, State};
use holdpoint_engine::{Engine, Error};
use holdpoint_store::ThreadKey;

use super::form;
use crate::{
    frames::{InterruptState, checkpoint_id},
    problem::Problem,
};

/// The question that a chat shows: the oldest one that is open at this time and has a form.
pub(crate) fn pending<'s>(engine: &Engine, thread: &'s State) -> Option<&'s Interrupt> {
    let now = engine.store().now();
    // What is due is closed by whoever looks next; reading changes nothing.
    let open = |interrupt: &&Interrupt| interrupt.due_at().is_none_or(|due| now < due);
    let pending = thread.interrupts.values().filter(open);
    pending.min_by_key(|interrupt| (interrupt.asked_at, interrupt.id))
}

/// The question that a thread waits for; `None` if nothing is pending that has a form.
///
/// # Errors
///
/// The store fails, or the journal was tampered with.
pub(crate) async fn asked(
    engine: &Engine,
    key: &ThreadKey,
    thread: &State,
) -> Result<Option<InterruptState>, Problem> {
    let Some(interrupt) = pending(engine, thread) else {
        return Ok(None);
    };
    let Some(fields) = form::fields(interrupt) else {
        return Ok(None);
    };
    let reason: Result<String, Error> = engine.reason(key, thread, interrupt).await;
    Ok(Some(InterruptState {
        session_id: thread.session.clone(),
        agent_name: thread.agent.clone(),
        reason: reason?,
        fields,
        timestamp: interrupt.asked_at.as_micros().div_euclid(1_000_000),
        checkpoint_id: checkpoint_of(thread, interrupt),
        interrupt_id: Some(interrupt.id),
    }))
}

/// The name of a question's checkpoint.
pub(crate) fn checkpoint_of(thread: &State, interrupt: &Interrupt) -> String {
    checkpoint_id(&thread.agent, &thread.session, interrupt.asked_at)
}
