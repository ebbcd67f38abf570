//! An interrupt as it stands.

use std::time::Duration;

use holdpoint_core::{
    Choice, InterruptId, InterruptKind, InterruptStatus, Prompt, Span, Timestamp,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Response, wire};
use crate::Outside;

/// An interrupt as it stands. It is a copy: changing it changes nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Interrupt {
    /// Its id: `int_` and 32 hex digits.
    pub id: InterruptId,
    /// The workflow that asks.
    pub workflow_id: String,
    /// The node of it.
    pub node_id: String,
    /// What kind of question it is.
    #[serde(rename = "type")]
    pub kind: InterruptKind,
    /// How it stands.
    pub status: InterruptStatus,
    /// In a few words.
    pub title: String,
    /// In more words.
    pub description: String,
    /// What the person needs to see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// What they may choose from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<Choice>,
    /// The JSON Schema of what they may put in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Value>,
    /// What was said, once something was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<Response>,
    /// When it was asked.
    #[serde(with = "wire::rfc3339")]
    pub created_at: Timestamp,
    /// When it was closed, in whichever way.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "wire::rfc3339_option"
    )]
    pub resolved_at: Option<Timestamp>,
    /// How long it stays open; zero if for ever. In JSON, nanoseconds.
    #[serde(with = "wire::nanos")]
    pub timeout: Duration,
    /// When that is over.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "wire::rfc3339_option"
    )]
    pub expires_at: Option<Timestamp>,
    /// The position of the asking program, to go on from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint_id: Option<String>,
    /// What the asking program wants to keep with it.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

impl From<Outside> for Interrupt {
    fn from(outside: Outside) -> Self {
        let restored = || Prompt {
            title: "Restored from a backup".to_owned(),
            description: outside.restored().unwrap_or_default().to_owned(),
            ..Prompt::default()
        };
        let prompt = outside.prompt().cloned().unwrap_or_else(restored);
        let interrupt = &outside.interrupt;
        let lasts = interrupt
            .expires_at
            .map_or(Span::ZERO, |at| at.since(interrupt.asked_at));
        Self {
            id: interrupt.id,
            kind: interrupt.kind,
            status: outside.status,
            title: prompt.title,
            description: prompt.description,
            data: Some(prompt.data).filter(|data| !data.is_null()),
            options: prompt.options,
            input_schema: prompt.input_schema,
            response: outside.response(),
            created_at: interrupt.asked_at,
            resolved_at: outside.closed.as_ref().map(|closed| closed.at),
            timeout: prompt.timeout.unwrap_or(lasts).into(),
            expires_at: interrupt.expires_at,
            checkpoint_id: prompt.checkpoint_id,
            metadata: prompt.metadata,
            workflow_id: outside.workflow,
            node_id: outside.node,
        }
    }
}

impl Outside {
    /// What was said to it, if somebody said something.
    #[must_use]
    pub fn response(&self) -> Option<Response> {
        let closed = self.closed.as_ref()?;
        Response::read(self.interrupt.kind, closed)
    }
}
