//! A model that asks for a confirmation in plain words: its run waits for what people say.

use super::{
    Draft, clip,
    model::{self, Expiry, Question},
};
use crate::{
    Allowed, Ask, Cause, Confirmation, DecisionKind, Digest, FramePath, InputField, InterruptKind,
    OnTimeout, Subject,
};

/// What was found in a model's words.
pub(super) struct Request {
    text: Digest,
    from: u32,
    /// What people read in lists. The whole text stays in the journal, lest every append writes it again.
    reason: String,
    fields: Vec<InputField>,
    expiry: Expiry,
}

/// What this text asks for, if it does.
pub(super) fn request(confirm: &Confirmation, text: &str) -> Option<Request> {
    let from = confirm.asked_at(text)?;
    Some(Request {
        text: Digest::of(text.as_bytes()),
        from: u32::try_from(from).unwrap_or(u32::MAX),
        reason: clip(text[from..].trim()),
        fields: confirm.fields.clone(),
        expiry: confirm.timeout.map(|span| (span, OnTimeout::Expire)),
    })
}

/// Asks it. The reply is the event before.
pub(super) fn raise(draft: &mut Draft<'_>, request: Request) {
    let allowed = Allowed::new(vec![
        DecisionKind::Answer,
        DecisionKind::Approve,
        DecisionKind::Reject,
    ]);
    let ask = Ask {
        action_id: draft.context.seed.action_id(),
        subject: Subject::Confirmation {
            reply: draft.state.version,
            text: request.text,
            from: request.from,
            fields: request.fields,
        },
        // INVARIANT: the list is neither empty nor repetitive.
        allowed: allowed.unwrap_or_else(|_| Allowed::standard()),
        description: Some(request.reason),
    };
    let question = Question {
        id: draft.context.seed.interrupt_id(),
        kind: InterruptKind::Approval,
        cause: Cause::HumanApproval,
        frame: FramePath::root(),
        asks: vec![ask],
    };
    model::raise_until(draft, question, request.expiry);
}
