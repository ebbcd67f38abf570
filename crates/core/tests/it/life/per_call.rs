//! One question for each call, and answers to several questions at once.

use holdpoint_core::{
    ActionId, Answer, Bond, Command, Decision, Effect, FramePath, InterruptId, InterruptMode,
    Refusal, Reply, Status,
};

use crate::thread::{
    Thread, call, done, edit, free, gated, held, names, plain, reject, tool, user,
};

fn asked(calls: Vec<holdpoint_core::JudgedCall>) -> Thread {
    let mut thread = Thread::thinking();
    thread.reply_in(&FramePath::root(), InterruptMode::PerCall, "", calls);
    thread
}

/// Two gated calls and an ungated one, with the questions about the gated ones.
fn two_and_one() -> (Thread, InterruptId, InterruptId) {
    let thread = asked(vec![
        held("c1", r#"{"to":"a"}"#),
        free("c2", Effect::Write, plain()),
        held("c3", r#"{"to":"b"}"#),
    ]);
    let (first, third) = (thread.action("c1").id, thread.action("c3").id);
    let questions = (thread.asked_about(first), thread.asked_about(third));
    (thread, questions.0, questions.1)
}

fn reply(interrupt: InterruptId, answer: Answer) -> Reply {
    Reply {
        interrupt,
        answer,
        misfits: vec![],
        lacking: vec![],
        shown: vec![],
        bond: Bond::default(),
    }
}

#[test]
fn each_gated_call_has_a_question_of_its_own_and_the_others_run_at_once() {
    let (mut thread, first, third) = two_and_one();
    assert_ne!(first, third);
    assert!(thread.is_ready("c2") && !thread.is_ready("c1") && !thread.is_ready("c3"));
    let free = thread.action("c2").id;
    thread.run(free, done("ok"));
    assert_eq!(thread.work(), []);
    thread
        .answer_to(third, Answer::All(Decision::APPROVE))
        .unwrap();
    assert!(thread.is_ready("c3") && !thread.is_ready("c1"));
    let action = thread.action("c3").id;
    thread.run(action, done("paid b"));
    // The model is not asked again before the last of them is settled.
    assert_eq!(thread.work(), []);
    thread.answer_to(first, Answer::All(reject("no"))).unwrap();
    assert_eq!(thread.work().len(), 1);
    assert_eq!(thread.told().len(), 3);
}

#[test]
fn several_questions_are_answered_at_once() {
    let (mut thread, first, third) = two_and_one();
    let events = thread
        .answer_all(vec![(third, Decision::APPROVE), (first, reject("no"))])
        .unwrap();
    assert_eq!(names(&events), ["answered", "answered"]);
    assert!(thread.is_ready("c3"));
    assert_eq!(thread.state.interrupts.len(), 0);
}

#[test]
fn if_one_of_several_answers_is_bad_none_is_taken() {
    let unknown: InterruptId = "int_00000000000000000000000000000001".parse().unwrap();
    let (mut thread, first, third) = two_and_one();
    let good = || reply(first, Answer::All(Decision::APPROVE));
    let bad = [
        (reply(third, Answer::All(Decision::NotCommitted)), "misfit"),
        (reply(third, Answer::ByPosition(vec![])), "misfit"),
        (reply(third, Answer::All(edit("rm", "{}"))), "misfit"),
        (
            reply(unknown, Answer::All(Decision::APPROVE)),
            "not_pending",
        ),
        // The same question twice, whatever is said.
        (reply(first, Answer::All(reject(""))), "stale"),
        (good(), "stale"),
    ];
    let before = thread.state.clone();
    for (bad, code) in bad {
        for answers in [vec![good(), bad.clone()], vec![bad.clone(), good()]] {
            let refusal = thread.tell(user("bob"), Command::Answer { answers });
            assert_eq!(refusal.unwrap_err().code(), code, "{bad:?}");
            assert_eq!(thread.state, before);
        }
    }
    let answers = vec![good(), reply(third, Answer::All(Decision::APPROVE))];
    thread
        .tell(user("bob"), Command::Answer { answers })
        .unwrap();
    assert!(thread.is_ready("c1") && thread.is_ready("c3"));
}

#[test]
fn no_answer_at_all_is_refused() {
    let (mut thread, ..) = two_and_one();
    let answers = vec![];
    let refusal = thread.tell(user("bob"), Command::Answer { answers });
    assert_eq!(refusal, Err(Refusal::Stale("nothing is answered")));
}

#[test]
fn one_of_several_answers_that_came_too_late_takes_the_others_down_with_it() {
    let (mut thread, first, third) = two_and_one();
    thread
        .answer_to(first, Answer::All(Decision::APPROVE))
        .unwrap();
    let both = vec![(third, Decision::APPROVE), (first, Decision::APPROVE)];
    let refusal = Refusal::NotPending { interrupt: first };
    assert_eq!(thread.answer_all(both), Err(refusal));
    assert!(!thread.is_ready("c3"));
}

#[test]
fn cancelling_withdraws_every_question() {
    let (mut thread, ..) = two_and_one();
    let events = thread.cancel();
    let expected = [
        "interrupt_closed",
        "interrupt_closed",
        "stop_requested",
        "run_ended",
    ];
    assert_eq!(names(&events), expected);
    assert_eq!(thread.state.status(), Some(Status::Cancelled));
    assert_eq!(thread.told().len(), 3);
}

#[test]
fn three_rejections_of_one_call_at_once_stop_the_run_once() {
    let calls = ["c1", "c2", "c3", "c4"].map(|id| held(id, "{}"));
    let mut thread = asked(calls.to_vec());
    let pending: Vec<InterruptId> = thread.state.interrupts.keys().copied().collect();
    let answers = pending[..3].iter().map(|id| (*id, reject("no"))).collect();
    let events = thread.answer_all(answers).unwrap();
    let stops = names(&events)
        .into_iter()
        .filter(|name| *name == "stop_requested");
    assert_eq!(stops.count(), 1);
    assert_eq!(thread.state.status(), Some(Status::Failed));
}

#[test]
fn one_question_made_stale_leaves_the_others_as_they_are() {
    let (mut thread, first, third) = two_and_one();
    let action: ActionId = thread.action("c1").id;
    let newer = tool("pay", "2", Effect::Write, plain());
    let call = crate::thread::restated(action, newer, gated());
    thread.restate(Some(first), vec![call]).unwrap();
    assert!(thread.state.interrupts.contains_key(&third));
    assert!(!thread.state.interrupts.contains_key(&first));
    assert!(thread.is_ready("c2"));
}

#[test]
fn an_ungated_turn_asks_nobody() {
    let read = tool("look", "1", Effect::Read, plain());
    let verdict = holdpoint_core::Verdict::Allow;
    let thread = asked(vec![call("c1", read, "{}", verdict)]);
    assert_eq!(thread.state.interrupts.len(), 0);
    assert!(thread.is_ready("c1"));
}
