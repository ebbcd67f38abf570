//! What an interrupt is created with.

use std::time::Duration;

use holdpoint_core::{Choice, InterruptKind, OnTimeout, Prompt, Span};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Invalid, wire};
use crate::Asking;

/// The longest name of a workflow or a node.
const MAX_NAME: usize = 256;

/// What an interrupt is created with.
///
/// Workflow and node say who asks. The same question of the same node is the same interrupt while it is pending; with a
/// [`checkpoint_id`](Self::checkpoint_id) it is so even once it is answered. A program that was restarted asks again, and
/// gets what it would have got.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterruptOptions {
    /// The workflow that asks; not empty.
    pub workflow_id: String,
    /// The node of it. It has one question pending at a time.
    #[serde(default)]
    pub node_id: String,
    /// What kind of question it is.
    #[serde(rename = "type")]
    pub kind: InterruptKind,
    /// In a few words.
    #[serde(default)]
    pub title: String,
    /// In more words.
    #[serde(default)]
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
    /// How long it stays open; [24 hours](Self::DEFAULT_TIMEOUT) where nothing is said. In JSON, nanoseconds.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "wire::nanos_option"
    )]
    pub timeout: Option<Duration>,
    /// What happens then. It is never approved.
    #[serde(default)]
    pub on_timeout: OnTimeout,
    /// The position of the asking program, to go on from.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "wire::absent_if_empty"
    )]
    pub checkpoint_id: Option<String>,
    /// What the asking program wants to keep with it.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// Whether it is canceled when the future that created it, and waits for it, is dropped. Otherwise an interrupt outlives
    /// its waiters.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bind_to_caller: bool,
}

impl InterruptOptions {
    /// How long an interrupt stays open where nothing is said.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(24 * 3_600);

    /// A question of this kind, of this node of this workflow.
    #[must_use]
    pub fn new(
        kind: InterruptKind,
        workflow_id: impl Into<String>,
        node_id: impl Into<String>,
    ) -> Self {
        Self {
            workflow_id: workflow_id.into(),
            node_id: node_id.into(),
            kind,
            title: String::new(),
            description: String::new(),
            data: None,
            options: Vec::new(),
            input_schema: None,
            timeout: None,
            on_timeout: OnTimeout::Expire,
            checkpoint_id: None,
            metadata: Map::new(),
            bind_to_caller: false,
        }
    }

    /// In a few words.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }

    /// In more words.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }

    /// What the person needs to see.
    #[must_use]
    pub fn data(mut self, data: impl Into<Value>) -> Self {
        self.data = Some(data.into());
        self
    }

    /// One more thing that they may choose.
    #[must_use]
    pub fn option(mut self, id: impl Into<String>, label: impl Into<String>) -> Self {
        self.options.push(Choice {
            id: id.into(),
            label: label.into(),
            description: String::new(),
            is_default: false,
        });
        self
    }

    /// The JSON Schema of what they may put in.
    #[must_use]
    pub fn input_schema(mut self, schema: Value) -> Self {
        self.input_schema = Some(schema);
        self
    }

    /// How long it stays open.
    #[must_use]
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// What happens then.
    #[must_use]
    pub const fn on_timeout(mut self, on_timeout: OnTimeout) -> Self {
        self.on_timeout = on_timeout;
        self
    }

    /// The position of the asking program.
    #[must_use]
    pub fn checkpoint_id(mut self, checkpoint_id: impl Into<String>) -> Self {
        self.checkpoint_id = Some(checkpoint_id.into());
        self
    }

    /// Cancels it when whoever waits in `create` is dropped.
    #[must_use]
    pub const fn bind_to_caller(mut self) -> Self {
        self.bind_to_caller = true;
        self
    }

    /// As the engine asks it.
    ///
    /// # Errors
    ///
    /// No workflow is named, or the time is none.
    pub fn into_asking(self) -> Result<Asking, Invalid> {
        if self.workflow_id.is_empty() {
            return Err(Invalid::new("`workflow_id` is empty"));
        }
        for (what, name) in [
            ("workflow_id", &self.workflow_id),
            ("node_id", &self.node_id),
        ] {
            if name.chars().count() > MAX_NAME {
                let reason = format!("`{what}` is longer than {MAX_NAME} characters");
                return Err(Invalid::new(reason));
            }
        }
        let timeout = span(self.timeout.unwrap_or(Self::DEFAULT_TIMEOUT))?;
        let prompt = Prompt {
            title: self.title,
            description: self.description,
            data: self.data.unwrap_or_default(),
            options: self.options,
            input_schema: self.input_schema,
            timeout: Some(timeout),
            checkpoint_id: self.checkpoint_id,
            metadata: self.metadata,
        };
        Ok(Asking {
            workflow: self.workflow_id,
            node: self.node_id,
            kind: self.kind,
            prompt,
            expiry: Some((timeout, self.on_timeout)),
        })
    }
}

fn span(timeout: Duration) -> Result<Span, Invalid> {
    if timeout.is_zero() {
        return Err(Invalid::new("`timeout` must be positive"));
    }
    if i64::try_from(timeout.as_nanos()).is_err() {
        return Err(Invalid::new("`timeout` is longer than 292 years"));
    }
    let micros = timeout.as_nanos().div_ceil(1_000);
    let micros = u64::try_from(micros);
    Ok(Span::from_micros(micros.unwrap_or(u64::MAX)))
}
