//! Stepped tools: entering them is repeatable, their steps are the effects, and they may ask and be left in between.

use holdpoint_core::{
    ActionId, ActionStatus, AfterLate, AfterUnknown, Answer, Cause, Command, Decision,
    DecisionKind, Effect, Event, Hooks, InterruptKind, Limits, Lookup, Recalled, Refusal, Status,
    StepEnd, ToolNow, Work,
};
use serde_json::{Value, json};

use crate::thread::{
    SETTLE, TIMEOUT, Thread, committed, done, driver, failed, free, gated, gone, lost, names,
    params, plain, prompt, question, reject, restated, say, stepped, stepped_tool,
    with_compensation, with_lookup,
};

/// A thread in which a stepped tool was entered.
fn entered(hooks: Hooks) -> (Thread, ActionId) {
    let mut thread = Thread::asked(vec![stepped("c1", hooks)]);
    let action = thread.action("c1").id;
    thread.start(action);
    (thread, action)
}

/// A thread in which a stepped tool takes the step `book`.
fn stepping(effect: Effect, hooks: Hooks) -> (Thread, ActionId, ActionId) {
    let (mut thread, action) = entered(hooks);
    let step = thread.step(action, "book", effect);
    (thread, action, step)
}

fn enter_again(thread: &mut Thread, action: ActionId) {
    let at = thread.state.actions[&action].clone();
    if let ActionStatus::Ready {
        not_before: Some(at),
        ..
    } = at.status
    {
        thread.now = thread.now.max(at);
    }
    let again = |work: &Work| matches!(work, Work::Start { action: id, .. } if *id == action);
    assert!(thread.work().iter().any(again), "{:?}", thread.work());
    thread.start(action);
}

fn may_be_entered(thread: &Thread, action: ActionId) -> bool {
    let again = |work: &Work| matches!(work, Work::Start { action: id, .. } if *id == action);
    thread.work().iter().any(again)
}

/// How the step `book` ended, as its tool is told.
fn ended(thread: &Thread, action: ActionId, effect: Effect) -> Option<StepEnd> {
    let memo = thread.memo(action);
    let end = memo.step("book", effect, &params(r#"{"s":1}"#)).unwrap();
    end.cloned()
}

fn as_done(result: impl Into<Value>) -> Option<StepEnd> {
    let result = result.into();
    Some(StepEnd::Done { result })
}

/// Both drivers' calls are given up once nothing can come of them any more.
fn die(thread: &mut Thread, action: ActionId, step: ActionId) {
    let attempt = thread.attempt(action);
    thread.orphan(action, attempt);
    thread.wait((TIMEOUT + SETTLE) as i64);
    let attempt = thread.attempt(step);
    thread.orphan(step, attempt);
}

#[test]
fn a_tool_takes_its_steps_and_ends_with_its_own_result() {
    let (mut thread, action) = entered(plain());
    for name in ["book", "pay"] {
        let step = thread.step(action, name, Effect::Write);
        assert_eq!(
            names(&thread.end(step, 1, done(r#"{"id":7}"#))),
            ["action_finished"]
        );
    }
    assert_eq!(
        ended(&thread, action, Effect::Write),
        as_done(json!({"id": 7}))
    );
    thread.end(action, 1, done("ordered"));
    assert_eq!(thread.told(), [("c1".to_owned(), "ordered".to_owned())]);
    assert_eq!(thread.state.actions.len(), 0);
    assert_eq!(
        thread.memo(action).steps().len(),
        0,
        "a memo is kept no longer than its call"
    );
    assert!(matches!(thread.work()[..], [Work::CallModel { .. }]));
}

#[test]
fn a_step_that_fails_is_told_to_its_tool_and_not_to_the_model() {
    let (mut thread, action, step) = stepping(Effect::Write, plain());
    thread.end(step, 1, failed("no room"));
    let error = "no room".to_owned();
    assert_eq!(
        ended(&thread, action, Effect::Write),
        Some(StepEnd::NotDone { error })
    );
    assert_eq!(thread.told(), []);
    assert!(matches!(thread.work()[..], [Work::Settle { .. }]));
}

#[test]
fn every_attempt_at_a_step_has_the_same_key_and_no_other_call_has_it() {
    let (mut thread, action, step) = stepping(Effect::Idempotent, plain());
    thread.end(step, 1, lost());
    thread.end(action, 1, lost());
    enter_again(&mut thread, action);
    thread.wait(1);
    let other = thread.step(action, "pay", Effect::Idempotent);
    thread.end(other, 1, done("1"));
    thread.step(action, "book", Effect::Idempotent);
    let keys: Vec<(ActionId, u32, String)> = thread
        .entries
        .iter()
        .filter_map(|entry| match &entry.event {
            Event::StepStarted {
                step, attempt, key, ..
            } => Some((*step, *attempt, key.clone())),
            Event::ActionStarted {
                action,
                attempt,
                key,
                ..
            } => Some((*action, *attempt, key.clone())),
            _ => None,
        })
        .collect();
    let of = |id: ActionId| -> Vec<(u32, String)> {
        let of = keys.iter().filter(|(it, ..)| *it == id);
        of.map(|(_, attempt, key)| (*attempt, key.clone()))
            .collect()
    };
    let book = of(step);
    assert_eq!((book.len(), book[0].0, book[1].0), (2, 1, 2));
    assert_eq!(book[0].1, book[1].1);
    assert_ne!(of(other)[0].1, book[0].1);
    assert_ne!(of(action)[0].1, book[0].1);
}

#[test]
fn orphaned_steps_of_each_class_and_when_the_tool_may_be_entered_again() {
    for effect in [Effect::Read, Effect::Idempotent, Effect::Write] {
        let (mut thread, action, step) = stepping(effect, plain());
        thread.orphan(action, 1);
        assert!(!may_be_entered(&thread, action), "its step is in flight");
        let early = Command::ActionOrphaned {
            action: step,
            attempt: 1,
        };
        let refused = thread.tell(driver(), early);
        if effect == Effect::Read {
            refused.unwrap();
        } else {
            let stale = Refusal::Stale("the call may still take effect");
            assert_eq!(refused, Err(stale));
            thread.wait((TIMEOUT + SETTLE) as i64);
            thread.orphan(step, 1);
        }
        assert_eq!(may_be_entered(&thread, action), effect != Effect::Write);
        if effect == Effect::Write {
            assert_eq!(thread.pending().cause, Cause::WriteUnknown);
            thread.answer(vec![committed("booked")]).unwrap();
            assert_eq!(ended(&thread, action, effect), as_done("booked"));
        } else {
            assert_eq!(ended(&thread, action, effect), None);
        }
        enter_again(&mut thread, action);
        if effect != Effect::Write {
            thread.step(action, "book", effect);
            assert_eq!(thread.attempt(step), 2);
            thread.end(step, 2, done("booked"));
        }
        thread.end(action, 2, done("ordered"));
        assert_eq!(thread.told().len(), 1);
    }
}

#[test]
fn a_step_in_doubt_blocks_the_entrance_and_each_decision_leads_on() {
    for decision in [
        committed("booked"),
        Decision::NotCommitted,
        Decision::Compensate,
    ] {
        let (mut thread, action, step) = stepping(Effect::Write, with_compensation());
        die(&mut thread, action, step);
        assert!(!may_be_entered(&thread, action));
        use DecisionKind::{Committed, Compensate, NotCommitted};
        assert_eq!(thread.allowed(), [Committed, NotCommitted, Compensate]);
        thread.answer(vec![decision.clone()]).unwrap();
        match decision {
            Decision::Committed { .. } => {
                assert_eq!(ended(&thread, action, Effect::Write), as_done("booked"));
            }
            Decision::NotCommitted => {
                assert_eq!(ended(&thread, action, Effect::Write), None);
                enter_again(&mut thread, action);
                thread.step(action, "book", Effect::Write);
                thread.end(step, 2, done("booked"));
                assert_eq!(ended(&thread, action, Effect::Write), as_done("booked"));
                thread.end(action, 2, done("ordered"));
                continue;
            }
            _ => {
                assert!(!may_be_entered(&thread, action), "it is being undone");
                let undo = thread.compensation().id;
                thread.run(undo, done("unbooked"));
                let end = ended(&thread, action, Effect::Write).unwrap();
                assert!(matches!(end, StepEnd::NotDone { .. }), "{end:?}");
            }
        }
        enter_again(&mut thread, action);
        thread.end(action, 2, done("ordered"));
        assert_eq!(thread.state.actions.len(), 0);
    }
}

#[test]
fn a_step_that_can_be_looked_up_is_and_its_receipt_is_the_result() {
    let (mut thread, action, step) = stepping(Effect::Write, with_lookup());
    die(&mut thread, action, step);
    assert!(!may_be_entered(&thread, action));
    let receipt = json!({"room": 7});
    thread.look_up(
        step,
        Lookup::Committed {
            receipt: receipt.clone(),
        },
    );
    assert_eq!(ended(&thread, action, Effect::Write), as_done(receipt));
    enter_again(&mut thread, action);
    let (mut thread, action, step) = stepping(Effect::Write, with_lookup());
    die(&mut thread, action, step);
    thread.look_up(step, Lookup::NotFound);
    enter_again(&mut thread, action);
    thread.step(action, "book", Effect::Write);
    assert_eq!(thread.attempt(step), 2);
}

#[test]
fn a_tool_that_ends_in_the_middle_of_a_step_has_not_ended() {
    for outcome in [done("ordered"), failed("no"), lost()] {
        let (mut thread, action, step) = stepping(Effect::Write, plain());
        let events = thread.end(action, 1, outcome);
        assert_eq!(
            names(&events),
            ["action_unknown", "interrupt_raised", "action_unknown"]
        );
        assert_eq!(thread.told(), []);
        assert_eq!(thread.question().action_id, step);
        thread.answer(vec![committed("booked")]).unwrap();
        enter_again(&mut thread, action);
        thread.end(action, 2, done("ordered"));
        assert_eq!(thread.told(), [("c1".to_owned(), "ordered".to_owned())]);
    }
}

#[test]
fn a_tool_that_ends_while_a_step_is_in_doubt_is_entered_again_when_that_is_settled() {
    for hooks in [plain(), with_lookup()] {
        let (mut thread, action, step) = stepping(Effect::Write, hooks);
        thread.end(step, 1, lost());
        thread.end(action, 1, done("ordered, I think"));
        assert_eq!(thread.told(), []);
        assert!(!may_be_entered(&thread, action));
        if hooks.lookup {
            thread.look_up(step, Lookup::NotFound);
        } else {
            assert_eq!(thread.state.interrupts.len(), 1);
            thread.answer(vec![Decision::NotCommitted]).unwrap();
        }
        enter_again(&mut thread, action);
        thread.step(action, "book", Effect::Write);
        thread.end(step, 2, done("booked"));
        thread.end(action, 2, done("ordered"));
        assert_eq!(thread.told(), [("c1".to_owned(), "ordered".to_owned())]);
    }
}

#[test]
fn a_late_outcome_of_a_step_settles_what_a_person_is_asked() {
    let (mut thread, action, step) = stepping(Effect::Write, plain());
    die(&mut thread, action, step);
    let events = thread.end(step, 1, done("booked"));
    assert_eq!(names(&events), ["interrupt_closed", "late_outcome"]);
    assert_eq!(ended(&thread, action, Effect::Write), as_done("booked"));
    enter_again(&mut thread, action);
}

#[test]
fn a_late_outcome_of_a_step_that_contradicts_a_person_is_shown_and_blocks_the_entrance() {
    let (mut thread, action, step) = stepping(Effect::Write, plain());
    die(&mut thread, action, step);
    thread.answer(vec![Decision::NotCommitted]).unwrap();
    thread.end(step, 1, done("booked"));
    assert!(!may_be_entered(&thread, action));
    assert_eq!(thread.allowed(), [DecisionKind::Committed]);
    thread.answer(vec![committed("booked")]).unwrap();
    assert_eq!(ended(&thread, action, Effect::Write), as_done("booked"));
    enter_again(&mut thread, action);
}

#[test]
fn a_late_outcome_of_an_earlier_entry_is_only_recorded() {
    let recorded = |events: &[Event]| {
        matches!(
            events,
            [Event::LateOutcome {
                then: AfterLate::Recorded,
                ..
            }]
        )
    };
    let (mut thread, action) = entered(plain());
    thread.orphan(action, 1);
    assert!(recorded(&thread.end(action, 1, done("old"))));
    enter_again(&mut thread, action);
    assert!(recorded(&thread.end(action, 1, done("old"))));
    thread.end(action, 2, done("new"));
    assert!(recorded(&thread.end(action, 1, failed("old"))));
    assert_eq!(thread.told(), [("c1".to_owned(), "new".to_owned())]);
    // Nor does one that was stopped contradict anything: its effects are its steps.
    let (mut thread, action) = entered(plain());
    thread.cancel();
    assert!(recorded(&thread.end(action, 1, done("ordered"))));
    assert_eq!(thread.state.interrupts.len(), 0);
}

#[test]
fn a_tool_asks_is_left_and_entered_again_with_the_answer() {
    let (mut thread, action) = entered(plain());
    let events = thread.suspend(action, "where", question("Where?")).unwrap();
    assert_eq!(names(&events), ["suspended", "interrupt_raised"]);
    assert_eq!(
        thread.state.status(),
        Some(Status::Waiting(Cause::HumanApproval))
    );
    assert_eq!(thread.work(), []);
    let memo = thread.memo(action);
    assert_eq!(memo.answer("where", &prompt("Where?")), Ok(None));
    thread.answer(vec![say("Berlin")]).unwrap();
    enter_again(&mut thread, action);
    assert_eq!(thread.attempt(action), 2);
    let memo = thread.memo(action);
    let value = "Berlin".into();
    let answer = Recalled::Answer { value };
    assert_eq!(memo.answer("where", &prompt("Where?")), Ok(Some(&answer)));
    assert_eq!(
        Value::from(memo.answers()),
        json!({"where": {"answer": "Berlin"}})
    );
}

#[test]
fn yes_and_no_reach_the_tool_as_such() {
    for (decision, value) in [
        (Decision::APPROVE, json!({"approved": true})),
        (reject(""), json!({"approved": false})),
        (
            reject("too far"),
            json!({"approved": false, "reason": "too far"}),
        ),
    ] {
        let (mut thread, action) = entered(plain());
        thread.suspend(action, "go", question("Go?")).unwrap();
        thread.answer(vec![decision]).unwrap();
        let memo = thread.memo(action);
        let answer = Recalled::Answer { value };
        assert_eq!(memo.answer("go", &prompt("Go?")), Ok(Some(&answer)));
        enter_again(&mut thread, action);
        assert_eq!(thread.told(), [], "the call goes on whatever the answer is");
    }
}

#[test]
fn a_grant_cannot_be_given_with_the_answer_to_a_question() {
    use holdpoint_core::{GrantTerms, Matches, Scope};
    let (mut thread, action) = entered(plain());
    thread.suspend(action, "go", question("Go?")).unwrap();
    let terms = GrantTerms {
        scope: Scope::Thread,
        matches: Matches::Tool,
        expires_in: None,
        uses: None,
    };
    let grant = Some(terms);
    let refusal = thread.answer(vec![Decision::Approve { grant }]);
    assert_eq!(refusal.unwrap_err().code(), "misfit");
}

#[test]
fn another_question_under_an_answered_name_is_an_error_and_never_gets_that_answer() {
    let (mut thread, action) = entered(plain());
    thread.suspend(action, "where", question("Where?")).unwrap();
    thread.answer(vec![say("Berlin")]).unwrap();
    let memo = thread.memo(action);
    assert!(memo.answer("where", &prompt("Which account?")).is_err());
    assert!(memo.sleep("where").is_err());
    assert_eq!(memo.answer("else", &prompt("Where?")), Ok(None));
}

#[test]
fn another_step_under_a_used_name_is_an_error_and_never_gets_that_result() {
    let (mut thread, action, step) = stepping(Effect::Idempotent, plain());
    let other = thread.step_command(action, "book", Effect::Idempotent, r#"{"s":2}"#);
    let open = Refusal::Stale("a step of this name is open");
    assert_eq!(thread.tell(driver(), other), Err(open));
    thread.end(step, 1, lost());
    thread.wait(1);
    let otherwise = Refusal::Stale("a step of this name was begun otherwise");
    for (effect, arguments) in [
        (Effect::Idempotent, r#"{"s":2}"#),
        (Effect::Write, r#"{"s":1}"#),
    ] {
        let other = thread.step_command(action, "book", effect, arguments);
        assert_eq!(thread.tell(driver(), other), Err(otherwise.clone()));
        let memo = thread.memo(action);
        assert!(memo.step("book", effect, &params(arguments)).is_err());
    }
}

#[test]
fn what_only_the_attempt_in_flight_may_do_is_refused_to_all_others() {
    let stale = Refusal::Stale("the tool is not entered by this attempt");
    let all = |action, attempt| {
        let name = || "x".to_owned();
        [
            Command::BeginStep {
                action,
                attempt,
                name: name(),
                effect: Effect::Read,
                params: params("{}"),
                epoch: 1,
            },
            Command::Suspend {
                action,
                attempt,
                name: name(),
                on: question("?"),
            },
            Command::Yield { action, attempt },
        ]
    };
    let check = |thread: &mut Thread, action, attempt, refusal: &Refusal| {
        for command in all(action, attempt) {
            let told = format!("{command:?}");
            assert_eq!(
                thread.tell(driver(), command),
                Err(refusal.clone()),
                "{told}"
            );
        }
    };
    let (mut thread, action) = entered(plain());
    check(&mut thread, action, 2, &stale);
    let (mut suspended, waits) = entered(plain());
    suspended.suspend(waits, "go", question("Go?")).unwrap();
    check(&mut suspended, waits, 1, &stale);
    // A step takes no steps.
    let step = thread.step(action, "book", Effect::Read);
    check(&mut thread, step, 1, &stale);
    thread.end(step, 1, done("1"));
    thread.end(action, 1, done("ordered"));
    let settled = Refusal::Stale("the action is settled");
    check(&mut thread, action, 1, &settled);
    let (mut thread, plain_call) = Thread::started(Effect::Write, plain());
    check(&mut thread, plain_call, 1, &stale);
}

#[test]
fn a_tool_is_not_left_while_a_step_is_in_flight() {
    let (mut thread, action, step) = stepping(Effect::Write, plain());
    let refusal = Refusal::Stale("a step of it is in flight");
    assert_eq!(
        thread.suspend(action, "go", question("Go?")),
        Err(refusal.clone())
    );
    let give_way = || Command::Yield { action, attempt: 1 };
    assert_eq!(thread.tell(driver(), give_way()), Err(refusal));
    thread.end(step, 1, done("1"));
    thread.drive(give_way());
    enter_again(&mut thread, action);
}

#[test]
fn only_entries_that_led_nowhere_count_as_failures() {
    let (mut thread, action) = entered(plain());
    for attempt in 1..=6 {
        let step = thread.step(action, &format!("s{attempt}"), Effect::Write);
        thread.end(step, 1, done("1"));
        thread.end(action, attempt, lost());
        enter_again(&mut thread, action);
    }
    for attempt in 7..9 {
        thread.end(action, attempt, lost());
        assert!(may_be_entered(&thread, action));
        enter_again(&mut thread, action);
    }
    let events = thread.end(action, 9, lost());
    let Event::ActionUnknown { then, .. } = &events[0] else {
        panic!("{events:?}");
    };
    assert_eq!(*then, AfterUnknown::GiveUp);
    assert_eq!(thread.told().len(), 1);
}

#[test]
fn a_tool_whose_step_is_in_doubt_is_not_given_up() {
    let (mut thread, action) = entered(plain());
    for attempt in 1..3 {
        thread.end(action, attempt, lost());
        enter_again(&mut thread, action);
    }
    let step = thread.step(action, "book", Effect::Write);
    thread.end(action, 3, lost());
    assert_eq!(thread.told(), []);
    thread.answer(vec![Decision::NotCommitted]).unwrap();
    enter_again(&mut thread, action);
    thread.step(action, "book", Effect::Write);
    thread.end(step, 2, done("booked"));
    thread.end(action, 4, done("ordered"));
    assert_eq!(thread.told(), [("c1".to_owned(), "ordered".to_owned())]);
}

#[test]
fn a_step_that_may_be_done_and_that_its_tool_does_not_take_again_is_put_before_a_person() {
    // Because the tool ends without it, or is given up.
    for given_up in [false, true] {
        let (mut thread, action, step) = stepping(Effect::Idempotent, plain());
        thread.end(step, 1, lost());
        if given_up {
            thread.end(action, 1, lost());
            for attempt in 2..=3 {
                enter_again(&mut thread, action);
                thread.end(action, attempt, lost());
            }
        } else {
            thread.end(action, 1, done("ordered"));
        }
        assert_eq!(thread.told().len(), 1);
        assert_eq!(thread.question().action_id, step, "given up: {given_up}");
        assert_eq!(thread.work(), []);
        use DecisionKind::{Committed, NotCommitted, Reject};
        assert_eq!(thread.allowed(), [Committed, NotCommitted, Reject]);
        for decision in [committed("x"), Decision::NotCommitted, reject("")] {
            let mut thread = fork(&thread);
            thread.answer(vec![decision.clone()]).unwrap();
            assert_eq!(thread.state.actions.len(), 0, "{decision:?}");
            assert!(matches!(thread.work()[..], [Work::CallModel { .. }]));
        }
    }
}

/// The same thread, to try something else with.
fn fork(thread: &Thread) -> Thread {
    let mut other = Thread::new();
    other.state = thread.state.clone();
    other.entries = thread.entries.clone();
    other.rows = thread.rows.clone();
    (other.transcript, other.memos) = (thread.transcript.clone(), thread.memos.clone());
    other.now = thread.now;
    other
}

#[test]
fn harmless_steps_that_nobody_takes_again_close_with_their_tool() {
    let (mut thread, action, step) = stepping(Effect::Read, plain());
    thread.end(step, 1, lost());
    thread.end(action, 1, done("without it"));
    assert_eq!(thread.state.actions.len(), 0);
    let (mut thread, action, step) = stepping(Effect::Write, plain());
    thread.end(step, 1, lost());
    thread.answer(vec![Decision::NotCommitted]).unwrap();
    thread.end(action, 1, done("without it"));
    assert_eq!(thread.state.actions.len(), 0);
}

#[test]
fn a_step_is_not_taken_again_before_its_time() {
    let (mut thread, action, step) = stepping(Effect::Idempotent, plain());
    thread.end(step, 1, lost());
    let again = thread.step_command(action, "book", Effect::Idempotent, r#"{"s":1}"#);
    let early = Refusal::Stale("the step may not be taken again yet");
    assert_eq!(thread.tell(driver(), again.clone()), Err(early));
    thread.wait(1);
    thread.drive(again);
}

#[test]
fn steps_count_as_calls_and_attempts_at_one_do_not() {
    let mut thread = Thread::new();
    thread.start_run(Limits {
        calls: 2,
        ..Limits::default()
    });
    thread.think();
    thread.reply("", vec![stepped("c1", plain())]);
    let action = thread.action("c1").id;
    thread.start(action);
    let step = thread.step(action, "book", Effect::Idempotent);
    thread.end(step, 1, lost());
    thread.wait(1);
    thread.step(action, "book", Effect::Idempotent);
    thread.end(step, 2, done("1"));
    let one_more = thread.step_command(action, "pay", Effect::Write, "{}");
    let events = thread.drive(one_more);
    assert_eq!(names(&events), ["stop_requested", "run_ended"]);
    assert_eq!(thread.state.status(), Some(Status::Failed));
}

#[test]
fn cancelling_closes_a_tool_at_once_whatever_it_waits_for() {
    let states: [fn(&mut Thread, ActionId); 6] = [
        |_, _| {},
        |thread, action| {
            thread.step(action, "look", Effect::Read);
        },
        |thread, action| {
            thread.suspend(action, "go", question("Go?")).unwrap();
        },
        |thread, action| drop(thread.sleep(action, "nap", 60)),
        |thread, action| drop(thread.drive(Command::Yield { action, attempt: 1 })),
        |thread, action| {
            let step = thread.step(action, "book", Effect::Idempotent);
            thread.end(step, 1, lost());
        },
    ];
    for (number, prepare) in states.into_iter().enumerate() {
        let (mut thread, action) = entered(with_compensation());
        prepare(&mut thread, action);
        thread.cancel();
        let over = Some(Status::Cancelled);
        assert_eq!(thread.state.status(), over, "state {number}");
        assert_eq!(thread.state.actions.len(), 0);
        assert_eq!(thread.state.interrupts.len(), 0);
        let told = "The tool `order` gave no result: the run was stopped before it ended";
        assert_eq!(thread.told(), [("c1".to_owned(), told.to_owned())]);
    }
}

#[test]
fn a_step_in_flight_at_the_cancel_is_awaited_and_undone_and_what_was_done_before_stands() {
    let (mut thread, action, first) = stepping(Effect::Write, with_compensation());
    thread.end(first, 1, done("booked"));
    let second = thread.step(action, "pay", Effect::Write);
    thread.cancel();
    assert_eq!(thread.state.status(), Some(Status::Running));
    let third = thread.step_command(action, "mail", Effect::Write, "{}");
    assert_eq!(thread.tell(driver(), third).unwrap_err().code(), "stale");
    thread.end(second, 1, done("paid"));
    let undo = thread.compensation().clone();
    assert_eq!(undo.parent, Some(second));
    assert_eq!(undo.step.as_deref(), Some("pay"));
    thread.run(undo.id, done("refunded"));
    assert_eq!(thread.state.status(), Some(Status::Cancelled));
}

#[test]
fn a_tool_that_ends_after_the_cancel_is_over_and_has_nothing_to_undo() {
    let (mut thread, action, step) = stepping(Effect::Write, with_compensation());
    thread.cancel();
    thread.end(step, 1, failed("no"));
    thread.end(action, 1, done("ordered"));
    assert_eq!(thread.state.status(), Some(Status::Cancelled));
    assert_eq!(thread.state.actions.len(), 0);
    let (mut thread, action, step) = stepping(Effect::Write, with_compensation());
    thread.cancel();
    thread.end(action, 1, done("ordered"));
    assert_eq!(thread.question().action_id, step);
    thread.answer(vec![committed("booked")]).unwrap();
    assert_eq!(thread.state.status(), Some(Status::Cancelled));
}

#[test]
fn cancelling_while_a_step_is_in_doubt_or_being_undone_ends_with_that() {
    for decision in [
        committed("booked"),
        Decision::NotCommitted,
        Decision::Compensate,
    ] {
        for before in [true, false] {
            let (mut thread, action, step) = stepping(Effect::Write, with_compensation());
            die(&mut thread, action, step);
            if before {
                thread.cancel();
            }
            thread.answer(vec![decision.clone()]).unwrap();
            if !before {
                thread.cancel();
            }
            if decision == Decision::Compensate {
                let undo = thread.compensation().id;
                thread.run(undo, done("unbooked"));
            }
            let over = Some(Status::Cancelled);
            assert_eq!(thread.state.status(), over, "{decision:?} {before}");
            assert_eq!(thread.state.actions.len(), 0);
        }
    }
}

#[test]
fn a_tool_that_was_entered_can_be_asked_about_again_and_its_steps_cannot() {
    let (mut thread, action, step) = stepping(Effect::Idempotent, plain());
    thread.end(step, 1, lost());
    let refused = thread.restate(None, vec![gone(step)]).unwrap_err();
    assert_eq!(refused.code(), "stale");
    thread.end(action, 1, lost());
    let newer = || {
        let mut tool = stepped_tool(plain());
        tool.version = "2".to_owned();
        vec![restated(action, tool, gated())]
    };
    thread.restate(None, newer()).unwrap();
    let mut rejected = fork(&thread);
    thread.answer(vec![Decision::APPROVE]).unwrap();
    enter_again(&mut thread, action);
    thread.step(action, "book", Effect::Idempotent);
    assert_eq!(thread.attempt(step), 2);
    // Whoever does not want it any more is asked what became of its step.
    rejected.answer(vec![reject("no")]).unwrap();
    assert_eq!(rejected.question().action_id, step);
    rejected.answer(vec![Decision::NotCommitted]).unwrap();
    assert_eq!(rejected.state.actions.len(), 0);
    assert!(matches!(rejected.work()[..], [Work::CallModel { .. }]));
}

#[test]
fn a_call_with_steps_behind_it_keeps_its_arguments() {
    use DecisionKind::{Approve, Edit, Reject, Respond};
    let newer = |action: ActionId| {
        let mut tool = stepped_tool(plain());
        tool.version = "2".to_owned();
        restated(action, tool, gated())
    };
    // One that has taken no step is any call.
    let (mut thread, action) = entered(plain());
    thread.end(action, 1, lost());
    thread.restate(None, vec![newer(action)]).unwrap();
    assert_eq!(thread.allowed(), [Approve, Edit, Reject, Respond]);
    // A step that is to be taken again.
    let (mut thread, action, step) = stepping(Effect::Idempotent, plain());
    thread.end(step, 1, lost());
    thread.end(action, 1, lost());
    thread.restate(None, vec![newer(action)]).unwrap();
    assert_eq!(thread.allowed(), [Approve, Reject, Respond]);
    // A step that is done: what it came to is there also where the tool is graver by now, and only for these arguments.
    let (mut thread, action, step) = stepping(Effect::Idempotent, plain());
    thread.end(step, 1, done(r#""booked""#));
    thread.end(action, 1, lost());
    thread.restate(None, vec![newer(action)]).unwrap();
    assert_eq!(thread.allowed(), [Approve, Reject, Respond]);
    let memo = thread.memo(action);
    memo.step("book", Effect::Write, &params(r#"{"s":1}"#))
        .unwrap_err();
    let with = |args: &str| memo.ended_with("book", &params(args)).cloned();
    assert_eq!(with(r#"{"s":1}"#), as_done("booked"));
    assert_eq!(with(r#"{"s":2}"#), None);
    // Where its arguments do not fit any more, nothing is left but not to make it.
    let (mut thread, action, step) = stepping(Effect::Idempotent, plain());
    thread.end(step, 1, done(r#""booked""#));
    thread.end(action, 1, lost());
    let mut misfit = newer(action);
    if let ToolNow::There { fits, .. } = &mut misfit.tool {
        *fits = false;
    }
    thread.restate(None, vec![misfit]).unwrap();
    assert_eq!(thread.allowed(), [Reject, Respond]);
}

#[test]
fn a_tool_whose_step_is_in_doubt_is_not_asked_about_again() {
    let (mut thread, action, step) = stepping(Effect::Write, plain());
    die(&mut thread, action, step);
    let refused = thread.restate(None, vec![gone(action)]).unwrap_err();
    assert_eq!(refused.code(), "stale");
}

#[test]
fn a_tool_that_is_not_what_was_allowed_is_not_entered_again_and_can_be_given_up() {
    let (mut thread, action, step) = stepping(Effect::Idempotent, plain());
    thread.end(step, 1, lost());
    thread.end(action, 1, lost());
    let mut proof = thread.proof(action);
    "2".clone_into(&mut proof.tool_version);
    let events = thread.drive(Command::StartAction {
        action,
        epoch: 1,
        proof,
    });
    assert_eq!(names(&events), ["warrant_voided", "interrupt_raised"]);
    use DecisionKind::{Reject, Respond};
    assert_eq!(thread.allowed(), [Reject, Respond]);
    let message = "ask Carl".to_owned();
    thread.answer(vec![Decision::Respond { message }]).unwrap();
    assert_eq!(thread.question().action_id, step);
    thread.answer(vec![committed("booked")]).unwrap();
    assert!(matches!(thread.work()[..], [Work::CallModel { .. }]));
}

#[test]
fn a_question_is_answered_while_a_sibling_works() {
    let mut thread = Thread::asked(vec![
        stepped("c1", plain()),
        free("c2", Effect::Write, plain()),
    ]);
    let [action, other] = ["c1", "c2"].map(|id| thread.action(id).id);
    thread.start(action);
    thread.start(other);
    thread.suspend(action, "go", question("Go?")).unwrap();
    assert_eq!(thread.state.status(), Some(Status::Running));
    let interrupt = thread.pending().id;
    thread
        .answer_to(interrupt, Answer::All(Decision::APPROVE))
        .unwrap();
    thread.start(action);
    thread.end(action, 2, done("ordered"));
    thread.end(other, 1, done("ok"));
    assert_eq!(thread.told().len(), 2);
}

#[test]
fn a_question_says_whose_it_is() {
    let (mut thread, action) = entered(plain());
    thread.suspend(action, "go", question("Go?")).unwrap();
    assert_eq!(thread.pending().kind, InterruptKind::Approval);
    assert_eq!(thread.state.asked_name(thread.question()), "order");
}

#[test]
fn the_right_of_a_tool_is_the_right_of_its_steps_for_exactly_their_parameters() {
    let mut call = stepped("c1", plain());
    if let Ok(judged) = &mut call.judged {
        judged.verdict = gated();
    }
    let mut thread = Thread::asked(vec![call]);
    thread.answer(vec![Decision::APPROVE]).unwrap();
    let action = thread.action("c1").id;
    thread.start(action);
    let step = thread.step(action, "book", Effect::Write);
    let allowed = thread.state.actions[&action].warrant().unwrap().clone();
    let step = &thread.state.actions[&step];
    let warrant = step.warrant().unwrap();
    assert_eq!(warrant.from, allowed.from);
    assert_eq!(warrant.params_hash, step.params.hash("order", "1"));
    assert_ne!(warrant.params_hash, allowed.params_hash);
}
