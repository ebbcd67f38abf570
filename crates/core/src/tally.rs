//! What of a thread's events is worth counting, for whoever measures how a system does.
//!
//! A pure function of one append: the states before and after it, its events, and when it was committed. Nothing is
//! remembered between appends, so several processes that each count their own appends count everything once.

use crate::{
    AfterLate, AfterLookup, Cause, Entry, Event, Interrupt, InterruptId, InterruptKind,
    InterruptStatus, Lookup, Outcome, RunOutcome, Span, State, Stop, ThreadKind, Timestamp, Usage,
    WarrantFrom,
};

/// One thing to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tally {
    /// A run of an agent began.
    RunStarted,
    /// A run of an agent ended.
    RunEnded(Ending),
    /// A question was asked.
    Asked {
        /// What kind of question it is.
        kind: InterruptKind,
        /// Why the run waits.
        cause: Cause,
    },
    /// A question was closed.
    Closed(InterruptStatus),
    /// A question was closed by an answer.
    Decided {
        /// What kind of question it was.
        kind: InterruptKind,
        /// How long it had been open.
        after: Span,
    },
    /// Somebody settled what the system could not: a question about an error, a failure, or an effect in doubt.
    TakenOver,
    /// A run that was answered went on: it started something, or came to the end that the answer meant.
    Resumed {
        /// How long after the answer what it started first was committed. Absent where it started nothing, or stood paused
        /// in between.
        after: Option<Span>,
    },
    /// A run that was answered did not go on: what was allowed had changed meanwhile, a limit was reached, or it failed.
    NotResumed,
    /// An effect was not repeated, although nobody had seen that it was there.
    Spared(Spared),
    /// A model answered, and this is what it took.
    Spent(Usage),
    /// An effect is there that had been settled as not done: it may be there twice.
    Duplicate,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ending {
    /// Its model said its last word.
    Finished,
    /// It could not go on.
    Failed,
    /// It was stopped.
    Cancelled,
    /// It was stopped, because nobody answered in time.
    TimedOut,
}

impl Ending {
    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::TimedOut => "timed_out",
        }
    }

    pub(crate) const fn of(outcome: &RunOutcome) -> Self {
        match outcome {
            RunOutcome::Finished => Self::Finished,
            RunOutcome::Failed { .. } => Self::Failed,
            RunOutcome::Cancelled => Self::Cancelled,
            RunOutcome::TimedOut => Self::TimedOut,
        }
    }
}

/// By what an effect was not repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Spared {
    /// Its tool was asked, and has it.
    Lookup,
    /// Its outcome came late, and was taken.
    LateOutcome,
}

/// Counts what one append did. `at` is when it was committed.
pub fn tally(
    before: &State,
    after: &State,
    entries: &[Entry],
    at: Timestamp,
    mut count: impl FnMut(Tally),
) {
    let mut answer = Answer::open_in(before);
    for entry in entries {
        for tally in of_entry(before, entries, entry, at, &mut answer) {
            if let Some(tally) = tally
                && (after.kind == ThreadKind::Agent || counts_outside(&tally))
            {
                count(tally);
            }
        }
    }
}

/// Whether something counts in a thread that drives no run: a program outside goes on by itself.
const fn counts_outside(tally: &Tally) -> bool {
    match tally {
        Tally::Asked { .. } | Tally::Closed(_) | Tally::Decided { .. } => true,
        Tally::RunStarted
        | Tally::RunEnded(_)
        | Tally::TakenOver
        | Tally::Resumed { .. }
        | Tally::NotResumed
        | Tally::Spared(_)
        | Tally::Spent(_)
        | Tally::Duplicate => false,
    }
}

/// What one event counts for: at most three things.
type Counts = [Option<Tally>; 3];

const NOTHING: Counts = [None; 3];

const fn one(tally: Tally) -> Counts {
    [Some(tally), None, None]
}

fn of_entry(
    before: &State,
    entries: &[Entry],
    entry: &Entry,
    at: Timestamp,
    answer: &mut Answer,
) -> Counts {
    match &entry.event {
        Event::RunStarted { .. } => one(Tally::RunStarted),
        Event::Forked { head, .. } => [head.active().map(|_| Tally::RunStarted), None, None],
        Event::RunEnded { outcome } => {
            let ending = Ending::of(outcome);
            [Some(Tally::RunEnded(ending)), answer.ended(ending), None]
        }
        Event::InterruptRaised(interrupt) => one(Tally::Asked {
            kind: interrupt.kind,
            cause: interrupt.cause,
        }),
        Event::Answered {
            interrupt, status, ..
        } => {
            *answer = Answer::Open {
                at: entry.header.at,
                waits: Waits::ForUs,
            };
            let asked = asked(before, entries, *interrupt);
            let decided = asked.map(|asked| Tally::Decided {
                kind: asked.kind,
                after: entry.header.at.since(asked.asked_at),
            });
            let settled = asked.filter(|asked| is_take_over(asked));
            [
                Some(Tally::Closed(*status)),
                decided,
                settled.map(|_| Tally::TakenOver),
            ]
        }
        Event::ModelReplied { usage, .. } if !usage.is_zero() => one(Tally::Spent(*usage)),
        Event::OutputHeld { reply, .. } if !reply.usage.is_zero() => one(Tally::Spent(reply.usage)),
        Event::InterruptClosed { status, .. } => one(Tally::Closed(*status)),
        Event::ModelStarted { .. } | Event::ActionStarted { .. } | Event::StepStarted { .. } => {
            [answer.started(at), None, None]
        }
        Event::ActionLookedUp { lookup, then, .. } => match (lookup, then) {
            (Lookup::Committed { .. }, AfterLookup::Settled) => one(Tally::Spared(Spared::Lookup)),
            (
                Lookup::Committed { .. },
                AfterLookup::RetryAt { .. }
                | AfterLookup::NotDone
                | AfterLookup::LookUpAt { .. }
                | AfterLookup::Ask,
            )
            | (Lookup::Partial { .. } | Lookup::NotFound | Lookup::Unknown { .. }, _) => NOTHING,
        },
        Event::LateOutcome { outcome, then, .. } => match (outcome, then) {
            (Outcome::Done { .. }, AfterLate::Settled) => {
                one(Tally::Spared(Spared::LateOutcome))
            }
            (Outcome::Done { .. }, AfterLate::Noted | AfterLate::Contradicts { .. }) => {
                one(Tally::Duplicate)
            }
            (Outcome::Done { .. }, AfterLate::Recorded)
            // What failed after all left nothing that could be there twice.
            | (Outcome::Failed { .. } | Outcome::Unknown { .. }, _) => NOTHING,
        },
        Event::WarrantVoided { .. } => [answer.voided(), None, None],
        Event::Repinned { actions, .. } => {
            // A question that is only asked anew had not been answered.
            let was_allowed = actions.iter().any(|restated| {
                let action = before.actions.get(&restated.action);
                let warrant = action.and_then(|action| action.warrant());
                warrant.is_some_and(|it| matches!(it.from, WarrantFrom::Person { .. }))
            });
            let is_news = matches!(answer, Answer::Open { at, .. } if *at != before.now);
            let voided = (was_allowed || is_news).then(|| answer.voided());
            [voided.flatten(), None, None]
        }
        Event::StopRequested { stop, .. } => [answer.stopped(stop), None, None],
        Event::Paused | Event::Continued => {
            answer.paused();
            NOTHING
        }
        Event::Restored { .. } => {
            *answer = Answer::None;
            NOTHING
        }
        Event::ThreadCreated { .. }
        | Event::ModelReplied { .. }
        | Event::OutputHeld { .. }
        | Event::ModelFailed { .. }
        | Event::ActionFinished { .. }
        | Event::ActionUnknown { .. }
        | Event::ActionWithheld { .. }
        | Event::CompensationBound { .. }
        | Event::FrameOpened { .. }
        | Event::FrameClosed { .. }
        | Event::Suspended { .. }
        | Event::Slept { .. }
        | Event::FrameWoken { .. }
        | Event::Woken { .. }
        | Event::Yielded { .. }
        | Event::GrantKept(_)
        | Event::GrantUsed { .. }
        | Event::GrantRevoked { .. } => NOTHING,
    }
}

/// The question that is closed: it was open before, unless the same append asked it.
fn asked<'a>(before: &'a State, entries: &'a [Entry], id: InterruptId) -> Option<&'a Interrupt> {
    let raised = || {
        entries.iter().find_map(|entry| {
            if let Event::InterruptRaised(interrupt) = &entry.event {
                return Some(&**interrupt).filter(|interrupt| interrupt.id == id);
            }
            None
        })
    };
    before.interrupts.get(&id).or_else(raised)
}

/// Whether a person who answers this does what the system could not do.
const fn is_take_over(asked: &Interrupt) -> bool {
    match asked.kind {
        InterruptKind::Error => true,
        InterruptKind::Approval
        | InterruptKind::Input
        | InterruptKind::Review
        | InterruptKind::Breakpoint => match asked.cause {
            Cause::ToolFailure | Cause::WriteUnknown | Cause::ModelTimeout | Cause::ModelError => {
                true
            }
            Cause::HumanApproval
            | Cause::HumanInput
            | Cause::Review
            | Cause::Breakpoint
            | Cause::UserPause
            | Cause::RateLimit
            | Cause::BudgetExhausted
            | Cause::ExternalEvent
            | Cause::RequirementChange
            | Cause::SystemRestart => false,
        },
    }
}

/// An answer after which the run has not gone on yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    None,
    Open { at: Timestamp, waits: Waits },
}

/// On whom a run waits that was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waits {
    ForUs,
    /// A user paused it: how long it takes says nothing about us.
    ForUser,
}

impl Answer {
    /// The answer that was the last thing to happen in a thread, if one was.
    fn open_in(state: &State) -> Self {
        let Some(active) = state.active() else {
            return Self::None;
        };
        let Some(at) = active.answered.filter(|at| *at == state.now) else {
            return Self::None;
        };
        // Where the clock did not tick in between, what was begun is still in flight.
        if active.busy_since.is_some_and(|since| since >= at) || active.stop.is_some() {
            return Self::None;
        }
        let waits = if active.paused {
            Waits::ForUser
        } else {
            Waits::ForUs
        };
        Self::Open { at, waits }
    }

    fn started(&mut self, now: Timestamp) -> Option<Tally> {
        let Self::Open { at, waits } = std::mem::replace(self, Self::None) else {
            return None;
        };
        let after = match waits {
            Waits::ForUs => Some(now.since(at)),
            Waits::ForUser => None,
        };
        Some(Tally::Resumed { after })
    }

    fn ended(&mut self, ending: Ending) -> Option<Tally> {
        match (std::mem::replace(self, Self::None), ending) {
            (Self::None, _) => None,
            (Self::Open { .. }, Ending::Failed) => Some(Tally::NotResumed),
            (Self::Open { .. }, Ending::Finished | Ending::Cancelled | Ending::TimedOut) => {
                Some(Tally::Resumed { after: None })
            }
        }
    }

    fn stopped(&mut self, stop: &Stop) -> Option<Tally> {
        let was = std::mem::replace(self, Self::None);
        match (was, stop) {
            (Self::None, _) => None,
            (Self::Open { .. }, Stop::Limit { .. }) => Some(Tally::NotResumed),
            // The answer itself ended it.
            (Self::Open { .. }, Stop::Loop { .. } | Stop::ModelUnavailable { .. }) => {
                Some(Tally::Resumed { after: None })
            }
            // Somebody was faster than the run.
            (Self::Open { .. }, Stop::Cancelled | Stop::TimedOut { .. }) => None,
        }
    }

    fn voided(&mut self) -> Option<Tally> {
        match std::mem::replace(self, Self::None) {
            Self::None => None,
            Self::Open { .. } => Some(Tally::NotResumed),
        }
    }

    const fn paused(&mut self) {
        if let Self::Open { waits, .. } = self {
            *waits = Waits::ForUser;
        }
    }
}
