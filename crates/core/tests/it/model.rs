//! Random lives, watched by an auditor that knows only what DESIGN promises.
//!
//! A case is a list of moves. Each move is read against the thread as it is then: most do what a driver or a person would
//! do next, some come late, twice, from the wrong person or about the wrong thing. After every accepted command the
//! auditor looks at the events, and the promises about the state are checked; after every append the promises about what
//! is stored.

mod auditor;
mod moves;
mod promises;
mod traces;

use std::collections::{BTreeMap, BTreeSet};

use holdpoint_core::{
    ActionId, ActionStatus, Answer, Batch, Bond, Command, Confirmation, Damaged, Decision,
    DecisionKind, Digest, Effect, Event, Flag, FramePath, HeldReply, InterruptId, InterruptKind,
    InterruptMode, JudgedCall, Limits, Lookup, ModelTrouble, OnTimeout, Principal, PrincipalKind,
    Reply, RestatedCall, Role, Shown, Span, State, Suspension, Timestamp, ToolKind, ToolNow, Usage,
    Verdict, Work, decode_records, next,
};
use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};

use crate::thread::{
    TENANT, Thread, ask, driver, gated, gone, params, prompt, proof_of, restated, user,
};

use self::{
    auditor::Auditor,
    moves::{Move, moves, pick, some_calls, some_decision, some_lookup, some_outcome, some_proof},
    promises::{check_state, check_stored},
    traces::check_traces,
};

/// A life in progress.
struct Life {
    thread: Thread,
    batch: Batch,
    auditor: Auditor,
    audited: usize,
    attempts: Vec<(ActionId, u32)>,
    interrupts: Vec<InterruptId>,
    /// The state, folded from what was stored.
    folded: State,
}

impl Life {
    fn new() -> Self {
        let thread = Thread::new();
        let batch = thread.batch();
        let (attempts, interrupts) = (Vec::new(), Vec::new());
        Self {
            thread,
            batch,
            auditor: Auditor::default(),
            audited: 0,
            attempts,
            interrupts,
            folded: State::default(),
        }
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
                Event::ActionStarted {
                    action, attempt, ..
                }
                | Event::StepStarted {
                    step: action,
                    attempt,
                    ..
                } => self.attempts.push((*action, *attempt)),
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
            Move::Clock(seconds) => return self.thread.wait(*seconds),
            Move::Tick(when_due) => {
                let due_at = state.due_at().filter(|_| *when_due);
                self.thread.now = self.thread.now.max(due_at.unwrap_or_default());
                (driver(), Command::Tick)
            }
            Move::Pause => (user("ann"), Command::Pause { run: None }),
            Move::Continue => (user("ann"), Command::Continue { run: None }),
            Move::Revoke(which) => {
                let grants: Vec<_> = state.grants.keys().copied().collect();
                let Some(grant) = pick(&grants, *which) else {
                    return;
                };
                let command = Command::RevokeGrant {
                    thread: state.thread,
                    given: None,
                    grant,
                };
                (user("bob"), command)
            }
            Move::StartRun(how) => {
                let limits = match how % 6 {
                    0 => Limits {
                        turns: 2,
                        ..Limits::default()
                    },
                    1 => Limits {
                        calls: 3,
                        ..Limits::default()
                    },
                    2 => Limits {
                        time: Span::from_secs(30),
                        ..Limits::default()
                    },
                    _ => Limits::default(),
                };
                let mut start = Thread::start_command(limits);
                if let Command::StartRun { breakpoints, .. } = &mut start {
                    let node = |nth: u8, name: &str| (how >> nth == 1).then(|| name.to_owned());
                    breakpoints.before = node(7, "model").into_iter().collect();
                    breakpoints.before.extend(node(5, "write"));
                    breakpoints.after = node(6, "task").into_iter().collect();
                    breakpoints.after.extend(node(4, "model"));
                    breakpoints.after.extend(node(3, "order"));
                }
                (user("ann"), start)
            }
            Move::Cancel => (user("ann"), Command::Cancel { run: None }),
            Move::Work(which, reply, how) => {
                // What a stepped tool has behind it is known once it is stored.
                self.commit();
                let state = self.thread.state.clone();
                let Some(work) = pick(&next(&state), *which) else {
                    return;
                };
                let depth = match &work {
                    Work::AwaitModel { frame, .. } | Work::Say { frame, .. } => frame.depth(),
                    _ => 0,
                };
                let calls = self.thread.with_ids(some_calls(reply, depth));
                (driver(), self.drive(&state, &work, calls, *how))
            }
            Move::Report(which, how) => {
                self.commit();
                let Some((action, attempt)) = pick(&self.attempts, *which) else {
                    return;
                };
                (
                    driver(),
                    self.thread.ended(action, attempt, some_outcome(*how)),
                )
            }
            Move::Answer {
                which,
                decisions,
                who,
                form,
            } => match self.answer(&state, *which, decisions, *form) {
                Some(command) => (some_person(*who), command),
                None => return,
            },
            Move::Restate {
                which,
                actions,
                how,
            } => match restate(&state, *which, *actions, *how) {
                Some(command) => (driver(), command),
                None => return,
            },
            Move::Restore(twice) => return self.restore(*twice),
            Move::Stray(which, how) => match self.stray(*which, *how) {
                Some(command) => (driver(), command),
                None => return,
            },
        };
        self.tell(by, command);
    }

    fn drive(&self, state: &State, work: &Work, calls: Vec<JudgedCall>, how: u8) -> Command {
        match work.clone() {
            Work::CallModel { frame, .. } => Command::StartModel { frame, epoch: 1 },
            Work::AwaitModel { frame, attempt } => match how % 8 {
                0 => Command::ModelLost { frame, attempt },
                1 => Command::ModelFailed {
                    frame,
                    attempt,
                    trouble: ModelTrouble::RateLimited {
                        error: "503".to_owned(),
                        retry_after: Some(Span::from_secs(if how < 128 { 1 } else { 60 })),
                    },
                },
                2 => Command::ModelFailed {
                    frame,
                    attempt,
                    trouble: ModelTrouble::Rejected {
                        error: "401".to_owned(),
                    },
                },
                3 if how < 100 => Command::HoldOutput {
                    frame,
                    attempt,
                    reply: Box::new(HeldReply {
                        text: ["Are you sure?", "It is 4111."][usize::from(how / 8) % 2].to_owned(),
                        calls: calls.into_iter().map(|it| it.call).collect(),
                        ..HeldReply::default()
                    }),
                    flags: vec![Flag::new("cards", "a number")],
                },
                _ => Command::ModelReplied {
                    frame,
                    attempt,
                    text: "Are you sure?".to_owned(),
                    calls,
                    mode: if how.is_multiple_of(2) {
                        InterruptMode::PerCall
                    } else {
                        InterruptMode::Batched
                    },
                    usage: Usage::default(),
                    model: String::new(),
                    carried: None,
                    confirm: how
                        .is_multiple_of(3)
                        .then(|| Box::new(Confirmation::standard())),
                },
            },
            Work::Say { frame, attempt } => {
                let held = self.thread.transcript.held(&frame);
                let text = held.expect("let pass, and forgotten").text.clone();
                Command::ModelReplied {
                    frame,
                    attempt,
                    // Now and then something else than was let pass.
                    text: if how % 8 == 5 {
                        "Trust me.".to_owned()
                    } else {
                        text
                    },
                    calls,
                    mode: InterruptMode::Batched,
                    usage: Usage::default(),
                    model: String::new(),
                    carried: None,
                    confirm: None,
                }
            }
            Work::Start { action, .. } => Command::StartAction {
                action,
                epoch: 1,
                proof: some_proof(state, action, how),
            },
            Work::Settle {
                action, attempt, ..
            } if how.is_multiple_of(4) => Command::ActionOrphaned { action, attempt },
            Work::Settle {
                action, attempt, ..
            } if how.is_multiple_of(9) => Command::ActionWithheld {
                action,
                attempt,
                reason: "too late".to_owned(),
            },
            Work::Settle {
                action, attempt, ..
            } if how % 16 == 11 => Command::ActionOutdated {
                action,
                attempt,
                reason: "it has changed".to_owned(),
                shown: Box::new(Shown {
                    title: "a page".to_owned(),
                    kept: Digest::of(&[how]),
                    basis: None,
                }),
            },
            Work::Settle {
                action, attempt, ..
            } if is_stepped(state, action) && how >= 40 => self.stepped(action, attempt, how / 4),
            Work::Settle {
                action, attempt, ..
            } => Command::ActionEnded {
                action,
                attempt,
                outcome: some_outcome(how / 4),
                artifact: None,
                past: None,
            },
            Work::LookUp { action, .. } => Command::LookedUp {
                action,
                lookup: some_lookup(how),
                artifact: None,
            },
        }
    }

    /// What the code of a stepped tool does next, knowing what it has behind it.
    fn stepped(&self, action: ActionId, attempt: u32, how: u8) -> Command {
        let memo = self.thread.memo(action);
        let which = usize::from(how / 8) % 3;
        let (name, effect) = [
            ("look", Effect::Read),
            ("book", Effect::Idempotent),
            ("pay", Effect::Write),
        ][which];
        let arguments = params(r#"{"s":1}"#);
        let end = Command::ActionEnded {
            action,
            attempt,
            outcome: some_outcome(how),
            artifact: None,
            past: None,
        };
        let suspend = |name: &str, on| Command::Suspend {
            action,
            attempt,
            name: name.to_owned(),
            on,
        };
        match how % 8 {
            0..=3 => match memo.step(name, effect, &arguments).unwrap() {
                Some(_) => end,
                None => Command::BeginStep {
                    action,
                    attempt,
                    name: name.to_owned(),
                    effect,
                    params: arguments,
                    epoch: 1,
                },
            },
            4 | 5 => {
                let name = ["go", "where"][which % 2];
                match memo.answer(name, &prompt(name)).unwrap() {
                    Some(_) => end,
                    None => suspend(
                        name,
                        Suspension::Question {
                            kind: [InterruptKind::Approval, InterruptKind::Input][which % 2],
                            prompt: Box::new(prompt(name)),
                            expiry: [
                                None,
                                Some((Span::from_secs(60), OnTimeout::Reject)),
                                Some((Span::from_secs(60), OnTimeout::Expire)),
                            ][which],
                        },
                    ),
                }
            }
            6 => match memo.sleep("nap").unwrap() {
                Some(_) => end,
                None => {
                    let time = Span::from_secs(60);
                    suspend("nap", Suspension::Sleep { time })
                }
            },
            _ => Command::Yield { action, attempt },
        }
    }

    fn answer(&self, state: &State, which: u8, decisions: &[u8], form: u8) -> Option<Command> {
        let reply = self.reply(state, which, decisions, form)?;
        let mut answers = vec![reply];
        // Now and then several at once, perhaps one of them twice.
        if form >= 180 {
            answers.extend(self.reply(state, which.wrapping_add(1), decisions, form / 2));
        }
        Some(Command::Answer { answers })
    }

    fn reply(&self, state: &State, which: u8, decisions: &[u8], form: u8) -> Option<Reply> {
        let pending: Vec<InterruptId> = state.interrupts.keys().copied().collect();
        let interrupt = if which < 230 {
            pick(&pending, which)?
        } else {
            pick(&self.interrupts, which)?
        };
        let mut said = Vec::new();
        for (at, ask) in state
            .interrupts
            .get(&interrupt)
            .iter()
            .flat_map(|interrupt| interrupt.asks.iter())
            .enumerate()
        {
            let how = decisions[at % decisions.len()];
            let kind = if how < 240 {
                pick(ask.allowed.as_slice(), how)?
            } else {
                DecisionKind::Approve
            };
            said.push((
                ask.action_id,
                some_decision(kind, state, ask.action_id, how / 4),
            ));
        }
        let by_position = || said.iter().map(|(_, decision)| decision.clone()).collect();
        let answer = match form % 8 {
            0 => Answer::All(
                said.first()
                    .map_or(Decision::APPROVE, |(_, decision)| decision.clone()),
            ),
            1 => Answer::ByPosition(
                said.iter()
                    .skip(1)
                    .map(|(_, decision)| decision.clone())
                    .collect(),
            ),
            2..=4 => Answer::ById(said.iter().rev().cloned().collect()),
            _ => Answer::ByPosition(by_position()),
        };
        Some(Reply {
            interrupt,
            answer,
            misfits: vec![],
            lacking: vec![],
            shown: vec![],
            bond: Bond::default(),
        })
    }

    /// Somebody adopts a backup that holds the thread as it is.
    fn restore(&mut self, twice: bool) {
        self.thread.wait(1);
        let command = crate::thread::restore_command(self.thread.now);
        assert!(
            self.tell(driver(), command.clone()),
            "it cannot be restored"
        );
        let state = self.batch.state().clone();
        assert_eq!(next(&state), [], "it goes on, and nobody said so");
        if twice {
            assert!(self.tell(driver(), command));
            assert_eq!(*self.batch.state(), state, "it was restored twice");
        }
    }

    /// Something about anything: another attempt, an action that is closed, the wrong moment.
    fn stray(&self, which: u8, how: u8) -> Option<Command> {
        let state = self.batch.state();
        let known: Vec<ActionId> = self.auditor.actions.keys().copied().collect();
        let action = pick(&known, which)?;
        let attempt = u32::from(how % 4);
        Some(match how % 9 {
            7 => Command::Suspend {
                action,
                attempt,
                name: format!("stray {which}"),
                on: crate::thread::question("stray"),
            },
            8 => Command::Yield { action, attempt },
            0 => Command::ActionOrphaned { action, attempt },
            1 => Command::LookedUp {
                action,
                lookup: Lookup::NotFound,
                artifact: None,
            },
            2 => Command::ModelLost {
                frame: FramePath::root(),
                attempt,
            },
            3 => Command::StartModel {
                frame: FramePath::root(),
                epoch: 2,
            },
            4 => Command::Restate {
                definition: Digest::of(b"d3"),
                interrupt: None,
                calls: vec![gone(action)],
            },
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
            check_stored(&self.thread, &mut self.folded);
            let state = self.thread.state.clone();
            if state.due_at().is_some_and(|at| at <= self.thread.now) {
                assert!(self.tell(driver(), Command::Tick));
                self.commit();
                assert_ne!(self.thread.state, state, "what was due is still due");
            } else if state
                .active()
                .is_some_and(|it| it.paused && it.stop.is_none())
            {
                assert!(self.tell(user("ann"), Command::Continue { run: None }));
            } else if let Some(interrupt) = state.interrupts.values().next() {
                let decisions = interrupt.asks.iter().map(|ask| {
                    let kinds = ask.allowed.as_slice();
                    let last = kinds
                        .iter()
                        .find(|kind| **kind == DecisionKind::Reject)
                        .or(kinds.first());
                    some_decision(*last.unwrap(), &state, ask.action_id, 0)
                });
                let answer = Answer::ByPosition(decisions.collect());
                let command = Command::Answer {
                    answers: vec![Reply {
                        interrupt: interrupt.id,
                        answer,
                        misfits: vec![],
                        lacking: vec![],
                        shown: vec![],
                        bond: Bond::default(),
                    }],
                };
                assert!(
                    self.tell(user("bob"), command),
                    "a question that cannot be answered"
                );
            } else if let Some(work) = next(&state).into_iter().next() {
                self.thread.wait(200);
                self.thread.now = self.thread.now.max(due(&work));
                // Never a wrong proof, always an end: 7 avoids every odd branch.
                let command = self.drive(&state, &work, vec![], 7);
                assert!(
                    self.tell(driver(), command.clone()),
                    "{command:?} was refused"
                );
            } else if let Some(due_at) = state.due_at() {
                self.thread.now = self.thread.now.max(due_at);
            } else {
                assert_eq!(state.actions, BTreeMap::new(), "left open for ever");
                assert!(state.active().is_none());
                return;
            }
        }
        panic!("it never ends: {:#?}", self.thread.state);
    }
}

fn is_stepped(state: &State, action: ActionId) -> bool {
    let action = state.actions.get(&action);
    action.is_some_and(|it| (it.role, it.tool.kind) == (Role::Call, ToolKind::Stepped))
}

/// When a driver would do this work.
fn due(work: &Work) -> Timestamp {
    match work {
        Work::CallModel { not_before, .. } | Work::Start { not_before, .. } => {
            not_before.unwrap_or_default()
        }
        Work::AwaitModel { .. } | Work::Say { .. } => Timestamp::default(),
        Work::Settle { at, .. } => *at,
        Work::LookUp { not_before, .. } => *not_before,
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
    let candidates = state
        .actions
        .values()
        .filter(|action| match (&action.status, interrupt) {
            (ActionStatus::Held { interrupt: by }, Some(interrupt)) => *by == interrupt,
            (ActionStatus::Ready { .. }, None) => true,
            _ => false,
        });
    let chosen = candidates
        .enumerate()
        .filter(|(at, _)| actions & (1 << (at % 8)) != 0);
    let calls = chosen.map(|(_, action)| {
        let (mut newer, same) = (action.tool.clone(), action.tool.clone());
        newer.version = format!("{}+", newer.version);
        match how % 6 {
            0 => gone(action.id),
            1 => restated(action.id, same, Verdict::Deny),
            2 => restated(action.id, newer, ask(&[DecisionKind::Approve])),
            3 => RestatedCall {
                action: action.id,
                tool: ToolNow::There {
                    tool: newer,
                    schema: Digest::of(b"s2"),
                    verdict: gated(),
                    fits: false,
                },
                changes: vec!["schema".to_owned()],
            },
            4 => restated(action.id, same, gated()),
            _ => restated(action.id, newer, Verdict::Allow),
        }
    });
    let calls = calls.collect();
    Some(Command::Restate {
        definition: Digest::of(b"d2"),
        interrupt,
        calls,
    })
}

fn live(moves: &[(Move, bool)]) -> Life {
    let mut life = Life::new();
    life.make(&Move::StartRun(5));
    for (a_move, append) in moves {
        life.make(a_move);
        if *append {
            life.commit();
            check_stored(&life.thread, &mut life.folded);
        }
    }
    life.commit();
    life
}

/// What never happens in a random life says nothing about its promises.
#[test]
fn random_lives_meet_every_kind_of_event_of_an_agents_thread() {
    let mut runner = TestRunner::deterministic();
    let mut met = BTreeSet::new();
    for _ in 0..600 {
        let moves = moves().new_tree(&mut runner).unwrap().current();
        let entries = live(&moves).thread.entries;
        met.extend(entries.iter().map(|entry| entry.event.name()));
    }
    // All but those that only the thread of a grant, or of a fork, has.
    assert_eq!(met.len(), 32, "{met:?}");
}

/// How many lives are tried.
fn lives() -> u32 {
    if std::env::var_os("HOLDPOINT_TORTURE").is_some() {
        20_000
    } else {
        500
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: lives(), ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_every_promise_is_kept(moves in moves(), cancelled in any::<bool>()) {
        let mut life = live(&moves);
        if cancelled {
            life.make(&Move::Cancel);
        }
        life.finish();
        check_stored(&life.thread, &mut State::default());
        check_traces(&life);
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
