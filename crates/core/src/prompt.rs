//! A question of a tool's own code, or of a program outside.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Allowed, DecisionKind, Digest, InterruptKind, Span};

/// What is asked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompt {
    /// In a few words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// In more words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// What the person needs to see.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub data: Value,
    /// What they may choose from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<Choice>,
    /// The JSON Schema of what they may put in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Value>,
    /// How long it stays open, for whoever wants to see it as it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// The position of the asking program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint_id: Option<String>,
    /// What the asking program wants to keep with it.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// Something to choose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// What an answer names.
    pub id: String,
    /// What the person reads.
    pub label: String,
    /// In more words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Which one a door may show as chosen. Nothing is ever chosen by itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_default: bool,
}

impl Prompt {
    /// The longest question, as JSON. It is part of the head, which every append writes.
    pub const MAX_LEN: usize = 16 * 1_024;

    /// Tells this question from others under the same name.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let text = serde_json_canonicalizer::to_string(self).unwrap_or_default();
        Digest::of(text.as_bytes())
    }

    /// What may be said to it.
    pub(crate) fn allowed(&self, kind: InterruptKind) -> Allowed {
        let mut kinds = vec![DecisionKind::Answer];
        // Where yes and no are answers, they can be said so.
        if matches!(kind, InterruptKind::Approval | InterruptKind::Review) {
            kinds.extend([DecisionKind::Approve, DecisionKind::Reject]);
        }
        // INVARIANT: the list is neither empty nor repetitive.
        Allowed::new(kinds).unwrap_or_else(|_| Allowed::standard())
    }

    /// How long it is.
    #[must_use]
    pub fn len(&self) -> usize {
        serde_json::to_string(self).map_or(usize::MAX, |text| text.len())
    }

    /// Whether nothing is asked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
