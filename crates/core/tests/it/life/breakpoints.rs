//! Stopping before and after nodes, to look.

use holdpoint_core::{
    ActionId, Cause, Command, Decision, DecisionKind, Effect, FramePath, InterruptKind, Side,
    Status, Subject, Work,
};

use crate::thread::{
    Thread, done, failed, free, held, lost, names, path, plain, question, reject, say, stepped,
    task,
};

fn root() -> FramePath {
    FramePath::root()
}

/// Where the run stands.
fn stands(thread: &Thread) -> (String, Side, Option<ActionId>) {
    assert_eq!(thread.pending().kind, InterruptKind::Breakpoint);
    use DecisionKind::{Approve, Reject};
    assert_eq!(thread.allowed(), [Approve, Reject]);
    match &thread.question().subject {
        Subject::Node { node, side, action } => (node.clone(), *side, *action),
        other => panic!("{other:?}"),
    }
}

fn go_on(thread: &mut Thread) {
    thread.answer(vec![Decision::APPROVE]).unwrap();
}

fn is(node: &str, side: Side, action: Option<ActionId>) -> (String, Side, Option<ActionId>) {
    (node.to_owned(), side, action)
}

#[test]
fn before_the_model_the_run_stops_once_a_turn_and_not_at_retries() {
    let mut thread = Thread::with_breakpoints(&["model"], &[]);
    assert_eq!(names(&thread.think()), ["interrupt_raised"]);
    assert_eq!(stands(&thread), is("model", Side::Before, None));
    assert_eq!(
        thread.state.status(),
        Some(Status::Waiting(Cause::Breakpoint))
    );
    assert_eq!(thread.work(), []);
    go_on(&mut thread);
    assert_eq!(names(&thread.think()), ["model_started"]);
    for attempt in 1..=2 {
        let frame = root();
        thread.drive(Command::ModelLost { frame, attempt });
        assert_eq!(names(&thread.think()), ["model_started"]);
    }
    // Nor when a person lets a model try again that gave no answer.
    let frame = root();
    thread.drive(Command::ModelLost { frame, attempt: 3 });
    thread.answer(vec![Decision::APPROVE]).unwrap();
    assert_eq!(names(&thread.think()), ["model_started"]);
    thread.reply("", vec![free("c1", Effect::Read, plain())]);
    let action = thread.action("c1").id;
    thread.run(action, done("ok"));
    assert_eq!(names(&thread.think()), ["interrupt_raised"]);
}

#[test]
fn after_the_model_nothing_of_its_turn_starts_until_someone_has_looked() {
    let mut thread = Thread::with_breakpoints(&[], &["model"]);
    thread.think();
    let events = thread.reply("", vec![free("c1", Effect::Write, plain())]);
    assert_eq!(names(&events), ["model_replied", "interrupt_raised"]);
    assert_eq!(stands(&thread), is("model", Side::After, None));
    assert_eq!(thread.work(), []);
    let action = thread.action("c1").id;
    let start = Command::StartAction {
        action,
        epoch: 1,
        proof: thread.proof(action),
    };
    let refused = thread.tell(crate::thread::driver(), start).unwrap_err();
    assert_eq!(refused.code(), "stale");
    go_on(&mut thread);
    thread.run(action, done("ok"));
}

#[test]
fn after_the_models_last_word_the_run_is_not_over_before_someone_has_looked() {
    let mut thread = Thread::with_breakpoints(&[], &["model"]);
    thread.think();
    thread.reply("bye", vec![]);
    assert_eq!(
        thread.state.status(),
        Some(Status::Waiting(Cause::Breakpoint))
    );
    let events = thread.answer(vec![Decision::APPROVE]).unwrap();
    assert_eq!(names(&events), ["answered", "run_ended"]);
    assert_eq!(thread.state.status(), Some(Status::Finished));
}

#[test]
fn whoever_rejects_at_a_breakpoint_cancels_the_run() {
    let mut thread = Thread::with_breakpoints(&[], &["model"]);
    thread.think();
    thread.reply("bye", vec![]);
    let events = thread.answer(vec![reject("stop")]).unwrap();
    assert_eq!(names(&events), ["answered", "stop_requested", "run_ended"]);
    assert_eq!(thread.state.status(), Some(Status::Cancelled));
}

#[test]
fn two_breakpoints_rejected_at_once_stop_the_run_once() {
    let mut thread = Thread::with_breakpoints(&["model"], &[]);
    thread.think();
    go_on(&mut thread);
    thread.think();
    thread.reply("", vec![task("t1", "a"), task("t2", "b")]);
    for (id, frame) in [("t1", "a#1"), ("t2", "b#2")] {
        let action = thread.action(id).id;
        thread.start(action);
        thread.think_in(&path(frame));
    }
    let pending: Vec<_> = thread.state.interrupts.keys().copied().collect();
    assert_eq!(pending.len(), 2);
    let answers = pending.into_iter().map(|id| (id, reject("")));
    let events = thread.answer_all(answers.collect()).unwrap();
    let expected = ["answered", "answered", "stop_requested", "run_ended"];
    assert_eq!(names(&events), expected);
}

#[test]
fn before_a_tool_the_run_stops_once_a_call_and_not_at_retries() {
    let mut thread = Thread::with_breakpoints(&["work"], &[]);
    thread.think();
    thread.reply("", vec![free("c1", Effect::Idempotent, plain())]);
    let action = thread.action("c1").id;
    assert_eq!(names(&thread.start(action)), ["interrupt_raised"]);
    assert_eq!(stands(&thread), is("work", Side::Before, Some(action)));
    assert_eq!(thread.work(), []);
    go_on(&mut thread);
    assert_eq!(names(&thread.start(action)), ["action_started"]);
    thread.end(action, 1, lost());
    assert_eq!(names(&thread.start(action)), ["action_started"]);
}

#[test]
fn at_a_breakpoint_before_one_call_its_siblings_do_not_start_and_what_is_in_flight_goes_on() {
    let mut thread = Thread::with_breakpoints(&["pay"], &[]);
    thread.think();
    let mut pay = held("c2", "{}");
    if let Ok(judged) = &mut pay.judged {
        judged.verdict = holdpoint_core::Verdict::Allow;
    }
    let others = ["c1", "c3"].map(|id| free(id, Effect::Write, plain()));
    let [first, third] = others;
    thread.reply("", vec![first, pay, third]);
    let [first, pay] = ["c1", "c2"].map(|id| thread.action(id).id);
    thread.start(first);
    thread.start(pay);
    assert!(matches!(thread.work()[..], [Work::Settle { action, .. }] if action == first));
    thread.end(first, 1, done("ok"));
    assert_eq!(thread.work(), []);
    go_on(&mut thread);
    assert_eq!(thread.work().len(), 2);
}

#[test]
fn what_must_be_approved_is_approved_first_and_looked_at_then() {
    let mut thread = Thread::with_breakpoints(&["pay"], &[]);
    thread.think();
    thread.reply("", vec![held("c1", "{}")]);
    assert_eq!(thread.pending().kind, InterruptKind::Approval);
    thread.answer(vec![Decision::APPROVE]).unwrap();
    let action = thread.action("c1").id;
    thread.start(action);
    assert_eq!(stands(&thread), is("pay", Side::Before, Some(action)));
    go_on(&mut thread);
    assert_eq!(names(&thread.start(action)), ["action_started"]);
}

#[test]
fn after_a_tool_the_run_stops_when_the_call_is_settled_and_not_before() {
    for outcome in [done("ok"), failed("no")] {
        let mut thread = Thread::with_breakpoints(&[], &["work"]);
        thread.think();
        thread.reply("", vec![free("c1", Effect::Read, plain())]);
        let action = thread.action("c1").id;
        thread.run(action, lost());
        assert_eq!(thread.state.interrupts.len(), 0);
        thread.run(action, outcome);
        assert_eq!(stands(&thread), is("work", Side::After, Some(action)));
        assert_eq!(thread.work(), []);
        go_on(&mut thread);
        assert!(matches!(thread.work()[..], [Work::CallModel { .. }]));
    }
}

#[test]
fn after_a_call_that_was_never_made_nobody_has_to_look() {
    let mut thread = Thread::with_breakpoints(&[], &["pay"]);
    thread.think();
    thread.reply("", vec![held("c1", "{}")]);
    thread.answer(vec![reject("no")]).unwrap();
    assert_eq!(thread.state.interrupts.len(), 0);
}

#[test]
fn before_and_after_a_task_the_frame_above_stops() {
    let mut thread = Thread::with_breakpoints(&["task"], &["task"]);
    thread.think();
    thread.reply("", vec![task("c1", "a")]);
    let action = thread.action("c1").id;
    thread.start(action);
    assert_eq!(stands(&thread), is("task", Side::Before, Some(action)));
    go_on(&mut thread);
    assert_eq!(names(&thread.start(action)), ["frame_opened"]);
    thread.last_word(&path("a#1"), "found");
    assert_eq!(stands(&thread), is("task", Side::After, Some(action)));
    assert_eq!(thread.pending().frame, root());
    assert_eq!(thread.work(), []);
    go_on(&mut thread);
    thread.think();
    thread.reply("bye", vec![]);
    assert_eq!(thread.state.status(), Some(Status::Finished));
}

#[test]
fn a_breakpoint_holds_the_frame_that_stands_at_it_and_no_other() {
    let mut thread = Thread::with_breakpoints(&["work"], &[]);
    thread.think();
    thread.reply("", vec![task("t1", "a"), task("t2", "b")]);
    let frames = [path("a#1"), path("b#2")];
    for id in ["t1", "t2"] {
        let action = thread.action(id).id;
        thread.start(action);
    }
    thread.turn_in(&frames[0], vec![free("s1", Effect::Read, plain())]);
    let action = thread.action("s1").id;
    thread.start(action);
    assert_eq!(thread.pending().frame, frames[0]);
    thread.last_word(&frames[1], "b is done");
    assert_eq!(thread.told().len(), 1);
}

#[test]
fn a_subagents_last_word_is_looked_at_before_its_frame_is_closed() {
    let mut thread = Thread::with_breakpoints(&[], &["model"]);
    thread.think();
    thread.reply("", vec![task("t1", "a")]);
    go_on(&mut thread);
    let action = thread.action("t1").id;
    thread.start(action);
    thread.last_word(&path("a#1"), "found");
    assert_eq!(thread.pending().frame, path("a#1"));
    let events = thread.answer(vec![Decision::APPROVE]).unwrap();
    assert_eq!(names(&events), ["answered", "frame_closed"]);
}

#[test]
fn a_stepped_tool_is_looked_at_before_it_is_first_entered_and_after_it_has_ended() {
    let mut thread = Thread::with_breakpoints(&["order"], &["order"]);
    thread.think();
    thread.reply("", vec![stepped("c1", plain())]);
    let action = thread.action("c1").id;
    thread.start(action);
    go_on(&mut thread);
    thread.start(action);
    let step = thread.step(action, "book", Effect::Write);
    thread.end(step, 1, done("1"));
    assert_eq!(thread.state.interrupts.len(), 0);
    thread.suspend(action, "where", question("Where?")).unwrap();
    thread.answer(vec![say("Berlin")]).unwrap();
    assert_eq!(names(&thread.start(action)), ["action_started"]);
    thread.end(action, 2, done("ordered"));
    assert_eq!(stands(&thread), is("order", Side::After, Some(action)));
}

#[test]
fn a_question_of_a_tool_is_no_breakpoint_whatever_it_calls_itself() {
    let mut thread = Thread::asked(vec![
        stepped("c1", plain()),
        free("c2", Effect::Read, plain()),
    ]);
    let action = thread.action("c1").id;
    thread.start(action);
    let on = holdpoint_core::Suspension::Question {
        kind: InterruptKind::Breakpoint,
        prompt: Box::new(crate::thread::prompt("Look?")),
        expiry: None,
    };
    thread.suspend(action, "look", on).unwrap();
    let other = thread.action("c2").id;
    assert_eq!(names(&thread.start(other)), ["action_started"]);
}

#[test]
fn cancelling_at_a_breakpoint_ends_the_run() {
    let mut thread = Thread::with_breakpoints(&["model"], &[]);
    thread.think();
    thread.cancel();
    assert_eq!(thread.state.interrupts.len(), 0);
    assert_eq!(thread.state.status(), Some(Status::Cancelled));
}
