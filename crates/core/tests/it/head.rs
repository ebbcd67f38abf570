//! The head stays small, whatever lies behind it.

use holdpoint_core::{Effect, Limits, Span, Verdict};

use crate::thread::{Thread, call, done, held, plain, reject, tool};

/// What DESIGN section 3 allows a head without open actions.
const MOST: usize = 16 * 1024;

fn generous() -> Limits {
    Limits {
        turns: 100_000,
        calls: 100_000,
        time: Span::from_secs(1_000_000),
    }
}

/// How many bytes the last append wrote.
fn written(thread: &Thread, from: usize) -> usize {
    let records = thread.records[from..].iter();
    let bytes = records.map(|record| record.header.len() + record.payload.bytes.len());
    bytes.sum::<usize>() + thread.head.bytes.len()
}

#[test]
fn after_two_thousand_steps_with_big_results_the_head_is_as_small_as_after_the_first() {
    let result = "x".repeat(20_000);
    let mut thread = Thread::new();
    thread.start_run(generous());
    let mut writes = Vec::new();
    for step in 0..2_000 {
        let from = thread.records.len();
        thread.think();
        let arguments = format!(r#"{{"step":{step}}}"#);
        let write = tool("work", "1", Effect::Write, plain());
        thread.reply(
            "and now",
            vec![call("c1", write, &arguments, Verdict::Allow)],
        );
        let action = thread.action("c1").id;
        thread.run(action, done(&result));
        thread.wait(1);
        assert!(thread.head.bytes.len() <= MOST);
        writes.push(written(&thread, from));
    }
    // Only counters have grown.
    let (first, last) = (writes[0], writes[1_999]);
    assert!(last <= first + 64, "{first} bytes, then {last}");
    assert!(thread.head.bytes.len() <= 1_024);
}

#[test]
fn forty_distinct_rejected_calls_do_not_fill_the_head() {
    let mut thread = Thread::new();
    thread.start_run(generous());
    for step in 0..40 {
        thread.think();
        thread.reply("", vec![held("c1", &format!(r#"{{"step":{step}}}"#))]);
        thread.answer(vec![reject("no")]).unwrap();
        assert!(thread.head.bytes.len() <= MOST);
    }
    let root = holdpoint_core::FramePath::root();
    let remembered = &thread.state.active().unwrap().frames[&root].rejected;
    assert_eq!(remembered.len(), 32);
}

#[test]
fn a_call_that_is_rejected_again_and_again_is_not_forgotten_for_many_that_are_rejected_once() {
    let mut thread = Thread::new();
    thread.start_run(generous());
    let mut calls = vec!["{}".to_owned(), "{}".to_owned()];
    calls.extend((0..40).map(|step| format!(r#"{{"step":{step}}}"#)));
    calls.push("{}".to_owned());
    for arguments in calls {
        thread.think();
        thread.reply("", vec![held("c1", &arguments)]);
        thread.answer(vec![reject("no")]).unwrap();
    }
    assert!(thread.state.active().is_none());
}

#[test]
fn a_long_error_from_outside_is_clipped_before_it_reaches_the_head() {
    let error = "ü".repeat(1_000_000);
    let mut thread = Thread::thinking();
    thread.drive(holdpoint_core::Command::ModelFailed {
        frame: holdpoint_core::FramePath::root(),
        attempt: 1,
        trouble: holdpoint_core::ModelTrouble::Rejected {
            error: error.clone(),
        },
    });
    assert!(thread.head.bytes.len() <= MOST);
    let (mut thread, action) = Thread::started(Effect::Write, plain());
    thread.end(
        action,
        1,
        holdpoint_core::Outcome::Unknown { reason: error },
    );
    assert!(thread.head.bytes.len() <= MOST);
}
