//! Endpoints outside are told what becomes of questions.

use std::collections::{BTreeMap, BTreeSet};

use holdpoint_core::{InterruptKind, Principal, PrincipalKind, Span, Subscription};
use holdpoint_definition::{ServerFile, Webhook};
use holdpoint_server::{Access, Opening};
use reqwest::Method;
use serde_json::{Value, json};

use super::{
    sink::{Answer, Heard, Sink},
    support::{World, read},
};

const ALL: &str = "/api/v1/interrupts";

fn webhook(name: &str, sink: &Sink) -> Webhook {
    Webhook {
        name: name.to_owned(),
        url: format!("http://{}/hook?team=ops", sink.address),
        secret: "SINK_SECRET".to_owned(),
        subscription: Subscription::default(),
        timeout: Span::from_millis(500),
        give_up_after: Span::from_secs(3_600),
        allow_private: vec!["127.0.0.1".to_owned()],
    }
}

fn telling(webhook: Webhook) -> impl FnOnce(&mut ServerFile) {
    move |file| file.webhooks.push(webhook)
}

async fn telling_world(webhook: Webhook) -> World {
    World::new(Access::Dev, telling(webhook)).await
}

fn deploy(node: &str) -> Value {
    json!({"workflow_id": "release", "node_id": node, "type": "approval", "title": "部署?"})
}

async fn raised(world: &World, body: &Value) -> String {
    let (status, raised) = world.post(ALL, body).await;
    assert_eq!(status, 201, "{raised}");
    raised["id"].as_str().unwrap().to_owned()
}

async fn close(world: &World, id: &str, how: &str, body: Value) -> Value {
    let (status, closed) = world.post(&format!("{ALL}/{id}/{how}"), &body).await;
    assert_eq!(status, 200, "{closed}");
    closed
}

/// What was accepted about each question, in the order in which it was, each message once.
fn by_question(accepted: &[Heard]) -> BTreeMap<String, Vec<String>> {
    let mut seen = BTreeSet::new();
    let mut told: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for heard in accepted {
        if seen.insert(heard.id.clone()) {
            let topic = told.entry(heard.interrupt().to_owned()).or_default();
            topic.push(heard.kind().to_owned());
        }
    }
    told
}

#[tokio::test]
async fn an_endpoint_hears_of_every_question_and_of_its_end_as_both_are_shown() {
    let sink = Sink::new().await;
    let world = telling_world(webhook("ops", &sink)).await;
    let [a, b, c] = [
        raised(&world, &deploy("a")).await,
        raised(&world, &deploy("b")).await,
        raised(&world, &deploy("c")).await,
    ];
    let brief = json!({"workflow_id": "release", "node_id": "d", "type": "input", "title": "?", "timeout": 50_000_000});
    let d = raised(&world, &brief).await;
    close(
        &world,
        &a,
        "resolve",
        json!({"approved": true, "comment": "去吧"}),
    )
    .await;
    close(&world, &b, "reject", json!({"comment": "no"})).await;
    close(&world, &c, "cancel", json!({})).await;
    // An agent's own question is told of, too.
    let run = world.waiting("s").await;
    let shown = world.get(&format!("/api/v1/runs/{run}")).await.1;
    let agents = shown["interrupts"][0]["id"].as_str().unwrap().to_owned();
    let answer = json!({ &agents: {"type": "approve"} });
    let (status, _) = world
        .post(&format!("/api/v1/runs/{run}/resume"), &answer)
        .await;
    assert_eq!(status, 200);
    let accepted = sink.until_accepted(10).await;
    let told = by_question(&accepted);
    for (id, end) in [
        (&a, "resolved"),
        (&b, "rejected"),
        (&c, "canceled"),
        (&d, "timeout"),
        (&agents, "resolved"),
    ] {
        let expected = ["interrupt.created".to_owned(), format!("interrupt.{end}")];
        assert_eq!(told[id], expected, "{id}");
        let last = accepted.iter().rfind(|it| it.interrupt() == id).unwrap();
        let (_, now) = world.get(&format!("{ALL}/{id}")).await;
        assert_eq!(last.value["data"]["interrupt"], now);
        assert_eq!(last.value["data"]["tenant"], "local");
        assert_eq!(last.value["timestamp"], now["resolved_at"]);
        let first = accepted.iter().find(|it| it.interrupt() == id).unwrap();
        let asked = &first.value["data"]["interrupt"];
        assert_eq!(asked["status"], "pending");
        assert_eq!(first.value["timestamp"], asked["created_at"]);
    }
    assert_eq!(accepted.len(), 10, "nothing was told twice");
}

#[tokio::test]
async fn what_fails_is_told_again_in_order_under_the_same_id_with_the_same_words() {
    let sink = Sink::new().await;
    let world = telling_world(webhook("ops", &sink)).await;
    sink.plan([Answer::Status(500), Answer::Cut, Answer::Hang]);
    let ids = [
        raised(&world, &deploy("a")).await,
        raised(&world, &deploy("b")).await,
        raised(&world, &deploy("c")).await,
    ];
    // What comes of it waits until that it was asked is heard.
    close(&world, &ids[0], "resolve", json!({"approved": true})).await;
    sink.until_accepted(4).await;
    sink.plan([Answer::Status(302), Answer::Status(400)]);
    for id in &ids[1..] {
        close(&world, id, "resolve", json!({"approved": true})).await;
    }
    let accepted = sink.until_accepted(6).await;
    for id in &ids {
        let told = &by_question(&accepted)[id];
        assert_eq!(told, &["interrupt.created", "interrupt.resolved"], "{id}");
    }
    let heard = sink.heard();
    let failed: Vec<_> = heard.iter().filter(|it| !it.is_accepted()).collect();
    assert_eq!(failed.len(), 5);
    for it in failed {
        let again: Vec<_> = heard.iter().filter(|other| other.id == it.id).collect();
        assert!(again.len() > 1 && again.iter().all(|other| other.body == it.body));
    }
}

#[tokio::test]
async fn only_the_questions_that_it_wants_are_told_to_an_endpoint() {
    let sink = Sink::new().await;
    let mut reviews = webhook("reviews", &sink);
    reviews.subscription.kinds = BTreeSet::from([InterruptKind::Review]);
    reviews.subscription.tenants = BTreeSet::from(["acme".to_owned()]);
    let world = World::new(Access::Keys, telling(reviews)).await;
    let mut keys = BTreeMap::new();
    for tenant in ["acme", "beta"] {
        keys.insert(
            tenant,
            world.key(PrincipalKind::Service, tenant, "shop").await.1,
        );
    }
    let ask = |tenant: &str, kind: &str| {
        let body = json!({"workflow_id": "w", "node_id": kind, "type": kind, "title": "?"});
        world.posting(ALL, &body).bearer_auth(&keys[tenant])
    };
    for (tenant, kind) in [
        ("beta", "review"),
        ("acme", "approval"),
        ("acme", "review"),
        ("beta", "review"),
    ] {
        assert!(
            ask(tenant, kind)
                .send()
                .await
                .unwrap()
                .status()
                .is_success()
        );
    }
    let accepted = sink.until_accepted(1).await;
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    assert_eq!(sink.heard().len(), 1);
    let data = &accepted[0].value["data"];
    assert_eq!(
        (&data["tenant"], &data["interrupt"]["type"]),
        (&json!("acme"), &json!("review"))
    );
}

#[tokio::test]
async fn what_is_given_up_is_seen_sent_again_and_discarded_by_whoever_may() {
    let sink = Sink::new().await;
    sink.usually(Answer::Status(500));
    let mut brief = webhook("ops", &sink);
    brief.give_up_after = Span::from_millis(1);
    let world = World::new(Access::Keys, telling(brief)).await;
    let (_, shop) = world.key(PrincipalKind::Service, "acme", "shop").await;
    let manager = |tenant: &str| {
        let mut principal = Principal::new(PrincipalKind::User, tenant, "ann");
        principal.permissions.insert("webhooks.manage".to_owned());
        principal
    };
    let ann = world
        .keys()
        .create(manager("acme"), None, "")
        .await
        .unwrap()
        .key;
    let eve = world
        .keys()
        .create(manager("evil"), None, "")
        .await
        .unwrap()
        .key;
    let mut ids = Vec::new();
    for node in ["a", "b"] {
        let asked = world.posting(ALL, &deploy(node)).bearer_auth(&shop).send();
        let (status, asked) = read(asked.await.unwrap()).await;
        assert_eq!(status, 201, "{asked}");
        ids.push(asked["id"].as_str().unwrap().to_owned());
    }
    let get = async |key: &str, path: &str| {
        let path = format!("/api/v1/webhooks{path}");
        let request = world.request(Method::GET, &path).bearer_auth(key);
        read(request.send().await.unwrap()).await
    };
    let post = async |key: &str, path: &str, body: Value| {
        let path = format!("/api/v1/webhooks/ops/{path}");
        let request = world.posting(&path, &body).bearer_auth(key);
        read(request.send().await.unwrap()).await
    };
    let mut dead = Value::Null;
    for _ in 0..500 {
        dead = get(&ann, "/ops/dead_letters").await.1;
        if dead["items"].as_array().is_some_and(|it| it.len() == 2) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    for (item, id) in dead["items"].as_array().unwrap().iter().zip(&ids) {
        assert_eq!(item["interrupt_id"], **id);
        assert_eq!(item["error"], "HTTP 500");
        assert!(item["attempts"].as_u64().unwrap() >= 2, "{item}");
    }
    let (_, page) = get(&ann, "/ops/dead_letters?limit=1").await;
    let cursor = page["next_cursor"].as_str().unwrap();
    let (_, rest) = get(&ann, &format!("/ops/dead_letters?limit=1&cursor={cursor}")).await;
    assert_eq!(rest["items"][0], dead["items"][1]);
    assert_eq!(rest["next_cursor"], Value::Null);
    let (_, listed) = get(&ann, "").await;
    let expected = json!({"name": "ops", "configured": true, "types": [], "undelivered": 0, "dead_letters": 2});
    assert_eq!(listed["items"], json!([expected]));

    // Another tenant sees nothing of it, and who may not is told so.
    let (status, theirs) = get(&eve, "/ops/dead_letters").await;
    assert_eq!((status, &theirs["items"]), (200, &json!([])));
    assert_eq!(
        post(&eve, "resend", json!({})).await,
        (200, json!({"count": 0}))
    );
    for (status, problem) in [
        get(&shop, "").await,
        get(&shop, "/ops/dead_letters").await,
        post(&shop, "resend", json!({})).await,
        post(&shop, "discard", json!({})).await,
    ] {
        assert_eq!((status, &problem["code"]), (403, &json!("forbidden")));
    }
    let (status, problem) = get(&ann, "/nobody/dead_letters").await;
    assert_eq!((status, &problem["code"]), (404, &json!("not_found")));
    let unknown = world.posting("/api/v1/webhooks/nobody/resend", &json!({}));
    let unknown = unknown.bearer_auth(&ann).send().await.unwrap();
    assert_eq!(unknown.status(), 404);
    let (status, _) = get(&ann, "/ops/dead_letters?cursor=int_1:2").await;
    assert_eq!(status, 400);

    sink.usually(Answer::Status(200));
    let one = json!({"interrupt_id": ids[1]});
    assert_eq!(post(&ann, "resend", one).await, (200, json!({"count": 1})));
    let accepted = sink.until_accepted(1).await;
    assert_eq!(accepted[0].interrupt(), ids[1]);
    let heard = sink.heard();
    let before = heard.iter().find(|it| it.interrupt() == ids[1]).unwrap();
    assert_eq!(
        (&before.id, &before.body),
        (&accepted[0].id, &accepted[0].body)
    );
    assert_eq!(
        post(&ann, "discard", json!({})).await,
        (200, json!({"count": 1}))
    );
    assert_eq!(get(&ann, "/ops/dead_letters").await.1["items"], json!([]));
}

#[tokio::test]
async fn of_two_servers_one_delivers_and_the_other_one_when_that_is_gone() {
    let sink = Sink::new().await;
    let mut world = telling_world(webhook("ops", &sink)).await;
    let other = world.beside_with(telling(webhook("ops", &sink))).await;
    for node in ["a", "b", "c"] {
        raised(&world, &deploy(node)).await;
        raised(&other, &deploy(&format!("{node}2"))).await;
    }
    assert_eq!(sink.until_accepted(6).await.len(), 6);
    world.stop().await;
    let id = raised(&other, &deploy("d")).await;
    let accepted = sink.until_accepted(7).await;
    assert_eq!(accepted[6].interrupt(), id);
    assert_eq!(accepted.len(), 7, "nothing was told twice");
}

#[tokio::test]
async fn a_server_without_the_endpoint_keeps_what_it_should_hear() {
    let sink = Sink::new().await;
    let mut world = telling_world(webhook("ops", &sink)).await;
    let bare = world.beside().await;
    world.stop().await;
    let id = raised(&bare, &deploy("a")).await;
    close(&bare, &id, "resolve", json!({"approved": true})).await;
    assert_eq!(sink.heard().len(), 0);
    let _again = world.beside_with(telling(webhook("ops", &sink))).await;
    let accepted = sink.until_accepted(2).await;
    assert_eq!(
        by_question(&accepted)[&id],
        ["interrupt.created", "interrupt.resolved"]
    );
}

#[tokio::test]
async fn without_its_secret_a_server_with_an_endpoint_does_not_start() {
    let sink = Sink::new().await;
    let folder = tempfile::tempdir().unwrap();
    let file = |secret: &str| {
        let mut unsigned = webhook("ops", &sink);
        unsigned.secret = secret.to_owned();
        ServerFile {
            listen: ([127, 0, 0, 1], 0).into(),
            store: format!("sqlite:{}", folder.path().join("x.db").display()),
            webhooks: vec![unsigned],
            ..ServerFile::default()
        }
    };
    let missing = Opening::new(file("NO_SUCH"), Access::Dev).start().await;
    let missing = missing.err().map(|error| error.to_string());
    let said = "webhook `ops`: the environment has no `NO_SUCH`";
    assert_eq!(missing.as_deref(), Some(said));
    let bad =
        Opening::new(file("SHORT"), Access::Dev).with_secret("SHORT", "whsec_c2hvcnQ=".to_owned());
    let bad = bad.start().await.err().map(|error| error.to_string());
    let bad = bad.unwrap_or_default();
    assert!(
        bad.contains("`SHORT` holds is no secret") && !bad.contains("c2hvcnQ"),
        "{bad}"
    );
}
