//! Requests that are sent twice are done once; and nothing is done while a process is about to go.

use std::time::Duration;

use holdpoint_core::{
    Answer, Answers, Confirmation, Decision, Definition, Digest, Effect, Hooks, Message, Principal,
    PrincipalKind, Span, Supersede,
};
use holdpoint_engine::{Engine, Error, Mark, Request};
use holdpoint_models::{Failure, Reply};

use crate::support::{
    Counter, Place, answer, ask, calls, contents, definition, key, me, pending, results, run, says,
    state, tool, view,
};

fn marked(name: &str, fingerprint: &str) -> Request {
    Request {
        by: me(),
        mark: Some(Mark::new(
            &["ann", name],
            Digest::of(fingerprint.as_bytes()),
            Span::from_secs(60),
        )),
    }
}

fn pays_once(messages: &[Message], _: u32) -> Result<Reply, Failure> {
    match results(messages).len() {
        0 => calls(&[("pay", "{}")]),
        _ => says("paid"),
    }
}

fn teller() -> Definition {
    use holdpoint_core::DecisionKind::{Approve, Reject};
    let pay = tool("pay", Effect::Write, Hooks::default());
    definition(vec![pay], &[("pay", ask(&[Approve, Reject]))])
}

async fn place() -> (Place, Engine) {
    let place = Place::new(pays_once, &[("pay", Counter::default())]);
    let engine = place.engine();
    engine.publish("local", teller()).await.unwrap();
    (place, engine)
}

#[tokio::test]
async fn a_start_that_is_sent_twice_starts_one_run() {
    let (_place, engine) = place().await;
    let agent = engine.prepare(teller()).unwrap();
    let start = || engine.start(marked("k1", "body"), &agent, "s", "go");
    let first = start().await.unwrap();
    let run = first.state().run.as_ref().unwrap().id;
    first.finish().await.unwrap();
    let Err(Error::Replayed(marked_as)) = start().await else {
        panic!("it was done again");
    };
    assert_eq!(marked_as.run, Some(run));
    assert_eq!(marked_as.after, 0);
    // The same key for something else is a mistake, not a repetition.
    let other = engine.start(marked("k1", "other"), &agent, "s", "go").await;
    assert_eq!(other.unwrap_err(), Error::OtherRequest);
    // Without a key it is another input, for which the thread has no ear now.
    let plain = engine.start(&me(), &agent, "s", "go").await;
    assert_eq!(plain.unwrap_err().code(), "interrupt_pending");
}

#[tokio::test]
async fn of_many_equal_answers_at_once_all_are_told_of_the_one_that_was_taken() {
    let (place, engine) = place().await;
    let agent = engine.prepare(teller()).unwrap();
    run(&engine, &agent, "s").await;
    let interrupt = pending(&engine, "s").await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let engine = engine.clone();
        tasks.spawn(async move {
            let answer = Answer::All(Decision::APPROVE);
            let request = marked("yes", "body");
            let taken = engine.answer(request, &key("s"), interrupt, answer).await;
            match taken {
                Ok(submitted) => {
                    submitted.finish().await.unwrap();
                    true
                }
                Err(Error::Replayed(_)) => false,
                Err(error) => panic!("{error}"),
            }
        });
    }
    let taken = tasks.join_all().await;
    assert_eq!(taken.iter().filter(|taken| **taken).count(), 1);
    engine.drive(&key("s")).await.unwrap();
    assert_eq!(place.tools["pay"].count(), 1);
}

#[tokio::test]
async fn a_refused_request_leaves_nothing_and_may_be_sent_again() {
    let (_place, engine) = place().await;
    let agent = engine.prepare(teller()).unwrap();
    run(&engine, &agent, "s").await;
    let interrupt = pending(&engine, "s").await;
    let wrong = Answer::ByPosition(vec![]);
    let request = || marked("k", "body");
    let refused = engine.answer(request(), &key("s"), interrupt, wrong).await;
    assert_eq!(refused.unwrap_err().code(), "misfit");
    let right = Answer::All(Decision::APPROVE);
    assert!(
        engine
            .answer(request(), &key("s"), interrupt, right)
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn what_changed_nothing_is_remembered_too() {
    let (_place, engine) = place().await;
    let agent = engine.prepare(teller()).unwrap();
    run(&engine, &agent, "s").await;
    let id = state(&engine, "s").await.run.unwrap().id;
    engine
        .pause(&me(), &key("s"), Some(id))
        .await
        .unwrap()
        .finish()
        .await
        .unwrap();
    let again = engine
        .pause(marked("p", "b"), &key("s"), Some(id))
        .await
        .unwrap();
    again.finish().await.unwrap();
    engine
        .unpause(&me(), &key("s"), Some(id))
        .await
        .unwrap()
        .finish()
        .await
        .unwrap();
    let replayed = engine.pause(marked("p", "b"), &key("s"), Some(id)).await;
    assert!(
        matches!(replayed, Err(Error::Replayed(_))),
        "it paused once more"
    );
    assert!(!view(&engine, "s").await.pause_requested);
}

#[tokio::test]
async fn an_answer_for_a_run_that_is_over_does_not_reach_the_next_one() {
    let (_place, engine) = place().await;
    let agent = engine.prepare(teller()).unwrap();
    run(&engine, &agent, "s").await;
    let old = state(&engine, "s").await.run.unwrap().id;
    let anew = engine.start_instead(
        Request::from(&me()),
        &agent,
        "s",
        "again",
        Supersede::Waiting,
    );
    anew.await.unwrap().finish().await.unwrap();
    let new = state(&engine, "s").await.run.unwrap().id;
    let yes = || Answers::Only(Answer::All(Decision::APPROVE));
    let late = engine.answer_run(&me(), &key("s"), old, yes()).await;
    assert_eq!(late.unwrap_err(), Error::NothingPending);
    let by_id = Answers::ByInterrupt(vec![(
        pending(&engine, "s").await,
        Answer::All(Decision::APPROVE),
    )]);
    let foreign = engine.answer_run(&me(), &key("s"), old, by_id).await;
    assert_eq!(foreign.unwrap_err().code(), "not_pending");
    assert!(
        engine
            .answer_run(&me(), &key("s"), new, yes())
            .await
            .is_ok()
    );
    let shown = engine.run_state(&key("s"), old).await.unwrap().unwrap();
    assert_eq!(shown.status().unwrap().as_str(), "cancelled");
}

#[tokio::test]
async fn a_fork_goes_on_by_itself_with_what_was_said_before() {
    let (place, engine) = place().await;
    let agent = engine.prepare(teller()).unwrap();
    run(&engine, &agent, "s").await;
    let forked = engine
        .fork(marked("f", "b"), &key("s"), None, "s2")
        .await
        .unwrap();
    forked.finish().await.unwrap();
    let again = engine.fork(marked("f", "b"), &key("s"), None, "s2").await;
    assert!(matches!(again, Err(Error::Replayed(_))));
    let taken = engine.fork(&me(), &key("s"), None, "s2").await;
    assert_eq!(taken.unwrap_err().code(), "thread_exists");

    let shown = answer(&engine, "s2", vec![Decision::APPROVE])
        .await
        .unwrap();
    assert_eq!(shown.status, "finished");
    assert_eq!(shown.messages.len(), 4, "{:?}", shown.messages);
    assert_eq!(contents(&shown), ["pay done"]);
    // Another process reads it through its parent.
    let elsewhere = place.engine();
    assert_eq!(view(&elsewhere, "s2").await.messages, shown.messages);
    assert_eq!(view(&elsewhere, "s").await.status, "waiting");
    answer(&engine, "s", vec![Decision::APPROVE]).await.unwrap();
    let keys = place.tools["pay"].keys();
    assert_eq!(keys.len(), 2);
    assert_ne!(keys[0], keys[1], "two threads are two payments");
}

#[tokio::test]
async fn a_fork_from_the_past_begins_where_the_run_stood_still() {
    let (_place, engine) = place().await;
    let agent = engine.prepare(teller()).unwrap();
    run(&engine, &agent, "s").await;
    let asked = state(&engine, "s").await.version;
    answer(&engine, "s", vec![Decision::APPROVE]).await.unwrap();
    let between = engine.fork(&me(), &key("s"), Some(asked - 1), "x").await;
    assert_eq!(between.unwrap_err().code(), "not_forkable");
    let nowhere = engine.fork(&me(), &key("s"), Some(99), "x").await;
    assert_eq!(nowhere.unwrap_err().code(), "not_found");
    let forked = engine
        .fork(&me(), &key("s"), Some(asked), "s2")
        .await
        .unwrap();
    forked.finish().await.unwrap();
    let shown = answer(&engine, "s2", vec![Decision::Reject { message: None }]).await;
    assert_eq!(shown.unwrap().status, "finished");
    assert_eq!(view(&engine, "s").await.status, "finished");
}

#[tokio::test]
async fn a_confirmation_is_asked_in_the_models_own_words() {
    let place = Place::new(
        |messages, _| match messages.last() {
            Some(Message::User { content }) if content.contains("Please proceed.") => says("Done."),
            _ => says("Two files go.\nAre you sure?"),
        },
        &[],
    );
    let engine = place.engine();
    let confirming = definition(vec![], &[]).confirm(Confirmation::standard());
    let agent = engine.publish("local", confirming).await.unwrap();
    run(&engine, &agent, "s").await;
    let thread = state(&engine, "s").await;
    let interrupt = thread.interrupts.values().next().unwrap();
    let words = engine.reason(&key("s"), &thread, interrupt).await.unwrap();
    assert_eq!(words, "Are you sure?");
    engine
        .fork(&me(), &key("s"), None, "s2")
        .await
        .unwrap()
        .finish()
        .await
        .unwrap();
    let thread = state(&engine, "s2").await;
    let interrupt = thread.interrupts.values().next().unwrap();
    let words = engine.reason(&key("s2"), &thread, interrupt).await.unwrap();
    assert_eq!(words, "Are you sure?", "through the parent");
    let shown = answer(&engine, "s", vec![Decision::APPROVE]).await.unwrap();
    assert_eq!(shown.output.as_deref(), Some("Done."));
}

#[tokio::test]
async fn a_process_that_goes_starts_nothing_awaits_what_it_started_and_leaves_the_rest_to_others() {
    let slow = Counter {
        takes: Duration::from_millis(200),
        ..Counter::default()
    };
    let place = Place::new(pays_once, &[("pay", slow)]);
    let engine = place.engine();
    let pay = tool("pay", Effect::Write, Hooks::default());
    let agent = engine
        .publish("local", definition(vec![pay], &[]))
        .await
        .unwrap();
    let submitted = engine.start(&me(), &agent, "s", "go").await.unwrap();
    let driving = tokio::spawn(submitted.drive());
    while !place.database_has("action_started") {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    engine.drain(Duration::from_secs(5)).await;
    driving.await.unwrap().unwrap();
    let thread = state(&engine, "s").await;
    assert!(thread.actions.is_empty(), "the outcome is recorded");
    assert_eq!(view(&engine, "s").await.status, "running");
    let other = place.engine();
    assert_eq!(other.left_behind(10).await.unwrap(), [key("s")]);
    other.take_up(&key("s")).await.unwrap();
    assert_eq!(view(&other, "s").await.status, "finished");
    assert_eq!(place.tools["pay"].count(), 1);
}

#[tokio::test]
async fn runs_are_listed_newest_first_and_found_by_their_ids() {
    let (_place, engine) = place().await;
    let agent = engine.prepare(teller()).unwrap();
    for session in ["a", "b", "c"] {
        run(&engine, &agent, session).await;
    }
    let anew = engine.start_instead(
        Request::from(&me()),
        &agent,
        "a",
        "again",
        Supersede::Waiting,
    );
    anew.await.unwrap().finish().await.unwrap();
    let (runs, more) = engine
        .newest_runs("local", None, 10, &|_| true)
        .await
        .unwrap();
    let told: Vec<_> = runs
        .iter()
        .map(|it| (it.session.as_str(), it.status))
        .collect();
    let expected = [
        ("a", "waiting"),
        ("c", "waiting"),
        ("b", "waiting"),
        ("a", "cancelled"),
    ];
    assert_eq!((told, more), (expected.to_vec(), None));
    let (rest, _) = engine
        .newest_runs("local", Some(runs[1].run_id), 10, &|run| {
            run.status == "cancelled"
        })
        .await
        .unwrap();
    assert_eq!(rest.len(), 1);
    let stranger = engine.find_run("elsewhere", runs[0].run_id).await.unwrap();
    assert_eq!(stranger, None);
    let (found, _) = engine
        .find_run("local", runs[0].run_id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(found, key("a"));
    let asker = Principal::new(PrincipalKind::Local, "local", "ann")
        .actor
        .to_string();
    assert_eq!(engine.count_asked("local", &asker, 100).await.unwrap(), 3);
    assert_eq!(engine.count_asked("local", &asker, 2).await.unwrap(), 2);
    assert_eq!(
        engine.count_asked("local", "user:eve", 100).await.unwrap(),
        0
    );
}

#[tokio::test]
async fn a_model_that_wants_too_much_at_once_is_told_so() {
    let place = Place::new(
        |messages, _| match results(messages).len() {
            0 => calls(&[("pay", "{}"); 6]),
            _ => says("paid"),
        },
        &[("pay", Counter::default())],
    );
    let engine = place.engine();
    let agent = engine.publish("local", teller()).await.unwrap();
    run(&engine, &agent, "s").await;
    let thread = state(&engine, "s").await;
    let asked: usize = thread.interrupts.values().map(|it| it.asks.len()).sum();
    assert_eq!(asked, 4);
    let yes = vec![Decision::APPROVE; 4];
    let shown = answer(&engine, "s", yes).await.unwrap();
    let told = contents(&shown);
    assert_eq!(
        told.iter()
            .filter(|it| it.starts_with("Too many calls"))
            .count(),
        2
    );
    assert_eq!(place.tools["pay"].count(), 4);
}
