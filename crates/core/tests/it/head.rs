//! The head stays small, whatever lies behind it.

use holdpoint_core::{
    Answer, Decision, Effect, FramePath, Grant, GrantTerms, Limits, Matches, Scope, Span, Verdict,
    Work,
};

use crate::thread::{Thread, call, done, held, path, plain, reject, stepped, task, tool};

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

/// How large the head is beside its open actions.
fn beside_actions(thread: &Thread) -> usize {
    let actions = serde_json::to_vec(&thread.state.actions).unwrap();
    thread.head.bytes.len() - actions.len()
}

fn granting() -> Decision {
    let grant = GrantTerms {
        scope: Scope::Thread,
        matches: Matches::Args,
        expires_in: Some(Span::from_secs(1_000_000)),
        uses: Some(1_000),
    };
    Decision::Approve { grant: Some(grant) }
}

#[test]
fn a_head_full_of_grants_frames_and_rejections_is_not_too_large() {
    let mut thread = Thread::new();
    thread.start_run(generous());
    thread.think();
    let pay = |n: usize| held(&format!("c{n}"), &format!(r#"{{"to":{n}}}"#));
    thread.reply("", (0..Grant::MAX).map(pay).collect());
    let interrupt = thread.pending().id;
    thread
        .answer_to(interrupt, Answer::All(granting()))
        .unwrap();
    assert_eq!(thread.state.grants.len(), Grant::MAX);
    thread.wait(1);
    for n in 0..Grant::MAX {
        let action = thread.action(&format!("c{n}")).id;
        thread.run(action, done("paid"));
    }
    let tasks = (0..20).map(|n| task(&format!("t{n}"), "researcher"));
    thread.turn_in(&FramePath::root(), tasks.collect());
    let mut frames = 0;
    while let Some(Work::Start { action, .. }) = thread
        .work()
        .iter()
        .find(|work| matches!(work, Work::Start { .. }))
    {
        thread.start(*action);
        frames += 1;
    }
    for n in 0..64 {
        let frame = path(&format!("researcher#{}", n % frames + 1));
        thread.think_in(&frame);
        let calls = vec![held("s1", &format!(r#"{{"step":{n}}}"#))];
        let mode = holdpoint_core::InterruptMode::Batched;
        thread.reply_in(&frame, mode, "", calls);
        thread.answer(vec![reject("no")]).unwrap();
        let size = beside_actions(&thread);
        assert!(size <= MOST, "{size} bytes");
    }
    let active = thread.state.active().unwrap();
    let remembered = active.frames.values().map(|frame| frame.rejected.len());
    assert_eq!(remembered.sum::<usize>(), 32);
}

#[test]
fn a_stepped_tool_with_many_finished_steps_and_answers_leaves_nothing_of_them_in_the_head() {
    let mut thread = Thread::new();
    thread.start_run(generous());
    thread.think();
    thread.reply("", vec![stepped("c1", plain())]);
    let action = thread.action("c1").id;
    thread.start(action);
    let result = "x".repeat(20_000);
    let mut sizes = Vec::new();
    for step in 0..100 {
        let step = thread.step(action, &format!("step {step}"), Effect::Write);
        thread.end(step, 1, done(&result));
        sizes.push(thread.head.bytes.len());
    }
    assert!(sizes[99] <= sizes[0] + 16, "{sizes:?}");
    assert_eq!(thread.memo(action).steps().len(), 100);
}
