//! Random lives, watched by an auditor that knows only what DESIGN promises.
//!
//! A case is a list of moves. Each move is read against the thread as it is then: most do what a driver or a person would
//! do next, some come late, twice, from the wrong person or about the wrong thing. After every accepted command the
//! auditor looks at the events, and the promises about the state are checked; after every append the promises about what
//! is stored.

use std::collections::{BTreeMap, BTreeSet};

use holdpoint_core::{
    ActionId, ActionStatus, Answer, Batch, Command, Damaged, Decision, DecisionKind, Digest,
    Doubt, Effect, Entry, Event, Fate, Finish, FramePath, Hooks, Index, IndexRow, InterruptId,
    JudgedCall, Limits, Lookup, Message, ModelTrouble, Outcome, Params, Principal, PrincipalKind,
    Proof, RestatedCall, Role, Span, State, Status, Subject, ToolCall, ToolNow, Usage, Verdict,
    Work, decode_head, decode_records, fold, next,
};
use proptest::prelude::*;

use crate::thread::{
    TENANT, Thread, ask, call, done, driver, edit, failed, gated, gone, lost, proof_of, reject,
    restated, thinking, tool, unsure, user,
};

// The auditor.

/// What the auditor knows of an action.
#[derive(Debug, Default)]
struct Watched {
    write: bool,
    compensation: bool,
    /// A person must allow it.
    gated: bool,
    tool: String,
    params: Params,
    /// The one call that may run.
    hash: Digest,
    /// The call that a person allowed.
    allowed: Option<Digest>,
    starts: u32,
    /// Since the last start a lookup said not found, or a person not committed.
    cleared: bool,
    /// An attempt reported that it took effect.
    done: bool,
    closed: bool,
    key: Option<String>,
}

#[derive(Debug, Default)]
struct Auditor {
    actions: BTreeMap<ActionId, Watched>,
    stopped: bool,
}

impl Auditor {
    fn watched(&mut self, id: ActionId) -> &mut Watched {
        self.actions.get_mut(&id).expect("an action nobody asked for")
    }

    fn see(&mut self, entry: &Entry) {
        match &entry.event {
            Event::RunStarted { .. } => self.stopped = false,
            Event::ModelReplied { calls, .. } => {
                for called in calls {
                    if let Fate::Action { id, version, effect, verdict, .. } = &called.fate {
                        let params = Params::parse(&called.call.arguments).unwrap();
                        let watched = Watched {
                            write: *effect == Effect::Write,
                            gated: *verdict != Verdict::Allow,
                            tool: called.call.name.clone(),
                            hash: params.hash(&called.call.name, version),
                            params,
                            ..Watched::default()
                        };
                        assert!(self.actions.insert(*id, watched).is_none(), "an id twice");
                    }
                }
            }
            Event::Answered { decisions, .. } => {
                assert_ne!(entry.header.by.kind, PrincipalKind::Agent);
                assert_eq!(entry.header.by.tenant, TENANT);
                for decided in decisions {
                    if self.actions.contains_key(&decided.action_id) {
                        self.decided(decided.action_id, &decided.decision, decided.params_hash);
                    }
                }
            }
            Event::ActionStarted { action, attempt, key, .. } => {
                let keys = self.actions.iter().filter(|(id, other)| *id != action && !other.compensation);
                let keys: BTreeSet<_> = keys.filter_map(|(_, other)| other.key.clone()).collect();
                let stopped = self.stopped;
                let watched = self.watched(*action);
                assert!(!watched.closed, "a closed action was started");
                assert!(!stopped || watched.compensation, "started after the stop");
                assert!(!watched.gated || watched.allowed == Some(watched.hash), "nobody allowed it");
                assert!(!watched.write || watched.starts == 0 || watched.cleared, "a write was repeated blindly");
                assert!(!watched.write || !watched.done, "a write that was done was started again");
                assert!(watched.key.is_none() || watched.key.as_ref() == Some(key), "another key");
                assert!(watched.compensation || !keys.contains(key), "another action's key");
                assert_eq!(*attempt, watched.starts + 1);
                (watched.starts, watched.cleared) = (*attempt, false);
                watched.key = Some(key.clone());
            }
            Event::ActionFinished { action, outcome, .. } => {
                let watched = self.watched(*action);
                watched.done |= matches!(outcome, Finish::Done { .. });
                watched.closed |= watched.done || !watched.compensation;
            }
            Event::LateOutcome { action, outcome: Outcome::Done { .. }, .. } => self.watched(*action).done = true,
            Event::ActionLookedUp { action, lookup: Lookup::NotFound, .. } => self.watched(*action).cleared = true,
            Event::CompensationBound { action, compensation } => {
                let original = self.watched(*action);
                assert!(original.starts > 0 && original.write, "there is nothing to undo");
                let bound = Watched {
                    write: true,
                    compensation: true,
                    key: original.key.clone(),
                    ..Watched::default()
                };
                original.closed = true;
                self.actions.insert(*compensation, bound);
            }
            Event::Repinned { actions, .. } => {
                for restated in actions {
                    let watched = self.watched(restated.action);
                    assert_eq!(watched.starts, 0, "what was started was restated");
                    watched.hash = watched.params.hash(&watched.tool, &restated.tool.version);
                    (watched.gated, watched.allowed) = (true, None);
                }
            }
            Event::WarrantVoided { action, .. } => {
                let watched = self.watched(*action);
                (watched.gated, watched.allowed) = (true, None);
            }
            Event::StopRequested { closed, .. } => {
                self.stopped = true;
                for action in closed {
                    self.watched(*action).closed = true;
                }
            }
            _ => {}
        }
    }

    fn decided(&mut self, id: ActionId, decision: &Decision, about: Option<Digest>) {
        let watched = self.watched(id);
        match decision {
            Decision::Approve => {
                assert_eq!(about, Some(watched.hash), "something else was approved");
                watched.allowed = about;
            }
            Decision::Edit { edited_action } => {
                watched.params = edited_action.args.clone();
                watched.hash = about.unwrap();
                (watched.allowed, watched.key) = (about, None);
            }
            Decision::Reject { .. } | Decision::Respond { .. } | Decision::Committed { .. } => watched.closed = true,
            Decision::NotCommitted => watched.cleared = true,
            Decision::Compensate => {}
        }
    }
}

// What is promised of every state, and of what is stored.

fn check_state(state: &State) {
    for action in state.actions.values() {
        match &action.status {
            ActionStatus::Held { interrupt } => {
                let interrupt = &state.interrupts.get(interrupt).expect("held by no question");
                let asked = interrupt.asks.iter().any(|ask| ask.action_id == action.id);
                assert!(asked || action.verdict == Verdict::Allow, "held, and never asked about");
                assert_eq!(interrupt.frame, action.frame);
                assert_eq!(action.role, Role::Call);
            }
            ActionStatus::InDoubt { interrupt, .. } => {
                let interrupt = &state.interrupts.get(interrupt).expect("in doubt, and nobody is asked");
                assert_eq!(interrupt.asks[0].action_id, action.id);
                assert!(matches!(interrupt.asks[0].subject, Subject::Effect { .. }));
            }
            ActionStatus::Undoing { by } => {
                let by = state.actions.get(by).expect("undone by nothing");
                assert_eq!((by.parent, by.role), (Some(action.id), Role::Compensation));
            }
            ActionStatus::Unsettled { .. } => panic!("seen between appends"),
            ActionStatus::Ready { .. } | ActionStatus::Started { .. } | ActionStatus::Unknown { .. } => {}
        }
        let hash = action.params.hash(&action.tool.name, &action.tool.version);
        assert_eq!(hash, action.params_hash);
    }
    for interrupt in state.interrupts.values() {
        for ask in &interrupt.asks {
            let waits = |status: &ActionStatus| match status {
                ActionStatus::Held { interrupt: by } | ActionStatus::InDoubt { interrupt: by, .. } => *by == interrupt.id,
                _ => false,
            };
            let action = state.actions.get(&ask.action_id);
            match ask.subject {
                Subject::Model => assert!(state.active().is_some() && state.stop().is_none()),
                _ => assert!(action.is_some_and(|action| waits(&action.status)), "a question about nothing"),
            }
        }
    }
    let work = next(state);
    let reopened = |action: &holdpoint_core::Action| action.doubt == Doubt::Reopened;
    match state.status() {
        None => assert_eq!(*state, State::default()),
        Some(Status::Running) => assert!(!work.is_empty(), "running, and nothing can go on"),
        Some(Status::Waiting(cause)) => {
            assert!(work.is_empty() && state.interrupts.values().any(|interrupt| interrupt.cause == cause));
        }
        Some(Status::Finished | Status::Failed | Status::Cancelled) => {
            assert!(state.active().is_none());
            assert!(state.actions.values().all(|a| reopened(a) || a.doubt != Doubt::None), "left open by its run");
        }
        Some(other) => panic!("{other:?}"),
    }
}

/// The rows of open things that a state must have.
fn open_rows(state: &State) -> BTreeSet<(Index, String)> {
    let pending = state.interrupts.keys().map(|id| (Index::Pending, id.to_string()));
    let runnable = (!next(state).is_empty()).then(|| (Index::Runnable, String::new()));
    pending.chain(runnable).collect()
}

fn check_stored(thread: &Thread) {
    let is_open = |row: &&IndexRow| matches!(row.index, Index::Pending | Index::Runnable | Index::Due);
    let rows: Vec<_> = thread.rows.iter().filter(is_open).collect();
    let keys: BTreeSet<_> = rows.iter().map(|row| (row.index, row.key.clone())).collect();
    assert_eq!(keys, open_rows(&thread.state));
    assert_eq!(keys.len(), rows.len());
    let entries = decode_records(Digest::default(), &thread.records).unwrap();
    assert_eq!(entries, thread.entries);
    let mut folded = State::default();
    for entry in &entries {
        assert!(entry.header.at >= folded.now, "time ran backwards");
        fold(&mut folded, entry);
    }
    assert_eq!(folded, thread.state);
    assert_eq!(decode_head(&thread.head).unwrap(), folded);
    assert_eq!(serde_json::to_vec(&folded).unwrap(), thread.head.bytes);
    check_transcript(thread);
}

/// Every call of a finished turn has exactly one tool message.
fn check_transcript(thread: &Thread) {
    let turn_is_open = thread.state.active().is_some_and(|_| !thread.state.actions.is_empty());
    let messages = thread.transcript.messages();
    let mut turns: Vec<(Vec<String>, Vec<String>)> = Vec::new();
    for message in messages {
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

// The moves.

#[derive(Debug, Clone)]
enum Move {
    /// The clock goes on, or jumps back.
    Tick(i64),
    StartRun(u8),
    Cancel,
    /// The driver does something that `next` says may go on.
    Work(u8, Reply, u8),
    /// An outcome comes, for any attempt ever made.
    Report(u8, u8),
    Answer { which: u8, decisions: Vec<u8>, who: u8, form: u8 },
    Restate { which: u8, actions: u8, how: u8 },
    /// A command about anything at all.
    Stray(u8, u8),
}

/// What a model says: its calls, each as (tool, arguments, verdict).
type Reply = Vec<(u8, u8, u8)>;

fn reply() -> impl Strategy<Value = Reply> {
    prop::collection::vec((0..6_u8, 0..3_u8, 0..8_u8), 0..4)
}

fn a_move() -> impl Strategy<Value = Move> {
    let small = || any::<u8>();
    prop_oneof![
        2 => prop_oneof![Just(1), Just(61), Just(70), Just(10_000), Just(-40), Just(-100_000)].prop_map(Move::Tick),
        2 => small().prop_map(Move::StartRun),
        1 => Just(Move::Cancel),
        14 => (small(), reply(), small()).prop_map(|(which, reply, how)| Move::Work(which, reply, how)),
        4 => (small(), small()).prop_map(|(which, how)| Move::Report(which, how)),
        7 => (small(), prop::collection::vec(small(), 4), small(), small())
            .prop_map(|(which, decisions, who, form)| Move::Answer { which, decisions, who, form }),
        2 => (small(), small(), small()).prop_map(|(which, actions, how)| Move::Restate { which, actions, how }),
        1 => (small(), small()).prop_map(|(which, how)| Move::Stray(which, how)),
    ]
}

/// Moves, each with whether an append follows on it.
fn moves() -> impl Strategy<Value = Vec<(Move, bool)>> {
    prop::collection::vec((a_move(), prop::bool::weighted(0.7)), 1..80)
}

fn pick<T: Clone>(items: &[T], which: u8) -> Option<T> {
    (!items.is_empty()).then(|| items[usize::from(which) % items.len()].clone())
}

fn some_tool(kind: u8, version: &str) -> holdpoint_core::ToolFacts {
    let hooks = |lookup, compensate| Hooks { lookup, compensate };
    let (name, effect, hooks) = match kind {
        0 => ("read", Effect::Read, hooks(false, false)),
        1 => ("put", Effect::Idempotent, hooks(false, false)),
        2 => ("write", Effect::Write, hooks(false, false)),
        3 => ("lookup", Effect::Write, hooks(true, false)),
        4 => ("undo", Effect::Write, hooks(false, true)),
        _ => ("both", Effect::Write, hooks(true, true)),
    };
    tool(name, version, effect, hooks)
}

fn some_calls(reply: &Reply) -> Vec<JudgedCall> {
    let judged = |(at, (kind, arguments, verdict)): (usize, &(u8, u8, u8))| {
        let (id, tool) = (format!("c{at}"), some_tool(*kind, "1"));
        let arguments = ["{}", r#"{"a":1}"#, r#"{ "b" : 2.0 }"#][usize::from(*arguments)];
        match verdict {
            0..3 => call(&id, tool, arguments, Verdict::Allow),
            3..6 => call(&id, tool, arguments, gated()),
            6 => call(&id, tool, arguments, Verdict::Deny),
            _ => JudgedCall {
                call: ToolCall { id, name: "nonsense".to_owned(), arguments: "{".to_owned() },
                judged: Err("not valid JSON".to_owned()),
            },
        }
    };
    reply.iter().enumerate().map(judged).collect()
}

fn some_outcome(how: u8) -> Outcome {
    match how % 4 {
        0 | 1 => done("ok"),
        2 => failed("no"),
        _ => lost(),
    }
}

fn some_lookup(how: u8) -> Lookup {
    match how % 6 {
        0 => Lookup::Committed { receipt: "r1".into() },
        1..=3 => Lookup::NotFound,
        4 => Lookup::Partial { receipt: "half".into() },
        _ => unsure(),
    }
}

fn some_proof(state: &State, action: ActionId, how: u8) -> Proof {
    let mut proof = proof_of(&state.actions[&action]);
    match how % 12 {
        0 => proof.params_hash = Digest::of(b"something else"),
        1 => proof.tool_version = "9".to_owned(),
        _ => {}
    }
    proof
}

fn some_decision(kind: DecisionKind, state: &State, action: ActionId, how: u8) -> Decision {
    match kind {
        DecisionKind::Approve => Decision::Approve,
        DecisionKind::Edit => {
            let name = state.actions.get(&action).map_or("gone", |action| &action.tool.name);
            edit(name, ["{}", r#"{"e":1}"#][usize::from(how) % 2])
        }
        DecisionKind::Reject => reject(["", "no"][usize::from(how) % 2]),
        DecisionKind::Respond => Decision::Respond { message: "said".to_owned() },
        DecisionKind::Committed => Decision::Committed { result: "known".into() },
        DecisionKind::NotCommitted => Decision::NotCommitted,
        DecisionKind::Compensate => Decision::Compensate,
    }
}

/// A life in progress.
struct Life {
    thread: Thread,
    batch: Batch,
    auditor: Auditor,
    audited: usize,
    attempts: Vec<(ActionId, u32)>,
    interrupts: Vec<InterruptId>,
}

impl Life {
    fn new() -> Self {
        let thread = Thread::new();
        let batch = thread.batch();
        let (attempts, interrupts) = (Vec::new(), Vec::new());
        Self { thread, batch, auditor: Auditor::default(), audited: 0, attempts, interrupts }
    }

    /// Appends what was decided since the last time.
    fn commit(&mut self) {
        let fresh = self.thread.batch();
        let batch = std::mem::replace(&mut self.batch, fresh);
        self.thread.commit(batch);
        self.batch = self.thread.batch();
        for entry in &self.thread.entries[self.audited..] {
            self.auditor.see(entry);
            match &entry.event {
                Event::ActionStarted { action, attempt, .. } => self.attempts.push((*action, *attempt)),
                Event::InterruptRaised(interrupt) => self.interrupts.push(interrupt.id),
                _ => {}
            }
        }
        self.audited = self.thread.entries.len();
    }

    fn tell(&mut self, by: Principal, command: Command) -> bool {
        let before = self.batch.state().clone();
        let mut context = self.thread.context(by);
        let accepted = self.batch.decide(command, &mut context);
        match &accepted {
            Ok(()) => check_state(self.batch.state()),
            Err(_) => assert_eq!(*self.batch.state(), before, "a refusal changed something"),
        }
        accepted.is_ok()
    }

    fn make(&mut self, a_move: &Move) {
        let state = self.batch.state().clone();
        let (by, command) = match a_move {
            Move::Tick(seconds) => return self.thread.wait(*seconds),
            Move::StartRun(how) => {
                let limits = match how % 6 {
                    0 => Limits { turns: 2, ..Limits::default() },
                    1 => Limits { calls: 3, ..Limits::default() },
                    2 => Limits { time: Span::from_secs(30), ..Limits::default() },
                    _ => Limits::default(),
                };
                (user("ann"), Thread::start_command(limits))
            }
            Move::Cancel => (user("ann"), Command::Cancel),
            Move::Work(which, reply, how) => match pick(&next(&state), *which) {
                Some(work) => (driver(), self.drive(&state, work, some_calls(reply), *how)),
                None => return,
            },
            Move::Report(which, how) => {
                self.commit();
                let Some((action, attempt)) = pick(&self.attempts, *which) else { return };
                (driver(), self.thread.ended(action, attempt, some_outcome(*how)))
            }
            Move::Answer { which, decisions, who, form } => {
                match self.answer(&state, *which, decisions, *form) {
                    Some(command) => (some_person(*who), command),
                    None => return,
                }
            }
            Move::Restate { which, actions, how } => match restate(&state, *which, *actions, *how) {
                Some(command) => (driver(), command),
                None => return,
            },
            Move::Stray(which, how) => match self.stray(*which, *how) {
                Some(command) => (driver(), command),
                None => return,
            },
        };
        self.tell(by, command);
    }

    fn drive(&self, state: &State, work: Work, calls: Vec<JudgedCall>, how: u8) -> Command {
        let root = FramePath::root;
        match work {
            Work::CallModel { .. } => Command::StartModel { frame: root(), epoch: 1 },
            Work::AwaitModel { attempt, .. } => match how % 8 {
                0 => Command::ModelLost { frame: root(), attempt },
                1 => Command::ModelFailed {
                    frame: root(),
                    attempt,
                    trouble: ModelTrouble::Passing { error: "503".to_owned(), retry_after: Some(Span::from_secs(1)) },
                },
                2 => Command::ModelFailed {
                    frame: root(),
                    attempt,
                    trouble: ModelTrouble::Lasting { error: "401".to_owned() },
                },
                _ => Command::ModelReplied {
                    frame: root(),
                    attempt,
                    text: "hm".to_owned(),
                    calls,
                    usage: Usage::default(),
                },
            },
            Work::Start { action, .. } => Command::StartAction { action, epoch: 1, proof: some_proof(state, action, how) },
            Work::Settle { action, attempt, .. } if how.is_multiple_of(4) => Command::ActionOrphaned { action, attempt },
            Work::Settle { action, attempt, .. } => {
                Command::ActionEnded { action, attempt, outcome: some_outcome(how / 4), past: None }
            }
            Work::LookUp { action, .. } => Command::LookedUp { action, lookup: some_lookup(how) },
        }
    }

    fn answer(&self, state: &State, which: u8, decisions: &[u8], form: u8) -> Option<Command> {
        let pending: Vec<InterruptId> = state.interrupts.keys().copied().collect();
        let interrupt = if which < 230 { pick(&pending, which)? } else { pick(&self.interrupts, which)? };
        let mut said = Vec::new();
        for (at, ask) in state.interrupts.get(&interrupt).iter().flat_map(|interrupt| interrupt.asks.iter()).enumerate() {
            let how = decisions[at % decisions.len()];
            let kind = if how < 240 { pick(ask.allowed.as_slice(), how)? } else { DecisionKind::Approve };
            said.push((ask.action_id, some_decision(kind, state, ask.action_id, how / 4)));
        }
        let by_position = || said.iter().map(|(_, decision)| decision.clone()).collect();
        let answer = match form % 8 {
            0 => Answer::All(said.first().map_or(Decision::Approve, |(_, decision)| decision.clone())),
            1 => Answer::ByPosition(said.iter().skip(1).map(|(_, decision)| decision.clone()).collect()),
            2..=4 => Answer::ById(said.iter().rev().cloned().collect()),
            _ => Answer::ByPosition(by_position()),
        };
        Some(Command::Answer { interrupt, answer, misfits: vec![] })
    }

    /// Something about anything: another attempt, an action that is closed, the wrong moment.
    fn stray(&self, which: u8, how: u8) -> Option<Command> {
        let state = self.batch.state();
        let known: Vec<ActionId> = self.auditor.actions.keys().copied().collect();
        let action = pick(&known, which)?;
        let attempt = u32::from(how % 4);
        Some(match how % 7 {
            0 => Command::ActionOrphaned { action, attempt },
            1 => Command::LookedUp { action, lookup: Lookup::NotFound },
            2 => Command::ModelLost { frame: FramePath::root(), attempt },
            3 => Command::StartModel { frame: FramePath::root(), epoch: 2 },
            4 => Command::Restate { definition: Digest::of(b"d3"), interrupt: None, calls: vec![gone(action)] },
            5 => Command::Restate {
                definition: Digest::of(b"d3"),
                interrupt: state.interrupts.keys().next().copied(),
                calls: vec![gone(action), gone(action)],
            },
            _ => Command::StartAction {
                action,
                epoch: 1,
                proof: state.actions.get(&action).map(proof_of)?,
            },
        })
    }

    /// Lets everyone do what is asked of them until nothing is open.
    fn finish(&mut self) {
        for _ in 0..2_000 {
            self.commit();
            check_stored(&self.thread);
            let state = self.thread.state.clone();
            if let Some(interrupt) = state.interrupts.values().next() {
                let decisions = interrupt.asks.iter().map(|ask| {
                    let kinds = ask.allowed.as_slice();
                    let last = kinds.iter().find(|kind| **kind == DecisionKind::Reject).or(kinds.first());
                    some_decision(*last.unwrap(), &state, ask.action_id, 0)
                });
                let answer = Answer::ByPosition(decisions.collect());
                let command = Command::Answer { interrupt: interrupt.id, answer, misfits: vec![] };
                assert!(self.tell(user("bob"), command), "a question that cannot be answered");
            } else if let Some(work) = next(&state).into_iter().next() {
                self.thread.wait(200);
                // Never a wrong proof, always an end: 7 avoids every odd branch.
                let command = self.drive(&state, work, vec![], 7);
                assert!(self.tell(driver(), command.clone()), "{command:?} was refused");
            } else {
                assert_eq!(state.actions, BTreeMap::new(), "left open for ever");
                assert!(state.active().is_none());
                return;
            }
        }
        panic!("it never ends: {:#?}", self.thread.state);
    }
}

fn some_person(who: u8) -> Principal {
    match who {
        0..10 => Principal::new(PrincipalKind::Agent, TENANT, "teller"),
        10..20 => Principal::new(PrincipalKind::User, "other", "eve"),
        _ => user("bob"),
    }
}

fn restate(state: &State, which: u8, actions: u8, how: u8) -> Option<Command> {
    let mut stale: Vec<Option<InterruptId>> = state.interrupts.keys().copied().map(Some).collect();
    stale.push(None);
    let interrupt = pick(&stale, which)?;
    let candidates = state.actions.values().filter(|action| match (&action.status, interrupt) {
        (ActionStatus::Held { interrupt: by }, Some(interrupt)) => *by == interrupt,
        (ActionStatus::Ready { .. }, None) => true,
        _ => false,
    });
    let chosen = candidates.enumerate().filter(|(at, _)| actions & (1 << (at % 8)) != 0);
    let calls = chosen.map(|(_, action)| {
        let (mut newer, same) = (action.tool.clone(), action.tool.clone());
        newer.version = format!("{}+", newer.version);
        match how % 6 {
            0 => gone(action.id),
            1 => restated(action.id, same, Verdict::Deny),
            2 => restated(action.id, newer, ask(&[DecisionKind::Approve])),
            3 => RestatedCall {
                action: action.id,
                tool: ToolNow::There { tool: newer, schema: Digest::of(b"s2"), verdict: gated(), fits: false },
                changes: vec!["schema".to_owned()],
            },
            4 => restated(action.id, same, gated()),
            _ => restated(action.id, newer, Verdict::Allow),
        }
    });
    let calls = calls.collect();
    Some(Command::Restate { definition: Digest::of(b"d2"), interrupt, calls })
}

fn live(moves: &[(Move, bool)]) -> Life {
    let mut life = Life::new();
    life.make(&Move::StartRun(5));
    for (a_move, append) in moves {
        life.make(a_move);
        if *append {
            life.commit();
            check_stored(&life.thread);
        }
    }
    life.commit();
    life
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_every_promise_is_kept(moves in moves(), cancelled in any::<bool>()) {
        let mut life = live(&moves);
        if cancelled {
            life.make(&Move::Cancel);
        }
        life.finish();
        life.make(&Move::StartRun(5));
        assert!(life.batch.state().active().is_some(), "no new run can be started");
    }

    #[test]
    fn a_changed_byte_is_always_found(moves in moves(), which in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), bit in 0..8_u8) {
        let life = live(&moves);
        let mut records = life.thread.records;
        let which = which.index(records.len());
        let record = &mut records[which];
        let hash = *record.hash.as_bytes();
        let (header, salt, payload) = (record.header.len(), record.salt.len(), record.payload.bytes.len());
        let at = at.index(header + salt + payload + hash.len());
        if at < header {
            record.header[at] ^= 1 << bit;
        } else if at < header + salt {
            record.salt[at - header] ^= 1 << bit;
        } else if at < header + salt + payload {
            record.payload.bytes[at - header - salt] ^= 1 << bit;
        } else {
            let mut hash = hash;
            hash[at - header - salt - payload] ^= 1 << bit;
            record.hash = Digest::from_bytes(hash);
        }
        let found = decode_records(Digest::default(), &records).unwrap_err();
        let newer = matches!(found, Damaged::Newer { .. }) && at < header;
        let broken = Damaged::BrokenChain { seq: which as u64 + 1 };
        prop_assert!(newer || found == broken, "{found:?}");
    }
}
