//! An interrupt as it stands.

use std::time::Duration;

use holdpoint_core::{
    ActionId, Allowed, Cause, Choice, Digest, FramePath, InputField, InterruptId, InterruptKind,
    InterruptStatus, Preview, Prompt, RunId, Span, ThreadId, ThreadKind, Timestamp,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Response, wire};
use crate::Question;

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
    /// The run that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// Where an agent asks: more of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentAsks>,
}

/// What an agent asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AgentAsks {
    /// The conversation.
    pub thread_id: ThreadId,
    /// Why the run waits.
    pub cause: Cause,
    /// The subagents on the way to whoever asks; absent for the agent itself.
    #[serde(default, skip_serializing_if = "FramePath::is_root")]
    pub frame: FramePath,
    /// What it is about, in order. An answer decides all of them.
    pub actions: Vec<AskedAction>,
    /// The form to be filled in, where the model asks for a confirmation in plain words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<InputField>,
    /// The question it replaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supersedes: Option<InterruptId>,
    /// What has changed since that was asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<String>,
}

/// One thing that an agent asks about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AskedAction {
    /// What a decision may name.
    pub action_id: ActionId,
    /// The tool.
    pub name: String,
    /// Its arguments, as they would run.
    pub args: Value,
    /// The digest of tool, version and arguments, to which an answer is bound; absent where it is not about a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params_hash: Option<Digest>,
    /// What the person is told.
    pub description: String,
    /// What it would do, where its tool can tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<Preview>,
    /// What may be decided.
    pub allowed_decisions: Allowed,
    /// Whether what lets it run is taken by a token only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub requires_token: bool,
}

impl From<Question> for Interrupt {
    fn from(question: Question) -> Self {
        let interrupt = &question.interrupt;
        let lasts = interrupt
            .expires_at
            .map_or(Span::ZERO, |at| at.since(interrupt.asked_at));
        let prompt = prompt(&question);
        let is_over = question.status != InterruptStatus::Pending;
        let closed_at = question.closed.as_ref().map(|closed| closed.at);
        Self {
            id: interrupt.id,
            kind: interrupt.kind,
            status: question.status,
            title: prompt.title,
            description: prompt.description,
            data: Some(prompt.data).filter(|data| !data.is_null()),
            options: prompt.options,
            input_schema: prompt.input_schema,
            response: question.response(),
            created_at: interrupt.asked_at,
            // One that nobody answered in time is over from then on, whenever that is recorded.
            resolved_at: closed_at.or(interrupt.expires_at.filter(|_| is_over)),
            timeout: prompt.timeout.unwrap_or(lasts).into(),
            expires_at: interrupt.expires_at,
            checkpoint_id: prompt.checkpoint_id,
            metadata: prompt.metadata,
            run_id: Some(interrupt.run),
            agent: AgentAsks::of(&question),
            workflow_id: question.workflow,
            node_id: question.node,
        }
    }
}

/// What is asked, in the form of a question: where it is about calls, in words.
fn prompt(question: &Question) -> Prompt {
    if let Some(prompt) = question.prompt() {
        return prompt.clone();
    }
    if let Some(description) = question.restored() {
        return Prompt {
            title: "Restored from a backup".to_owned(),
            description: description.to_owned(),
            ..Prompt::default()
        };
    }
    let asked = &question.shown.value.action_requests;
    let names: Vec<&str> = asked.iter().map(|it| it.name.as_str()).collect();
    Prompt {
        title: names.join(", "),
        description: question.text.clone(),
        ..Prompt::default()
    }
}

impl AgentAsks {
    fn of(question: &Question) -> Option<Self> {
        if question.asker != ThreadKind::Agent {
            return None;
        }
        let (interrupt, shown) = (&question.interrupt, &question.shown);
        let configs = shown.value.review_configs.iter();
        let asked = shown.value.action_requests.iter().zip(configs);
        let asked = interrupt.asks.iter().zip(asked);
        let actions = asked.map(|(ask, (shown, config))| AskedAction {
            action_id: ask.action_id,
            name: shown.name.clone(),
            args: shown.args.clone(),
            params_hash: ask.subject.params_hash(),
            description: shown.description.clone(),
            preview: shown.preview.clone(),
            allowed_decisions: ask.allowed.clone(),
            requires_token: config.requires_token,
        });
        Some(Self {
            thread_id: question.key.thread,
            cause: interrupt.cause,
            frame: interrupt.frame.clone(),
            actions: actions.collect(),
            fields: shown.value.fields.clone(),
            supersedes: interrupt.supersedes,
            changes: interrupt.changes.clone(),
        })
    }
}

impl Question {
    /// What was said to it, if somebody said something.
    #[must_use]
    pub fn response(&self) -> Option<Response> {
        Response::read(self)
    }
}
