//! What was asked or allowed is asked again when the definition changed, and nothing runs that was not allowed.

use holdpoint_core::{
    ActionStatus, Cause, Command, Decision, DecisionKind, Digest, Effect, Event, InterruptKind,
    InterruptStatus, Proof, RestatedCall, Subject, ToolNow, Verdict,
};

use crate::thread::{
    Thread, ask, call, done, driver, edit, free, gated, gone, held, lost, path, plain, reject,
    restated, task, tool, with_compensation,
};

fn pay(version: &str) -> holdpoint_core::ToolFacts {
    tool("pay", version, Effect::Write, plain())
}

#[test]
fn a_new_version_while_the_question_is_pending_asks_everything_again_and_names_the_old_question() {
    let mut thread = Thread::asked(vec![
        held("c1", r#"{"to":"a"}"#),
        held("c2", r#"{"to":"b"}"#),
        free("c3", Effect::Read, plain()),
    ]);
    let old = thread.pending().clone();
    let (first, second) = (thread.action("c1").id, thread.action("c2").id);
    let events = thread
        .restate(Some(old.id), vec![restated(second, pay("2"), gated())])
        .unwrap();
    let names: Vec<&str> = events.iter().map(Event::name).collect();
    assert_eq!(names, ["interrupt_closed", "repinned", "interrupt_raised"]);
    let Event::InterruptClosed { status, .. } = &events[0] else {
        panic!("{events:?}");
    };
    assert_eq!(*status, InterruptStatus::Canceled);
    let new = thread.pending().clone();
    assert_eq!(new.supersedes, Some(old.id));
    assert_eq!(new.changes, ["it changed"]);
    assert_eq!(new.definition, Digest::of(b"new definition"));
    // In call order, the unchanged one exactly as it was.
    assert_eq!(new.asks[0], old.asks[0]);
    assert_eq!(
        (new.asks[0].action_id, new.asks[1].action_id),
        (first, second)
    );
    let Subject::Action {
        tool_version,
        params_hash,
        ..
    } = &new.asks[1].subject
    else {
        panic!("{new:?}");
    };
    assert_eq!(tool_version, "2");
    assert_eq!(*params_hash, thread.action("c2").params.hash("pay", "2"));
    let held = ActionStatus::Held { interrupt: new.id };
    assert_eq!(thread.action("c3").status, held);
    let stale = thread.answer_to(old.id, holdpoint_core::Answer::All(Decision::APPROVE));
    assert_eq!(stale.unwrap_err().code(), "not_pending");
    thread
        .answer(vec![Decision::APPROVE, Decision::APPROVE])
        .unwrap();
    assert!(["c1", "c2", "c3"].iter().all(|call| thread.is_ready(call)));
    let warrant = thread.action("c2").warrant().unwrap();
    assert_eq!(warrant.tool_version, "2");
    assert_eq!(
        thread.action("c2").definition,
        Digest::of(b"new definition")
    );
    assert_eq!(thread.action("c1").definition, Digest::of(b"definition"));
}

#[test]
fn a_new_version_after_the_approval_voids_it_and_only_that_action_is_asked_again() {
    let mut thread = Thread::asked(vec![held("c1", "{}"), held("c2", r#"{"to":"b"}"#)]);
    thread
        .answer(vec![Decision::APPROVE, Decision::APPROVE])
        .unwrap();
    let action = thread.action("c1").id;
    thread
        .restate(None, vec![restated(action, pay("2"), gated())])
        .unwrap();
    assert_eq!(thread.question().action_id, action);
    assert!(thread.is_ready("c2"));
    assert_eq!(thread.work().len(), 1);
    thread.answer(vec![Decision::APPROVE]).unwrap();
    assert!(thread.is_ready("c1"));
}

#[test]
fn a_tool_that_is_gone_can_only_be_rejected_or_answered_for() {
    for pending in [true, false] {
        let mut thread = Thread::asked(vec![held("c1", "{}")]);
        let mut old = Some(thread.pending().id);
        if !pending {
            thread.answer(vec![Decision::APPROVE]).unwrap();
            old = None;
        }
        let action = thread.action("c1").id;
        thread.restate(old, vec![gone(action)]).unwrap();
        let asked = thread.pending();
        assert_eq!(
            (asked.kind, asked.cause),
            (InterruptKind::Error, Cause::ToolFailure)
        );
        use DecisionKind::{Reject, Respond};
        assert_eq!(thread.allowed(), [Reject, Respond]);
        assert_eq!(
            thread.answer(vec![Decision::APPROVE]).unwrap_err().code(),
            "misfit"
        );
        thread.answer(vec![reject("")]).unwrap();
        assert_eq!(thread.state.actions.len(), 0);
    }
}

#[test]
fn a_policy_that_was_tightened_gates_the_ungated_sibling_too() {
    let mut thread = Thread::asked(vec![held("c1", "{}"), free("c2", Effect::Write, plain())]);
    let old = thread.pending().id;
    let sibling = thread.action("c2").clone();
    let calls = vec![restated(sibling.id, sibling.tool, gated())];
    thread.restate(Some(old), calls).unwrap();
    assert_eq!(thread.pending().asks.len(), 2);
    thread
        .answer(vec![Decision::APPROVE, reject("not this")])
        .unwrap();
    assert!(thread.is_ready("c1"));
    assert_eq!(thread.state.actions.len(), 1);
}

#[test]
fn a_policy_that_was_loosened_does_not_lower_the_floor() {
    use DecisionKind::{Approve, Edit, Reject};
    let verdict = ask(&[Approve, Reject]);
    let mut thread = Thread::asked(vec![call("c1", pay("1"), "{}", verdict)]);
    let (old, action) = (thread.pending().id, thread.action("c1").id);
    let calls = vec![restated(action, pay("2"), Verdict::Allow)];
    thread.restate(Some(old), calls).unwrap();
    assert_eq!(thread.allowed(), [Approve, Reject]);
    let (old, action) = (thread.pending().id, thread.action("c1").id);
    let calls = vec![restated(action, pay("3"), ask(&[Approve, Edit]))];
    thread.restate(Some(old), calls).unwrap();
    assert_eq!(thread.allowed(), [Approve]);
}

#[test]
fn arguments_that_no_longer_fit_can_be_edited_and_not_approved() {
    let mut thread = Thread::asked(vec![held("c1", "{}")]);
    let (old, action) = (thread.pending().id, thread.action("c1").id);
    let call = RestatedCall {
        action,
        tool: ToolNow::There {
            tool: pay("2"),
            schema: Digest::of(b"s2"),
            verdict: gated(),
            fits: false,
        },
        changes: vec!["`to` is required".to_owned()],
    };
    thread.restate(Some(old), vec![call]).unwrap();
    use DecisionKind::{Edit, Reject, Respond};
    assert_eq!(thread.allowed(), [Edit, Reject, Respond]);
    thread.answer(vec![edit("pay", r#"{"to":"a"}"#)]).unwrap();
    assert!(thread.is_ready("c1"));
}

#[test]
fn what_was_started_is_never_restated() {
    let (mut thread, action) = Thread::started(Effect::Write, plain());
    let newer = || {
        vec![restated(
            action,
            tool("work", "2", Effect::Write, plain()),
            gated(),
        )]
    };
    assert_eq!(thread.restate(None, newer()).unwrap_err().code(), "stale");
    thread.end(action, 1, lost());
    let asked = Some(thread.pending().id);
    assert_eq!(thread.restate(asked, newer()).unwrap_err().code(), "stale");
    thread.answer(vec![Decision::NotCommitted]).unwrap();
    assert_eq!(thread.restate(None, newer()).unwrap_err().code(), "stale");
}

#[test]
fn a_compensation_is_never_restated() {
    let (mut thread, action) = Thread::started(Effect::Write, with_compensation());
    thread.end(action, 1, lost());
    thread.answer(vec![Decision::Compensate]).unwrap();
    let undo = thread.compensation().id;
    let refusal = thread.restate(None, vec![gone(undo)]).unwrap_err();
    assert_eq!(refusal.code(), "stale");
}

#[test]
fn one_action_is_not_restated_twice_in_one_question() {
    let mut thread = Thread::asked(vec![held("c1", "{}")]);
    let (old, action) = (thread.pending().id, thread.action("c1").id);
    let calls = vec![
        restated(action, pay("2"), gated()),
        restated(action, pay("3"), gated()),
    ];
    let _ = thread.restate(Some(old), calls);
    assert_eq!(thread.pending().asks.len(), 1);
}

#[test]
fn what_is_about_to_run_must_be_what_was_allowed_or_nothing_runs_and_a_person_is_told() {
    let wrong: [fn(&mut Proof); 2] = [
        |proof| proof.params_hash = Digest::of(b"another call"),
        |proof| "2".clone_into(&mut proof.tool_version),
    ];
    for spoil in wrong {
        for gate in [true, false] {
            let mut thread = if gate {
                let mut thread = Thread::asked(vec![held("c1", "{}")]);
                thread.answer(vec![Decision::APPROVE]).unwrap();
                thread
            } else {
                Thread::asked(vec![free("c1", Effect::Write, plain())])
            };
            let action = thread.action("c1").id;
            let mut proof = thread.proof(action);
            spoil(&mut proof);
            let command = Command::StartAction {
                action,
                epoch: 1,
                proof,
            };
            let events = thread.tell(driver(), command).unwrap();
            let names: Vec<&str> = events.iter().map(Event::name).collect();
            assert_eq!(names, ["warrant_voided", "interrupt_raised"]);
            assert_eq!(thread.work(), []);
            use DecisionKind::{Reject, Respond};
            assert_eq!(thread.allowed(), [Reject, Respond]);
            thread.answer(vec![reject("")]).unwrap();
            assert_eq!(thread.state.actions.len(), 0);
        }
    }
}

#[test]
fn a_voided_warrant_is_given_anew_by_a_restatement() {
    let mut thread = Thread::asked(vec![free("c1", Effect::Write, plain())]);
    let action = thread.action("c1").id;
    let mut proof = thread.proof(action);
    "2".clone_into(&mut proof.tool_version);
    thread.drive(Command::StartAction {
        action,
        epoch: 1,
        proof,
    });
    let old = thread.pending().id;
    let newer = tool("work", "2", Effect::Write, plain());
    thread
        .restate(Some(old), vec![restated(action, newer, Verdict::Allow)])
        .unwrap();
    thread.answer(vec![Decision::APPROVE]).unwrap();
    thread.run(action, done("ok"));
    assert_eq!(thread.told(), [("c1".to_owned(), "ok".to_owned())]);
}

#[test]
fn a_warrant_of_an_older_plan_starts_nothing() {
    let mut thread = Thread::asked(vec![free("c1", Effect::Write, plain())]);
    thread.state.plan_version = 2;
    let action = thread.action("c1").id;
    let proof = thread.proof(action);
    let command = Command::StartAction {
        action,
        epoch: 1,
        proof,
    };
    let state = thread.state.clone();
    let mut context = thread.context(driver());
    let events = holdpoint_core::decide(&state, command, &mut context).unwrap();
    let Event::WarrantVoided { reason, .. } = &events[0] else {
        panic!("{events:?}");
    };
    let expected = "allowed under plan version 1, but the plan is now at version 2";
    assert_eq!(reason, expected);
}

#[test]
fn what_changed_in_several_frames_is_asked_in_each_of_them() {
    let mut thread = Thread::asked(vec![task("t1", "a"), free("c2", Effect::Write, plain())]);
    let action = thread.action("t1").id;
    thread.start(action);
    let frame = path("a#1");
    thread.turn_in(&frame, vec![free("s1", Effect::Write, plain())]);
    let [outer, inner] = ["c2", "s1"].map(|id| thread.action(id).id);
    let newer = || tool("work", "2", Effect::Write, plain());
    let calls = [outer, inner].map(|id| restated(id, newer(), gated()));
    thread.restate(None, calls.to_vec()).unwrap();
    assert_eq!(thread.state.interrupts.len(), 2);
    let question = |id| &thread.state.interrupts[&thread.asked_about(id)];
    assert!(question(outer).frame.is_root());
    assert_eq!(question(inner).frame, frame);
}
