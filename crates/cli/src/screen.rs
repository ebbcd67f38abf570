//! Shows what happens in a thread while it happens.
//!
//! What this process commits comes from the engine at once; what another process commits is read from the store now and
//! then. Each event is shown once, whichever way it came.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "only for showing: what is not named here needs no line"
)]

use std::{
    collections::HashMap,
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use holdpoint_core::{
    ActionId, Digest, Entry, Event, Fate, Finish, State, ThreadId, decode_records,
};
use holdpoint_engine::{Engine, Said, Watcher};
use holdpoint_store::ThreadKey;
use tokio::time::Instant;

use crate::{
    safe_text::{GUTTER, Stream, line},
    session::Output,
    story::{self, Names},
    terminal,
};

/// How long something may take before it is said that it is still going on.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);
/// How long until that is said again.
pub(crate) const AGAIN: Duration = Duration::from_secs(10);
/// How often the store is asked for what others committed.
const GLANCE: Duration = Duration::from_millis(300);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Nothing is shown: a program reads.
    Silent,
    /// A line for each event.
    Lines,
    /// A line for each event, and the model's text as it comes.
    Live,
}

/// Shows one thread.
#[derive(Debug)]
pub(crate) struct Screen {
    mode: Mode,
    shown: Mutex<Shown>,
}

#[derive(Debug, Default)]
struct Shown {
    thread: Option<ThreadId>,
    /// The last event that was shown.
    seq: u64,
    hash: Digest,
    names: Names,
    /// The coming message, once some of it was shown.
    stream: Option<Stream>,
    /// Whether the last message of the model was shown as data.
    last_text: bool,
    busy: HashMap<Busy, Waited>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Busy {
    Model,
    Action(ActionId),
}

#[derive(Debug)]
struct Waited {
    since: Instant,
    said: Option<Instant>,
}

impl Screen {
    /// A screen that shows nothing until it is turned to a thread.
    pub(crate) fn new(output: Output) -> Self {
        let mode = match output {
            Output::Json => Mode::Silent,
            Output::Plain if terminal::is_live() => Mode::Live,
            Output::Plain => Mode::Lines,
        };
        Self {
            mode,
            shown: Mutex::default(),
        }
    }

    /// Shows this thread from here on: what comes after its state.
    pub(crate) fn turn_to(&self, thread: ThreadId, state: Option<&State>) {
        let mut shown = self.lock();
        *shown = Shown {
            thread: Some(thread),
            ..Shown::default()
        };
        if let Some(state) = state {
            shown.seq = state.version;
            shown.hash = state.hash;
            shown.names = Names::of(state);
        }
    }

    /// Ends the line of a message that will not be completed here.
    pub(crate) fn break_off(&self) {
        self.lock().end_text();
    }

    /// Whether the model's last words were already printed as data.
    pub(crate) fn has_shown_last_text(&self) -> bool {
        self.lock().last_text
    }

    /// Shows what other processes commit, and says now and then what takes long.
    pub(crate) async fn attend(&self, engine: &Engine, key: &ThreadKey) -> Infallible {
        loop {
            tokio::time::sleep(GLANCE).await;
            self.catch_up(engine, key).await;
            self.reassure();
        }
    }

    /// Shows what was committed and not shown yet.
    pub(crate) async fn catch_up(&self, engine: &Engine, key: &ThreadKey) {
        if self.mode == Mode::Silent {
            return;
        }
        let (seq, hash) = {
            let shown = self.lock();
            (shown.seq, shown.hash)
        };
        // Only for showing: whoever drives reads for itself, and reports what it cannot read.
        let Ok(records) = engine.store().read(key, seq, 256).await else {
            return;
        };
        if let Ok(entries) = decode_records(hash, &records) {
            self.show_new(key, &entries);
        }
    }

    fn reassure(&self) {
        if self.mode == Mode::Silent || !terminal::is_watched() {
            return;
        }
        let mut shown = self.lock();
        let shown = &mut *shown;
        for (what, waited) in &mut shown.busy {
            let due = waited
                .said
                .map_or(waited.since + PATIENCE, |said| said + AGAIN);
            if Instant::now() < due || shown.stream.is_some() {
                continue;
            }
            waited.said = Some(Instant::now());
            let name = match what {
                Busy::Model => "the model".to_owned(),
                Busy::Action(action) => shown.names.get(*action),
            };
            let seconds = waited.since.elapsed().as_secs();
            terminal::note(&format!("… {name}: for {seconds} s now"));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watcher for Screen {
    fn committed(&self, key: &ThreadKey, entries: &Arc<[Entry]>, _: &Arc<State>) {
        self.show_new(key, entries);
    }

    fn said(&self, key: &ThreadKey, said: Said<'_>) {
        let mut shown = self.lock();
        if self.mode != Mode::Live || shown.thread != Some(key.thread) {
            return;
        }
        let stream = shown.stream.get_or_insert_with(terminal::stream);
        let text = stream.push(said.text);
        terminal::part(&text);
    }
}

impl Screen {
    /// Shows those of these events that were not shown yet.
    fn show_new(&self, key: &ThreadKey, entries: &[Entry]) {
        let mut shown = self.lock();
        if self.mode == Mode::Silent || shown.thread != Some(key.thread) {
            return;
        }
        for entry in entries {
            if entry.seq > shown.seq {
                shown.seq = entry.seq;
                shown.hash = entry.hash;
                shown.names.note(&entry.event);
                shown.track(&entry.event);
                shown.show(self.mode, &entry.event);
            }
        }
    }
}

impl Shown {
    /// Keeps what is in flight, for [`Screen::reassure`].
    fn track(&mut self, event: &Event) {
        let waited = || Waited {
            since: Instant::now(),
            said: None,
        };
        match event {
            Event::ModelStarted { .. } => {
                self.busy.insert(Busy::Model, waited());
            }
            Event::ActionStarted { action, .. } => {
                self.busy.insert(Busy::Action(*action), waited());
            }
            Event::ModelReplied { .. } | Event::OutputHeld { .. } | Event::ModelFailed { .. } => {
                self.busy.remove(&Busy::Model);
            }
            Event::ActionFinished { action, .. }
            | Event::ActionUnknown { action, .. }
            | Event::ActionWithheld { action, .. } => {
                self.busy.remove(&Busy::Action(*action));
            }
            Event::RunEnded { .. } => self.busy.clear(),
            _ => {}
        }
    }

    fn show(&mut self, mode: Mode, event: &Event) {
        let mark = match event {
            Event::RunStarted { .. } | Event::Answered { .. } | Event::CompensationBound { .. } => {
                "•"
            }
            Event::ModelReplied { text, calls, .. } => {
                self.show_text(mode, text, calls.is_empty());
                for called in calls {
                    if let Fate::Refused { message } = &called.fate {
                        let name = line(&called.call.name);
                        terminal::note(&format!("! not done {name}: {}", line(message)));
                    }
                }
                return;
            }
            Event::ActionStarted { .. } => "→",
            Event::ActionFinished { outcome, .. } => match outcome {
                Finish::Done { .. } => "✓",
                Finish::Failed { .. } => "✗",
            },
            Event::OutputHeld { .. }
            | Event::ModelFailed { .. }
            | Event::ActionUnknown { .. }
            | Event::ActionWithheld { .. }
            | Event::ActionLookedUp { .. }
            | Event::LateOutcome { .. }
            | Event::WarrantVoided { .. }
            | Event::Repinned { .. }
            | Event::InterruptClosed { .. } => "!",
            Event::StopRequested { .. } | Event::RunEnded { .. } => "■",
            // The question itself is shown when the run has stopped.
            _ => return,
        };
        self.end_text();
        terminal::note(&format!("{mark} {}", story::tell(event, &self.names)));
    }

    /// A committed message. The last one of a run is its output, which is printed at the end unless it was streamed.
    fn show_text(&mut self, mode: Mode, text: &str, is_last: bool) {
        let streamed = self.stream.is_some();
        self.end_text();
        self.last_text = false;
        if text.is_empty() {
            return;
        }
        match mode {
            Mode::Live => {
                if !streamed {
                    terminal::data(&terminal::block(text, GUTTER));
                }
                self.last_text = is_last;
            }
            Mode::Lines if !is_last => terminal::note(&terminal::block(text, GUTTER)),
            Mode::Lines | Mode::Silent => {}
        }
    }

    fn end_text(&mut self) {
        if let Some(mut stream) = self.stream.take() {
            terminal::part(&stream.end());
        }
    }
}
