//! What an agent is: its model, prompt, tools, policy and limits. A run is pinned to one definition by its digest.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Digest, Policy, Span};

/// An agent's definition, complete and checked: every default filled in, every path absolute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definition {
    /// The stored format's version.
    #[serde(rename = "v")]
    pub format: u16,
    /// The agent's name.
    pub name: String,
    /// The definition's own version, as its author counts.
    pub version: String,
    /// Which model answers, for instance `scripted:/path/scenario.yaml`.
    pub model: String,
    /// What the model is told first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// The tools it may call.
    pub tools: Vec<ToolSpec>,
    /// Which calls a person must allow.
    pub policy: Policy,
    /// How gated calls of one turn are asked about.
    pub interrupt_mode: InterruptMode,
    /// Where it must stop.
    pub limits: Limits,
    /// Where it stops to be looked at.
    #[serde(default, skip_serializing_if = "Breakpoints::is_empty")]
    pub breakpoints: Breakpoints,
    /// The agents that it may give tasks to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subagents: Vec<Subagent>,
    /// Whether its subagents' policies may only tighten its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub strict: bool,
}

/// An agent that another one may give tasks to. Whatever it inherits is filled in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subagent {
    /// What the model that gives it tasks is told about it.
    pub description: String,
    /// What it is. Its name is unique among its siblings.
    pub definition: Definition,
}

/// Where a run stops to be looked at: `model` and names of tools, in every frame.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Breakpoints {
    /// Before the node is entered.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub before: BTreeSet<String>,
    /// After it was left.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub after: BTreeSet<String>,
}

impl Breakpoints {
    /// The node that is a model's turn.
    pub const MODEL: &'static str = "model";

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.before.is_empty() && self.after.is_empty()
    }
}

impl Definition {
    /// The tool by which a task is given to a subagent.
    pub const TASK: &'static str = "task";

    /// How deep subagents may be nested.
    pub const MAX_DEPTH: usize = 8;

    /// The subagent with this name.
    #[must_use]
    pub fn subagent(&self, name: &str) -> Option<&Subagent> {
        self.subagents
            .iter()
            .find(|subagent| subagent.definition.name == name)
    }

    /// The stored spelling: canonical JSON, so that equal definitions have one digest.
    ///
    /// # Errors
    ///
    /// A number in a schema that canonical JSON cannot hold.
    pub fn to_canonical(&self) -> Result<String, serde_json::Error> {
        serde_json_canonicalizer::to_string(self)
    }

    /// The tool with this name.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&ToolSpec> {
        self.tools.iter().find(|tool| tool.name == name)
    }
}

/// One tool, as the model and the policy see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Its name, unique within the agent.
    pub name: String,
    /// What the model is told about it.
    pub description: String,
    /// Its version; an approval holds for one version only.
    pub version: String,
    /// What repeating a call would do.
    pub effect: Effect,
    /// The JSON Schema of its arguments.
    pub input_schema: Value,
    /// How it is run.
    pub runner: Runner,
    /// Whether it is one effect, or takes steps.
    #[serde(default, skip_serializing_if = "ToolKind::is_plain")]
    pub kind: ToolKind,
    /// How long one call may take.
    pub timeout: Span,
    /// How long after the deadline an effect may still appear.
    pub settle: Span,
    /// What the requester must be permitted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permissions: Vec<String>,
}

impl ToolSpec {
    /// How long one call may take, unless the definition says otherwise.
    pub const DEFAULT_TIMEOUT: Span = Span::from_secs(60);
    /// How long an effect may still appear, unless the definition says otherwise.
    pub const DEFAULT_SETTLE: Span = Span::from_secs(5);

    /// The digest of the argument schema.
    #[must_use]
    pub fn schema_digest(&self) -> Digest {
        Digest::of(
            serde_json_canonicalizer::to_string(&self.input_schema)
                .unwrap_or_default()
                .as_bytes(),
        )
    }

    /// Which recovery hooks it has.
    #[must_use]
    pub const fn hooks(&self) -> Hooks {
        match &self.runner {
            Runner::Command {
                lookup, compensate, ..
            } => Hooks {
                lookup: lookup.is_some(),
                compensate: compensate.is_some(),
            },
            Runner::Code { hooks } => *hooks,
        }
    }
}

/// What a call of a tool is made of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolKind {
    /// The whole call is the effect.
    #[default]
    Plain,
    /// Entering it has no effect and can be repeated; its steps are the effects, and it may ask people in between.
    Stepped,
    /// It gives a task to a subagent.
    Task,
}

impl ToolKind {
    pub(crate) const fn is_plain(&self) -> bool {
        matches!(self, Self::Plain)
    }
}

/// How a tool is run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Runner {
    /// By a program: arguments as JSON on its standard input.
    Command {
        /// Program and arguments.
        command: Vec<String>,
        /// The folder it runs in.
        cwd: String,
        /// Asks whether a call took effect.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lookup: Option<Vec<String>>,
        /// Undoes a call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        compensate: Option<Vec<String>>,
    },
    /// By code of the embedding program, registered under the tool's name.
    Code {
        /// Which hooks that code has.
        hooks: Hooks,
    },
}

/// Which recovery hooks a tool has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hooks {
    /// It can be asked whether a call took effect.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lookup: bool,
    /// It can undo a call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub compensate: bool,
}

/// What repeating a call would do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Nothing: repeat freely.
    Read,
    /// Nothing if it carries the same key: repeat with the same key.
    Idempotent,
    /// The effect would happen again: never repeat blindly.
    Write,
}

/// How gated calls of one model turn are asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum InterruptMode {
    /// All of them in one interrupt; the turn's other calls wait for it.
    Batched,
    /// Each of them in an interrupt of its own; the turn's other calls run at once.
    PerCall,
}

/// Where a run must stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// How many model turns a run may take.
    pub turns: u32,
    /// How many tool calls a run may ask for.
    pub calls: u32,
    /// How long a run may work. Time spent waiting for a person does not count.
    pub time: Span,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            turns: 100,
            calls: 500,
            time: Span::from_secs(3_600),
        }
    }
}
