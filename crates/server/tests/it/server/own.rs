//! A program that serves agents of its own, beside those of files.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use holdpoint_core::{Allowed, Definition, Effect, Gate, Outcome, ToolSpec};
use holdpoint_engine::Kit;
use holdpoint_models::Scripted;
use holdpoint_server::{Access, Opening, ServerFile, StartError};
use holdpoint_tools::function;
use reqwest::Client;
use serde_json::{Value, json};
use tempfile::TempDir;

const SCENARIO: &str = r#"
apiVersion: holdpoint/v1
kind: Scenario
rules:
  - when: {turn: 1}
    call: [{tool: refund, args: {}}]
  - say: Done
"#;

fn agent(name: &str) -> String {
    format!(
        "apiVersion: holdpoint/v1\nkind: Agent\nmetadata: {{name: {name}}}\n\
         spec:\n  model: {{primary: 'scripted:scenario.yaml'}}\n"
    )
}

fn opening(folder: &TempDir, paid: &Arc<AtomicUsize>) -> Opening {
    let path = folder.path();
    std::fs::write(path.join("scenario.yaml"), SCENARIO).unwrap();
    let file = path.join("agent.yaml");
    if !file.exists() {
        std::fs::write(&file, agent("other")).unwrap();
    }
    let paid = Arc::clone(paid);
    let refund = function(move |_, _| {
        paid.fetch_add(1, Ordering::Relaxed);
        async { Outcome::done("paid") }
    });
    let model = Scripted::parse("scenario", SCENARIO).unwrap();
    let mut gate = Gate::ask(Allowed::standard());
    gate.terms.description = Some("Somebody wants money.".to_owned());
    let clerk = Definition::new("clerk", "own")
        .with_tool(ToolSpec::code("refund", Effect::Write))
        .gate("refund", gate);
    let configuration = ServerFile {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        store: format!("sqlite:{}", path.join("runs.db").display()),
        agents: vec![file],
        ..ServerFile::default()
    };
    Opening::new(configuration, Access::Dev)
        .with_kit(
            Kit::new()
                .with_tool("refund", refund)
                .with_model("own", model),
        )
        .with_agent(clerk)
}

async fn names(base: &str) -> Vec<String> {
    let agents = reqwest::get(format!("{base}/agents")).await.unwrap();
    let agents: Value = agents.json().await.unwrap();
    let items = agents["items"].as_array().unwrap().iter();
    items
        .map(|it| it["agent_id"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn a_program_serves_its_own_agent_and_it_stays_when_files_change() {
    let folder = tempfile::tempdir().unwrap();
    let paid = Arc::new(AtomicUsize::new(0));
    let server = opening(&folder, &paid).start().await.unwrap();
    let base = format!("http://{}/api/v1", server.address());
    tokio::spawn(server.run(std::future::pending()));
    assert_eq!(names(&base).await, ["clerk", "other"]);

    std::fs::write(folder.path().join("agent.yaml"), agent("another")).unwrap();
    let began = tokio::time::Instant::now();
    while names(&base).await != ["another", "clerk"] {
        assert!(began.elapsed() < Duration::from_secs(30));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    let client = Client::builder().no_proxy().build().unwrap();
    let say = async |path: &str, body: Value| {
        let answer = client
            .post(format!("{base}/chat/{path}"))
            .json(&body)
            .send();
        answer.await.unwrap().text().await.unwrap()
    };
    let message = json!({"agent_id": "clerk", "session_id": "s", "message": "refund it"});
    let asked = say("stream", message).await;
    // What an author says about a call stands beside the call, and not for it.
    let reason = r#""reason":"Somebody wants money.\n\nTool: refund\nArgs: {}""#;
    assert!(asked.contains(reason), "{asked}");
    assert_eq!(paid.load(Ordering::Relaxed), 0);
    let answer = json!({"agent_id": "clerk", "session_id": "s", "input": {"confirm": true}});
    assert_eq!(
        say("resume", answer).await,
        "data: Done\n\ndata: [DONE]\n\n"
    );
    assert_eq!(paid.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_file_cannot_take_the_place_of_a_programs_own_agent() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("agent.yaml"), agent("clerk")).unwrap();
    let refused = opening(&folder, &Arc::default()).start().await;
    let Err(StartError::Unsafe(reason)) = refused else {
        panic!("{refused:?}");
    };
    let file = folder.path().join("agent.yaml");
    let expected = format!(
        "two agents are called `clerk`: in the program itself and in `{}`",
        file.display()
    );
    assert_eq!(reason, expected);
}
