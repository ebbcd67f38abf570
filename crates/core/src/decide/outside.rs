//! Questions of programs outside: a run that only asks.

use super::{
    Draft, model,
    model::{Expiry, Question},
    run,
};
use crate::{
    ActionId, Ask, Breakpoints, Cause, Digest, Event, FramePath, InterruptId, InterruptKind,
    Limits, Prompt, Refusal, RunOutcome, Stop, Subject, ThreadId, ThreadKind,
};

/// Who asks.
pub(super) struct Asker {
    pub(super) thread: ThreadId,
    pub(super) tenant: String,
    pub(super) workflow: String,
    pub(super) node: String,
}

pub(super) fn ask(
    draft: &mut Draft<'_>,
    asker: Asker,
    kind: InterruptKind,
    prompt: Box<Prompt>,
    expiry: Expiry,
) -> Result<(), Refusal> {
    let state = &draft.state;
    if state.version > 0 && (state.tenant != asker.tenant || state.kind != ThreadKind::Outside) {
        return Err(Refusal::NotFound);
    }
    if !state.interrupts.is_empty() {
        return Err(Refusal::InterruptPending {
            pending: state.interrupts.keys().copied().collect(),
        });
    }
    if state.active().is_some() {
        return Err(Refusal::RunActive);
    }
    let plan_version = state.plan_version + 1;
    if state.version == 0 {
        draft.emit(Event::ThreadCreated {
            thread: asker.thread,
            tenant: asker.tenant,
            agent: asker.workflow,
            session: asker.node,
            kind: ThreadKind::Outside,
        });
    }
    draft.emit(Event::RunStarted {
        run: draft.context.seed.run_id(),
        definition: Digest::default(),
        input: prompt.title.clone(),
        plan_version,
        limits: Limits::default(),
        requester: draft.context.by.clone(),
        breakpoints: Breakpoints::default(),
    });
    let posed = Posed {
        id: draft.context.seed.interrupt_id(),
        kind,
        frame: FramePath::root(),
        action: None,
        name: String::new(),
        prompt,
    };
    pose(draft, posed, expiry);
    Ok(())
}

/// Something that a tool's own code, or a program outside, wants to know.
pub(super) struct Posed {
    pub(super) id: InterruptId,
    pub(super) kind: InterruptKind,
    pub(super) frame: FramePath,
    pub(super) action: Option<ActionId>,
    pub(super) name: String,
    pub(super) prompt: Box<Prompt>,
}

/// Asks it.
pub(super) fn pose(draft: &mut Draft<'_>, posed: Posed, expiry: Expiry) {
    let Posed {
        id,
        kind,
        frame,
        action,
        name,
        prompt,
    } = posed;
    let cause = match kind {
        InterruptKind::Approval => Cause::HumanApproval,
        InterruptKind::Input => Cause::HumanInput,
        InterruptKind::Review => Cause::Review,
        InterruptKind::Breakpoint => Cause::Breakpoint,
        InterruptKind::Error => Cause::ToolFailure,
    };
    let description = [prompt.title.as_str(), prompt.description.as_str()];
    let description: Vec<&str> = description
        .into_iter()
        .filter(|text| !text.is_empty())
        .collect();
    let ask = Ask {
        action_id: draft.context.seed.action_id(),
        allowed: prompt.allowed(kind),
        description: Some(description.join("\n\n")),
        subject: Subject::Question {
            action,
            name,
            prompt,
        },
    };
    let question = Question {
        id,
        kind,
        cause,
        frame,
        asks: vec![ask],
    };
    model::raise_until(draft, question, expiry);
}

/// Takes a question back. It names the question, so that a later one of the same node is never meant.
pub(super) fn withdraw(draft: &mut Draft<'_>, id: InterruptId) -> Result<(), Refusal> {
    let state = &draft.state;
    if state.kind != ThreadKind::Outside || state.tenant != draft.context.by.actor.tenant {
        return Err(Refusal::NotFound);
    }
    let pending = state.interrupts.get(&id);
    let interrupt = pending.ok_or(Refusal::NotPending { interrupt: id })?;
    if interrupt.due_at().is_some_and(|at| draft.now >= at) {
        return Err(Refusal::Expired { interrupt: id });
    }
    // Whoever asked may take it back; of others, whoever could have answered.
    let by = &draft.context.by.actor;
    if interrupt.requester != *by && !by.may_decide() {
        return Err(Refusal::Forbidden { by: by.to_string() });
    }
    run::stop(draft, Stop::Cancelled);
    Ok(())
}

/// A run that only asks is over when it has its answer.
pub(super) fn conclude(draft: &mut Draft<'_>) {
    let state = &draft.state;
    let answered = state.kind == ThreadKind::Outside && state.interrupts.is_empty();
    if answered && state.active().is_some_and(|active| active.stop.is_none()) {
        draft.emit(Event::RunEnded {
            outcome: RunOutcome::Finished,
        });
    }
}
