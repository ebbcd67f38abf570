//! Grants: given with an approval, used instead of one, counted, and taken back.

use holdpoint_core::{
    Answer, Bond, Command, Decision, Effect, Event, FramePath, Grant, GrantId, GrantTerms,
    GrantUse, Index, InterruptMode, JudgedCall, Matches, Principal, PrincipalKind, Refusal, Reply,
    Scope, Span, Status, Terms, ThreadId, ThreadKind, Verdict, WarrantFrom,
};

use crate::thread::{
    TENANT, Thread, call, done, driver, free, gated, held, names, path, plain, reject, task, tool,
    user,
};

fn terms(matches: Matches) -> GrantTerms {
    GrantTerms {
        scope: Scope::Thread,
        matches,
        expires_in: None,
        uses: None,
    }
}

fn granting(terms: GrantTerms) -> Decision {
    Decision::Approve { grant: Some(terms) }
}

/// A thread in which a call was approved with this grant, and made.
fn granted(terms: GrantTerms) -> Thread {
    let mut thread = Thread::asked(vec![held("c1", r#"{"to":"a"}"#)]);
    thread.answer(vec![granting(terms)]).unwrap();
    let action = thread.action("c1").id;
    thread.run(action, done("paid"));
    thread
}

fn the_grant(thread: &Thread) -> Grant {
    assert_eq!(thread.state.grants.len(), 1);
    thread.state.grants.values().next().unwrap().clone()
}

/// The next turn asks for these calls.
fn turn(thread: &mut Thread, calls: Vec<JudgedCall>) -> Vec<Event> {
    thread.turn_in(&FramePath::root(), calls)
}

fn by_grant(thread: &Thread, id: &str) -> bool {
    let warrant = thread.action(id).warrant();
    matches!(warrant.map(|it| &it.from), Some(WarrantFrom::Grant(_)))
}

fn always(id: &str) -> JudgedCall {
    let terms = Terms {
        always_ask: true,
        ..Terms::new(holdpoint_core::Allowed::standard())
    };
    let write = tool("pay", "1", Effect::Write, plain());
    call(id, write, r#"{"to":"a"}"#, Verdict::Ask(terms))
}

fn revoke(thread: &mut Thread, grant: GrantId) -> Result<Vec<Event>, Refusal> {
    let command = Command::RevokeGrant {
        thread: thread.state.thread,
        given: None,
        grant,
    };
    thread.tell(user("bob"), command)
}

#[test]
fn further_calls_of_the_tool_pass_and_the_journal_says_by_whose_grant() {
    let mut thread = granted(terms(Matches::Tool));
    let grant = the_grant(&thread);
    assert_eq!(grant.by, user("bob").actor);
    turn(&mut thread, vec![held("c2", r#"{"to":"b"}"#)]);
    assert_eq!(thread.state.interrupts.len(), 0);
    let used = GrantUse {
        grant: grant.id,
        by: grant.by,
    };
    let warrant = thread.action("c2").warrant().unwrap();
    assert_eq!(warrant.from, WarrantFrom::Grant(used));
    assert_eq!(the_grant(&thread).used, 1);
    let action = thread.action("c2").id;
    thread.run(action, done("paid"));
}

#[test]
fn a_grant_covers_what_it_says_and_nothing_else() {
    let other_tool = || {
        let write = tool("wire", "1", Effect::Write, plain());
        call("c2", write, r#"{"to":"a"}"#, gated())
    };
    let newer = || {
        let write = tool("pay", "2", Effect::Write, plain());
        call("c2", write, r#"{"to":"a"}"#, gated())
    };
    let other_schema = || {
        let mut call = held("c2", r#"{"to":"a"}"#);
        if let Ok(judged) = &mut call.judged {
            judged.schema = holdpoint_core::Digest::of(b"another schema");
        }
        call
    };
    let same = || held("c2", r#"{"to":"a"}"#);
    let other_args = || held("c2", r#"{"to":"b"}"#);
    let cases: [(Matches, [bool; 5]); 3] = [
        (Matches::Tool, [true, true, false, false, false]),
        (Matches::Args, [true, false, false, false, false]),
        (Matches::All, [true, true, true, true, true]),
    ];
    for (matches, passes) in cases {
        let calls = [same(), other_args(), other_tool(), newer(), other_schema()];
        for (call, passes) in calls.into_iter().zip(passes) {
            let mut thread = granted(terms(matches));
            let told = format!("{matches:?} {call:?}");
            turn(&mut thread, vec![call]);
            assert_eq!(by_grant(&thread, "c2"), passes, "{told}");
            assert_eq!(thread.state.interrupts.is_empty(), passes);
        }
    }
}

#[test]
fn what_must_always_be_asked_passes_by_no_grant_and_gives_none() {
    let mut thread = granted(terms(Matches::All));
    turn(&mut thread, vec![always("c2")]);
    assert!(!by_grant(&thread, "c2"));
    let refusal = thread.answer(vec![granting(terms(Matches::Tool))]);
    let refusal = refusal.unwrap_err().to_string();
    assert!(refusal.contains("must always be asked"), "{refusal}");
    thread.answer(vec![Decision::APPROVE]).unwrap();
    assert_eq!(the_grant(&thread).used, 0);
}

#[test]
fn what_nobody_could_approve_passes_by_no_grant() {
    let mut thread = granted(terms(Matches::All));
    let write = tool("pay", "1", Effect::Write, plain());
    let verdict = crate::thread::ask(&[holdpoint_core::DecisionKind::Reject]);
    turn(&mut thread, vec![call("c2", write, "{}", verdict)]);
    assert!(!by_grant(&thread, "c2"));
}

#[test]
fn what_the_policy_denies_is_denied_whatever_was_granted() {
    let mut thread = granted(terms(Matches::All));
    let write = tool("pay", "1", Effect::Write, plain());
    turn(&mut thread, vec![call("c2", write, "{}", Verdict::Deny)]);
    assert_eq!(thread.state.actions.len(), 0);
}

#[test]
fn uses_are_counted_within_one_turn_and_over_turns() {
    let mut thread = granted(GrantTerms {
        uses: Some(3),
        ..terms(Matches::Tool)
    });
    turn(&mut thread, vec![held("c2", "{}")]);
    let action = thread.action("c2").id;
    thread.run(action, done("paid"));
    let calls = ["c3", "c4", "c5"].map(|id| held(id, "{}"));
    turn(&mut thread, calls.to_vec());
    let asked: Vec<_> = thread
        .pending()
        .asks
        .iter()
        .map(|it| it.action_id)
        .collect();
    assert_eq!(asked, [thread.action("c5").id]);
    assert_eq!(the_grant(&thread).used, 3);
    thread.answer(vec![reject("no")]).unwrap();
    for id in ["c3", "c4"] {
        let action = thread.action(id).id;
        thread.run(action, done("paid"));
    }
    turn(&mut thread, vec![held("c6", "{}")]);
    assert_eq!(thread.state.interrupts.len(), 1);
}

#[test]
fn a_granted_sibling_of_a_batched_turn_waits_with_it_and_runs_by_the_grant() {
    let mut thread = granted(GrantTerms {
        uses: Some(1),
        ..terms(Matches::Tool)
    });
    let calls = vec![
        held("c2", "{}"),
        held("c3", "{}"),
        free("c4", Effect::Read, plain()),
    ];
    turn(&mut thread, calls);
    assert_eq!(thread.work(), []);
    assert_eq!(thread.question().action_id, thread.action("c3").id);
    thread.answer(vec![Decision::APPROVE]).unwrap();
    assert!(by_grant(&thread, "c2") && !by_grant(&thread, "c3"));
    let from = |id: &str| thread.action(id).warrant().unwrap().from.clone();
    assert!(matches!(from("c3"), WarrantFrom::Person { .. }));
    assert_eq!(from("c4"), WarrantFrom::Policy);
    for id in ["c2", "c3", "c4"] {
        let action = thread.action(id).id;
        thread.run(action, done("ok"));
    }
}

#[test]
fn one_that_is_asked_about_call_by_call_lets_the_granted_run_at_once() {
    let mut thread = granted(GrantTerms {
        uses: Some(1),
        ..terms(Matches::Tool)
    });
    thread.think();
    let calls = vec![held("c2", "{}"), held("c3", "{}")];
    thread.reply_in(&FramePath::root(), InterruptMode::PerCall, "", calls);
    assert!(thread.is_ready("c2") && !thread.is_ready("c3"));
}

#[test]
fn a_grant_ends_at_its_time() {
    let expiring = || {
        granted(GrantTerms {
            expires_in: Some(Span::from_secs(60)),
            ..terms(Matches::Tool)
        })
    };
    let mut thread = expiring();
    thread.wait(59);
    turn(&mut thread, vec![held("c2", "{}")]);
    assert!(by_grant(&thread, "c2"));
    let mut thread = expiring();
    thread.wait(60);
    turn(&mut thread, vec![held("c2", "{}")]);
    assert_eq!(thread.state.interrupts.len(), 1);
}

#[test]
fn a_grant_that_is_taken_back_or_ends_between_reply_and_start_has_the_person_asked_after_all() {
    for revoked in [true, false] {
        let mut thread = granted(GrantTerms {
            expires_in: Some(Span::from_secs(60)),
            ..terms(Matches::Tool)
        });
        turn(&mut thread, vec![held("c2", r#"{"to":"b"}"#)]);
        if revoked {
            let grant = the_grant(&thread).id;
            revoke(&mut thread, grant).unwrap();
        } else {
            thread.wait(60);
        }
        let action = thread.action("c2").id;
        let events = thread.start(action);
        assert_eq!(names(&events), ["warrant_voided", "interrupt_raised"]);
        assert_eq!(thread.allowed(), holdpoint_core::DecisionKind::CONFIGURABLE);
        assert_eq!(thread.work(), []);
        thread.answer(vec![Decision::APPROVE]).unwrap();
        assert!(!by_grant(&thread, "c2"));
        thread.run(action, done("paid"));
    }
}

#[test]
fn a_grant_that_is_used_up_still_lets_run_what_it_let_pass() {
    let mut thread = granted(GrantTerms {
        uses: Some(1),
        ..terms(Matches::Tool)
    });
    turn(
        &mut thread,
        vec![held("c2", "{}"), held("c3", r#"{"to":"c"}"#)],
    );
    // Another grant makes room by forgetting what nobody can use any more, but not what something still runs by.
    thread.answer(vec![granting(terms(Matches::Args))]).unwrap();
    let action = thread.action("c2").id;
    let mut proof = thread.proof(action);
    proof.granted = false;
    let command = Command::StartAction {
        action,
        epoch: 1,
        proof,
    };
    let events = thread.drive(command);
    assert_eq!(names(&events), ["action_started"]);
}

#[test]
fn a_grant_that_was_taken_back_is_not_forgotten_while_something_waits_to_run_by_it() {
    let mut thread = granted(terms(Matches::Tool));
    let grant = the_grant(&thread).id;
    let write = tool("wire", "1", Effect::Write, plain());
    let wire = call("c3", write, "{}", gated());
    turn(&mut thread, vec![held("c2", "{}"), wire]);
    revoke(&mut thread, grant).unwrap();
    thread.answer(vec![granting(terms(Matches::Tool))]).unwrap();
    let action = thread.action("c2").id;
    assert_eq!(
        names(&thread.start(action)),
        ["warrant_voided", "interrupt_raised"]
    );
}

#[test]
fn a_grant_is_taken_back_once_by_a_person_of_the_tenant() {
    let mut thread = granted(terms(Matches::Tool));
    let grant = the_grant(&thread).id;
    let command = || Command::RevokeGrant {
        thread: crate::thread::thread_id(),
        given: None,
        grant,
    };
    let agent = Principal::new(PrincipalKind::Agent, TENANT, "teller");
    assert_eq!(
        thread.tell(agent, command()).unwrap_err().code(),
        "forbidden"
    );
    let eve = Principal::new(PrincipalKind::User, "other", "eve");
    assert_eq!(thread.tell(eve, command()), Err(Refusal::NotFound));
    let unknown = GrantId::from_bytes([9; 16]);
    assert_eq!(revoke(&mut thread, unknown), Err(Refusal::NotFound));
    let events = revoke(&mut thread, grant).unwrap();
    assert_eq!(events, [Event::GrantRevoked { grant }]);
    assert_eq!(revoke(&mut thread, grant), Ok(vec![]));
    turn(&mut thread, vec![held("c2", "{}")]);
    assert_eq!(thread.state.interrupts.len(), 1);
}

#[test]
fn an_agent_never_grants() {
    let mut thread = Thread::asked(vec![held("c1", "{}")]);
    let agent = Principal::new(PrincipalKind::Agent, TENANT, "teller");
    let answers = vec![Reply {
        interrupt: thread.pending().id,
        answer: Answer::All(granting(terms(Matches::All))),
        misfits: vec![],
        lacking: vec![],
        shown: vec![],
        bond: Bond::default(),
    }];
    let refusal = thread.tell(agent, Command::Answer { answers }).unwrap_err();
    assert_eq!(refusal.code(), "forbidden");
    assert_eq!(thread.state.grants.len(), 0);
}

#[test]
fn a_grant_for_everything_is_good_for_one_thread_only() {
    let mut thread = Thread::asked(vec![held("c1", "{}")]);
    let wide = GrantTerms {
        scope: Scope::Agent,
        ..terms(Matches::All)
    };
    let refusal = thread.answer(vec![granting(wide)]).unwrap_err();
    assert_eq!(refusal.code(), "misfit");
}

#[test]
fn a_thread_holds_as_many_grants_as_it_can_and_no_more_however_they_are_given() {
    let mut thread = Thread::thinking();
    let calls = |from: usize, to: usize| -> Vec<JudgedCall> {
        let call = |n| held(&format!("c{n}"), &format!(r#"{{"to":{n}}}"#));
        (from..to).map(call).collect()
    };
    thread.reply("", calls(0, Grant::MAX + 1));
    let interrupt = thread.pending().id;
    let all = Answer::All(granting(terms(Matches::Args)));
    let refusal = thread.answer_to(interrupt, all).unwrap_err();
    assert!(refusal.to_string().contains("revoke one first"));
    let mut some = vec![granting(terms(Matches::Args)); Grant::MAX];
    some.push(Decision::APPROVE);
    thread.answer(some).unwrap();
    assert_eq!(thread.state.grants.len(), Grant::MAX);
    for n in 0..=Grant::MAX {
        let action = thread.action(&format!("c{n}")).id;
        thread.run(action, done("paid"));
    }
    turn(&mut thread, calls(100, 101));
    let full = thread.answer(vec![granting(terms(Matches::Args))]);
    assert_eq!(full.unwrap_err().code(), "misfit");
    let grant = *thread.state.grants.keys().next().unwrap();
    revoke(&mut thread, grant).unwrap();
    thread.answer(vec![granting(terms(Matches::Args))]).unwrap();
    assert_eq!(thread.state.grants.len(), Grant::MAX);
}

#[test]
fn what_is_granted_to_a_subagent_is_not_granted_to_others() {
    let mut thread = Thread::asked(vec![task("t1", "a"), task("t2", "b")]);
    for id in ["t1", "t2"] {
        let action = thread.action(id).id;
        thread.start(action);
    }
    thread.turn_in(&path("a#1"), vec![held("s1", "{}")]);
    thread.answer(vec![granting(terms(Matches::Tool))]).unwrap();
    let action = thread.action("s1").id;
    thread.run(action, done("paid"));
    thread.turn_in(&path("a#1"), vec![held("s2", "{}")]);
    assert!(by_grant(&thread, "s2"));
    thread.turn_in(&path("b#2"), vec![held("s3", "{}")]);
    assert_eq!(thread.state.interrupts.len(), 1);
}

#[test]
fn a_grant_outlives_the_run_in_which_it_was_given() {
    let mut thread = granted(terms(Matches::Tool));
    thread.last_word(&FramePath::root(), "bye");
    thread.start_run(holdpoint_core::Limits::default());
    turn(&mut thread, vec![held("c2", "{}")]);
    assert!(by_grant(&thread, "c2"));
    thread.cancel();
    assert_eq!(thread.state.status(), Some(Status::Cancelled));
}

/// A grant for all threads of the agent, as the answer recorded it.
fn wide(uses: Option<u32>) -> (Thread, Grant) {
    let mut thread = Thread::asked(vec![held("c1", "{}")]);
    let given = GrantTerms {
        scope: Scope::Agent,
        uses,
        ..terms(Matches::Tool)
    };
    let events = thread.answer(vec![granting(given)]).unwrap();
    let Event::Answered { decisions, .. } = &events[0] else {
        panic!("{events:?}");
    };
    let grant = decisions[0].grant.clone().unwrap();
    let action = thread.action("c1").id;
    thread.run(action, done("paid"));
    (thread, *grant)
}

#[test]
fn a_grant_for_all_threads_is_found_by_index_and_lets_nothing_pass_by_itself() {
    let (mut thread, _) = wide(None);
    assert_eq!(thread.state.grants.len(), 0);
    let rows = thread.rows.iter();
    let found = rows.filter(|row| (row.index, &*row.key) == (Index::Grant, "teller"));
    assert_eq!(found.count(), 1);
    turn(&mut thread, vec![held("c2", "{}")]);
    assert_eq!(thread.state.interrupts.len(), 1);
}

#[test]
fn a_use_of_a_grant_for_all_threads_is_reserved_in_a_thread_of_its_own() {
    let (mut thread, grant) = wide(Some(2));
    let id = ThreadId::of_grant(TENANT, grant.id);
    let mut uses = Thread::new();
    let calls = thread.with_ids(vec![held("c2", "{}")]);
    let reserve = |action| Command::UseGrant {
        thread: id,
        grant: Box::new(grant.clone()),
        action,
        caller: crate::thread::thread_id(),
    };
    let events = uses.tell(driver(), reserve(calls[0].id)).unwrap();
    let expected = ["thread_created", "grant_kept", "grant_used"];
    assert_eq!(names(&events), expected);
    assert_eq!(uses.state.kind, ThreadKind::Grant);
    assert_eq!(the_grant(&uses).used, 1);
    // The reserved use lets the call pass.
    let mut call = calls[0].clone();
    if let Ok(judged) = &mut call.judged {
        judged.reserved = Some(GrantUse {
            grant: grant.id,
            by: grant.by.clone(),
        });
    }
    turn(&mut thread, vec![call]);
    assert!(by_grant(&thread, "c2"));
    let events = uses.tell(driver(), reserve(calls[0].id)).unwrap();
    assert_eq!(names(&events), ["grant_used"]);
    let refused = uses.tell(driver(), reserve(calls[0].id)).unwrap_err();
    let used_up = Refusal::Stale("the grant is used up, expired or revoked");
    assert_eq!(refused, used_up);
    // The thread of another grant counts no uses of this one.
    let mut other = grant.clone();
    other.id = GrantId::from_bytes([9; 16]);
    let command = Command::UseGrant {
        thread: id,
        grant: Box::new(other),
        action: calls[0].id,
        caller: crate::thread::thread_id(),
    };
    assert_eq!(uses.tell(driver(), command), Err(used_up));
}

#[test]
fn a_reserved_use_does_not_help_what_must_always_be_asked() {
    let (mut thread, grant) = wide(None);
    let mut call = always("c2");
    if let Ok(judged) = &mut call.judged {
        judged.reserved = Some(GrantUse {
            grant: grant.id,
            by: grant.by,
        });
    }
    turn(&mut thread, vec![call]);
    assert_eq!(thread.state.interrupts.len(), 1);
    assert!(!by_grant(&thread, "c2"));
}

#[test]
fn a_grant_for_all_threads_that_is_taken_back_before_the_start_has_the_person_asked() {
    let (mut thread, grant) = wide(None);
    let mut call = held("c2", "{}");
    if let Ok(judged) = &mut call.judged {
        judged.reserved = Some(GrantUse {
            grant: grant.id,
            by: grant.by.clone(),
        });
    }
    turn(&mut thread, vec![call]);
    let mut uses = Thread::new();
    let command = Command::RevokeGrant {
        thread: ThreadId::of_grant(TENANT, grant.id),
        given: Some(Box::new(grant.clone())),
        grant: grant.id,
    };
    let events = uses.tell(user("bob"), command).unwrap();
    let expected = ["thread_created", "grant_kept", "grant_revoked"];
    assert_eq!(names(&events), expected);
    let action = thread.action("c2").id;
    let mut proof = thread.proof(action);
    proof.granted = false;
    let events = thread.drive(Command::StartAction {
        action,
        epoch: 1,
        proof,
    });
    assert_eq!(names(&events), ["warrant_voided", "interrupt_raised"]);
}

#[test]
fn an_agents_thread_keeps_no_uses_for_others() {
    let (mut thread, grant) = wide(None);
    let action = holdpoint_core::ActionId::from_bytes([1; 16]);
    let command = Command::UseGrant {
        thread: crate::thread::thread_id(),
        grant: Box::new(grant),
        action,
        caller: crate::thread::thread_id(),
    };
    assert_eq!(thread.tell(driver(), command), Err(Refusal::NotFound));
}
