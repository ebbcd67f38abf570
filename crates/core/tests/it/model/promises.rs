//! What is promised of every state, and of what is stored.

use std::collections::BTreeSet;

use holdpoint_core::{
    Action, ActionStatus, Ask, Conversation, Doubt, FramePath, FramePhase, Index, IndexRow,
    Interrupt, Message, Role, State, Status, Subject, Verdict, Wait, Work, decode_head,
    decode_records, fold, next,
};

use crate::thread::Thread;

pub(super) fn check_state(state: &State) {
    for action in state.actions.values() {
        match &action.status {
            ActionStatus::Held { interrupt } => {
                let interrupt = &state
                    .interrupts
                    .get(interrupt)
                    .expect("held by no question");
                let asked = interrupt.asks.iter().any(|ask| ask.action_id == action.id);
                assert!(
                    asked
                        || is_restored(interrupt)
                        || action.verdict == Verdict::Allow
                        || action.grant.is_some(),
                    "held, and never asked about"
                );
                assert!(interrupt.frame == action.frame || is_restored(interrupt));
                assert_eq!(action.role, Role::Call);
            }
            ActionStatus::InDoubt { interrupt, .. } => {
                let interrupt = &state
                    .interrupts
                    .get(interrupt)
                    .expect("in doubt, and nobody is asked");
                assert_eq!(interrupt.asks[0].action_id, action.id);
                assert!(matches!(interrupt.asks[0].subject, Subject::Effect { .. }));
            }
            ActionStatus::Undoing { by } => {
                let by = state.actions.get(by).expect("undone by nothing");
                assert_eq!((by.parent, by.role), (Some(action.id), Role::Compensation));
            }
            ActionStatus::Unsettled { .. } => panic!("seen between appends"),
            ActionStatus::Waiting { on, .. } => check_wait(state, action, on),
            ActionStatus::Ready { .. } if action.role == Role::Step => {
                let tool = action.parent.and_then(|id| state.actions.get(&id));
                assert!(tool.is_some(), "a step that nobody will take again");
            }
            ActionStatus::Ready { .. }
            | ActionStatus::Started { .. }
            | ActionStatus::Unknown { .. } => {}
        }
        let hash = action.params.hash(&action.tool.name, &action.tool.version);
        assert_eq!(hash, action.params_hash);
    }
    for interrupt in state.interrupts.values() {
        for ask in &interrupt.asks {
            let waits = |status: &ActionStatus| match status {
                ActionStatus::Held { interrupt: by }
                | ActionStatus::InDoubt { interrupt: by, .. } => *by == interrupt.id,
                _ => false,
            };
            let action = state.actions.get(&ask.action_id);
            match ask.subject {
                Subject::Model | Subject::Node { .. } => {
                    let active = state.active().unwrap();
                    assert!(active.stop.is_none());
                    assert!(active.frames.contains_key(&interrupt.frame));
                }
                Subject::Restored { .. } => {
                    let undoes = |work: &Work| match work {
                        Work::Start { action, .. }
                        | Work::Settle { action, .. }
                        | Work::LookUp { action, .. } => {
                            state.actions[action].role == Role::Compensation
                        }
                        Work::CallModel { .. } | Work::AwaitModel { .. } | Work::Say { .. } => {
                            false
                        }
                    };
                    // Only what a person wants undone since.
                    assert!(
                        next(state).iter().all(undoes),
                        "nobody said that it goes on"
                    );
                }
                Subject::Confirmation { .. } => {
                    let frame = &state.active().unwrap().frames[&interrupt.frame];
                    assert!(interrupt.frame.is_root() && frame.phase == FramePhase::Done);
                }
                Subject::Output { text, .. } => {
                    let frame = &state.active().unwrap().frames[&interrupt.frame];
                    assert!(
                        matches!(frame.phase, FramePhase::Held { text: held, .. } if held == text),
                        "a question about words that nothing holds"
                    );
                }
                Subject::Question { action, .. } => {
                    let on = Wait::Answer {
                        interrupt: interrupt.id,
                    };
                    let action = action.and_then(|id| state.actions.get(&id)).unwrap();
                    let waits =
                        matches!(&action.status, ActionStatus::Waiting { on: it, .. } if *it == on);
                    assert!(waits, "nobody waits for the answer");
                }
                _ => assert!(
                    action.is_some_and(|action| waits(&action.status)),
                    "a question about nothing"
                ),
            }
        }
    }
    check_held(state);
    check_frames(state);
    let work = next(state);
    let reopened = |action: &holdpoint_core::Action| action.doubt == Doubt::Reopened;
    match state.status() {
        None => assert_eq!(*state, State::default()),
        Some(Status::Running) => assert!(
            !work.is_empty(),
            "running, and nothing can go on: {state:#?}"
        ),
        Some(Status::Waiting(cause)) => {
            assert!(
                work.is_empty()
                    && state
                        .interrupts
                        .values()
                        .any(|interrupt| interrupt.cause == cause)
            );
        }
        Some(Status::Sleeping(_)) => {
            assert!(work.is_empty() && state.interrupts.is_empty() && state.due_at().is_some());
        }
        Some(Status::Paused) => assert!(work.is_empty() && state.active().unwrap().paused),
        Some(Status::Finished | Status::Failed | Status::Cancelled) => {
            assert!(state.active().is_none());
            assert!(
                state
                    .actions
                    .values()
                    .all(|a| reopened(a) || a.doubt != Doubt::None),
                "left open by its run"
            );
        }
        Some(other) => panic!("{other:?}"),
    }
}

/// Whoever holds words back asks somebody about them; after a backup, once it is said that the run goes on.
fn check_held(state: &State) {
    let Some(active) = state.active() else { return };
    for (path, frame) in &active.frames {
        if !matches!(frame.phase, FramePhase::Held { .. }) {
            continue;
        }
        let about = |it: &Interrupt| {
            let mut asks = it.asks.iter();
            let held = |ask: &Ask| matches!(ask.subject, Subject::Output { .. });
            it.frame == *path && asks.any(held) || is_restored(it)
        };
        let mut interrupts = state.interrupts.values();
        assert!(interrupts.any(about), "held for ever");
    }
}

fn is_restored(interrupt: &Interrupt) -> bool {
    let restored = |ask: &Ask| matches!(ask.subject, Subject::Restored { .. });
    interrupt.asks.iter().any(restored)
}

fn check_wait(state: &State, action: &Action, on: &Wait) {
    match on {
        Wait::Frame { frame } => {
            let frame = state.active().and_then(|active| active.frames.get(frame));
            assert_eq!(frame.and_then(|frame| frame.task), Some(action.id));
        }
        Wait::Answer { interrupt } => assert!(state.interrupts.contains_key(interrupt)),
        Wait::Until { time } => assert!(state.due_at().is_some_and(|due| due <= *time)),
    }
}

/// Every frame but the run's own belongs to a task that waits for it.
fn check_frames(state: &State) {
    let Some(active) = state.active() else { return };
    for (path, frame) in &active.frames {
        if path.is_root() {
            continue;
        }
        let task = frame.task.and_then(|task| state.actions.get(&task));
        let on = Wait::Frame {
            frame: path.clone(),
        };
        let waits = task.map(|task| &task.status);
        assert!(
            matches!(waits, Some(ActionStatus::Waiting { on: it, .. }) if *it == on),
            "a frame without a task"
        );
    }
}

/// The rows of open things that a state must have.
pub(super) fn open_rows(state: &State) -> BTreeSet<(Index, String)> {
    let pending = state
        .interrupts
        .keys()
        .map(|id| (Index::Pending, id.to_string()));
    let runnable = (!next(state).is_empty()).then(|| (Index::Runnable, String::new()));
    let due = state.due_at().map(|_| (Index::Due, String::new()));
    pending.chain(runnable).chain(due).collect()
}

/// Checks what the last appends stored, from the state that `folded` is on.
pub(super) fn check_stored(thread: &Thread, folded: &mut State) {
    let is_open =
        |row: &&IndexRow| matches!(row.index, Index::Pending | Index::Runnable | Index::Due);
    let rows: Vec<_> = thread.rows.iter().filter(is_open).collect();
    let keys: BTreeSet<_> = rows
        .iter()
        .map(|row| (row.index, row.key.clone()))
        .collect();
    assert_eq!(keys, open_rows(&thread.state));
    assert_eq!(keys.len(), rows.len());
    let from = usize::try_from(folded.version).unwrap();
    let entries = decode_records(folded.hash, &thread.records[from..]).unwrap();
    assert_eq!(entries, thread.entries[from..]);
    for entry in &entries {
        assert!(entry.header.at >= folded.now, "time ran backwards");
        fold(folded, entry);
    }
    assert_eq!(*folded, thread.state);
    assert_eq!(decode_head(&thread.head).unwrap(), thread.state);
    assert_eq!(serde_json::to_vec(folded).unwrap(), thread.head.bytes);
    check_transcript(thread);
}

/// Every call of a finished turn has exactly one tool message in the conversation of its frame.
pub(super) fn check_transcript(thread: &Thread) {
    let state = &thread.state;
    let root = thread.transcript.frame(&FramePath::root()).unwrap();
    let anything_open = state.active().is_some() && !state.actions.is_empty();
    check_conversation(root, anything_open);
    let frames = state.active().map(|active| active.frames.keys());
    for path in frames.into_iter().flatten().filter(|path| !path.is_root()) {
        let conversation = thread.transcript.frame(path);
        let open = state.actions.values().any(|action| action.frame == *path);
        check_conversation(conversation.expect("a frame without words"), open);
    }
}

fn check_conversation(conversation: &Conversation, turn_is_open: bool) {
    let mut turns: Vec<(Vec<String>, Vec<String>)> = Vec::new();
    for message in conversation.messages() {
        match message {
            Message::Assistant { tool_calls, .. } => {
                turns.push((tool_calls.into_iter().map(|call| call.id).collect(), vec![]));
            }
            Message::Tool { tool_call_id, .. } => turns.last_mut().unwrap().1.push(tool_call_id),
            _ => {}
        }
    }
    let finished = turns.len() - usize::from(turn_is_open && !turns.is_empty());
    for (calls, told) in &mut turns[..finished] {
        told.sort();
        assert_eq!(calls, told);
    }
}
