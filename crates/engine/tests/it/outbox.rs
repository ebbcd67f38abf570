//! What is still to be told to endpoints outside.

use std::{collections::BTreeSet, sync::Arc};

use holdpoint_core::{
    Decision, Definition, Effect, Hooks, InterruptKind, Letter, Message, Principal, PrincipalKind,
    Span, Subscription,
};
use holdpoint_engine::{Engine, Error, MANAGE_WEBHOOKS};
use holdpoint_models::{Failure, Reply};
use serde_json::Value;

use crate::support::{
    Counter, Place, answer, ask, calls, definition, me, pending, results, run, says, tool,
};

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

/// A place with an endpoint that hears of this.
async fn hearing(subscription: Subscription) -> (Place, Engine) {
    let place = Place::new(pays_once, &[("pay", Counter::default())]);
    let engine = place.engine();
    engine.publish("local", teller()).await.unwrap();
    let before = engine.subscribe("pager", &subscription).await.unwrap();
    assert_eq!(before, None);
    (place, engine)
}

async fn asked(engine: &Engine, session: &str) {
    let agent = engine.prepare(teller()).unwrap();
    run(engine, &agent, session).await;
}

async fn letters(engine: &Engine) -> Vec<Letter> {
    let letters = engine.undelivered("local", "pager", None, 100).await;
    letters.unwrap()
}

async fn said(engine: &Engine, letter: &Letter) -> (String, Value) {
    let message = engine.message(&Arc::from("local"), letter).await.unwrap();
    (message.id, serde_json::from_str(&message.body).unwrap())
}

#[tokio::test]
async fn whoever_commits_puts_into_the_outbox_what_is_to_be_told_and_it_stays_as_it_was() {
    let (place, engine) = hearing(Subscription::default()).await;
    let mut filled = engine.outbox_changes();
    asked(&engine, "s").await;
    assert!(filled.has_changed().unwrap());
    filled.mark_unchanged();
    let interrupt = pending(&engine, "s").await;
    let [created] = &letters(&engine).await[..] else {
        panic!("one letter");
    };
    assert_eq!(created.interrupt, interrupt);
    let before = said(&engine, created).await;
    assert_eq!(before.1["type"], "interrupt.created");
    assert_eq!(before.1["data"]["interrupt"]["status"], "pending");
    assert_eq!(before.1["data"]["seq"], created.seq);

    // Another process, which delivers nothing itself.
    let other = place.engine();
    answer(&other, "s", vec![Decision::APPROVE]).await.unwrap();
    let both = letters(&engine).await;
    assert_eq!(both.len(), 2);
    assert!(both[0] == *created && both[1].seq > created.seq);
    assert_eq!(both[1].interrupt, interrupt);
    assert_eq!(said(&engine, created).await, before, "however it went on");
    let (id, closed) = said(&other, &both[1]).await;
    assert_eq!(closed["type"], "interrupt.resolved");
    assert_ne!(id, before.0);

    engine.delivered("local", created).await.unwrap();
    assert_eq!(letters(&other).await, both[1..]);
    // A second time is none.
    engine.delivered("local", created).await.unwrap();
}

#[tokio::test]
async fn what_nobody_hears_of_is_not_put_into_the_outbox() {
    for subscription in [
        Subscription {
            tenants: BTreeSet::from(["acme".to_owned()]),
            ..Subscription::default()
        },
        Subscription {
            kinds: BTreeSet::from([InterruptKind::Review]),
            ..Subscription::default()
        },
    ] {
        let (_place, engine) = hearing(subscription).await;
        asked(&engine, "s").await;
        assert_eq!(letters(&engine).await, []);
        assert!(engine.tenants_to_tell().await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn what_was_tried_long_enough_is_given_up_and_can_be_sent_again() {
    let (_place, engine) = hearing(Subscription::default()).await;
    asked(&engine, "a").await;
    asked(&engine, "b").await;
    let all = letters(&engine).await;
    let long = Span::from_secs(3_600);
    let tried = engine
        .not_delivered("local", &all[0], "HTTP 500", long)
        .await;
    let again = tried.unwrap().unwrap();
    assert!(again.since(engine.store().now()) <= Span::from_secs(1));
    assert_eq!(letters(&engine).await, all);
    let brief = Span::from_micros(1);
    for letter in &all {
        let given_up = engine.not_delivered("local", letter, "no answer", brief);
        // The last try is at the end of the time, so the very first one is none.
        if given_up.await.unwrap().is_some() {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            let given_up = engine.not_delivered("local", letter, "no answer", brief);
            assert_eq!(given_up.await.unwrap(), None);
        }
    }
    assert_eq!(letters(&engine).await, []);
    let dead = engine.dead_letters(&me(), "pager", None, 10).await.unwrap();
    let of = |at: usize| (&dead[at].letter, dead[at].tries.as_ref().unwrap());
    assert_eq!((of(0).0, of(1).0), (&all[0], &all[1]));
    assert_eq!((of(0).1.count, of(1).1.count), (2, 2));
    assert_eq!(of(1).1.error, "no answer");
    let rest = engine.dead_letters(&me(), "pager", Some(&all[0]), 10).await;
    assert_eq!(rest.unwrap(), dead[1..]);

    let agent = Principal::new(PrincipalKind::User, "local", "eve");
    let forbidden = engine.send_again(&agent, "pager", None).await.unwrap_err();
    assert_eq!(forbidden.code(), "forbidden");
    assert!(
        matches!(forbidden, Error::Refused(_)) && forbidden.to_string().contains(MANAGE_WEBHOOKS)
    );
    let elsewhere = Principal::new(PrincipalKind::Local, "acme", "ann");
    assert_eq!(engine.send_again(&elsewhere, "pager", None).await, Ok(0));

    let second = Some(all[1].interrupt);
    assert_eq!(engine.send_again(&me(), "pager", second).await, Ok(1));
    assert_eq!(letters(&engine).await, all[1..]);
    // It is tried as if for the first time.
    let tried = engine
        .not_delivered("local", &all[1], "HTTP 500", long)
        .await;
    assert!(tried.unwrap().is_some());
    assert_eq!(engine.discard(&me(), "pager", None).await, Ok(1));
    let dead = engine.dead_letters(&me(), "pager", None, 10).await.unwrap();
    assert_eq!(dead, []);
}

#[tokio::test]
async fn one_process_at_a_time_delivers_to_an_endpoint() {
    let (place, engine) = hearing(Subscription::default()).await;
    let other = place.engine();
    let carries = async |engine: &Engine, endpoint: &str| {
        let lasts = engine.carry(endpoint).await.unwrap();
        lasts.is_some()
    };
    assert!(carries(&engine, "pager").await);
    assert!(!carries(&other, "pager").await);
    assert!(carries(&other, "mail").await, "each has its own");
    assert!(carries(&engine, "pager").await, "it stays the one");
    other.stop_carrying("pager").await.unwrap();
    assert!(!carries(&other, "pager").await, "only it ends that");
    engine.stop_carrying("pager").await.unwrap();
    assert!(carries(&other, "pager").await);
    assert!(!carries(&engine, "pager").await);
    // Until that one is silent for so long.
    let lasts = other.carry("pager").await.unwrap().unwrap();
    tokio::time::sleep(lasts.into()).await;
    assert!(carries(&engine, "pager").await);
}

#[tokio::test]
async fn an_endpoint_that_is_forgotten_leaves_nothing_behind() {
    let (_place, engine) = hearing(Subscription::default()).await;
    let all = Subscription::default();
    engine.subscribe("pager2", &all).await.unwrap();
    asked(&engine, "a").await;
    asked(&engine, "b").await;
    let first = letters(&engine).await[0].clone();
    let brief = Span::ZERO;
    let given_up = engine.not_delivered("local", &first, "no", brief).await;
    assert_eq!(given_up, Ok(None));
    engine.carry("pager").await.unwrap();
    let carried = engine.unsubscribe("pager").await.unwrap_err();
    assert!(carried.to_string().contains("a server delivers to it"));
    engine.stop_carrying("pager").await.unwrap();
    assert_eq!(engine.unsubscribe("pager").await, Ok(true));
    assert_eq!(engine.unsubscribe("pager").await, Ok(false));
    assert_eq!(letters(&engine).await, []);
    let dead = engine.dead_letters(&me(), "pager", None, 10).await.unwrap();
    assert_eq!(dead, []);
    let other = engine.undelivered("local", "pager2", None, 10).await;
    assert_eq!(other.unwrap().len(), 2);
    asked(&engine, "c").await;
    assert_eq!(letters(&engine).await, []);
}

#[tokio::test]
async fn a_check_of_the_store_finds_nothing_wrong_with_letters() {
    let (_place, engine) = hearing(Subscription::default()).await;
    asked(&engine, "a").await;
    let letter = letters(&engine).await[0].clone();
    let mut flaws = Vec::new();
    let mut check = async |engine: &Engine| {
        let store = Arc::clone(engine.store());
        let mut tell = |seen| {
            if let holdpoint_engine::Seen::Flaw(flaw) = seen {
                flaws.push(flaw);
            }
        };
        holdpoint_engine::check(&*store, &mut tell).await.unwrap();
    };
    check(&engine).await;
    engine.delivered("local", &letter).await.unwrap();
    check(&engine).await;
    assert_eq!(flaws, []);
}
