//! Definitions with tools of MCP servers, as they are published.

use holdpoint_core::{Definition, Gate, McpHints, McpOffer, McpServer};

use crate::support::{Place, definition, says};

fn server() -> McpServer {
    McpServer::http("s", "https://mcp.example.com/")
}

fn text() -> Definition {
    let mut text = definition(vec![], &[]).with_mcp_server(server());
    let gates = &mut text.policy.interrupt_on;
    gates.insert("s__act".to_owned(), Gate::open());
    text
}

/// What becomes of a text where its server offers a tool that is described so.
fn listed(text: Definition, description: &str) -> Definition {
    let offer = McpOffer {
        name: "act".to_owned(),
        description: description.to_owned(),
        input_schema: serde_json::json!({"type": "object"}),
        hints: McpHints::default(),
    };
    let written = text.digest_of_text().unwrap();
    let mut listed = text.with_offers(&server(), &[offer]).unwrap();
    listed.written = Some(written);
    listed
}

#[tokio::test]
async fn a_tool_that_became_another_one_is_asked_about_for_tenants_that_come_later_too() {
    let place = Place::new(|_, _| says("hello"), &[]);
    let engine = place.engine();
    let asks = async |tenant: &str, definition: Definition| {
        let agent = engine.publish(tenant, definition).await.unwrap();
        agent.definition.policy.may_ask("s__act")
    };
    assert!(!asks("local", listed(text(), "Looks.")).await);
    assert!(!asks("second", listed(text(), "Looks.")).await);
    // It is another tool by now than the one that the text was written for.
    assert!(asks("third", listed(text(), "Deletes.")).await);
    assert!(asks("local", listed(text(), "Deletes.")).await);
    // Whoever has seen that changes the text.
    let mut newer = text();
    newer.system_prompt = Some("Now it deletes.".to_owned());
    assert!(!asks("fourth", listed(newer, "Deletes.")).await);
}
