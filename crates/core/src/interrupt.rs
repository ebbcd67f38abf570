//! A durable question, and everything an answer to it is bound to.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    ActionId, Actor, Allowed, Answer, Asked, Decided, Decision, Digest, FramePath, InputField,
    InterruptId, Misfit, Prompt, RunId, State, Timestamp, confirm::Filled,
};

/// What kind of question it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InterruptKind {
    /// May this be done?
    Approval,
    /// What should be put in here?
    Input,
    /// Is this all right?
    Review,
    /// Stopped to be looked at.
    Breakpoint,
    /// Something is in doubt that only a person can settle.
    Error,
}

impl InterruptKind {
    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Approval => "approval",
            Self::Input => "input",
            Self::Review => "review",
            Self::Breakpoint => "breakpoint",
            Self::Error => "error",
        }
    }

    /// Whether yes and no are its answers, one of which must be said.
    #[must_use]
    pub const fn wants_yes_or_no(self) -> bool {
        match self {
            Self::Approval | Self::Review => true,
            Self::Input | Self::Breakpoint | Self::Error => false,
        }
    }
}

/// Why a run waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// A person must allow an action.
    HumanApproval,
    /// A person must supply something.
    HumanInput,
    /// A person must look at something.
    Review,
    /// A breakpoint was reached.
    Breakpoint,
    /// A user paused it.
    UserPause,
    /// A tool cannot be used, or failed for good.
    ToolFailure,
    /// A provider asked to wait.
    RateLimit,
    /// A budget is used up.
    BudgetExhausted,
    /// An outside event is awaited.
    ExternalEvent,
    /// The model did not answer in time.
    ModelTimeout,
    /// The model refused to answer, failed, or could not be reached.
    ModelError,
    /// Nobody knows whether a write took effect.
    WriteUnknown,
    /// The request changed.
    RequirementChange,
    /// The system was restarted from a backup.
    SystemRestart,
}

impl Cause {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::HumanApproval,
        Self::HumanInput,
        Self::Review,
        Self::Breakpoint,
        Self::UserPause,
        Self::ToolFailure,
        Self::RateLimit,
        Self::BudgetExhausted,
        Self::ExternalEvent,
        Self::ModelTimeout,
        Self::ModelError,
        Self::WriteUnknown,
        Self::RequirementChange,
        Self::SystemRestart,
    ];

    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::HumanApproval => "human_approval",
            Self::HumanInput => "human_input",
            Self::Review => "review",
            Self::Breakpoint => "breakpoint",
            Self::UserPause => "user_pause",
            Self::ToolFailure => "tool_failure",
            Self::RateLimit => "rate_limit",
            Self::BudgetExhausted => "budget_exhausted",
            Self::ExternalEvent => "external_event",
            Self::ModelTimeout => "model_timeout",
            Self::ModelError => "model_error",
            Self::WriteUnknown => "write_unknown",
            Self::RequirementChange => "requirement_change",
            Self::SystemRestart => "system_restart",
        }
    }
}

/// What happens to an interrupt that nobody answers in time. Never an approval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnTimeout {
    /// Nothing runs, and the run ends.
    #[default]
    Expire,
    /// As if rejected; the model goes on.
    Reject,
    /// It is handed to someone else.
    Escalate,
    /// It stays open.
    Keep,
}

/// How a closed interrupt was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InterruptStatus {
    /// Nobody has answered yet.
    Pending,
    /// Answered; something of it goes on.
    Resolved,
    /// Answered; every action was rejected, or the answer says that it is not approved.
    Rejected,
    /// Nobody answered in time.
    Timeout,
    /// Withdrawn: the run was cancelled, or the question was replaced.
    Canceled,
}

impl InterruptStatus {
    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Resolved => "resolved",
            Self::Rejected => "rejected",
            Self::Timeout => "timeout",
            Self::Canceled => "canceled",
        }
    }
}

/// A pending interrupt, with the envelope that every answer to it is bound to, frozen when the question is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interrupt {
    /// Its id, unique everywhere.
    pub id: InterruptId,
    /// What kind of question it is.
    pub kind: InterruptKind,
    /// Why the run waits.
    pub cause: Cause,
    /// The run it belongs to.
    pub run: RunId,
    /// The frame it belongs to.
    #[serde(default, skip_serializing_if = "FramePath::is_root")]
    pub frame: FramePath,
    /// What is asked about, in order; at least one.
    pub asks: Vec<Ask>,
    /// The plan under which it is asked.
    pub plan_version: u32,
    /// The definition whose policy asked: the policy's version.
    pub definition: Digest,
    /// Who asked for what is to be done.
    pub requester: Actor,
    /// When it was asked.
    pub asked_at: Timestamp,
    /// When it expires, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// What happens then.
    #[serde(default, skip_serializing_if = "is_default")]
    pub on_timeout: OnTimeout,
    /// Makes this question different from every other that asks the same.
    pub nonce: String,
    /// The question that this one replaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supersedes: Option<InterruptId>,
    /// What has changed since the replaced question was asked, for a person to read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<String>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// One thing an interrupt asks about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// What an answer may name instead of relying on order: the action, or an id of its own where there is none.
    pub action_id: ActionId,
    /// What it is about.
    pub subject: Subject,
    /// What may be said.
    pub allowed: Allowed,
    /// What the person is told, where it is not the default text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// What a question is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Subject {
    /// An open action that is about to be done.
    Action {
        /// The tool's version that would run.
        tool_version: String,
        /// The digest of its argument schema.
        schema: Digest,
        /// What would run.
        params_hash: Digest,
        /// The digest of the text that was shown.
        preview: Digest,
    },
    /// An open action whose effect is in doubt.
    Effect {
        /// The attempt that left it in doubt.
        attempt: u32,
        /// What was called.
        params_hash: Digest,
    },
    /// The model of the interrupt's frame, which gave no answer.
    Model,
    /// A node that the run is about to enter, or has left.
    Node {
        /// `model`, or a tool.
        node: String,
        /// On which side of it.
        side: Side,
        /// The call that is about to be made, or was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        action: Option<ActionId>,
    },
    /// Something that a tool's own code, or a program outside, wants to know.
    Question {
        /// The tool's call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        action: Option<ActionId>,
        /// The question's name within that call.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        name: String,
        /// What is asked.
        prompt: Box<Prompt>,
    },
    /// The model's own request for a confirmation, in plain words. Its text is in the journal.
    Confirmation {
        /// The event in which the model said it; 0 where that is in the thread that this one was forked from.
        reply: u64,
        /// The digest of the whole text.
        text: Digest,
        /// Where in the text the request begins, in bytes.
        from: u32,
        /// The form that is to be filled in.
        fields: Vec<InputField>,
    },
    /// What the model of the interrupt's frame said, which guardrails hold back. Its text is in the journal.
    Output {
        /// The event in which it is held; 0 where that is in the thread that this one was forked from.
        reply: u64,
        /// The digest of the whole text.
        text: Digest,
    },
    /// A run that was found in a backup. It holds every frame, and all calls that it is to ask about anew.
    Restored {
        /// When the backup was made.
        backup: Timestamp,
        /// What was pending then, and is asked anew if the run goes on.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        asked: Vec<Interrupt>,
    },
}

impl Subject {
    /// The digest of the call that it is about, if it is about one.
    #[must_use]
    pub const fn params_hash(&self) -> Option<Digest> {
        match self {
            Self::Action { params_hash, .. } | Self::Effect { params_hash, .. } => {
                Some(*params_hash)
            }
            Self::Model
            | Self::Node { .. }
            | Self::Question { .. }
            | Self::Confirmation { .. }
            | Self::Output { .. }
            | Self::Restored { .. } => None,
        }
    }
}

/// On which side of a node a run stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// It is about to be entered.
    Before,
    /// It was left.
    After,
}

impl Interrupt {
    /// From when on it can no longer be answered.
    #[must_use]
    pub const fn due_at(&self) -> Option<Timestamp> {
        match self.on_timeout {
            OnTimeout::Expire | OnTimeout::Reject => self.expires_at,
            OnTimeout::Escalate | OnTimeout::Keep => None,
        }
    }
}

impl Interrupt {
    /// Pairs each thing asked about with the decision that `answer` gives for it. `state` knows the tools' names.
    ///
    /// # Errors
    ///
    /// The wrong number of decisions, an unknown or repeated action id, a decision that is not allowed here.
    pub fn assign(&self, answer: &Answer, state: &State) -> Result<Vec<(&Ask, Decision)>, Misfit> {
        let decisions = match answer {
            Answer::All(decision) => vec![decision.clone(); self.asks.len()],
            Answer::ByPosition(decisions) => {
                self.expect_count(decisions.len(), state)?;
                decisions.clone()
            }
            Answer::ById(decisions) => self.by_id(decisions, state)?,
        };
        for (at, (ask, decision)) in self.asks.iter().zip(&decisions).enumerate() {
            if !ask.allowed.contains(decision.kind()) {
                return Err(Misfit::NotAllowed {
                    action: Asked::new(state, at, ask),
                    decision: decision.kind(),
                });
            }
        }
        Ok(self.asks.iter().zip(decisions).collect())
    }

    fn expect_count(&self, given: usize, state: &State) -> Result<(), Misfit> {
        let expected = self.asks.len();
        if given == expected {
            return Ok(());
        }
        let actions = self.asked(state);
        Err(Misfit::Count {
            expected,
            given,
            actions,
        })
    }

    fn by_id(
        &self,
        decisions: &[(ActionId, Decision)],
        state: &State,
    ) -> Result<Vec<Decision>, Misfit> {
        for (before, (id, _)) in decisions.iter().enumerate() {
            let number = before + 1;
            let mut asks = self.asks.iter().enumerate();
            let Some((at, ask)) = asks.find(|(_, ask)| ask.action_id == *id) else {
                return Err(Misfit::NotAsked {
                    number,
                    action_id: *id,
                    actions: self.asked(state),
                });
            };
            if decisions[..before].iter().any(|(earlier, _)| earlier == id) {
                let action = Asked::new(state, at, ask);
                return Err(Misfit::Twice { action, number });
            }
        }
        self.expect_count(decisions.len(), state)?;
        let find = |ask: &Ask| {
            decisions
                .iter()
                .find(|(id, _)| *id == ask.action_id)
                .map(|(_, decision)| decision.clone())
        };
        Ok(self.asks.iter().filter_map(find).collect())
    }

    fn asked(&self, state: &State) -> Vec<Asked> {
        let asks = self.asks.iter().enumerate();
        asks.map(|(at, ask)| Asked::new(state, at, ask)).collect()
    }

    /// How an interrupt that got these decisions is closed.
    pub(crate) fn status_after(&self, decisions: &[Decided]) -> InterruptStatus {
        let refuses = |(ask, decided): (&Ask, &Decided)| match (&ask.subject, &decided.decision) {
            (Subject::Confirmation { fields, .. }, decision) => {
                let filled = Filled::new(fields, decision);
                filled.is_ok_and(|filled| filled.status() == InterruptStatus::Rejected)
            }
            (_, Decision::Reject { .. }) => true,
            // Whoever says no in an answer has said no.
            (_, Decision::Answer { value }) => value.get("approved") == Some(&Value::Bool(false)),
            (
                _,
                Decision::Approve { .. }
                | Decision::Edit { .. }
                | Decision::Respond { .. }
                | Decision::Committed { .. }
                | Decision::NotCommitted
                | Decision::Compensate,
            ) => false,
        };
        if self.asks.iter().zip(decisions).all(refuses) {
            InterruptStatus::Rejected
        } else {
            InterruptStatus::Resolved
        }
    }
}
