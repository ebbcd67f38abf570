//! What takes its time in a thread as it stands, and how each of these ends.

use std::collections::BTreeMap;

use super::{Began, Call, CallEnd, ChatEnd, Stretch, StretchId, What};
use crate::{
    Action, ActionId, ActionStatus, Ending, Entry, Event, Finish, FramePath, FramePhase,
    InterruptId, InterruptStatus, Outcome, Phase, Role, Run, RunId, RunOutcome, Seen, Span, State,
    Timestamp, WarrantFrom,
};

/// Names what is open, for as long as it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    Run(RunId),
    Task(RunId, FramePath),
    /// A frame calls its model, for the how-manieth time in a turn, by the driver with this epoch.
    Model(RunId, FramePath, u32, u64),
    Call(ActionId, u32),
    Wait(InterruptId),
}

/// Something that is open.
#[derive(Debug)]
pub(super) struct Open {
    run: RunId,
    /// The frame it happens in; of a task, its own.
    frame: FramePath,
    began: Began,
    /// When it ends, one way or the other.
    deadline: Option<Timestamp>,
    /// What it will have been, unless the event that ends it says more: something that nobody wants any more.
    what: What,
}

/// All that is open in a thread.
pub(super) fn open_in(state: &State) -> BTreeMap<Key, Open> {
    let of_run = state.run.iter().flat_map(|run| of_run(state, run));
    let calls = state.actions.values().filter_map(call);
    let waits = state.interrupts.values().map(|interrupt| {
        let what = What::Wait {
            interrupt: interrupt.id,
            kind: interrupt.kind,
            cause: interrupt.cause,
            status: InterruptStatus::Canceled,
        };
        // What is found out late about a call of an earlier run is asked in this one, which may not have such a frame.
        let mut asked = interrupt.asks.iter();
        let is_ours = asked.all(|ask| {
            let action = state.actions.get(&ask.action_id);
            action.is_none_or(|action| action.run == interrupt.run)
        });
        let frame = if is_ours {
            interrupt.frame.clone()
        } else {
            FramePath::root()
        };
        let wait = Open {
            run: interrupt.run,
            frame,
            began: Began::At(interrupt.asked_at),
            deadline: None,
            what,
        };
        (Key::Wait(interrupt.id), wait)
    });
    let parts = calls
        .chain(waits)
        .map(|(key, open)| (key, open.within(state)));
    of_run.chain(parts).collect()
}

/// The run itself, its tasks and its calls to models.
fn of_run(state: &State, run: &Run) -> Vec<(Key, Open)> {
    let Phase::Active(active) = &run.phase else {
        return Vec::new();
    };
    let open = |frame: &FramePath, began, what| Open {
        run: run.id,
        frame: frame.clone(),
        began,
        deadline: None,
        what,
    };
    let whole = What::Run {
        ending: Ending::Cancelled,
        code: None,
    };
    let whole = open(&FramePath::root(), Began::At(run.started_at), whole);
    let mut all = vec![(Key::Run(run.id), whole)];
    for (path, frame) in &active.frames {
        if let Some(action) = frame.task {
            let began = Began::At(allowed_at(state, run, action));
            let (frame, done) = (path.clone(), false);
            let what = What::Task {
                frame,
                action,
                done,
            };
            all.push((Key::Task(run.id, path.clone()), open(path, began, what)));
        }
        if let FramePhase::Thinking { attempt, epoch } = frame.phase {
            let end = ChatEnd::Dropped;
            let what = What::Chat { attempt, end };
            let key = Key::Model(run.id, path.clone(), attempt, epoch);
            all.push((key, open(path, Began::Unseen, what)));
        }
    }
    all
}

/// When a task could begin: it was asked for, and allowed.
fn allowed_at(state: &State, run: &Run, task: ActionId) -> Timestamp {
    let warrant = state.actions.get(&task).and_then(Action::warrant);
    let asked_for = task.made_at().max(run.started_at);
    match warrant.map(|warrant| &warrant.from) {
        Some(WarrantFrom::Person { at, .. }) => asked_for.max(*at),
        Some(WarrantFrom::Policy | WarrantFrom::Grant(_) | WarrantFrom::Compensation) | None => {
            asked_for
        }
    }
}

/// An action of which a call is in flight. A step is none by itself: it is a part of what enters its tool.
fn call(action: &Action) -> Option<(Key, Open)> {
    let ActionStatus::Started { deadline, .. } = action.status else {
        return None;
    };
    if action.role == Role::Step {
        return None;
    }
    let call = Call {
        action: action.id,
        attempt: action.attempts,
        tool: action.tool.name.clone(),
        call_id: action.call_id.clone(),
        effect: action.tool.effect,
        role: action.role,
        end: CallEnd::Dropped,
    };
    let open = Open {
        run: action.run,
        frame: action.frame.clone(),
        // INVARIANT: a call is given its tool's whole time, counted from its start.
        began: Began::At(earlier(deadline, action.tool.timeout)),
        deadline: Some(deadline),
        what: What::Call(call),
    };
    Some((Key::Call(action.id, action.attempts), open))
}

fn earlier(time: Timestamp, by: Span) -> Timestamp {
    let by = i64::try_from(by.as_micros()).unwrap_or(i64::MAX);
    Timestamp::from_micros(time.as_micros().saturating_sub(by))
}

impl Open {
    /// Not before its run began: calls and waits are timed by the clock as it is, which may have been set back since then.
    fn within(mut self, state: &State) -> Self {
        let run = state.run.iter().find(|run| run.id == self.run);
        if let (Began::At(at), Some(run)) = (self.began, run) {
            self.began = Began::At(at.max(run.started_at));
        }
        self
    }

    /// The stretch that it was, now that it ended with this event, which led to this state.
    pub(super) fn ended(&self, after: &State, entry: &Entry) -> Stretch {
        let mut what = self.what.clone();
        settle(&mut what, &entry.event);
        let end = match (&what, self.deadline) {
            // It is over since then at the latest; nobody saw when.
            (What::Call(call), Some(deadline)) if call.end == CallEnd::Lost => {
                entry.header.at.min(deadline)
            }
            (_, _) => entry.header.at,
        };
        let end = match self.began {
            Began::At(at) => end.max(at),
            Began::Unseen => end,
        };
        let (id, parent) = self.place(&what, entry.seq);
        let subagent = self.frame.lineage().last();
        Stretch {
            run: self.run,
            thread: after.thread,
            kind: after.kind,
            id,
            parent,
            agent: subagent.unwrap_or(&after.agent).to_owned(),
            began: self.began,
            end,
            what,
        }
    }

    /// What it is called in its trace, and what it is a part of.
    fn place(&self, what: &What, seq: u64) -> (StretchId, Option<StretchId>) {
        let frame = StretchId::of_frame(self.run, &self.frame);
        let part = |names: &[&[u8]]| (StretchId::of(self.run, names), Some(frame));
        match what {
            What::Run { .. } => (frame, None),
            What::Task { frame: path, .. } => {
                let above = path.parent().unwrap_or_default();
                (frame, Some(StretchId::of_frame(self.run, &above)))
            }
            // A call to a model has no id of its own; what it ended with has.
            What::Chat { .. } => {
                let frame = self.frame.as_str().as_bytes();
                part(&[b"chat", frame, &seq.to_be_bytes()])
            }
            What::Call(call) => {
                part(&[b"call", call.action.as_bytes(), &call.attempt.to_be_bytes()])
            }
            What::Wait { interrupt, .. } => part(&[b"wait", interrupt.as_bytes()]),
        }
    }
}

/// Says how something ended, if this event says it.
fn settle(what: &mut What, event: &Event) {
    match what {
        What::Run { ending, code } => {
            if let Event::RunEnded { outcome } = event {
                *ending = Ending::of(outcome);
                if let RunOutcome::Failed { code: failed, .. } = outcome {
                    *code = Some(failed.clone());
                }
            }
        }
        What::Task { frame, done, .. } => {
            *done = matches!(event, Event::FrameClosed { frame: closed } if closed == frame);
        }
        What::Chat { end, .. } => *end = chat_end(event),
        What::Call(call) => call.end = call_end(call.action, event),
        What::Wait {
            interrupt,
            status: closed,
            ..
        } => {
            if let Event::Answered {
                interrupt: id,
                status,
                ..
            }
            | Event::InterruptClosed {
                interrupt: id,
                status,
                ..
            } = event
                && id == interrupt
            {
                *closed = *status;
            }
        }
    }
}

/// How a call to a model ended with an event: only what names its frame, or the whole run, ends it.
fn chat_end(event: &Event) -> ChatEnd {
    if let Event::ModelReplied { usage, model, .. } = event {
        return ChatEnd::Replied {
            usage: *usage,
            model: model.clone(),
        };
    }
    if let Event::OutputHeld { reply, .. } = event {
        return ChatEnd::Replied {
            usage: reply.usage,
            model: reply.model.clone(),
        };
    }
    if let Event::ModelFailed { seen, .. } = event {
        return match seen {
            Seen::ByItsDriver => ChatEnd::Failed,
            Seen::ByAnother => ChatEnd::Lost,
        };
    }
    if let Event::Restored { .. } = event {
        return ChatEnd::Lost;
    }
    ChatEnd::Dropped
}

/// How a call of this action ended with an event.
fn call_end(of: ActionId, event: &Event) -> CallEnd {
    let (action, end) = match event {
        Event::ActionFinished {
            action, outcome, ..
        } => (action, finished(outcome)),
        Event::LateOutcome {
            action, outcome, ..
        } => (action, late(outcome)),
        Event::ActionUnknown { action, seen, .. } => (action, unknown(*seen)),
        Event::ActionWithheld { action, .. } => (action, CallEnd::Withheld),
        Event::Suspended { action, .. }
        | Event::Slept { action, .. }
        | Event::Yielded { action } => (action, CallEnd::Left),
        // Whoever made it is in the past.
        Event::Restored { .. } => return CallEnd::Lost,
        Event::ThreadCreated { .. }
        | Event::Forked { .. }
        | Event::RunStarted { .. }
        | Event::ModelStarted { .. }
        | Event::ModelReplied { .. }
        | Event::OutputHeld { .. }
        | Event::ModelFailed { .. }
        | Event::InterruptRaised(_)
        | Event::Answered { .. }
        | Event::InterruptClosed { .. }
        | Event::ActionStarted { .. }
        | Event::ActionLookedUp { .. }
        | Event::WarrantVoided { .. }
        | Event::CompensationBound { .. }
        | Event::Repinned { .. }
        | Event::StopRequested { .. }
        | Event::Paused
        | Event::Continued
        | Event::FrameOpened { .. }
        | Event::FrameClosed { .. }
        | Event::StepStarted { .. }
        | Event::FrameWoken { .. }
        | Event::Woken { .. }
        | Event::GrantKept(_)
        | Event::GrantUsed { .. }
        | Event::GrantRevoked { .. }
        | Event::RunEnded { .. } => return CallEnd::Dropped,
    };
    if *action == of { end } else { CallEnd::Dropped }
}

const fn finished(outcome: &Finish) -> CallEnd {
    match outcome {
        Finish::Done { .. } => CallEnd::Done,
        Finish::Failed { .. } => CallEnd::Failed,
    }
}

const fn late(outcome: &Outcome) -> CallEnd {
    match outcome {
        Outcome::Done { .. } => CallEnd::Done,
        Outcome::Failed { .. } => CallEnd::Failed,
        Outcome::Unknown { .. } => CallEnd::Unknown,
    }
}

const fn unknown(seen: Seen) -> CallEnd {
    match seen {
        Seen::ByItsDriver => CallEnd::Unknown,
        Seen::ByAnother => CallEnd::Lost,
    }
}
