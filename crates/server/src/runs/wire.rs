//! What the runs API says, as JSON.

use holdpoint_core::{Artifact, Entry, Event, RunId, State, ThreadId};
use holdpoint_engine::{InterruptView, RunSummary};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{clock::rfc3339, interrupts::wire::Said};

/// A run that was begun, or told something.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct Standing {
    /// The run; absent where a fork begins without one.
    #[schema(value_type = Option<String>)]
    pub(crate) run_id: Option<RunId>,
    /// The thread it belongs to.
    #[schema(value_type = String)]
    pub(crate) thread_id: ThreadId,
    /// How it stands: `running`, `waiting`, `sleeping`, `paused`, `finished`, `failed` or `cancelled`.
    #[schema(value_type = String)]
    pub(crate) status: &'static str,
}

impl Standing {
    pub(crate) fn new(run_id: Option<RunId>, state: &State) -> Self {
        let current = state.run.as_ref().map(|run| run.id);
        let status = state.status().filter(|_| run_id == current);
        let status = status.as_ref();
        Self {
            run_id,
            thread_id: state.thread,
            // A run that another one follows is over; how it ended, `GET /runs/{id}` says.
            status: status.map_or(if run_id.is_some() { "ended" } else { "new" }, |it| {
                it.as_str()
            }),
        }
    }
}

/// A run in a line.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct Line {
    #[schema(value_type = String)]
    run_id: RunId,
    #[schema(value_type = String)]
    thread_id: ThreadId,
    agent_id: String,
    session_id: String,
    #[schema(value_type = String)]
    status: &'static str,
    /// Why it waits, or why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<String>,
    /// When it began, in RFC 3339.
    started_at: String,
}

impl From<RunSummary> for Line {
    fn from(summary: RunSummary) -> Self {
        Self {
            run_id: summary.run_id,
            thread_id: summary.thread_id,
            agent_id: summary.agent,
            session_id: summary.session,
            status: summary.status,
            cause: summary.cause,
            started_at: rfc3339(summary.started_at),
        }
    }
}

/// A run, and what it asks.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct Detail {
    #[serde(flatten)]
    pub(crate) line: Line,
    /// Whether it is being stopped.
    pub(crate) cancel_requested: bool,
    /// Whether a user paused it.
    pub(crate) pause_requested: bool,
    /// Why it failed, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    /// What the model said last, once the run is finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) output: Option<String>,
    /// What it asks, the oldest first.
    #[schema(value_type = Vec<Object>)]
    pub(crate) interrupts: Vec<InterruptView>,
}

/// A result that is kept apart.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct ArtifactView {
    /// As results and `read_file` name it: `artifact://NAME/vN`.
    address: String,
    /// Where it is had from.
    #[schema(example = "NAME")]
    name: String,
    #[schema(example = "v1")]
    version: String,
    /// How many bytes it has.
    size: u64,
    /// The digest of these bytes, `sha256:…`.
    digest: String,
}

impl ArtifactView {
    pub(crate) fn new(artifact: &Artifact) -> Self {
        let address = &artifact.address;
        Self {
            address: address.to_string(),
            name: address.name().to_owned(),
            version: format!("v{}", address.version()),
            size: artifact.size,
            digest: artifact.digest.to_string(),
        }
    }
}

/// Some of a list.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct Page<T> {
    /// What there is.
    pub(crate) items: Vec<T>,
    /// Where the next page begins; `null` at the end.
    pub(crate) next_cursor: Option<String>,
}

/// An event of the journal, as it is shown.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct EventView {
    /// Its place in the journal, and its id in a stream.
    pub(crate) seq: u64,
    /// What happened.
    #[serde(rename = "type")]
    pub(crate) name: String,
    /// When, in RFC 3339.
    pub(crate) at: String,
    /// Who did it, as `kind:name`.
    pub(crate) by: String,
    /// Whether the thread may be looked at after it: it is the last one of its append.
    pub(crate) checkpoint: bool,
    /// The chain up to here.
    pub(crate) hash: String,
    /// What else it says.
    #[schema(value_type = Object)]
    pub(crate) data: Value,
}

impl EventView {
    /// Shows an event. What binds answers to questions, and what drivers tell each other, is nobody's business.
    pub(crate) fn new(entry: &Entry) -> Self {
        let mut data = serde_json::to_value(&entry.event).unwrap_or_default();
        if let Value::Object(fields) = &mut data {
            for hidden in ["type", "nonce", "epoch", "key", "head", "carried"] {
                fields.remove(hidden);
            }
            if let Some(Value::Object(reply)) = fields.get_mut("reply") {
                reply.remove("carried");
            }
            if let Some(Value::Object(requester)) = fields.get_mut("requester") {
                for hidden in ["roles", "permissions", "credential"] {
                    requester.remove(hidden);
                }
            }
        }
        Self {
            seq: entry.seq,
            name: entry.event.name().to_owned(),
            at: rfc3339(entry.header.at),
            by: entry.header.by.to_string(),
            checkpoint: entry.header.end,
            hash: entry.hash.to_string(),
            data,
        }
    }

    /// The same for whoever follows a run: without what a model said and a person has not let pass. Whoever reviews that
    /// reads it in the question.
    pub(crate) fn followed(entry: &Entry) -> Self {
        let mut view = Self::new(entry);
        if let (Event::OutputHeld { .. }, Value::Object(fields)) = (&entry.event, &mut view.data) {
            fields.remove("reply");
        }
        view
    }
}

/// A place in a run's history that can be looked at.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct Place {
    /// By what it is named: `ckpt_…`.
    pub(crate) checkpoint_id: String,
    /// The last event before it.
    pub(crate) seq: u64,
    /// What that was.
    #[serde(rename = "type")]
    #[schema(value_type = String)]
    pub(crate) name: &'static str,
    /// When it was reached, in RFC 3339.
    pub(crate) created_at: String,
    /// How the run stood.
    #[schema(value_type = String)]
    pub(crate) status: &'static str,
    /// Whether a fork can begin there.
    pub(crate) forkable: bool,
}

/// A run to be begun.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewRun {
    /// The agent.
    #[schema(example = "approval-agent")]
    pub(crate) agent_id: String,
    /// The conversation it belongs to.
    #[schema(example = "order-1001", min_length = 1, max_length = 256)]
    pub(crate) session_id: String,
    /// What is asked of the agent.
    pub(crate) input: String,
    /// Whether a run of the session that waits for people makes way: it is cancelled in the same transaction.
    #[serde(default)]
    pub(crate) supersede: bool,
}

/// A fork to be begun.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewFork {
    /// The new conversation.
    #[schema(example = "order-1001-what-if", min_length = 1, max_length = 256)]
    pub(crate) session_id: String,
    /// Where it begins; where the run stands now if unsaid.
    #[serde(default)]
    #[schema(example = "ckpt_7")]
    pub(crate) checkpoint_id: Option<String>,
}

/// Nothing needs to be said.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nothing {}

/// An answer by a token.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ByToken {
    /// The token.
    pub(crate) resume_token: String,
    /// What is said.
    pub(crate) approval: Said,
}

/// An example of an answer, for the documentation.
pub(crate) fn answer_example() -> Value {
    json!({"decisions": [{"type": "approve"}]})
}
