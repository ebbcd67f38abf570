//! What an agent is: its model, prompt, tools, policy and limits. A run is pinned to one definition by its digest.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Allowed, Digest, Span};

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
}

impl Definition {
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

/// Which calls a person must allow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// By tool name; `*` stands for every tool that is not named.
    pub interrupt_on: BTreeMap<String, Gate>,
    /// For tools that `interrupt_on` does not cover.
    pub default: DefaultRule,
}

/// What `interrupt_on` says of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Gate {
    /// Nobody is asked.
    Open,
    /// A person is asked.
    Ask {
        /// What they may say.
        allowed: Allowed,
        /// What they are told; the default text names tool and arguments.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
    },
}

/// What happens to a tool that `interrupt_on` does not cover.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DefaultRule {
    /// It runs.
    #[default]
    Allow,
    /// A person is asked, with the standard decisions.
    Interrupt,
    /// It does not run.
    Deny,
}

impl Policy {
    /// The name that stands for every tool that is not named.
    pub const ANY: &'static str = "*";

    /// What this policy says of a call to `tool`.
    #[must_use]
    pub fn judge(&self, tool: &str) -> Verdict {
        let ask = |allowed: &Allowed, description: &Option<String>| Verdict::Ask {
            allowed: allowed.clone(),
            description: description.clone(),
        };
        match self
            .interrupt_on
            .get(tool)
            .or_else(|| self.interrupt_on.get(Self::ANY))
        {
            Some(Gate::Open) => Verdict::Allow,
            Some(Gate::Ask {
                allowed,
                description,
            }) => ask(allowed, description),
            None => match self.default {
                DefaultRule::Allow => Verdict::Allow,
                DefaultRule::Interrupt => ask(&Allowed::standard(), &None),
                DefaultRule::Deny => Verdict::Deny,
            },
        }
    }
}

/// What the policy said of one call. Evaluated once, then data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Verdict {
    /// It may run.
    Allow,
    /// A person must allow it.
    Ask {
        /// What they may say.
        allowed: Allowed,
        /// What they are told, if not the default text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
    },
    /// It may not run.
    Deny,
}

impl Verdict {
    /// Whether this verdict forbids something that `old` allowed.
    #[must_use]
    pub fn is_tighter_than(&self, old: &Self) -> bool {
        match (self, old) {
            (Self::Allow, Self::Allow | Self::Ask { .. } | Self::Deny)
            | (Self::Ask { .. } | Self::Deny, Self::Deny) => false,
            (Self::Ask { .. } | Self::Deny, Self::Allow) | (Self::Deny, Self::Ask { .. }) => true,
            (Self::Ask { allowed: new, .. }, Self::Ask { allowed: old, .. }) => {
                old.as_slice().iter().any(|kind| !new.contains(*kind))
            }
        }
    }

    /// What both verdicts allow: the old one is a floor that a new one may raise and never lowers.
    #[must_use]
    pub fn meet(&self, old: &Self) -> Self {
        match (self, old) {
            (Self::Deny, _) | (_, Self::Deny) => Self::Deny,
            (Self::Allow, Self::Allow | Self::Ask { .. }) => old.clone(),
            (Self::Ask { .. }, Self::Allow) => self.clone(),
            (
                Self::Ask {
                    allowed: new,
                    description,
                },
                Self::Ask { allowed: old, .. },
            ) => {
                let mut both = new.as_slice().to_vec();
                both.retain(|kind| old.contains(*kind));
                // Where nothing is left that both allow, it cannot be done at all.
                Allowed::new(both).map_or(Self::Deny, |allowed| Self::Ask {
                    allowed,
                    description: description.clone(),
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DecisionKind;

    fn policy(entries: &[(&str, Gate)], default: DefaultRule) -> Policy {
        Policy {
            interrupt_on: entries
                .iter()
                .map(|(name, gate)| ((*name).to_owned(), gate.clone()))
                .collect(),
            default,
        }
    }

    fn ask(kinds: &[DecisionKind]) -> Verdict {
        Verdict::Ask {
            allowed: Allowed::new(kinds.to_vec()).unwrap(),
            description: None,
        }
    }

    #[test]
    fn a_named_gate_wins_over_the_star_and_the_star_over_the_default() {
        let gate = Gate::Ask {
            allowed: Allowed::standard(),
            description: None,
        };
        let policy = policy(&[("read", Gate::Open), ("*", gate)], DefaultRule::Deny);
        assert_eq!(policy.judge("read"), Verdict::Allow);
        assert_eq!(
            policy.judge("anything"),
            Verdict::Ask {
                allowed: Allowed::standard(),
                description: None
            }
        );
    }

    #[test]
    fn an_empty_map_leaves_it_to_the_default() {
        assert_eq!(policy(&[], DefaultRule::Allow).judge("x"), Verdict::Allow);
        assert_eq!(policy(&[], DefaultRule::Deny).judge("x"), Verdict::Deny);
        let asked = Verdict::Ask {
            allowed: Allowed::standard(),
            description: None,
        };
        assert_eq!(policy(&[], DefaultRule::Interrupt).judge("x"), asked);
    }

    #[test]
    fn tighter_means_that_something_is_no_longer_allowed() {
        use DecisionKind::{Approve, Edit, Reject};
        let (wide, narrow) = (ask(&[Approve, Edit, Reject]), ask(&[Approve, Reject]));
        assert!(narrow.is_tighter_than(&wide) && !wide.is_tighter_than(&narrow));
        assert!(wide.is_tighter_than(&Verdict::Allow) && !Verdict::Allow.is_tighter_than(&wide));
        assert!(
            Verdict::Deny.is_tighter_than(&wide) && !Verdict::Deny.is_tighter_than(&Verdict::Deny)
        );
    }
}
