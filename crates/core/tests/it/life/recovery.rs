//! The recovery table of DESIGN section 6, row by row, each while the run goes on and while it is being stopped.

use holdpoint_core::{
    ActionStatus, Cause, Command, Decision, DecisionKind, Effect, Hooks, Lookup, Refusal, Span,
    Status, Work,
};

use crate::thread::{
    SETTLE, TIMEOUT, Thread, committed, done, driver, failed, free, lost, plain, reject, unsure,
    with_both, with_compensation, with_lookup,
};

use DecisionKind::{Committed, Compensate, NotCommitted, Reject};

/// What a run looks like after something happened: what may go on, what is asked and which answers are offered.
#[derive(Debug, PartialEq, Eq)]
enum Then {
    /// The model goes on and was told this.
    Told(&'static str),
    /// The run is over and the model was told this.
    Over(&'static str),
    /// It is started again after this many milliseconds.
    Again(u64),
    /// The tool is asked after this many milliseconds.
    LookUp(u64),
    /// The tool's compensation is ready.
    Undo,
    /// A person is asked.
    Asked(Cause, Vec<DecisionKind>),
}

/// Finds out how things stand; `told` is the text of the last tool message.
fn see(thread: &Thread, matches_told: &str) -> Then {
    let after = |at: holdpoint_core::Timestamp| at.since(thread.now).as_micros() / 1_000;
    let told = || {
        let told = thread.told();
        let text = told.last().map(|(_, text)| text.clone());
        assert_eq!(text.as_deref(), Some(matches_told));
    };
    if !thread.state.interrupts.is_empty() {
        assert_eq!(thread.work(), []);
        let cause = thread.pending().cause;
        return Then::Asked(cause, thread.allowed());
    }
    match (&thread.work()[..], thread.state.active()) {
        ([Work::CallModel { .. }], _) => {
            told();
            Then::Told("")
        }
        ([], None) => {
            told();
            Then::Over("")
        }
        ([Work::Start { action, not_before }], _) => {
            if thread.state.actions[action].parent.is_some() {
                return Then::Undo;
            }
            Then::Again(not_before.map_or(0, after))
        }
        ([Work::LookUp { not_before, .. }], _) => Then::LookUp(after(*not_before)),
        (work, _) => panic!("{work:?}"),
    }
}

fn check(thread: &Thread, expected: Then, row: &str) {
    let (text, expected) = match expected {
        Then::Told(text) => (text, Then::Told("")),
        Then::Over(text) => (text, Then::Over("")),
        other => ("", other),
    };
    assert_eq!(see(thread, text), expected, "{row}");
}

#[test]
fn a_call_that_ended_unknown_to_its_driver() {
    let gave_up = "The tool `work` gave no result: timed out";
    let rows = [
        (Effect::Read, plain(), Then::Again(100), None),
        (
            Effect::Idempotent,
            plain(),
            Then::Again(100),
            Some(Then::Over(gave_up)),
        ),
        (
            Effect::Write,
            plain(),
            Then::Asked(Cause::WriteUnknown, vec![Committed, NotCommitted]),
            Some(Then::Asked(
                Cause::WriteUnknown,
                vec![Committed, NotCommitted],
            )),
        ),
        (
            Effect::Write,
            with_compensation(),
            Then::Asked(
                Cause::WriteUnknown,
                vec![Committed, NotCommitted, Compensate],
            ),
            Some(Then::Asked(
                Cause::WriteUnknown,
                vec![Committed, NotCommitted, Compensate],
            )),
        ),
        (
            Effect::Write,
            with_lookup(),
            Then::LookUp(SETTLE * 1_000),
            Some(Then::LookUp(SETTLE * 1_000)),
        ),
    ];
    for (effect, hooks, going_on, stopping) in rows {
        let row = format!("{effect:?} {hooks:?}");
        let (mut thread, action) = Thread::started(effect, hooks);
        thread.end(action, 1, lost());
        check(&thread, going_on, &row);
        let (mut thread, action) = Thread::started(effect, hooks);
        thread.cancel();
        // A read in flight is dropped at the cancel itself.
        if let Some(stopping) = stopping {
            thread.end(action, 1, lost());
            check(&thread, stopping, &format!("{row} while stopping"));
        }
    }
}

#[test]
fn a_call_whose_driver_died() {
    let gave_up = "The tool `work` gave no result: the call was cut off before it ended";
    let asked = |more: &[DecisionKind]| {
        let kinds = [&[Committed, NotCommitted], more].concat();
        Then::Asked(Cause::WriteUnknown, kinds)
    };
    let rows: [(Effect, Hooks, Then, Then); 4] = [
        (
            Effect::Idempotent,
            plain(),
            Then::Again(0),
            Then::Over(gave_up),
        ),
        (Effect::Write, plain(), asked(&[]), asked(&[])),
        (
            Effect::Write,
            with_compensation(),
            asked(&[Compensate]),
            asked(&[Compensate]),
        ),
        (Effect::Write, with_both(), Then::LookUp(0), Then::LookUp(0)),
    ];
    for (effect, hooks, going_on, stopping) in rows {
        for (stop, expected) in [(false, going_on), (true, stopping)] {
            let row = format!("{effect:?} {hooks:?} stop: {stop}");
            let (mut thread, action) = Thread::started(effect, hooks);
            if stop {
                thread.cancel();
            }
            thread.wait((TIMEOUT + SETTLE) as i64 - 1);
            let early = holdpoint_core::Command::ActionOrphaned { action, attempt: 1 };
            assert_eq!(
                thread.tell(driver(), early),
                Err(Refusal::Stale("the call may still take effect"))
            );
            thread.wait(1);
            thread.orphan(action, 1);
            check(&thread, expected, &row);
        }
    }
}

#[test]
fn a_call_that_was_certainly_not_made_is_tried_again_and_nobody_is_asked_again() {
    let (reason, failed) = ("too late", "the call was not made: too late");
    for (effect, hooks) in [
        (Effect::Read, plain()),
        (Effect::Idempotent, plain()),
        (Effect::Write, plain()),
        (Effect::Write, with_both()),
    ] {
        let row = format!("{effect:?} {hooks:?}");
        let (mut thread, action) = Thread::started(effect, hooks);
        let key = thread.state.actions[&action].idempotency_key(thread.state.thread);
        for (attempt, wait) in [(1, 100), (2, 200)] {
            thread.withhold(action, attempt, reason);
            check(&thread, Then::Again(wait), &row);
            thread.wait(1);
            thread.start(action);
            let action = &thread.state.actions[&action];
            assert_eq!(action.idempotency_key(thread.state.thread), key);
        }
        // The bound holds for this too: then the model is told.
        thread.withhold(action, 3, reason);
        check(&thread, Then::Told(failed), &row);
    }
}

#[test]
fn a_call_that_was_not_made_is_not_tried_again_once_the_run_is_stopped() {
    let (reason, failed) = ("too late", "the call was not made: too late");
    let (mut thread, action) = Thread::started(Effect::Write, plain());
    thread.cancel();
    thread.withhold(action, 1, reason);
    check(&thread, Then::Over(failed), "stopped");
}

#[test]
fn a_read_whose_driver_died_is_repeated_at_once() {
    let (mut thread, action) = Thread::started(Effect::Read, plain());
    thread.orphan(action, 1);
    check(&thread, Then::Again(0), "read");
}

#[test]
fn a_lookup_settles_the_write_or_says_what_next() {
    let receipt = || serde_json::Value::from("receipt 9");
    let stopped = "The tool call for `work` with id c1 was not executed: the run was stopped before it started.";
    let asked = || Then::Asked(Cause::WriteUnknown, vec![Committed, NotCommitted]);
    let rows = [
        (
            Lookup::Committed { receipt: receipt() },
            Then::Told("receipt 9"),
            Then::Asked(Cause::WriteUnknown, vec![Committed]),
        ),
        (Lookup::NotFound, Then::Again(0), Then::Over(stopped)),
        (Lookup::Partial { receipt: receipt() }, asked(), asked()),
        (unsure(), Then::LookUp(100), Then::LookUp(100)),
    ];
    for (lookup, going_on, stopping) in rows {
        for (stop, expected) in [(false, going_on), (true, stopping)] {
            let (mut thread, action) = Thread::started(Effect::Write, with_lookup());
            if stop {
                thread.cancel();
            }
            thread.end(action, 1, lost());
            thread.wait(SETTLE as i64);
            thread.look_up(action, lookup.clone());
            check(&thread, expected, &format!("{lookup:?} stop: {stop}"));
        }
    }
}

#[test]
fn a_lookup_that_never_knows_is_asked_three_times_and_then_a_person_is() {
    let (mut thread, action) = Thread::started(Effect::Write, with_both());
    thread.end(action, 1, lost());
    thread.look_up(action, unsure());
    check(&thread, Then::LookUp(100), "once");
    thread.look_up(action, unsure());
    check(&thread, Then::LookUp(200), "twice");
    thread.look_up(action, unsure());
    let kinds = vec![Committed, NotCommitted, Compensate];
    check(&thread, Then::Asked(Cause::WriteUnknown, kinds), "thrice");
}

#[test]
fn a_write_that_is_never_found_is_tried_three_times_with_one_key_and_then_a_person_is_asked() {
    let (mut thread, action) = Thread::started(Effect::Write, with_lookup());
    let key = thread.state.actions[&action].idempotency_key(thread.state.thread);
    for attempt in 1..=3 {
        if attempt > 1 {
            thread.start(action);
        }
        let open = &thread.state.actions[&action];
        assert_eq!(open.attempts, attempt);
        assert_eq!(open.idempotency_key(thread.state.thread), key);
        thread.end(action, attempt, lost());
        thread.look_up(action, Lookup::NotFound);
    }
    let kinds = vec![Committed, NotCommitted];
    check(&thread, Then::Asked(Cause::WriteUnknown, kinds), "asked");
}

#[test]
fn a_read_that_never_answers_is_given_up_after_three_attempts() {
    let (mut thread, action) = Thread::started(Effect::Read, plain());
    thread.end(action, 1, lost());
    thread.run(action, lost());
    thread.run(action, lost());
    let gave_up = "The tool `work` gave no result: timed out";
    check(&thread, Then::Told(gave_up), "read");
}

#[test]
fn an_idempotent_call_that_never_answers_is_asked_about_after_three_attempts() {
    let (mut thread, action) = Thread::started(Effect::Idempotent, plain());
    thread.end(action, 1, lost());
    thread.run(action, lost());
    thread.run(action, lost());
    let kinds = vec![Committed, NotCommitted, Reject];
    check(&thread, Then::Asked(Cause::ToolFailure, kinds), "asked");
    thread.answer(vec![reject("the bank is closed")]).unwrap();
    let given_up = "The tool `work` gave no result, and a person gave it up. It may or may not have been done. \
                    Reason: the bank is closed";
    check(&thread, Then::Told(given_up), "given up");
}

#[test]
fn a_failure_without_effect_is_what_the_model_is_told() {
    for effect in [Effect::Read, Effect::Idempotent, Effect::Write] {
        let (mut thread, action) = Thread::started(effect, plain());
        thread.end(action, 1, failed("no funds"));
        check(&thread, Then::Told("no funds"), "failed");
    }
}

#[test]
fn a_person_says_that_it_happened() {
    let (mut thread, action) = Thread::started(Effect::Write, plain());
    thread.end(action, 1, lost());
    thread.answer(vec![committed("receipt 3")]).unwrap();
    check(&thread, Then::Told("receipt 3"), "committed");
}

#[test]
fn a_retry_after_not_committed_has_the_same_key_and_waits_until_the_effect_could_have_appeared() {
    let (mut thread, action) = Thread::started(Effect::Write, plain());
    let key = thread.state.actions[&action].idempotency_key(thread.state.thread);
    thread.wait(10);
    thread.end(action, 1, lost());
    thread.wait(2);
    thread.answer(vec![Decision::NotCommitted]).unwrap();
    check(&thread, Then::Again((SETTLE - 2) * 1_000), "settle");
    thread.wait(3);
    let events = thread.start(action);
    let expected = holdpoint_core::Event::ActionStarted {
        action,
        attempt: 2,
        key,
        epoch: 1,
        deadline: thread.now + Span::from_secs(TIMEOUT),
    };
    assert_eq!(events, [expected]);
}

#[test]
fn not_committed_while_stopping_closes_it() {
    let (mut thread, action) = Thread::started(Effect::Write, plain());
    thread.cancel();
    thread.end(action, 1, lost());
    thread.answer(vec![Decision::NotCommitted]).unwrap();
    assert_eq!(thread.state.status(), Some(Status::Cancelled));
}

#[test]
fn a_person_lets_it_be_undone_and_the_model_reads_so() {
    let (mut thread, action) = Thread::started(Effect::Write, with_compensation());
    thread.end(action, 1, lost());
    thread.answer(vec![Decision::Compensate]).unwrap();
    let undo = thread.compensation().clone();
    assert_eq!(
        thread.state.actions[&action].status,
        ActionStatus::Undoing { by: undo.id }
    );
    let original = thread.state.actions[&action].clone();
    assert_eq!(
        undo.idempotency_key(thread.state.thread),
        original.idempotency_key(thread.state.thread)
    );
    // Not before the effect itself could have appeared.
    let start = Work::Start {
        action: undo.id,
        not_before: original.settle_at,
    };
    assert_eq!(thread.work(), [start]);
    thread.run(undo.id, done("reverted"));
    assert_eq!(thread.state.actions.len(), 0);
    let text = format!(
        "The effect of `work` ({}) was undone by its compensation.",
        undo.id
    );
    assert_eq!(thread.told(), [("c1".to_owned(), text)]);
}

/// A thread whose compensation was started once.
fn undoing() -> (Thread, holdpoint_core::ActionId) {
    let (mut thread, action) = Thread::started(Effect::Write, with_compensation());
    thread.end(action, 1, lost());
    thread.answer(vec![Decision::Compensate]).unwrap();
    let undo = thread.compensation().id;
    thread.start(undo);
    (thread, undo)
}

#[test]
fn a_compensation_that_fails_or_is_unknown_is_put_before_a_person_who_may_give_it_up() {
    for (outcome, cause) in [
        (failed("closed"), Cause::ToolFailure),
        (lost(), Cause::WriteUnknown),
    ] {
        let kinds = || vec![Committed, NotCommitted, Reject];
        let (mut thread, undo) = undoing();
        thread.end(undo, 1, outcome.clone());
        check(&thread, Then::Asked(cause, kinds()), "asked");
        thread.answer(vec![committed("by hand")]).unwrap();
        let text = format!("The effect of `work` ({undo}) was undone by its compensation.");
        assert_eq!(thread.told(), [("c1".to_owned(), text)]);

        let (mut thread, undo) = undoing();
        thread.end(undo, 1, outcome.clone());
        thread.answer(vec![Decision::NotCommitted]).unwrap();
        assert_eq!(thread.work().len(), 1);
        thread.run(undo, done("ok"));
        assert_eq!(thread.state.actions.len(), 0);

        let (mut thread, undo) = undoing();
        thread.end(undo, 1, outcome);
        thread.answer(vec![reject("leave it")]).unwrap();
        let text = format!("The effect of `work` stands: its compensation ({undo}) was given up.");
        assert_eq!(thread.told(), [("c1".to_owned(), text)]);
        assert_eq!(thread.state.actions.len(), 0);
    }
}

#[test]
fn a_compensation_whose_proof_is_wrong_is_asked_about_and_what_it_undoes_is_not_forgotten() {
    for (decision, told) in [
        (committed("by hand"), "was undone by its compensation."),
        (reject(""), "was given up."),
    ] {
        let (mut thread, action) = Thread::started(Effect::Write, with_compensation());
        thread.end(action, 1, lost());
        thread.answer(vec![Decision::Compensate]).unwrap();
        let undo = thread.compensation().id;
        let mut proof = thread.proof(undo);
        "2".clone_into(&mut proof.tool_version);
        thread.drive(holdpoint_core::Command::StartAction {
            action: undo,
            epoch: 1,
            proof,
        });
        assert_eq!(thread.allowed(), [Committed, NotCommitted, Reject]);
        thread.cancel();
        thread.answer(vec![decision]).unwrap();
        assert_eq!(thread.state.status(), Some(Status::Cancelled));
        assert!(thread.told()[0].1.ends_with(told), "{:?}", thread.told());
    }
}

#[test]
fn an_effect_that_appears_after_the_cancel_is_undone_and_the_model_is_not_told_that_it_stands() {
    let ways: [fn(&mut Thread, holdpoint_core::ActionId); 3] = [
        |thread, action| {
            thread.end(action, 1, done("paid"));
        },
        |thread, action| {
            thread.end(action, 1, lost());
            let receipt = "paid".into();
            thread.look_up(action, Lookup::Committed { receipt });
        },
        |thread, action| {
            thread.end(action, 1, lost());
            thread.end(action, 1, done("paid"));
        },
    ];
    for way in ways {
        let (mut thread, action) = Thread::started(Effect::Write, with_both());
        thread.cancel();
        assert_eq!(thread.state.status(), Some(Status::Running));
        way(&mut thread, action);
        check(&thread, Then::Undo, "undo");
        let undo = thread.compensation().id;
        thread.run(undo, done("reverted"));
        assert_eq!(thread.state.status(), Some(Status::Cancelled));
        let text = format!("The effect of `work` ({undo}) was undone by its compensation.");
        assert_eq!(thread.told(), [("c1".to_owned(), text)]);
    }
}

#[test]
fn an_effect_that_appears_after_the_cancel_and_cannot_be_undone_is_put_before_a_person() {
    let (mut thread, action) = Thread::started(Effect::Write, plain());
    thread.cancel();
    thread.end(action, 1, done("paid"));
    check(
        &thread,
        Then::Asked(Cause::WriteUnknown, vec![Committed]),
        "asked",
    );
    thread.answer(vec![committed("seen")]).unwrap();
    assert_eq!(thread.state.status(), Some(Status::Cancelled));
}

#[test]
fn an_effect_that_may_be_repeated_just_ends_after_the_cancel() {
    for outcome in [done("put"), failed("no"), lost()] {
        let (mut thread, action) = Thread::started(Effect::Idempotent, with_compensation());
        thread.cancel();
        thread.end(action, 1, outcome);
        assert_eq!(thread.state.status(), Some(Status::Cancelled));
    }
}

#[test]
fn parallel_calls_of_each_class_recover_each_in_its_way() {
    let mut thread = Thread::asked(vec![
        free("c1", Effect::Read, plain()),
        free("c2", Effect::Idempotent, plain()),
        free("c3", Effect::Write, with_lookup()),
        free("c4", Effect::Write, plain()),
    ]);
    let ids = ["c1", "c2", "c3", "c4"].map(|call| thread.action(call).id);
    for id in ids {
        thread.start(id);
    }
    thread.wait((TIMEOUT + SETTLE) as i64);
    for id in ids {
        thread.orphan(id, 1);
    }
    let now = thread.now;
    let start = |action| Work::Start {
        action,
        not_before: Some(now),
    };
    let look_up = Work::LookUp {
        action: ids[2],
        not_before: now,
    };
    let mut work = thread.work();
    work.sort();
    let mut expected = [start(ids[0]), start(ids[1]), look_up];
    expected.sort();
    assert_eq!(work, expected);
    assert_eq!(thread.question().action_id, ids[3]);
}

#[test]
fn a_lookup_that_finds_nothing_before_the_effect_could_have_appeared_is_not_believed() {
    let (mut thread, action) = Thread::started(Effect::Write, with_lookup());
    thread.end(action, 1, lost());
    let early = Command::LookedUp {
        action,
        lookup: Lookup::NotFound,
        artifact: None,
    };
    let refusal = thread.tell(driver(), early).unwrap_err();
    assert_eq!(refusal, Refusal::Stale("the call may still take effect"));
}
