//! Subagents: frames that are opened by tasks, work by themselves and leave their last word.

use holdpoint_core::{
    ActionId, ActionStatus, Answer, Cause, Command, Decision, Effect, FramePath, InterruptMode,
    Limits, ModelTrouble, Refusal, RunOutcome, Span, Status, ToolKind, Wait, Work,
};

use crate::thread::{
    Thread, ask, call, committed, done, driver, free, held, lost, names, path, plain, reject, task,
    tool, with_compensation,
};

fn root() -> FramePath {
    FramePath::root()
}

/// A thread whose agent gave a task to a subagent, which has not begun.
fn delegated() -> (Thread, ActionId, FramePath) {
    let mut thread = Thread::asked(vec![task("c1", "researcher")]);
    let action = thread.action("c1").id;
    thread.start(action);
    (thread, action, path("researcher#1"))
}

/// A thread whose agent gave as many tasks as there are names.
fn parallel(subagents: &[&str]) -> (Thread, Vec<FramePath>) {
    let calls = subagents.iter().enumerate();
    let calls = calls.map(|(at, name)| task(&format!("t{at}"), name));
    let mut thread = Thread::asked(calls.collect());
    let mut frames = Vec::new();
    for (at, name) in subagents.iter().enumerate() {
        let action = thread.action(&format!("t{at}")).id;
        thread.start(action);
        frames.push(path(&format!("{name}#{}", at + 1)));
    }
    (thread, frames)
}

#[test]
fn a_task_opens_a_frame_whose_last_word_is_the_tasks_result() {
    let (mut thread, action, frame) = delegated();
    let waits = &thread.action("c1").status;
    let on = Wait::Frame {
        frame: frame.clone(),
    };
    assert!(matches!(waits, ActionStatus::Waiting { on: it, .. } if *it == on));
    let turn = Work::CallModel {
        frame: frame.clone(),
        not_before: None,
    };
    assert_eq!(thread.work(), [turn]);
    thread.turn_in(&frame, vec![free("s1", Effect::Read, plain())]);
    let look = thread.action("s1").id;
    thread.run(look, done("7"));
    let events = thread.last_word(&frame, "it is 7");
    assert_eq!(
        names(&events),
        ["model_replied", "frame_closed"],
        "{action} ends with its frame"
    );
    assert_eq!(thread.state.actions.len(), 0);
    assert_eq!(thread.state.active().unwrap().frames.len(), 1);
    assert_eq!(thread.told(), [("c1".to_owned(), "it is 7".to_owned())]);
    assert!(thread.transcript.frame(&frame).is_none());
    thread.last_word(&root(), "bye");
    assert_eq!(thread.state.status(), Some(Status::Finished));
}

#[test]
fn a_subagent_has_a_conversation_of_its_own_that_begins_with_its_task() {
    let (mut thread, _, frame) = delegated();
    thread.turn_in(&frame, vec![held("s1", "{}")]);
    thread.answer(vec![reject("no")]).unwrap();
    let messages = thread.transcript.frame(&frame).unwrap().messages();
    let input = holdpoint_core::Message::User {
        content: "do c1".to_owned(),
    };
    assert_eq!(messages[0], input);
    assert_eq!(messages.len(), 3);
    assert_eq!(thread.told_in(&root()), []);
}

#[test]
fn a_question_of_a_subagent_names_its_frame() {
    let (mut thread, _, frame) = delegated();
    thread.turn_in(&frame, vec![held("s1", "{}")]);
    assert_eq!(thread.pending().frame, frame);
    assert_eq!(
        thread.state.status(),
        Some(Status::Waiting(Cause::HumanApproval))
    );
    thread.answer(vec![Decision::APPROVE]).unwrap();
    assert!(thread.is_ready("s1"));
}

#[test]
fn a_task_can_be_gated_like_any_call() {
    let mut gated = task("c1", "researcher");
    if let Ok(judged) = &mut gated.judged {
        judged.verdict = crate::thread::gated();
    }
    let mut thread = Thread::asked(vec![gated.clone()]);
    assert_eq!(thread.work(), []);
    thread.answer(vec![reject("do it yourself")]).unwrap();
    assert_eq!(thread.state.active().unwrap().frames.len(), 1);
    let mut thread = Thread::asked(vec![gated]);
    thread.answer(vec![Decision::APPROVE]).unwrap();
    let action = thread.action("c1").id;
    assert_eq!(names(&thread.start(action)), ["frame_opened"]);
}

#[test]
fn frames_work_in_parallel_and_one_leaf_is_answered_without_touching_another() {
    let (mut thread, frames) = parallel(&["a", "b"]);
    for (frame, id) in frames.iter().zip(["s1", "s2"]) {
        thread.turn_in(frame, vec![held(id, &format!(r#"{{"to":"{id}"}}"#))]);
    }
    let (first, second) = (thread.action("s1").id, thread.action("s2").id);
    let other = thread.state.actions[&first].clone();
    let question = thread.asked_about(second);
    let untouched = thread.state.interrupts[&thread.asked_about(first)].clone();
    thread
        .answer_to(question, Answer::All(Decision::APPROVE))
        .unwrap();
    thread.run(second, done("ok"));
    thread.last_word(&frames[1], "b is done");
    assert_eq!(thread.state.actions[&first], other);
    assert_eq!(thread.state.interrupts[&untouched.id], untouched);
    assert_eq!(thread.work(), []);
    thread
        .answer_to(untouched.id, Answer::All(reject("no")))
        .unwrap();
    thread.last_word(&frames[0], "a is done");
    let told = [("t0", "a is done"), ("t1", "b is done")];
    let told = told.map(|(id, text)| (id.to_owned(), text.to_owned()));
    assert_eq!(thread.told(), told);
}

#[test]
fn a_frame_in_a_frame_is_addressed_by_its_whole_path() {
    let (mut thread, _, frame) = delegated();
    thread.turn_in(&frame, vec![task("s1", "reader"), task("s2", "reader")]);
    for id in ["s1", "s2"] {
        let action = thread.action(id).id;
        thread.start(action);
    }
    let inner = [path("researcher#1/reader#1"), path("researcher#1/reader#2")];
    for frame in &inner {
        assert_eq!(
            frame.lineage().collect::<Vec<_>>(),
            ["researcher", "reader"]
        );
        thread.last_word(frame, "read");
    }
    assert_eq!(thread.told_in(&frame).len(), 2);
    thread.last_word(&frame, "found");
    assert_eq!(thread.told(), [("c1".to_owned(), "found".to_owned())]);
}

#[test]
fn a_path_is_never_used_twice_in_a_run() {
    let (mut thread, _, frame) = delegated();
    thread.last_word(&frame, "one");
    thread.turn_in(&root(), vec![task("c2", "researcher")]);
    let action = thread.action("c2").id;
    thread.start(action);
    let frames = &thread.state.active().unwrap().frames;
    assert!(frames.contains_key(&path("researcher#2")));
}

#[test]
fn tasks_beyond_what_may_be_at_work_at_once_wait_for_their_turn() {
    let names = ["a"; 20];
    let calls = (0..20).map(|at| task(&format!("t{at}"), names[at]));
    let mut thread = Thread::asked(calls.collect());
    let mut opened = Vec::new();
    while let Some(action) = startable(&thread) {
        thread.start(action);
        opened.push(action);
    }
    assert_eq!(opened.len(), 16);
    assert_eq!(thread.state.active().unwrap().frames.len(), 17);
    thread.last_word(&path("a#3"), "done");
    assert!(startable(&thread).is_some());
}

fn startable(thread: &Thread) -> Option<ActionId> {
    thread.work().into_iter().find_map(|work| match work {
        Work::Start { action, .. } => Some(action),
        _ => None,
    })
}

#[test]
fn frames_that_all_want_subagents_of_their_own_do_not_wait_for_each_other_for_ever() {
    let (mut thread, frames) = parallel(&["a"; 16]);
    for (at, frame) in frames.iter().enumerate() {
        thread.turn_in(frame, vec![task(&format!("s{at}"), "b")]);
    }
    for at in 0..16 {
        let inner = startable(&thread).expect("nothing can go on");
        let parent = thread.state.actions[&inner].frame.clone();
        thread.start(inner);
        thread.last_word(&path(&format!("{parent}/b#1")), "read");
        thread.last_word(&parent, "found");
        assert_eq!(thread.told().len(), at + 1);
    }
    assert_eq!(thread.state.active().unwrap().frames.len(), 1);
}

#[test]
fn cancelling_stops_every_frame_and_awaits_the_write_of_a_leaf() {
    let (mut thread, _, frame) = delegated();
    let writes = vec![
        free("s1", Effect::Write, with_compensation()),
        free("s2", Effect::Read, plain()),
        held("s3", "{}"),
        task("s4", "reader"),
    ];
    thread.think_in(&frame);
    thread.reply_in(&frame, InterruptMode::PerCall, "", writes);
    let [write, read, inner] = ["s1", "s2", "s4"].map(|id| thread.action(id).id);
    for action in [write, read, inner] {
        thread.start(action);
    }
    thread.cancel();
    assert_eq!(thread.state.interrupts.len(), 0);
    assert_eq!(thread.state.active().unwrap().frames.len(), 1);
    let open: Vec<ActionId> = thread.state.actions.keys().copied().collect();
    assert_eq!(open, [write]);
    let late = Command::StartModel {
        frame: frame.clone(),
        epoch: 1,
    };
    assert_eq!(thread.tell(driver(), late).unwrap_err().code(), "stale");
    thread.end(write, 1, done("paid"));
    let undo = thread.compensation().id;
    thread.run(undo, done("reverted"));
    assert_eq!(thread.state.status(), Some(Status::Cancelled));
    let told = "The tool `task` gave no result: the subagent was stopped midway; what it did until then stands";
    assert_eq!(thread.told(), [("c1".to_owned(), told.to_owned())]);
}

#[test]
fn a_write_of_a_leaf_in_doubt_is_asked_about_after_the_stop_and_the_run_ends_with_the_answer() {
    let (mut thread, _, frame) = delegated();
    thread.turn_in(&frame, vec![free("s1", Effect::Write, plain())]);
    let write = thread.action("s1").id;
    thread.start(write);
    thread.cancel();
    thread.end(write, 1, lost());
    assert_eq!(thread.pending().frame, frame);
    thread.answer(vec![committed("paid")]).unwrap();
    assert_eq!(thread.state.status(), Some(Status::Cancelled));
}

#[test]
fn a_model_of_a_subagent_that_gives_no_answer_stops_its_frame_only() {
    let (mut thread, frames) = parallel(&["a", "b"]);
    thread.think_in(&frames[0]);
    thread.drive(Command::ModelFailed {
        frame: frames[0].clone(),
        attempt: 1,
        trouble: ModelTrouble::Rejected {
            error: "401".to_owned(),
        },
    });
    thread.last_word(&frames[1], "b is done");
    assert_eq!(thread.pending().frame, frames[0]);
    thread.answer(vec![Decision::APPROVE]).unwrap();
    thread.last_word(&frames[0], "a is done");
    assert_eq!(thread.told().len(), 2);
}

#[test]
fn a_person_who_gives_up_on_the_model_of_a_subagent_fails_the_run() {
    let (mut thread, _, frame) = delegated();
    thread.think_in(&frame);
    thread.drive(Command::ModelFailed {
        frame,
        attempt: 1,
        trouble: ModelTrouble::Rejected {
            error: "401".to_owned(),
        },
    });
    thread.answer(vec![reject("")]).unwrap();
    assert_eq!(thread.state.status(), Some(Status::Failed));
}

#[test]
fn limits_count_over_all_frames() {
    let mut thread = Thread::new();
    thread.start_run(Limits {
        turns: 2,
        ..Limits::default()
    });
    thread.turn_in(&root(), vec![task("c1", "researcher")]);
    let action = thread.action("c1").id;
    thread.start(action);
    let frame = path("researcher#1");
    thread.turn_in(&frame, vec![free("s1", Effect::Read, plain())]);
    let look = thread.action("s1").id;
    thread.run(look, done("7"));
    thread.think_in(&frame);
    let failed = |outcome: &RunOutcome| matches!(outcome, RunOutcome::Failed { code, .. } if code == "limit_turns");
    let phase = &thread.state.run.as_ref().unwrap().phase;
    assert!(matches!(phase, holdpoint_core::Phase::Ended(outcome) if failed(outcome)));
}

#[test]
fn an_answer_of_a_model_whose_frame_is_closed_is_refused() {
    let (mut thread, _, frame) = delegated();
    thread.last_word(&frame, "found");
    let late = Command::ModelLost { frame, attempt: 1 };
    let stale = Refusal::Stale("the frame does not wait for this answer of its model");
    assert_eq!(thread.tell(driver(), late), Err(stale));
}

/// Rejects this call in a frame.
fn rejected_in(thread: &mut Thread, frame: &FramePath) {
    thread.turn_in(frame, vec![held("s1", r#"{"to":"a"}"#)]);
    let action = thread.action("s1").id;
    let question = thread.asked_about(action);
    thread
        .answer_to(question, Answer::All(reject("no")))
        .unwrap();
}

#[test]
fn what_was_rejected_in_a_subagent_stays_rejected_when_the_task_is_given_again() {
    let (mut thread, _, frame) = delegated();
    rejected_in(&mut thread, &frame);
    thread.last_word(&frame, "I may not");
    rejected_in(&mut thread, &root());
    thread.turn_in(&root(), vec![task("c2", "researcher")]);
    let action = thread.action("c2").id;
    thread.start(action);
    rejected_in(&mut thread, &path("researcher#2"));
    assert_eq!(thread.state.status(), Some(Status::Failed));
}

#[test]
fn rejections_in_parallel_frames_do_not_hide_each_other() {
    let (mut thread, frames) = parallel(&["a", "b"]);
    rejected_in(&mut thread, &frames[0]);
    rejected_in(&mut thread, &frames[0]);
    rejected_in(&mut thread, &frames[1]);
    thread.last_word(&frames[0], "I may not");
    thread.last_word(&frames[1], "nor I");
    rejected_in(&mut thread, &root());
    assert_eq!(thread.state.status(), Some(Status::Failed));
}

#[test]
fn an_approval_in_a_subagent_starts_the_count_again_for_those_above_it() {
    let mut thread = Thread::new();
    thread.start_run(Limits::default());
    rejected_in(&mut thread, &root());
    rejected_in(&mut thread, &root());
    thread.turn_in(&root(), vec![task("c1", "researcher")]);
    let action = thread.action("c1").id;
    thread.start(action);
    let frame = path("researcher#1");
    thread.turn_in(&frame, vec![held("s1", r#"{"to":"a"}"#)]);
    thread.answer(vec![Decision::APPROVE]).unwrap();
    let pay = thread.action("s1").id;
    thread.run(pay, done("paid"));
    thread.last_word(&frame, "paid");
    rejected_in(&mut thread, &root());
    assert_eq!(thread.state.status(), Some(Status::Running));
}

#[test]
fn another_call_in_a_subagent_is_another_call() {
    let (mut thread, frames) = parallel(&["a"]);
    for n in 0..4 {
        let pay = tool("pay", "1", Effect::Write, plain());
        let asked = ask(&[holdpoint_core::DecisionKind::Reject]);
        let arguments = format!(r#"{{"n":{n}}}"#);
        thread.turn_in(&frames[0], vec![call("s1", pay, &arguments, asked)]);
        thread.answer(vec![reject("no")]).unwrap();
    }
    assert_eq!(thread.state.status(), Some(Status::Running));
}

#[test]
fn working_time_runs_while_any_frame_works() {
    let (mut thread, frames) = parallel(&["a", "b"]);
    thread.think_in(&frames[0]);
    thread.wait(2);
    thread.think_in(&frames[1]);
    thread.wait(3);
    thread.reply_in(&frames[0], InterruptMode::Batched, "a", vec![]);
    thread.wait(4);
    thread.reply_in(&frames[1], InterruptMode::Batched, "b", vec![]);
    assert_eq!(thread.state.active().unwrap().worked, Span::from_secs(9));
}

#[test]
fn a_task_is_never_started_as_a_call() {
    let (thread, action, _) = delegated();
    let started = |entry: &holdpoint_core::Entry| entry.event.name() == "action_started";
    assert!(!thread.entries.iter().any(started));
    assert_eq!(thread.state.actions[&action].tool.kind, ToolKind::Task);
}
