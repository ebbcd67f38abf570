//! Which stretches of time ended with an append, for whoever draws runs as traces.
//!
//! A run is one trace, through all its stops and all processes that work on it. The trace's id is the run's; every other id
//! follows from ids of the journal. So nobody has to hand anything on: each process tells of the stretches that its own
//! appends end, and all of them fit together. Each stretch is told once, because its end is committed once.
//!
//! Nothing that people, models or tools say is in a stretch: only names of the definition, ids, numbers and how it ended.

mod open;

use std::collections::BTreeMap;

use crate::{
    ActionId, Cause, Effect, Ending, Entry, FramePath, InterruptId, InterruptKind, InterruptStatus,
    Role, RunId, State, ThreadId, ThreadKind, Timestamp, Usage, fold, id::derive,
};

use self::open::{Key, open_in};

/// Names a stretch within its trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StretchId([u8; 8]);

impl StretchId {
    /// The eight bytes. They are never all zero, which would mean that there is none.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 8] {
        &self.0
    }

    /// The stretch of a whole frame; of the root it is that of the run.
    #[must_use]
    pub fn of_frame(run: RunId, frame: &FramePath) -> Self {
        Self::of(run, &[b"frame", frame.as_str().as_bytes()])
    }

    fn of(run: RunId, what: &[&[u8]]) -> Self {
        let parts: Vec<&[u8]> = [b"holdpoint/span/1", run.as_bytes().as_slice()]
            .into_iter()
            .chain(what.iter().copied())
            .collect();
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&derive(&parts)[..8]);
        if bytes == [0; 8] {
            bytes[7] = 1;
        }
        Self(bytes)
    }
}

/// A stretch of time that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretch {
    /// The run it belongs to. Its sixteen bytes are the id of the trace.
    pub run: RunId,
    /// The thread of the run.
    pub thread: ThreadId,
    /// What the thread is for: a question from outside is a run, too.
    pub kind: ThreadKind,
    /// Names it within the trace.
    pub id: StretchId,
    /// What it is a part of; `None` for the run itself.
    pub parent: Option<StretchId>,
    /// The agent or subagent in which it happened; for a question from outside, the workflow.
    pub agent: String,
    /// When it began.
    pub began: Began,
    /// When it ended.
    pub end: Timestamp,
    /// What it was.
    pub what: What,
}

/// When a stretch began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Began {
    /// Then.
    At(Timestamp),
    /// Nobody who is still there saw it: a call to a model, made by a process that is gone.
    Unseen,
}

/// What took its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A whole run.
    Run {
        /// How it ended.
        ending: Ending,
        /// The stable code, where it failed.
        code: Option<String>,
    },
    /// A task of a subagent, from when it was allowed.
    Task {
        /// The subagent's frame.
        frame: FramePath,
        /// The call that gave the task.
        action: ActionId,
        /// Whether it came to an end, or its run was stopped.
        done: bool,
    },
    /// One call to a model.
    Chat {
        /// The how-manieth time in this turn.
        attempt: u32,
        /// How it ended.
        end: ChatEnd,
    },
    /// One attempt at a call to a tool.
    Call(Call),
    /// A question, for as long as it was open.
    Wait {
        /// Which.
        interrupt: InterruptId,
        /// What kind of question it was.
        kind: InterruptKind,
        /// Why the run waited.
        cause: Cause,
        /// How it was closed.
        status: InterruptStatus,
    },
}

/// How a call to a model ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChatEnd {
    /// It answered.
    Replied {
        /// What that took.
        usage: Usage,
        /// Who answered, as the journal says; empty where that is nobody's business.
        model: String,
    },
    /// It failed.
    Failed,
    /// The process that called it is gone.
    Lost,
    /// Nobody wants the answer any more: the run was stopped.
    Dropped,
}

/// One attempt at a call to a tool. Of a stepped tool it is one entry, with the steps that are taken in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The action.
    pub action: ActionId,
    /// The how-manieth attempt.
    pub attempt: u32,
    /// The tool's name.
    pub tool: String,
    /// The model's id of the call.
    pub call_id: String,
    /// What repeating it would do.
    pub effect: Effect,
    /// What it was for.
    pub role: Role,
    /// How it ended.
    pub end: CallEnd,
}

/// How an attempt at a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallEnd {
    /// It did what it was asked to.
    Done,
    /// It failed without effect.
    Failed,
    /// It ended, and nobody knows what became of it.
    Unknown,
    /// The process that made it is gone, and nobody knows what became of it.
    Lost,
    /// It was about to be made, and certainly was not.
    Withheld,
    /// A stepped tool waits, or was left between two steps; it is entered again.
    Left,
    /// Nobody wants its outcome any more: the run was stopped.
    Dropped,
}

/// When the calls to models began that a process made itself. The head does not hold it, because nobody else needs it.
///
/// Bounded: of the oldest runs it is forgotten.
#[derive(Debug, Default)]
pub struct Starts(BTreeMap<(RunId, FramePath), Start>);

/// When a call began, and by the driver with which epoch: one that lost its lease may have left an older call behind.
#[derive(Debug, Clone, Copy)]
struct Start {
    at: Timestamp,
    epoch: u64,
}

impl Starts {
    /// How many calls are remembered. Far more than a process has in flight.
    const MOST: usize = 4_096;

    fn begun(&mut self, run: RunId, frame: FramePath, start: Start) {
        self.0.insert((run, frame), start);
        if self.0.len() > Self::MOST {
            self.0.pop_first();
        }
    }

    fn ended(&mut self, run: RunId, frame: &FramePath, epoch: u64) -> Began {
        let start = self.0.remove(&(run, frame.clone()));
        let start = start.filter(|start| start.epoch == epoch);
        start.map_or(Began::Unseen, |start| Began::At(start.at))
    }
}

/// The stretches that ended with an append of these events to a thread that stood so before. What begins is noted in
/// `starts`, where the head does not say it.
pub fn stretches(before: &State, entries: &[Entry], starts: &mut Starts) -> Vec<Stretch> {
    let mut ended = Vec::new();
    let mut state = before.clone();
    let mut open = open_in(&state);
    for entry in entries {
        fold(&mut state, entry);
        let still = open_in(&state);
        // What was open before an event and is not after it has ended with it.
        for (key, was) in open.iter().filter(|(key, _)| !still.contains_key(key)) {
            let mut stretch = was.ended(&state, entry);
            if let Key::Model(run, frame, _, epoch) = key {
                stretch.began = starts.ended(*run, frame, *epoch);
            }
            ended.push(stretch);
        }
        for key in still.keys().filter(|key| !open.contains_key(key)) {
            if let Key::Model(run, frame, _, epoch) = key {
                let (at, epoch) = (entry.header.at, *epoch);
                starts.begun(*run, frame.clone(), Start { at, epoch });
            }
        }
        open = still;
    }
    ended
}
