//! One tool call, from the model's wish to its outcome.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::{
    ActionId, Actor, Basis, Digest, Effect, FramePath, GrantUse, Hooks, InterruptId, Params, RunId,
    Shown, Span, ThreadId, Timestamp, ToolKind, Verdict, hex,
};

/// An action that is not settled yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Action {
    /// Its id.
    pub id: ActionId,
    /// The run it belongs to.
    pub run: RunId,
    /// The frame it belongs to.
    #[serde(default, skip_serializing_if = "FramePath::is_root")]
    pub frame: FramePath,
    /// The action whose step or compensation it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ActionId>,
    /// What it does for its parent, or for the model.
    #[serde(default, skip_serializing_if = "Role::is_call")]
    pub role: Role,
    /// The step that it is, or undoes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The model's id of the call.
    pub call_id: String,
    /// Its place among the calls of its turn.
    pub order: u32,
    /// 1, and one more with every edit. Part of the idempotency key.
    pub version: u32,
    /// The definition it was judged by, whose tool and hooks are the ones to run.
    pub definition: Digest,
    /// The tool, and everything about it that recovery needs. Fixed once it was started.
    pub tool: ToolFacts,
    /// What will be sent to it.
    pub params: Params,
    /// The digest of tool, tool version and parameters.
    pub params_hash: Digest,
    /// What the policy said when it was asked for: a floor that later policies may raise.
    pub verdict: Verdict,
    /// The grant that lets it pass without asking anybody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<GrantUse>,
    /// How often it was started.
    pub attempts: u32,
    /// Of a stepped tool: up to which attempt it got anywhere. Only attempts after that count as failures.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub progress: u32,
    /// From when on the absence of the last attempt's effect can be trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settle_at: Option<Timestamp>,
    /// What a person is shown of it beside its arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<Box<Shown>>,
    /// It is part of a call that the policy wants a token for, which may be over by now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub of_token: bool,
    /// The breakpoint before it was passed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub passed: bool,
    /// What else is known of it that a person must see before it is settled.
    #[serde(default, skip_serializing_if = "Doubt::is_none")]
    pub doubt: Doubt,
    /// How far it is.
    pub status: ActionStatus,
}

/// What an action is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Role {
    /// The model asked for it.
    #[default]
    Call,
    /// It is one step of a stepped tool.
    Step,
    /// It undoes its parent's effect.
    Compensation,
}

impl Role {
    const fn is_call(&self) -> bool {
        matches!(self, Self::Call)
    }
}

/// What is known of an action beside its status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Doubt {
    /// Nothing.
    #[default]
    None,
    /// An earlier attempt, which had been declared as not done, was done: two effects may be there.
    EarlierAttemptDone,
    /// It had been settled, and is open again because its outcome contradicts that. The run does not wait for it.
    Reopened,
}

impl Doubt {
    const fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }
}

/// What an action remembers of its tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolFacts {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What repeating the call would do.
    pub effect: Effect,
    /// How long one attempt may take.
    pub timeout: Span,
    /// How long after the deadline an effect may still appear.
    pub settle: Span,
    /// Its recovery hooks.
    #[serde(default)]
    pub hooks: Hooks,
    /// What a call of it is made of.
    #[serde(default, skip_serializing_if = "ToolKind::is_plain")]
    pub kind: ToolKind,
}

const fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// How far an action is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum ActionStatus {
    /// It waits for an interrupt: because it is asked about, or because it shares the turn with one that is.
    Held {
        /// The interrupt.
        interrupt: InterruptId,
    },
    /// It may start.
    Ready {
        /// By what right.
        warrant: Warrant,
        /// Not before this.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        not_before: Option<Timestamp>,
    },
    /// A call was made, or was about to be made when its driver died.
    Started {
        /// By what right.
        warrant: Warrant,
        /// The epoch of the driver that made it.
        epoch: u64,
        /// When the call ends, one way or the other.
        deadline: Timestamp,
    },
    /// Nobody knows whether the call took effect; the tool can be asked.
    Unknown {
        /// By what right.
        warrant: Warrant,
        /// How often the tool was asked.
        lookups: u32,
        /// Not before this.
        not_before: Timestamp,
    },
    /// The next event of the same append says what becomes of it: a question or a compensation. Never seen between appends.
    Unsettled {
        /// By what right.
        warrant: Warrant,
    },
    /// A person is asked what became of it.
    InDoubt {
        /// By what right it was started.
        warrant: Warrant,
        /// The error interrupt that asks.
        interrupt: InterruptId,
    },
    /// It has begun, and goes on when what it waits for is there.
    Waiting {
        /// By what right.
        warrant: Warrant,
        /// For what.
        on: Wait,
    },
    /// A compensation is at work; it closes together with that.
    Undoing {
        /// The compensating action.
        by: ActionId,
    },
}

/// What an action that has begun waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "for", rename_all = "snake_case")]
pub enum Wait {
    /// The end of a subagent's frame.
    Frame {
        /// Which.
        frame: FramePath,
    },
    /// An answer to a question that the tool asked.
    Answer {
        /// Which.
        interrupt: InterruptId,
    },
    /// A time.
    Until {
        /// Which.
        time: Timestamp,
    },
}

/// By what right an action may run, and for exactly what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warrant {
    /// Who or what allowed it.
    pub from: WarrantFrom,
    /// The one call it is good for.
    pub params_hash: Digest,
    /// The one tool version it is good for.
    pub tool_version: String,
    /// The plan it was given under.
    pub plan_version: u32,
}

/// Who or what allowed an action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
#[non_exhaustive]
pub enum WarrantFrom {
    /// The policy: nobody had to be asked.
    Policy,
    /// A person.
    Person {
        /// By answering this interrupt.
        interrupt: InterruptId,
        /// Who it was.
        by: Actor,
        /// When.
        at: Timestamp,
    },
    /// A person, once and for several calls.
    Grant(GrantUse),
    /// The tool's definition, which binds the compensation to the effect.
    Compensation,
}

impl Action {
    /// What it holds on to of what was shown: only what a person looked at binds a call.
    #[must_use]
    pub fn basis(&self) -> Option<Basis> {
        let by_person = matches!(
            self.warrant().map(|warrant| &warrant.from),
            Some(WarrantFrom::Person { .. })
        );
        let shown = self.shown.as_ref().filter(|_| by_person);
        shown.and_then(|shown| shown.basis)
    }

    /// Whether the policy wants a token for letting it run, or what it is part of.
    #[must_use]
    pub const fn requires_token(&self) -> bool {
        self.of_token || matches!(&self.verdict, Verdict::Ask(terms) if terms.requires_token)
    }

    /// What people call it: its tool, and of a step `TOOL.STEP`.
    #[must_use]
    pub fn shown_name(&self) -> String {
        match &self.step {
            Some(step) => format!("{}.{step}", self.tool.name),
            None => self.tool.name.clone(),
        }
    }

    /// The key under which every attempt at this version of the action is made. A compensation is made under the key of
    /// what it undoes.
    #[must_use]
    pub fn idempotency_key(&self, thread: ThreadId) -> String {
        let id = match (self.role, self.parent) {
            (Role::Compensation, Some(parent)) => parent,
            (Role::Call | Role::Step | Role::Compensation, _) => self.id,
        };
        let mut hash = Sha256::new();
        hash.update(b"holdpoint/key/1");
        hash.update(thread.as_bytes());
        hash.update(id.as_bytes());
        hash.update(self.version.to_be_bytes());
        format!("hpk_{}", hex(&hash.finalize()[..16]))
    }

    /// The right it holds, if it was ever allowed.
    #[must_use]
    pub const fn warrant(&self) -> Option<&Warrant> {
        match &self.status {
            ActionStatus::Held { .. } | ActionStatus::Undoing { .. } => None,
            ActionStatus::Ready { warrant, .. }
            | ActionStatus::Started { warrant, .. }
            | ActionStatus::Unknown { warrant, .. }
            | ActionStatus::Unsettled { warrant }
            | ActionStatus::Waiting { warrant, .. }
            | ActionStatus::InDoubt { warrant, .. } => Some(warrant),
        }
    }

    /// Whether it is a stepped tool itself: entering it has no effect, its steps have.
    #[must_use]
    pub const fn is_entered(&self) -> bool {
        matches!((self.role, self.tool.kind), (Role::Call, ToolKind::Stepped))
    }

    /// Whether a call was made whose outcome is not recorded.
    #[must_use]
    pub const fn is_in_flight(&self) -> bool {
        matches!(self.status, ActionStatus::Started { .. })
    }

    /// From when on it may start, if it is ready and must wait.
    pub(crate) const fn not_before(&self) -> Option<Timestamp> {
        match &self.status {
            ActionStatus::Ready { not_before, .. } => *not_before,
            ActionStatus::Held { .. }
            | ActionStatus::Started { .. }
            | ActionStatus::Unknown { .. }
            | ActionStatus::Unsettled { .. }
            | ActionStatus::InDoubt { .. }
            | ActionStatus::Waiting { .. }
            | ActionStatus::Undoing { .. } => None,
        }
    }

    /// When it is to be woken, if it sleeps.
    #[must_use]
    pub const fn sleeps_until(&self) -> Option<Timestamp> {
        match &self.status {
            ActionStatus::Waiting {
                on: Wait::Until { time },
                ..
            } => Some(*time),
            ActionStatus::Held { .. }
            | ActionStatus::Ready { .. }
            | ActionStatus::Started { .. }
            | ActionStatus::Unknown { .. }
            | ActionStatus::Unsettled { .. }
            | ActionStatus::InDoubt { .. }
            | ActionStatus::Waiting { .. }
            | ActionStatus::Undoing { .. } => None,
        }
    }

    /// What allows it if nobody has to be asked: the policy, or a grant.
    pub(crate) fn unasked(&self, plan_version: u32) -> Warrant {
        let from = match &self.grant {
            Some(grant) => WarrantFrom::Grant(grant.clone()),
            None => WarrantFrom::Policy,
        };
        Warrant {
            from,
            params_hash: self.params_hash,
            tool_version: self.tool.version.clone(),
            plan_version,
        }
    }
}
