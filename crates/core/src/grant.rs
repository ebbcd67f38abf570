//! What a person allows once and for several calls.
//!
//! The answer is the grant: it is recorded with the approval that gives it. What is good for one thread is counted in that
//! thread's head; what is good for all threads of an agent is counted in a thread of its own, made when it is first used.

use serde::{Deserialize, Serialize};

use crate::{Actor, Digest, GrantId, Span, Timestamp};

/// What a person wants to allow, as they say it with an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantTerms {
    /// Where it is good.
    pub scope: Scope,
    /// For which calls.
    #[serde(rename = "match")]
    pub matches: Matches,
    /// For how long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in: Option<Span>,
    /// For how many calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uses: Option<u32>,
}

/// Where a grant is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// In the thread where it was given.
    Thread,
    /// In every thread of the agent.
    Agent,
}

/// Which calls a grant covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Matches {
    /// Every call of the tool.
    Tool,
    /// The tool with exactly these arguments.
    Args,
    /// Every call that may be approved: all is accepted from now on.
    All,
}

/// A grant that was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// Its id.
    pub id: GrantId,
    /// What was said.
    #[serde(flatten)]
    pub terms: GrantTerms,
    /// Who gave it.
    pub by: Actor,
    /// When.
    pub given_at: Timestamp,
    /// When it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// The call it was given for: a grant covers nothing else than calls like this.
    pub like: Like,
    /// How often it was used.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub used: u32,
    /// Whether it was taken back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub revoked: bool,
}

/// What a grant compares of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Like {
    /// The subagents on the way to whoever calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lineage: Vec<String>,
    /// The tool.
    pub tool: String,
    /// Its version.
    pub version: String,
    /// The digest of its argument schema.
    pub schema: Digest,
    /// The digest of tool, version and arguments.
    pub params_hash: Digest,
}

/// Which grant let a call pass, and who gave it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantUse {
    /// The grant.
    pub grant: GrantId,
    /// Who gave it.
    pub by: Actor,
}

const fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Grant {
    /// How many grants a thread may hold at once; they are part of its head.
    pub const MAX: usize = 16;

    /// Whether it is good for a call like this at this time.
    #[must_use]
    pub fn covers(&self, call: &Like, now: Timestamp) -> bool {
        let same_tool = || {
            let (given, asked) = (&self.like, call);
            given.lineage == asked.lineage
                && given.tool == asked.tool
                && given.version == asked.version
                && given.schema == asked.schema
        };
        let matches = match self.terms.matches {
            Matches::All => true,
            Matches::Tool => same_tool(),
            Matches::Args => same_tool() && self.like.params_hash == call.params_hash,
        };
        matches && self.is_good(now)
    }

    /// Whether it can still be used.
    #[must_use]
    pub fn is_good(&self, now: Timestamp) -> bool {
        !self.revoked
            && self.expires_at.is_none_or(|at| now < at)
            && self.terms.uses.is_none_or(|uses| self.used < uses)
    }

    /// Whether a call that it let pass may still run: it may be used up by then, but not taken back or expired.
    #[must_use]
    pub fn still_holds(&self, now: Timestamp) -> bool {
        !self.revoked && self.expires_at.is_none_or(|at| now < at)
    }
}
