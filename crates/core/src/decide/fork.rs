//! A thread that begins where another one stood.
//!
//! What was done stays done and is a fact; what was asked is asked anew; nothing that anybody allowed is carried over.

use super::Draft;
use crate::{
    Action, ActionStatus, Actor, Event, FramePhase, Interrupt, Phase, Refusal, RunId, Span, State,
    Subject, ThreadId, ThreadKind, WarrantFrom,
};

/// How often a fork may be forked again: a conversation is read through all of them.
pub(super) const MAX_FORKS: u32 = 16;

pub(super) fn fork(
    draft: &mut Draft<'_>,
    thread: ThreadId,
    session: String,
    from: &State,
) -> Result<(), Refusal> {
    if from.version == 0 || from.tenant != draft.context.by.actor.tenant {
        return Err(Refusal::NotFound);
    }
    if draft.state.version > 0 {
        return Err(Refusal::ThreadExists);
    }
    from.forkable().map_err(Refusal::NotForkable)?;
    let depth = from.forked.as_ref().map_or(0, |origin| origin.depth) + 1;
    if depth > MAX_FORKS {
        return Err(Refusal::NotForkable("it was forked too often already"));
    }
    let run = draft.context.seed.run_id();
    draft.emit(Event::ThreadCreated {
        thread,
        tenant: from.tenant.clone(),
        agent: from.agent.clone(),
        session,
        kind: ThreadKind::Agent,
    });
    let requester = draft.context.by.clone();
    let mut head = from.clone();
    head.interrupts.clear();
    head.grants.clear();
    head.restored = None;
    head.run = head.run.filter(|run| matches!(run.phase, Phase::Active(_)));
    for action in head.actions.values_mut() {
        action.run = run;
    }
    if let Some(active) = head.active_mut() {
        for frame in active.frames.values_mut() {
            frame.rejected.clear();
        }
    }
    if let Some(old) = &mut head.run {
        (old.id, old.requester, old.started_at) = (run, requester, draft.now);
    }
    draft.emit(Event::Forked {
        parent: from.thread,
        at: from.version,
        hash: from.hash,
        depth,
        head: Box::new(head),
    });
    for interrupt in from.interrupts.values() {
        let mut interrupt = interrupt.clone();
        adapt(&mut interrupt, run, &draft.context.by.actor);
        ask_anew(draft, interrupt);
    }
    Ok(())
}

/// Makes a question of the other thread one of this run.
fn adapt(interrupt: &mut Interrupt, run: RunId, requester: &Actor) {
    (interrupt.run, interrupt.requester) = (run, requester.clone());
    interrupt.changes.clear();
    for ask in &mut interrupt.asks {
        match &mut ask.subject {
            // What the model said is in the other thread's journal.
            Subject::Confirmation { reply, .. } | Subject::Output { reply, .. } => *reply = 0,
            Subject::Restored { asked, .. } => {
                for one in asked {
                    adapt(one, run, requester);
                }
            }
            Subject::Action { .. }
            | Subject::Effect { .. }
            | Subject::Model
            | Subject::Node { .. }
            | Subject::Question { .. } => {}
        }
    }
}

/// Asks the same again, as another question that is open for as long as the old one was.
pub(super) fn ask_anew(draft: &mut Draft<'_>, old: Interrupt) {
    let open_for: Option<Span> = old.expires_at.map(|at| at.since(old.asked_at));
    let interrupt = Interrupt {
        id: draft.context.seed.interrupt_id(),
        asked_at: draft.now,
        expires_at: open_for.map(|span| draft.now + span),
        nonce: draft.context.seed.nonce(),
        supersedes: Some(old.id),
        ..old
    };
    draft.emit(Event::InterruptRaised(Box::new(interrupt)));
}

impl State {
    /// Whether another thread can begin where this one stands.
    ///
    /// # Errors
    ///
    /// Why not: something is in the air, or allowed and not done yet.
    pub fn forkable(&self) -> Result<(), &'static str> {
        if self.kind != ThreadKind::Agent {
            return Err("it is no agent's");
        }
        let thinks = |phase: &FramePhase| matches!(phase, FramePhase::Thinking { .. });
        if self.stop().is_some() {
            return Err("its run is being stopped");
        }
        let frames = || self.active().into_iter().flat_map(|it| it.frames.values());
        if frames().any(|frame| thinks(&frame.phase)) {
            return Err("its model is being asked");
        }
        if frames().any(|frame| matches!(frame.phase, FramePhase::Cleared { .. })) {
            return Err("what its model said was let pass, and is not said yet");
        }
        if !self.actions.values().all(stands_still) {
            return Err("a call is being made, was made with an unknown outcome, or was allowed");
        }
        Ok(())
    }
}

/// Whether nothing of a call is in the air, and nobody allowed it.
fn stands_still(action: &Action) -> bool {
    let allowed = match action.warrant().map(|warrant| &warrant.from) {
        None | Some(WarrantFrom::Policy) => action.grant.is_some(),
        Some(WarrantFrom::Person { .. } | WarrantFrom::Grant(_) | WarrantFrom::Compensation) => {
            true
        }
    };
    let still = match action.status {
        ActionStatus::Held { .. } | ActionStatus::Waiting { .. } => true,
        ActionStatus::Ready { .. }
        | ActionStatus::Started { .. }
        | ActionStatus::Unknown { .. }
        | ActionStatus::Unsettled { .. }
        | ActionStatus::InDoubt { .. }
        | ActionStatus::Undoing { .. } => false,
    };
    still && !allowed
}
