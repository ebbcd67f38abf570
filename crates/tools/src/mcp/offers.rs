//! What a server offers, as we keep it.

use holdpoint_core::{McpHints, McpOffer};
use rmcp::model::Tool;
use serde_json::Value;

pub(super) fn offer(tool: &Tool) -> McpOffer {
    let title = tool.title.as_deref();
    let description = tool.description.as_deref().or(title).unwrap_or_default();
    let said = tool.annotations.as_ref();
    McpOffer {
        name: tool.name.to_string(),
        description: description.to_owned(),
        input_schema: Value::Object(tool.input_schema.as_ref().clone()),
        hints: McpHints {
            read_only: said.and_then(|it| it.read_only_hint),
            destructive: said.and_then(|it| it.destructive_hint),
            idempotent: said.and_then(|it| it.idempotent_hint),
        },
    }
}
