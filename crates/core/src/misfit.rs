//! How an answer does not fit its question: for people as a sentence, for programs as data.

use std::fmt;

use serde::Serialize;

use crate::{ActionId, Allowed, Ask, DecisionKind, State};

/// An answer does not fit its question. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "reason", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Misfit {
    /// There is not one decision for each action.
    #[error(
        "the interrupt asks about {} ({}), the answer has {}",
        counted(*.expected, "action"), numbered(.actions), counted(*.given, "decision")
    )]
    Count {
        /// How many decisions there must be.
        expected: usize,
        /// How many there are.
        given: usize,
        /// What is asked about, in order.
        actions: Vec<Asked>,
    },
    /// The decision is none of those that are allowed.
    #[error("{action}: `{decision}` is not allowed; allowed: {}", .action.allowed_decisions)]
    NotAllowed {
        /// What it is about.
        #[serde(flatten)]
        action: Asked,
        /// What was decided.
        decision: DecisionKind,
    },
    /// A decision names something that is not asked about.
    #[error("decision {number}: the interrupt does not ask about `{action_id}`")]
    NotAsked {
        /// Which decision of the answer, counted from 1.
        number: usize,
        /// What it names.
        action_id: ActionId,
        /// What is asked about, in order.
        actions: Vec<Asked>,
    },
    /// Two decisions name the same action.
    #[error("decision {number}: {action} is decided twice")]
    Twice {
        /// What they are about.
        #[serde(flatten)]
        action: Asked,
        /// The second of them in the answer, counted from 1.
        number: usize,
    },
    /// The action is not open any more.
    #[error("{action} is not open")]
    NotOpen {
        /// The action.
        #[serde(flatten)]
        action: Asked,
    },
    /// An edit names another tool.
    #[error(
        "{action}: an edit may not change the tool to `{named}`; keep the name, or reject the call"
    )]
    OtherTool {
        /// What it is about.
        #[serde(flatten)]
        action: Asked,
        /// The tool that the edit names.
        named: String,
    },
    /// A question's answer is none that it may get.
    #[error("{action}: `value`: {problem}")]
    Value {
        /// What it is for.
        #[serde(flatten)]
        action: Asked,
        /// What is wrong with it, and where.
        problem: String,
    },
    /// A field of a form is not filled in as it must be.
    #[error("`{name}` {problem}")]
    Field {
        /// What the form is for.
        #[serde(flatten)]
        action: Asked,
        /// The field.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Nothing can be granted with this answer.
    #[error("{action}: `grant`: {problem}")]
    Grant {
        /// What it was to be given for.
        #[serde(flatten)]
        action: Asked,
        /// Why not.
        problem: String,
    },
    /// Edited arguments do not fit the tool's schema, or its policy.
    #[error("{action}: `edited_action.args`: {problem}")]
    Arguments {
        /// What they are for.
        #[serde(flatten)]
        action: Asked,
        /// What is wrong with them, and where.
        problem: String,
    },
}

/// One thing that a question asks about, as an answer may name it. Prints as ``action 2, `refund` (act_…)``.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Asked {
    /// Its place in the question, counted from 1.
    pub position: usize,
    /// Its id.
    pub action_id: ActionId,
    /// The tool, or `model` where the question is about the model.
    pub tool: String,
    /// What may be decided.
    pub allowed_decisions: Allowed,
}

impl Asked {
    /// What stands at this place of a question, counted from 0.
    pub(crate) fn new(state: &State, at: usize, ask: &Ask) -> Self {
        Self {
            position: at + 1,
            action_id: ask.action_id,
            tool: state.asked_name(ask),
            allowed_decisions: ask.allowed.clone(),
        }
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            position,
            action_id,
            tool,
            ..
        } = self;
        write!(f, "action {position}, `{tool}` ({action_id})")
    }
}

fn numbered(actions: &[Asked]) -> String {
    let words = actions
        .iter()
        .map(|asked| format!("{}. `{}`", asked.position, asked.tool));
    words.collect::<Vec<_>>().join(", ")
}

fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
