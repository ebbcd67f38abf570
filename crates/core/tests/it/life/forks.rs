//! A thread that begins where another one stood.

use holdpoint_core::{
    Answer, Cause, Command, Confirmation, Decision, Effect, Event, Index, Limits, Message, Refusal,
    State, Status, Subject, ThreadId, ToolStatus,
};

use crate::thread::{TENANT, Thread, done, free, held, names, plain, question, say, stepped, user};

fn command(from: &State) -> Command {
    Command::Fork {
        thread: ThreadId::of_session(TENANT, "teller", "s2"),
        session: "s2".to_owned(),
        from: Box::new(from.clone()),
    }
}

/// A fork of a thread as it is now, with all that was said there.
fn fork(parent: &Thread) -> Thread {
    let mut fork = Thread::new();
    fork.now = parent.now;
    fork.transcript = parent.transcript.clone();
    fork.memos = parent.memos.clone();
    fork.wait(10);
    fork.tell(user("eve"), command(&parent.state)).unwrap();
    fork
}

#[test]
fn what_is_pending_is_asked_anew_and_answered_apart() {
    let mut parent = Thread::asked(vec![held("c1", "{}"), free("c2", Effect::Read, plain())]);
    let (old, old_run) = (parent.pending().clone(), parent.state.run.clone().unwrap());
    let mut fork = fork(&parent);
    let events: Vec<&str> = fork.entries.iter().map(|it| it.event.name()).collect();
    assert_eq!(events, ["thread_created", "forked", "interrupt_raised"]);
    let new = fork.pending().clone();
    assert_eq!(new.supersedes, Some(old.id));
    assert_ne!((new.id, &new.nonce, new.run), (old.id, &old.nonce, old.run));
    let run = fork.state.run.clone().unwrap();
    assert_eq!(new.run, run.id);
    assert_eq!(new.requester, user("eve").actor);
    assert_ne!(run.id, old_run.id);
    assert_eq!(
        fork.state.status(),
        Some(Status::Waiting(Cause::HumanApproval))
    );

    fork.answer(vec![Decision::APPROVE]).unwrap();
    for id in ["c1", "c2"] {
        let (here, there) = (fork.action(id), parent.action(id));
        assert_eq!(
            here.id, there.id,
            "the conversation goes on with the same calls"
        );
        assert_ne!(
            here.idempotency_key(fork.state.thread),
            there.idempotency_key(parent.state.thread),
            "and what they do is done once more"
        );
        assert_eq!(here.run, run.id);
    }
    assert_eq!(fork.work().len(), 2);
    assert_eq!(parent.work(), [], "nothing happens where it came from");
    parent.answer(vec![crate::thread::reject("no")]).unwrap();
}

#[test]
fn the_conversation_is_that_of_the_parent_and_goes_on() {
    let parent = Thread::asked(vec![held("c1", "{}")]);
    let mut fork = fork(&parent);
    fork.answer(vec![Decision::APPROVE]).unwrap();
    let action = fork.action("c1").id;
    fork.run(action, done("paid"));
    fork.think();
    fork.reply("All done.", vec![]);
    assert_eq!(fork.state.status(), Some(Status::Finished));
    let messages = fork.transcript.messages();
    assert_eq!(messages.len(), 4, "{messages:?}");
    assert!(matches!(
        &messages[2],
        Message::Tool { content, status: ToolStatus::Success, .. } if content == "paid"
    ));
}

#[test]
fn a_fork_of_a_run_that_is_over_waits_for_an_input() {
    let mut parent = Thread::thinking();
    parent.reply("Hello.", vec![]);
    let mut fork = fork(&parent);
    assert_eq!((fork.state.status(), fork.work()), (None, vec![]));
    let mut start = Thread::start_command(Limits::default());
    if let Command::StartRun { thread, .. } = &mut start {
        *thread = fork.state.thread;
    }
    let events = fork.tell(user("eve"), start).unwrap();
    assert_eq!(names(&events), ["run_started"]);
    assert_eq!(fork.state.plan_version, parent.state.plan_version + 1);
}

#[test]
fn a_question_of_a_tool_and_one_in_plain_words_are_asked_anew_too() {
    let mut parent = Thread::asked(vec![stepped("c1", plain())]);
    let action = parent.action("c1").id;
    parent.start(action);
    parent
        .suspend(action, "where", question("Where to?"))
        .unwrap();
    let mut forked = fork(&parent);
    forked.answer(vec![say("Berlin")]).unwrap();
    assert_eq!(forked.work().len(), 1, "the tool is entered again");
    let prompt = crate::thread::prompt("Where to?");
    let recalled = forked
        .memos
        .of(action)
        .answer("where", &prompt)
        .unwrap()
        .cloned();
    assert!(recalled.is_some(), "with the answer");

    let mut parent = Thread::thinking();
    parent.confirm = Some(Confirmation::standard());
    parent.reply("Are you sure?", vec![]);
    let mut forked = fork(&parent);
    assert!(matches!(
        forked.question().subject,
        Subject::Confirmation { reply: 0, .. }
    ));
    forked.answer(vec![Decision::APPROVE]).unwrap();
    assert_eq!(forked.work().len(), 1);
}

#[test]
fn nothing_that_anybody_allowed_and_nothing_in_the_air_is_carried_over() {
    let mut approved = Thread::asked(vec![held("c1", "{}")]);
    approved.answer(vec![Decision::APPROVE]).unwrap();
    let (started, _) = Thread::started(Effect::Write, plain());
    let mut stopping = Thread::started(Effect::Write, plain()).0;
    stopping.cancel();
    for (parent, why) in [
        (approved, "allowed"),
        (started, "being made"),
        (stopping, "being stopped"),
        (Thread::thinking(), "being asked"),
    ] {
        assert!(parent.state.forkable().is_err());
        let refused = Thread::new().tell(user("eve"), command(&parent.state));
        let refusal = refused.unwrap_err();
        assert_eq!(refusal.code(), "not_forkable");
        assert!(refusal.to_string().contains(why), "{refusal}");
    }
}

#[test]
fn a_stepped_tool_that_a_person_let_begin_is_not_carried_over() {
    let gated = crate::thread::gated();
    let tool = crate::thread::stepped_tool(plain());
    let mut parent = Thread::asked(vec![crate::thread::call("c1", tool, "{}", gated)]);
    parent.answer(vec![Decision::APPROVE]).unwrap();
    let action = parent.action("c1").id;
    parent.start(action);
    parent
        .suspend(action, "where", question("Where to?"))
        .unwrap();
    assert!(parent.state.forkable().is_err());
}

#[test]
fn a_session_that_exists_and_a_foreign_thread_are_refused() {
    let parent = Thread::asked(vec![held("c1", "{}")]);
    let mut taken = fork(&parent);
    let again = taken.tell(user("eve"), command(&parent.state));
    assert_eq!(again, Err(Refusal::ThreadExists));
    let stranger =
        holdpoint_core::Principal::new(holdpoint_core::PrincipalKind::User, "elsewhere", "mallory");
    let refused = Thread::new().tell(stranger, command(&parent.state));
    assert_eq!(refused, Err(Refusal::NotFound));
    let nowhere = Thread::new().tell(user("eve"), command(&State::default()));
    assert_eq!(nowhere, Err(Refusal::NotFound));
}

#[test]
fn a_fork_is_found_by_its_run_and_by_its_parent_and_knows_where_it_began() {
    let parent = Thread::asked(vec![held("c1", "{}")]);
    let fork = fork(&parent);
    let origin = fork.state.forked.unwrap();
    let expected = (parent.state.thread, parent.state.version, parent.state.hash);
    assert_eq!((origin.parent, origin.at, origin.hash), expected);
    let found = |index, key: String| {
        fork.rows
            .iter()
            .any(|row| (row.index, &row.key) == (index, &key))
    };
    let run = fork.state.run.as_ref().unwrap().id;
    assert!(found(Index::Run, run.to_string()));
    assert!(found(Index::Fork, parent.state.thread.to_string()));
}

#[test]
fn a_fork_may_be_forked_but_not_for_ever() {
    let mut thread = Thread::asked(vec![held("c1", "{}")]);
    for depth in 1..=16 {
        thread = fork(&thread);
        assert_eq!(thread.state.forked.unwrap().depth, depth);
    }
    let refused = Thread::new().tell(user("eve"), command(&thread.state));
    assert_eq!(refused.unwrap_err().code(), "not_forkable");
}

#[test]
fn time_that_a_question_had_is_given_again() {
    let parent = Thread::asked(vec![crate::thread::call(
        "c1",
        crate::thread::tool("pay", "1", Effect::Write, plain()),
        "{}",
        crate::thread::gated_for(60, holdpoint_core::OnTimeout::Reject),
    )]);
    let fork = fork(&parent);
    let (old, new) = (parent.pending(), fork.pending());
    let open = |it: &holdpoint_core::Interrupt| it.expires_at.unwrap().since(it.asked_at);
    assert_eq!(open(old), open(new));
    assert_ne!(old.expires_at, new.expires_at);
    let all = Answer::All(Decision::APPROVE);
    let mut fork = fork;
    assert!(
        fork.answer_to(parent.pending().id, all).is_err(),
        "the old question is another one"
    );
    assert!(matches!(fork.entries[1].event, Event::Forked { .. }));
}
