//! Interrupts over HTTP: raised by programs, awaited, answered; and those of the agents here.

use std::time::Duration;

use holdpoint_core::PrincipalKind;
use holdpoint_server::Access;
use reqwest::Method;
use serde_json::{Value, json};

use super::support::{World, chat, read};
use crate::sse;

const ALL: &str = "/api/v1/interrupts";

fn at(interrupt: &Value) -> String {
    format!("{ALL}/{}", interrupt["id"].as_str().unwrap())
}

fn deploy(node: &str) -> Value {
    json!({"workflow_id": "release", "node_id": node, "type": "approval", "title": "Deploy?"})
}

async fn raised(world: &World, body: &Value) -> Value {
    let (status, raised) = world.post(ALL, body).await;
    assert_eq!(status, 201, "{raised}");
    raised
}

#[tokio::test]
async fn a_program_asks_waits_and_is_told_the_moment_somebody_decides() {
    let world = World::dev().await;
    let body = json!({
        "workflow_id": "release", "node_id": "deploy", "type": "approval",
        "title": "部署 v2.0?", "description": "To production.", "data": {"version": "2.0"},
        "options": [{"id": "blue", "label": "Blue"}, {"id": "green", "label": "Green"}],
        "timeout": 3_600_000_000_000_u64, "checkpoint_id": "cp-1", "metadata": {"ticket": 12},
    });
    let response = world.posting(ALL, &body).send().await.unwrap();
    let location = response.headers()["location"].to_str().unwrap().to_owned();
    let (status, asked) = read(response).await;
    assert_eq!((status, &location), (201, &at(&asked)));
    for name in [
        "workflow_id",
        "node_id",
        "type",
        "title",
        "description",
        "data",
        "timeout",
    ] {
        assert_eq!(asked[name], body[name], "{name}");
    }
    assert_eq!(asked["status"], "pending");
    assert!(asked["expires_at"].is_string() && asked.get("response").is_none());
    let (status, same) = world.post(ALL, &body).await;
    assert_eq!((status, &same), (200, &asked), "it is asked once");

    let path = format!("{}/wait?timeout=20", at(&asked));
    let waiting = world.request(Method::GET, &path).send();
    let waiting = tokio::spawn(waiting);
    let said = json!({"approved": true, "option_id": "green", "comment": "go"});
    let (status, closed) = world.post(&format!("{}/resolve", at(&asked)), &said).await;
    assert_eq!(status, 200, "{closed}");
    let (status, told) = read(waiting.await.unwrap().unwrap()).await;
    assert_eq!((status, &told), (200, &closed));
    assert_eq!(told["status"], "resolved");
    let response = &told["response"];
    assert_eq!(
        (
            &response["approved"],
            &response["option_id"],
            &response["user_id"]
        ),
        (&json!(true), &json!("green"), &json!("dev"))
    );
    assert_eq!(world.get(&at(&asked)).await, (200, told.clone()));
    // Who waits for what is over does not wait.
    assert_eq!(world.get(&path).await, (200, told.clone()));
    // Asked again at the same checkpoint, the program gets what it would have got.
    assert_eq!(world.post(ALL, &body).await, (200, told));
    for late in ["resolve", "reject", "cancel"] {
        let said = if late == "resolve" {
            said.clone()
        } else {
            json!({})
        };
        let (status, problem) = world.post(&format!("{}/{late}", at(&asked)), &said).await;
        let details = &problem["details"];
        assert_eq!(
            (status, &problem["code"], &details["by"], &details["status"]),
            (
                409,
                &json!("already_decided"),
                &json!("user:dev"),
                &json!("resolved")
            ),
            "{late}"
        );
    }
}

#[tokio::test]
async fn whoever_follows_an_interrupt_on_another_server_is_told_there() {
    let world = World::dev().await;
    let other = world.beside().await;
    let asked = raised(&world, &deploy("a")).await;
    let path = format!("{}/wait", at(&asked));
    let following = other
        .request(Method::GET, &path)
        .header("accept", "text/event-stream")
        .send()
        .await
        .unwrap();
    assert_eq!(
        following.headers()["content-type"],
        "text/event-stream; charset=utf-8"
    );
    let polling = tokio::spawn(other.request(Method::GET, &path).send());
    let (status, closed) = world
        .post(
            &format!("{}/reject", at(&asked)),
            &json!({"comment": "not on a Friday"}),
        )
        .await;
    assert_eq!((status, &closed["status"]), (200, &json!("rejected")));
    let text = following.text().await.unwrap();
    let events: Vec<_> = sse::read(text.as_bytes())
        .into_iter()
        .filter(|event| event.event == "interrupt")
        .map(|event| serde_json::from_str::<Value>(&event.data).unwrap())
        .collect();
    assert_eq!(events, [asked, closed.clone()]);
    assert_eq!(closed["response"]["comment"], "not on a Friday");
    let (status, polled) = read(polling.await.unwrap().unwrap()).await;
    assert_eq!((status, polled), (200, closed));
}

#[tokio::test]
async fn what_does_not_fit_is_explained_and_changes_nothing() {
    let world = World::dev().await;
    let bad: [(Value, u16, &str, &str); 10] = [
        (
            json!({"workflow_id": 5, "type": "input"}),
            400,
            "bad_request",
            "workflow_id: invalid type",
        ),
        (
            json!({"workflow_id": "w".repeat(257), "type": "input"}),
            422,
            "bad_question",
            "longer than 256",
        ),
        (json!({}), 400, "bad_request", "workflow_id"),
        (
            json!({"workflow_id": "w", "type": "wish"}),
            400,
            "bad_request",
            "wish",
        ),
        (
            json!({"workflow_id": "", "type": "input"}),
            422,
            "bad_question",
            "workflow_id",
        ),
        (
            json!({"workflow_id": "w", "type": "input", "timeout": -1}),
            400,
            "bad_request",
            "timeout",
        ),
        (
            json!({"workflow_id": "w", "type": "input", "timeout_seconds": 5}),
            400,
            "bad_request",
            "timeout_seconds",
        ),
        (
            json!({"workflow_id": "w", "type": "input", "input_schema": {"type": "wish"}}),
            422,
            "bad_question",
            "schema",
        ),
        (
            json!({"workflow_id": "w", "type": "input", "bind_to_caller": true}),
            422,
            "bad_question",
            "bind_to_caller",
        ),
        (
            json!({"workflow_id": "w", "type": "input", "description": "x".repeat(20_000)}),
            422,
            "bad_question",
            "16384",
        ),
    ];
    let before = world.contents();
    for (body, status, code, word) in bad {
        let (got, problem) = world.post(ALL, &body).await;
        assert_eq!((got, &problem["code"]), (status, &json!(code)), "{problem}");
        assert!(
            problem["error"].as_str().unwrap().contains(word),
            "{problem}"
        );
    }
    assert_eq!(world.contents(), before);

    let count = json!({
        "workflow_id": "w", "type": "input", "title": "How many?",
        "input_schema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
    });
    let asked = raised(&world, &count).await;
    let busy = json!({"workflow_id": "w", "type": "input", "title": "Another"});
    let (status, problem) = world.post(ALL, &busy).await;
    assert_eq!(
        (status, &problem["code"]),
        (409, &json!("interrupt_pending"))
    );
    assert_eq!(problem["details"]["pending"], json!([asked["id"]]));
    let before = world.contents();
    let resolve = format!("{}/resolve", at(&asked));
    let misfits = [
        (json!({}), 422),
        (json!({"input": {"n": "three"}}), 422),
        (json!({"input": {"n": 3}, "option_id": "x"}), 422),
        (json!({"input": {"n": 3}, "approved": "yes"}), 400),
        (json!({"input": {"n": 3}, "user_id": "somebody"}), 422),
        (
            json!({"input": {"n": 3}, "decisions": [{"type": "approve"}]}),
            422,
        ),
        (json!({"decisions": [{"type": "wish"}]}), 422),
        (json!({"inputs": {"n": 3}}), 400),
    ];
    for (said, status) in misfits {
        let (got, problem) = world.post(&resolve, &said).await;
        assert_eq!(got, status, "{said}: {problem}");
    }
    for path in ["wait?timeout=301", "wait?timeout=-1", "wait?timeout=x"] {
        assert_eq!(world.get(&format!("{}/{path}", at(&asked))).await.0, 400);
    }
    let query = [
        "status=open",
        "type=wish",
        "cursor=zzz",
        "limit=0",
        "limit=201",
    ];
    for query in query {
        let (status, problem) = world.get(&format!("{ALL}?{query}")).await;
        assert_eq!(status, 400, "{query}: {problem}");
    }
    assert_eq!(world.contents(), before, "nothing was changed");
    let (status, closed) = world.post(&resolve, &json!({"input": {"n": 3}})).await;
    assert_eq!(
        (status, &closed["response"]["input"]),
        (200, &json!({"n": 3}))
    );
    for absent in ["int_00", "int_00000000000000000000000000000000", "../keys"] {
        assert_eq!(world.get(&format!("{ALL}/{absent}")).await.0, 404);
    }
}

#[tokio::test]
async fn a_request_that_is_sent_twice_is_done_once() {
    let world = World::dev().await;
    let send = async |path: &str, body: &Value, key: &str| {
        let request = world.posting(path, body).header("idempotency-key", key);
        let response = request.send().await.unwrap();
        let replayed = response.headers().contains_key("idempotency-replayed");
        (read(response).await, replayed)
    };
    let ((status, asked), _) = send(ALL, &deploy("a"), "k1").await;
    assert_eq!(status, 201);
    let resolve = format!("{}/resolve", at(&asked));
    let yes = json!({"approved": true});
    let ((status, closed), replayed) = send(&resolve, &yes, "k2").await;
    assert_eq!((status, replayed), (200, false));
    // The question is over, and its request is known still: it is not asked anew.
    let ((status, again), replayed) = send(ALL, &deploy("a"), "k1").await;
    assert_eq!((status, &again, replayed), (200, &closed, true));
    let ((status, again), replayed) = send(&resolve, &yes, "k2").await;
    assert_eq!((status, &again, replayed), (200, &closed, true));
    let ((status, problem), _) = send(&resolve, &json!({"approved": false}), "k2").await;
    assert_eq!(
        (status, &problem["code"]),
        (422, &json!("idempotency_mismatch"))
    );
    // Under another name it is another question.
    let ((status, other), _) = send(ALL, &deploy("a"), "k3").await;
    assert_eq!(status, 201);
    assert_ne!(other["id"], asked["id"]);
    let cancel = format!("{}/cancel", at(&other));
    for is_second in [false, true] {
        let ((status, canceled), replayed) = send(&cancel, &json!({}), "k4").await;
        assert_eq!((status, replayed), (200, is_second));
        assert_eq!(canceled["status"], "canceled");
    }
    // The same question that is pending already is noted under the second request's name, too.
    let pending = raised(&world, &deploy("b")).await;
    assert_eq!(
        send(ALL, &deploy("b"), "k5").await.0,
        (200, pending.clone())
    );
    world
        .post(&format!("{}/cancel", at(&pending)), &json!({}))
        .await;
    let ((status, known), _) = send(ALL, &deploy("b"), "k5").await;
    assert_eq!((status, &known["id"]), (200, &pending["id"]));
}

#[tokio::test]
async fn what_agents_ask_is_listed_and_answered_here_too() {
    let world = World::dev().await;
    let run = world.waiting("s").await;
    let confirming = chat("c", "删除");
    world.stream("/api/v1/chat/stream", &confirming).await;
    let (_, page) = world.get(&format!("{ALL}?status=pending")).await;
    let [call, words] = page["items"].as_array().unwrap().as_slice() else {
        panic!("{page}");
    };
    assert_eq!(
        (
            &call["workflow_id"],
            &call["node_id"],
            &call["type"],
            &call["run_id"]
        ),
        (
            &json!("clerk"),
            &json!("s"),
            &json!("approval"),
            &json!(run)
        )
    );
    let action = &call["agent"]["actions"][0];
    assert_eq!(
        (&action["name"], &action["args"]),
        (&json!("act"), &json!({}))
    );
    assert!(
        action["params_hash"]
            .as_str()
            .unwrap()
            .starts_with("sha256:")
    );
    assert_eq!(
        action["allowed_decisions"],
        json!(["approve", "edit", "reject"])
    );
    assert_eq!(call["agent"]["cause"], "human_approval");
    assert!(
        words["description"].as_str().unwrap().contains("即将删除"),
        "{words}"
    );
    assert_eq!(words["agent"]["fields"][0]["name"], "confirm");

    let cancel = world
        .post(&format!("{}/cancel", at(call)), &json!({}))
        .await;
    assert_eq!((cancel.0, &cancel.1["code"]), (409, &json!("use_runs_api")));
    let before = world.contents();
    for bad in [json!({}), json!({"input": 3}), json!({"decisions": []})] {
        let (status, problem) = world.post(&format!("{}/resolve", at(call)), &bad).await;
        assert_eq!(status, 422, "{bad}: {problem}");
    }
    assert_eq!(world.contents(), before);
    let decided = json!({"decisions": [{"action_id": action["action_id"], "type": "approve"}]});
    let (status, closed) = world.post(&format!("{}/resolve", at(call)), &decided).await;
    assert_eq!(
        (status, &closed["status"]),
        (200, &json!("resolved")),
        "{closed}"
    );
    assert_eq!(world.until(&run, "finished").await["output"], "It is done.");
    let shown = world.get(&at(call)).await.1;
    assert_eq!(
        shown["agent"]["actions"][0]["args"],
        json!({}),
        "as it was asked"
    );
    let decision = &shown["response"]["decisions"][0];
    assert_eq!(decision["params_hash"], action["params_hash"]);
    assert_eq!(shown["response"]["user_id"], "dev");

    let (status, closed) = world
        .post(
            &format!("{}/resolve", at(words)),
            &json!({"input": {"confirm": false}}),
        )
        .await;
    assert_eq!(
        (status, &closed["status"]),
        (200, &json!("rejected")),
        "{closed}"
    );
}

#[tokio::test]
async fn lists_come_in_pages_that_meet_and_filters_leave_nothing_out() {
    let world = World::dev().await;
    let mut ids = Vec::new();
    for nth in 0..12 {
        let mut body = deploy(&format!("n{nth}"));
        if nth % 3 == 0 {
            body["type"] = "review".into();
            body["workflow_id"] = "audit".into();
        }
        let asked = raised(&world, &body).await;
        match nth % 4 {
            0 => drop(
                world
                    .post(
                        &format!("{}/resolve", at(&asked)),
                        &json!({"approved": true}),
                    )
                    .await,
            ),
            1 => drop(
                world
                    .post(&format!("{}/cancel", at(&asked)), &json!({}))
                    .await,
            ),
            _ => {}
        }
        ids.push(asked["id"].as_str().unwrap().to_owned());
    }
    // One in the other store, between them by age or not: the order is one.
    world
        .stream("/api/v1/chat/stream", &chat("c", "删除"))
        .await;
    let mut found = Vec::new();
    let mut cursor = String::new();
    loop {
        let (status, page) = world.get(&format!("{ALL}?limit=5{cursor}")).await;
        assert_eq!(status, 200, "{page}");
        let items = page["items"].as_array().unwrap();
        assert!(items.len() <= 5);
        found.extend(items.iter().map(|it| it["id"].as_str().unwrap().to_owned()));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(found.len(), 13);
    assert!(found.is_sorted());
    assert!(ids.iter().all(|id| found.contains(id)));
    let count = async |query: &str| {
        let (_, page) = world.get(&format!("{ALL}?{query}")).await;
        page["items"].as_array().unwrap().len()
    };
    assert_eq!(count("status=pending").await, 7);
    assert_eq!(count("status=resolved").await, 3);
    assert_eq!(count("status=canceled").await, 3);
    assert_eq!(count("status=timeout").await, 0);
    assert_eq!(count("type=review").await, 4);
    assert_eq!(count("workflow_id=audit&status=pending").await, 2);
    assert_eq!(count("workflow_id=approval-agent").await, 1);
    assert_eq!(count("workflow_id=nobody").await, 0);
    // A misspelt filter leaves nothing out, which nobody would notice.
    for path in [ALL, "/api/v1/runs"] {
        let (status, problem) = world.get(&format!("{path}?stauts=pending")).await;
        assert_eq!((status, &problem["code"]), (400, &json!("bad_request")));
        let said = problem["error"].as_str().unwrap();
        assert!(said.contains("`stauts`"), "{said}");
    }
}

#[tokio::test]
async fn looking_changes_nothing_and_time_closes_what_nobody_answers() {
    let world = World::dev().await;
    let mut body = deploy("a");
    body["timeout"] = 300_000_000.into();
    let asked = raised(&world, &body).await;
    let before = world.contents();
    for path in ["", "/wait?timeout=0"] {
        let (status, shown) = world.get(&format!("{}{path}", at(&asked))).await;
        assert_eq!((status, &shown), (200, &asked));
    }
    assert_eq!(world.get(ALL).await.1["items"], json!([asked]));
    assert_eq!(world.contents(), before);
    let (status, over) = world.get(&format!("{}/wait?timeout=20", at(&asked))).await;
    assert_eq!((status, &over["status"]), (200, &json!("timeout")));
    assert!(over["resolved_at"].is_string());
    let late = world
        .post(
            &format!("{}/resolve", at(&asked)),
            &json!({"approved": true}),
        )
        .await;
    assert_eq!((late.0, &late.1["code"]), (409, &json!("expired")));
}

#[tokio::test]
async fn nobody_sees_other_tenants_questions_and_agents_ask_but_never_decide() {
    let world = World::new(Access::Keys, |_| {}).await;
    let (_, ann) = world.key(PrincipalKind::User, "acme", "ann").await;
    let (_, bob) = world.key(PrincipalKind::User, "other", "bob").await;
    let (_, bot) = world.key(PrincipalKind::Agent, "acme", "bot").await;
    let send = async |key: &str, method: Method, path: &str, body: Option<Value>| {
        let request = world.request(method, path).bearer_auth(key);
        let request = match body {
            Some(body) => request
                .header("content-type", "application/json")
                .body(body.to_string()),
            None => request,
        };
        read(request.send().await.unwrap()).await
    };
    let (status, asked) = send(&bot, Method::POST, ALL, Some(deploy("a"))).await;
    assert_eq!(status, 201, "{asked}");
    let path = at(&asked);
    let yes = json!({"approved": true});
    assert_eq!(send(&bob, Method::GET, &path, None).await.0, 404);
    assert_eq!(
        send(&bob, Method::GET, &format!("{path}/wait?timeout=0"), None)
            .await
            .0,
        404
    );
    assert_eq!(
        send(&bob, Method::GET, ALL, None).await.1["items"],
        json!([])
    );
    for verb in ["resolve", "reject", "cancel"] {
        let body = if verb == "resolve" {
            yes.clone()
        } else {
            json!({})
        };
        let refused = send(&bob, Method::POST, &format!("{path}/{verb}"), Some(body)).await;
        assert_eq!(refused.0, 404, "{verb}");
    }
    let resolve = format!("{path}/resolve");
    let (status, problem) = send(&bot, Method::POST, &resolve, Some(yes.clone())).await;
    assert_eq!((status, &problem["code"]), (403, &json!("forbidden")));
    assert_eq!(
        send(&bot, Method::GET, &path, None).await.1["status"],
        "pending"
    );
    let forged = json!({"approved": true, "user_id": "boss"});
    assert_eq!(
        send(&ann, Method::POST, &resolve, Some(forged)).await.0,
        422
    );
    let own = json!({"approved": true, "user_id": "ann"});
    let (status, closed) = send(&ann, Method::POST, &resolve, Some(own)).await;
    assert_eq!(
        (status, &closed["response"]["user_id"]),
        (200, &json!("ann"))
    );
    // What it asked itself, an agent may take back; what others asked, it may not.
    let (_, own) = send(&bot, Method::POST, ALL, Some(deploy("b"))).await;
    let (_, anns) = send(&ann, Method::POST, ALL, Some(deploy("c"))).await;
    let cancel = |it: &Value| format!("{}/cancel", at(it));
    assert_eq!(
        send(&bot, Method::POST, &cancel(&anns), Some(json!({})))
            .await
            .0,
        403
    );
    assert_eq!(
        send(&bot, Method::POST, &cancel(&own), Some(json!({})))
            .await
            .0,
        200
    );
}

#[tokio::test]
async fn a_server_that_goes_sends_who_waits_elsewhere() {
    let mut world = World::dev().await;
    let asked = raised(&world, &deploy("a")).await;
    let path = format!("{}/wait?timeout=60", at(&asked));
    let polling = tokio::spawn(world.request(Method::GET, &path).send());
    let following = world
        .request(Method::GET, &path)
        .header("accept", "text/event-stream");
    let following = following.send().await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    world.stop().await;
    let (status, problem) = read(polling.await.unwrap().unwrap()).await;
    assert_eq!((status, &problem["code"]), (503, &json!("shutting_down")));
    assert!(following.text().await.unwrap().contains("event: closing"));
}

#[tokio::test]
async fn whoever_answers_at_the_last_moment_wins_or_is_told_that_it_expired() {
    let world = World::dev().await;
    let mut told = Vec::new();
    // Some questions are answered long before they expire, some long after, and most just then.
    for at_ms in [20, 300].into_iter().chain(90..125) {
        let mut body = deploy(&format!("n{at_ms}"));
        body["timeout"] = 120_000_000.into();
        let asked = raised(&world, &body).await;
        let path = format!("{}/resolve", at(&asked));
        tokio::time::sleep(Duration::from_millis(at_ms)).await;
        let yes = json!({"approved": true});
        let late = (0..8).map(|_| world.post(&path, &yes));
        for (status, problem) in futures::future::join_all(late).await {
            let code = problem["code"].as_str().unwrap_or("won").to_owned();
            assert!([200, 409].contains(&status), "{problem}");
            told.push(code);
        }
    }
    for code in ["won", "already_decided", "expired"] {
        assert!(told.iter().any(|it| it == code), "{code}: {told:?}");
    }
}

#[tokio::test]
async fn a_choice_must_be_made_where_there_is_one() {
    let world = World::dev().await;
    let mut body = deploy("a");
    body["type"] = "input".into();
    body["options"] = json!([{"id": "blue", "label": "Blue"}, {"id": "green", "label": "Green"}]);
    let asked = raised(&world, &body).await;
    let resolve = format!("{}/resolve", at(&asked));
    let (status, problem) = world.post(&resolve, &json!({})).await;
    assert_eq!((status, &problem["code"]), (422, &json!("bad_answer")));
    let error = problem["error"].as_str().unwrap();
    assert!(error.contains("one of blue, green"), "{error}");
    let (status, closed) = world.post(&resolve, &json!({"option_id": "green"})).await;
    assert_eq!(
        (status, &closed["response"]["option_id"]),
        (200, &json!("green"))
    );
}

#[tokio::test]
async fn a_key_that_is_revoked_meanwhile_waits_for_nothing() {
    let world = World::new(Access::Keys, |_| {}).await;
    let (id, ann) = world.key(PrincipalKind::User, "acme", "ann").await;
    let asked = world.posting(ALL, &deploy("a")).bearer_auth(&ann);
    let (_, asked) = read(asked.send().await.unwrap()).await;
    let path = format!("{}/wait?timeout=60", at(&asked));
    let polling = tokio::spawn(world.request(Method::GET, &path).bearer_auth(&ann).send());
    tokio::time::sleep(Duration::from_millis(200)).await;
    world.keys().revoke(&id).await.unwrap();
    let (status, problem) = read(polling.await.unwrap().unwrap()).await;
    assert_eq!((status, &problem["code"]), (401, &json!("unauthorized")));
}
