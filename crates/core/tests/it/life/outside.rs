//! Questions of programs outside: a thread of its own kind, one question at a time.

use holdpoint_core::{
    Answer, Bond, Cause, Command, Decision, DecisionKind, Event, Index, InterruptKind,
    InterruptStatus, Limits, OnTimeout, Principal, PrincipalKind, Refusal, Reply, RunOutcome, Span,
    Status, Subject, ThreadId, ThreadKind,
};

use serde_json::json;

use crate::thread::{TENANT, Thread, held, names, prompt, reject, say, user};

fn command(kind: InterruptKind, expiry: Option<(Span, OnTimeout)>) -> Command {
    Command::Ask {
        thread: ThreadId::of_node(TENANT, "flow", "node"),
        tenant: TENANT.to_owned(),
        workflow: "flow".to_owned(),
        node: "node".to_owned(),
        kind,
        prompt: Box::new(prompt("Ship it?")),
        expiry,
    }
}

fn asked(kind: InterruptKind, expiry: Option<(Span, OnTimeout)>) -> Thread {
    let mut thread = Thread::new();
    thread.tell(user("ann"), command(kind, expiry)).unwrap();
    thread
}

#[test]
fn it_is_asked_answered_and_over() {
    let mut thread = asked(InterruptKind::Input, None);
    assert_eq!(thread.state.kind, ThreadKind::Outside);
    assert_eq!(
        thread.state.status(),
        Some(Status::Waiting(Cause::HumanInput))
    );
    let names_of =
        |thread: &Thread| -> Vec<_> { thread.entries.iter().map(|it| it.event.name()).collect() };
    let expected = ["thread_created", "run_started", "interrupt_raised"];
    assert_eq!(names_of(&thread), expected);
    let Subject::Question {
        action,
        prompt: shown,
        ..
    } = &thread.question().subject
    else {
        panic!("{:?}", thread.question());
    };
    assert_eq!((action, &**shown), (&None, &prompt("Ship it?")));
    assert_eq!(thread.work(), []);
    let events = thread.answer(vec![say("Berlin")]).unwrap();
    assert_eq!(names(&events), ["answered", "run_ended"]);
    assert_eq!(thread.state.status(), Some(Status::Finished));
}

#[test]
fn yes_and_no_are_answers_where_something_is_to_be_approved() {
    use DecisionKind::{Answer, Approve, Reject};
    for kind in [InterruptKind::Approval, InterruptKind::Review] {
        let mut thread = asked(kind, None);
        assert_eq!(thread.allowed(), [Answer, Approve, Reject]);
        let events = thread.answer(vec![reject("not yet")]).unwrap();
        let Event::Answered { status, .. } = &events[0] else {
            panic!("{events:?}");
        };
        assert_eq!(*status, InterruptStatus::Rejected);
        assert_eq!(thread.state.status(), Some(Status::Finished));
    }
    let mut thread = asked(InterruptKind::Input, None);
    assert_eq!(thread.allowed(), [Answer]);
    let refusal = thread.answer(vec![Decision::APPROVE]).unwrap_err();
    assert_eq!(refusal.code(), "misfit");
}

#[test]
fn an_answer_that_does_not_fit_changes_nothing() {
    let mut thread = asked(InterruptKind::Input, None);
    let before = thread.state.clone();
    let reply = Reply {
        interrupt: thread.pending().id,
        answer: Answer::All(say("Berlin")),
        misfits: vec![(thread.question().action_id, "must be a number".to_owned())],
        lacking: vec![],
        shown: vec![],
        bond: Bond::default(),
    };
    let answers = vec![reply];
    let refusal = thread
        .tell(user("bob"), Command::Answer { answers })
        .unwrap_err();
    assert!(refusal.to_string().ends_with("`value`: must be a number"));
    assert!(!refusal.to_string().contains("`model`"), "{refusal}");
    assert_eq!(thread.state, before);
}

#[test]
fn a_second_question_of_the_same_node_is_refused_while_one_is_pending_and_taken_after() {
    let mut thread = asked(InterruptKind::Input, None);
    let pending = vec![thread.pending().id];
    let again = || command(InterruptKind::Input, None);
    assert_eq!(
        thread.tell(user("ann"), again()),
        Err(Refusal::InterruptPending {
            pending: pending.clone()
        })
    );
    thread.answer(vec![say("Berlin")]).unwrap();
    thread.wait(1);
    let events = thread.tell(user("ann"), again()).unwrap();
    assert_eq!(names(&events), ["run_started", "interrupt_raised"]);
    assert_ne!(thread.pending().id, pending[0]);
    let rows = thread.rows.iter();
    let by_workflow = rows.filter(|row| (row.index, &*row.key) == (Index::Workflow, "flow"));
    assert_eq!(by_workflow.count(), 2);
}

#[test]
fn it_can_be_cancelled() {
    let mut thread = asked(InterruptKind::Approval, None);
    let interrupt = thread.pending().id;
    let events = thread.cancel();
    let closed = |event: &Event| {
        matches!(
            event,
            Event::InterruptClosed {
                status: InterruptStatus::Canceled,
                ..
            }
        )
    };
    assert!(closed(&events[0]), "{events:?}");
    assert_eq!(thread.state.status(), Some(Status::Cancelled));
    let late = thread.answer_to(interrupt, Answer::All(Decision::APPROVE));
    assert_eq!(late, Err(Refusal::NotPending { interrupt }));
}

#[test]
fn it_times_out_once() {
    for (on_timeout, status, outcome) in [
        (OnTimeout::Expire, Status::Cancelled, RunOutcome::TimedOut),
        (OnTimeout::Reject, Status::Finished, RunOutcome::Finished),
    ] {
        let expiry = Some((Span::from_secs(60), on_timeout));
        let mut thread = asked(InterruptKind::Approval, expiry);
        thread.wait(59);
        assert_eq!(thread.tick(), []);
        thread.wait(1);
        let events = thread.tick();
        let Event::InterruptClosed { status: closed, .. } = &events[0] else {
            panic!("{events:?}");
        };
        assert_eq!(*closed, InterruptStatus::Timeout);
        assert_eq!(events.last(), Some(&Event::RunEnded { outcome }));
        assert_eq!(thread.state.status(), Some(status));
        assert_eq!(thread.tick(), []);
    }
}

#[test]
fn a_thread_of_questions_runs_no_agent_and_an_agents_thread_takes_no_questions() {
    let mut thread = asked(InterruptKind::Input, None);
    let start = Thread::start_command(Limits::default());
    assert_eq!(thread.tell(user("ann"), start), Err(Refusal::NotFound));
    let refused = thread.tell(user("ann"), Command::Pause { run: None });
    assert_eq!(refused, Err(Refusal::RunOver));
    let mut thread = Thread::thinking();
    thread.reply("bye", vec![]);
    let ask = command(InterruptKind::Input, None);
    assert_eq!(thread.tell(user("ann"), ask), Err(Refusal::NotFound));
}

#[test]
fn another_tenant_finds_nothing() {
    let mut thread = asked(InterruptKind::Input, None);
    let eve = Principal::new(PrincipalKind::User, "other", "eve");
    let mut ask = command(InterruptKind::Input, None);
    if let Command::Ask { tenant, .. } = &mut ask {
        "other".clone_into(tenant);
    }
    assert_eq!(thread.tell(eve.clone(), ask), Err(Refusal::NotFound));
    assert_eq!(
        thread.tell(eve, Command::Cancel { run: None }),
        Err(Refusal::NotFound)
    );
}

#[test]
fn an_agent_never_answers() {
    let mut thread = asked(InterruptKind::Input, None);
    let agent = Principal::new(PrincipalKind::Agent, TENANT, "teller");
    let answers = vec![Reply {
        interrupt: thread.pending().id,
        answer: Answer::All(say("Berlin")),
        misfits: vec![],
        lacking: vec![],
        shown: vec![],
        bond: Bond::default(),
    }];
    let refusal = thread.tell(agent, Command::Answer { answers }).unwrap_err();
    assert_eq!(refusal.code(), "forbidden");
}

#[test]
fn it_can_be_taken_back_by_its_own_id_and_only_while_it_is_pending() {
    let mut thread = asked(
        InterruptKind::Input,
        Some((Span::from_secs(60), OnTimeout::Expire)),
    );
    let old = thread.pending().id;
    let withdraw = |interrupt| Command::Withdraw { interrupt };
    let eve = Principal::new(PrincipalKind::User, "other", "eve");
    assert_eq!(thread.tell(eve, withdraw(old)), Err(Refusal::NotFound));
    let events = thread.tell(user("ann"), withdraw(old)).unwrap();
    assert_eq!(
        names(&events),
        ["interrupt_closed", "stop_requested", "run_ended"]
    );
    assert_eq!(thread.state.status(), Some(Status::Cancelled));
    // A later question of the node is another one.
    thread.wait(1);
    let expiry = Some((Span::from_secs(60), OnTimeout::Expire));
    let again = command(InterruptKind::Input, expiry);
    thread.tell(user("ann"), again).unwrap();
    let refused = thread.tell(user("ann"), withdraw(old));
    assert_eq!(refused, Err(Refusal::NotPending { interrupt: old }));
    let new = thread.pending().id;
    thread.wait(60);
    let refused = thread.tell(user("ann"), withdraw(new));
    assert_eq!(refused, Err(Refusal::Expired { interrupt: new }));
}

#[test]
fn an_agent_takes_back_what_it_asked_itself_and_nothing_else() {
    let mut thread = asked(InterruptKind::Input, None);
    let agent = || Principal::new(PrincipalKind::Agent, TENANT, "teller");
    let interrupt = thread.pending().id;
    let refused = thread.tell(agent(), Command::Withdraw { interrupt });
    assert_eq!(refused.unwrap_err().code(), "forbidden");
    thread
        .tell(user("bob"), Command::Withdraw { interrupt })
        .unwrap();
    thread.wait(1);
    thread
        .tell(agent(), command(InterruptKind::Input, None))
        .unwrap();
    let interrupt = thread.pending().id;
    thread
        .tell(agent(), Command::Withdraw { interrupt })
        .unwrap();
    assert_eq!(thread.state.status(), Some(Status::Cancelled));
}

#[test]
fn an_agents_questions_cannot_be_taken_back() {
    let mut thread = Thread::asked(vec![held("c1", "{}")]);
    let interrupt = thread.pending().id;
    let refused = thread.tell(user("ann"), Command::Withdraw { interrupt });
    assert_eq!(refused, Err(Refusal::NotFound));
}

#[test]
fn an_answer_that_is_not_approved_is_a_rejection() {
    for kind in [InterruptKind::Approval, InterruptKind::Input] {
        for (value, expected) in [
            (json!({"approved": false}), InterruptStatus::Rejected),
            (json!({"approved": true}), InterruptStatus::Resolved),
            (json!({"input": 3}), InterruptStatus::Resolved),
            (json!(false), InterruptStatus::Resolved),
        ] {
            let mut thread = asked(kind, None);
            let events = thread.answer(vec![Decision::Answer { value }]).unwrap();
            let Event::Answered { status, .. } = &events[0] else {
                panic!("{events:?}");
            };
            assert_eq!(*status, expected);
        }
    }
}
