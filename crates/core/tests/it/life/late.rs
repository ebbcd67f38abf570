//! Outcomes that come late: never dropped, and never overwriting.

use holdpoint_core::{
    Action, ActionId, ActionStatus, AfterLate, Command, Decision, DecisionKind, Digest, Doubt,
    Effect, Event, InterruptStatus, Lookup, Shown, Status,
};

use crate::thread::{
    Thread, committed, done, failed, free, held, lost, plain, with_both, with_compensation,
    with_lookup,
};

use DecisionKind::{Committed, Compensate};

fn recorded(events: &[Event]) -> bool {
    matches!(
        events,
        [Event::LateOutcome {
            then: AfterLate::Recorded,
            ..
        }]
    )
}

#[test]
fn a_late_outcome_settles_what_a_person_is_asked_and_the_question_is_withdrawn() {
    for (outcome, told) in [(done("paid"), "paid"), (failed("no funds"), "no funds")] {
        let (mut thread, action) = Thread::started(Effect::Write, plain());
        thread.end(action, 1, lost());
        let interrupt = thread.pending().id;
        let events = thread.end(action, 1, outcome.clone());
        let expected = [
            Event::InterruptClosed {
                interrupt,
                status: InterruptStatus::Canceled,
                reason: "the call reported its outcome after all".to_owned(),
                rejected: vec![],
                says: None,
            },
            Event::LateOutcome {
                action,
                attempt: 1,
                outcome,
                artifact: None,
                then: AfterLate::Settled,
            },
        ];
        assert_eq!(events, expected);
        assert_eq!(thread.told(), [("c1".to_owned(), told.to_owned())]);
    }
}

#[test]
fn a_late_outcome_settles_what_is_being_looked_up() {
    let (mut thread, action) = Thread::started(Effect::Write, with_lookup());
    thread.end(action, 1, lost());
    thread.end(action, 1, done("paid"));
    assert_eq!(thread.told(), [("c1".to_owned(), "paid".to_owned())]);
}

#[test]
fn a_late_unknown_is_only_recorded() {
    let (mut thread, action) = Thread::started(Effect::Write, plain());
    thread.end(action, 1, lost());
    let before = thread.state.interrupts.clone();
    assert!(recorded(&thread.end(action, 1, lost())));
    assert_eq!(thread.state.interrupts, before);
}

/// A write whose first attempt was declared as not done by a person.
fn not_committed(hooks: holdpoint_core::Hooks) -> (Thread, ActionId) {
    let (mut thread, action) = Thread::started(Effect::Write, hooks);
    thread.end(action, 1, lost());
    thread.answer(vec![Decision::NotCommitted]).unwrap();
    (thread, action)
}

#[test]
fn a_write_that_finishes_after_not_committed_is_not_started_again_and_a_person_sees_both() {
    let (mut thread, action) = not_committed(with_compensation());
    thread.end(action, 1, done("paid"));
    assert_eq!(thread.work(), []);
    assert_eq!(thread.allowed(), [Committed, Compensate]);
    let shown = thread.question().description.clone().unwrap();
    let expected =
        "Attempt 1 reported, after the action had been settled otherwise, that it was done: paid";
    assert!(shown.starts_with(expected), "{shown}");
    thread.answer(vec![committed("paid")]).unwrap();
    assert_eq!(thread.told(), [("c1".to_owned(), "paid".to_owned())]);
}

#[test]
fn a_contradiction_is_not_taken_back_by_the_same_report_coming_twice() {
    let (mut thread, action) = not_committed(with_compensation());
    thread.end(action, 1, done("paid"));
    let before = thread.state.interrupts.clone();
    assert!(recorded(&thread.end(action, 1, done("paid"))));
    assert_eq!(thread.state.interrupts, before);
}

#[test]
fn an_earlier_attempt_that_was_done_is_seen_by_a_person_however_the_later_one_ends() {
    for hooks in [plain(), with_lookup(), with_both()] {
        for outcome in [done("paid twice"), failed("no funds"), lost()] {
            let (mut thread, action) = Thread::started(Effect::Write, hooks);
            thread.end(action, 1, lost());
            if hooks.lookup {
                thread.look_up(action, Lookup::NotFound);
            } else {
                thread.answer(vec![Decision::NotCommitted]).unwrap();
            }
            thread.start(action);
            let events = thread.end(action, 1, done("paid"));
            let noted = Event::LateOutcome {
                action,
                attempt: 1,
                outcome: done("paid"),
                artifact: None,
                then: AfterLate::Noted,
            };
            assert_eq!(events, [noted]);
            assert_eq!(
                thread.state.actions[&action].doubt,
                Doubt::EarlierAttemptDone
            );
            thread.end(action, 2, outcome.clone());
            let shown = thread.question().description.clone().unwrap();
            let expected = "An earlier attempt, recorded as not done, was done after all";
            assert!(shown.starts_with(expected), "{outcome:?}: {shown}");
            let kinds = if hooks.compensate {
                vec![Committed, Compensate]
            } else {
                vec![Committed]
            };
            assert_eq!(thread.allowed(), kinds, "{outcome:?}");
        }
    }
}

#[test]
fn the_model_is_not_told_that_a_call_failed_which_a_person_says_was_done() {
    let (mut thread, action) = not_committed(plain());
    thread.start(action);
    thread.end(action, 1, done("paid"));
    thread.end(action, 2, failed("no funds"));
    thread.answer(vec![committed("paid once")]).unwrap();
    assert_eq!(thread.told(), [("c1".to_owned(), "paid once".to_owned())]);
}

#[test]
fn an_earlier_attempt_that_was_done_changes_the_question_about_the_later_one() {
    let (mut thread, action) = not_committed(plain());
    thread.start(action);
    thread.end(action, 2, lost());
    let first = thread.pending().id;
    let events = thread.end(action, 1, done("paid"));
    let withdrawn =
        matches!(&events[0], Event::InterruptClosed { interrupt, .. } if *interrupt == first);
    assert!(withdrawn, "{events:?}");
    // Trying a third time is no longer offered.
    assert_eq!(thread.allowed(), [Committed]);
}

#[test]
fn a_repeatable_call_is_settled_by_whichever_attempt_is_done_first() {
    for effect in [Effect::Read, Effect::Idempotent] {
        let (mut thread, action) = Thread::started(effect, plain());
        thread.end(action, 1, lost());
        thread.start(action);
        thread.end(action, 1, done("first"));
        assert_eq!(thread.told(), [("c1".to_owned(), "first".to_owned())]);
        assert!(recorded(&thread.end(action, 2, done("second"))));
        assert_eq!(thread.told(), [("c1".to_owned(), "first".to_owned())]);
    }
}

#[test]
fn a_write_that_finishes_after_its_run_was_over_reopens_it_for_a_person_and_blocks_new_input() {
    let (mut thread, action) = Thread::started(Effect::Write, plain());
    thread.cancel();
    thread.end(action, 1, lost());
    thread.answer(vec![Decision::NotCommitted]).unwrap();
    assert_eq!(thread.state.status(), Some(Status::Cancelled));
    thread.end(action, 1, done("paid"));
    assert_eq!(thread.state.status(), Some(Status::Cancelled));
    let open: &Action = &thread.state.actions[&action];
    assert_eq!(open.doubt, Doubt::Reopened);
    assert!(matches!(open.status, ActionStatus::InDoubt { .. }));
    let start = Thread::start_command(holdpoint_core::Limits::default());
    let refusal = thread.tell(crate::thread::user("ann"), start.clone());
    assert_eq!(refusal.unwrap_err().code(), "interrupt_pending");
    thread.answer(vec![committed("paid")]).unwrap();
    thread.tell(crate::thread::user("ann"), start).unwrap();
}

#[test]
fn what_is_reopened_after_the_end_can_still_be_undone() {
    let (mut thread, action) = Thread::started(Effect::Write, with_compensation());
    thread.cancel();
    thread.end(action, 1, lost());
    thread.answer(vec![Decision::NotCommitted]).unwrap();
    thread.end(action, 1, done("paid"));
    thread.answer(vec![Decision::Compensate]).unwrap();
    let undo = thread.compensation().id;
    thread.run(undo, done("reverted"));
    assert_eq!(thread.state.actions.len(), 0);
    assert_eq!(thread.work(), []);
}

#[test]
fn a_reopened_action_of_an_older_run_neither_holds_up_nor_ends_with_the_current_one() {
    let (mut thread, action) = Thread::started(Effect::Write, plain());
    thread.cancel();
    thread.end(action, 1, lost());
    thread.answer(vec![Decision::NotCommitted]).unwrap();
    thread.start_run(holdpoint_core::Limits::default());
    thread.think();
    thread.reply("", vec![free("c2", Effect::Read, plain())]);
    thread.end(action, 1, done("paid"));
    let other = thread.action("c2").id;
    thread.run(other, done("ok"));
    thread.think();
    thread.reply("bye", vec![]);
    assert_eq!(thread.state.status(), Some(Status::Finished));
    assert_eq!(thread.pending().asks[0].action_id, action);
}

#[test]
fn a_report_that_agrees_with_the_journal_is_only_recorded() {
    let (mut thread, action) = Thread::started(Effect::Write, plain());
    thread.end(action, 1, done("paid"));
    assert!(recorded(&thread.end(action, 1, done("paid"))));
    assert!(recorded(&thread.end(action, 1, lost())));
}

#[test]
fn a_failure_that_is_reported_after_a_person_said_committed_is_shown() {
    let (mut thread, action) = Thread::started(Effect::Write, plain());
    thread.end(action, 1, lost());
    thread.answer(vec![committed("paid")]).unwrap();
    thread.end(action, 1, failed("no funds"));
    assert_eq!(thread.allowed(), [Committed]);
    let before = thread.state.interrupts.clone();
    assert!(recorded(&thread.end(action, 1, failed("no funds"))));
    assert_eq!(thread.state.interrupts, before);
}

#[test]
fn a_write_that_was_voided_between_attempts_and_turns_out_done_is_shown() {
    let (mut thread, action) = Thread::started(Effect::Write, with_lookup());
    thread.end(action, 1, lost());
    thread.look_up(action, Lookup::NotFound);
    let mut proof = thread.proof(action);
    "2".clone_into(&mut proof.tool_version);
    thread.drive(holdpoint_core::Command::StartAction {
        action,
        epoch: 1,
        proof,
    });
    thread.end(action, 1, done("paid"));
    assert_eq!(thread.state.interrupts.len(), 0);
    assert_eq!(thread.told(), [("c1".to_owned(), "paid".to_owned())]);
}

#[test]
fn an_outcome_of_an_action_that_never_was_is_refused() {
    let mut thread = Thread::thinking();
    let action: ActionId = "act_00000000000000000000000000000001".parse().unwrap();
    let command = thread.ended(action, 1, done("x"));
    let refusal = thread.tell(crate::thread::driver(), command).unwrap_err();
    assert_eq!(refusal.code(), "stale");
}

#[test]
fn a_call_is_not_made_again_for_being_withheld_when_an_earlier_attempt_turns_out_to_be_done() {
    let (mut thread, action) = Thread::started(Effect::Write, plain());
    thread.withhold(action, 1, "too late");
    thread.wait(1);
    thread.start(action);
    thread.end(action, 1, done("paid"));
    thread.withhold(action, 2, "too late");
    assert!(thread.work().is_empty(), "{:?}", thread.work());
    assert_eq!(thread.allowed(), [Committed]);
}

#[test]
fn a_call_that_is_to_be_allowed_once_more_is_not_made_again_when_it_turns_out_to_be_done() {
    let mut thread = Thread::asked(vec![held("c1", "{}")]);
    thread.answer(vec![Decision::APPROVE]).unwrap();
    let action = thread.action("c1").id;
    thread.start(action);
    let first = thread.state.interrupts.clone();
    thread.drive(Command::ActionOutdated {
        action,
        attempt: 1,
        reason: "the page has changed".to_owned(),
        shown: Box::new(Shown {
            title: "Write the page".to_owned(),
            kept: Digest::of(b"preview"),
            basis: None,
        }),
    });
    assert!(first.is_empty());
    assert_eq!(thread.pending().changes, ["the page has changed"]);
    assert_eq!(
        thread.state.actions[&action].shown.as_ref().unwrap().title,
        "Write the page"
    );
    thread.end(action, 1, done("written"));
    assert!(thread.state.interrupts.is_empty());
    assert_eq!(thread.told(), [("c1".to_owned(), "written".to_owned())]);
}
