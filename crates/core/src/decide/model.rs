//! A model's turn: asked for, answered, failed, lost.

use super::{
    Draft, Judged, JudgedCall, MAX_ATTEMPTS, ModelTrouble, breakpoint, clip, confirm, grant, guard,
    run,
};
use crate::{
    ActionId, AfterModel, Allowed, Ask, Breakpoints, Called, Carried, Cause, Confirmation,
    DecisionKind, Event, Fate, FramePath, FramePhase, Interrupt, InterruptId, InterruptKind,
    InterruptMode, LimitKind, OnTimeout, Params, Refusal, Seen, Side, Span, State, Stop, Subject,
    ToolCall, Usage, Verdict, next::may_start, preview::default_description,
    shown::digest_of_shown,
};

pub(super) fn start(draft: &mut Draft<'_>, frame: FramePath, epoch: u64) -> Result<(), Refusal> {
    let active = draft.state.active().ok_or(Refusal::RunOver)?;
    let phase = active.frames.get(&frame).map(|frame| &frame.phase);
    let Some(FramePhase::Turn {
        failures, passed, ..
    }) = phase
    else {
        return Err(Refusal::Stale("the frame does not wait for its model"));
    };
    if !may_start(&draft.state, &frame) {
        return Err(Refusal::Stale("nothing may start now"));
    }
    let attempt = failures + 1;
    if !passed && breakpoint::is_set(&draft.state, Breakpoints::MODEL, Side::Before) {
        breakpoint::stop_at(draft, frame, Breakpoints::MODEL, Side::Before, None);
        return Ok(());
    }
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
pub(super) fn expect_attempt(
    draft: &Draft<'_>,
    frame: &FramePath,
    attempt: u32,
) -> Result<(), Refusal> {
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

/// What a model answered.
pub(super) struct Replied {
    pub(super) text: String,
    pub(super) calls: Vec<JudgedCall>,
    pub(super) mode: InterruptMode,
    pub(super) usage: Usage,
    pub(super) model: String,
    pub(super) carried: Option<Box<Carried>>,
    pub(super) confirm: Option<Box<Confirmation>>,
}

pub(super) fn replied(
    draft: &mut Draft<'_>,
    frame: FramePath,
    attempt: u32,
    reply: Replied,
) -> Result<(), Refusal> {
    let from = guard::expect_words(draft, &frame, attempt, &reply.text)?;
    let Replied {
        text,
        calls,
        mode,
        usage,
        model,
        carried,
        confirm,
    } = reply;
    let usage = match from {
        guard::From::Model => usage,
        guard::From::Held => Usage::default(),
    };
    // Only the agent's last word is said to a user: a subagent's is said to the agent, and a word with calls is not the
    // last one.
    let confirm = confirm.filter(|_| frame.is_root() && calls.is_empty());
    let request = confirm.and_then(|it| confirm::request(&it, &text));
    let mut asks = Vec::new();
    let mut granted = Vec::new();
    let mut called = Vec::with_capacity(calls.len());
    for JudgedCall { id, call, judged } in calls {
        let fate = match judged.and_then(|judged| refuse_denied(&call, judged)) {
            Err(message) => Fate::Refused { message },
            Ok(judged) => {
                let grant = grant::find(draft, &frame, &judged, &granted);
                match &grant {
                    Some(grant) => granted.push(grant.clone()),
                    None => asks.extend(ask_for(id, &judged)),
                }
                Fate::Action {
                    id,
                    version: judged.tool.version,
                    effect: judged.tool.effect,
                    timeout: judged.tool.timeout,
                    settle: judged.tool.settle,
                    hooks: judged.tool.hooks,
                    verdict: judged.verdict,
                    kind: judged.tool.kind,
                    rule: judged.rule,
                    grant,
                    shown: judged.shown,
                    held_by: None,
                }
            }
        };
        called.push(Called { call, fate });
    }
    let count = u32::try_from(called.len()).unwrap_or(u32::MAX);
    let over = draft
        .state
        .active()
        .is_some_and(|active| active.calls.saturating_add(count) > active.limits.calls);
    let questions = group(draft, asks, mode);
    for fate in called.iter_mut().map(|called| &mut called.fate) {
        if let Fate::Action { id, held_by, .. } = fate {
            *held_by = waits_for(*id, &questions, mode);
        }
    }
    draft.emit(Event::ModelReplied {
        frame: frame.clone(),
        text,
        calls: called,
        usage,
        model,
        carried,
    });
    if over {
        run::stop(
            draft,
            Stop::Limit {
                limit: LimitKind::Calls,
            },
        );
        return Ok(());
    }
    if let Some(request) = request {
        confirm::raise(draft, request);
    }
    for (id, asks) in questions {
        raise(
            draft,
            Question {
                id,
                kind: InterruptKind::Approval,
                cause: Cause::HumanApproval,
                frame: frame.clone(),
                asks,
            },
        );
    }
    stop_after(draft, frame);
    Ok(())
}

/// Stops after a model's turn, where that is to be looked at.
pub(super) fn stop_after(draft: &mut Draft<'_>, frame: FramePath) {
    if breakpoint::is_set(&draft.state, Breakpoints::MODEL, Side::After) {
        breakpoint::stop_at(draft, frame, Breakpoints::MODEL, Side::After, None);
    }
}

/// What the policy forbids, and what is not what it seems, is not done; the model is told why.
fn refuse_denied(call: &ToolCall, judged: Judged) -> Result<Judged, String> {
    if judged.verdict == Verdict::Deny {
        return Err(format!(
            "The policy does not allow the tool `{}`. It was not executed. Do not call it again.",
            call.name
        ));
    }
    // What was judged must be what the journal will say, since that is what runs.
    if judged.params != Params::from_stored(&call.arguments) {
        return Err(format!(
            "The arguments for `{}` could not be read twice alike. It was not executed.",
            call.name
        ));
    }
    Ok(judged)
}

/// What a person is asked about a call, if they must be.
fn ask_for(id: ActionId, judged: &Judged) -> Option<Ask> {
    let Verdict::Ask(terms) = &judged.verdict else {
        return None;
    };
    let (name, version) = (&judged.tool.name, &judged.tool.version);
    let told = terms.told(name, &judged.params);
    let shown = told
        .clone()
        .unwrap_or_else(|| default_description(name, &judged.params));
    Some(Ask {
        action_id: id,
        subject: Subject::Action {
            tool_version: version.clone(),
            schema: judged.schema,
            params_hash: judged.params.hash(name, version),
            preview: digest_of_shown(&shown, judged.shown.as_deref()),
        },
        allowed: terms.allowed.clone(),
        description: told,
    })
}

/// One question for all of them, or one for each.
fn group(
    draft: &mut Draft<'_>,
    asks: Vec<Ask>,
    mode: InterruptMode,
) -> Vec<(InterruptId, Vec<Ask>)> {
    match mode {
        InterruptMode::Batched if asks.is_empty() => Vec::new(),
        InterruptMode::Batched => vec![(draft.context.seed.interrupt_id(), asks)],
        InterruptMode::PerCall => asks
            .into_iter()
            .map(|ask| (draft.context.seed.interrupt_id(), vec![ask]))
            .collect(),
    }
}

/// The question that an action waits for.
fn waits_for(
    action: ActionId,
    questions: &[(InterruptId, Vec<Ask>)],
    mode: InterruptMode,
) -> Option<InterruptId> {
    let about = |asks: &[Ask]| asks.iter().any(|ask| ask.action_id == action);
    questions
        .iter()
        .find(|(_, asks)| mode == InterruptMode::Batched || about(asks))
        .map(|(id, _)| *id)
}

pub(super) struct Question {
    pub(super) id: InterruptId,
    pub(super) kind: InterruptKind,
    pub(super) cause: Cause,
    pub(super) frame: FramePath,
    pub(super) asks: Vec<Ask>,
}

/// How long a question stays open, and what happens then.
pub(super) type Expiry = Option<(Span, OnTimeout)>;

/// Asks, freezing the envelope.
pub(super) fn raise(draft: &mut Draft<'_>, question: Question) {
    raise_instead(draft, question, None, Vec::new());
}

/// Asks, for so long.
pub(super) fn raise_until(draft: &mut Draft<'_>, question: Question, expiry: Expiry) {
    emit_question(draft, question, expiry, None, Vec::new());
}

/// Asks in place of another question, showing what has changed.
pub(super) fn raise_instead(
    draft: &mut Draft<'_>,
    question: Question,
    supersedes: Option<InterruptId>,
    changes: Vec<String>,
) {
    let expiry = expiry(draft, &question.asks);
    emit_question(draft, question, expiry, supersedes, changes);
}

fn emit_question(
    draft: &mut Draft<'_>,
    question: Question,
    expiry: Expiry,
    supersedes: Option<InterruptId>,
    changes: Vec<String>,
) {
    let (kind, cause) = kind_of(&draft.state, &question);
    let Some(run) = &draft.state.run else { return };
    let frames = draft.state.active().map(|active| &active.frames);
    let frame = frames.and_then(|frames| frames.get(&question.frame));
    let definition = frame.map_or(run.definition, |frame| frame.definition);
    let interrupt = Interrupt {
        id: question.id,
        kind,
        cause,
        run: run.id,
        frame: question.frame,
        asks: question.asks,
        plan_version: draft.state.plan_version,
        definition,
        requester: run.requester.actor.clone(),
        asked_at: draft.now,
        expires_at: expiry.map(|(span, _)| draft.now + span),
        on_timeout: expiry.map_or_else(OnTimeout::default, |(_, then)| then),
        nonce: draft.context.seed.nonce(),
        supersedes,
        changes,
    };
    draft.emit(Event::InterruptRaised(Box::new(interrupt)));
}

/// An approval is a review where guardrails have flagged one of the calls.
fn kind_of(state: &State, question: &Question) -> (InterruptKind, Cause) {
    let flagged = |ask: &Ask| {
        let action = state.actions.get(&ask.action_id);
        action.is_some_and(|action| !action.verdict.flags().is_empty())
    };
    match question.kind {
        InterruptKind::Approval if question.asks.iter().any(flagged) => {
            (InterruptKind::Review, Cause::Review)
        }
        InterruptKind::Approval
        | InterruptKind::Input
        | InterruptKind::Review
        | InterruptKind::Breakpoint
        | InterruptKind::Error => (question.kind, question.cause),
    }
}

/// How long a question stays open: as the most impatient of the calls that it asks about wants it.
fn expiry(draft: &Draft<'_>, asks: &[Ask]) -> Expiry {
    let about_calls = asks
        .iter()
        .filter(|ask| matches!(ask.subject, Subject::Action { .. }));
    let actions = about_calls.filter_map(|ask| draft.state.actions.get(&ask.action_id));
    actions
        .filter_map(|action| match &action.verdict {
            Verdict::Ask(terms) => Some((terms.timeout?, terms.on_timeout)),
            Verdict::Allow | Verdict::Deny => None,
        })
        .min_by_key(|(timeout, _)| *timeout)
}

pub(super) fn failed(
    draft: &mut Draft<'_>,
    frame: &FramePath,
    attempt: u32,
    trouble: &ModelTrouble,
) -> Result<(), Refusal> {
    expect_attempt(draft, frame, attempt)?;
    let (error, cause, retry) = match trouble {
        ModelTrouble::TimedOut { error } => (error, Cause::ModelTimeout, Some(Span::ZERO)),
        ModelTrouble::RateLimited { error, retry_after } => {
            let wait = retry_after.unwrap_or(Span::ZERO).min(LONGEST_REST);
            (error, Cause::RateLimit, Some(wait))
        }
        ModelTrouble::Unavailable { error } => (error, Cause::ModelError, Some(Span::ZERO)),
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
        retry: Some(Span::ZERO),
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
    /// After how long another try could help; `None` if none would.
    retry: Option<Span>,
}

/// From how long on nobody waits beside a run until its provider may be asked again: it sleeps.
const REST: Span = Span::from_secs(5);
/// No provider is believed that wants to be left alone for longer.
const LONGEST_REST: Span = Span::from_secs(24 * 3_600);
/// How often a turn rests before a person is asked.
const MAX_RESTS: u32 = 10;

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
    let active = draft.state.active();
    let rests = active.and_then(|active| active.frames.get(frame));
    let rests = rests.map_or(0, |frame| frame.rests);
    // A provider that says when to come again has not failed.
    let failures = attempt.saturating_sub(rests);
    match retry {
        Some(wait) if wait > REST && rests < MAX_RESTS => {
            let at = draft.now + wait + draft.context.seed.up_to(REST);
            draft.emit(failure(AfterModel::SleepUntil { at }));
            return;
        }
        Some(wait) if wait <= REST && failures < MAX_ATTEMPTS => {
            let at = match seen {
                Seen::ByItsDriver => draft.ask_again_at(failures).max(draft.now + wait),
                // Nothing is gained by waiting: the model did not fail.
                Seen::ByAnother => draft.now,
            };
            draft.emit(failure(AfterModel::RetryAt { at }));
            return;
        }
        Some(_) | None => {}
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
