//! What guardrails hold back, and which calls they flag.

use holdpoint_core::{
    Allowed, Answer, Cause, Command, Decision, DecisionKind, Digest, Event, Flag, FramePath,
    FramePhase, GrantTerms, HeldReply, InterruptKind, InterruptMode, InterruptStatus, JudgedCall,
    Limits, Matches, Message, Refusal, RunOutcome, Scope, Span, Status, Subject, Supersede, Terms,
    ToolCall, Usage, Verdict, Work,
};

use crate::thread::{
    Thread, call, done, driver, edit, gated, gated_for, held, names, path, plain, reject, restated,
    task, thinking, tool, user,
};

const WORDS: &str = "Your card is 4111 1111 1111 1111.";

fn flags() -> Vec<Flag> {
    vec![Flag::new("cards", "it says a card number")]
}

fn say(message: &str) -> Decision {
    Decision::Respond {
        message: message.to_owned(),
    }
}

/// The model of a frame, which was just called, said this, and it is held.
fn hold_in(thread: &mut Thread, frame: &FramePath, reply: HeldReply) -> Vec<Event> {
    let attempt = thinking(&thread.state, frame).unwrap();
    thread.drive(Command::HoldOutput {
        frame: frame.clone(),
        attempt,
        reply: Box::new(reply),
        flags: flags(),
    })
}

fn reply() -> HeldReply {
    HeldReply {
        text: WORDS.to_owned(),
        usage: Usage {
            input_tokens: 5,
            output_tokens: 3,
            ..Usage::default()
        },
        ..HeldReply::default()
    }
}

fn holding() -> Thread {
    let mut thread = Thread::thinking();
    hold_in(&mut thread, &FramePath::root(), reply());
    thread
}

/// The driver says what was let pass, as it is in the journal.
fn said(thread: &mut Thread, frame: &FramePath, calls: Vec<JudgedCall>) -> Command {
    let held = thread.transcript.held(frame).unwrap().clone();
    let calls = thread.with_ids(calls);
    Command::ModelReplied {
        frame: frame.clone(),
        attempt: 1,
        text: held.text,
        calls,
        mode: InterruptMode::Batched,
        usage: held.usage,
        model: held.model,
        carried: held.carried,
        confirm: None,
    }
}

fn assistant(thread: &Thread) -> Vec<String> {
    let messages = thread.transcript.messages().into_iter();
    let said = |message| match message {
        Message::Assistant { content, .. } => Some(content),
        _ => None,
    };
    messages.filter_map(said).collect()
}

fn everything(thread: &Thread) -> String {
    format!("{:?}", thread.transcript.messages())
}

#[test]
fn words_that_are_held_are_in_no_conversation_and_the_run_waits_for_a_review() {
    let mut thread = Thread::thinking();
    let events = hold_in(&mut thread, &FramePath::root(), reply());
    assert_eq!(names(&events), ["output_held", "interrupt_raised"]);
    assert_eq!(thread.state.status(), Some(Status::Waiting(Cause::Review)));
    assert_eq!(thread.work(), []);
    let asked = thread.pending();
    assert_eq!(
        (asked.kind, asked.cause),
        (InterruptKind::Review, Cause::Review)
    );
    let Subject::Output { reply: at, text } = &thread.question().subject else {
        panic!("{asked:?}");
    };
    assert_eq!(*text, Digest::of(WORDS.as_bytes()));
    let place = usize::try_from(*at).unwrap() - 1;
    let held = &thread.entries[place].event;
    assert!(matches!(held, Event::OutputHeld { reply, .. } if reply.text == WORDS));
    assert_eq!(
        thread.question().description.as_deref(),
        Some("Guardrail `cards`: it says a card number")
    );
    use DecisionKind::{Approve, Reject, Respond};
    assert_eq!(thread.allowed(), [Approve, Respond, Reject]);
    assert!(!everything(&thread).contains("4111"));
    assert_eq!(thread.transcript.last_text(), None);
    let root = FramePath::root();
    assert_eq!(thread.transcript.held(&root).unwrap().text, WORDS);
}

#[test]
fn what_is_let_pass_is_said_as_any_reply_is_and_counted_once() {
    let mut thread = holding();
    let events = thread.answer(vec![Decision::APPROVE]).unwrap();
    assert_eq!(names(&events), ["answered"]);
    let root = FramePath::root();
    let frame = root.clone();
    assert_eq!(thread.work(), [Work::Say { frame, attempt: 1 }]);
    assert_eq!(thread.state.status(), Some(Status::Running));
    assert_eq!(assistant(&thread), [""; 0], "nobody said it yet");
    let command = said(&mut thread, &root, vec![]);
    let events = thread.drive(command.clone());
    assert_eq!(names(&events), ["model_replied", "run_ended"]);
    assert_eq!(assistant(&thread), [WORDS]);
    assert_eq!(thread.transcript.held(&root), None);
    let usage = thread.state.run.as_ref().unwrap().usage;
    assert_eq!((usage.input_tokens, usage.output_tokens), (5, 3));
    let turns = thread
        .entries
        .iter()
        .filter(|it| it.event.name() == "model_started");
    assert_eq!(turns.count(), 1, "the model was not asked again");
    // Once is enough.
    assert!(thread.drive_refused(command));
}

#[test]
fn nothing_else_is_said_than_what_the_person_saw() {
    let root = FramePath::root();
    let mut thread = holding();
    thread.answer(vec![Decision::APPROVE]).unwrap();
    let before = thread.state.clone();
    for (words, attempt) in [("Trust me.", 1), (WORDS, 2)] {
        let mut command = said(&mut thread, &root, vec![]);
        if let Command::ModelReplied {
            text, attempt: at, ..
        } = &mut command
        {
            (*text, *at) = (words.to_owned(), attempt);
        }
        assert!(thread.drive_refused(command), "{words}");
    }
    assert_eq!(thread.state, before);
    // Nor is anything said that nobody has decided on.
    let mut undecided = holding();
    let command = said(&mut undecided, &root, vec![]);
    assert!(undecided.drive_refused(command));
}

#[test]
fn the_calls_beside_it_are_judged_only_then_and_as_usual() {
    let root = FramePath::root();
    let mut thread = Thread::thinking();
    let wish = ToolCall {
        id: "c1".to_owned(),
        name: "pay".to_owned(),
        arguments: "{}".to_owned(),
    };
    let with_calls = HeldReply {
        calls: vec![wish],
        ..reply()
    };
    hold_in(&mut thread, &root, with_calls);
    assert!(thread.state.actions.is_empty());
    thread.answer(vec![Decision::APPROVE]).unwrap();
    assert_eq!(thread.transcript.held(&root).unwrap().calls.len(), 1);
    let command = said(&mut thread, &root, vec![held("c1", "{}")]);
    let events = thread.drive(command);
    assert_eq!(names(&events), ["model_replied", "interrupt_raised"]);
    assert_eq!(thread.pending().kind, InterruptKind::Approval);
    thread.answer(vec![Decision::APPROVE]).unwrap();
    let action = thread.action("c1").id;
    thread.run(action, done("paid"));
    assert_eq!(thread.work().len(), 1, "the model is asked again");
}

#[test]
fn a_persons_words_take_the_place_of_the_models_and_of_its_calls() {
    let mut thread = holding();
    assert_eq!(
        thread.answer(vec![say(" ")]).unwrap_err().code(),
        "misfit",
        "nothing is not said instead"
    );
    let events = thread.answer(vec![say("I cannot tell you.")]).unwrap();
    assert_eq!(names(&events), ["answered", "model_replied", "run_ended"]);
    assert!(
        matches!(&events[0], Event::Answered { status, .. } if *status == InterruptStatus::Resolved)
    );
    assert_eq!(assistant(&thread), ["I cannot tell you."]);
    assert!(!everything(&thread).contains("4111"));
    assert_eq!(thread.state.status(), Some(Status::Finished));
}

#[test]
fn a_model_whose_words_were_withheld_is_told_why_and_answers_again() {
    for (message, told) in [
        ("no numbers", "They said: no numbers"),
        ("", "Guardrail `cards`: it says a card number"),
    ] {
        let mut thread = holding();
        let events = thread.answer(vec![reject(message)]).unwrap();
        assert_eq!(names(&events), ["answered"]);
        let Some(Message::User { content }) = thread.transcript.messages().pop() else {
            panic!("it was not told");
        };
        assert!(
            content.starts_with("A reviewer held your last answer back") && content.contains(told),
            "{content}"
        );
        assert!(!everything(&thread).contains("4111"));
        thread.think();
        let events = thread.reply("I have sent it by mail.", vec![]);
        assert_eq!(names(&events), ["model_replied", "run_ended"]);
        assert_eq!(assistant(&thread), ["I have sent it by mail."]);
    }
}

#[test]
fn a_model_that_says_it_again_and_again_comes_to_the_limit_of_turns() {
    let mut thread = Thread::new();
    thread.start_run(Limits {
        turns: 2,
        ..Limits::default()
    });
    for _ in 0..2 {
        thread.think();
        hold_in(&mut thread, &FramePath::root(), reply());
        thread.answer(vec![reject("")]).unwrap();
    }
    let events = thread.think();
    assert_eq!(names(&events), ["stop_requested", "run_ended"]);
    assert!(matches!(
        events.last(),
        Some(Event::RunEnded { outcome: RunOutcome::Failed { code, .. } }) if code == "limit_turns"
    ));
}

#[test]
fn a_subagents_words_are_held_in_its_frame_and_told_there() {
    let frame = path("reader#1");
    let open = || {
        let mut thread = Thread::asked(vec![task("c1", "reader")]);
        let action = thread.action("c1").id;
        thread.start(action);
        thread.think_in(&frame);
        hold_in(&mut thread, &frame, reply());
        thread
    };
    let mut thread = open();
    assert_eq!(thread.pending().frame, frame);
    thread.answer(vec![reject("shorter")]).unwrap();
    let told = thread.transcript.frame(&frame).unwrap().messages();
    assert!(matches!(told.last(), Some(Message::User { content }) if content.contains("shorter")));
    assert!(!everything(&thread).contains("shorter"), "the agent above");
    let events = thread.last_word(&frame, "Read.");
    assert_eq!(names(&events), ["model_replied", "frame_closed"]);

    let mut thread = open();
    thread.answer(vec![Decision::APPROVE]).unwrap();
    let command = said(&mut thread, &frame, vec![]);
    assert_eq!(
        names(&thread.drive(command)),
        ["model_replied", "frame_closed"]
    );
    assert_eq!(thread.told(), [("c1".to_owned(), WORDS.to_owned())]);
}

#[test]
fn a_cancel_or_a_new_input_closes_the_question_and_nobody_hears_it() {
    let mut thread = holding();
    let events = thread.cancel();
    let expected = ["interrupt_closed", "stop_requested", "run_ended"];
    assert_eq!(names(&events), expected);
    assert!(!everything(&thread).contains("4111"));
    assert_eq!(thread.transcript.held(&FramePath::root()), None);
    // Also after it was let pass.
    let mut thread = holding();
    thread.answer(vec![Decision::APPROVE]).unwrap();
    let command = said(&mut thread, &FramePath::root(), vec![]);
    thread.cancel();
    assert!(thread.drive_refused(command));
    assert!(!everything(&thread).contains("4111"));
    let mut thread = holding();
    let mut start = Thread::start_command(Limits::default());
    if let Command::StartRun { supersede, .. } = &mut start {
        *supersede = Supersede::Waiting;
    }
    thread.tell(user("ann"), start).unwrap();
    assert_eq!(thread.work().len(), 1);
    assert!(!everything(&thread).contains("4111"));
}

#[test]
fn a_pause_holds_what_was_let_pass_until_it_goes_on() {
    let mut thread = holding();
    thread
        .tell(user("ann"), Command::Pause { run: None })
        .unwrap();
    thread.answer(vec![Decision::APPROVE]).unwrap();
    assert_eq!(thread.work(), []);
    assert_eq!(thread.state.status(), Some(Status::Paused));
    thread
        .tell(user("ann"), Command::Continue { run: None })
        .unwrap();
    assert!(matches!(thread.work().as_slice(), [Work::Say { .. }]));
}

#[test]
fn a_breakpoint_after_the_model_is_reached_when_something_is_said() {
    for decision in [Decision::APPROVE, say("Nothing.")] {
        let mut thread = Thread::with_breakpoints(&[], &["model"]);
        thread.think();
        let root = FramePath::root();
        hold_in(&mut thread, &root, reply());
        assert_eq!(thread.pending().kind, InterruptKind::Review);
        let approved = decision == Decision::APPROVE;
        thread.answer(vec![decision]).unwrap();
        if approved {
            let command = said(&mut thread, &root, vec![]);
            thread.drive(command);
        }
        assert_eq!(thread.pending().kind, InterruptKind::Breakpoint);
        thread.answer(vec![Decision::APPROVE]).unwrap();
        assert_eq!(thread.state.status(), Some(Status::Finished));
    }
}

#[test]
fn a_fork_asks_anew_about_the_same_words_and_says_them_there() {
    let parent = holding();
    let mut fork = Thread::new();
    let command = |from: &Thread| Command::Fork {
        thread: holdpoint_core::ThreadId::of_session(crate::thread::TENANT, "teller", "s2"),
        session: "s2".to_owned(),
        from: Box::new(from.state.clone()),
    };
    for entry in &parent.entries {
        fork.transcript.apply(&entry.event);
    }
    fork.tell(user("ann"), command(&parent)).unwrap();
    assert_eq!(
        fork.question().subject,
        Subject::Output {
            reply: 0,
            text: Digest::of(WORDS.as_bytes())
        }
    );
    fork.answer(vec![Decision::APPROVE]).unwrap();
    // What a person allowed there does not count here.
    let mut other = Thread::new();
    let refused = other.tell(user("ann"), command(&fork));
    assert!(matches!(refused, Err(Refusal::NotForkable(_))));
    let command = said(&mut fork, &FramePath::root(), vec![]);
    fork.drive(command);
    assert_eq!(assistant(&fork), [WORDS]);
    assert_eq!(parent.pending().kind, InterruptKind::Review);
}

#[test]
fn after_a_backup_it_is_asked_anew_and_no_approval_counts() {
    let mut thread = holding();
    thread.restore();
    assert_eq!(thread.work(), []);
    thread.answer(vec![Decision::APPROVE]).unwrap();
    assert!(matches!(thread.question().subject, Subject::Output { .. }));
    thread.answer(vec![Decision::APPROVE]).unwrap();
    let old = said(&mut thread, &FramePath::root(), vec![]);
    // It was let pass, and not said before the next backup: its model is asked again.
    thread.restore_again();
    thread.answer(vec![Decision::APPROVE]).unwrap();
    assert!(matches!(thread.work().as_slice(), [Work::CallModel { .. }]));
    assert!(thread.drive_refused(old));
    thread.think();
    thread.reply("Good day.", vec![]);
    assert_eq!(assistant(&thread), ["Good day."]);
}

#[test]
fn a_long_text_stays_out_of_the_head_and_so_do_long_reasons() {
    let mut thread = Thread::thinking();
    let attempt = 1;
    let flags = (0..16).map(|at| Flag::new(format!("g{at}"), &"é".repeat(9_000)));
    thread.drive(Command::HoldOutput {
        frame: FramePath::root(),
        attempt,
        reply: Box::new(HeldReply {
            text: "a".repeat(100_000),
            ..HeldReply::default()
        }),
        flags: flags.collect(),
    });
    let head = serde_json::to_string(&thread.state).unwrap();
    assert!(head.len() < 8 * 1_024, "{}", head.len());
    // Each of them has its say.
    let shown = thread.question().description.clone().unwrap();
    for at in 0..16 {
        assert!(
            shown.contains(&format!("Guardrail `g{at}`: ééé")),
            "{shown}"
        );
    }
}

#[test]
fn an_answer_of_a_call_that_was_lost_does_not_count() {
    let mut thread = Thread::thinking();
    thread.drive(Command::ModelLost {
        frame: FramePath::root(),
        attempt: 1,
    });
    let late = Command::HoldOutput {
        frame: FramePath::root(),
        attempt: 1,
        reply: Box::new(reply()),
        flags: flags(),
    };
    assert!(thread.tell(driver(), late).is_err());
    // And what holds nothing back is no reason to wait.
    thread.wait(10);
    thread.think();
    let empty = Command::HoldOutput {
        frame: FramePath::root(),
        attempt: 2,
        reply: Box::new(reply()),
        flags: vec![],
    };
    assert!(thread.tell(driver(), empty).is_err());
}

fn flagged(id: &str, verdict: Verdict) -> JudgedCall {
    let tool = tool("pay", "1", holdpoint_core::Effect::Write, plain());
    call(id, tool, r#"{"to":"a"}"#, verdict.flagged(flags()))
}

#[test]
fn a_flagged_call_is_reviewed_whatever_allows_it_and_the_reason_is_shown() {
    let mut thread = Thread::asked(vec![flagged("c1", Verdict::Allow)]);
    let asked = thread.pending();
    assert_eq!(
        (asked.kind, asked.cause),
        (InterruptKind::Review, Cause::Review)
    );
    assert_eq!(
        thread.question().description.as_deref(),
        Some(
            "Guardrail `cards`: it says a card number\n\nTool execution requires approval\n\nTool: pay\nArgs: {\"to\":\"a\"}"
        )
    );
    assert_eq!(thread.allowed(), Allowed::standard().as_slice());
    let Subject::Action { preview, .. } = &thread.question().subject else {
        panic!("{asked:?}");
    };
    let shown = thread.question().description.clone().unwrap();
    assert_eq!(
        *preview,
        Digest::of(shown.as_bytes()),
        "bound to the answer"
    );
    assert_eq!(thread.work(), []);
    thread.answer(vec![Decision::APPROVE]).unwrap();
    let action = thread.action("c1").id;
    let events = thread.run(action, done("paid"));
    assert_eq!(names(&events), ["action_finished"]);
    // The same without the guardrail asks nobody.
    let tool = tool("pay", "1", holdpoint_core::Effect::Write, plain());
    let free = Thread::asked(vec![call("c1", tool, r#"{"to":"a"}"#, Verdict::Allow)]);
    assert!(free.state.interrupts.is_empty() && free.work().len() == 1);
}

#[test]
fn what_the_policy_wants_stays_and_what_it_denies_stays_denied() {
    let thread = Thread::asked(vec![flagged(
        "c1",
        gated_for(60, holdpoint_core::OnTimeout::Reject),
    )]);
    assert_eq!(thread.pending().kind, InterruptKind::Review);
    assert!(thread.pending().expires_at.is_some());
    assert_eq!(thread.allowed(), DecisionKind::CONFIGURABLE);
    let thread = Thread::asked(vec![flagged("c1", Verdict::Deny)]);
    assert!(thread.state.interrupts.is_empty() && thread.state.actions.is_empty());
}

#[test]
fn a_time_out_rejects_a_flagged_call_as_any_other() {
    let mut thread = Thread::asked(vec![flagged(
        "c1",
        gated_for(60, holdpoint_core::OnTimeout::Reject),
    )]);
    thread.wait(60);
    thread.tick();
    assert!(thread.state.actions.is_empty());
    assert_eq!(thread.work().len(), 1, "its model goes on");
}

#[test]
fn no_grant_lets_a_flagged_call_pass_and_none_is_given_for_it() {
    let terms = GrantTerms {
        scope: Scope::Thread,
        matches: Matches::Tool,
        expires_in: None,
        uses: None,
    };
    let always = Decision::Approve { grant: Some(terms) };
    let mut thread = Thread::asked(vec![held("c1", r#"{"to":"a"}"#)]);
    thread.answer(vec![always.clone()]).unwrap();
    let action = thread.action("c1").id;
    thread.run(action, done("paid"));
    let pass = |thread: &mut Thread, calls| {
        thread.think();
        thread.reply("", calls)
    };
    let events = pass(&mut thread, vec![held("c2", r#"{"to":"a"}"#)]);
    assert_eq!(names(&events), ["model_replied"], "by the grant");
    let action = thread.action("c2").id;
    thread.run(action, done("paid"));
    let events = pass(&mut thread, vec![flagged("c3", gated())]);
    assert_eq!(names(&events), ["model_replied", "interrupt_raised"]);
    assert_eq!(
        thread.answer(vec![always]).unwrap_err().code(),
        "misfit",
        "nothing can be granted with it"
    );
}

#[test]
fn of_several_calls_in_one_question_one_flag_makes_it_a_review_and_alone_only_its_own() {
    let calls = || vec![held("c1", "{}"), flagged("c2", Verdict::Allow)];
    let thread = Thread::asked(calls());
    assert_eq!(thread.pending().kind, InterruptKind::Review);
    assert_eq!(thread.pending().asks.len(), 2);
    let mut thread = Thread::thinking();
    thread.reply_in(&FramePath::root(), InterruptMode::PerCall, "", calls());
    let kind = |id: &str| {
        let asked = thread.asked_about(thread.action(id).id);
        thread.state.interrupts[&asked].kind
    };
    assert_eq!(kind("c1"), InterruptKind::Approval);
    assert_eq!(kind("c2"), InterruptKind::Review);
}

#[test]
fn what_is_asked_again_still_says_what_was_found() {
    let mut thread = Thread::asked(vec![flagged("c1", gated())]);
    let (old, action) = (thread.pending().id, thread.action("c1").id);
    let mut newer = thread.action("c1").tool.clone();
    newer.version = "2".to_owned();
    // The newer policy has words of its own, and would even let it run.
    let terms = Terms {
        description: Some("Pay?".to_owned()),
        ..Terms::new(Allowed::standard())
    };
    for verdict in [Verdict::Ask(terms), Verdict::Allow] {
        newer.version.push('+');
        let id = thread.pending().id;
        let again = restated(action, newer.clone(), verdict);
        thread.restate(Some(id), vec![again]).unwrap();
        assert_ne!(thread.pending().id, old);
        assert_eq!(thread.pending().kind, InterruptKind::Review);
        let told = thread.question().description.clone().unwrap();
        assert!(told.starts_with("Guardrail `cards`: "), "{told}");
    }
    thread.restore();
    thread.answer(vec![Decision::APPROVE]).unwrap();
    assert_eq!(thread.pending().kind, InterruptKind::Review);
}

#[test]
fn an_edit_that_guardrails_do_not_let_through_changes_nothing() {
    let mut thread = Thread::asked(vec![flagged("c1", gated())]);
    let (interrupt, action) = (thread.pending().id, thread.action("c1").id);
    let reply = |problem: Option<&str>| holdpoint_core::Reply {
        interrupt,
        answer: Answer::ByPosition(vec![edit("pay", r#"{"to":"b"}"#)]),
        misfits: problem
            .map(|problem| (action, problem.to_owned()))
            .into_iter()
            .collect(),
        lacking: vec![],
        shown: vec![],
        bond: holdpoint_core::Bond::default(),
    };
    let before = thread.state.clone();
    let answers = vec![reply(Some("the guardrail `cards` flags this: two numbers"))];
    let refused = thread.tell(user("bob"), Command::Answer { answers });
    assert!(refused.unwrap_err().to_string().contains("two numbers"));
    assert_eq!(thread.state, before);
    let answers = vec![reply(None)];
    thread
        .tell(user("bob"), Command::Answer { answers })
        .unwrap();
    assert!(thread.is_ready("c1"));
}

#[test]
fn how_long_a_frame_holds_words_is_in_its_phase() {
    let mut thread = holding();
    let phase = |thread: &Thread| {
        thread.state.active().unwrap().frames[&FramePath::root()]
            .phase
            .clone()
    };
    let text = Digest::of(WORDS.as_bytes());
    assert_eq!(phase(&thread), FramePhase::Held { attempt: 1, text });
    assert!(thread.state.due_at().is_none(), "for as long as it takes");
    thread.answer(vec![Decision::APPROVE]).unwrap();
    assert_eq!(phase(&thread), FramePhase::Cleared { attempt: 1, text });
    let worked = thread.state.active().unwrap().worked;
    thread.wait(10_000);
    assert_eq!(thread.state.active().unwrap().worked, worked);
    assert_ne!(worked, Span::from_secs(10_000));
}
