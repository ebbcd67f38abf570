//! Conversations to ask a model about.

use holdpoint_core::{Message, Sampling, ToolCall, ToolStatus};
use holdpoint_models::{Delta, Failure, Model, Reply, Request, Scripted};

pub(crate) fn user(content: &str) -> Message {
    Message::User {
        content: content.to_owned(),
    }
}

pub(crate) fn assistant(content: &str) -> Message {
    Message::Assistant {
        content: content.to_owned(),
        tool_calls: Vec::new(),
        carried: None,
    }
}

pub(crate) fn tool(name: &str, content: &str) -> Message {
    Message::Tool {
        tool_call_id: "call".to_owned(),
        name: name.to_owned(),
        content: content.to_owned(),
        status: ToolStatus::Success,
        action_id: None,
    }
}

pub(crate) fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
    ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    }
}

/// A scenario with these rules.
pub(crate) fn scripted(rules: &str) -> Scripted {
    Scripted::parse("s.yaml", &scenario(rules)).unwrap()
}

pub(crate) fn scenario(rules: &str) -> String {
    format!("apiVersion: holdpoint/v1\nkind: Scenario\nrules:\n{rules}")
}

/// One turn, with the deltas that came.
pub(crate) async fn ask(
    model: &Scripted,
    messages: &[Message],
    attempt: u32,
) -> (Result<Reply, Failure>, Vec<String>) {
    let mut deltas = Vec::new();
    let mut keep = |delta: Delta| {
        if let Delta::Text(text) = delta {
            deltas.push(text);
        }
    };
    let reply = model
        .turn(
            Request {
                system: None,
                messages,
                tools: &[],
                sampling: &Sampling::default(),
                attempt,
            },
            &mut keep,
        )
        .await;
    (reply, deltas)
}

/// The text of a turn that must succeed.
pub(crate) async fn text_of(model: &Scripted, messages: &[Message]) -> String {
    ask(model, messages, 1).await.0.unwrap().text
}
