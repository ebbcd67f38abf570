//! Answers that are given by a pass: it is for one question, one person and a while.

use holdpoint_core::{
    Answer, Bond, Command, Decision, Digest, Effect, Event, GrantTerms, Interrupt, Matches, Pass,
    Principal, PrincipalKind, Refusal, Reply, RunId, Scope, Span,
};

use crate::thread::{TENANT, Thread, call, gated_by_token, held, plain, tool, user};

fn asked() -> Thread {
    Thread::asked(vec![held("c1", r#"{"to":"a"}"#)])
}

fn pass(thread: &Thread) -> Pass {
    let interrupt = thread.pending();
    Pass {
        id: "jti_1".to_owned(),
        key: "k1".to_owned(),
        run: interrupt.run,
        nonce: interrupt.nonce.clone(),
        plan_version: interrupt.plan_version,
        subject: interrupt.subject(),
        user: "bob".to_owned(),
        expires_at: thread.state.now + Span::from_secs(900),
        issuer: Principal::new(PrincipalKind::Service, TENANT, "desk").actor,
        carrier: user("bob").actor,
    }
}

fn answer(thread: &mut Thread, by: Principal, bond: Bond) -> Result<Vec<Event>, Refusal> {
    let interrupt = thread.pending().id;
    let command = Command::Answer {
        answers: vec![Reply {
            interrupt,
            answer: Answer::All(Decision::APPROVE),
            misfits: vec![],
            lacking: vec![],
            shown: vec![],
            bond,
        }],
    };
    thread.tell(by, command)
}

/// By a pass, having seen what is asked about.
fn by(thread: &Thread, pass: Pass) -> Bond {
    let action = thread.action("c1");
    Bond {
        pass: Some(Box::new(pass)),
        seen: vec![(action.id, action.params_hash)],
    }
}

#[test]
fn an_answer_by_a_pass_says_so_in_the_journal() {
    let mut thread = asked();
    let given = pass(&thread);
    let bond = by(&thread, given);
    let events = answer(&mut thread, user("bob"), bond).unwrap();
    let Event::Answered { via: Some(via), .. } = &events[0] else {
        panic!("{events:?}");
    };
    assert_eq!(
        (
            via.token.as_str(),
            via.key.as_str(),
            via.issuer.name.as_str(),
            via.carrier.name.as_str()
        ),
        ("jti_1", "k1", "desk", "bob")
    );
    assert!(thread.is_ready("c1"));
}

#[test]
fn a_pass_for_anything_else_is_refused_and_changes_nothing() {
    let mut thread = asked();
    let good = pass(&thread);
    let other = Interrupt {
        nonce: "n".to_owned(),
        ..thread.pending().clone()
    };
    assert_eq!(
        other.subject(),
        good.subject,
        "the nonce is looked at by itself"
    );
    let bad: [(&str, Pass); 6] = [
        (
            "bad_token",
            Pass {
                run: RunId::from_bytes([7; 16]),
                ..good.clone()
            },
        ),
        (
            "bad_token",
            Pass {
                nonce: "another".to_owned(),
                ..good.clone()
            },
        ),
        (
            "bad_token",
            Pass {
                plan_version: good.plan_version + 1,
                ..good.clone()
            },
        ),
        (
            "bad_token",
            Pass {
                subject: Digest::of(b"something else"),
                ..good.clone()
            },
        ),
        (
            "bad_token",
            Pass {
                user: "mallory".to_owned(),
                ..good.clone()
            },
        ),
        (
            "token_expired",
            Pass {
                expires_at: thread.state.now,
                ..good.clone()
            },
        ),
    ];
    let before = thread.state.clone();
    for (code, pass) in bad {
        let bond = by(&thread, pass.clone());
        let refusal = answer(&mut thread, user("bob"), bond).unwrap_err();
        assert_eq!(refusal.code(), code, "{pass:?}");
        assert_eq!(thread.state, before);
    }
    let bond = by(&thread, good.clone());
    let refusal = answer(&mut thread, user("eve"), bond.clone()).unwrap_err();
    assert_eq!(refusal.code(), "bad_token", "whoever else comes with it");
    let agent = Principal::new(PrincipalKind::Agent, TENANT, "bob");
    let refusal = answer(&mut thread, agent, bond).unwrap_err();
    assert_eq!(refusal.code(), "forbidden", "an agent never decides");
    let carried = |name: &str| Pass {
        carrier: Principal::new(PrincipalKind::Service, TENANT, name).actor,
        ..good.clone()
    };
    let bond = by(&thread, carried("other"));
    let refusal = answer(&mut thread, user("bob"), bond).unwrap_err();
    assert_eq!(
        refusal.code(),
        "bad_token",
        "a service that did not give it"
    );
    assert_eq!(thread.state, before);
    let bond = by(&thread, carried("desk"));
    answer(&mut thread, user("bob"), bond).unwrap();
}

#[test]
fn an_approval_by_a_pass_must_say_what_was_seen_and_a_rejection_need_not() {
    let mut thread = asked();
    let action = thread.action("c1").id;
    let blind = Bond {
        pass: Some(Box::new(pass(&thread))),
        seen: vec![],
    };
    let before = thread.state.clone();
    let refusal = answer(&mut thread, user("bob"), blind.clone()).unwrap_err();
    assert_eq!(refusal, Refusal::Unseen { action });
    assert_eq!(thread.state, before);
    let interrupt = thread.pending().id;
    let command = Command::Answer {
        answers: vec![Reply {
            interrupt,
            answer: Answer::All(Decision::Reject { message: None }),
            misfits: vec![],
            lacking: vec![],
            shown: vec![],
            bond: blind,
        }],
    };
    thread.tell(user("bob"), command).unwrap();
}

#[test]
fn what_was_seen_must_be_what_is_asked_about() {
    let mut thread = asked();
    let action = thread.action("c1").id;
    let hash = thread.action("c1").params_hash;
    let seen = |hash: Digest| Bond {
        pass: None,
        seen: vec![(action, hash)],
    };
    let before = thread.state.clone();
    let refusal = answer(&mut thread, user("bob"), seen(Digest::of(b"other"))).unwrap_err();
    assert_eq!(refusal, Refusal::ParamsChanged { action });
    assert!(
        refusal
            .to_string()
            .starts_with("approval parameters changed")
    );
    assert_eq!(thread.state, before);
    answer(&mut thread, user("bob"), seen(hash)).unwrap();
    assert!(thread.is_ready("c1"));
}

#[test]
fn where_the_policy_wants_a_pass_nothing_runs_without_one_and_no_is_always_taken() {
    let facts = tool("pay", "1", Effect::Write, plain());
    let asked = || {
        Thread::asked(vec![call(
            "c1",
            facts.clone(),
            r#"{"to":"a"}"#,
            gated_by_token(),
        )])
    };
    let mut thread = asked();
    let hash = thread.action("c1").params_hash;
    let action = thread.action("c1").id;
    let seen = Bond {
        pass: None,
        seen: vec![(action, hash)],
    };
    let before = thread.state.clone();
    for by in [
        user("bob"),
        Principal::new(PrincipalKind::Local, TENANT, "bob"),
        Principal::new(PrincipalKind::Service, TENANT, "desk"),
    ] {
        let refusal = answer(&mut thread, by, seen.clone()).unwrap_err();
        assert_eq!(refusal.code(), "token_required");
        assert_eq!(thread.state, before);
    }
    let bond = by(&thread, pass(&thread));
    answer(&mut thread, user("bob"), bond).unwrap();
    assert!(thread.is_ready("c1"));

    let mut thread = asked();
    let interrupt = thread.pending().id;
    let no = Command::Answer {
        answers: vec![Reply {
            interrupt,
            answer: Answer::All(Decision::Reject { message: None }),
            misfits: vec![],
            lacking: vec![],
            shown: vec![],
            bond: Bond::default(),
        }],
    };
    thread.tell(user("bob"), no).unwrap();
    assert!(
        thread.state.actions.is_empty(),
        "nothing is left to be done"
    );
}

#[test]
fn a_pass_that_the_policy_wants_gives_no_standing_grant() {
    let facts = tool("pay", "1", Effect::Write, plain());
    let call = call("c1", facts, r#"{"to":"a"}"#, gated_by_token());
    let mut thread = Thread::asked(vec![call]);
    let interrupt = thread.pending().id;
    let bond = by(&thread, pass(&thread));
    let before = thread.state.clone();
    let always = Decision::Approve {
        grant: Some(GrantTerms {
            scope: Scope::Thread,
            matches: Matches::Args,
            expires_in: None,
            uses: None,
        }),
    };
    let command = Command::Answer {
        answers: vec![Reply {
            interrupt,
            answer: Answer::All(always),
            misfits: vec![],
            lacking: vec![],
            shown: vec![],
            bond,
        }],
    };
    let refusal = thread.tell(user("bob"), command).unwrap_err();
    assert_eq!(refusal.code(), "misfit");
    assert!(refusal.to_string().contains("takes a token"), "{refusal}");
    assert_eq!(thread.state, before);
}
