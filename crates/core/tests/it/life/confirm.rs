//! A model that asks for a confirmation in plain words.

use holdpoint_core::{
    Answer, Bond, Cause, Command, Confirmation, Decision, DecisionKind, Event, FieldKind,
    InputField, InterruptKind, InterruptStatus, Message, Refusal, RunOutcome, Span, Status,
    Subject,
};
use serde_json::json;

use crate::thread::{Thread, free, held, names, path, plain, reject, task, user};

fn confirming(text: &str) -> Thread {
    let mut thread = Thread::thinking();
    thread.confirm = Some(Confirmation {
        timeout: Some(Span::from_secs(300)),
        ..Confirmation::standard()
    });
    thread.reply(text, vec![]);
    thread
}

fn says(value: serde_json::Value) -> Decision {
    Decision::Answer { value }
}

fn last_message(thread: &Thread) -> Message {
    thread.transcript.messages().pop().unwrap()
}

fn user_message(content: &str) -> Message {
    Message::User {
        content: content.to_owned(),
    }
}

#[test]
fn the_run_waits_and_shows_what_was_asked() {
    let thread = confirming("Two files.\nAre you sure?");
    let cause = Cause::HumanApproval;
    assert_eq!(thread.state.status(), Some(Status::Waiting(cause)));
    assert_eq!(thread.work(), []);
    let interrupt = thread.pending();
    assert_eq!(interrupt.kind, InterruptKind::Approval);
    let Subject::Confirmation {
        reply,
        from,
        fields,
        ..
    } = &thread.question().subject
    else {
        panic!("{interrupt:?}");
    };
    let place = usize::try_from(*reply).unwrap() - 1;
    let said = &thread.entries[place].event;
    assert!(matches!(said, Event::ModelReplied { text, .. } if text.ends_with("sure?")));
    assert_eq!(*from, 11);
    assert_eq!(fields, &[InputField::confirm("confirm", "Confirm action")]);
    let shown = thread.question().description.as_deref();
    assert_eq!(shown, Some("Are you sure?"));
    use DecisionKind::{Answer, Approve, Reject};
    assert_eq!(thread.allowed(), [Answer, Approve, Reject]);
}

#[test]
fn a_yes_goes_on_with_the_conversation() {
    for yes in [says(json!({"confirm": true})), Decision::APPROVE] {
        let mut thread = confirming("Are you sure?");
        let events = thread.answer(vec![yes]).unwrap();
        assert_eq!(names(&events), ["answered"]);
        let Event::Answered { status, .. } = &events[0] else {
            panic!("{events:?}");
        };
        assert_eq!(*status, InterruptStatus::Resolved);
        let told = "User response: Confirm action: true. Please proceed.";
        assert_eq!(last_message(&thread), user_message(told));
        thread.think();
        let events = thread.reply("Done.", vec![]);
        assert_eq!(names(&events), ["model_replied", "run_ended"]);
    }
}

#[test]
fn a_no_is_told_and_what_the_model_then_asks_is_asked_again() {
    for no in [says(json!({"confirm": false})), reject("too late")] {
        let mut thread = confirming("Are you sure?");
        let events = thread.answer(vec![no]).unwrap();
        let Event::Answered { status, .. } = &events[0] else {
            panic!("{events:?}");
        };
        assert_eq!(*status, InterruptStatus::Rejected);
        let Message::User { content } = last_message(&thread) else {
            panic!("nobody was told");
        };
        assert!(content.contains("The user declined. Do not proceed."));
        thread.think();
        let events = thread.reply("Do you want me to keep a copy?", vec![]);
        assert_eq!(names(&events), ["model_replied", "interrupt_raised"]);
        thread.answer(vec![Decision::APPROVE]).unwrap();
        thread.think();
        thread.reply("Kept.", vec![]);
        assert_eq!(thread.state.status(), Some(Status::Finished));
    }
}

#[test]
fn an_answer_that_does_not_fit_changes_nothing() {
    let mut thread = confirming("Are you sure?");
    let before = thread.state.clone();
    for (value, expected) in [
        (json!({}), "`confirm` is missing: say `true` or `false`"),
        (
            json!({"confirm": "yes"}),
            "`confirm` must be `true` or `false`",
        ),
        (
            json!({"confirm": true, "x": 1}),
            "`x` is no field; fields: confirm",
        ),
    ] {
        let refusal = thread.answer(vec![says(value)]).unwrap_err();
        assert_eq!(refusal.code(), "misfit");
        assert!(refusal.to_string().ends_with(expected), "{refusal}");
        assert_eq!(thread.state, before);
    }
    let respond = Decision::Respond {
        message: "x".to_owned(),
    };
    assert_eq!(thread.answer(vec![respond]).unwrap_err().code(), "misfit");
}

#[test]
fn what_nobody_answers_in_time_ends_the_run_and_is_no_consent() {
    let mut thread = confirming("Are you sure?");
    let interrupt = thread.pending().id;
    thread.wait(300);
    let late = thread.answer(vec![Decision::APPROVE]);
    assert_eq!(late, Err(Refusal::Expired { interrupt }));
    let events = thread.drive(Command::Tick);
    let expected = ["interrupt_closed", "stop_requested", "run_ended"];
    assert_eq!(names(&events), expected);
    let timed_out = Event::RunEnded {
        outcome: RunOutcome::TimedOut,
    };
    assert_eq!(events.last(), Some(&timed_out));
    let told = "The request for confirmation was not answered. Do not proceed with it.";
    assert_eq!(last_message(&thread), user_message(told));
}

#[test]
fn only_the_last_word_of_the_agent_itself_is_looked_at() {
    let mut thread = confirming("All done.");
    assert_eq!(thread.state.status(), Some(Status::Finished));
    // A word with calls is not the last one, and the calls have gates of their own.
    thread = Thread::thinking();
    thread.confirm = Some(Confirmation::standard());
    let events = thread.reply(
        "Are you sure?",
        vec![free("c1", holdpoint_core::Effect::Read, plain())],
    );
    assert_eq!(names(&events), ["model_replied"]);
    // A subagent talks to the agent.
    thread = Thread::asked(vec![task("c1", "reader")]);
    thread.confirm = Some(Confirmation::standard());
    let action = thread.action("c1").id;
    thread.start(action);
    let events = thread.last_word(&path("reader#1"), "Are you sure?");
    assert_eq!(names(&events), ["model_replied", "frame_closed"]);
}

#[test]
fn it_stands_beside_a_breakpoint_and_either_may_be_answered_first() {
    for breakpoint_first in [true, false] {
        let mut thread = Thread::with_breakpoints(&[], &["model"]);
        thread.confirm = Some(Confirmation::standard());
        thread.think();
        thread.reply("Are you sure?", vec![]);
        let mut pending: Vec<_> = thread.state.interrupts.values().cloned().collect();
        assert_eq!(pending.len(), 2);
        pending.sort_by_key(|it| (it.kind == InterruptKind::Breakpoint) != breakpoint_first);
        for (left, interrupt) in pending.iter().enumerate() {
            assert_eq!(thread.work(), [], "{left} were answered");
            let answer = Answer::All(Decision::APPROVE);
            thread.answer_to(interrupt.id, answer).unwrap();
        }
        assert_eq!(thread.work().len(), 1, "the model is asked again");
    }
}

#[test]
fn a_long_text_stays_out_of_the_head() {
    let text = format!(
        "{}Please confirm. {}",
        "a\n".repeat(20_000),
        "b".repeat(20_000)
    );
    let thread = confirming(&text);
    assert!(serde_json::to_string(&thread.state).unwrap().len() < 8 * 1_024);
}

#[test]
fn a_form_may_ask_for_more_than_yes_or_no() {
    let mut thread = Thread::thinking();
    let mut confirm = Confirmation::standard();
    confirm.fields.push(InputField {
        name: "ticket".to_owned(),
        kind: FieldKind::Text,
        label: "Ticket".to_owned(),
        required: true,
        options: vec![],
    });
    thread.confirm = Some(confirm);
    thread.reply("Shall I proceed?", vec![]);
    let refusal = thread.answer(vec![Decision::APPROVE]).unwrap_err();
    assert!(
        refusal.to_string().ends_with("`ticket` is required"),
        "{refusal}"
    );
    let whole = says(json!({"ticket": "OPS-1", "confirm": true}));
    thread.answer(vec![whole]).unwrap();
    let told = "User response: Confirm action: true; Ticket: OPS-1. Please proceed.";
    assert_eq!(last_message(&thread), user_message(told));
}

#[test]
fn an_agent_never_confirms() {
    let mut thread = confirming("Are you sure?");
    let agent = holdpoint_core::Principal::new(
        holdpoint_core::PrincipalKind::Agent,
        crate::thread::TENANT,
        "bot",
    );
    let reply = holdpoint_core::Reply {
        interrupt: thread.pending().id,
        answer: Answer::All(Decision::APPROVE),
        misfits: vec![],
        lacking: vec![],
        shown: vec![],
        bond: Bond::default(),
    };
    let answers = vec![reply];
    let refused = thread.tell(agent, Command::Answer { answers });
    assert_eq!(refused.unwrap_err().code(), "forbidden");
    // Nor does a gate on a tool stand in for it.
    assert!(held("c1", "{}").judged.is_ok());
    assert!(
        thread
            .tell(user("ann"), Command::Cancel { run: None })
            .is_ok()
    );
}
