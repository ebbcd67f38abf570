//! What becomes of calls whose driver died, whose outcome is unknown, or whose run was cancelled.

use std::time::Duration;

use holdpoint_core::{Answer, Decision, Effect, Hooks, Lookup, Message, Outcome, Span};
use holdpoint_engine::Engine;
use holdpoint_models::{Failure, Reply};

use crate::support::*;

fn pays_once(messages: &[Message], _attempt: u32) -> Result<Reply, Failure> {
    match results(messages).len() {
        0 => calls(&[("pay", r#"{"n":1}"#)]),
        _ => says("done"),
    }
}

const LOOKUP: Hooks = Hooks {
    lookup: true,
    compensate: false,
};
const BOTH: Hooks = Hooks {
    lookup: true,
    compensate: true,
};

async fn world(effect: Effect, hooks: Hooks, pay: Counter) -> (Place, Engine) {
    let place = Place::new(pays_once, &[("pay", pay)]);
    let engine = place.engine();
    engine
        .publish("local", definition(vec![tool("pay", effect, hooks)], &[]))
        .await
        .unwrap();
    (place, engine)
}

async fn start(engine: &Engine, effect: Effect, hooks: Hooks) -> holdpoint_engine::RunView {
    let agent = engine
        .publish("local", definition(vec![tool("pay", effect, hooks)], &[]))
        .await
        .unwrap();
    run(engine, &agent, "s").await
}

fn unknown() -> Outcome {
    Outcome::Unknown {
        reason: "the line went dead".to_owned(),
    }
}

#[tokio::test]
async fn a_read_and_an_idempotent_call_are_repeated_with_the_same_key() {
    for effect in [Effect::Read, Effect::Idempotent] {
        let pay = Counter::default();
        pay.outcomes.lock().unwrap().extend([unknown(), unknown()]);
        let (place, engine) = world(effect, Hooks::default(), pay).await;
        let view = start(&engine, effect, Hooks::default()).await;
        assert_eq!(
            (view.status, contents(&view)),
            ("finished", vec!["pay done".to_owned()])
        );
        let keys = place.tools["pay"].keys();
        assert_eq!(keys.len(), 3);
        assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
    }
}

#[tokio::test]
async fn an_approved_call_whose_record_took_too_long_is_made_after_all_and_nobody_is_asked_again() {
    let place = Place::new(pays_once, &[("pay", Counter::default())]);
    let engine = place.engine();
    let pay = tool("pay", Effect::Write, Hooks::default());
    let gates = [("pay", ask(&[holdpoint_core::DecisionKind::Approve]))];
    let agent = engine.publish("local", definition(vec![pay], &gates)).await;
    let parked = run(&engine, &agent.unwrap(), "s").await;
    assert_eq!(parked.status, "waiting");
    // Nobody can write for longer than the tool has.
    let blocked = place.database();
    blocked.execute_batch("BEGIN IMMEDIATE").unwrap();
    let engine = engine.clone();
    let answered =
        tokio::spawn(async move { answer(&engine, "s", vec![Decision::APPROVE]).await.unwrap() });
    tokio::time::sleep(Duration::from_millis(900)).await;
    assert_eq!(place.tools["pay"].count(), 0);
    blocked.execute_batch("COMMIT").unwrap();
    let view = answered.await.unwrap();
    assert_eq!(
        (view.status, contents(&view)),
        ("finished", vec!["pay done".to_owned()])
    );
    assert_eq!(place.tools["pay"].count(), 1);
    assert!(place.database_has("action_withheld"));
}

#[tokio::test]
async fn a_read_that_never_works_is_an_error_for_the_model_and_an_idempotent_one_a_question() {
    let pay = Counter::default();
    pay.outcomes
        .lock()
        .unwrap()
        .extend([unknown(), unknown(), unknown()]);
    let (_place, engine) = world(Effect::Read, Hooks::default(), pay.clone()).await;
    let view = start(&engine, Effect::Read, Hooks::default()).await;
    assert_eq!((view.status, contents(&view).len()), ("finished", 1));
    assert!(contents(&view)[0].contains("gave no result: the line went dead"));

    pay.outcomes
        .lock()
        .unwrap()
        .extend([unknown(), unknown(), unknown()]);
    let (_place, engine) = world(Effect::Idempotent, Hooks::default(), pay).await;
    let view = start(&engine, Effect::Idempotent, Hooks::default()).await;
    assert_eq!(
        (view.status, view.cause.as_deref()),
        ("waiting", Some("tool_failure"))
    );
}

#[tokio::test]
async fn an_unknown_write_without_a_lookup_is_asked_about_and_never_repeated_blindly() {
    let pay = Counter::default();
    pay.outcomes.lock().unwrap().push_back(unknown());
    let (place, engine) = world(Effect::Write, Hooks::default(), pay).await;
    let view = start(&engine, Effect::Write, Hooks::default()).await;
    assert_eq!(
        (view.status, view.cause.as_deref()),
        ("waiting", Some("write_unknown"))
    );
    let allowed = view.interrupts[0].value.review_configs[0]
        .allowed_decisions
        .to_string();
    assert_eq!(
        (allowed.as_str(), place.tools["pay"].count()),
        ("committed, not_committed", 1)
    );

    let result = Decision::Committed {
        result: serde_json::json!({"receipt": 7}),
    };
    let view = answer(&engine, "s", vec![result]).await.unwrap();
    assert_eq!(
        (view.status, contents(&view)),
        ("finished", vec![r#"{"receipt":7}"#.to_owned()])
    );
    assert_eq!(place.tools["pay"].count(), 1);
}

#[tokio::test]
async fn what_a_person_says_did_not_happen_is_tried_again_with_the_same_key() {
    let pay = Counter::default();
    pay.outcomes.lock().unwrap().push_back(unknown());
    let (place, engine) = world(Effect::Write, Hooks::default(), pay).await;
    start(&engine, Effect::Write, Hooks::default()).await;
    let view = answer(&engine, "s", vec![Decision::NotCommitted])
        .await
        .unwrap();
    assert_eq!(
        (view.status, contents(&view)),
        ("finished", vec!["pay done".to_owned()])
    );
    let keys = place.tools["pay"].keys();
    assert_eq!((keys.len(), keys[0] == keys[1]), (2, true));
}

#[tokio::test]
async fn an_unknown_write_is_looked_up() {
    let committed = Lookup::Committed {
        receipt: serde_json::json!("receipt 9"),
    };
    let partial = Lookup::Partial {
        receipt: serde_json::json!("half of it"),
    };
    let cases = [
        (vec![committed.clone()], "finished", None, 1),
        (vec![Lookup::NotFound], "finished", None, 2),
        (vec![partial], "waiting", Some("write_unknown"), 1),
        (vec![], "waiting", Some("write_unknown"), 1),
    ];
    for (lookups, status, cause, count) in cases {
        let pay = Counter::default();
        pay.outcomes.lock().unwrap().push_back(unknown());
        pay.lookups.lock().unwrap().extend(lookups.clone());
        let (place, engine) = world(Effect::Write, LOOKUP, pay).await;
        let view = start(&engine, Effect::Write, LOOKUP).await;
        assert_eq!(
            (view.status, view.cause.as_deref()),
            (status, cause),
            "{lookups:?}"
        );
        assert_eq!(place.tools["pay"].count(), count, "{lookups:?}");
        if lookups == [committed.clone()] {
            assert_eq!(contents(&view), ["receipt 9"]);
        }
    }
}

#[tokio::test]
async fn a_person_may_have_an_unknown_effect_undone() {
    let pay = Counter::default();
    pay.outcomes.lock().unwrap().push_back(unknown());
    let hooks = Hooks {
        lookup: false,
        compensate: true,
    };
    let (place, engine) = world(Effect::Write, hooks, pay).await;
    start(&engine, Effect::Write, hooks).await;
    let view = answer(&engine, "s", vec![Decision::Compensate])
        .await
        .unwrap();
    assert_eq!(view.status, "finished");
    assert!(
        contents(&view)[0].contains("was undone"),
        "{:?}",
        contents(&view)
    );
    assert_eq!(
        place.tools["pay"]
            .undone
            .load(std::sync::atomic::Ordering::SeqCst),
        1
    );
}

/// Starts a run whose call takes long, and lets its driver die in the middle of it.
async fn die_in_flight(place: &Place, engine: &Engine, effect: Effect, hooks: Hooks) {
    let agent = engine
        .publish("local", definition(vec![tool("pay", effect, hooks)], &[]))
        .await
        .unwrap();
    let submitted = engine.start(&me(), &agent, "s", "go").await.unwrap();
    let driver = submitted.finish();
    assert!(
        tokio::time::timeout(Duration::from_millis(150), driver)
            .await
            .is_err()
    );
    assert_eq!(
        place.tools["pay"].count(),
        0,
        "the call was cut off before its effect"
    );
}

#[tokio::test]
async fn another_process_takes_over_after_the_lease_and_looks_up_what_was_in_flight() {
    let pay = Counter {
        takes: Duration::from_millis(250),
        ..Counter::default()
    };
    pay.lookups.lock().unwrap().push_back(Lookup::NotFound);
    let (place, engine) = world(Effect::Write, LOOKUP, pay).await;
    die_in_flight(&place, &engine, Effect::Write, LOOKUP).await;
    let other = place.engine();
    other.drive(&key("s")).await.unwrap();
    let view = view(&other, "s").await;
    assert_eq!((view.status, place.tools["pay"].count()), ("finished", 1));
}

#[tokio::test]
async fn a_write_in_flight_at_the_cancel_is_undone_once_it_lands() {
    let pay = Counter {
        takes: Duration::from_millis(200),
        ..Counter::default()
    };
    let (place, engine) = world(Effect::Write, BOTH, pay).await;
    let agent = engine
        .publish(
            "local",
            definition(vec![tool("pay", Effect::Write, BOTH)], &[]),
        )
        .await
        .unwrap();
    let submitted = engine.start(&me(), &agent, "s", "go").await.unwrap();
    let cancel = async {
        tokio::time::sleep(Duration::from_millis(60)).await;
        let recorded = engine.cancel(&me(), &key("s"), None).await.unwrap();
        assert_eq!(recorded.key(), &key("s"));
        let meanwhile = view(&engine, "s").await;
        assert_eq!(
            (meanwhile.status, meanwhile.cancel_requested),
            ("running", true)
        );
        assert_eq!(
            engine
                .start(&me(), &agent, "s", "more")
                .await
                .unwrap_err()
                .code(),
            "run_active"
        );
    };
    let (driven, ()) = tokio::join!(submitted.finish(), cancel);
    driven.unwrap();
    let view = view(&engine, "s").await;
    assert_eq!((view.status, place.tools["pay"].count()), ("cancelled", 1));
    assert_eq!(
        place.tools["pay"]
            .undone
            .load(std::sync::atomic::Ordering::SeqCst),
        1
    );
}

#[tokio::test]
async fn a_write_that_lands_after_the_cancel_and_cannot_be_undone_is_put_before_a_person() {
    let pay = Counter {
        takes: Duration::from_millis(150),
        ..Counter::default()
    };
    let (_place, engine) = world(Effect::Write, Hooks::default(), pay).await;
    let tools = vec![tool("pay", Effect::Write, Hooks::default())];
    let agent = engine
        .publish("local", definition(tools, &[]))
        .await
        .unwrap();
    let submitted = engine.start(&me(), &agent, "s", "go").await.unwrap();
    let other = engine.clone();
    let cancel = async move {
        tokio::time::sleep(Duration::from_millis(50)).await;
        other
            .cancel(&me(), &key("s"), None)
            .await
            .unwrap()
            .finish()
            .await
            .unwrap();
    };
    let (driven, ()) = tokio::join!(submitted.finish(), cancel);
    driven.unwrap();
    let waiting = view(&engine, "s").await;
    assert_eq!(
        (waiting.status, waiting.cancel_requested),
        ("waiting", true)
    );
    let done = Decision::Committed {
        result: serde_json::Value::Null,
    };
    assert_eq!(
        answer(&engine, "s", vec![done]).await.unwrap().status,
        "cancelled"
    );
}

#[tokio::test]
async fn a_driver_that_was_frozen_past_its_lease_reports_its_call_late_and_nothing_happens_twice() {
    // The call outlives the lease, because the driver does nothing meanwhile: it is not polled.
    let pay = Counter {
        takes: Duration::from_millis(100),
        ..Counter::default()
    };
    pay.lookups.lock().unwrap().push_back(Lookup::Committed {
        receipt: serde_json::json!("seen"),
    });
    let (place, engine) = world(Effect::Write, LOOKUP, pay).await;
    let tools = vec![tool("pay", Effect::Write, LOOKUP)];
    let agent = engine
        .publish("local", definition(tools, &[]))
        .await
        .unwrap();
    let submitted = engine.start(&me(), &agent, "s", "go").await.unwrap();
    let mut driver = Box::pin(submitted.finish());
    // Driven until the call is out, then frozen; the call itself goes on in its own task.
    while place.tools["pay"].begun() == 0 {
        let driven = tokio::time::timeout(Duration::from_millis(1), &mut driver).await;
        assert!(driven.is_err());
    }
    let other = place.engine();
    other.drive(&key("s")).await.unwrap();
    assert_eq!(view(&other, "s").await.status, "finished");
    // It wakes, is fenced, and hands over what it knows.
    driver.await.unwrap();
    let journal = other.journal(&key("s")).await.unwrap();
    let late = journal
        .iter()
        .filter(|entry| entry.event.name() == "late_outcome")
        .count();
    assert_eq!(
        (
            late,
            place.tools["pay"].count(),
            view(&other, "s").await.status
        ),
        (1, 1, "finished")
    );
}

#[tokio::test]
async fn a_call_whose_driver_was_frozen_before_it_is_made_by_who_took_over_and_nobody_is_asked() {
    let (place, engine) = world(Effect::Write, Hooks::default(), Counter::default()).await;
    let mut pay = tool("pay", Effect::Write, Hooks::default());
    // So that nobody takes the call for lost meanwhile.
    pay.timeout = Span::from_secs(60);
    let agent = engine.publish("local", definition(vec![pay], &[]));
    let agent = agent.await.unwrap();
    let submitted = engine.start(&me(), &agent, "s", "go").await.unwrap();
    let mut driver = Box::pin(submitted.finish());
    // Driven until the record of the call waits for the disk, then frozen. The record is committed without its driver.
    let blocked = place.database();
    blocked.execute_batch("BEGIN IMMEDIATE").unwrap();
    let driven = tokio::time::timeout(Duration::from_millis(100), &mut driver).await;
    assert!(driven.is_err());
    blocked.execute_batch("COMMIT").unwrap();
    while !place.database_has("action_started") {
        tokio::task::yield_now().await;
    }
    let other = place.engine();
    let taken_over = tokio::spawn({
        let other = other.clone();
        async move { other.drive(&key("s")).await }
    });
    let epoch = || async {
        let head = other.store().load(&key("s")).await.unwrap();
        head.unwrap().epoch
    };
    let first = epoch().await;
    while epoch().await == first {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(place.tools["pay"].count(), 0);
    driver.await.unwrap();
    taken_over.await.unwrap().unwrap();
    let ended = view(&other, "s").await;
    assert_eq!(
        (ended.status, place.tools["pay"].count()),
        ("finished", 1),
        "{ended:?}"
    );
    assert!(place.database_has("action_withheld"));
    assert!(!place.database_has("interrupt_raised"));
}

#[tokio::test]
async fn an_answer_from_another_process_reaches_a_thread_that_nobody_drives() {
    let place = Place::new(pays_once, &[("pay", Counter::default())]);
    let engine = place.engine();
    let gates = [("pay", ask(&[holdpoint_core::DecisionKind::Approve]))];
    let gated = definition(vec![tool("pay", Effect::Write, Hooks::default())], &gates);
    let agent = engine.publish("local", gated).await.unwrap();
    run(&engine, &agent, "s").await;
    drop(engine);
    let other = place.engine();
    let interrupt = pending(&other, "s").await;
    let answered = other
        .answer(&me(), &key("s"), interrupt, Answer::All(Decision::APPROVE))
        .await
        .unwrap();
    answered.finish().await.unwrap();
    assert_eq!(
        (view(&other, "s").await.status, place.tools["pay"].count()),
        ("finished", 1)
    );
}

#[tokio::test]
async fn nothing_is_decided_or_done_on_a_journal_that_was_tampered_with() {
    let tampering = [
        "UPDATE events SET payload = CAST(replace(CAST(payload AS TEXT), 'go', 'no') AS BLOB)",
        "DELETE FROM events WHERE pos = (SELECT max(pos) FROM events)",
        "UPDATE events SET header = CAST(replace(CAST(header AS TEXT), 'ann', 'bob') AS BLOB)",
    ];
    for sql in tampering {
        let place = Place::new(pays_once, &[("pay", Counter::default())]);
        let engine = place.engine();
        let gates = [("pay", ask(&[holdpoint_core::DecisionKind::Approve]))];
        let gated = definition(vec![tool("pay", Effect::Write, Hooks::default())], &gates);
        let agent = engine.publish("local", gated).await.unwrap();
        run(&engine, &agent, "s").await;
        place.database().execute(sql, []).unwrap();
        // Another process, which has seen nothing of this thread.
        let other = place.engine();
        let before = state(&other, "s").await;
        let interrupt = pending(&other, "s").await;
        let answer = Answer::All(Decision::APPROVE);
        let refused = other.answer(&me(), &key("s"), interrupt, answer).await;
        assert_eq!(refused.unwrap_err().code(), "damaged", "{sql}");
        let refused = other.cancel(&me(), &key("s"), None).await;
        assert_eq!(refused.unwrap_err().code(), "damaged", "{sql}");
        let refused = other.journal(&key("s")).await;
        assert_eq!(refused.unwrap_err().code(), "damaged", "{sql}");
        assert_eq!(
            (state(&other, "s").await, place.tools["pay"].count()),
            (before, 0)
        );
    }
}
