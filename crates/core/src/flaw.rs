//! What keeps a definition from meaning what it says.
//!
//! Whoever writes a definition in code gets no line numbers, but is refused what a file would be refused: above all a gate
//! that guards nothing.

use std::collections::BTreeSet;

use crate::{Breakpoints, Definition, Guardrail, McpServer, Policy, Runner, ToolSpec};

/// The longest name of an agent or a tool.
pub const MAX_NAME: usize = 128;

/// Whether agents and tools may be called so. No `/` and no `#`, which divide an address and the path to a subagent.
#[must_use]
pub fn is_name(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    (1..=MAX_NAME).contains(&text.len()) && text.bytes().all(fits)
}

/// What the agents above one have.
#[derive(Debug, Clone, Default)]
struct Above<'a> {
    tools: BTreeSet<&'a str>,
    guardrails: BTreeSet<&'a str>,
}

impl Definition {
    /// Why this definition is none; `None` if it is.
    #[must_use]
    pub fn flaw(&self) -> Option<String> {
        let nodes = [Breakpoints::MODEL].into_iter().chain(self.all_tools());
        let nodes: BTreeSet<&str> = nodes.collect();
        let Breakpoints { before, after } = &self.breakpoints;
        let nowhere = before.union(after).find(|at| !nodes.contains(at.as_str()));
        let above = Above::default();
        self.flaw_below(&above, 0).or_else(|| {
            nowhere.map(|at| format!("no tool is called `{at}`, so a run would never stop there"))
        })
    }

    /// Of an agent at this depth, below those.
    fn flaw_below<'a>(&'a self, above: &Above<'a>, depth: usize) -> Option<String> {
        let whose = |flaw: String| match depth {
            0 => flaw,
            _ => format!("the subagent `{}`: {flaw}", self.name),
        };
        let own = self.own_flaw(&above.tools, depth);
        let own = own.or_else(|| self.guardrail_flaw(&above.guardrails));
        own.map(whose).or_else(|| {
            let mut known = above.clone();
            known.tools.extend(self.own_tools());
            let guardrails = self.guardrails.keys().map(String::as_str);
            known.guardrails.extend(guardrails);
            let mut below = self.subagents.iter();
            below.find_map(|it| it.definition.flaw_below(&known, depth + 1))
        })
    }

    fn own_flaw(&self, above: &BTreeSet<&str>, depth: usize) -> Option<String> {
        if depth > Self::MAX_DEPTH {
            return Some(format!(
                "subagents are nested deeper than {}",
                Self::MAX_DEPTH
            ));
        }
        let names = self.own_tools().chain([self.name.as_str()]);
        if let Some(name) = names.into_iter().find(|name| !is_name(name)) {
            return Some(format!(
                "`{}` cannot be a name: use 1 to {MAX_NAME} letters, digits, `_`, `-` and `.`",
                name.escape_debug()
            ));
        }
        if let Some(flaw) = self.mcp_flaw() {
            return Some(flaw);
        }
        if let Some(name) = twice(self.own_tools()) {
            return Some(format!("two tools are called `{name}`"));
        }
        if let Some(name) = twice(self.subagents.iter().map(|it| it.definition.name.as_str())) {
            return Some(format!("two subagents are called `{name}`"));
        }
        if let Some(confirm) = &self.confirm {
            if depth > 0 {
                return Some("only the agent itself can have `confirm`".to_owned());
            }
            if let Some(flaw) = confirm.flaw() {
                return Some(flaw);
            }
        }
        // A policy that is inherited speaks of the tools above as well.
        let tools: BTreeSet<&str> = self.own_tools().collect();
        let mut gates = self.policy.interrupt_on.keys();
        let idle = gates.find(|gate| {
            let gate = gate.as_str();
            gate != Policy::ANY && !tools.contains(gate) && !above.contains(gate)
        });
        idle.map(|gate| format!("no tool is called `{gate}`, so its gate would guard nothing"))
    }

    fn guardrail_flaw(&self, above: &BTreeSet<&str>) -> Option<String> {
        if self.guardrails.len() + above.len() > Guardrail::MAX {
            return Some(format!(
                "more than {} guardrails look at it",
                Guardrail::MAX
            ));
        }
        let tools: BTreeSet<&str> = self.all_tools().into_iter().collect();
        self.guardrails.iter().find_map(|(name, guardrail)| {
            if !is_name(name) {
                return Some(format!(
                    "`{}` cannot be the name of a guardrail: use 1 to {MAX_NAME} letters, digits, `_`, `-` and `.`",
                    name.escape_debug()
                ));
            }
            // It would look as if the one above were replaced, which nobody can do.
            if above.contains(name.as_str()) {
                return Some(format!("an agent above has a guardrail `{name}` already"));
            }
            let mut named = guardrail.tools.iter().flatten();
            let idle = named.find(|tool| !tools.contains(tool.as_str()));
            guardrail.flaw(name).or_else(|| {
                idle.map(|tool| {
                    format!("no tool is called `{tool}`, so the guardrail `{name}` would never look at it")
                })
            })
        })
    }

    fn mcp_flaw(&self) -> Option<String> {
        let names = || self.mcp_servers.iter().map(|it| it.name.as_str());
        if let Some(name) = names().find(|name| !McpServer::is_name(name)) {
            return Some(format!(
                "`{}` cannot be the name of an MCP server: use 1 to {} letters, digits, `-` and single `_`",
                name.escape_debug(),
                McpServer::MAX_NAME
            ));
        }
        if let Some(name) = twice(names()) {
            return Some(format!("two MCP servers are called `{name}`"));
        }
        if let Some(server) = self.mcp_servers.iter().find(|it| !it.listed) {
            return Some(format!(
                "the MCP server `{}` was not asked yet for its tools",
                server.name
            ));
        }
        let unknown = |tool: &&ToolSpec| matches!(&tool.runner, Runner::Mcp { server, .. } if !names().any(|it| it == server));
        let lost = self.tools.iter().find(unknown)?;
        Some(format!(
            "the tool `{}` is of no MCP server that is named",
            lost.name
        ))
    }

    /// The tools of this agent, with the one by which it gives tasks.
    fn own_tools(&self) -> impl Iterator<Item = &str> {
        let task = (!self.subagents.is_empty()).then_some(Self::TASK);
        let tools = self.tools.iter().map(|tool| tool.name.as_str());
        tools.chain(task)
    }

    fn all_tools(&self) -> Vec<&str> {
        let below = self.subagents.iter();
        self.own_tools()
            .chain(below.flat_map(|it| it.definition.all_tools()))
            .collect()
    }
}

fn twice<'a>(names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut seen = BTreeSet::new();
    names.into_iter().find(|name| !seen.insert(*name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Effect, ToolSpec};

    fn clerk() -> Definition {
        Definition::new("clerk", "m").with_tool(ToolSpec::code("refund", Effect::Write))
    }

    fn flaw(definition: &Definition) -> String {
        definition.flaw().unwrap_or_default()
    }

    #[test]
    fn a_gate_that_guards_nothing_is_refused_wherever_it_stands() {
        assert_eq!(clerk().ask("refund").ask("*").flaw(), None);
        let guards_nothing = "no tool is called `refnud`, so its gate would guard nothing";
        assert_eq!(flaw(&clerk().ask("refnud")), guards_nothing);
        // Giving tasks is a tool only where there are subagents.
        assert!(flaw(&clerk().ask("task")).contains("`task`"));
        let below = Definition::new("filer", "m").ask("refund");
        let boss = clerk().with_subagent("files", below.clone()).ask("task");
        assert_eq!(boss.flaw(), None, "a policy may be inherited");
        let boss = clerk().with_subagent("files", below.ask("Refund"));
        let expected =
            "the subagent `filer`: no tool is called `Refund`, so its gate would guard nothing";
        assert_eq!(flaw(&boss), expected);
    }

    #[test]
    fn a_stop_that_never_comes_is_refused() {
        let filer = Definition::new("filer", "m").with_tool(ToolSpec::code("file", Effect::Read));
        let boss = clerk().with_subagent("files", filer);
        let stops = boss.clone().stop_before("model").stop_after("file");
        assert_eq!(stops.stop_after("task").flaw(), None);
        assert!(flaw(&boss.stop_before("zzz")).contains("never stop there"));
    }

    #[test]
    fn names_are_names_and_no_name_is_used_twice() {
        let cases = [
            (Definition::new("c 4/../", "m"), "cannot be a name"),
            (Definition::new("", "m"), "cannot be a name"),
            (
                clerk().with_tool(ToolSpec::code("a\nb", Effect::Read)),
                r"`a\nb` cannot",
            ),
            (
                clerk()
                    .with_tool(ToolSpec::code("task", Effect::Read))
                    .with_subagent("x", Definition::new("x", "m")),
                "two tools are called `task`",
            ),
        ];
        for (definition, expected) in cases {
            assert!(
                flaw(&definition).contains(expected),
                "{}",
                flaw(&definition)
            );
        }
        let mut twice = clerk();
        twice.tools.push(ToolSpec::code("refund", Effect::Read));
        assert_eq!(flaw(&twice), "two tools are called `refund`");
    }

    #[test]
    fn nesting_has_an_end() {
        let nest = |depth: usize| {
            let innermost = Definition::new("x", "m");
            (0..depth).fold(innermost, |below, _| {
                Definition::new("x", "m").with_subagent("deeper", below)
            })
        };
        assert_eq!(nest(Definition::MAX_DEPTH).flaw(), None);
        assert!(flaw(&nest(Definition::MAX_DEPTH + 1)).contains("nested deeper"));
    }
}
