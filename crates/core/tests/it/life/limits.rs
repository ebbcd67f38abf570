//! Where a run must stop.

use holdpoint_core::{Effect, Event, Limits, RunOutcome, Span, Status, Work};

use crate::thread::{Thread, done, free, held, plain, reject};

fn outcome(thread: &Thread) -> Option<(String, String)> {
    thread.entries.iter().rev().find_map(|it| match &it.event {
        Event::RunEnded {
            outcome: RunOutcome::Failed { code, message },
        } => Some((code.clone(), message.clone())),
        _ => None,
    })
}

fn code(thread: &Thread) -> String {
    outcome(thread).unwrap().0
}

#[test]
fn the_third_rejection_of_one_call_fails_the_run() {
    let mut thread = Thread::thinking();
    for rejections in 1..=3 {
        thread.reply("", vec![held("c1", r#"{"to":"a"}"#)]);
        thread.answer(vec![reject("no")]).unwrap();
        assert_eq!(thread.state.active().is_none(), rejections == 3);
        if rejections < 3 {
            thread.think();
        }
    }
    let message =
        "the model asked for the same call of `pay` 3 times and it was rejected each time";
    let expected = ("rejected_repeatedly".to_owned(), message.to_owned());
    assert_eq!(outcome(&thread), Some(expected));
    assert_eq!(thread.state.status(), Some(Status::Failed));
}

#[test]
fn an_approval_in_between_starts_the_count_again_and_other_arguments_are_another_call() {
    let mut thread = Thread::thinking();
    for (arguments, allowed) in [
        ("{}", false),
        ("{}", false),
        ("{}", true),
        ("{}", false),
        (r#"{"a":1}"#, false),
        ("{}", false),
    ] {
        thread.reply("", vec![held("c1", arguments)]);
        if allowed {
            thread
                .answer(vec![holdpoint_core::Decision::APPROVE])
                .unwrap();
            let action = thread.action("c1").id;
            thread.run(action, done("ok"));
        } else {
            thread.answer(vec![reject("no")]).unwrap();
        }
        thread.think();
    }
    assert!(thread.state.active().is_some());
}

#[test]
fn the_same_call_rejected_three_times_in_one_batch_stops_the_run_too() {
    let mut thread = Thread::asked(vec![
        held("c1", "{}"),
        held("c2", "{}"),
        held("c3", "{}"),
        free("c4", Effect::Read, plain()),
    ]);
    thread
        .answer(vec![reject(""), reject(""), reject("")])
        .unwrap();
    assert_eq!(code(&thread), "rejected_repeatedly");
    assert_eq!(thread.told().len(), 4);
}

#[test]
fn the_turn_after_the_last_allowed_one_is_not_taken() {
    let mut thread = Thread::new();
    thread.start_run(Limits {
        turns: 1,
        ..Limits::default()
    });
    thread.think();
    thread.reply("", vec![free("c1", Effect::Read, plain())]);
    let action = thread.action("c1").id;
    thread.run(action, done("ok"));
    thread.think();
    assert_eq!(code(&thread), "limit_turns");
}

#[test]
fn a_retry_of_the_model_is_not_a_turn() {
    let mut thread = Thread::new();
    thread.start_run(Limits {
        turns: 1,
        ..Limits::default()
    });
    thread.think();
    thread.drive(holdpoint_core::Command::ModelLost {
        frame: holdpoint_core::FramePath::root(),
        attempt: 1,
    });
    thread.think();
    thread.reply("bye", vec![]);
    assert_eq!(thread.state.status(), Some(Status::Finished));
}

#[test]
fn a_turn_that_asks_for_too_many_calls_runs_none_of_them_and_asks_nobody() {
    let mut thread = Thread::new();
    thread.start_run(Limits {
        calls: 1,
        ..Limits::default()
    });
    thread.think();
    let events = thread.reply(
        "",
        vec![held("c1", "{}"), free("c2", Effect::Read, plain())],
    );
    let names: Vec<&str> = events.iter().map(Event::name).collect();
    assert_eq!(names, ["model_replied", "stop_requested", "run_ended"]);
    assert_eq!(code(&thread), "limit_calls");
    let stopped = |call: &str, tool: &str| {
        let text = format!(
            "The tool call for `{tool}` with id {call} was not executed: the run was stopped before it started."
        );
        (call.to_owned(), text)
    };
    assert_eq!(thread.told(), [stopped("c1", "pay"), stopped("c2", "work")]);
}

#[test]
fn working_time_counts_and_waiting_for_a_person_or_a_dead_driver_does_not() {
    let mut thread = Thread::new();
    thread.start_run(Limits {
        time: Span::from_secs(10),
        ..Limits::default()
    });
    thread.think();
    thread.wait(4);
    thread.reply("", vec![held("c1", "{}")]);
    thread.wait(1_000);
    thread
        .answer(vec![holdpoint_core::Decision::APPROVE])
        .unwrap();
    let action = thread.action("c1").id;
    thread.start(action);
    thread.wait(5);
    thread.end(action, 1, done("ok"));
    assert_eq!(thread.state.active().unwrap().worked, Span::from_secs(9));
    thread.think();
    thread.wait(500);
    thread.drive(holdpoint_core::Command::ModelLost {
        frame: holdpoint_core::FramePath::root(),
        attempt: 1,
    });
    assert_eq!(thread.state.active().unwrap().worked, Span::from_secs(9));
    thread.think();
    thread.wait(1);
    thread.reply("", vec![free("c2", Effect::Write, plain())]);
    let action = thread.action("c2").id;
    let ready = Work::Start {
        action,
        not_before: None,
    };
    assert_eq!(thread.work(), [ready]);
    thread.start(action);
    assert_eq!(code(&thread), "limit_time");
}
