//! A backup is adopted: nothing goes on in it by itself, and it may be adopted again after a crash.

use holdpoint_core::{
    Answer, Cause, Decision, DecisionKind, Effect, Event, GrantTerms, Hooks, Matches, Message,
    Scope, Status,
};
use holdpoint_engine::{Asking, Engine, Error};
use holdpoint_models::{Failure, Reply};

use crate::support::*;

fn pays_once(messages: &[Message], _attempt: u32) -> Result<Reply, Failure> {
    match results(messages).len() {
        0 => calls(&[("pay", r#"{"n":1}"#)]),
        _ => says("done"),
    }
}

/// Sessions that wait for somebody to allow a payment.
async fn parked(sessions: &[&str]) -> (Place, Engine) {
    let place = Place::new(pays_once, &[("pay", Counter::default())]);
    let engine = place.engine();
    let gate = ask(&[DecisionKind::Approve, DecisionKind::Reject]);
    let tools = vec![tool("pay", Effect::Write, Hooks::default())];
    let agent = definition(tools, &[("pay", gate)]);
    let agent = engine.publish("local", agent).await.unwrap();
    for session in sessions {
        assert_eq!(run(&engine, &agent, session).await.status, "waiting");
    }
    (place, engine)
}

async fn restored_events(engine: &Engine, session: &str) -> usize {
    let journal = engine.journal(&key(session)).await.unwrap();
    let restored = journal
        .iter()
        .filter(|it| matches!(it.event, Event::Restored { .. }));
    restored.count()
}

#[tokio::test]
async fn what_was_approved_in_the_original_is_not_done_twice_unless_a_person_says_so() {
    let (place, original) = parked(&["s"]).await;
    let copy = place.copy().await;
    let old = pending(&original, "s").await;
    let view = answer(&original, "s", vec![Decision::APPROVE])
        .await
        .unwrap();
    assert_eq!(view.status, "finished");
    assert_eq!(place.tools["pay"].count(), 1);

    let engine = copy.engine();
    let adopted = engine.adopt().await.unwrap().unwrap();
    assert_eq!(adopted.asking, [key("s")]);
    engine.drive(&key("s")).await.unwrap();
    let standing = state(&engine, "s").await;
    assert_eq!(
        standing.status(),
        Some(Status::Waiting(Cause::SystemRestart))
    );
    let late = engine
        .answer(&me(), &key("s"), old, Answer::All(Decision::APPROVE))
        .await;
    assert_eq!(late.unwrap_err().code(), "already_decided");
    let view = answer(&engine, "s", vec![Decision::APPROVE]).await.unwrap();
    assert_eq!(
        (view.status, view.cause.as_deref()),
        ("waiting", Some("human_approval"))
    );
    assert_eq!(place.tools["pay"].count(), 1, "going on pays nothing");

    let again = answer(&engine, "s", vec![Decision::APPROVE]).await.unwrap();
    assert_eq!(again.status, "finished");
    let keys = place.tools["pay"].keys();
    assert_eq!(keys.len(), 2, "a person said so");
    assert_eq!(keys[0], keys[1], "and whoever is paid can tell");
}

#[tokio::test]
async fn nothing_is_begun_or_answered_in_a_backup_that_nobody_has_adopted() {
    let (place, original) = parked(&["s"]).await;
    let copy = place.copy().await;
    let engine = copy.engine();
    let before = engine.journal(&key("s")).await.unwrap();
    let refused = |error: Error| assert_eq!(error.code(), "not_adopted", "{error}");
    let agent = original
        .publish("local", definition(vec![], &[]))
        .await
        .unwrap();
    refused(
        answer(&engine, "s", vec![Decision::APPROVE])
            .await
            .unwrap_err(),
    );
    refused(engine.cancel(&me(), &key("s"), None).await.unwrap_err());
    refused(engine.pause(&me(), &key("s"), None).await.unwrap_err());
    refused(engine.tick(&key("s")).await.unwrap_err());
    refused(engine.start(&me(), &agent, "new", "go").await.unwrap_err());
    let asking = Asking {
        workflow: "release".to_owned(),
        node: "deploy".to_owned(),
        kind: holdpoint_core::InterruptKind::Approval,
        prompt: holdpoint_core::Prompt {
            title: "Deploy?".to_owned(),
            ..holdpoint_core::Prompt::default()
        },
        expiry: None,
    };
    refused(engine.ask(&me(), asking).await.unwrap_err());
    assert_eq!(engine.journal(&key("s")).await.unwrap(), before);
    assert_eq!(engine.state(&key("new")).await.unwrap(), None);

    // Another process adopts it, and this one notices.
    copy.engine().adopt().await.unwrap().unwrap();
    answer(&engine, "s", vec![Decision::APPROVE]).await.unwrap();
    assert_eq!(
        engine.adopt().await.unwrap(),
        None,
        "it is no backup any more"
    );
    assert_eq!(
        original.adopt().await.unwrap(),
        None,
        "and the original never was"
    );
}

#[tokio::test]
async fn a_crash_in_the_middle_leaves_a_backup_that_is_adopted_again() {
    let sessions: Vec<String> = (0..100).map(|number| format!("s{number}")).collect();
    let names: Vec<&str> = sessions.iter().map(String::as_str).collect();
    let (place, _original) = parked(&names).await;
    let copy = place.copy().await;
    // The disk gives up at one of them, and later where the mark is to be taken away.
    let broken = key("s42").thread;
    let broken: String = broken
        .as_bytes()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let triggers = [
        format!(
            "CREATE TRIGGER broken BEFORE UPDATE ON threads WHEN hex(new.thread) = upper('{broken}')
             BEGIN SELECT RAISE(ABORT, 'the disk is full'); END"
        ),
        "CREATE TRIGGER broken BEFORE DELETE ON marks BEGIN SELECT RAISE(ABORT, 'the disk is full'); END"
            .to_owned(),
    ];
    for trigger in triggers {
        copy.database().execute_batch(&trigger).unwrap();
        let engine = copy.engine();
        assert_eq!(
            engine.adopt().await.unwrap_err().code(),
            "store_unavailable"
        );
        assert!(engine.store().backup_made_at().await.unwrap().is_some());
        let refused = engine.tick(&key("s0")).await.unwrap_err();
        assert_eq!(refused.code(), "not_adopted");
        copy.database()
            .execute_batch("DROP TRIGGER broken")
            .unwrap();
    }
    let engine = copy.engine();
    let adopted = engine.adopt().await.unwrap().unwrap();
    assert_eq!(adopted.asking.len(), sessions.len());
    for session in &names {
        assert_eq!(restored_events(&engine, session).await, 1, "{session}");
        let standing = state(&engine, session).await;
        assert_eq!(standing.interrupts.len(), 1);
        assert_eq!(
            standing.status(),
            Some(Status::Waiting(Cause::SystemRestart))
        );
    }
    assert_eq!(place.tools["pay"].count(), 0);
}

#[tokio::test]
async fn of_several_who_adopt_at_once_each_thread_is_asked_about_once() {
    let sessions: Vec<String> = (0..30).map(|number| format!("s{number}")).collect();
    let names: Vec<&str> = sessions.iter().map(String::as_str).collect();
    let (place, _original) = parked(&names).await;
    let copy = place.copy().await;
    let (one, two) = (copy.engine(), copy.engine());
    let (first, second) = tokio::join!(one.adopt(), two.adopt());
    assert!(first.unwrap().is_some() || second.unwrap().is_some());
    for session in &names {
        assert_eq!(restored_events(&one, session).await, 1, "{session}");
    }
}

#[tokio::test]
async fn a_paused_run_which_no_index_of_open_things_names_is_found_too() {
    let (place, original) = parked(&["s"]).await;
    answer(&original, "s", vec![Decision::Reject { message: None }])
        .await
        .unwrap();
    let agent = definition(vec![tool("pay", Effect::Write, Hooks::default())], &[]);
    let agent = original.publish("local", agent).await.unwrap();
    let submitted = original.start(&me(), &agent, "t", "go").await.unwrap();
    // Before its model is asked, and by nobody who drives it.
    let paused = original.pause(&me(), &key("t"), None).await.unwrap();
    submitted.finish().await.unwrap();
    paused.finish().await.unwrap();
    assert_eq!(view(&original, "t").await.status, "paused");
    let copy = place.copy().await;
    let engine = copy.engine();
    let adopted = engine.adopt().await.unwrap().unwrap();
    assert_eq!(
        adopted.asking,
        [key("t")],
        "and one that is over is left alone"
    );
    engine
        .unpause(&me(), &key("t"), None)
        .await
        .unwrap()
        .finish()
        .await
        .unwrap();
    assert_eq!(view(&engine, "t").await.status, "waiting");
    assert_eq!(place.tools["pay"].count(), 0);
}

#[tokio::test]
async fn grants_of_the_agent_end_also_those_that_nobody_used_yet() {
    let (place, original) = parked(&["s", "t"]).await;
    let grant = Some(GrantTerms {
        scope: Scope::Agent,
        matches: Matches::Tool,
        expires_in: None,
        uses: None,
    });
    answer(&original, "s", vec![Decision::Approve { grant }])
        .await
        .unwrap();
    let copy = place.copy().await;
    let engine = copy.engine();
    engine.adopt().await.unwrap().unwrap();
    let grants = engine.grants("local").await.unwrap();
    assert!(grants[0].grant.revoked);
    let gate = ask(&[DecisionKind::Approve, DecisionKind::Reject]);
    let tools = vec![tool("pay", Effect::Write, Hooks::default())];
    let agent = engine
        .publish("local", definition(tools, &[("pay", gate)]))
        .await
        .unwrap();
    assert_eq!(
        run(&engine, &agent, "u").await.status,
        "waiting",
        "it is asked about again"
    );
    let original_grants = original.grants("local").await.unwrap();
    assert!(!original_grants[0].grant.revoked);
}

#[tokio::test]
async fn a_head_that_cannot_be_read_does_not_keep_the_others_from_being_adopted() {
    let (place, _original) = parked(&["s", "t"]).await;
    let copy = place.copy().await;
    let broken = key("t").thread;
    copy.database()
        .execute(
            "UPDATE threads SET head = x'00' WHERE thread = ?1",
            [broken.as_bytes()],
        )
        .unwrap();
    let adopted = copy.engine().adopt().await.unwrap().unwrap();
    assert_eq!(
        (adopted.asking, adopted.unreadable),
        (vec![key("s")], vec![key("t")])
    );
}
