//! Resume tokens over HTTP: for one person and one question, once.

use std::{collections::BTreeSet, time::Duration};

use holdpoint_core::{Principal, PrincipalKind};
use holdpoint_server::{Access, ServerFile};
use reqwest::Method;
use serde_json::{Value, json};

use super::support::{World, read};

/// A server with keys, and the people and programs that have them.
struct Office {
    world: World,
    ann: String,
    bob: String,
    desk: String,
    bot: String,
}

impl Office {
    async fn open() -> Self {
        Self::with(|_| {}).await
    }

    /// Whose clerk acts only by a token.
    async fn strict() -> Self {
        Self::with(|config| {
            let clerk = &config.agents[1];
            let text = std::fs::read_to_string(clerk).unwrap();
            let strict = text.replace(
                "{allowed_decisions:",
                "{requires_token: true, allowed_decisions:",
            );
            assert_ne!(text, strict);
            std::fs::write(clerk, strict).unwrap();
        })
        .await
    }

    async fn with(change: impl FnOnce(&mut ServerFile)) -> Self {
        let world = World::new(Access::Keys, change).await;
        let (_, ann) = world.key(PrincipalKind::User, "acme", "ann").await;
        let (_, bob) = world.key(PrincipalKind::User, "acme", "bob").await;
        let (_, bot) = world.key(PrincipalKind::Agent, "acme", "bot").await;
        let mut desk = Principal::new(PrincipalKind::Service, "acme", "desk");
        desk.permissions.insert("tokens.issue".to_owned());
        desk.roles = BTreeSet::from(["clerk".to_owned()]);
        let desk = world.keys().create(desk, None, "").await.unwrap().key;
        Self {
            world,
            ann,
            bob,
            desk,
            bot,
        }
    }

    async fn send(&self, key: &str, path: &str, body: &Value) -> (u16, Value) {
        send(&self.world, key, path, body).await
    }

    /// A run that waits, its question, and the digest of the call that it asks about.
    async fn waiting(&self, session: &str) -> Asked {
        let body = json!({"agent_id": "clerk", "session_id": session, "input": "go"});
        let (status, begun) = self.send(&self.ann, "/api/v1/runs", &body).await;
        assert_eq!(status, 201, "{begun}");
        let run = begun["run_id"].as_str().unwrap().to_owned();
        loop {
            let found = self
                .question("?status=pending&workflow_id=clerk", session)
                .await;
            if let Some(question) = found {
                let id = question["id"].as_str().unwrap().to_owned();
                let hash = question["agent"]["actions"][0]["params_hash"].clone();
                return Asked { run, id, hash };
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    async fn question(&self, query: &str, session: &str) -> Option<Value> {
        let path = format!("/api/v1/interrupts{query}");
        let request = self
            .world
            .request(Method::GET, &path)
            .bearer_auth(&self.ann);
        let (_, page) = read(request.send().await.unwrap()).await;
        let mut items = page["items"].as_array().unwrap().iter();
        items.find(|it| it["node_id"] == session).cloned()
    }

    async fn status(&self, asked: &Asked) -> Value {
        let path = format!("/api/v1/interrupts/{}", asked.id);
        let request = self
            .world
            .request(Method::GET, &path)
            .bearer_auth(&self.ann);
        read(request.send().await.unwrap()).await.1["status"].clone()
    }

    async fn token(&self, key: &str, asked: &Asked, wish: &Value) -> String {
        let path = format!("/api/v1/interrupts/{}/token", asked.id);
        let (status, given) = self.send(key, &path, wish).await;
        assert_eq!(status, 201, "{given}");
        given["resume_token"].as_str().unwrap().to_owned()
    }

    async fn use_token(&self, key: &str, asked: &Asked, token: &str) -> (u16, Value) {
        let path = format!("/api/v1/runs/{}/resume", asked.run);
        self.send(key, &path, &yes(token, &asked.hash)).await
    }
}

struct Asked {
    run: String,
    id: String,
    hash: Value,
}

fn yes(token: &str, hash: &Value) -> Value {
    json!({"resume_token": token, "approval": {"approved": true, "params_hash": hash}})
}

async fn send(world: &World, key: &str, path: &str, body: &Value) -> (u16, Value) {
    let request = world.posting(path, body).bearer_auth(key);
    read(request.send().await.unwrap()).await
}

fn code((status, problem): (u16, Value)) -> (u16, String) {
    (
        status,
        problem["code"].as_str().unwrap_or_default().to_owned(),
    )
}

fn refused(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

#[tokio::test]
async fn a_token_answers_once_and_the_journal_says_by_whom_and_who_gave_it() {
    let office = Office::open().await;
    let asked = office.waiting("s").await;
    let wish = json!({"user_id": "bob", "roles": ["clerk"]});
    let token = office.token(&office.desk, &asked, &wish).await;
    // Given again, it is another one; the first answer ends both.
    let second = office.token(&office.desk, &asked, &wish).await;
    assert_ne!(token, second);
    let (status, standing) = office.use_token(&office.bob, &asked, &token).await;
    assert_eq!(status, 200, "{standing}");
    assert_eq!(standing["run_id"], asked.run);
    let path = format!("/api/v1/runs/{}/trace", asked.run);
    let trace = office
        .world
        .request(Method::GET, &path)
        .bearer_auth(&office.ann);
    let (_, trace) = read(trace.send().await.unwrap()).await;
    let mut events = trace["items"].as_array().unwrap().iter();
    let answered = events.find(|it| it["type"] == "answered").unwrap();
    assert_eq!(answered["by"], "user:bob");
    let via = &answered["data"]["via"];
    assert_eq!(
        (&via["issuer"]["name"], &via["carrier"]["name"], &via["key"]),
        (&json!("desk"), &json!("bob"), &json!("k1"))
    );
    assert_eq!(answered["data"]["roles"], json!(["clerk"]));
    assert!(
        !trace.to_string().contains(&token),
        "the token itself is nowhere"
    );
    let again = office.use_token(&office.bob, &asked, &token).await;
    assert_eq!(code(again), refused(409, "token_used"));
    let other = office.use_token(&office.bob, &asked, &second).await;
    assert_eq!(code(other), refused(409, "already_decided"));
    let path = format!("/api/v1/interrupts/{}/token", asked.id);
    let late = office.send(&office.desk, &path, &wish).await;
    assert_eq!(code(late), refused(409, "already_decided"));
}

#[tokio::test]
async fn a_token_that_was_changed_anywhere_is_none_of_ours() {
    let office = Office::open().await;
    let asked = office.waiting("s").await;
    let token = office.token(&office.bob, &asked, &json!({})).await;
    let mut tried = 0;
    for at in 0..token.len() {
        let mut bytes = token.clone().into_bytes();
        // The next letter of the alphabet of tokens, so that the text stays one.
        bytes[at] = match bytes[at] {
            b'.' => b'A',
            b'z' => b'A',
            b'Z' => b'a',
            b'9' => b'-',
            b'-' => b'_',
            b'_' => b'0',
            other => other + 1,
        };
        let changed = String::from_utf8(bytes).unwrap();
        let refusal = office.use_token(&office.bob, &asked, &changed).await;
        assert_eq!(code(refusal), refused(403, "bad_token"), "{at}");
        tried += 1;
    }
    assert!(tried > 300);
    let long = "x".repeat(5_000);
    for text in [
        "",
        ".",
        "a.b.c.d",
        token.trim_end_matches(|it| it != '.'),
        &long,
    ] {
        let refusal = office.use_token(&office.bob, &asked, text).await;
        assert_eq!(code(refusal), refused(403, "bad_token"), "{text}");
    }
    assert_eq!(office.status(&asked).await, "pending");
    assert_eq!(office.use_token(&office.bob, &asked, &token).await.0, 200);
}

#[tokio::test]
async fn a_token_is_for_one_run_one_user_one_tenant_one_call_and_a_while() {
    let office = Office::open().await;
    let (asked, other) = (office.waiting("s").await, office.waiting("t").await);
    let token = office.token(&office.bob, &asked, &json!({})).await;
    let elsewhere = office.use_token(&office.bob, &other, &token).await;
    assert_eq!(code(elsewhere), refused(403, "bad_token"), "another run");
    let stolen = office.use_token(&office.ann, &asked, &token).await;
    assert_eq!(code(stolen), refused(403, "bad_token"), "another user");
    let agent = office.use_token(&office.bot, &asked, &token).await;
    assert_eq!(
        code(agent),
        refused(403, "forbidden"),
        "an agent never decides"
    );
    let (_, eve) = office.world.key(PrincipalKind::User, "other", "bob").await;
    assert_eq!(
        office.use_token(&eve, &asked, &token).await.0,
        404,
        "another tenant"
    );
    let path = format!("/api/v1/runs/{}/resume", asked.run);
    let hash = format!("sha256:{}", "0".repeat(64));
    let changed = office
        .send(&office.bob, &path, &yes(&token, &json!(hash)))
        .await;
    assert!(
        changed.1["error"]
            .as_str()
            .unwrap()
            .contains("approval parameters changed")
    );
    assert_eq!(code(changed), refused(409, "params_changed"));
    let blind = json!({"resume_token": token, "approval": {"approved": true}});
    let blind = office.send(&office.bob, &path, &blind).await;
    assert_eq!(
        code(blind),
        refused(422, "bad_answer"),
        "it must say what was seen"
    );
    for bad in [
        json!({"resume_token": token}),
        json!({"resume_token": token, "approval": {"approved": true}, "decisions": []}),
        json!({"resume_token": 7, "approval": {}}),
    ] {
        assert_eq!(office.send(&office.bob, &path, &bad).await.0, 400, "{bad}");
    }
    let brief = office
        .token(&office.bob, &asked, &json!({"ttl_seconds": 1}))
        .await;
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let expired = office.use_token(&office.bob, &asked, &brief).await;
    assert_eq!(code(expired), refused(403, "token_expired"));
    assert_eq!(
        office.status(&asked).await,
        "pending",
        "nothing of that changed anything"
    );
    let (_, other) = office
        .world
        .key(PrincipalKind::Service, "acme", "other")
        .await;
    for service in [&other, &office.desk] {
        let carried = office.use_token(service, &asked, &token).await;
        assert_eq!(code(carried), refused(403, "bad_token"), "it gave out none");
    }
    // A service brings what it gave out; and whoever says no need not have looked.
    let given = json!({"user_id": "bob"});
    let token = office.token(&office.desk, &asked, &given).await;
    let no = json!({"resume_token": token, "approval": {"approved": false, "comment": "no"}});
    let carried = office.send(&office.desk, &path, &no).await;
    assert_eq!(carried.0, 200, "{}", carried.1);
    assert_eq!(office.status(&asked).await, "rejected");
}

#[tokio::test]
async fn whoever_has_the_right_gives_tokens_and_nobody_gives_more_than_they_have() {
    let office = Office::open().await;
    let asked = office.waiting("s").await;
    let path = format!("/api/v1/interrupts/{}/token", asked.id);
    let issue = async |key: &str, wish: Value| code(office.send(key, &path, &wish).await);
    assert_eq!(
        issue(&office.ann, json!({"user_id": "bob"})).await,
        refused(403, "forbidden")
    );
    assert_eq!(
        issue(&office.bot, json!({})).await,
        refused(403, "forbidden")
    );
    assert_eq!(
        issue(&office.ann, json!({"roles": ["boss"]})).await,
        refused(403, "bad_token")
    );
    let more = json!({"user_id": "bob", "roles": ["clerk", "boss"]});
    assert_eq!(issue(&office.desk, more).await, refused(403, "bad_token"));
    for bad in [
        json!({"ttl_seconds": 0}),
        json!({"ttl_seconds": 3601}),
        json!({"user_id": "a b"}),
        json!({"user_id": "system"}),
        json!({"user": "ann"}),
    ] {
        assert_eq!(
            issue(&office.ann, bad.clone()).await,
            refused(400, "bad_request"),
            "{bad}"
        );
    }
    assert_eq!(issue(&office.ann, json!({})).await.0, 201);
    // What was given by a key that is revoked since does not hold any more.
    let mut temp = Principal::new(PrincipalKind::Service, "acme", "temp");
    temp.permissions.insert("tokens.issue".to_owned());
    let temp = office.world.keys().create(temp, None, "").await.unwrap();
    let token = office
        .token(&temp.key, &asked, &json!({"user_id": "bob"}))
        .await;
    office.world.keys().revoke(&temp.id).await.unwrap();
    let orphan = office.use_token(&office.bob, &asked, &token).await;
    assert_eq!(code(orphan), refused(403, "bad_token"));
    assert_eq!(office.status(&asked).await, "pending");
}

#[tokio::test]
async fn of_many_uses_at_once_one_wins_and_after_a_restart_none() {
    let mut office = Office::open().await;
    let asked = office.waiting("s").await;
    let token = office.token(&office.bob, &asked, &json!({})).await;
    let path = format!("/api/v1/runs/{}/resume", asked.run);
    let body = yes(&token, &asked.hash);
    let uses = (0..1_000).map(|_| send(&office.world, &office.bob, &path, &body));
    let mut won = 0;
    for used in futures::future::join_all(uses).await {
        match used.0 {
            200 => won += 1,
            _ => assert_eq!(code(used), refused(409, "token_used")),
        }
    }
    assert_eq!(won, 1);
    office.world.stop().await;
    let after = World::over(&office.world, Access::Keys).await;
    let again = send(&after, &office.bob, &path, &body).await;
    assert_eq!(code(again), refused(409, "token_used"));
}

#[tokio::test]
async fn where_a_gate_requires_a_token_nobody_lets_it_run_without_one_and_anybody_says_no() {
    let office = Office::strict().await;
    let asked = office.waiting("s").await;
    let shown = office.question("?status=pending", "s").await.unwrap();
    assert_eq!(shown["agent"]["actions"][0]["requires_token"], true);
    let resume = format!("/api/v1/runs/{}/resume", asked.run);
    let resolve = format!("/api/v1/interrupts/{}/resolve", asked.id);
    let decide = json!({"decisions": [{"type": "approve"}]});
    let edit =
        json!({"decisions": [{"type": "edit", "edited_action": {"name": "act", "args": {}}}]});
    for key in [&office.ann, &office.bob, &office.desk] {
        for (path, body) in [(&resume, &decide), (&resume, &edit), (&resolve, &decide)] {
            let refusal = office.send(key, path, body).await;
            assert_eq!(
                code(refusal),
                refused(403, "token_required"),
                "{path} {body}"
            );
        }
    }
    assert_eq!(office.status(&asked).await, "pending");
    let token = office.token(&office.bob, &asked, &json!({})).await;
    let (status, _) = office.use_token(&office.bob, &asked, &token).await;
    assert_eq!(status, 200);

    let asked = office.waiting("no").await;
    let reject = format!("/api/v1/interrupts/{}/reject", asked.id);
    let (status, closed) = office.send(&office.bob, &reject, &json!({})).await;
    assert_eq!((status, &closed["status"]), (200, &json!("rejected")));
}
