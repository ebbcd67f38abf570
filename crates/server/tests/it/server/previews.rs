//! What a call would do, at every door of the server.

use holdpoint_server::Access;
use serde_json::json;

use super::support::World;

const AGENT: &str = r#"
apiVersion: holdpoint/v1
kind: Agent
metadata: {name: clerk}
spec:
  model: {primary: "scripted:clerk-scenario.yaml"}
  workspace: clerk-files
  tools:
    - {builtin: write_file}
"#;

const SCENARIO: &str = r#"
apiVersion: holdpoint/v1
kind: Scenario
rules:
  - when: {turn: 1}
    call: [{tool: write_file, args: {path: a.txt, content: "one\nzwei\n"}}]
  - say: "{result}"
"#;

/// What the call would change.
const CHANGE: &str = "-two\n+zwei\n";

#[tokio::test]
async fn whoever_is_asked_sees_what_a_call_would_do_whichever_door_they_come_through() {
    let world = World::new(Access::Dev, |config| {
        let folder = config.agents[0].parent().unwrap().to_owned();
        std::fs::create_dir(folder.join("clerk-files")).unwrap();
        std::fs::write(folder.join("clerk-files/a.txt"), "one\ntwo\n").unwrap();
        std::fs::write(folder.join("clerk-scenario.yaml"), SCENARIO).unwrap();
        std::fs::write(folder.join("clerk.yaml"), AGENT).unwrap();
        config.agents.push(folder.join("clerk.yaml"));
    })
    .await;
    let in_json = json!(CHANGE).to_string();
    let in_json = in_json.trim_matches('"');
    for path in ["/api/v1/chat/stream", "/api/v1/chat/stream?a2ui=true"] {
        let message = json!({"agent_id": "clerk", "session_id": path, "message": "write it"});
        let said = world.stream(path, &message).await;
        assert!(said.contains(in_json), "{said}");
    }
    let (status, listed) = world
        .get("/api/v1/interrupts?workflow_id=clerk&status=pending")
        .await;
    assert_eq!(status, 200, "{listed}");
    let listed = listed["items"].as_array().unwrap();
    assert_eq!(listed.len(), 2);
    for question in listed {
        let preview = &question["agent"]["actions"][0]["preview"];
        assert_eq!(preview["form"], "diff", "{question}");
        assert!(preview["body"].as_str().unwrap().contains(CHANGE));
        assert!(!question["description"].as_str().unwrap().contains(CHANGE));
    }
    // As it was when it was asked, once it is over, too.
    let id = listed[0]["id"].as_str().unwrap();
    let resume = json!({"agent_id": "clerk", "session_id": listed[0]["node_id"], "input": {"confirm": false}});
    world.stream("/api/v1/chat/resume", &resume).await;
    let (status, closed) = world.get(&format!("/api/v1/interrupts/{id}")).await;
    assert_eq!(
        (status, &closed["status"]),
        (200, &json!("rejected")),
        "{closed}"
    );
    let preview = &closed["agent"]["actions"][0]["preview"];
    assert!(
        preview["body"].as_str().unwrap().contains(CHANGE),
        "{closed}"
    );
}
