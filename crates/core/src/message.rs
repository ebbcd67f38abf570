//! The transcript's messages, as models and doors see them.

use serde::{Deserialize, Serialize};

use crate::{ActionId, Carried};

/// One message of a frame's transcript.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Message {
    /// What the user said.
    User {
        /// The text.
        content: String,
    },
    /// What the model said.
    Assistant {
        /// Its text; may be empty where it only calls tools.
        content: String,
        /// The calls it asked for, as it asked for them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCall>,
        /// What the model that said it wants to be given back with it. Nobody else is shown it.
        #[serde(skip)]
        carried: Option<Box<Carried>>,
    },
    /// What a call led to.
    Tool {
        /// The call it answers.
        tool_call_id: String,
        /// The tool's name, as the model wrote it.
        name: String,
        /// The result, the refusal or the reviewer's words.
        content: String,
        /// Whether the model should take it as a result.
        status: ToolStatus,
        /// The action, where the call became one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        action_id: Option<ActionId>,
    },
}

/// One call as the model wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The model's own id for it, unique within the turn.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments, exactly as the model wrote them: JSON text, or what it took for JSON.
    pub arguments: String,
}

/// How a tool message is to be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    /// As a result.
    Success,
    /// As a failure.
    Error,
}
