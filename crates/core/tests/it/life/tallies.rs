//! What is counted of a life, append by append.

use holdpoint_core::{
    Answer, Cause, Command, Decision, Effect, Ending, InterruptKind, InterruptStatus, Limits,
    Lookup, ModelTrouble, OnTimeout, Span, Spared, State, Tally, ThreadId, tally,
};

use crate::thread::{
    TENANT, Thread, call, committed, done, failed, free, gated, gated_for, held, lost, plain,
    prompt, reject, restated, say, tool, user, with_lookup,
};

const ASKED: Tally = Tally::Asked {
    kind: InterruptKind::Approval,
    cause: Cause::HumanApproval,
};

const DOUBTED: Tally = Tally::Asked {
    kind: InterruptKind::Error,
    cause: Cause::WriteUnknown,
};

const RESOLVED: Tally = Tally::Closed(InterruptStatus::Resolved);

fn decided(kind: InterruptKind, seconds: u64) -> Tally {
    Tally::Decided {
        kind,
        after: Span::from_secs(seconds),
    }
}

fn resumed(seconds: u64) -> Tally {
    Tally::Resumed {
        after: Some(Span::from_secs(seconds)),
    }
}

const ENDED_BY_IT: Tally = Tally::Resumed { after: None };

/// A run that waits for a person, of which nothing was counted yet.
fn waiting() -> Thread {
    let mut thread = Thread::asked(vec![held("c1", "{}")]);
    assert_eq!(
        std::mem::take(&mut thread.tallies),
        [Tally::RunStarted, ASKED]
    );
    thread
}

fn approve(thread: &mut Thread) {
    thread.answer(vec![Decision::APPROVE]).unwrap();
}

#[test]
fn an_answer_counts_and_so_does_what_starts_first_after_it_and_nothing_that_starts_later() {
    let mut thread = waiting();
    thread.wait(90);
    approve(&mut thread);
    let taken = [RESOLVED, decided(InterruptKind::Approval, 90)];
    assert_eq!(std::mem::take(&mut thread.tallies), taken);
    thread.wait(2);
    let action = thread.action("c1").id;
    thread.start(action);
    assert_eq!(std::mem::take(&mut thread.tallies), [resumed(2)]);
    thread.end(action, 1, done("ok"));
    thread.wait(1);
    thread.last_word(&holdpoint_core::FramePath::root(), "bye");
    assert_eq!(thread.tallies, [Tally::RunEnded(Ending::Finished)]);
}

#[test]
fn a_clock_that_stands_still_counts_nothing_twice() {
    let mut thread = waiting();
    approve(&mut thread);
    let action = thread.action("c1").id;
    thread.start(action);
    thread.tallies.clear();
    thread.end(action, 1, done("ok"));
    assert_eq!(thread.tallies, []);
}

#[test]
fn an_answer_and_what_it_starts_in_one_append_count_once_by_when_it_was_committed() {
    let mut thread = waiting();
    let before = thread.state.clone();
    let from = thread.entries.len();
    approve(&mut thread);
    let action = thread.action("c1").id;
    thread.start(action);
    let at = thread.now + Span::from_secs(3);
    let mut counted = Vec::new();
    tally(&before, &thread.state, &thread.entries[from..], at, |it| {
        counted.push(it);
    });
    let expected = [RESOLVED, decided(InterruptKind::Approval, 0), resumed(3)];
    assert_eq!(counted, expected);
}

#[test]
fn a_rejection_goes_on_with_the_model() {
    let mut thread = waiting();
    thread.wait(5);
    thread.answer(vec![reject("no")]).unwrap();
    thread.wait(1);
    thread.think();
    let rejected = Tally::Closed(InterruptStatus::Rejected);
    let expected = [rejected, decided(InterruptKind::Approval, 5), resumed(1)];
    assert_eq!(thread.tallies, expected);
}

#[test]
fn the_time_in_which_a_user_paused_it_is_not_ours() {
    let mut thread = waiting();
    let paused = Command::Pause { run: None };
    thread.tell(user("ann"), paused).unwrap();
    thread.wait(1);
    approve(&mut thread);
    thread.tallies.clear();
    let (before, from) = (thread.state.clone(), thread.entries.len());
    thread.wait(3_600);
    let go_on = Command::Continue { run: None };
    thread.tell(user("ann"), go_on).unwrap();
    let action = thread.action("c1").id;
    thread.start(action);
    // As a driver commits it: both at once.
    let mut counted = Vec::new();
    tally(
        &before,
        &thread.state,
        &thread.entries[from..],
        thread.now,
        |it| counted.push(it),
    );
    assert_eq!(counted, [ENDED_BY_IT]);
}

#[test]
fn what_was_allowed_and_has_changed_is_a_resume_that_failed() {
    let mut thread = waiting();
    approve(&mut thread);
    thread.tallies.clear();
    thread.wait(1);
    let action = thread.action("c1").id;
    let now = restated(action, tool("pay", "2", Effect::Write, plain()), gated());
    thread.restate(None, vec![now]).unwrap();
    assert_eq!(thread.tallies[0], Tally::NotResumed);
    assert!(matches!(thread.tallies[1..], [Tally::Asked { .. }]));
}

#[test]
fn a_question_that_is_only_asked_anew_is_no_resume() {
    let mut thread = waiting();
    let (old, action) = (thread.pending().id, thread.action("c1").id);
    let now = restated(action, tool("pay", "2", Effect::Write, plain()), gated());
    thread.restate(Some(old), vec![now]).unwrap();
    let expected = [Tally::Closed(InterruptStatus::Canceled), ASKED];
    assert!(
        expected.iter().all(|it| thread.tallies.contains(it)) && thread.tallies.len() == 2,
        "{:?}",
        thread.tallies
    );
}

#[test]
fn a_write_in_doubt_that_a_person_settles_is_taken_over() {
    let (mut thread, action) = Thread::started(Effect::Write, plain());
    thread.end(action, 1, lost());
    thread.wait(30);
    thread.answer(vec![committed("paid")]).unwrap();
    let expected = [
        Tally::RunStarted,
        DOUBTED,
        RESOLVED,
        decided(InterruptKind::Error, 30),
        Tally::TakenOver,
    ];
    assert_eq!(thread.tallies, expected);
}

#[test]
fn a_person_who_gives_up_on_a_model_ends_the_run_as_meant() {
    let mut thread = Thread::thinking();
    thread.drive(Command::ModelFailed {
        frame: holdpoint_core::FramePath::root(),
        attempt: 1,
        trouble: ModelTrouble::Rejected {
            error: "401".to_owned(),
        },
    });
    thread.answer(vec![reject("")]).unwrap();
    let expected = [
        Tally::RunStarted,
        Tally::Asked {
            kind: InterruptKind::Error,
            cause: Cause::ModelError,
        },
        Tally::Closed(InterruptStatus::Rejected),
        decided(InterruptKind::Error, 0),
        Tally::TakenOver,
        ENDED_BY_IT,
        Tally::RunEnded(Ending::Failed),
    ];
    assert_eq!(thread.tallies, expected);
}

#[test]
fn an_unknown_write_that_its_tool_has_is_spared() {
    for (lookup, expected) in [
        (
            Lookup::Committed {
                receipt: "r".into(),
            },
            vec![Tally::Spared(Spared::Lookup)],
        ),
        (Lookup::NotFound, vec![]),
    ] {
        let (mut thread, action) = Thread::started(Effect::Write, with_lookup());
        thread.end(action, 1, lost());
        thread.tallies.clear();
        thread.look_up(action, lookup);
        assert_eq!(thread.tallies, expected);
    }
}

#[test]
fn late_outcomes_count_by_what_they_mean() {
    // It settles what a person was asked about.
    let (mut thread, action) = Thread::started(Effect::Write, plain());
    thread.end(action, 1, lost());
    thread.tallies.clear();
    thread.end(action, 1, done("paid"));
    let withdrawn = Tally::Closed(InterruptStatus::Canceled);
    let spared = Tally::Spared(Spared::LateOutcome);
    assert_eq!(std::mem::take(&mut thread.tallies), [withdrawn, spared]);
    // The same once more adds nothing.
    thread.end(action, 1, done("paid"));
    assert_eq!(thread.tallies, []);

    // It says that a write is there which a person had declared not to be.
    let (mut thread, action) = Thread::started(Effect::Write, plain());
    thread.end(action, 1, lost());
    thread.answer(vec![Decision::NotCommitted]).unwrap();
    thread.tallies.clear();
    thread.end(action, 1, done("paid"));
    assert_eq!(thread.tallies, [Tally::Duplicate, DOUBTED]);

    // It says so while the next attempt is out.
    let (mut thread, action) = Thread::started(Effect::Write, plain());
    thread.end(action, 1, lost());
    thread.answer(vec![Decision::NotCommitted]).unwrap();
    thread.start(action);
    thread.tallies.clear();
    thread.end(action, 1, done("paid"));
    assert_eq!(thread.tallies, [Tally::Duplicate]);

    // One that failed after a person had said that it was done is no second effect.
    let (mut thread, action) = Thread::started(Effect::Write, plain());
    thread.end(action, 1, lost());
    thread.answer(vec![committed("paid")]).unwrap();
    thread.tallies.clear();
    thread.end(action, 1, failed("no funds"));
    assert_eq!(thread.tallies, [DOUBTED]);
}

#[test]
fn runs_end_in_four_ways() {
    let mut cancelled = waiting();
    cancelled
        .tell(user("ann"), Command::Cancel { run: None })
        .unwrap();
    let withdrawn = Tally::Closed(InterruptStatus::Canceled);
    let ended = Tally::RunEnded(Ending::Cancelled);
    let mut counted = cancelled.tallies;
    counted.sort_by_key(|it| *it == ended);
    assert_eq!(counted, [withdrawn, ended]);

    let pay = tool("pay", "1", Effect::Write, plain());
    let verdict = gated_for(60, OnTimeout::Expire);
    let mut expired = Thread::asked(vec![call("c1", pay, "{}", verdict)]);
    expired.tallies.clear();
    expired.wait(61);
    expired.tick();
    let timeout = Tally::Closed(InterruptStatus::Timeout);
    assert_eq!(
        expired.tallies,
        [timeout, Tally::RunEnded(Ending::TimedOut)]
    );
}

#[test]
fn a_limit_that_stands_in_the_way_of_an_answer_is_a_resume_that_failed() {
    let mut thread = Thread::new();
    thread.start_run(Limits {
        turns: 1,
        ..Limits::default()
    });
    thread.think();
    thread.reply("", vec![held("c1", "{}")]);
    thread.tallies.clear();
    thread.answer(vec![reject("no")]).unwrap();
    // The limit is found when the next turn is to begin, in the same append or in the next one.
    if thread.state.active().is_some() {
        thread.wait(1);
        thread.think();
    }
    let not_resumed = thread.tallies.iter().filter(|it| **it == Tally::NotResumed);
    assert_eq!(not_resumed.count(), 1, "{:?}", thread.tallies);
    let failed = Tally::RunEnded(Ending::Failed);
    assert_eq!(thread.tallies.last(), Some(&failed));
}

#[test]
fn a_question_from_outside_counts_as_a_question_and_as_no_run() {
    let mut thread = Thread::new();
    let ask = Command::Ask {
        thread: ThreadId::of_node(TENANT, "flow", "node"),
        tenant: TENANT.to_owned(),
        workflow: "flow".to_owned(),
        node: "node".to_owned(),
        kind: InterruptKind::Error,
        prompt: Box::new(prompt("Which one?")),
        expiry: None,
    };
    thread.tell(user("ann"), ask).unwrap();
    thread.wait(7);
    thread.answer(vec![say("this one")]).unwrap();
    let asked = Tally::Asked {
        kind: InterruptKind::Error,
        cause: Cause::ToolFailure,
    };
    let expected = [asked, RESOLVED, decided(InterruptKind::Error, 7)];
    assert_eq!(thread.tallies, expected);
}

#[test]
fn a_fork_is_a_run_that_began() {
    let parent = waiting();
    let mut fork = Thread::new();
    fork.now = parent.now;
    fork.transcript = parent.transcript.clone();
    let command = Command::Fork {
        thread: ThreadId::of_session(TENANT, "teller", "s2"),
        session: "s2".to_owned(),
        from: Box::new(parent.state),
    };
    fork.tell(user("eve"), command).unwrap();
    assert_eq!(fork.tallies, [Tally::RunStarted, ASKED]);
}

#[test]
fn of_several_calls_that_one_answer_allows_only_the_first_start_counts() {
    let mut thread = Thread::asked(vec![free("c1", Effect::Read, plain()), held("c2", "{}")]);
    let id = thread.pending().id;
    thread.wait(4);
    thread
        .answer_to(id, Answer::All(Decision::APPROVE))
        .unwrap();
    thread.tallies.clear();
    for call in ["c1", "c2"] {
        let action = thread.action(call).id;
        thread.wait(1);
        thread.start(action);
    }
    assert_eq!(thread.tallies, [resumed(1)]);
    let nothing = State::default();
    let mut counted = 0;
    tally(&nothing, &nothing, &[], thread.now, |_| counted += 1);
    assert_eq!(counted, 0);
}
