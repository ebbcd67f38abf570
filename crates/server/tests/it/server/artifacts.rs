//! Long results over HTTP: listed, had, and nobody else's.

use holdpoint_core::PrincipalKind;
use holdpoint_server::Access;
use reqwest::{Method, Response};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::support::{World, read};

const AGENT: &str = r#"
apiVersion: holdpoint/v1
kind: Agent
metadata: {name: fetcher}
spec:
  model: {primary: "scripted:fetcher-scenario.yaml"}
  tools:
    - name: fetch
      effect: read
      http: {method: GET, url: "http://127.0.0.1:PORT/page", allow_private: [127.0.0.1]}
"#;

const SCENARIO: &str = r#"
apiVersion: holdpoint/v1
kind: Scenario
rules:
  - when: {turn: 1}
    call: [{tool: fetch, args: {}}, {tool: fetch, args: {}}]
  - say: "It is done."
"#;

/// What a browser must not show as a page of ours.
fn page() -> String {
    "<script>alert('漢')</script>\r\n".repeat(10_000)
}

/// A server whose agent fetches that page twice, and the keys of somebody who has it do so and of somebody else.
async fn world() -> (World, TempDir, String, String) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let router = axum::Router::new().route("/page", axum::routing::get(|| async { page() }));
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    let folder = tempfile::tempdir().unwrap();
    let agent = folder.path().join("fetcher.yaml");
    std::fs::write(&agent, AGENT.replace("PORT", &port.to_string())).unwrap();
    std::fs::write(folder.path().join("fetcher-scenario.yaml"), SCENARIO).unwrap();
    let world = World::new(Access::Keys, |file| file.agents.push(agent)).await;
    let (_, ann) = world.key(PrincipalKind::User, "acme", "ann").await;
    let (_, eve) = world.key(PrincipalKind::User, "globex", "eve").await;
    (world, folder, ann, eve)
}

async fn send(world: &World, key: &str, path: &str) -> Response {
    let request = world.request(Method::GET, path).bearer_auth(key);
    request.send().await.unwrap()
}

async fn get(world: &World, key: &str, path: &str) -> (u16, Value) {
    read(send(world, key, path).await).await
}

async fn fetched(world: &World, key: &str) -> String {
    let body = json!({"agent_id": "fetcher", "session_id": "s", "input": "go"});
    let begun = world.posting("/api/v1/runs", &body).bearer_auth(key);
    let (code, begun) = read(begun.send().await.unwrap()).await;
    assert_eq!(code, 201, "{begun}");
    let run = begun["run_id"].as_str().unwrap().to_owned();
    for _ in 0..500 {
        let (_, shown) = get(world, key, &format!("/api/v1/runs/{run}")).await;
        if shown["status"] == "finished" {
            return run;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("{run} does not finish");
}

#[tokio::test]
async fn a_long_result_is_listed_and_had_byte_for_byte_and_no_browser_shows_it_as_a_page() {
    let (world, _folder, ann, _) = world().await;
    let run = fetched(&world, &ann).await;
    let path = format!("/api/v1/runs/{run}/artifacts");
    let (code, list) = get(&world, &ann, &path).await;
    assert_eq!((code, &list["next_cursor"]), (200, &Value::Null), "{list}");
    let items = list["items"].as_array().unwrap();
    assert_eq!(items.len(), 2);
    let (_, state) = get(&world, &ann, &format!("/api/v1/runs/{run}/state")).await;
    let messages = state["messages"].as_array().unwrap();
    let told: Vec<_> = messages[2..]
        .iter()
        .filter_map(|it| it["content"].as_str())
        .collect();
    for item in items {
        let address = item["address"].as_str().unwrap();
        assert_eq!(item["size"], page().len());
        // The calls are made at once, and may end in another order than they were asked for.
        let content = told.iter().find(|it| it.contains(address)).unwrap();
        assert!(content.len() < 13_000, "{content}");
        let (name, version) = (item["name"].as_str(), item["version"].as_str());
        let (name, version) = (name.unwrap(), version.unwrap());
        assert_eq!(address, format!("artifact://{name}/{version}"));
        let had = send(&world, &ann, &format!("{path}/{name}/{version}")).await;
        assert_eq!(had.status(), 200);
        for (header, expected) in [
            ("content-type", "text/plain; charset=utf-8".to_owned()),
            (
                "content-disposition",
                format!("attachment; filename=\"{name}-{version}.txt\""),
            ),
            ("x-content-type-options", "nosniff".to_owned()),
            (
                "content-security-policy",
                "default-src 'none'; sandbox; frame-ancestors 'none'".to_owned(),
            ),
            ("cache-control", "no-store".to_owned()),
        ] {
            assert_eq!(had.headers()[header], expected, "{header}");
        }
        assert!(had.text().await.unwrap() == page());
    }
    let (_, checkpoint) = get(&world, &ann, &format!("/api/v1/runs/{run}/checkpoint")).await;
    for item in items {
        let name = item["name"].as_str().unwrap();
        assert_eq!(checkpoint["artifact_refs"][name], item["address"]);
    }
}

#[tokio::test]
async fn the_list_comes_in_pages_that_meet() {
    let (world, _folder, ann, _) = world().await;
    let run = fetched(&world, &ann).await;
    let path = format!("/api/v1/runs/{run}/artifacts");
    let (_, all) = get(&world, &ann, &path).await;
    let mut found = Vec::new();
    let mut cursor = String::new();
    loop {
        let (code, page) = get(&world, &ann, &format!("{path}?limit=1{cursor}")).await;
        assert_eq!(code, 200, "{page}");
        found.extend(page["items"].as_array().unwrap().clone());
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(Value::Array(found), all["items"]);
    for bad in ["limit=0", "cursor=zzz", "what=1"] {
        let (code, _) = get(&world, &ann, &format!("{path}?{bad}")).await;
        assert_eq!(code, 400, "{bad}");
    }
}

#[tokio::test]
async fn nobody_of_another_tenant_and_by_no_other_run_has_it() {
    let (world, _folder, ann, eve) = world().await;
    let run = fetched(&world, &ann).await;
    let path = format!("/api/v1/runs/{run}/artifacts");
    let (_, list) = get(&world, &ann, &path).await;
    let (name, version) = (&list["items"][0]["name"], &list["items"][0]["version"]);
    let (name, version) = (name.as_str().unwrap(), version.as_str().unwrap());
    let absent = "run_00000000000000000000000000000001";
    let own = fetched(&world, &eve).await;
    for (key, run) in [(&eve, &*run), (&eve, absent), (&ann, absent)] {
        for path in [
            "artifacts".to_owned(),
            format!("artifacts/{name}/{version}"),
        ] {
            let (code, problem) = get(&world, key, &format!("/api/v1/runs/{run}/{path}")).await;
            assert_eq!(
                (code, &problem["error"]),
                (404, &json!("there is no such run"))
            );
        }
    }
    let missing = format!("/api/v1/runs/{own}/artifacts");
    for (key, path) in [
        (&eve, format!("{missing}/{name}/{version}")),
        (&ann, format!("{path}/{name}/v2")),
        (&ann, format!("{path}/{name}/1")),
        (&ann, format!("{path}/..%2f{name}/v1")),
        (&ann, format!("{path}/none/v1")),
    ] {
        let (code, problem) = get(&world, key, &path).await;
        assert_eq!(
            (code, &problem["error"]),
            (404, &json!("there is no such artifact")),
            "{path}"
        );
    }
}

#[tokio::test]
async fn what_was_tampered_with_is_an_error() {
    let (world, _folder, ann, _) = world().await;
    let run = fetched(&world, &ann).await;
    let path = format!("/api/v1/runs/{run}/artifacts");
    let (_, list) = get(&world, &ann, &path).await;
    let conn = rusqlite::Connection::open(world.folder.path().join("main.db")).unwrap();
    let tamper =
        "UPDATE blobs SET bytes = CAST(replace(CAST(bytes AS TEXT), 'alert', 'blurt') AS BLOB)";
    conn.execute(tamper, []).unwrap();
    let item = &list["items"][0];
    let (name, version) = (item["name"].as_str(), item["version"].as_str());
    let one = format!("{path}/{}/{}", name.unwrap(), version.unwrap());
    let (code, problem) = get(&world, &ann, &one).await;
    assert_eq!(
        (code, &problem["code"]),
        (500, &json!("damaged")),
        "{problem}"
    );
}
