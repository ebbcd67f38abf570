//! What a server offers, as we keep it.

use holdpoint_core::{McpHints, McpOffer, Scrub};
use rmcp::model::Tool;
use serde_json::Value;

/// # Errors
///
/// There is a secret in its name or its schema: it would be stored with every definition.
pub(super) fn offer(tool: &Tool, scrub: &Scrub) -> Result<McpOffer, String> {
    let title = tool.title.as_deref();
    let description = tool.description.as_deref().or(title).unwrap_or_default();
    let schema = Value::Object(tool.input_schema.as_ref().clone());
    let said = format!("{}\n{schema}", tool.name);
    if scrub.clean(said.clone()) != said {
        return Err("it offers a tool with a secret in its name or schema".to_owned());
    }
    let hints = tool.annotations.as_ref();
    Ok(McpOffer {
        name: tool.name.to_string(),
        description: scrub.clean(description.to_owned()),
        input_schema: schema,
        hints: McpHints {
            read_only: hints.and_then(|it| it.read_only_hint),
            destructive: hints.and_then(|it| it.destructive_hint),
            idempotent: hints.and_then(|it| it.idempotent_hint),
        },
    })
}

/// How much of it is kept.
pub(super) fn length(offer: &McpOffer) -> usize {
    serde_json::to_vec(offer).map_or(usize::MAX, |it| it.len())
}
