//! What guardrails hold back, at every door of the server: nobody hears it, and whoever reviews it sees all of it.

use holdpoint_server::Access;
use reqwest::Method;
use serde_json::{Value, json};

use super::{
    pages::{Browser, link},
    support::World,
};

const AGENT: &str = r#"
apiVersion: holdpoint/v1
kind: Agent
metadata: {name: teller}
spec:
  model: {primary: "scripted:teller-scenario.yaml"}
  guardrails:
    no_cards: {keywords: ["4111"], on: [output]}
"#;

const SCENARIO: &str = r#"
apiVersion: holdpoint/v1
kind: Scenario
rules:
  - when: {user: "held your last answer back"}
    say: "I cannot tell."
  - chunks: ["Your card ", "is <b>4111", "</b>."]
"#;

const SAID: &str = "Your card is <b>4111</b>.";

async fn world() -> World {
    World::new(Access::Dev, |config| {
        let folder = config.agents[0].parent().unwrap().to_owned();
        std::fs::write(folder.join("teller-scenario.yaml"), SCENARIO).unwrap();
        let free = AGENT
            .replace("teller}", "free}")
            .replace("4111", "nothing like it");
        for (name, text) in [("teller.yaml", AGENT), ("free.yaml", &free)] {
            std::fs::write(folder.join(name), text).unwrap();
            config.agents.push(folder.join(name));
        }
        let open = AGENT.replace("teller}", "open}");
        let (open, _) = open.split_once("  guardrails:").unwrap();
        std::fs::write(folder.join("open.yaml"), open).unwrap();
        config.agents.push(folder.join("open.yaml"));
    })
    .await
}

fn message(agent: &str, session: &str) -> Value {
    json!({"agent_id": agent, "session_id": session, "message": "my card?"})
}

#[tokio::test]
async fn nothing_of_it_is_in_any_stream_before_a_person_lets_it_be_said() {
    let world = world().await;
    for path in ["/api/v1/chat/stream", "/api/v1/chat/stream?a2ui=true"] {
        // The same without a guardrail streams it word by word; with one that finds nothing, once it is committed.
        for agent in ["open", "free"] {
            let said = world.stream(path, &message(agent, path)).await;
            assert!(said.contains("4111"), "{said}");
        }
        let said = world.stream(path, &message("teller", path)).await;
        // Whoever chats is told why, and not what.
        assert!(said.contains("Guardrail `no_cards`"), "{said}");
        assert!(!said.contains("Your card"), "{said}");
        let resume = path.replace("/stream", "/resume");
        let decided = |decision: &str| json!({"agent_id": "teller", "session_id": path, "input": {"decision": decision}});
        let (status, refused) = world.post(&resume, &decided("approve")).await;
        assert_eq!(
            (status, &refused["code"]),
            (422, &json!("misfit")),
            "{refused}"
        );
        assert!(!refused.to_string().contains("Your card"), "{refused}");
        let said = world.stream(&resume, &decided("reject")).await;
        assert!(
            said.contains("I cannot tell.") && !said.contains("Your card"),
            "{said}"
        );
    }
}

async fn started(world: &World, agent: &str, session: &str) -> String {
    let body = json!({"agent_id": agent, "session_id": session, "input": "my card?"});
    let (status, begun) = world.post("/api/v1/runs", &body).await;
    assert_eq!(status, 201, "{begun}");
    begun["run_id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn who_follows_the_run_sees_that_it_is_held_and_who_asks_for_the_question_sees_what() {
    let world = world().await;
    let run = started(&world, "teller", "a").await;
    let shown = world.until(&run, "waiting").await;
    assert_eq!(shown["cause"], "review");
    assert!(!shown["messages"].to_string().contains("4111"));
    let question = &shown["interrupts"][0];
    assert_eq!(question["kind"], "review");
    let request = &question["value"]["action_requests"][0];
    assert_eq!(request["name"], "output");
    assert_eq!(
        request["description"],
        "Guardrail `no_cards`: it says `4111`"
    );
    assert_eq!(request["preview"]["body"], SAID);
    let id = question["id"].as_str().unwrap();
    let (status, alone) = world.get(&format!("/api/v1/interrupts/{id}")).await;
    assert_eq!(status, 200);
    assert_eq!(alone["agent"]["actions"][0]["preview"]["body"], SAID);
    let (_, listed) = world.get("/api/v1/interrupts?status=pending").await;
    assert!(listed.to_string().contains("4111</b>"), "{listed}");
    let stream = world.request(Method::GET, &format!("/api/v1/runs/{run}/stream"));
    let reading = tokio::spawn(stream.send().await.unwrap().text());
    let body = json!({"decisions": [{"type": "reject", "message": "no numbers"}]});
    let (status, answered) = world
        .post(&format!("/api/v1/runs/{run}/resume"), &body)
        .await;
    assert_eq!(status, 200, "{answered}");
    world.until(&run, "finished").await;
    let seen = reading.await.unwrap().unwrap();
    assert!(
        seen.contains("event: output_held") && seen.contains("I cannot tell."),
        "{seen}"
    );
    assert!(
        !seen.contains("4111</b>") && !seen.contains("card is"),
        "{seen}"
    );
    // Nor is it in the question any more.
    let (_, closed) = world.get(&format!("/api/v1/interrupts/{id}")).await;
    assert_eq!(closed["status"], "rejected", "{closed}");
    assert!(!closed.to_string().contains("card is"), "{closed}");
    // It is in the journal all the same, for whoever looks into what happened.
    let (_, trace) = world.get(&format!("/api/v1/runs/{run}/trace")).await;
    assert!(trace.to_string().contains("4111"), "{trace}");
}

#[tokio::test]
async fn the_page_of_a_link_shows_all_of_it_and_says_what_a_person_writes_instead() {
    let world = world().await;
    let browser = Browser::new(&world);
    for (session, pressed, output) in [
        ("a", vec![("d0", "approve")], SAID),
        (
            "b",
            vec![("d0", "respond"), ("m0", "Ask at the desk.")],
            "Ask at the desk.",
        ),
        (
            "c",
            vec![("d0", "reject"), ("m0", "no numbers")],
            "I cannot tell.",
        ),
    ] {
        let run = started(&world, "teller", session).await;
        let shown = world.until(&run, "waiting").await;
        let id = shown["interrupts"][0]["id"].as_str().unwrap();
        let page = browser.open(&link(&world, id).await).await;
        assert!(
            page.has("Held back") && page.has("Guardrail `no_cards`"),
            "{}",
            page.html
        );
        assert!(
            page.has("Your card is &lt;b&gt;4111&lt;/b&gt;."),
            "{}",
            page.html
        );
        assert!(!page.has("<b>4111"), "{}", page.html);
        let decided = browser.press(&page, &pressed).await;
        assert_eq!(decided.status, 303, "{}", decided.html);
        let done = world.until(&run, "finished").await;
        assert_eq!(done["output"], output);
    }
}
