//! A thread that is found in a backup: nothing goes on by itself, and nothing that was allowed is still allowed.

use holdpoint_core::{
    ActionId, ActionStatus, Answer, Breakpoints, Cause, Command, Confirmation, Decision,
    DecisionKind, Effect, Event, Index, InterruptId, InterruptKind, InterruptStatus, Limits,
    OnTimeout, Outcome, Principal, PrincipalKind, Refusal, Span, Status, Subject, Supersede,
    ThreadId, Wait, Work,
};

use crate::thread::{
    TENANT, Thread, call, committed, done, driver, free, gated, gated_for, held, names, path,
    plain, prompt, question, reject, restore_command, say, stepped, task, tool, user,
    with_compensation, with_lookup,
};

/// The question whether the run goes on.
fn whether(thread: &Thread) -> InterruptId {
    let restored =
        |it: &&holdpoint_core::Interrupt| matches!(it.asks[0].subject, Subject::Restored { .. });
    thread.state.interrupts.values().find(restored).unwrap().id
}

fn go_on(thread: &mut Thread) -> Vec<Event> {
    let question = whether(thread);
    let all = Answer::All(Decision::APPROVE);
    thread.answer_to(question, all).unwrap()
}

fn give_up(thread: &mut Thread) -> Vec<Event> {
    let question = whether(thread);
    thread.answer_to(question, Answer::All(reject(""))).unwrap()
}

fn status(thread: &Thread, action: ActionId) -> &ActionStatus {
    &thread.state.actions[&action].status
}

#[test]
fn a_pending_question_is_closed_and_asked_anew_only_if_the_run_goes_on() {
    let mut thread = Thread::asked(vec![held("c1", r#"{"to":"ann"}"#), held("c2", "{}")]);
    let old = thread.pending().clone();
    let events = thread.restore();
    let expected = ["interrupt_closed", "restored", "interrupt_raised"];
    assert_eq!(names(&events), expected);
    assert!(
        matches!(&events[0], Event::InterruptClosed { interrupt, status: InterruptStatus::Canceled, reason, .. }
        if *interrupt == old.id && reason == "it was found in a backup of noon")
    );
    let asked = thread.pending().clone();
    assert_eq!(
        (asked.kind, asked.cause),
        (InterruptKind::Error, Cause::SystemRestart)
    );
    assert_eq!(
        thread.allowed(),
        [DecisionKind::Approve, DecisionKind::Reject]
    );
    let text = thread.question().description.clone().unwrap();
    assert!(text.contains("backup of noon"), "{text}");
    assert!(text.contains(r#"- was asked: pay {"to":"ann"}"#), "{text}");
    assert_eq!(
        thread.state.status(),
        Some(Status::Waiting(Cause::SystemRestart))
    );
    assert_eq!(thread.work(), []);
    let late = thread.answer_to(old.id, Answer::All(Decision::APPROVE));
    assert_eq!(late, Err(Refusal::NotPending { interrupt: old.id }));

    let events = go_on(&mut thread);
    assert_eq!(names(&events), ["answered", "interrupt_raised"]);
    assert_eq!(thread.work(), [], "going on allows nothing");
    let new = thread.pending().clone();
    assert_eq!(new.supersedes, Some(old.id));
    assert_eq!(new.asks, old.asks);
    assert_eq!((new.run, &new.requester), (old.run, &old.requester));
    assert_ne!((new.id, &new.nonce), (old.id, &old.nonce));
    assert_eq!(new.changes.len(), 1);
    thread
        .answer(vec![Decision::APPROVE, reject("no")])
        .unwrap();
    let action = thread.action("c1").id;
    thread.run(action, done("paid"));
    thread.think();
    thread.reply("Done.", vec![]);
    assert_eq!(thread.state.status(), Some(Status::Finished));
}

#[test]
fn giving_up_ends_the_run_and_nothing_was_done() {
    let mut thread = Thread::asked(vec![held("c1", "{}")]);
    thread.restore();
    let events = give_up(&mut thread);
    assert_eq!(names(&events), ["answered", "stop_requested", "run_ended"]);
    assert_eq!(thread.state.status(), Some(Status::Cancelled));
    thread.start_run(Limits::default());
}

#[test]
fn what_was_approved_and_not_begun_is_asked_about_anew() {
    let mut thread = Thread::asked(vec![held("c1", "{}"), held("c2", "{}")]);
    thread
        .answer(vec![Decision::APPROVE, Decision::APPROVE])
        .unwrap();
    assert_eq!(thread.work().len(), 2);
    thread.restore();
    assert_eq!(thread.work(), []);
    let action = thread.action("c1").id;
    assert_eq!(
        thread.state.actions[&action].warrant(),
        None,
        "the approval is gone"
    );
    let text = thread.question().description.clone().unwrap();
    assert!(
        text.contains("- was allowed and may have been done: pay {}"),
        "{text}"
    );

    go_on(&mut thread);
    assert_eq!(thread.work(), []);
    let asked = thread.pending().clone();
    assert_eq!(
        (asked.kind, asked.cause),
        (InterruptKind::Approval, Cause::HumanApproval)
    );
    assert_eq!(
        asked.asks.len(),
        2,
        "in one question, as they were asked before"
    );
    let respond = Decision::Respond {
        message: "it was paid".to_owned(),
    };
    thread.answer(vec![Decision::APPROVE, respond]).unwrap();
    assert_eq!(
        thread.work(),
        [Work::Start {
            action,
            not_before: None
        }]
    );
}

#[test]
fn a_write_that_nobody_had_to_allow_is_asked_about_and_a_read_is_not() {
    let mut thread = Thread::asked(vec![
        free("c1", Effect::Write, plain()),
        free("c2", Effect::Read, plain()),
        free("c3", Effect::Idempotent, plain()),
    ]);
    thread.restore();
    assert_eq!(thread.work(), []);
    go_on(&mut thread);
    let ids = ["c2", "c3"].map(|id| thread.action(id).id);
    let start = |action| Work::Start {
        action,
        not_before: None,
    };
    assert_eq!(thread.work(), ids.map(start));
    assert_eq!(thread.question().action_id, thread.action("c1").id);
    thread.answer(vec![Decision::APPROVE]).unwrap();
    assert_eq!(thread.work().len(), 3);
}

#[test]
fn a_write_that_was_begun_is_put_before_a_person_also_where_it_could_be_looked_up() {
    for hooks in [plain(), with_lookup()] {
        let (mut thread, action) = Thread::started(Effect::Write, hooks);
        let events = thread.restore();
        let expected = ["restored", "interrupt_raised", "interrupt_raised"];
        assert_eq!(names(&events), expected);
        assert_eq!(thread.work(), []);
        assert!(matches!(
            status(&thread, action),
            ActionStatus::InDoubt { .. }
        ));
        let doubt = thread.asked_about(action);
        let asked = &thread.state.interrupts[&doubt];
        assert_eq!(
            (asked.kind, asked.cause),
            (InterruptKind::Error, Cause::WriteUnknown)
        );
        go_on(&mut thread);
        assert_eq!(
            thread.work(),
            [],
            "the run goes on, and the write is still in doubt"
        );
        thread
            .answer_to(doubt, Answer::All(committed("receipt")))
            .unwrap();
        assert_eq!(thread.state.actions.len(), 0);
        thread.think();
        assert_eq!(thread.told(), [("c1".to_owned(), "receipt".to_owned())]);
    }
}

#[test]
fn a_write_that_was_not_made_is_made_again_under_its_key_once_both_are_answered() {
    let (mut thread, action) = Thread::started(Effect::Write, plain());
    let key = thread.state.actions[&action].idempotency_key(thread.state.thread);
    thread.restore();
    let doubt = thread.asked_about(action);
    thread
        .answer_to(doubt, Answer::All(Decision::NotCommitted))
        .unwrap();
    assert_eq!(thread.work(), [], "nobody said yet that the run goes on");
    go_on(&mut thread);
    assert_eq!(thread.work().len(), 1);
    thread.wait(100);
    let events = thread.start(action);
    assert!(
        matches!(&events[0], Event::ActionStarted { key: again, attempt: 2, .. } if *again == key)
    );
}

#[test]
fn what_was_being_looked_up_or_was_to_be_tried_again_is_in_doubt() {
    let (mut looking, action) = Thread::started(Effect::Write, with_lookup());
    looking.end(
        action,
        1,
        Outcome::Unknown {
            reason: "gone".to_owned(),
        },
    );
    assert!(matches!(
        status(&looking, action),
        ActionStatus::Unknown { .. }
    ));
    let (mut retrying, again) = Thread::started(Effect::Write, with_lookup());
    retrying.end(
        again,
        1,
        Outcome::Unknown {
            reason: "gone".to_owned(),
        },
    );
    retrying.look_up(again, holdpoint_core::Lookup::NotFound);
    assert!(matches!(
        status(&retrying, again),
        ActionStatus::Ready { .. }
    ));
    for (mut thread, action) in [(looking, action), (retrying, again)] {
        thread.restore();
        assert!(matches!(
            status(&thread, action),
            ActionStatus::InDoubt { .. }
        ));
        assert_eq!(thread.work(), []);
    }
}

#[test]
fn a_doubt_that_was_pending_stays_one_with_the_same_answers() {
    let (mut thread, action) = Thread::started(Effect::Write, with_compensation());
    thread.end(
        action,
        1,
        Outcome::Unknown {
            reason: "gone".to_owned(),
        },
    );
    let old = thread.pending().clone();
    thread.restore();
    let new = thread.state.interrupts[&thread.asked_about(action)].clone();
    assert_eq!((new.supersedes, &new.asks), (Some(old.id), &old.asks));
    assert_eq!(new.changes.len(), 1);
    // What a person says now counts, and undoing is said now.
    thread
        .answer_to(new.id, Answer::All(Decision::Compensate))
        .unwrap();
    let undoing = thread.compensation().id;
    assert_eq!(thread.work().len(), 1);
    thread.restore_again();
    assert_eq!(
        thread.work(),
        [],
        "but what was said before another backup does not"
    );
    assert!(matches!(
        status(&thread, undoing),
        ActionStatus::InDoubt { .. }
    ));
}

#[test]
fn reads_and_what_is_safe_to_repeat_are_as_after_a_crash() {
    for effect in [Effect::Read, Effect::Idempotent] {
        let (mut thread, action) = Thread::started(effect, plain());
        let events = thread.restore();
        assert_eq!(
            names(&events),
            ["action_unknown", "restored", "interrupt_raised"]
        );
        assert_eq!(thread.work(), []);
        go_on(&mut thread);
        assert_eq!(thread.work().len(), 1);
        thread.run(action, done("x"));
        assert_eq!(thread.state.actions.len(), 0);
    }
}

#[test]
fn a_model_that_was_being_asked_is_asked_again_without_another_turn() {
    let mut thread = Thread::thinking();
    let turns = thread.state.active().unwrap().turns;
    thread.restore();
    assert_eq!(thread.work(), []);
    assert!(thread.drive_refused(Command::StartModel {
        frame: path(""),
        epoch: 2
    }));
    go_on(&mut thread);
    thread.think();
    thread.reply("Hello.", vec![]);
    assert_eq!(thread.state.status(), Some(Status::Finished));
    assert_eq!(turns, 1);
}

#[test]
fn a_model_that_failed_for_good_is_tried_again() {
    let mut thread = Thread::thinking();
    let trouble = holdpoint_core::ModelTrouble::Rejected {
        error: "401".to_owned(),
    };
    let attempt = 1;
    thread.drive(Command::ModelFailed {
        frame: path(""),
        attempt,
        trouble,
    });
    thread.restore();
    assert_eq!(thread.pending().cause, Cause::SystemRestart);
    go_on(&mut thread);
    thread.think();
    thread.reply("Hello.", vec![]);
}

#[test]
fn a_run_between_two_turns_stops_too() {
    let mut thread = Thread::new();
    thread.start_run(Limits::default());
    assert_eq!(thread.work().len(), 1);
    thread.restore();
    assert_eq!(thread.work(), []);
    go_on(&mut thread);
    assert_eq!(thread.work().len(), 1);
}

#[test]
fn a_sleeping_tool_that_writes_is_asked_about_and_sleeps_anew() {
    let mut thread = Thread::asked(vec![stepped("c1", plain())]);
    let action = thread.action("c1").id;
    thread.start(action);
    thread.sleep(action, "nap", 60);
    thread.restore();
    assert_eq!(thread.state.due_at(), None);
    thread.wait(100);
    assert_eq!(thread.tick(), []);
    go_on(&mut thread);
    thread.answer(vec![Decision::APPROVE]).unwrap();
    thread.start(action);
    assert_eq!(
        thread.memo(action).sleep("nap").unwrap(),
        None,
        "it has not slept"
    );
    thread.sleep(action, "nap", 60);
    assert_eq!(thread.state.status(), Some(Status::Sleeping(None)));
}

#[test]
fn a_sleeping_tool_that_only_reads_wakes_in_its_time_and_waits_for_the_word() {
    let reads = holdpoint_core::ToolFacts {
        effect: Effect::Read,
        ..crate::thread::stepped_tool(plain())
    };
    let call = call("c1", reads, "{}", holdpoint_core::Verdict::Allow);
    let mut thread = Thread::asked(vec![call]);
    let action = thread.action("c1").id;
    thread.start(action);
    thread.sleep(action, "nap", 60);
    thread.restore();
    thread.wait(100);
    assert_eq!(names(&thread.tick()), ["woken"]);
    assert_eq!(thread.work(), []);
    go_on(&mut thread);
    assert_eq!(thread.work().len(), 1);
}

#[test]
fn a_paused_run_stays_paused_after_it_was_let_go_on() {
    let mut thread = Thread::new();
    thread.start_run(Limits::default());
    thread
        .tell(user("ann"), Command::Pause { run: None })
        .unwrap();
    assert!(!thread.rows.iter().any(|row| row.index == Index::Runnable));
    thread.restore();
    thread
        .tell(user("ann"), Command::Continue { run: None })
        .unwrap();
    assert_eq!(thread.work(), [], "continuing is not what was asked");
    thread
        .tell(user("ann"), Command::Pause { run: None })
        .unwrap();
    go_on(&mut thread);
    assert_eq!(thread.state.status(), Some(Status::Paused));
}

#[test]
fn subagents_stand_still_with_the_run_and_are_asked_in_their_frames() {
    let mut thread = Thread::asked(vec![task("c1", "a"), task("c2", "b")]);
    for id in ["c1", "c2"] {
        let action = thread.action(id).id;
        thread.start(action);
    }
    let (one, two) = (path("a#1"), path("b#2"));
    thread.turn_in(&one, vec![held("d1", "{}")]);
    thread.think_in(&two);
    thread.restore();
    assert_eq!(thread.work(), []);
    let task = thread.action("c1").id;
    assert!(matches!(
        status(&thread, task),
        ActionStatus::Waiting {
            on: Wait::Frame { .. },
            ..
        }
    ));
    go_on(&mut thread);
    assert_eq!(thread.pending().frame, one);
    assert_eq!(thread.work().len(), 1, "the other one's model is asked");
    thread.answer(vec![Decision::APPROVE]).unwrap();
    let paid = thread.action("d1").id;
    thread.run(paid, done("paid"));
    thread.last_word(&one, "done");
    thread.last_word(&two, "done");
    thread.think();
    thread.reply("All done.", vec![]);
    assert_eq!(thread.state.status(), Some(Status::Finished));
}

#[test]
fn a_stepped_tool_is_asked_about_anew_and_its_written_step_is_in_doubt() {
    let gated_tool = call("c1", crate::thread::stepped_tool(plain()), "{}", gated());
    let mut thread = Thread::asked(vec![gated_tool]);
    thread.answer(vec![Decision::APPROVE]).unwrap();
    let action = thread.action("c1").id;
    thread.start(action);
    let look = thread.step(action, "look", Effect::Read);
    thread.end(look, 1, done("\"seen\""));
    let pay = thread.step(action, "pay", Effect::Write);
    thread.restore();
    assert_eq!(thread.work(), []);
    assert!(matches!(status(&thread, pay), ActionStatus::InDoubt { .. }));
    assert_eq!(thread.state.actions[&action].warrant(), None);
    go_on(&mut thread);
    let question = thread.asked_about(action);
    thread
        .answer_to(question, Answer::All(Decision::APPROVE))
        .unwrap();
    assert_eq!(thread.work(), [], "what its step did must be known first");
    let doubt = thread.asked_about(pay);
    thread
        .answer_to(doubt, Answer::All(committed("paid")))
        .unwrap();
    assert_eq!(thread.work().len(), 1);
    thread.start(action);
    let memo = thread.memo(action);
    let arguments = crate::thread::params(r#"{"s":1}"#);
    assert!(
        memo.step("look", Effect::Read, &arguments)
            .unwrap()
            .is_some()
    );
    assert!(
        memo.step("pay", Effect::Write, &arguments)
            .unwrap()
            .is_some()
    );
}

#[test]
fn a_question_of_a_tool_is_asked_again_by_the_tool_itself() {
    let mut thread = Thread::asked(vec![stepped("c1", plain())]);
    let action = thread.action("c1").id;
    thread.start(action);
    thread
        .suspend(action, "where", question("Where to?"))
        .unwrap();
    thread.restore();
    let text = thread.question().description.clone().unwrap();
    assert!(text.contains("- was asked: Where to?"), "{text}");
    go_on(&mut thread);
    thread.answer(vec![Decision::APPROVE]).unwrap();
    thread.start(action);
    assert_eq!(
        thread
            .memo(action)
            .answer("where", &prompt("Where to?"))
            .unwrap(),
        None
    );
    thread
        .suspend(action, "where", question("Where to?"))
        .unwrap();
    thread.answer(vec![say("Berlin")]).unwrap();
    assert!(
        thread
            .memo(action)
            .answer("where", &prompt("Where to?"))
            .unwrap()
            .is_some()
    );
}

#[test]
fn a_confirmation_in_plain_words_is_asked_anew_and_the_run_does_not_end_meanwhile() {
    let mut thread = Thread::thinking();
    thread.confirm = Some(Confirmation::standard());
    thread.reply("Are you sure?", vec![]);
    let old = thread.pending().clone();
    thread.restore();
    assert_eq!(
        thread.state.status(),
        Some(Status::Waiting(Cause::SystemRestart))
    );
    go_on(&mut thread);
    let new = thread.pending().clone();
    assert_eq!(new.asks, old.asks);
    assert_eq!(new.supersedes, Some(old.id));
    thread.answer(vec![Decision::APPROVE]).unwrap();
    assert_eq!(thread.work().len(), 1, "the model is told");
}

#[test]
fn a_run_at_a_breakpoint_comes_to_stand_there_again() {
    let mut before = Thread::with_breakpoints(&[Breakpoints::MODEL], &[]);
    before.think();
    before.restore();
    go_on(&mut before);
    assert_eq!(before.work().len(), 1);
    before.think();
    assert_eq!(before.pending().kind, InterruptKind::Breakpoint);

    let mut after = Thread::with_breakpoints(&[], &[Breakpoints::MODEL]);
    after.think();
    after.reply("Hello.", vec![]);
    after.restore();
    go_on(&mut after);
    assert_eq!(after.pending().kind, InterruptKind::Breakpoint);
    after.answer(vec![Decision::APPROVE]).unwrap();
    assert_eq!(after.state.status(), Some(Status::Finished));
}

#[test]
fn grants_end_and_what_passed_by_one_is_asked_about() {
    let mut thread = Thread::asked(vec![held("c1", "{}")]);
    let terms = holdpoint_core::GrantTerms {
        scope: holdpoint_core::Scope::Thread,
        matches: holdpoint_core::Matches::Tool,
        expires_in: None,
        uses: None,
    };
    thread
        .answer(vec![Decision::Approve { grant: Some(terms) }])
        .unwrap();
    let first = thread.action("c1").id;
    thread.run(first, done("paid"));
    thread.think();
    thread.reply("", vec![held("c2", "{}")]);
    assert!(thread.is_ready("c2"), "it passes by the grant");
    let events = thread.restore();
    assert_eq!(
        names(&events),
        ["grant_revoked", "restored", "interrupt_raised"]
    );
    go_on(&mut thread);
    assert_eq!(thread.question().action_id, thread.action("c2").id);
    thread.answer(vec![reject("no")]).unwrap();
    thread.think();
    thread.reply("", vec![held("c3", r#"{"n":3}"#)]);
    assert_eq!(
        thread.question().action_id,
        thread.action("c3").id,
        "and so is the next one"
    );
}

#[test]
fn grants_of_a_run_that_is_over_end_too_and_else_nothing_happens() {
    let mut thread = Thread::thinking();
    thread.reply("Hello.", vec![]);
    assert_eq!(thread.restore(), []);
    assert_eq!(thread.state.status(), Some(Status::Finished));
}

#[test]
fn a_run_that_is_being_stopped_asks_only_what_became_of_its_effects() {
    let (mut thread, action) = Thread::started(Effect::Write, with_lookup());
    thread.cancel();
    thread.restore();
    assert_eq!(thread.work(), []);
    let doubt = thread.pending();
    assert_eq!(doubt.cause, Cause::WriteUnknown);
    assert_eq!(doubt.asks[0].action_id, action);
    thread.answer(vec![Decision::NotCommitted]).unwrap();
    assert_eq!(thread.state.status(), Some(Status::Cancelled));

    let (mut harmless, _) = Thread::started(Effect::Idempotent, plain());
    harmless.cancel();
    harmless.restore();
    assert_eq!(harmless.state.status(), Some(Status::Cancelled));
}

#[test]
fn a_compensation_that_was_to_be_made_is_in_doubt() {
    let (mut thread, action) = Thread::started(Effect::Write, with_compensation());
    thread.cancel();
    thread.end(action, 1, done("paid"));
    let undo = thread.compensation().id;
    assert_eq!(thread.work().len(), 1);
    thread.restore();
    assert_eq!(thread.work(), []);
    assert_eq!(thread.pending().asks[0].action_id, undo);
    thread.answer(vec![committed("undone elsewhere")]).unwrap();
    assert_eq!(thread.state.status(), Some(Status::Cancelled));
}

#[test]
fn adopting_twice_asks_once_and_another_backup_asks_again() {
    let mut thread = Thread::asked(vec![held("c1", "{}")]);
    let backup = thread.now;
    thread.restore();
    assert_eq!(thread.drive(restore_command(backup)), []);
    let first = thread.pending().clone();
    // People answer, and adopting what is adopted already changes nothing.
    let old_run = thread.state.run.as_ref().unwrap().id;
    thread.restore_again();
    let second = thread.pending().clone();
    assert_ne!(second.id, first.id);
    let Subject::Restored { asked, .. } = &second.asks[0].subject else {
        panic!("{second:?}");
    };
    assert_eq!(
        asked.len(),
        1,
        "what was asked at first is not lost, and not nested"
    );
    go_on(&mut thread);
    assert_eq!(thread.state.run.as_ref().unwrap().id, old_run);
    assert_eq!(thread.question().action_id, thread.action("c1").id);
    let backup = thread.state.restored.unwrap();
    assert_eq!(thread.drive(restore_command(backup)), []);
}

#[test]
fn time_that_a_question_had_is_given_again_and_does_not_run_before() {
    let pay = tool("pay", "1", Effect::Write, plain());
    let mut thread = Thread::asked(vec![call(
        "c1",
        pay,
        "{}",
        gated_for(60, OnTimeout::Expire),
    )]);
    thread.restore();
    assert_eq!(thread.state.due_at(), None);
    thread.wait(1_000);
    assert_eq!(thread.tick(), []);
    go_on(&mut thread);
    let open = thread.pending();
    assert_eq!(
        open.expires_at.unwrap().since(open.asked_at),
        Span::from_secs(60)
    );
    assert_eq!(open.asked_at, thread.now);
}

#[test]
fn a_fork_of_a_restored_thread_is_asked_the_same_there() {
    let mut parent = Thread::thinking();
    parent.confirm = Some(Confirmation::standard());
    parent.reply("Are you sure?", vec![]);
    parent.restore();
    let mut fork = Thread::new();
    fork.now = parent.now;
    fork.transcript = parent.transcript.clone();
    fork.wait(10);
    let command = Command::Fork {
        thread: ThreadId::of_session(TENANT, "teller", "s2"),
        session: "s2".to_owned(),
        from: Box::new(parent.state.clone()),
    };
    fork.tell(user("eve"), command).unwrap();
    assert_eq!(fork.work(), []);
    assert_eq!(fork.state.restored, None, "the fork itself is in no backup");
    go_on(&mut fork);
    let asked = fork.pending();
    assert_eq!(asked.run, fork.state.run.as_ref().unwrap().id);
    assert!(matches!(
        asked.asks[0].subject,
        Subject::Confirmation { reply: 0, .. }
    ));
}

#[test]
fn a_restored_fork_stands_still_like_any_thread() {
    let parent = Thread::asked(vec![held("c1", "{}")]);
    let mut fork = Thread::new();
    fork.now = parent.now;
    fork.transcript = parent.transcript.clone();
    fork.wait(10);
    let command = Command::Fork {
        thread: ThreadId::of_session(TENANT, "teller", "s2"),
        session: "s2".to_owned(),
        from: Box::new(parent.state),
    };
    fork.tell(user("eve"), command).unwrap();
    fork.restore();
    assert_eq!(fork.work(), []);
    go_on(&mut fork);
    fork.answer(vec![Decision::APPROVE]).unwrap();
    assert_eq!(fork.work().len(), 1);
}

#[test]
fn a_question_from_outside_is_asked_anew_or_withdrawn() {
    let ask = || {
        let mut thread = Thread::new();
        let command = Command::Ask {
            thread: ThreadId::of_node(TENANT, "release", "deploy"),
            tenant: TENANT.to_owned(),
            workflow: "release".to_owned(),
            node: "deploy".to_owned(),
            kind: InterruptKind::Approval,
            prompt: Box::new(prompt("Deploy?")),
            expiry: None,
        };
        thread.tell(user("ci"), command).unwrap();
        thread.restore();
        thread.wait(1);
        thread
    };
    let mut thread = ask();
    assert!(
        thread
            .question()
            .description
            .clone()
            .unwrap()
            .contains("Deploy?")
    );
    go_on(&mut thread);
    thread.answer(vec![say("yes")]).unwrap();
    assert_eq!(thread.state.status(), Some(Status::Finished));
    let mut thread = ask();
    give_up(&mut thread);
    assert_eq!(thread.state.status(), Some(Status::Cancelled));
}

#[test]
fn a_late_report_does_not_answer_whether_the_run_goes_on() {
    let pay = tool("put", "1", Effect::Idempotent, plain());
    let mut thread = Thread::asked(vec![call("c1", pay, "{}", gated())]);
    thread.answer(vec![Decision::APPROVE]).unwrap();
    let action = thread.action("c1").id;
    thread.start(action);
    thread.restore();
    thread.end(action, 1, done("put"));
    assert_eq!(thread.state.actions.len(), 0);
    assert_eq!(thread.work(), []);
    go_on(&mut thread);
    assert_eq!(thread.work().len(), 1);
}

#[test]
fn a_held_call_is_not_restated_before_it_is_said_that_the_run_goes_on() {
    let mut thread = Thread::asked(vec![held("c1", "{}")]);
    thread.restore();
    let (question, action) = (whether(&thread), thread.action("c1").id);
    let refused = thread.restate(Some(question), vec![crate::thread::gone(action)]);
    assert!(matches!(refused, Err(Refusal::Stale(_))), "{refused:?}");
}

#[test]
fn a_new_input_does_not_push_a_restored_run_aside_unless_it_may_push_any() {
    let mut thread = Thread::asked(vec![held("c1", "{}")]);
    thread.restore();
    let start = |how| {
        let mut start = Thread::start_command(Limits::default());
        if let Command::StartRun { supersede, .. } = &mut start {
            *supersede = how;
        }
        start
    };
    for how in [Supersede::Nothing, Supersede::Failed] {
        let refused = thread.tell(user("ann"), start(how));
        assert!(matches!(refused, Err(Refusal::InterruptPending { .. })));
    }
    thread.tell(user("ann"), start(Supersede::Waiting)).unwrap();
}

#[test]
fn only_who_may_decide_restores_and_only_what_is_there() {
    let mut thread = Thread::asked(vec![held("c1", "{}")]);
    let command = restore_command(thread.now);
    let agent = Principal::new(PrincipalKind::Agent, TENANT, "teller");
    let refused = thread.tell(agent, command.clone());
    assert!(matches!(refused, Err(Refusal::Forbidden { .. })));
    let stranger = Principal::new(PrincipalKind::User, "elsewhere", "mallory");
    assert_eq!(
        thread.tell(stranger, command.clone()),
        Err(Refusal::NotFound)
    );
    assert_eq!(
        Thread::new().tell(driver(), command),
        Err(Refusal::NotFound)
    );
}
