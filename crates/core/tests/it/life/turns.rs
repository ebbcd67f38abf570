//! Model turns: what they lead to, and what the model is told of it.

use holdpoint_core::{
    Cause, Command, Decision, Effect, Event, FramePath, InterruptMode, Message, ModelTrouble,
    Phase, Refusal, RunOutcome, Span, Status, Timestamp, ToolCall, ToolStatus, Usage, Verdict,
    Work,
};

use crate::thread::{
    Thread, call, done, driver, edit, failed, free, held, names, plain, reject, tool, user,
};

fn root() -> FramePath {
    FramePath::root()
}

#[test]
fn a_plain_run_calls_its_model_runs_the_call_and_ends_with_the_last_word() {
    let mut thread = Thread::asked(vec![free("c1", Effect::Write, plain())]);
    let action = thread.action("c1").id;
    let ready = Work::Start {
        action,
        not_before: None,
    };
    assert_eq!(thread.work(), [ready]);
    thread.run(action, done("7"));
    let turn = Work::CallModel {
        frame: root(),
        not_before: None,
    };
    assert_eq!(thread.work(), [turn]);
    thread.think();
    thread.reply("it is 7", vec![]);
    assert_eq!(thread.state.status(), Some(Status::Finished));
    let names: Vec<&str> = thread.entries.iter().map(|it| it.event.name()).collect();
    let expected = [
        "thread_created",
        "run_started",
        "model_started",
        "model_replied",
        "action_started",
        "action_finished",
        "model_started",
        "model_replied",
        "run_ended",
    ];
    assert_eq!(names, expected);
    let messages = [
        Message::User {
            content: "go".to_owned(),
        },
        Message::Assistant {
            content: String::new(),
            tool_calls: vec![ToolCall {
                id: "c1".to_owned(),
                name: "work".to_owned(),
                arguments: r#"{"n":1}"#.to_owned(),
            }],
            carried: None,
        },
        Message::Tool {
            tool_call_id: "c1".to_owned(),
            name: "work".to_owned(),
            content: "7".to_owned(),
            status: ToolStatus::Success,
            action_id: Some(action),
        },
        Message::Assistant {
            content: "it is 7".to_owned(),
            tool_calls: vec![],
            carried: None,
        },
    ];
    assert_eq!(thread.transcript.messages(), messages);
}

#[test]
fn of_three_calls_two_are_gated_and_the_third_waits_with_them_until_all_are_ready() {
    let mut thread = Thread::asked(vec![
        held("c1", r#"{"to":"a"}"#),
        free("c2", Effect::Read, plain()),
        held("c3", r#"{"to":"b"}"#),
    ]);
    let asked: Vec<_> = thread
        .pending()
        .asks
        .iter()
        .map(|ask| ask.action_id)
        .collect();
    assert_eq!(asked, [thread.action("c1").id, thread.action("c3").id]);
    assert_eq!(thread.work(), []);
    let waiting = Status::Waiting(holdpoint_core::Cause::HumanApproval);
    assert_eq!(thread.state.status(), Some(waiting));
    thread
        .answer(vec![
            holdpoint_core::Decision::APPROVE,
            holdpoint_core::Decision::APPROVE,
        ])
        .unwrap();
    assert!(["c1", "c2", "c3"].iter().all(|call| thread.is_ready(call)));
    assert_eq!(thread.work().len(), 3);
    for call in ["c3", "c2", "c1"] {
        let action = thread.action(call).id;
        thread.run(action, done(call));
    }
    let told = ["c1", "c2", "c3"].map(|call| (call.to_owned(), call.to_owned()));
    assert_eq!(thread.told(), told);
}

#[test]
fn a_mixed_batch_runs_what_was_allowed_and_the_model_reads_first_what_was_not() {
    let mut thread = Thread::asked(vec![
        held("c1", r#"{"to":"a"}"#),
        held("c2", r#"{"to":"b"}"#),
        held("c3", r#"{"to":"c"}"#),
        held("c4", r#"{"to":"d"}"#),
        held("c5", r#"{"to":"e"}"#),
    ]);
    let respond = holdpoint_core::Decision::Respond {
        message: "ask Carl".to_owned(),
    };
    thread
        .answer(vec![
            holdpoint_core::Decision::APPROVE,
            reject("too much"),
            edit("pay", r#"{"to":"team"}"#),
            respond,
            reject(""),
        ])
        .unwrap();
    assert_eq!(thread.state.actions.len(), 2);
    for call in ["c3", "c1"] {
        let action = thread.action(call).id;
        thread.run(action, done("paid"));
    }
    let edited = "Note: a human reviewer replaced this tool call before it ran. The call recorded in your message is the one you produced, not the one that executed. This was intentional and authorized. Do not re-issue your original call. Executed instead: pay with arguments {\"to\":\"team\"}.\n\nTool response:\npaid";
    let told = [
        (
            "c2",
            "User rejected the tool call for `pay` with reason: too much",
        ),
        ("c4", "ask Carl"),
        (
            "c5",
            "User rejected the tool call for `pay` with id c5. The tool was not executed. Do not retry this tool call unless the user explicitly requests it.",
        ),
        ("c1", "paid"),
        ("c3", edited),
    ];
    let told = told.map(|(call, text)| (call.to_owned(), text.to_owned()));
    assert_eq!(thread.told(), told);
    let statuses: Vec<ToolStatus> = thread
        .transcript
        .messages()
        .iter()
        .filter_map(|message| match message {
            Message::Tool { status, .. } => Some(*status),
            _ => None,
        })
        .collect();
    use ToolStatus::{Error, Success};
    assert_eq!(statuses, [Error, Success, Error, Success, Success]);
}

#[test]
fn an_edited_call_that_returns_nothing_has_no_tool_response_label() {
    let mut thread = Thread::asked(vec![held("c1", "{}")]);
    thread
        .answer(vec![edit("pay", r#"{"to":"team"}"#)])
        .unwrap();
    let action = thread.action("c1").id;
    thread.run(action, done(""));
    let (_, text) = &thread.told()[0];
    assert!(
        text.ends_with("Executed instead: pay with arguments {\"to\":\"team\"}."),
        "{text}"
    );
}

#[test]
fn an_edit_that_fails_says_that_it_was_edited() {
    let mut thread = Thread::asked(vec![held("c1", "{}")]);
    thread
        .answer(vec![edit("pay", r#"{"to":"team"}"#)])
        .unwrap();
    let action = thread.action("c1").id;
    thread.run(action, failed("no such account"));
    let (_, text) = &thread.told()[0];
    assert!(text.ends_with("Tool response:\nno such account"), "{text}");
}

#[test]
fn when_all_are_rejected_the_model_is_called_again_at_once() {
    let mut thread = Thread::asked(vec![held("c1", "{}")]);
    thread.answer(vec![reject("")]).unwrap();
    let turn = Work::CallModel {
        frame: root(),
        not_before: None,
    };
    assert_eq!(thread.work(), [turn]);
}

#[test]
fn a_call_that_the_policy_denies_or_that_cannot_be_read_is_answered_and_the_run_goes_on() {
    let mut unreadable = free("c2", Effect::Read, plain());
    unreadable.judged = Err("send it as a string".to_owned());
    let mut thread = Thread::asked(vec![
        call(
            "c1",
            tool("rm", "1", Effect::Write, plain()),
            "{}",
            Verdict::Deny,
        ),
        unreadable,
    ]);
    let denied =
        "The policy does not allow the tool `rm`. It was not executed. Do not call it again.";
    let told = [("c1", denied), ("c2", "send it as a string")];
    let told = told.map(|(call, text)| (call.to_owned(), text.to_owned()));
    assert_eq!(thread.told(), told);
    thread.think();
    thread.reply("sorry", vec![]);
    assert_eq!(thread.state.status(), Some(Status::Finished));
}

#[test]
fn a_model_that_fails_is_tried_three_times_over_crashes_and_then_a_person_is_asked() {
    let mut thread = Thread::thinking();
    thread.drive(Command::ModelLost {
        frame: root(),
        attempt: 1,
    });
    thread.think();
    let trouble = ModelTrouble::RateLimited {
        error: "503".to_owned(),
        retry_after: Some(Span::from_secs(4)),
    };
    thread.drive(Command::ModelFailed {
        frame: root(),
        attempt: 2,
        trouble: trouble.clone(),
    });
    let later = Work::CallModel {
        frame: root(),
        not_before: Some(thread.now + Span::from_secs(4)),
    };
    assert_eq!(thread.work(), [later]);
    thread.wait(4);
    thread.think();
    thread.drive(Command::ModelFailed {
        frame: root(),
        attempt: 3,
        trouble,
    });
    assert_eq!(
        thread.state.status(),
        Some(Status::Waiting(Cause::RateLimit))
    );
    thread
        .answer(vec![holdpoint_core::Decision::APPROVE])
        .unwrap();
    thread.think();
    thread.reply("here I am", vec![]);
    assert_eq!(thread.state.status(), Some(Status::Finished));
}

fn come_again_in(seconds: u64, attempt: u32) -> Command {
    Command::ModelFailed {
        frame: root(),
        attempt,
        trouble: ModelTrouble::RateLimited {
            error: "429".to_owned(),
            retry_after: Some(Span::from_secs(seconds)),
        },
    }
}

#[test]
fn a_provider_that_wants_to_be_left_alone_for_long_lets_the_run_sleep_and_nobody_drives_it() {
    let mut thread = Thread::thinking();
    thread.drive(come_again_in(60, 1));
    assert_eq!(
        thread.state.status(),
        Some(Status::Sleeping(Some(Cause::RateLimit)))
    );
    assert!(thread.work().is_empty() && !thread.state.in_flight());
    let due = thread.state.due_at().unwrap();
    let after = Span::from_micros(due.since(thread.now).as_micros());
    assert!(
        (Span::from_secs(60)..=Span::from_secs(65)).contains(&after),
        "{after:?}"
    );
    thread.wait(59);
    assert_eq!(thread.tick(), []);
    thread.wait(6);
    assert_eq!(names(&thread.tick()), ["frame_woken"]);
    thread.think();
    thread.reply("here I am", vec![]);
    assert_eq!(thread.state.status(), Some(Status::Finished));
    let run = thread.state.run.as_ref().unwrap();
    assert_eq!(run.phase, Phase::Ended(RunOutcome::Finished));
}

#[test]
fn rests_are_no_failures_but_after_ten_of_them_a_person_is_asked() {
    let mut thread = Thread::thinking();
    for attempt in 1..=10 {
        thread.drive(come_again_in(3_600, attempt));
        thread.wait(3_700);
        thread.tick();
        thread.think();
    }
    let turns = thread.state.active().unwrap().turns;
    assert_eq!(turns, 1, "it is one turn");
    // Two failures are tried again, whatever came before them.
    for attempt in 11..=12 {
        thread.drive(come_again_in(1, attempt));
        thread.wait(2);
        thread.think();
    }
    thread.drive(come_again_in(3_600, 13));
    assert_eq!(
        thread.state.status(),
        Some(Status::Waiting(Cause::RateLimit))
    );
    thread.answer(vec![Decision::APPROVE]).unwrap();
    thread.think();
    thread.drive(come_again_in(u64::from(u32::MAX), 1));
    let until = thread.state.due_at().unwrap();
    let day = Timestamp::from_micros(thread.now.as_micros() + 86_406_000_000);
    assert!(until < day, "nobody is believed who says never");
}

#[test]
fn what_turns_cost_is_summed_over_the_run() {
    let mut thread = Thread::thinking();
    let usage = Usage {
        input_tokens: 100,
        output_tokens: 10,
        cached_tokens: 50,
        cost_nano_usd: 7,
    };
    for calls in [vec![free("c1", Effect::Read, plain())], vec![]] {
        let calls = thread.with_ids(calls);
        thread.drive(Command::ModelReplied {
            frame: root(),
            attempt: 1,
            text: String::new(),
            calls,
            mode: InterruptMode::Batched,
            usage,
            model: "m".to_owned(),
            carried: None,
            confirm: None,
        });
        if thread.state.active().is_some() {
            let action = thread.action("c1").id;
            thread.run(action, done("x"));
            thread.think();
        }
    }
    let run = thread.state.run.as_ref().unwrap();
    assert_eq!(run.usage, usage.plus(usage));
}

#[test]
fn a_run_whose_model_gave_no_answer_waits_for_what_happened_and_not_for_something_like_it() {
    let error = || "no".to_owned();
    let retry_after = None;
    let cases = [
        (
            ModelTrouble::TimedOut { error: error() },
            3,
            Cause::ModelTimeout,
        ),
        (
            ModelTrouble::RateLimited {
                error: error(),
                retry_after,
            },
            3,
            Cause::RateLimit,
        ),
        (
            ModelTrouble::Unavailable { error: error() },
            3,
            Cause::ModelError,
        ),
        (
            ModelTrouble::Rejected { error: error() },
            1,
            Cause::ModelError,
        ),
    ];
    for (trouble, attempts, cause) in cases {
        let mut thread = Thread::thinking();
        for attempt in 1..=attempts {
            if attempt > 1 {
                assert_eq!(thread.state.interrupts.len(), 0, "{trouble:?}");
                thread.wait(60);
                thread.think();
            }
            thread.drive(Command::ModelFailed {
                frame: root(),
                attempt,
                trouble: trouble.clone(),
            });
        }
        let waits = Some(Status::Waiting(cause));
        assert_eq!(thread.state.status(), waits, "{trouble:?}");
    }
    let mut thread = Thread::thinking();
    for attempt in 1..=3 {
        if attempt > 1 {
            thread.think();
        }
        let frame = root();
        thread.drive(Command::ModelLost { frame, attempt });
    }
    let waits = Some(Status::Waiting(Cause::ModelError));
    assert_eq!(thread.state.status(), waits);
}

#[test]
fn a_person_who_gives_up_on_the_model_fails_the_run() {
    let mut thread = Thread::thinking();
    let trouble = ModelTrouble::Rejected {
        error: "401".to_owned(),
    };
    thread.drive(Command::ModelFailed {
        frame: root(),
        attempt: 1,
        trouble,
    });
    let events = thread.answer(vec![reject("")]).unwrap();
    let ended = Event::RunEnded {
        outcome: RunOutcome::Failed {
            code: "model_unavailable".to_owned(),
            message: "401".to_owned(),
        },
    };
    assert_eq!(events.last(), Some(&ended));
}

#[test]
fn an_answer_of_the_model_to_another_attempt_is_refused() {
    let mut thread = Thread::thinking();
    thread.drive(Command::ModelLost {
        frame: root(),
        attempt: 1,
    });
    thread.think();
    let late = Command::ModelFailed {
        frame: root(),
        attempt: 1,
        trouble: ModelTrouble::Rejected {
            error: "401".to_owned(),
        },
    };
    let refusal = thread.tell(driver(), late).unwrap_err();
    let stale = Refusal::Stale("the frame does not wait for this answer of its model");
    assert_eq!(refusal, stale);
}

#[test]
fn new_input_is_refused_while_the_run_works_and_while_it_waits_and_taken_when_it_is_over() {
    let start = || Thread::start_command(holdpoint_core::Limits::default());
    let mut thread = Thread::thinking();
    assert_eq!(thread.tell(user("ann"), start()), Err(Refusal::RunActive));
    thread.reply("", vec![held("c1", "{}")]);
    let pending = vec![thread.pending().id];
    assert_eq!(
        thread.tell(user("ann"), start()),
        Err(Refusal::InterruptPending { pending })
    );
    thread.answer(vec![reject("")]).unwrap();
    thread.think();
    thread.reply("bye", vec![]);
    assert_eq!(thread.state.plan_version, 1);
    thread.tell(user("ann"), start()).unwrap();
    assert_eq!(thread.state.plan_version, 2);
}

#[test]
fn a_run_for_another_tenant_finds_no_thread() {
    let mut thread = Thread::thinking();
    thread.reply("bye", vec![]);
    let mut start = Thread::start_command(holdpoint_core::Limits::default());
    if let Command::StartRun { tenant, .. } = &mut start {
        "other".clone_into(tenant);
    }
    assert_eq!(thread.tell(user("ann"), start), Err(Refusal::NotFound));
}
