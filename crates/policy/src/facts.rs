//! What a policy's words may speak of.

use holdpoint_core::{Effect, Params, Principal, ToolFacts, ToolSpec};
use serde_json::{Value, json};

/// One call, as a policy sees it.
///
/// | variable | fields |
/// |---|---|
/// | `args` | the call's arguments |
/// | `tool` | `name`, `version`, `effect` (`read`, `idempotent` or `write`) |
/// | `agent` | `name`, `path` |
/// | `user` | `name`, `kind` (`user`, `service`, `agent` or `local`), `tenant`, `roles`, `permissions` |
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The call's arguments.
    pub args: &'a Params,
    /// The tool that is called.
    pub tool: Tool<'a>,
    /// The agent that calls.
    pub agent: Agent<'a>,
    /// Who asked the agent to work.
    pub user: &'a Principal,
}

/// The tool that is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tool<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its version.
    pub version: &'a str,
    /// What repeating the call would do.
    pub effect: Effect,
}

impl<'a> From<&'a ToolSpec> for Tool<'a> {
    fn from(tool: &'a ToolSpec) -> Self {
        Self {
            name: &tool.name,
            version: &tool.version,
            effect: tool.effect,
        }
    }
}

impl<'a> From<&'a ToolFacts> for Tool<'a> {
    fn from(tool: &'a ToolFacts) -> Self {
        Self {
            name: &tool.name,
            version: &tool.version,
            effect: tool.effect,
        }
    }
}

/// The agent that calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agent<'a> {
    /// Its name.
    pub name: &'a str,
    /// How it descends from the run's own agent: `researcher#1/reader#2`, and empty for that agent itself.
    pub path: &'a str,
}

/// A name that a policy's words may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Variable {
    Args,
    Tool,
    Agent,
    User,
}

impl Variable {
    pub(crate) const ALL: [Self; 4] = [Self::Args, Self::Tool, Self::Agent, Self::User];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Args => "args",
            Self::Tool => "tool",
            Self::Agent => "agent",
            Self::User => "user",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// Its fields; none if only the call knows them.
    pub(crate) const fn fields(self) -> Option<&'static [&'static str]> {
        match self {
            Self::Args => None,
            Self::Tool => Some(&["name", "version", "effect"]),
            Self::Agent => Some(&["name", "path"]),
            Self::User => Some(&["name", "kind", "tenant", "roles", "permissions"]),
        }
    }
}

impl Facts<'_> {
    pub(crate) fn value(&self, variable: Variable) -> Value {
        match variable {
            Variable::Args => self.args.to_value(),
            Variable::Tool => json!({
                "name": self.tool.name,
                "version": self.tool.version,
                "effect": self.tool.effect,
            }),
            Variable::Agent => json!({"name": self.agent.name, "path": self.agent.path}),
            Variable::User => json!({
                "name": self.user.actor.name,
                "kind": self.user.actor.kind,
                "tenant": self.user.actor.tenant,
                "roles": self.user.roles,
                "permissions": self.user.permissions,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_that_are_named_are_the_fields_that_are_there() {
        let facts = Facts {
            args: &Params::default(),
            tool: Tool {
                name: "t",
                version: "1",
                effect: Effect::Read,
            },
            agent: Agent {
                name: "a",
                path: "",
            },
            user: &Principal::local("u"),
        };
        for variable in Variable::ALL {
            let value = facts.value(variable);
            let mut there: Vec<_> = value.as_object().unwrap().keys().cloned().collect();
            let mut named = variable.fields().unwrap_or_default().to_vec();
            there.sort();
            named.sort_unstable();
            assert_eq!(there, named);
        }
    }
}
