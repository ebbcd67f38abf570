//! The tool by which an agent gives tasks to its subagents.

use holdpoint_core::{Definition, Digest, Effect, Hooks, Params, Runner, ToolKind, ToolSpec};
use serde_json::json;

/// What an agent's model is offered: its tools, and the one by which it gives tasks to its subagents, if it has any.
#[must_use]
pub fn offered(definition: &Definition) -> Vec<ToolSpec> {
    let mut offered = definition.tools.clone();
    offered.extend(spec(definition));
    offered
}

/// The tool of an agent that has subagents.
pub(crate) fn spec(definition: &Definition) -> Option<ToolSpec> {
    if definition.subagents.is_empty() {
        return None;
    }
    let names: Vec<&str> = definition
        .subagents
        .iter()
        .map(|subagent| subagent.definition.name.as_str())
        .collect();
    let list: Vec<String> = definition
        .subagents
        .iter()
        .map(|subagent| format!("- {}: {}", subagent.definition.name, subagent.description))
        .collect();
    let description = format!(
        "Gives a task to a subagent, which works on it alone and reports its result once. Say in `description` all that \
         it needs to know. The subagents are:\n{}",
        list.join("\n")
    );
    Some(ToolSpec {
        name: Definition::TASK.to_owned(),
        description,
        version: "1".to_owned(),
        effect: Effect::Read,
        input_schema: json!({
            "type": "object",
            "properties": {
                "description": {"type": "string"},
                "subagent_type": {"type": "string", "enum": names},
            },
            "required": ["description", "subagent_type"],
            "additionalProperties": false,
        }),
        runner: Runner::Code {
            hooks: Hooks::default(),
        },
        kind: ToolKind::Task,
        timeout: ToolSpec::DEFAULT_TIMEOUT,
        settle: ToolSpec::DEFAULT_SETTLE,
        permissions: Vec::new(),
    })
}

/// The digest of the argument schema, without the names: that another subagent comes or goes changes nothing for a task.
pub(crate) fn schema_digest() -> Digest {
    Digest::of(b"holdpoint/task/1")
}

/// A task is approved for a subagent as it is: its version is the digest of its definition.
pub(crate) fn version(definition: &Definition, params: &Params) -> Option<String> {
    let args = params.to_value();
    let name = args.get("subagent_type")?.as_str()?;
    let subagent = definition.subagent(name)?;
    let text = subagent.definition.to_canonical().ok()?;
    Some(Digest::of(text.as_bytes()).to_string())
}
