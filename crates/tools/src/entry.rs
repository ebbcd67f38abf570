//! One entry of a stepped tool that is code: who runs when.
//!
//! What a tool asks of the other side is not done by the tool's own future, which its author may drop at any time, but
//! beside it. The tool is polled only while nothing of that is under way, or a step of it is being taken. So whoever puts
//! a time-out around a question does not go on without an answer: the tool stands still until it is dropped, or there is
//! one. What it has ended with counts only once nothing is under way any more.

use std::{
    future::{Future, poll_fn},
    mem,
    pin::Pin,
    sync::{Mutex, MutexGuard, PoisonError},
    task::Poll,
};

use holdpoint_core::Outcome;

use crate::StepRefused;

/// Something that is asked of the other side.
pub(crate) type Request = Pin<Box<dyn Future<Output = After> + Send>>;

/// What follows from a request that is over.
#[derive(Debug)]
pub(crate) enum After {
    /// The tool goes on.
    GoOn,
    /// The tool goes on and takes the step that it wanted to.
    Take,
    /// It may not go on like this, and whatever it says, it ends so.
    Spoil { refused: StepRefused, end: Outcome },
}

/// Where an entry is.
#[derive(Default)]
pub(crate) struct Entry {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Wants to begin a step or to wait, in this order. Nothing of this is told to anyone while something is waited for.
    wanted: Vec<(Want, Request)>,
    /// How steps ended.
    ends: Vec<Request>,
    is_waiting: bool,
    /// How many steps were begun and have not come to an end.
    taking: usize,
    /// Nobody knows what became of a step: the tool does not go on.
    is_left: bool,
    spoiled: Option<(StepRefused, Outcome)>,
}

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Want {
    /// A step.
    Step,
    /// An answer or a time.
    Wait,
}

impl Entry {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for something, when its turn comes.
    ///
    /// # Errors
    ///
    /// Something was refused before, and nothing more may be done.
    pub(crate) fn want(&self, want: Want, request: Request) -> Result<(), StepRefused> {
        let mut state = self.state();
        if let Some((refused, _)) = &state.spoiled {
            return Err(refused.clone());
        }
        state.wanted.push((want, request));
        Ok(())
    }

    /// A step has come to an end, or was let go of.
    pub(crate) fn taken(&self, how: Taken, end: Request) {
        let mut state = self.state();
        state.taking -= 1;
        state.is_left |= how == Taken::Unknown;
        state.ends.push(end);
    }

    pub(crate) fn spoil(&self, refused: StepRefused, end: Outcome) {
        self.state().spoiled.get_or_insert((refused, end));
    }

    pub(crate) fn spoiled(&self) -> Option<StepRefused> {
        self.state()
            .spoiled
            .as_ref()
            .map(|(refused, _)| refused.clone())
    }
}

/// Whether it is known what became of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    /// It is.
    Known,
    /// It is not.
    Unknown,
}

impl State {
    /// The requests whose turn has come.
    fn due(&mut self) -> Vec<(Option<Want>, Request)> {
        let ends = mem::take(&mut self.ends);
        let mut due: Vec<_> = ends.into_iter().map(|end| (None, end)).collect();
        if self.spoiled.is_some() {
            // Whoever waits for one of them sees that it is gone.
            self.wanted.clear();
        }
        while !self.is_waiting && !self.is_left && !self.wanted.is_empty() {
            let (want, request) = self.wanted.remove(0);
            self.is_waiting = want == Want::Wait;
            due.push((Some(want), request));
        }
        due
    }

    fn is_due(&self) -> bool {
        let wants = !self.wanted.is_empty() && !self.is_waiting && !self.is_left;
        let dropped = !self.wanted.is_empty() && self.spoiled.is_some();
        !self.ends.is_empty() || wants || dropped
    }
}

/// Runs a tool's code to its end.
///
/// # Errors
///
/// How the entry ends where something was refused, whatever the code made of that.
pub(crate) async fn drive<F: Future + Unpin>(
    context: impl AsRef<Entry>,
    code: F,
) -> Result<F::Output, Outcome> {
    let entry = context.as_ref();
    let mut code = Some(code);
    let mut result = None;
    let mut under_way: Vec<(Option<Want>, Request)> = Vec::new();
    poll_fn(|task| {
        loop {
            under_way.append(&mut entry.state().due());
            under_way.retain_mut(|(want, request)| match request.as_mut().poll(task) {
                Poll::Pending => true,
                Poll::Ready(after) => {
                    if *want == Some(Want::Wait) {
                        entry.state().is_waiting = false;
                    }
                    match after {
                        After::GoOn => {}
                        After::Take => entry.state().taking += 1,
                        After::Spoil { refused, end } => entry.spoil(refused, end),
                    }
                    false
                }
            });
            // INVARIANT: the tool does not go on while something is under way that it could otherwise overtake.
            let stands = {
                let state = entry.state();
                (!under_way.is_empty() || state.is_left) && state.taking == 0
            };
            if let Some(running) = &mut code
                && !stands
                && let Poll::Ready(ended) = Pin::new(running).poll(task)
            {
                result = Some(ended);
                // With it go the steps that it has let go of, which are reported then.
                code = None;
            }
            let state = entry.state();
            if state.is_due() {
                continue;
            }
            if state.is_left || !under_way.is_empty() {
                return Poll::Pending;
            }
            return match (result.take(), &state.spoiled) {
                (None, _) => Poll::Pending,
                (Some(_), Some((_, end))) => Poll::Ready(Err(end.clone())),
                (Some(ended), None) => Poll::Ready(Ok(ended)),
            };
        }
    })
    .await
}
