//! Where it is not clear what somebody wants or may do, nothing is done.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use holdpoint_core::{Credential, Definition, Effect, Outcome, Principal, PrincipalKind, ToolSpec};
use holdpoint_engine::{Kit, Rights};
use holdpoint_models::Scripted;
use holdpoint_server::{Access, Keys, Opening, ServerFile};
use holdpoint_store::SqliteStore;
use holdpoint_tools::function;
use reqwest::{Client, Method};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::Instant;

/// Two payments, one after the other.
const SCENARIO: &str = r#"
apiVersion: holdpoint/v1
kind: Scenario
rules:
  - when: {turn: 1}
    call: [{tool: pay, args: {nth: 1}}]
  - when: {turn: 2}
    call: [{tool: pay, args: {nth: 2}}]
  - say: Done
"#;

/// A server whose one agent pays.
struct Payer {
    base: String,
    folder: TempDir,
    client: Client,
    paid: Arc<AtomicUsize>,
}

impl Payer {
    async fn new(access: Access, agent: impl FnOnce(Definition) -> Definition) -> Self {
        Self::playing(SCENARIO, access, agent).await
    }

    async fn playing(
        scenario: &str,
        access: Access,
        agent: impl FnOnce(Definition) -> Definition,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let paid = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&paid);
        let pay = function(move |_, _| {
            counted.fetch_add(1, Ordering::SeqCst);
            async { Outcome::done("paid") }
        });
        let model = Scripted::parse("scenario", scenario).unwrap();
        let configuration = ServerFile {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            store: format!("sqlite:{}", folder.path().join("runs.db").display()),
            ..ServerFile::default()
        };
        let server = Opening::new(configuration, access)
            .with_kit(
                Kit::new()
                    .with_tool("pay", pay)
                    .with_tool("mail", function(|_, _| async { Outcome::done("mailed") }))
                    .with_model("own", model),
            )
            .with_agent(agent(Definition::new("payer", "own")))
            .start()
            .await
            .unwrap();
        let base = format!("http://{}/api/v1", server.address());
        tokio::spawn(server.run(std::future::pending()));
        Self {
            base,
            folder,
            client: Client::builder().no_proxy().build().unwrap(),
            paid,
        }
    }

    /// The keys that it lets people in by.
    fn keys(&self) -> Keys {
        let path = self.folder.path().join("runs.db");
        let store = SqliteStore::open(&path, &Default::default()).unwrap();
        Keys::new(Arc::new(store))
    }

    fn paid(&self) -> usize {
        self.paid.load(Ordering::SeqCst)
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        key: &str,
        body: Option<Value>,
    ) -> (u16, Value) {
        let mut request = self
            .client
            .request(method, format!("{}{path}", self.base))
            .bearer_auth(key);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = request.send().await.unwrap();
        let status = answer.status().as_u16();
        let text = answer.text().await.unwrap();
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        (status, body)
    }

    async fn begin(&self, session: &str, key: &str) -> String {
        let body = json!({"agent_id": "payer", "session_id": session, "input": "pay"});
        let (code, begun) = self.send(Method::POST, "/runs", key, Some(body)).await;
        assert_eq!(code, 201, "{begun}");
        begun["run_id"].as_str().unwrap().to_owned()
    }

    /// Waits until the run asks something other than `before`, or has ended: its status, and what it asks.
    async fn next(&self, run: &str, before: &str, key: &str) -> (String, String) {
        let began = Instant::now();
        loop {
            let path = format!("/runs/{run}");
            let (_, shown) = self.send(Method::GET, &path, key, None).await;
            let status = shown["status"].as_str().unwrap().to_owned();
            let asked = shown["interrupts"][0]["id"].as_str().unwrap_or_default();
            if status == "finished" || (status == "waiting" && asked != before) {
                return (status, asked.to_owned());
            }
            assert!(began.elapsed() < Duration::from_secs(20), "{shown}");
        }
    }
}

fn gated(definition: Definition) -> Definition {
    definition
        .with_tool(ToolSpec::code("pay", Effect::Write))
        .ask("pay")
}

/// How soon a second click comes at most, for the test to mean something.
const SOON: Duration = Duration::from_millis(900);

#[tokio::test]
async fn a_double_click_does_not_approve_what_nobody_has_seen() {
    let payer = Payer::new(Access::Dev, gated).await;
    let yes = || Some(json!({"decisions": [{"type": "approve"}]}));
    // A machine that is busy may be slower than any double click; then once more.
    for attempt in 0..10 {
        let before = payer.paid();
        let run = payer.begin(&format!("runs-{attempt}"), "").await;
        let path = format!("/runs/{run}/resume");
        let (_, first) = payer.next(&run, "", "").await;
        let clicked = Instant::now();
        let (code, _) = payer.send(Method::POST, &path, "", yes()).await;
        assert_eq!(code, 200);
        let (_, second) = payer.next(&run, &first, "").await;
        let (code, problem) = payer.send(Method::POST, &path, "", yes()).await;
        if clicked.elapsed() > SOON {
            continue;
        }
        assert_eq!((code, &problem["code"]), (409, &json!("just_answered")));
        assert_eq!(problem["details"]["pending"], json!([second]));
        assert_eq!(payer.paid(), before + 1);
        // Who says what they mean is heard at once.
        let named = Some(json!({ second.as_str(): {"type": "approve"} }));
        let (code, answered) = payer.send(Method::POST, &path, "", named).await;
        assert_eq!(code, 200, "{answered}");
        let (status, _) = payer.next(&run, &second, "").await;
        assert_eq!((status.as_str(), payer.paid()), ("finished", before + 2));
        return;
    }
    panic!("this machine is too busy to click twice");
}

#[tokio::test]
async fn a_double_click_in_a_chat_is_refused_as_well_and_so_is_a_misspelt_name() {
    let payer = Payer::new(Access::Dev, gated).await;
    for attempt in 0..10 {
        let before = payer.paid();
        let session = format!("chat-{attempt}");
        let who = json!({"agent_id": "payer", "session_id": session});
        let mut message = who.clone();
        message["message"] = json!("pay");
        let (_, asked) = payer
            .send(Method::POST, "/chat/stream", "", Some(message))
            .await;
        assert!(asked.as_str().unwrap().contains("INTERRUPT:"), "{asked}");
        let mut yes = who.clone();
        yes["input"] = json!({"confirm": true});
        let mut misspelt = yes.clone();
        misspelt["interupt_id"] = json!("int_00000000000000000000000000000000");
        let (code, problem) = payer
            .send(Method::POST, "/chat/resume", "", Some(misspelt))
            .await;
        assert_eq!((code, &problem["code"]), (400, &json!("bad_request")));
        let clicked = Instant::now();
        let (_, asked) = payer
            .send(Method::POST, "/chat/resume", "", Some(yes.clone()))
            .await;
        assert!(asked.as_str().unwrap().contains("INTERRUPT:"), "{asked}");
        let (code, problem) = payer
            .send(Method::POST, "/chat/resume", "", Some(yes.clone()))
            .await;
        if clicked.elapsed() > SOON {
            continue;
        }
        assert_eq!((code, &problem["code"]), (409, &json!("just_answered")));
        assert_eq!(payer.paid(), before + 1);
        yes["interruptId"] = problem["details"]["pending"][0].clone();
        let (code, told) = payer
            .send(Method::POST, "/chat/resume", "", Some(yes))
            .await;
        assert_eq!(code, 200, "{told}");
        assert!(told.as_str().unwrap().contains("Done"), "{told}");
        assert_eq!(payer.paid(), before + 2);
        return;
    }
    panic!("this machine is too busy to click twice");
}

#[tokio::test]
async fn who_lacks_a_tools_permission_cannot_have_it_called() {
    let needs = |definition: Definition| {
        let mut pay = ToolSpec::code("pay", Effect::Write);
        pay.permissions = vec!["money".to_owned()];
        definition.with_tool(pay)
    };
    let payer = Payer::new(Access::Keys, needs).await;
    let keys = payer.keys();
    for (name, permission, paid) in [
        ("ann", None, 0),
        ("bob", Some("mail"), 0),
        ("cleo", Some("money"), 2),
        ("dan", Some("*"), 2),
    ] {
        let before = payer.paid();
        let mut who = Principal::new(PrincipalKind::User, "acme", name);
        who.permissions.extend(permission.map(str::to_owned));
        let key = keys.create(who, None, "").await.unwrap().key;
        let run = payer.begin(name, &key).await;
        let (status, _) = payer.next(&run, "", &key).await;
        assert_eq!(status, "finished");
        assert_eq!(payer.paid(), before + paid, "{name}");
    }
}

/// A server whose agent asks before it pays, and pays only for those who have the permission `money`.
async fn payer_for_some() -> (Payer, Keys) {
    let needs = |definition: Definition| {
        let mut pay = ToolSpec::code("pay", Effect::Write);
        pay.permissions = vec!["money".to_owned()];
        definition.with_tool(pay).ask("pay")
    };
    let payer = Payer::new(Access::Keys, needs).await;
    let keys = payer.keys();
    (payer, keys)
}

fn person(name: &str, permissions: &[&str]) -> Principal {
    let mut who = Principal::new(PrincipalKind::User, "acme", name);
    let permissions = permissions.iter().copied().map(str::to_owned);
    who.permissions.extend(permissions);
    who
}

fn decision(kind: &str) -> Option<Value> {
    Some(json!({"decisions": [{"type": kind}]}))
}

#[tokio::test]
async fn what_a_requester_may_not_do_any_more_is_not_done_whoever_approves() {
    let (payer, keys) = payer_for_some().await;
    let chief = keys.create(person("chief", &["*"]), None, "").await;
    let chief = chief.unwrap().key;
    let ann = keys.create(person("ann", &["money"]), None, "").await;
    let ann = ann.unwrap();
    let run = payer.begin("ann", &ann.key).await;
    let (_, asked) = payer.next(&run, "", &ann.key).await;
    let resume = format!("/runs/{run}/resume");
    let token = {
        let path = format!("/interrupts/{asked}/token");
        let body = Some(json!({"user_id": "ann"}));
        let (code, token) = payer.send(Method::POST, &path, &chief, body).await;
        assert_eq!(code, 201, "{token}");
        token
    };
    let less = keys.create(person("ann", &["mail"]), None, "").await;
    let less = less.unwrap().key;

    keys.revoke(&ann.id).await.unwrap();
    let (_, shown) = payer
        .send(Method::GET, &format!("/interrupts/{asked}"), &chief, None)
        .await;
    let hash = &shown["agent"]["actions"][0]["params_hash"];
    let by_token = json!({"resume_token": token["resume_token"], "approval": {"approved": true, "params_hash": hash}});
    for (key, body) in [
        // By somebody who may do anything, by herself with what she has left, and by a token that was given before.
        (&chief, decision("approve")),
        (&less, decision("approve")),
        (&less, Some(by_token)),
    ] {
        let (code, refused) = payer.send(Method::POST, &resume, key, body.clone()).await;
        assert_eq!(
            (code, &refused["code"]),
            (403, &json!("permission_lost")),
            "{body:?} {refused}"
        );
        let said = refused["error"].as_str().unwrap();
        assert!(
            said.contains("user:ann") && said.contains("`money`"),
            "{said}"
        );
    }
    assert_eq!(payer.paid(), 0);

    let again = keys.create(person("ann", &["money"]), None, "").await;
    let again = again.unwrap();
    let (code, taken) = payer
        .send(Method::POST, &resume, &chief, decision("approve"))
        .await;
    assert_eq!(code, 200, "{taken}");
    let (_, second) = payer.next(&run, &asked, &chief).await;
    assert_eq!(payer.paid(), 1);

    keys.revoke(&again.id).await.unwrap();
    let named = |kind| Some(json!({&second: {"decisions": [{"type": kind}]}}));
    let (code, refused) = payer
        .send(Method::POST, &resume, &chief, named("approve"))
        .await;
    assert_eq!(code, 403, "{refused}");
    let (code, taken) = payer
        .send(Method::POST, &resume, &chief, named("reject"))
        .await;
    assert_eq!(code, 200, "a rejection takes no permission: {taken}");
    let (status, _) = payer.next(&run, &second, &chief).await;
    assert_eq!((status.as_str(), payer.paid()), ("finished", 1));
}

#[tokio::test]
async fn a_call_after_a_permission_was_lost_is_not_even_asked_about() {
    let (payer, keys) = payer_for_some().await;
    let chief = keys.create(person("chief", &["*"]), None, "").await;
    let chief = chief.unwrap().key;
    let ann = keys.create(person("ann", &["money"]), None, "").await;
    let ann = ann.unwrap();
    let run = payer.begin("ann", &ann.key).await;
    let (_, asked) = payer.next(&run, "", &ann.key).await;
    keys.revoke(&ann.id).await.unwrap();
    let path = format!("/runs/{run}/resume");
    let (code, taken) = payer
        .send(Method::POST, &path, &chief, decision("reject"))
        .await;
    assert_eq!(code, 200, "{taken}");
    let (status, _) = payer.next(&run, &asked, &chief).await;
    assert_eq!((status.as_str(), payer.paid()), ("finished", 0));
}

/// Asks before it mails. `pay`, in the same turn, needs a permission and nobody's approval.
const MAIL_AND_PAY: &str = r#"
apiVersion: holdpoint/v1
kind: Scenario
rules:
  - when: {turn: 1}
    call: [{tool: mail, args: {}}, {tool: pay, args: {}}]
  - say: Done
"#;

#[tokio::test]
async fn what_waited_beside_a_question_is_not_done_for_who_lost_the_permission_meanwhile() {
    let needs = |definition: Definition| {
        let mut pay = ToolSpec::code("pay", Effect::Write);
        pay.permissions = vec!["money".to_owned()];
        let mail = ToolSpec::code("mail", Effect::Write);
        definition.with_tool(pay).with_tool(mail).ask("mail")
    };
    let payer = Payer::playing(MAIL_AND_PAY, Access::Keys, needs).await;
    let keys = payer.keys();
    let chief = keys.create(person("chief", &["*"]), None, "").await;
    let chief = chief.unwrap().key;
    let ann = keys.create(person("ann", &["money"]), None, "").await;
    let ann = ann.unwrap();
    let run = payer.begin("ann", &ann.key).await;
    let (_, asked) = payer.next(&run, "", &ann.key).await;
    keys.revoke(&ann.id).await.unwrap();
    let resume = format!("/runs/{run}/resume");
    let (code, taken) = payer
        .send(Method::POST, &resume, &chief, decision("reject"))
        .await;
    assert_eq!(code, 200, "{taken}");
    let (status, second) = payer.next(&run, &asked, &chief).await;
    assert_eq!((status.as_str(), payer.paid()), ("waiting", 0));
    let named = |kind| Some(json!({&second: {"decisions": [{"type": kind}]}}));
    let (code, refused) = payer
        .send(Method::POST, &resume, &chief, named("approve"))
        .await;
    assert_eq!(
        (code, &refused["code"]),
        (403, &json!("permission_lost")),
        "{refused}"
    );
    // A key that may more than she ever came with is no way around; one that gives it back is.
    let other = keys.create(person("ann", &["*"]), None, "").await;
    let (code, taken) = payer
        .send(Method::POST, &resume, &chief, named("approve"))
        .await;
    assert_eq!(code, 200, "{taken}");
    drop(other);
    let (status, _) = payer.next(&run, &second, &chief).await;
    assert_eq!((status.as_str(), payer.paid()), ("finished", 1));
}

#[tokio::test]
async fn a_run_never_gains_what_the_key_that_began_it_did_not_have() {
    let needs = |definition: Definition| {
        let mut pay = ToolSpec::code("pay", Effect::Write);
        pay.permissions = vec!["money".to_owned()];
        definition.with_tool(pay)
    };
    let payer = Payer::new(Access::Keys, needs).await;
    let keys = payer.keys();
    let all = keys.create(person("ann", &["*"]), None, "").await;
    all.unwrap();
    let few = keys.create(person("ann", &["mail"]), None, "").await;
    let few = few.unwrap().key;
    let run = payer.begin("ann", &few).await;
    let (status, _) = payer.next(&run, "", &few).await;
    assert_eq!((status.as_str(), payer.paid()), ("finished", 0));
}

#[tokio::test]
async fn whoever_came_by_a_key_that_is_kept_elsewhere_is_not_taken_at_their_word() {
    let (payer, keys) = payer_for_some().await;
    let elsewhere = tempfile::tempdir().unwrap();
    let other = SqliteStore::open(&elsewhere.path().join("other.db"), &Default::default());
    let other = Keys::new(Arc::new(other.unwrap()));
    let mut ann = person("ann", &["money"]);
    assert_eq!(
        other.of(&ann).await.unwrap(),
        None,
        "nobody said how she came"
    );
    ann.credential = Credential::Key;
    let unknown = other.of(&ann).await.unwrap_err().to_string();
    assert!(unknown.contains("user:ann"), "{unknown}");
    // Her old key says nothing of who comes by a token of an issuer.
    let old = keys.create(person("ann", &["money"]), None, "").await;
    keys.revoke(&old.unwrap().id).await.unwrap();
    assert_eq!(keys.of(&ann).await.unwrap(), Some([].into()));
    ann.credential = Credential::Token;
    assert_eq!(keys.of(&ann).await.unwrap(), None);
    drop(payer);
}
