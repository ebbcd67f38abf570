//! What is due: sleeps that are over, and questions that nobody answered in time.

use holdpoint_core::{
    Answer, Command, Decision, Effect, Event, FramePath, Index, InterruptKind, InterruptMode,
    InterruptStatus, OnTimeout, Recalled, Refusal, RunOutcome, Span, Status, Suspension, Work,
};

use crate::thread::{
    Thread, call, done, driver, free, gated_for, held, names, path, plain, prompt, reject, say,
    stepped, task, tool,
};

fn pay(id: &str, seconds: u64, on_timeout: OnTimeout) -> holdpoint_core::JudgedCall {
    let write = tool("pay", "1", Effect::Write, plain());
    let arguments = format!(r#"{{"to":"{id}"}}"#);
    call(id, write, &arguments, gated_for(seconds, on_timeout))
}

fn due_rows(thread: &Thread) -> Vec<i64> {
    let due = thread.rows.iter().filter(|row| row.index == Index::Due);
    due.map(|row| row.sort).collect()
}

#[test]
fn a_sleep_is_over_at_its_time_and_once() {
    let mut thread = Thread::asked(vec![stepped("c1", plain())]);
    let action = thread.action("c1").id;
    thread.start(action);
    thread.sleep(action, "nap", 60);
    assert_eq!(thread.state.status(), Some(Status::Sleeping(None)));
    assert_eq!(thread.work(), []);
    let until = thread.now + Span::from_secs(60);
    assert_eq!(thread.state.due_at(), Some(until));
    assert_eq!(due_rows(&thread), [until.as_micros()]);
    thread.wait(59);
    assert_eq!(thread.tick(), []);
    thread.wait(1);
    assert_eq!(thread.tick(), [Event::Woken { action }]);
    assert_eq!(thread.tick(), []);
    assert_eq!(due_rows(&thread).len(), 0);
    assert_eq!(thread.memo(action).sleep("nap"), Ok(Some(&Recalled::Slept)));
    let ready = Work::Start {
        action,
        not_before: None,
    };
    assert_eq!(thread.work(), [ready]);
    thread.start(action);
    thread.sleep(action, "another", 5);
    assert_eq!(thread.memo(action).sleep("another"), Ok(None));
}

#[test]
fn several_sleeps_end_each_at_its_own_time() {
    let mut thread = Thread::asked(vec![stepped("c1", plain()), stepped("c2", plain())]);
    let actions = ["c1", "c2"].map(|id| thread.action(id).id);
    for (action, seconds) in actions.into_iter().zip([60, 30]) {
        thread.start(action);
        thread.sleep(action, "nap", seconds);
    }
    thread.wait(30);
    assert_eq!(thread.tick(), [Event::Woken { action: actions[1] }]);
    assert_eq!(thread.state.status(), Some(Status::Running));
    thread.wait(30);
    assert_eq!(thread.tick(), [Event::Woken { action: actions[0] }]);
}

#[test]
fn a_sleeper_that_is_woken_during_a_pause_is_entered_after_it() {
    let mut thread = Thread::asked(vec![stepped("c1", plain())]);
    let action = thread.action("c1").id;
    thread.start(action);
    thread.sleep(action, "nap", 60);
    thread
        .tell(crate::thread::user("ann"), Command::Pause { run: None })
        .unwrap();
    assert_eq!(thread.state.status(), Some(Status::Paused));
    thread.wait(60);
    thread.tick();
    assert_eq!(thread.work(), []);
    thread
        .tell(crate::thread::user("ann"), Command::Continue { run: None })
        .unwrap();
    assert_eq!(thread.work().len(), 1);
}

#[test]
fn a_question_that_expires_ends_the_run_and_each_call_is_told_so() {
    let mut thread = Thread::asked(vec![
        pay("c1", 60, OnTimeout::Expire),
        free("c2", Effect::Read, plain()),
    ]);
    let interrupt = thread.pending().id;
    thread.wait(59);
    assert_eq!(thread.tick(), []);
    thread.wait(1);
    let events = thread.tick();
    assert_eq!(
        names(&events),
        ["interrupt_closed", "stop_requested", "run_ended"]
    );
    let Event::InterruptClosed { status, .. } = &events[0] else {
        panic!("{events:?}");
    };
    assert_eq!(*status, InterruptStatus::Timeout);
    let outcome = RunOutcome::TimedOut;
    assert_eq!(events[2], Event::RunEnded { outcome });
    assert_eq!(thread.state.status(), Some(Status::Cancelled));
    assert_eq!(thread.told().len(), 2);
    assert!(
        thread.told()[0].1.contains("in time"),
        "{:?}",
        thread.told()
    );
    assert_eq!(thread.tick(), []);
    let late = thread.answer_to(interrupt, Answer::All(Decision::APPROVE));
    assert_eq!(late, Err(Refusal::NotPending { interrupt }));
    thread.start_run(holdpoint_core::Limits::default());
}

#[test]
fn an_answer_after_the_expiry_is_refused_even_if_no_timer_has_run() {
    for on_timeout in [OnTimeout::Expire, OnTimeout::Reject] {
        let mut thread = Thread::asked(vec![pay("c1", 60, on_timeout)]);
        let interrupt = thread.pending().id;
        thread.wait(60);
        let late = thread.answer(vec![Decision::APPROVE]);
        assert_eq!(late, Err(Refusal::Expired { interrupt }));
        let late = thread.answer(vec![reject("")]);
        assert_eq!(late, Err(Refusal::Expired { interrupt }));
    }
}

#[test]
fn a_question_that_is_kept_can_be_answered_after_its_time() {
    for on_timeout in [OnTimeout::Keep, OnTimeout::Escalate] {
        let mut thread = Thread::asked(vec![pay("c1", 60, on_timeout)]);
        assert_eq!(due_rows(&thread).len(), 0);
        thread.wait(600);
        assert_eq!(thread.tick(), []);
        thread.answer(vec![Decision::APPROVE]).unwrap();
        assert!(thread.is_ready("c1"));
    }
}

#[test]
fn a_question_that_is_rejected_by_time_lets_the_model_go_on_and_its_siblings_run() {
    let mut thread = Thread::asked(vec![
        pay("c1", 60, OnTimeout::Reject),
        held("c2", "{}"),
        free("c3", Effect::Read, plain()),
    ]);
    thread.wait(60);
    let events = thread.tick();
    assert_eq!(names(&events), ["interrupt_closed"]);
    assert!(thread.is_ready("c3"));
    assert_eq!(thread.state.actions.len(), 1);
    let free = thread.action("c3").id;
    thread.run(free, done("ok"));
    assert_eq!(thread.told().len(), 3);
    assert!(matches!(thread.work()[..], [Work::CallModel { .. }]));
}

#[test]
fn a_question_expires_with_the_most_impatient_of_its_calls() {
    let thread = Thread::asked(vec![
        pay("c1", 60, OnTimeout::Expire),
        pay("c2", 30, OnTimeout::Reject),
        held("c3", "{}"),
    ]);
    let asked = thread.pending();
    assert_eq!(asked.expires_at, Some(asked.asked_at + Span::from_secs(30)));
    assert_eq!(asked.on_timeout, OnTimeout::Reject);
}

#[test]
fn one_question_of_several_is_rejected_by_time_and_the_others_stay() {
    let mut thread = Thread::thinking();
    let calls = vec![
        pay("c1", 60, OnTimeout::Reject),
        pay("c2", 90, OnTimeout::Reject),
    ];
    thread.reply_in(&FramePath::root(), InterruptMode::PerCall, "", calls);
    thread.wait(60);
    thread.tick();
    assert_eq!(thread.pending().asks[0].action_id, thread.action("c2").id);
    thread.answer(vec![Decision::APPROVE]).unwrap();
}

#[test]
fn a_question_that_expires_in_a_subagent_ends_the_whole_run_with_all_other_questions() {
    let mut thread = Thread::asked(vec![task("t1", "a"), task("t2", "b")]);
    for id in ["t1", "t2"] {
        let action = thread.action(id).id;
        thread.start(action);
    }
    thread.turn_in(&path("a#1"), vec![pay("s1", 60, OnTimeout::Expire)]);
    thread.turn_in(&path("b#2"), vec![held("s2", "{}")]);
    thread.wait(60);
    thread.tick();
    assert_eq!(thread.state.status(), Some(Status::Cancelled));
    assert_eq!(thread.state.interrupts.len(), 0);
    assert_eq!(thread.told().len(), 2);
}

#[test]
fn everything_that_is_due_is_done_at_once_and_what_ends_the_run_first() {
    let mut thread = Thread::thinking();
    let calls = vec![
        pay("c1", 60, OnTimeout::Reject),
        pay("c2", 60, OnTimeout::Expire),
        stepped("c3", plain()),
    ];
    thread.reply_in(&FramePath::root(), InterruptMode::PerCall, "", calls);
    let action = thread.action("c3").id;
    thread.start(action);
    thread.sleep(action, "nap", 60);
    thread.wait(60);
    let events = thread.tick();
    let expected = [
        "interrupt_closed",
        "interrupt_closed",
        "stop_requested",
        "run_ended",
    ];
    assert_eq!(names(&events), expected);
    assert_eq!(thread.state.status(), Some(Status::Cancelled));
}

#[test]
fn what_is_rejected_by_time_counts_for_the_loop_guard() {
    let mut thread = Thread::thinking();
    for _ in 0..3 {
        thread.reply("", vec![pay("c1", 60, OnTimeout::Reject)]);
        thread.wait(60);
        thread.tick();
        if thread.state.active().is_some() {
            thread.think();
        }
    }
    assert_eq!(thread.state.status(), Some(Status::Failed));
}

fn asking(on_timeout: OnTimeout) -> Suspension {
    Suspension::Question {
        kind: InterruptKind::Input,
        prompt: Box::new(prompt("Where?")),
        expiry: Some((Span::from_secs(60), on_timeout)),
    }
}

#[test]
fn a_tools_question_that_nobody_answers_in_time() {
    for on_timeout in [OnTimeout::Reject, OnTimeout::Expire, OnTimeout::Keep] {
        let mut thread = Thread::asked(vec![stepped("c1", plain())]);
        let action = thread.action("c1").id;
        thread.start(action);
        thread.suspend(action, "where", asking(on_timeout)).unwrap();
        let interrupt = thread.pending().id;
        thread.wait(60);
        if on_timeout != OnTimeout::Keep {
            let late = thread.answer(vec![say("Berlin")]);
            assert_eq!(late, Err(Refusal::Expired { interrupt }));
        }
        thread.tick();
        match on_timeout {
            OnTimeout::Reject => {
                let memo = thread.memo(action);
                let answer = memo.answer("where", &prompt("Where?"));
                assert_eq!(answer, Ok(Some(&Recalled::TimedOut)));
                thread.start(action);
                thread.end(action, 2, done("without it"));
                assert_eq!(thread.told().len(), 1);
            }
            OnTimeout::Expire => assert_eq!(thread.state.status(), Some(Status::Cancelled)),
            OnTimeout::Escalate | OnTimeout::Keep => {
                thread.answer(vec![say("Berlin")]).unwrap();
                thread.start(action);
            }
        }
    }
}

#[test]
fn where_nothing_is_due_a_tick_changes_nothing() {
    assert_eq!(Thread::new().tell(driver(), Command::Tick), Ok(vec![]));
    assert_eq!(Thread::thinking().tick(), []);
    assert_eq!(Thread::asked(vec![held("c1", "{}")]).tick(), []);
}

#[test]
fn a_write_in_flight_when_a_question_expires_is_awaited() {
    let mut thread = Thread::thinking();
    let calls = vec![
        pay("c1", 60, OnTimeout::Expire),
        free("c2", Effect::Write, plain()),
    ];
    thread.reply_in(&FramePath::root(), InterruptMode::PerCall, "", calls);
    let write = thread.action("c2").id;
    thread.start(write);
    thread.wait(60);
    thread.tick();
    assert_eq!(thread.state.status(), Some(Status::Running));
    thread.end(write, 1, crate::thread::failed("no"));
    assert_eq!(thread.state.status(), Some(Status::Cancelled));
}
