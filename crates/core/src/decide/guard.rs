//! What guardrails hold back: a person says whether it is said, or what is said instead, or has the model answer again.

use super::{
    Draft, clip_to,
    model::{self, Question},
};
use crate::{
    Allowed, Ask, Cause, Decided, Decision, DecisionKind, Digest, Event, Flag, FramePath,
    FramePhase, HeldReply, Interrupt, InterruptKind, Refusal, Subject, Usage, flag_lines,
    guard::withheld,
};

/// How much of what guardrails found a question shows, in characters: it stands in the head. The event has all of it.
const MOST_TOLD: usize = 3_000;

/// What guardrails found, a line each. Where it is too much, each has the same share of the room, so that none is left out.
fn told_of(flags: &[Flag]) -> String {
    let each = MOST_TOLD / flags.len().max(1);
    let told: Vec<Flag> = flags
        .iter()
        .map(|flag| Flag::new(flag.guardrail.as_str(), &clip_to(&flag.reason, each)))
        .collect();
    flag_lines(&told)
}

/// Holds what a model answered, and asks.
pub(super) fn hold(
    draft: &mut Draft<'_>,
    frame: FramePath,
    attempt: u32,
    reply: Box<HeldReply>,
    flags: Vec<Flag>,
) -> Result<(), Refusal> {
    model::expect_attempt(draft, &frame, attempt)?;
    if flags.is_empty() {
        return Err(Refusal::Stale("nothing was found that a person should see"));
    }
    let text = Digest::of(reply.text.as_bytes());
    let description = told_of(&flags);
    draft.emit(Event::OutputHeld {
        frame: frame.clone(),
        reply,
        flags,
    });
    let allowed = Allowed::new(vec![
        DecisionKind::Approve,
        DecisionKind::Respond,
        DecisionKind::Reject,
    ]);
    let ask = Ask {
        action_id: draft.context.seed.action_id(),
        subject: Subject::Output {
            reply: draft.state.version,
            text,
        },
        // INVARIANT: the list is neither empty nor repetitive.
        allowed: allowed.unwrap_or_else(|_| Allowed::standard()),
        description: Some(description),
    };
    let question = Question {
        id: draft.context.seed.interrupt_id(),
        kind: InterruptKind::Review,
        cause: Cause::Review,
        frame,
        asks: vec![ask],
    };
    model::raise(draft, question);
    Ok(())
}

/// Where the words of a reply come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum From {
    /// The model just said them.
    Model,
    /// They were held, and a person lets them be said. What they cost was counted then.
    Held,
}

/// The frame waits for exactly these words.
pub(super) fn expect_words(
    draft: &Draft<'_>,
    frame: &FramePath,
    attempt: u32,
    text: &str,
) -> Result<From, Refusal> {
    let active = draft.state.active().ok_or(Refusal::RunOver)?;
    let phase = active.frames.get(frame).map(|frame| &frame.phase);
    let Some(FramePhase::Cleared {
        attempt: current,
        text: seen,
    }) = phase
    else {
        return model::expect_attempt(draft, frame, attempt).map(|()| From::Model);
    };
    // INVARIANT: nothing is said but what the person saw.
    if *current != attempt || *seen != Digest::of(text.as_bytes()) {
        return Err(Refusal::Stale("this is not what a person let be said"));
    }
    Ok(From::Held)
}

/// What a model is told whose words a person held back.
pub(super) fn told(interrupt: &Interrupt, decisions: &[Decided]) -> Option<String> {
    let mut pairs = interrupt.asks.iter().zip(decisions);
    pairs.find_map(|(ask, decided)| match (&ask.subject, &decided.decision) {
        (Subject::Output { .. }, Decision::Reject { message }) => {
            Some(withheld(ask.description.as_deref(), message.as_deref()))
        }
        (_, _) => None,
    })
}

/// What a person has said instead of what a model said.
pub(super) fn said_instead(interrupt: &Interrupt, decisions: &[Decided]) -> Option<String> {
    let mut pairs = interrupt.asks.iter().zip(decisions);
    pairs.find_map(|(ask, decided)| match (&ask.subject, &decided.decision) {
        (Subject::Output { .. }, Decision::Respond { message }) => Some(message.clone()),
        (_, _) => None,
    })
}

/// A person's words take the place of the model's, and of its calls.
pub(super) fn say_instead(draft: &mut Draft<'_>, frame: FramePath, text: String) {
    let active = draft.state.active();
    let phase = active.and_then(|active| active.frames.get(&frame));
    // Another answer of the same command may have stopped the run.
    if !phase.is_some_and(|it| matches!(it.phase, FramePhase::Held { .. })) {
        return;
    }
    draft.emit(Event::ModelReplied {
        frame: frame.clone(),
        text,
        calls: Vec::new(),
        usage: Usage::default(),
        model: String::new(),
        carried: None,
    });
    model::stop_after(draft, frame);
}
