//! What an event says.

use holdpoint_core::{InputField, InterruptId, RunId};
use serde::Serialize;
use serde_json::Value;

use crate::frames::InterruptState;

/// Anything but text, which goes through [`A2ui::text`](super::A2ui::text).
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum Event<'a> {
    /// What the model thinks.
    Thinking {
        /// Its words.
        content: &'a str,
    },
    /// A tool is called, or the call has ended.
    ToolCall {
        /// The call.
        id: &'a str,
        /// The tool.
        name: &'a str,
        /// Its arguments.
        #[serde(rename = "arguments")]
        args: &'a Value,
        /// How far it is.
        status: CallStatus,
    },
    /// What came of a call; follows its [`Event::ToolCall`].
    ToolResult {
        /// The call.
        id: &'a str,
        /// The tool.
        name: &'a str,
        /// What it gave.
        result: &'a str,
        /// Whether it failed.
        is_error: bool,
    },
    /// Code, whole.
    CodeBlock {
        /// The language.
        language: &'a str,
        /// The code.
        code: &'a str,
    },
    /// The question at which the chat now waits.
    Interrupt(Interrupt<'a>),
    /// Something went wrong.
    Error {
        /// For programs.
        code: &'a str,
        /// For people.
        message: &'a str,
    },
    /// The end: nothing follows.
    Done,
    /// How far it is.
    Progress {
        /// What is done now.
        step: &'a str,
        /// Which step of `total`.
        #[serde(skip_serializing_if = "Option::is_none")]
        current: Option<u64>,
        /// How many steps there are.
        #[serde(skip_serializing_if = "Option::is_none")]
        total: Option<u64>,
    },
    /// Another agent goes on.
    AgentSwitch {
        /// The agent that was at work.
        from_agent: &'a str,
        /// The agent that goes on.
        to_agent: &'a str,
    },
}

impl Event<'_> {
    /// Its name on the wire.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Thinking { .. } => "thinking",
            Self::ToolCall { .. } => "tool_call",
            Self::ToolResult { .. } => "tool_result",
            Self::CodeBlock { .. } => "code_block",
            Self::Interrupt(_) => "interrupt",
            Self::Error { .. } => "error",
            Self::Done => "done",
            Self::Progress { .. } => "progress",
            Self::AgentSwitch { .. } => "agent_switch",
        }
    }
}

/// A question, and by which ids to find it.
#[derive(Debug, Clone, Serialize)]
pub struct Interrupt<'a> {
    /// What is asked.
    pub reason: &'a str,
    /// What to fill in.
    pub fields: &'a [InputField],
    /// The durable question behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupt_id: Option<InterruptId>,
    /// Where it is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint_id: Option<&'a str>,
    /// The run that waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
}

impl<'a> From<&'a InterruptState> for Interrupt<'a> {
    fn from(state: &'a InterruptState) -> Self {
        Self {
            reason: &state.reason,
            fields: &state.fields,
            interrupt_id: state.interrupt_id,
            checkpoint_id: Some(&state.checkpoint_id),
            run_id: None,
        }
    }
}

/// How far a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    /// It goes on.
    Calling,
    /// It gave a result.
    Success,
    /// It failed.
    Error,
}
