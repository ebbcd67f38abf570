//! A model's turn: asked for, answered, failed, lost.

use super::{Draft, JudgedCall, MAX_ATTEMPTS, ModelTrouble, clip, run};
use crate::{
    AfterModel, Allowed, Ask, Called, Cause, DecisionKind, Event, Fate, FramePath, FramePhase,
    Interrupt, InterruptId, InterruptKind, LimitKind, OnTimeout, Params, Refusal, RunOutcome, Seen,
    Stop, Subject, Timestamp, Usage, Verdict, preview::default_description,
};

pub(super) fn start(draft: &mut Draft<'_>, frame: FramePath, epoch: u64) -> Result<(), Refusal> {
    let active = draft.state.active().ok_or(Refusal::RunOver)?;
    let phase = active.frames.get(&frame).map(|frame| &frame.phase);
    let Some(FramePhase::Turn { failures, .. }) = phase else {
        return Err(Refusal::Stale("the frame does not wait for its model"));
    };
    let attempt = failures + 1;
    if attempt == 1 && active.turns >= active.limits.turns {
        run::stop(
            draft,
            Stop::Limit {
                limit: LimitKind::Turns,
            },
        );
    } else if active.worked >= active.limits.time {
        run::stop(
            draft,
            Stop::Limit {
                limit: LimitKind::Time,
            },
        );
    } else {
        draft.emit(Event::ModelStarted {
            frame,
            attempt,
            epoch,
        });
    }
    Ok(())
}

/// The frame is waiting for exactly this attempt.
fn expect_attempt(draft: &Draft<'_>, frame: &FramePath, attempt: u32) -> Result<(), Refusal> {
    let active = draft.state.active().ok_or(Refusal::RunOver)?;
    match active.frames.get(frame).map(|frame| &frame.phase) {
        Some(FramePhase::Thinking {
            attempt: current, ..
        }) if *current == attempt => Ok(()),
        Some(_) | None => Err(Refusal::Stale(
            "the frame does not wait for this answer of its model",
        )),
    }
}

pub(super) fn replied(
    draft: &mut Draft<'_>,
    frame: FramePath,
    attempt: u32,
    text: String,
    calls: Vec<JudgedCall>,
    usage: Usage,
) -> Result<(), Refusal> {
    expect_attempt(draft, &frame, attempt)?;
    let mut asks = Vec::new();
    let mut called = Vec::with_capacity(calls.len());
    for JudgedCall { call, judged } in calls {
        let fate = match judged {
            Err(message) => Fate::Refused { message },
            Ok(judged) if judged.verdict == Verdict::Deny => Fate::Refused {
                message: format!(
                    "The policy does not allow the tool `{}`. It was not executed. Do not call it again.",
                    call.name
                ),
            },
            // What was judged must be what the journal will say, since that is what runs.
            Ok(judged) if judged.params != Params::from_stored(&call.arguments) => Fate::Refused {
                message: format!(
                    "The arguments for `{}` could not be read twice alike. It was not executed.",
                    call.name
                ),
            },
            Ok(judged) => {
                let id = draft.context.seed.action_id();
                let params_hash = judged.params.hash(&judged.tool.name, &judged.tool.version);
                if let Verdict::Ask {
                    allowed,
                    description,
                } = &judged.verdict
                {
                    let shown = description
                        .clone()
                        .unwrap_or_else(|| default_description(&call.name, &judged.params));
                    let subject = Subject::Action {
                        tool_version: judged.tool.version.clone(),
                        schema: judged.schema,
                        params_hash,
                        preview: crate::Digest::of(shown.as_bytes()),
                    };
                    let (allowed, description) = (allowed.clone(), description.clone());
                    asks.push(Ask {
                        action_id: id,
                        subject,
                        allowed,
                        description,
                    });
                }
                Fate::Action {
                    id,
                    version: judged.tool.version,
                    effect: judged.tool.effect,
                    timeout: judged.tool.timeout,
                    settle: judged.tool.settle,
                    hooks: judged.tool.hooks,
                    verdict: judged.verdict,
                }
            }
        };
        called.push(Called { call, fate });
    }
    let last_word = called.is_empty();
    let count = u32::try_from(called.len()).unwrap_or(u32::MAX);
    let over = draft
        .state
        .active()
        .is_some_and(|active| active.calls.saturating_add(count) > active.limits.calls);
    let interrupt = (!asks.is_empty()).then(|| draft.context.seed.interrupt_id());
    draft.emit(Event::ModelReplied {
        frame: frame.clone(),
        text,
        calls: called,
        interrupt,
        usage,
    });
    if over {
        run::stop(
            draft,
            Stop::Limit {
                limit: LimitKind::Calls,
            },
        );
    } else if let Some(id) = interrupt {
        raise(
            draft,
            Question {
                id,
                kind: InterruptKind::Approval,
                cause: Cause::HumanApproval,
                frame,
                asks,
            },
        );
    } else if last_word && frame.is_root() {
        draft.emit(Event::RunEnded {
            outcome: RunOutcome::Finished,
        });
    }
    Ok(())
}

pub(super) struct Question {
    pub(super) id: InterruptId,
    pub(super) kind: InterruptKind,
    pub(super) cause: Cause,
    pub(super) frame: FramePath,
    pub(super) asks: Vec<Ask>,
}

/// Asks, freezing the envelope.
pub(super) fn raise(draft: &mut Draft<'_>, question: Question) {
    raise_instead(draft, question, None, Vec::new());
}

/// Asks in place of another question, showing what has changed.
pub(super) fn raise_instead(
    draft: &mut Draft<'_>,
    question: Question,
    supersedes: Option<InterruptId>,
    changes: Vec<String>,
) {
    let Some(run) = &draft.state.run else { return };
    let interrupt = Interrupt {
        id: question.id,
        kind: question.kind,
        cause: question.cause,
        run: run.id,
        frame: question.frame,
        asks: question.asks,
        plan_version: draft.state.plan_version,
        definition: run.definition,
        requester: run.requester.actor.clone(),
        asked_at: draft.now,
        expires_at: None,
        on_timeout: OnTimeout::default(),
        nonce: draft.context.seed.nonce(),
        supersedes,
        changes,
    };
    draft.emit(Event::InterruptRaised(Box::new(interrupt)));
}

pub(super) fn failed(
    draft: &mut Draft<'_>,
    frame: &FramePath,
    attempt: u32,
    trouble: &ModelTrouble,
) -> Result<(), Refusal> {
    expect_attempt(draft, frame, attempt)?;
    let now = draft.now;
    let (error, cause, retry) = match trouble {
        ModelTrouble::TimedOut { error } => (error, Cause::ModelTimeout, Some(now)),
        ModelTrouble::RateLimited { error, retry_after } => {
            let earliest = retry_after.map_or(now, |span| now + span);
            (error, Cause::RateLimit, Some(earliest))
        }
        ModelTrouble::Unavailable { error } => (error, Cause::ModelError, Some(now)),
        ModelTrouble::Rejected { error } => (error, Cause::ModelError, None),
    };
    let seen = Seen::ByItsDriver;
    retry_or_ask(
        draft,
        frame,
        attempt,
        Trouble {
            error,
            cause,
            seen,
            retry,
        },
    );
    Ok(())
}

pub(super) fn lost(draft: &mut Draft<'_>, frame: &FramePath, attempt: u32) -> Result<(), Refusal> {
    expect_attempt(draft, frame, attempt)?;
    let error = "the process that called the model died before it answered";
    let trouble = Trouble {
        error,
        cause: Cause::ModelError,
        seen: Seen::ByAnother,
        retry: Some(draft.now),
    };
    retry_or_ask(draft, frame, attempt, trouble);
    Ok(())
}

/// Why there is no answer, and what that means for the turn.
#[derive(Clone, Copy)]
struct Trouble<'a> {
    error: &'a str,
    /// Why the run waits, once nothing is left to be tried.
    cause: Cause,
    seen: Seen,
    /// The earliest time at which another try could help; `None` if none would.
    retry: Option<Timestamp>,
}

fn retry_or_ask(draft: &mut Draft<'_>, frame: &FramePath, attempt: u32, trouble: Trouble<'_>) {
    let Trouble {
        error,
        cause,
        seen,
        retry,
    } = trouble;
    let error = clip(error);
    let failure = |then| Event::ModelFailed {
        frame: frame.clone(),
        attempt,
        error: error.clone(),
        seen,
        then,
    };
    if let Some(earliest) = retry
        && attempt < MAX_ATTEMPTS
    {
        let at = match seen {
            Seen::ByItsDriver => draft.back_off(attempt).max(earliest),
            // Nothing is gained by waiting: the model did not fail.
            Seen::ByAnother => earliest,
        };
        draft.emit(failure(AfterModel::RetryAt { at }));
        return;
    }
    draft.emit(failure(AfterModel::Ask));
    let allowed = Allowed::new(vec![DecisionKind::Approve, DecisionKind::Reject]);
    // INVARIANT: the list is neither empty nor repetitive.
    let allowed = allowed.unwrap_or_else(|_| Allowed::standard());
    let description = format!(
        "The model gave no answer (attempt {attempt}): {error}\n\nApprove to try again, reject to end the run."
    );
    let ask = Ask {
        action_id: draft.context.seed.action_id(),
        subject: Subject::Model,
        allowed,
        description: Some(description),
    };
    let id = draft.context.seed.interrupt_id();
    raise(
        draft,
        Question {
            id,
            kind: InterruptKind::Error,
            cause,
            frame: frame.clone(),
            asks: vec![ask],
        },
    );
}
