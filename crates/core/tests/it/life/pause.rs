//! A user lets a run stand still, and go on.

use holdpoint_core::{
    Command, Decision, Effect, Event, Principal, PrincipalKind, Refusal, Status, Work,
};

use crate::thread::{
    Thread, done, driver, free, held, lost, plain, stepped, user, with_compensation,
};

fn pause(thread: &mut Thread) -> Vec<Event> {
    thread
        .tell(user("ann"), Command::Pause { run: None })
        .unwrap()
}

fn go_on(thread: &mut Thread) -> Vec<Event> {
    thread
        .tell(user("ann"), Command::Continue { run: None })
        .unwrap()
}

#[test]
fn while_paused_nothing_starts_and_after_it_everything_does() {
    let mut thread = Thread::asked(vec![free("c1", Effect::Write, plain())]);
    let before = thread.work();
    assert_eq!(pause(&mut thread), [Event::Paused]);
    assert_eq!(thread.state.status(), Some(Status::Paused));
    assert_eq!(thread.work(), []);
    let action = thread.action("c1").id;
    let start = Command::StartAction {
        action,
        epoch: 1,
        proof: thread.proof(action),
    };
    let refusal = Refusal::Stale("nothing may start now");
    assert_eq!(thread.tell(driver(), start), Err(refusal.clone()));
    assert_eq!(go_on(&mut thread), [Event::Continued]);
    assert_eq!(thread.work(), before);
    thread.run(action, done("ok"));
    pause(&mut thread);
    let think = Command::StartModel {
        frame: holdpoint_core::FramePath::root(),
        epoch: 1,
    };
    assert_eq!(thread.tell(driver(), think), Err(refusal));
}

#[test]
fn what_is_in_flight_goes_on_and_the_run_is_paused_when_it_has_ended() {
    let mut thread = Thread::asked(vec![
        free("c1", Effect::Write, plain()),
        free("c2", Effect::Write, plain()),
    ]);
    let action = thread.action("c1").id;
    thread.start(action);
    pause(&mut thread);
    assert_eq!(thread.state.status(), Some(Status::Running));
    assert!(matches!(thread.work()[..], [Work::Settle { .. }]));
    thread.end(action, 1, done("ok"));
    assert_eq!(thread.state.status(), Some(Status::Paused));
}

#[test]
fn a_model_that_answers_during_the_pause_is_heard() {
    let mut thread = Thread::thinking();
    pause(&mut thread);
    thread.reply("", vec![held("c1", "{}")]);
    assert_eq!(thread.state.status(), Some(Status::Paused));
    assert_eq!(thread.state.interrupts.len(), 1);
    let mut thread = Thread::thinking();
    pause(&mut thread);
    thread.reply("bye", vec![]);
    assert_eq!(thread.state.status(), Some(Status::Finished));
}

#[test]
fn a_question_is_answered_during_the_pause_and_what_it_allows_starts_after_it() {
    let mut thread = Thread::asked(vec![held("c1", "{}")]);
    pause(&mut thread);
    assert_eq!(thread.state.status(), Some(Status::Paused));
    thread.answer(vec![Decision::APPROVE]).unwrap();
    assert_eq!(thread.work(), []);
    go_on(&mut thread);
    let action = thread.action("c1").id;
    thread.run(action, done("paid"));
    assert_eq!(thread.told().len(), 1);
}

#[test]
fn a_compensation_goes_on_during_the_pause() {
    let (mut thread, action) = Thread::started(Effect::Write, with_compensation());
    thread.end(action, 1, lost());
    pause(&mut thread);
    thread.answer(vec![Decision::Compensate]).unwrap();
    let undo = thread.compensation().id;
    thread.run(undo, done("reverted"));
    assert_eq!(thread.state.actions.len(), 0);
    assert_eq!(thread.state.status(), Some(Status::Paused));
}

#[test]
fn a_paused_run_can_be_cancelled_with_calls_in_flight() {
    let (mut thread, action) = Thread::started(Effect::Write, with_compensation());
    pause(&mut thread);
    thread.cancel();
    assert_eq!(thread.state.status(), Some(Status::Running));
    thread.end(action, 1, done("paid"));
    let undo = thread.compensation().id;
    thread.run(undo, done("reverted"));
    assert_eq!(thread.state.status(), Some(Status::Cancelled));

    let mut thread = Thread::asked(vec![held("c1", "{}")]);
    pause(&mut thread);
    thread.cancel();
    assert_eq!(thread.state.status(), Some(Status::Cancelled));
}

#[test]
fn pausing_twice_changes_nothing_and_pausing_what_is_over_or_being_stopped_is_refused() {
    let (mut thread, action) = Thread::started(Effect::Write, plain());
    assert_eq!(go_on(&mut thread), []);
    pause(&mut thread);
    assert_eq!(pause(&mut thread), []);
    go_on(&mut thread);
    thread.cancel();
    let refused = thread.tell(user("ann"), Command::Pause { run: None });
    assert_eq!(refused, Err(Refusal::RunOver));
    thread.end(action, 1, lost());
    thread.answer(vec![Decision::NotCommitted]).unwrap();
    for command in [
        Command::Pause { run: None },
        Command::Continue { run: None },
    ] {
        assert_eq!(thread.tell(user("ann"), command), Err(Refusal::RunOver));
    }
}

#[test]
fn another_tenant_can_neither_pause_nor_continue() {
    let mut thread = Thread::thinking();
    let eve = Principal::new(PrincipalKind::User, "other", "eve");
    for command in [
        Command::Pause { run: None },
        Command::Continue { run: None },
    ] {
        assert_eq!(thread.tell(eve.clone(), command), Err(Refusal::NotFound));
    }
}

#[test]
fn a_stepped_tool_takes_no_step_during_the_pause_and_is_entered_again_after_it() {
    let mut thread = Thread::asked(vec![stepped("c1", plain())]);
    let action = thread.action("c1").id;
    thread.start(action);
    let first = thread.step(action, "book", Effect::Write);
    pause(&mut thread);
    thread.end(first, 1, done("1"));
    let next = thread.step_command(action, "pay", Effect::Write, "{}");
    let refusal = Refusal::Stale("nothing may start now");
    assert_eq!(thread.tell(driver(), next), Err(refusal));
    thread.drive(Command::Yield { action, attempt: 1 });
    assert_eq!(thread.state.status(), Some(Status::Paused));
    go_on(&mut thread);
    thread.start(action);
    assert_eq!(thread.attempt(action), 2);
    assert_eq!(thread.memo(action).steps().len(), 1);
}
