//! Answers: who may give them, what fits, and what a wrong one changes (nothing).

use holdpoint_core::{
    ActionStatus, Actor, Answer, Bond, Command, Decision, DecisionKind, Effect, Event, InterruptId,
    InterruptStatus, Principal, PrincipalKind, Proof, Refusal, Reply, Span, WarrantFrom,
};

use crate::thread::{
    TENANT, Thread, ask, call, committed, done, edit, free, held, lost, names, plain, reject, tool,
    user,
};

fn two() -> Thread {
    Thread::asked(vec![
        held("c1", r#"{"to":"a"}"#),
        held("c2", r#"{"to":"b"}"#),
    ])
}

#[test]
fn an_answer_by_id_may_come_in_any_order() {
    let mut thread = two();
    let (first, second) = (thread.action("c1").id, thread.action("c2").id);
    let answer = Answer::ById(vec![
        (second, reject("not to b")),
        (first, Decision::APPROVE),
    ]);
    let id = thread.pending().id;
    thread.answer_to(id, answer).unwrap();
    assert!(thread.is_ready("c1"));
    let told = "User rejected the tool call for `pay` with reason: not to b";
    assert_eq!(thread.told(), [("c2".to_owned(), told.to_owned())]);
}

#[test]
fn one_decision_for_all_decides_each() {
    let mut thread = two();
    let id = thread.pending().id;
    thread
        .answer_to(id, Answer::All(Decision::APPROVE))
        .unwrap();
    assert!(thread.is_ready("c1") && thread.is_ready("c2"));
}

#[test]
fn a_bad_answer_changes_nothing_and_the_right_one_works_after() {
    let mut thread = two();
    let (first, second) = (thread.action("c1").id, thread.action("c2").id);
    let unknown: holdpoint_core::ActionId = "act_00000000000000000000000000000001".parse().unwrap();
    let id = thread.pending().id;
    let approve = || Decision::APPROVE;
    let cases = [
        (
            Answer::ByPosition(vec![approve()]),
            "the interrupt asks about 2 actions (1. `pay`, 2. `pay`), the answer has 1 decision"
                .to_owned(),
        ),
        (
            Answer::ByPosition(vec![approve(), approve(), approve()]),
            "the interrupt asks about 2 actions (1. `pay`, 2. `pay`), the answer has 3 decisions"
                .to_owned(),
        ),
        (
            Answer::ByPosition(vec![approve(), Decision::NotCommitted]),
            format!(
                "action 2, `pay` ({second}): `not_committed` is not allowed; allowed: approve, edit, reject, respond"
            ),
        ),
        // By id, the place in the question is told and not the place in the answer.
        (
            Answer::ById(vec![(second, Decision::NotCommitted), (first, approve())]),
            format!(
                "action 2, `pay` ({second}): `not_committed` is not allowed; allowed: approve, edit, reject, respond"
            ),
        ),
        (
            Answer::ById(vec![(first, approve()), (unknown, approve())]),
            format!("decision 2: the interrupt does not ask about `{unknown}`"),
        ),
        (
            Answer::ById(vec![(first, approve()), (first, reject(""))]),
            format!("decision 2: action 1, `pay` ({first}) is decided twice"),
        ),
        (
            Answer::ById(vec![(first, approve())]),
            "the interrupt asks about 2 actions (1. `pay`, 2. `pay`), the answer has 1 decision"
                .to_owned(),
        ),
        (
            Answer::ByPosition(vec![edit("rm", "{}"), approve()]),
            format!(
                "action 1, `pay` ({first}): an edit may not change the tool to `rm`; keep the name, or reject the call"
            ),
        ),
    ];
    let before = thread.state.clone();
    for (answer, expected) in cases {
        let refusal = thread.answer_to(id, answer.clone()).unwrap_err();
        let expected = format!("the answer does not fit the question: {expected}");
        assert_eq!(refusal.to_string(), expected, "{answer:?}");
        assert_eq!(thread.state, before);
    }
    let misfit = Command::Answer {
        answers: vec![Reply {
            interrupt: id,
            answer: Answer::ByPosition(vec![approve(), edit("pay", "{}")]),
            misfits: vec![(second, "`to` is missing".to_owned())],
            lacking: vec![],
            shown: vec![],
            bond: Bond::default(),
        }],
    };
    let refusal = thread.tell(user("bob"), misfit).unwrap_err();
    let expected = format!(
        "the answer does not fit the question: action 2, `pay` ({second}): `edited_action.args`: `to` is missing"
    );
    assert_eq!(refusal.to_string(), expected);
    thread.answer(vec![approve(), approve()]).unwrap();
    assert!(thread.is_ready("c1") && thread.is_ready("c2"));
}

#[test]
fn a_call_whose_requester_lost_a_permission_is_rejected_or_not_decided_at_all() {
    let mut thread = two();
    let id = thread.pending().id;
    let second = thread.pending().asks[1].action_id;
    let before = thread.state.clone();
    let told = |decisions: Vec<Decision>| Command::Answer {
        answers: vec![Reply {
            interrupt: id,
            answer: Answer::ByPosition(decisions),
            misfits: vec![],
            lacking: vec![(second, "money".to_owned())],
            shown: vec![],
            bond: Bond::default(),
        }],
    };
    for decisions in [
        vec![Decision::APPROVE, Decision::APPROVE],
        vec![reject(""), Decision::APPROVE],
        vec![Decision::APPROVE, edit("pay", "{}")],
    ] {
        let refusal = thread.tell(user("bob"), told(decisions)).unwrap_err();
        assert_eq!(refusal.code(), "permission_lost");
        assert_eq!(
            refusal.to_string(),
            "user:ann, for whom `pay` would run, lacks the permission `money` now: give it back, or reject the call"
        );
        assert_eq!(thread.state, before);
    }
    // What lacks nothing may run.
    let mixed = told(vec![Decision::APPROVE, reject("")]);
    thread.tell(user("bob"), mixed).unwrap();
    assert!(thread.is_ready("c1"));
    assert!(!thread.state.actions.contains_key(&second));
}

#[test]
fn a_call_whose_requester_lost_a_permission_since_it_was_allowed_is_asked_about_and_not_made() {
    // One that a person allowed, and one that the policy did.
    let shared = vec![held("c1", "{}"), free("c2", Effect::Write, plain())];
    let mut thread = Thread::asked(shared);
    thread.answer(vec![Decision::APPROVE]).unwrap();
    for (call, tool) in [("c1", "pay"), ("c2", "work")] {
        let action = thread.action(call).id;
        let lacking = |thread: &Thread| Command::StartAction {
            action,
            epoch: 1,
            proof: Proof {
                lacking: Some("money".to_owned()),
                ..thread.proof(action)
            },
        };
        let command = lacking(&thread);
        let events = thread.drive(command);
        assert_eq!(names(&events), ["warrant_voided", "interrupt_raised"]);
        let question = thread.pending().clone();
        assert_eq!(question.asks[0].action_id, action);
        assert_eq!(
            question.changes,
            [format!(
                "user:ann, for whom `{tool}` would run, lacks the permission `money` now: give it back, or reject the call"
            )]
        );
        // Once it is given back, an approval lets it run.
        thread.answer(vec![Decision::APPROVE]).unwrap();
        let events = thread.start(action);
        assert_eq!(names(&events), ["action_started"]);
        thread.end(action, 1, done("paid"));
    }
}

#[test]
fn a_write_that_may_have_happened_is_not_repeated_for_who_lost_the_permission() {
    let (mut thread, action) = Thread::started(Effect::Write, plain());
    thread.end(action, 1, lost());
    thread.answer(vec![Decision::NotCommitted]).unwrap();
    let proof = Proof {
        lacking: Some("money".to_owned()),
        ..thread.proof(action)
    };
    let epoch = 1;
    let command = Command::StartAction {
        action,
        epoch,
        proof,
    };
    let events = thread.drive(command);
    assert!(!names(&events).contains(&"action_started"), "{events:?}");
    assert_eq!(
        thread.allowed(),
        [
            DecisionKind::Committed,
            DecisionKind::NotCommitted,
            DecisionKind::Reject
        ]
    );
    // It can still be said truthfully what became of it, and it is repeated once that may be.
    thread.answer(vec![Decision::NotCommitted]).unwrap();
    assert_eq!(names(&thread.start(action)), ["action_started"]);
}

#[test]
fn a_second_decision_on_the_same_interrupt_is_refused() {
    let mut thread = two();
    let interrupt = thread.pending().id;
    thread
        .answer(vec![Decision::APPROVE, Decision::APPROVE])
        .unwrap();
    let again = thread.answer_to(interrupt, Answer::All(reject("")));
    assert_eq!(again, Err(Refusal::NotPending { interrupt }));
}

#[test]
fn an_interrupt_of_another_thread_is_not_pending_here() {
    let mut thread = two();
    let interrupt: InterruptId = "int_00000000000000000000000000000001".parse().unwrap();
    let answer = thread.answer_to(interrupt, Answer::All(Decision::APPROVE));
    assert_eq!(answer, Err(Refusal::NotPending { interrupt }));
}

#[test]
fn the_answer_keeps_who_gave_it_and_the_warrant_names_them() {
    let mut thread = Thread::asked(vec![held("c1", "{}")]);
    let (interrupt, hash) = (thread.pending().id, thread.action("c1").params_hash);
    let mut by = user("bob");
    by.roles.insert("treasurer".to_owned());
    by.permissions.insert("pay".to_owned());
    let command = Command::Answer {
        answers: vec![Reply {
            interrupt,
            answer: Answer::All(Decision::APPROVE),
            misfits: vec![],
            lacking: vec![],
            shown: vec![],
            bond: Bond::default(),
        }],
    };
    let events = thread.tell(by.clone(), command).unwrap();
    let answered = Event::Answered {
        interrupt,
        status: InterruptStatus::Resolved,
        decisions: vec![holdpoint_core::Decided {
            action_id: thread.action("c1").id,
            decision: Decision::APPROVE,
            params_hash: Some(hash),
            grant: None,
            shown: None,
        }],
        roles: by.roles,
        permissions: by.permissions,
        says: None,
        via: None,
    };
    assert_eq!(events, [answered]);
    let warrant = thread.action("c1").warrant().unwrap();
    let bob = Actor {
        tenant: TENANT.to_owned(),
        name: "bob".to_owned(),
        kind: PrincipalKind::User,
    };
    let from = WarrantFrom::Person {
        interrupt,
        by: bob,
        at: thread.now,
    };
    assert_eq!((&warrant.from, warrant.params_hash), (&from, hash));
}

#[test]
fn an_agent_never_decides() {
    let mut thread = two();
    let command = Command::Answer {
        answers: vec![Reply {
            interrupt: thread.pending().id,
            answer: Answer::All(Decision::APPROVE),
            misfits: vec![],
            lacking: vec![],
            shown: vec![],
            bond: Bond::default(),
        }],
    };
    let agent = Principal::new(PrincipalKind::Agent, TENANT, "teller");
    let refusal = thread.tell(agent, command).unwrap_err();
    let by = "agent:teller".to_owned();
    assert_eq!(refusal, Refusal::Forbidden { by });
}

#[test]
fn for_another_tenant_it_is_as_if_it_were_not_there_whether_it_is_or_not() {
    let mut thread = two();
    let absent: InterruptId = "int_00000000000000000000000000000001".parse().unwrap();
    for interrupt in [thread.pending().id, absent] {
        let command = Command::Answer {
            answers: vec![Reply {
                interrupt,
                answer: Answer::All(Decision::APPROVE),
                misfits: vec![],
                lacking: vec![],
                shown: vec![],
                bond: Bond::default(),
            }],
        };
        let eve = Principal::new(PrincipalKind::User, "other", "eve");
        assert_eq!(thread.tell(eve, command), Err(Refusal::NotFound));
    }
}

#[test]
fn another_tenant_cannot_cancel() {
    let mut thread = two();
    let eve = Principal::new(PrincipalKind::User, "other", "eve");
    assert_eq!(
        thread.tell(eve, Command::Cancel { run: None }),
        Err(Refusal::NotFound)
    );
}

#[test]
fn an_expired_interrupt_is_refused_from_the_very_moment_on() {
    let mut thread = two();
    let interrupt = thread.pending().id;
    let expires_at = thread.now + Span::from_secs(10);
    let open = thread.state.interrupts.get_mut(&interrupt).unwrap();
    open.expires_at = Some(expires_at);
    let mut in_time = Thread::new();
    in_time.state = thread.state.clone();
    in_time.wait(9);
    let approved = holdpoint_core::decide(
        &in_time.state.clone(),
        Command::Answer {
            answers: vec![Reply {
                interrupt,
                answer: Answer::All(Decision::APPROVE),
                misfits: vec![],
                lacking: vec![],
                shown: vec![],
                bond: Bond::default(),
            }],
        },
        &mut in_time.context(user("bob")),
    );
    assert!(approved.is_ok());
    thread.wait(10);
    let late = thread.answer_to(interrupt, Answer::All(Decision::APPROVE));
    assert_eq!(late, Err(Refusal::Expired { interrupt }));
}

#[test]
fn what_was_asked_under_an_older_plan_may_be_rejected_and_not_approved() {
    let mut thread = Thread::asked(vec![held("c1", "{}")]);
    thread.state.plan_version = 2;
    let (allowed, current) = (1, 2);
    assert_eq!(
        thread.answer(vec![Decision::APPROVE]),
        Err(Refusal::PlanVersionMismatch { allowed, current })
    );
    thread.answer(vec![reject("")]).unwrap();
}

#[test]
fn an_approval_is_for_exactly_what_was_shown() {
    let mut thread = Thread::asked(vec![held("c1", r#"{"to":"a"}"#)]);
    let action = thread.action("c1").id;
    let open = thread.state.actions.get_mut(&action).unwrap();
    open.params = crate::thread::params(r#"{"to":"b"}"#);
    assert_eq!(
        thread.answer(vec![Decision::APPROVE]),
        Err(Refusal::ParamsChanged { action })
    );
}

#[test]
fn an_edit_makes_a_new_version_with_a_new_key_for_the_edited_call_only() {
    let mut thread = Thread::asked(vec![held("c1", r#"{"to":"a","n":1}"#)]);
    let (id, before) = (thread.state.thread, thread.action("c1").clone());
    thread
        .answer(vec![edit("pay", r#"{"to":"team"}"#)])
        .unwrap();
    let after = thread.action("c1").clone();
    assert_eq!((before.version, after.version), (1, 2));
    assert_ne!(before.idempotency_key(id), after.idempotency_key(id));
    assert_eq!(after.params.canonical(), r#"{"to":"team"}"#);
    assert_eq!(after.params_hash, after.params.hash("pay", "1"));
    let events = thread.start(after.id);
    let key = after.idempotency_key(id);
    assert!(matches!(&events[..], [Event::ActionStarted { key: sent, .. }] if *sent == key));
}

#[test]
fn only_what_is_allowed_may_be_said() {
    let verdict = ask(&[DecisionKind::Approve]);
    let pay = tool("pay", "1", Effect::Write, plain());
    let mut thread = Thread::asked(vec![call("c1", pay, "{}", verdict)]);
    for decision in [edit("pay", "{}"), reject(""), committed("x")] {
        assert_eq!(thread.answer(vec![decision]).unwrap_err().code(), "misfit");
    }
    thread.answer(vec![Decision::APPROVE]).unwrap();
    assert!(matches!(
        thread.action("c1").status,
        ActionStatus::Ready { .. }
    ));
}
