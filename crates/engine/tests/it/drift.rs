//! The definition changes while a question is open, or after it was answered.

use holdpoint_core::{Answer, Decision, DecisionKind, Definition, Effect, Gate, Hooks};

use crate::support::*;

fn pay(version: &str, gate: Gate) -> Definition {
    let mut pay = tool("pay", Effect::Write, Hooks::default());
    pay.version = version.to_owned();
    definition(
        vec![pay, tool("look", Effect::Read, Hooks::default())],
        &[("pay", gate)],
    )
}

fn place() -> Place {
    Place::new(
        |messages, _| match results(messages).len() {
            0 => calls(&[("pay", r#"{"n":1}"#), ("look", "{}")]),
            _ => says("done"),
        },
        &[("pay", Counter::default()), ("look", Counter::default())],
    )
}

const WIDE: [DecisionKind; 3] = [
    DecisionKind::Approve,
    DecisionKind::Edit,
    DecisionKind::Reject,
];

#[tokio::test]
async fn a_new_tool_version_makes_the_question_stale_and_it_is_asked_again_with_the_difference() {
    let place = place();
    let engine = place.engine();
    let agent = engine.publish("local", pay("1", ask(&WIDE))).await.unwrap();
    run(&engine, &agent, "s").await;
    let old = pending(&engine, "s").await;
    engine.publish("local", pay("2", ask(&WIDE))).await.unwrap();
    let refused = answer(&engine, "s", vec![Decision::APPROVE])
        .await
        .unwrap_err();
    let new = pending(&engine, "s").await;
    let expected = format!("what `{old}` asked about has changed; it is asked again as `{new}`");
    assert_eq!(
        (refused.code(), refused.to_string()),
        ("stale_question", expected)
    );
    let waiting = view(&engine, "s").await;
    assert_eq!(
        waiting.interrupts[0].changes,
        ["`pay`: version `1` became `2`"]
    );
    assert_eq!(
        (waiting.interrupts[0].supersedes, place.tools["pay"].count()),
        (Some(old), 0)
    );

    let view = answer(&engine, "s", vec![Decision::APPROVE]).await.unwrap();
    assert_eq!(
        (
            view.status,
            place.tools["pay"].count(),
            place.tools["look"].count()
        ),
        ("finished", 1, 1)
    );
}

#[tokio::test]
async fn what_another_process_did_meanwhile_counts_and_not_what_is_remembered() {
    let place = place();
    let (parked_it, other) = (place.engine(), place.engine());
    let agent = parked_it.publish("local", pay("1", ask(&WIDE))).await;
    let agent = agent.unwrap();
    for session in ["published", "answered"] {
        run(&parked_it, &agent, session).await;
    }
    let question = pending(&parked_it, "answered").await;
    let approve = || vec![Decision::APPROVE];

    let view = answer(&other, "answered", approve()).await.unwrap();
    assert_eq!((view.status, place.tools["pay"].count()), ("finished", 1));
    let again = Answer::All(Decision::APPROVE);
    let (me, key) = (me(), key("answered"));
    let late = parked_it.answer(&me, &key, question, again).await;
    assert_eq!(late.unwrap_err().code(), "already_decided");

    other.publish("local", pay("2", ask(&WIDE))).await.unwrap();
    let refused = answer(&parked_it, "published", approve()).await;
    assert_eq!(refused.unwrap_err().code(), "stale_question");
    assert_eq!(place.tools["pay"].count(), 1);
}

#[tokio::test]
async fn a_stricter_policy_asks_again_and_a_looser_one_does_not() {
    for (gate, stale) in [
        (ask(&[DecisionKind::Approve, DecisionKind::Reject]), true),
        (
            ask(&[
                DecisionKind::Respond,
                DecisionKind::Approve,
                DecisionKind::Edit,
                DecisionKind::Reject,
            ]),
            false,
        ),
        (Gate::open(), false),
    ] {
        let place = place();
        let engine = place.engine();
        let agent = engine.publish("local", pay("1", ask(&WIDE))).await.unwrap();
        run(&engine, &agent, "s").await;
        engine.publish("local", pay("1", gate)).await.unwrap();
        match answer(&engine, "s", vec![Decision::APPROVE]).await {
            Ok(view) => assert_eq!((view.status, stale), ("finished", false)),
            Err(error) => assert_eq!((error.code(), stale), ("stale_question", true)),
        }
    }
}

#[tokio::test]
async fn an_ungated_call_that_waited_for_the_batch_is_asked_about_where_it_is_gated_now() {
    let place = place();
    let engine = place.engine();
    let agent = engine.publish("local", pay("1", ask(&WIDE))).await.unwrap();
    run(&engine, &agent, "s").await;
    let mut stricter = pay("1", ask(&WIDE));
    stricter
        .policy
        .interrupt_on
        .insert("look".to_owned(), ask(&WIDE));
    engine.publish("local", stricter).await.unwrap();
    let view = answer(&engine, "s", vec![Decision::APPROVE]).await.unwrap();
    assert_eq!(
        (
            view.status,
            place.tools["pay"].count(),
            place.tools["look"].count()
        ),
        ("waiting", 1, 0)
    );
    assert_eq!(view.interrupts[0].value.action_requests[0].name, "look");
    let view = answer(&engine, "s", vec![Decision::APPROVE]).await.unwrap();
    assert_eq!((view.status, place.tools["look"].count()), ("finished", 1));
}

#[tokio::test]
async fn a_tool_that_is_gone_is_an_error_interrupt_that_lets_nothing_run() {
    let place = place();
    let engine = place.engine();
    let agent = engine.publish("local", pay("1", ask(&WIDE))).await.unwrap();
    run(&engine, &agent, "s").await;
    let mut without = pay("1", ask(&WIDE));
    without.tools.remove(0);
    without.policy.interrupt_on.clear();
    engine.publish("local", without).await.unwrap();
    let refused = answer(&engine, "s", vec![Decision::APPROVE])
        .await
        .unwrap_err();
    assert_eq!(refused.code(), "stale_question");
    let waiting = view(&engine, "s").await;
    let interrupt = &waiting.interrupts[0];
    assert_eq!(interrupt.changes, ["the tool `pay` no longer exists"]);
    assert_eq!(
        interrupt.value.review_configs[0]
            .allowed_decisions
            .to_string(),
        "reject, respond"
    );
    let view = answer(&engine, "s", vec![Decision::Reject { message: None }])
        .await
        .unwrap();
    assert_eq!((view.status, place.tools["pay"].count()), ("finished", 0));
}
