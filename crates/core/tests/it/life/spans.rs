//! What takes its time in a life, as the trace of its run draws it.

use std::collections::BTreeMap;

use holdpoint_core::{
    Command, Decision, Effect, FramePath, InterruptKind, Limits, ModelTrouble, Span, ThreadId,
    ThreadKind, Timestamp,
    spans::{Began, ChatEnd, Stretch, StretchId, What},
};

use crate::thread::{
    BEGIN, SECOND, TENANT, Thread, done, failed, free, held, lost, path, plain, prompt, question,
    reject, say, stepped, task, user, with_compensation,
};

/// Each stretch in the order in which they ended: what it was, from which second to which, and in what.
fn drawn(thread: &Thread) -> Vec<String> {
    let names: BTreeMap<StretchId, String> = thread
        .stretches
        .iter()
        .map(|stretch| (stretch.id, name(stretch)))
        .collect();
    let draw = |stretch: &Stretch| {
        let since = |at: Timestamp| (at.as_micros() - BEGIN) / SECOND;
        let began = match stretch.began {
            Began::At(at) => since(at).to_string(),
            Began::Unseen => "?".to_owned(),
        };
        let inside = stretch.parent.map(|parent| match names.get(&parent) {
            Some(parent) => format!(" in {}", parent.split(':').next().unwrap()),
            None => " in what goes on".to_owned(),
        });
        let inside = inside.unwrap_or_default();
        format!(
            "{}..{} {}{inside}",
            began,
            since(stretch.end),
            name(stretch)
        )
    };
    thread.stretches.iter().map(draw).collect()
}

fn name(stretch: &Stretch) -> String {
    let agent = &stretch.agent;
    match &stretch.what {
        What::Run { ending, code } => {
            let code = code.as_deref().unwrap_or_default();
            format!("run of {agent}: {} {code}", ending.as_str())
                .trim_end()
                .to_owned()
        }
        What::Task { done, .. } => format!(
            "task of {agent}: {}",
            if *done { "done" } else { "dropped" }
        ),
        What::Chat {
            attempt,
            end: ChatEnd::Replied { usage, .. },
        } => format!(
            "chat of {agent} #{attempt}: replied for {}",
            usage.output_tokens
        ),
        What::Chat { attempt, end } => format!("chat of {agent} #{attempt}: {end:?}"),
        What::Call(call) => format!(
            "{} #{} {:?}: {:?}",
            call.tool, call.attempt, call.role, call.end
        ),
        What::Wait {
            kind,
            cause,
            status,
            ..
        } => {
            format!("wait {kind:?}, {}: {}", cause.as_str(), status.as_str())
        }
    }
}

const REPLIED: &str = "replied for 0";

fn root() -> FramePath {
    FramePath::root()
}

#[test]
fn a_run_is_one_trace_through_its_stop_and_all_its_parts_are_in_it() {
    let mut thread = Thread::new();
    thread.start_run(Limits::default());
    thread.wait(1);
    thread.think();
    thread.wait(2);
    thread.reply("", vec![held("c1", "{}")]);
    assert_eq!(
        drawn(&thread),
        [format!("1..3 chat of teller #1: {REPLIED} in what goes on")],
        "what has not ended is not told"
    );
    thread.wait(3_600);
    // Another process takes the answer and goes on.
    thread.crash();
    thread.answer(vec![Decision::APPROVE]).unwrap();
    thread.wait(1);
    let action = thread.action("c1").id;
    thread.start(action);
    thread.wait(5);
    thread.end(action, 1, done("paid"));
    thread.think();
    thread.wait(4);
    thread.reply("bye", vec![]);
    assert_eq!(
        drawn(&thread),
        [
            format!("1..3 chat of teller #1: {REPLIED} in run of teller"),
            "3..3603 wait Approval, human_approval: resolved in run of teller".to_owned(),
            "3604..3609 pay #1 Call: Done in run of teller".to_owned(),
            format!("3609..3613 chat of teller #1: {REPLIED} in run of teller"),
            "0..3613 run of teller: finished".to_owned(),
        ]
    );
    let run = thread.state.run.as_ref().unwrap().id;
    assert!(thread.stretches.iter().all(|it| it.run == run));
}

#[test]
fn a_subagents_work_is_in_its_task_wherever_the_run_goes_on() {
    let mut thread = Thread::asked(vec![task("c1", "researcher")]);
    let action = thread.action("c1").id;
    thread.wait(1);
    thread.start(action);
    let frame = path("researcher#1");
    thread.turn_in(&frame, vec![held("s1", "{}")]);
    thread.wait(60);
    thread.crash();
    thread.answer(vec![reject("no")]).unwrap();
    thread.last_word(&frame, "it was not wanted");
    thread.last_word(&root(), "bye");
    assert_eq!(
        drawn(&thread),
        [
            format!("0..0 chat of teller #1: {REPLIED} in run of teller"),
            format!("1..1 chat of researcher #1: {REPLIED} in task of researcher"),
            "1..61 wait Approval, human_approval: rejected in task of researcher".to_owned(),
            format!("61..61 chat of researcher #1: {REPLIED} in task of researcher"),
            "0..61 task of researcher: done in run of teller".to_owned(),
            format!("61..61 chat of teller #1: {REPLIED} in run of teller"),
            "0..61 run of teller: finished".to_owned(),
        ]
    );
}

#[test]
fn two_subagents_that_one_event_stops_are_stretches_of_their_own() {
    let mut thread = Thread::asked(vec![task("c1", "researcher"), task("c2", "researcher")]);
    for call in ["c1", "c2"] {
        let action = thread.action(call).id;
        thread.start(action);
    }
    thread.think_in(&path("researcher#1"));
    thread.think_in(&path("researcher#2"));
    thread.cancel();
    let chats = thread.stretches.iter();
    let chats: Vec<_> = chats
        .filter(|it| matches!(it.what, What::Chat { .. }))
        .collect();
    assert_eq!(chats.len(), 3);
    let ids: std::collections::BTreeSet<_> = thread.stretches.iter().map(|it| it.id).collect();
    assert_eq!(ids.len(), thread.stretches.len());
}

#[test]
fn an_old_call_of_a_driver_that_lost_its_lease_is_not_taken_for_a_later_one() {
    let mut thread = Thread::thinking();
    // Another process takes over, calls the model again and dies; then the first one is back, and remembers its own call.
    let remembered = std::mem::take(&mut thread.starts);
    thread.wait(100);
    let lost = |attempt| Command::ModelLost {
        frame: root(),
        attempt,
    };
    thread.drive(lost(1));
    thread.drive(Command::StartModel {
        frame: root(),
        epoch: 2,
    });
    thread.starts = remembered;
    thread.wait(100);
    thread.drive(lost(2));
    let began: Vec<Began> = thread.stretches.iter().map(|it| it.began).collect();
    assert_eq!(began, [Began::Unseen, Began::Unseen]);
}

#[test]
fn what_a_dead_process_began_has_ended_at_its_deadline_at_the_latest() {
    let (mut thread, action) = Thread::started(Effect::Idempotent, plain());
    thread.crash();
    thread.wait(10_000);
    thread.orphan(action, 1);
    thread.wait(10);
    thread.run(action, done("at last"));
    thread.think();
    thread.crash();
    thread.drive(Command::ModelLost {
        frame: root(),
        attempt: 1,
    });
    let drawn = drawn(&thread);
    assert_eq!(
        drawn[1..],
        [
            "0..60 work #1 Call: Lost in what goes on",
            "10010..10010 work #2 Call: Done in what goes on",
            "?..10010 chat of teller #1: Lost in what goes on",
        ]
    );
}

#[test]
fn what_fails_and_what_is_tried_again_are_stretches_of_their_own() {
    let mut thread = Thread::thinking();
    thread.wait(1);
    let trouble = ModelTrouble::RateLimited {
        error: "503".to_owned(),
        retry_after: Some(Span::from_secs(2)),
    };
    thread.drive(Command::ModelFailed {
        frame: root(),
        attempt: 1,
        trouble,
    });
    thread.wait(2);
    thread.think();
    thread.wait(1);
    thread.reply(
        "",
        vec![
            free("c1", Effect::Write, plain()),
            free("c2", Effect::Read, plain()),
        ],
    );
    let (write, read) = (thread.action("c1").id, thread.action("c2").id);
    thread.run(write, lost());
    thread.run(read, failed("no"));
    assert_eq!(
        drawn(&thread),
        [
            "0..1 chat of teller #1: Failed in what goes on".to_owned(),
            format!("3..4 chat of teller #2: {REPLIED} in what goes on"),
            "4..4 work #1 Call: Unknown in what goes on".to_owned(),
            "4..4 work #1 Call: Failed in what goes on".to_owned(),
        ]
    );
}

#[test]
fn of_a_stepped_tool_each_entry_is_a_stretch_and_its_steps_are_within_it() {
    let mut thread = Thread::asked(vec![stepped("c1", plain())]);
    let action = thread.action("c1").id;
    thread.start(action);
    let step = thread.step(action, "book", Effect::Idempotent);
    thread.wait(3);
    thread.end(step, 1, done("booked"));
    thread.suspend(action, "go", question("Go?")).unwrap();
    thread.wait(50);
    thread.answer(vec![Decision::APPROVE]).unwrap();
    thread.start(action);
    thread.wait(2);
    thread.end(action, 2, done("gone"));
    assert_eq!(
        drawn(&thread)[1..],
        [
            "0..3 order #1 Call: Left in what goes on",
            "3..53 wait Approval, human_approval: resolved in what goes on",
            "53..55 order #2 Call: Done in what goes on",
        ]
    );
}

#[test]
fn a_stop_ends_what_nobody_wants_any_more_and_what_undoes_is_told() {
    let mut thread = Thread::asked(vec![
        free("c1", Effect::Write, with_compensation()),
        free("c2", Effect::Read, plain()),
        task("c3", "researcher"),
    ]);
    for call in ["c1", "c2", "c3"] {
        let action = thread.action(call).id;
        thread.start(action);
    }
    thread.think_in(&path("researcher#1"));
    thread.wait(5);
    let write = thread.action("c1").id;
    thread.cancel();
    thread.wait(1);
    thread.end(write, 1, done("paid"));
    let undoing = thread.compensation().id;
    thread.wait(10);
    thread.run(undoing, done("paid back"));
    let mut drawn = drawn(&thread);
    // What ends with the same event is told in no order.
    drawn[1..4].sort();
    assert_eq!(
        drawn[1..],
        [
            "0..5 chat of researcher #1: Dropped in task of researcher",
            "0..5 task of researcher: dropped in run of teller",
            "0..5 work #1 Call: Dropped in run of teller",
            "0..6 work #1 Call: Done in run of teller",
            "16..16 work #1 Compensation: Done in run of teller",
            "0..16 run of teller: cancelled",
        ]
    );
}

#[test]
fn a_question_from_outside_is_a_trace_of_its_own() {
    let mut thread = Thread::new();
    let command = Command::Ask {
        thread: ThreadId::of_node(TENANT, "flow", "node"),
        tenant: TENANT.to_owned(),
        workflow: "flow".to_owned(),
        node: "node".to_owned(),
        kind: InterruptKind::Input,
        prompt: Box::new(prompt("Where to?")),
        expiry: None,
    };
    thread.tell(user("ann"), command).unwrap();
    thread.wait(7);
    thread.answer(vec![say("Berlin")]).unwrap();
    assert_eq!(
        drawn(&thread),
        [
            "0..7 wait Input, human_input: resolved in run of flow",
            "0..7 run of flow: finished",
        ]
    );
    let outside = |stretch: &Stretch| stretch.kind == ThreadKind::Outside;
    assert!(thread.stretches.iter().all(outside));
}

#[test]
fn a_fork_is_another_run_and_another_trace() {
    let parent = Thread::asked(vec![held("c1", "{}")]);
    let mut fork = Thread::new();
    fork.now = parent.now;
    fork.wait(10);
    let command = Command::Fork {
        thread: ThreadId::of_session(TENANT, "teller", "s2"),
        session: "s2".to_owned(),
        from: Box::new(parent.state.clone()),
    };
    fork.tell(user("eve"), command).unwrap();
    fork.wait(5);
    fork.cancel();
    assert_eq!(
        drawn(&fork),
        [
            "10..15 wait Approval, human_approval: canceled in run of teller",
            "10..15 run of teller: cancelled",
        ]
    );
    assert_ne!(fork.stretches[0].run, parent.stretches[0].run);
}

#[test]
fn what_a_backup_holds_in_the_air_is_lost() {
    let (mut thread, _) = Thread::started(Effect::Write, plain());
    thread.wait(1);
    thread.restore();
    assert_eq!(
        drawn(&thread)[1..],
        ["0..11 work #1 Call: Lost in what goes on"]
    );
    let mut thread = Thread::thinking();
    thread.wait(1);
    thread.restore();
    assert_eq!(
        drawn(&thread),
        ["0..11 chat of teller #1: Lost in what goes on"]
    );
}
