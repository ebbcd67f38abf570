//! Who may do what.

use holdpoint_core::PrincipalKind;
use holdpoint_server::Access;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use super::support::{World, read};

/// Every route with an example of each of its methods, from what the server says of itself.
async fn routes(world: &World) -> Vec<(Method, String)> {
    let (_, document) = world.get("/openapi.json").await;
    let paths = document["paths"].as_object().unwrap();
    let mut routes = Vec::new();
    for (path, item) in paths {
        for (name, method) in [("get", Method::GET), ("post", Method::POST)] {
            if item.get(name).is_some() {
                routes.push((method, path.clone()));
            }
        }
    }
    assert!(routes.len() >= 19, "{routes:?}");
    routes
}

const OPEN: [&str; 2] = ["/healthz", "/readyz"];

fn body_for(path: &str) -> Value {
    if path.ends_with("/resume") && path.contains("/runs/") {
        json!({"decisions": [{"type": "approve"}]})
    } else if path.ends_with("/fork") {
        json!({"session_id": "forked"})
    } else if path.contains("/runs/") {
        json!({})
    } else if path.ends_with("/runs") {
        json!({"agent_id": "clerk", "session_id": "s", "input": "go"})
    } else {
        json!({"agent_id": "clerk", "session_id": "s", "message": "go", "input": {"confirm": true}})
    }
}

fn request(world: &World, method: &Method, path: &str) -> RequestBuilder {
    let path = if path.ends_with("interrupt_state") {
        format!("{path}?agent_id=clerk&session_id=s")
    } else {
        path.to_owned()
    };
    match *method {
        Method::POST => world.posting(&path, &body_for(&path)),
        _ => world.request(method.clone(), &path),
    }
}

#[tokio::test]
async fn without_a_key_and_with_a_revoked_one_nothing_is_said() {
    let world = World::new(Access::Keys, |_| {}).await;
    let (id, revoked) = world.key(PrincipalKind::User, "acme", "ann").await;
    let (_, good) = world.key(PrincipalKind::User, "acme", "bob").await;
    world.keys().revoke(&id).await.unwrap();
    let other = if good.ends_with('0') { '1' } else { '0' };
    let forged = format!("{}{other}", &good[..good.len() - 1]);
    let mut all = routes(&world).await;
    all.push((Method::GET, "/".to_owned()));
    all.push((Method::GET, "/nowhere".to_owned()));
    for (method, path) in all {
        let path = path.replace("{run_id}", "run_00000000000000000000000000000001");
        if OPEN.contains(&path.as_str()) {
            assert_eq!(
                read(request(&world, &method, &path).send().await.unwrap())
                    .await
                    .0,
                200
            );
            continue;
        }
        for authorization in [
            None,
            Some("Bearer".to_owned()),
            Some("Bearer nonsense".to_owned()),
            Some(format!("Bearer {revoked}")),
            Some(format!("Bearer {forged}")),
            Some(format!("Basic {good}")),
        ] {
            let mut request = request(&world, &method, &path);
            if let Some(value) = &authorization {
                request = request.header("authorization", value);
            }
            let (code, problem) = read(request.send().await.unwrap()).await;
            assert_eq!(
                (code, &problem["code"]),
                (401, &json!("unauthorized")),
                "{method} {path} {authorization:?}"
            );
        }
    }
    for open in ["/openapi.json", "/docs"] {
        assert_eq!(world.get(open).await.0, 200, "{open}");
    }
    let page = world.request(Method::GET, "/docs").send().await.unwrap();
    let page = page.text().await.unwrap();
    for shown in [
        "<code>POST /api/v1/chat/resume</code>",
        "<code>session_id (required)</code>",
        "<code>Idempotency-Key (header)</code>",
        "too_many_pending",
    ] {
        assert!(page.contains(shown), "{shown}");
    }
}

#[tokio::test]
async fn another_tenants_run_is_answered_exactly_as_one_that_is_not_there() {
    let world = World::new(Access::Keys, |_| {}).await;
    let (_, ann) = world.key(PrincipalKind::User, "acme", "ann").await;
    let (_, eve) = world.key(PrincipalKind::User, "globex", "eve").await;
    let body = json!({"agent_id": "clerk", "session_id": "s", "input": "go"});
    let begun = world.posting("/api/v1/runs", &body).bearer_auth(&ann);
    let (code, begun) = read(begun.send().await.unwrap()).await;
    assert_eq!(code, 201, "{begun}");
    let run = begun["run_id"].as_str().unwrap();
    let absent = "run_00000000000000000000000000000001";
    for (method, path) in routes(&world).await {
        if !path.contains("{run_id}") {
            continue;
        }
        let mut answers = Vec::new();
        for id in [run, absent, "nonsense"] {
            let request = request(&world, &method, &path.replace("{run_id}", id)).bearer_auth(&eve);
            let response = request.send().await.unwrap();
            let headers: Vec<String> = response.headers().keys().map(ToString::to_string).collect();
            answers.push((headers, read(response).await));
        }
        assert_eq!(answers[0].1.0, 404, "{method} {path}");
        assert!(
            answers.iter().all(|it| *it == answers[0]),
            "{method} {path}: {answers:?}"
        );
    }
    let list = world.request(Method::GET, "/api/v1/runs").bearer_auth(&eve);
    let (_, list) = read(list.send().await.unwrap()).await;
    assert_eq!(list["items"], json!([]));
    let state = "/api/v1/chat/interrupt_state?agent_id=clerk&session_id=s";
    let state = world.request(Method::GET, state).bearer_auth(&eve);
    assert_eq!(
        read(state.send().await.unwrap()).await,
        (200, json!({"interrupted": false}))
    );
}

#[tokio::test]
async fn an_agents_key_begins_runs_and_never_decides() {
    let world = World::new(Access::Keys, |_| {}).await;
    let (_, bot) = world.key(PrincipalKind::Agent, "acme", "bot").await;
    let body = json!({"agent_id": "clerk", "session_id": "s", "input": "go"});
    let begun = world.posting("/api/v1/runs", &body).bearer_auth(&bot);
    let (code, begun) = read(begun.send().await.unwrap()).await;
    assert_eq!(code, 201);
    let run = begun["run_id"].as_str().unwrap();
    for _ in 0..500 {
        let shown = world
            .request(Method::GET, &format!("/api/v1/runs/{run}"))
            .bearer_auth(&bot);
        let (_, shown) = read(shown.send().await.unwrap()).await;
        if shown["status"] == "waiting" {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let decide = [
        (
            format!("/api/v1/runs/{run}/resume"),
            json!({"decisions": [{"type": "approve"}]}),
        ),
        (
            "/api/v1/chat/resume".to_owned(),
            json!({"agent_id": "clerk", "session_id": "s", "input": {"confirm": true}}),
        ),
    ];
    for (path, body) in decide {
        let request = world.posting(&path, &body).bearer_auth(&bot);
        let (code, problem) = read(request.send().await.unwrap()).await;
        assert_eq!(
            (code, &problem["code"]),
            (403, &json!("forbidden")),
            "{path}"
        );
    }
}

#[tokio::test]
async fn reading_changes_nothing() {
    let world = World::dev().await;
    let run = world.waiting("s").await;
    let expiring = json!({"agent_id": "approval-agent", "session_id": "s", "message": "删除"});
    world.stream("/api/v1/chat/stream", &expiring).await;
    let (_, page) = world.get("/api/v1/interrupts").await;
    let interrupt = page["items"][0]["id"].as_str().unwrap().to_owned();
    let before = world.contents();
    for (method, path) in routes(&world).await {
        if method == Method::GET {
            let path = path
                .replace("{run_id}", &run)
                .replace("{interrupt_id}", &interrupt);
            if path.ends_with("/stream") || path.ends_with("/wait") {
                drop(request(&world, &method, &path).send().await.unwrap());
                continue;
            }
            let (code, body) = read(request(&world, &method, &path).send().await.unwrap()).await;
            // There is no webhook here, so nothing of one is shown.
            let expected = if path.contains("{name}") { 404 } else { 200 };
            assert_eq!(code, expected, "{path}: {body}");
        }
    }
    assert_eq!(world.get("/").await.0, 200);
    assert_eq!(world.contents(), before);
}

#[tokio::test]
async fn a_page_of_another_site_cannot_speak_for_the_developer() {
    let world = World::dev().await;
    let body = json!({"agent_id": "clerk", "session_id": "s", "input": "go"}).to_string();
    let simple = world
        .request(Method::POST, "/api/v1/runs")
        .header("content-type", "text/plain")
        .body(body.clone());
    assert_eq!(read(simple.send().await.unwrap()).await.0, 415);
    let foreign = world
        .request(Method::POST, "/api/v1/runs")
        .header("content-type", "application/json")
        .header("origin", "https://evil.example")
        .body(body.clone());
    assert_eq!(read(foreign.send().await.unwrap()).await.0, 403);
    let rebound = world
        .request(Method::GET, "/api/v1/runs")
        .header("host", "evil.example");
    assert_eq!(read(rebound.send().await.unwrap()).await.0, 421);
    let preflight = world
        .request(Method::OPTIONS, "/api/v1/runs")
        .header("origin", "https://evil.example")
        .header("access-control-request-method", "POST");
    let response = preflight.send().await.unwrap();
    assert!(
        response
            .headers()
            .get("access-control-allow-origin")
            .is_none()
    );
}

#[tokio::test]
async fn everybody_is_let_in_only_on_the_loopback_address() {
    for address in ["0.0.0.0:0", "[::]:0"] {
        let file = holdpoint_definition::ServerFile {
            listen: address.parse().unwrap(),
            ..Default::default()
        };
        let refused = holdpoint_server::Opening::new(file, Access::Dev)
            .start()
            .await;
        assert!(
            refused.unwrap_err().to_string().contains("--dev"),
            "{address}"
        );
    }
}
