//! One turn of a model: asked, heard while it speaks, and judged.

use std::{
    future::Future,
    panic::AssertUnwindSafe,
    pin::pin,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use futures::FutureExt as _;
use holdpoint_core::{
    Command, Definition, FramePath, Grant, HeldReply, JudgedCall, Message, ModelTrouble, Principal,
    RunId, Transcript, Verdict, fit,
};
use holdpoint_models::{Delta, End, Failure, Reply, Request};
use holdpoint_store::{Epoch, ThreadKey};
use tokio::time::Instant;

use crate::{Agent, Engine, Error, Said, flight::Landing, guard, judge::Caller};

/// How much longer a model may be silent that looks after that itself.
const GRACE: Duration = Duration::from_secs(5);
/// How long to wait before what a person let be said is tried again.
const AGAIN: Duration = Duration::from_secs(1);
/// How often in a row a model may come to the limit of what it may write, before a person is asked.
const MOST_CUT_OFF: usize = 3;

/// One call of a model.
pub(crate) struct Turn {
    pub(crate) frame: FramePath,
    pub(crate) attempt: u32,
    /// For this run.
    pub(crate) run: RunId,
    /// By the driver with this epoch.
    pub(crate) epoch: Epoch,
    /// For how long it may be silent.
    pub(crate) silence: Duration,
    /// How long the run may still work.
    pub(crate) left: Option<Duration>,
    /// Who asked for the run.
    pub(crate) user: Principal,
    /// The grants of the thread.
    pub(crate) grants: Vec<Grant>,
    /// How many more calls may wait for people.
    pub(crate) room: usize,
}

/// Takes one turn of a model.
pub(crate) async fn call_model(
    engine: &Engine,
    key: &ThreadKey,
    agent: &Agent,
    transcript: &Transcript,
    turn: Turn,
) -> Landing {
    let (frame, attempt) = (turn.frame.clone(), turn.attempt);
    let failed = |trouble| {
        Landing::of(Command::ModelFailed {
            frame: frame.clone(),
            attempt,
            trouble,
        })
    };
    let (Some(thinker), Some(conversation)) = (agent.at(&frame), transcript.frame(&frame)) else {
        let error = format!("there is no subagent at `{frame}` any more");
        return failed(ModelTrouble::Rejected { error });
    };
    let messages = conversation.settled();
    let definition = &thinker.definition;
    let system = definition.system_prompt.as_deref();
    let given = fit(definition.context, system, thinker.offered(), messages);
    let request = Request {
        system,
        messages: &given,
        tools: thinker.offered(),
        sampling: &definition.sampling,
        attempt,
    };
    // Nobody hears what may be held back.
    let quiet = guard::looks_at_words(agent, &frame);
    let mut reply = match heard(engine, key, thinker, &turn, request, quiet).await {
        Ok(reply) => reply,
        Err(failure) => return failed(trouble(&failure)),
    };
    if let Err(error) = is_enough(&reply, messages) {
        return failed(ModelTrouble::Rejected { error });
    }
    let flags = guard::flags_of_words(agent, &frame, &reply.text, &turn.user).await;
    if !flags.is_empty() {
        return Landing::of(Command::HoldOutput {
            frame,
            attempt,
            reply: Box::new(HeldReply {
                text: reply.text,
                calls: reply.calls,
                usage: reply.usage,
                model: reply.model,
                carried: reply.carried.map(Box::new),
                cut_off: reply.end == End::CutOff,
            }),
            flags,
        });
    }
    let calls = std::mem::take(&mut reply.calls);
    let calls = match judged(engine, key, agent, &turn, &reply, calls).await {
        Ok(calls) => calls,
        Err(error) => {
            let error = error.to_string();
            return failed(ModelTrouble::Unavailable { error });
        }
    };
    replied(definition, turn, reply, calls)
}

/// Says what was held back and a person lets be said. Its calls are judged now, as those of any other reply.
pub(crate) async fn say_held(
    engine: &Engine,
    key: &ThreadKey,
    agent: &Agent,
    transcript: &Transcript,
    turn: Turn,
) -> Landing {
    let said = AssertUnwindSafe(held_reply(engine, key, agent, transcript, turn)).catch_unwind();
    if let Ok(Some(landing)) = said.await {
        return landing;
    }
    // The words are not lost: nothing is recorded, and whoever drives tries again. At once would win nothing.
    tokio::time::sleep(AGAIN).await;
    Landing {
        commands: Vec::new(),
    }
}

async fn held_reply(
    engine: &Engine,
    key: &ThreadKey,
    agent: &Agent,
    transcript: &Transcript,
    turn: Turn,
) -> Option<Landing> {
    let (thinker, held) = (
        agent.at(&turn.frame)?,
        transcript.held(&turn.frame)?.clone(),
    );
    let reply = Reply {
        text: held.text,
        usage: held.usage,
        model: held.model,
        carried: held.carried.map(|carried| *carried),
        end: if held.cut_off { End::CutOff } else { End::Said },
        ..Reply::default()
    };
    let calls = judged(engine, key, agent, &turn, &reply, held.calls).await;
    Some(replied(&thinker.definition, turn, reply, calls.ok()?))
}

fn replied(definition: &Definition, turn: Turn, reply: Reply, calls: Vec<JudgedCall>) -> Landing {
    Landing::of(Command::ModelReplied {
        frame: turn.frame,
        attempt: turn.attempt,
        text: reply.text,
        calls: within(turn.room, calls),
        mode: definition.interrupt_mode,
        usage: reply.usage,
        model: reply.model,
        carried: reply.carried.map(Box::new),
        confirm: definition.confirm.clone().map(Box::new),
    })
}

/// What the model says. What it says of it meanwhile is told at once.
async fn heard(
    engine: &Engine,
    key: &ThreadKey,
    thinker: &Agent,
    turn: &Turn,
    request: Request<'_>,
    quiet: bool,
) -> Result<Reply, Failure> {
    let heard_at = Mutex::new(Instant::now());
    let mut said = 0;
    let mut deltas = |delta: Delta| {
        *heard_at.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        let Delta::Text(text) = delta else { return };
        if quiet {
            return;
        }
        engine.tell_said(
            key,
            Said {
                run: turn.run,
                frame: &turn.frame,
                attempt: turn.attempt,
                epoch: turn.epoch,
                from: said,
                text: &text,
            },
        );
        said += text.len();
    };
    let spoken = thinker.model().turn(request, &mut deltas);
    // One that sees to it itself knows better what follows.
    let silence = match thinker.model().silence() {
        Some(own) => own + GRACE,
        None => turn.silence,
    };
    let spoken = not_silent(spoken, &heard_at, silence);
    match turn.left {
        None => spoken.await,
        Some(left) => tokio::time::timeout(left, spoken)
            .await
            .unwrap_or(Err(Failure::Timeout)),
    }
}

/// Waits for an answer for as long as something of it comes: a long one takes its time, and only silence is a failure.
async fn not_silent(
    spoken: impl Future<Output = Result<Reply, Failure>>,
    heard_at: &Mutex<Instant>,
    silence: Duration,
) -> Result<Reply, Failure> {
    let mut spoken = pin!(spoken);
    loop {
        let heard = *heard_at.lock().unwrap_or_else(PoisonError::into_inner);
        tokio::select! {
            // Cancel safe: the answer is only borrowed, and a sleep has nothing to lose.
            reply = &mut spoken => return reply,
            () = tokio::time::sleep_until(heard + silence) => {
                if *heard_at.lock().unwrap_or_else(PoisonError::into_inner) == heard {
                    return Err(Failure::Timeout);
                }
            }
        }
    }
}

/// Whether an answer says anything at all, or a model only ever comes to the limit of what it may write.
fn is_enough(reply: &Reply, before: &[Message]) -> Result<(), String> {
    if reply.end == End::Said {
        return Ok(());
    }
    let help = "allow more by `max_output_tokens`, or ask for less";
    if reply.text.is_empty() && reply.calls.is_empty() {
        return Err(format!(
            "the answer was cut off at the limit of output tokens before it said anything; {help}"
        ));
    }
    let turns = before.iter().rev();
    let cut_off = turns
        .take_while(|message| match message {
            Message::Tool { content, .. } => content == CUT_OFF,
            Message::Assistant { .. } => true,
            Message::User { .. } | _ => false,
        })
        .filter(|message| matches!(message, Message::Assistant { .. }));
    if !reply.calls.is_empty() && cut_off.count() + 1 >= MOST_CUT_OFF {
        return Err(format!(
            "{MOST_CUT_OFF} answers in a row were cut off at the limit of output tokens; {help}"
        ));
    }
    Ok(())
}

/// What the model is told of calls in an answer that was cut off: the last of them may lack its arguments and look complete.
const CUT_OFF: &str = "Your answer was cut off at the limit of output tokens. Nothing of it was executed. \
    Call again, with less at once.";

/// Judges the calls of an answer, by what whoever asked for the run may do now.
async fn judged(
    engine: &Engine,
    key: &ThreadKey,
    agent: &Agent,
    turn: &Turn,
    reply: &Reply,
    calls: Vec<holdpoint_core::ToolCall>,
) -> Result<Vec<JudgedCall>, Error> {
    if reply.end == End::CutOff {
        return engine.refused(calls, CUT_OFF);
    }
    let thinker = agent.at(&turn.frame);
    let is_restricted = calls
        .iter()
        .any(|it| thinker.is_some_and(|thinker| thinker.is_restricted(&it.name)));
    let now;
    let user = if is_restricted {
        now = engine.with_rights_of_now(&turn.user).await?;
        &now
    } else {
        &turn.user
    };
    let caller = Caller {
        root: agent,
        frame: &turn.frame,
        user,
    };
    let mut judged = engine.judged(key, caller, calls, &turn.grants).await?;
    engine.show(key, agent, &turn.frame, &mut judged).await?;
    Ok(judged)
}

/// Refuses what would make more calls wait for people than there is room for.
fn within(room: usize, mut calls: Vec<JudgedCall>) -> Vec<JudgedCall> {
    let asked = |call: &&mut JudgedCall| {
        let judged = call.judged.as_ref();
        judged.is_ok_and(|it| matches!(it.verdict, Verdict::Ask(_)) && it.reserved.is_none())
    };
    for call in calls.iter_mut().filter(asked).skip(room) {
        call.judged = Err(format!(
            "Too many calls wait for a person's approval. `{}` was not executed. Ask for fewer at once.",
            call.call.name
        ));
    }
    calls
}

fn trouble(failure: &Failure) -> ModelTrouble {
    let error = failure.to_string();
    match failure {
        Failure::Timeout => ModelTrouble::TimedOut { error },
        Failure::RateLimited { retry_after, .. } => ModelTrouble::RateLimited {
            error,
            retry_after: *retry_after,
        },
        Failure::Rejected { .. } | Failure::Barred { .. } | Failure::Withheld { .. } => {
            ModelTrouble::Rejected { error }
        }
        Failure::Unavailable { .. } => ModelTrouble::Unavailable { error },
        // What this version does not know may be over by the next attempt.
        _ => ModelTrouble::Unavailable { error },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_long_answer_takes_its_time_and_only_silence_is_a_failure() {
        let silence = Duration::from_secs(5);
        let second = Duration::from_secs(1);
        for (rest, is_heard) in [(second * 4, true), (second * 6, false)] {
            let heard_at = Mutex::new(Instant::now());
            let begun = Instant::now();
            let spoken = async {
                for _ in 0..10 {
                    tokio::time::sleep(second * 4).await;
                    *heard_at.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
                }
                tokio::time::sleep(rest).await;
                Ok(Reply::default())
            };
            let ended = not_silent(spoken, &heard_at, silence).await;
            assert_eq!(ended.is_ok(), is_heard, "{ended:?}");
            let took = second * 40 + rest.min(silence);
            assert_eq!(begun.elapsed(), took);
        }
    }
}
