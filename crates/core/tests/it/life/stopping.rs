//! Cancelling a run, whatever it is doing; and clocks that jump.

use holdpoint_core::{
    ActionId, Command, Decision, Effect, Event, Lookup, Refusal, Span, Status, Work,
};

use crate::thread::{
    SETTLE, TIMEOUT, Thread, committed, done, driver, free, held, lost, plain, user,
    with_compensation, with_lookup,
};

fn stopped(call: &str, tool: &str) -> (String, String) {
    let text = format!(
        "The tool call for `{tool}` with id {call} was not executed: the run was stopped before it started."
    );
    (call.to_owned(), text)
}

#[test]
fn while_the_model_thinks_the_run_is_over_at_once_and_its_answer_is_refused() {
    let mut thread = Thread::thinking();
    let events = thread.cancel();
    let names: Vec<&str> = events.iter().map(Event::name).collect();
    assert_eq!(names, ["stop_requested", "run_ended"]);
    let late = Command::ModelLost {
        frame: holdpoint_core::FramePath::root(),
        attempt: 1,
    };
    assert_eq!(thread.tell(driver(), late), Err(Refusal::RunOver));
}

#[test]
fn what_is_held_or_ready_is_closed_and_the_question_withdrawn() {
    let mut thread = Thread::asked(vec![held("c1", "{}"), free("c2", Effect::Write, plain())]);
    thread.cancel();
    assert_eq!(thread.state.interrupts.len(), 0);
    assert_eq!(thread.state.status(), Some(Status::Cancelled));
    let told = [stopped("c1", "pay"), stopped("c2", "work")];
    assert_eq!(thread.told(), told);

    let mut thread = Thread::asked(vec![free("c1", Effect::Write, plain())]);
    let action = thread.action("c1").id;
    let proof = thread.proof(action);
    thread.cancel();
    assert_eq!(thread.told(), [stopped("c1", "work")]);
    let start = Command::StartAction {
        action,
        epoch: 1,
        proof,
    };
    let refusal = Refusal::Stale("the action is settled");
    assert_eq!(thread.tell(driver(), start), Err(refusal));
}

#[test]
fn while_the_model_is_given_up_on_the_question_is_withdrawn() {
    let mut thread = Thread::thinking();
    thread.drive(Command::ModelFailed {
        frame: holdpoint_core::FramePath::root(),
        attempt: 1,
        trouble: holdpoint_core::ModelTrouble::Rejected {
            error: "401".to_owned(),
        },
    });
    thread.cancel();
    assert_eq!(thread.state.interrupts.len(), 0);
    assert_eq!(thread.state.status(), Some(Status::Cancelled));
}

#[test]
fn a_read_in_flight_is_dropped_and_other_calls_are_awaited() {
    let mut thread = Thread::asked(vec![
        free("c1", Effect::Read, plain()),
        free("c2", Effect::Idempotent, plain()),
        free("c3", Effect::Write, plain()),
        free("c4", Effect::Write, plain()),
    ]);
    let [read, put, write] = ["c1", "c2", "c3"].map(|call| thread.action(call).id);
    for action in [read, put, write] {
        thread.start(action);
    }
    thread.cancel();
    let open: Vec<ActionId> = thread.state.actions.keys().copied().collect();
    let mut expected = vec![put, write];
    expected.sort();
    assert_eq!(open, expected);
    assert_eq!(thread.state.status(), Some(Status::Running));
    let start = Thread::start_command(holdpoint_core::Limits::default());
    assert_eq!(thread.tell(user("ann"), start), Err(Refusal::RunActive));
    // The read's result comes all the same, and is only recorded.
    thread.end(read, 1, done("late"));
    thread.end(put, 1, done("put"));
    thread.end(
        write,
        1,
        holdpoint_core::Outcome::Failed {
            error: "no".to_owned(),
        },
    );
    assert_eq!(thread.state.status(), Some(Status::Cancelled));
}

#[test]
fn what_is_being_looked_up_is_looked_up_to_the_end() {
    let (mut thread, action) = Thread::started(Effect::Write, with_lookup());
    thread.end(action, 1, lost());
    thread.cancel();
    assert!(matches!(thread.work()[..], [Work::LookUp { .. }]));
    thread.look_up(action, Lookup::NotFound);
    assert_eq!(thread.state.status(), Some(Status::Cancelled));
}

#[test]
fn a_question_about_an_effect_stays_and_the_run_ends_with_its_answer() {
    for decision in [committed("paid"), Decision::NotCommitted] {
        let (mut thread, action) = Thread::started(Effect::Write, plain());
        thread.end(action, 1, lost());
        let asked = thread.pending().clone();
        thread.cancel();
        assert_eq!(*thread.pending(), asked);
        assert!(thread.state.stop().is_some());
        thread.answer(vec![decision]).unwrap();
        assert_eq!(thread.state.status(), Some(Status::Cancelled));
    }
}

#[test]
fn a_compensation_goes_on_while_the_run_is_being_stopped() {
    let (mut thread, action) = Thread::started(Effect::Write, with_compensation());
    thread.end(action, 1, lost());
    thread.answer(vec![Decision::Compensate]).unwrap();
    thread.cancel();
    let undo = thread.compensation().id;
    thread.run(undo, done("reverted"));
    assert_eq!(thread.state.status(), Some(Status::Cancelled));
}

#[test]
fn what_was_tried_before_and_is_not_tried_again_is_not_called_unexecuted() {
    let (mut thread, action) = Thread::started(Effect::Idempotent, plain());
    thread.end(action, 1, lost());
    thread.cancel();
    let (_, text) = &thread.told()[0];
    assert!(!text.contains("before it started"), "{text}");
}

#[test]
fn cancelling_twice_changes_nothing_and_cancelling_what_is_over_is_refused() {
    let (mut thread, action) = Thread::started(Effect::Write, plain());
    thread.cancel();
    assert_eq!(thread.cancel(), []);
    thread.end(action, 1, done("paid"));
    thread.answer(vec![committed("paid")]).unwrap();
    let again = thread.tell(user("ann"), Command::Cancel { run: None });
    assert_eq!(again, Err(Refusal::RunOver));
    let never = Thread::new().tell(user("ann"), Command::Cancel { run: None });
    assert_eq!(never, Err(Refusal::RunOver));
}

#[test]
fn a_clock_that_runs_backwards_does_not_turn_the_journal_back() {
    let mut thread = Thread::asked(vec![free("c1", Effect::Write, plain())]);
    let before = thread.state.now;
    thread.wait(-3_600);
    let action = thread.action("c1").id;
    thread.start(action);
    assert_eq!(thread.state.now, before);
    // The deadline is counted by the clock as it is, so that an hour's jump does not put it out of reach.
    let settle_at = thread.now + Span::from_secs(TIMEOUT + SETTLE);
    let settle = Work::Settle {
        action,
        attempt: 1,
        at: settle_at,
    };
    assert_eq!(thread.work(), [settle]);
    thread.wait((TIMEOUT + SETTLE) as i64);
    thread.orphan(action, 1);
    assert_eq!(thread.state.interrupts.len(), 1);
    assert_eq!(thread.state.now, before);
    let times: Vec<_> = thread.entries.iter().map(|entry| entry.header.at).collect();
    assert!(times.is_sorted());
}
