//! From a definition's tool to one that can be called.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use holdpoint_core::{McpOffer, McpServer, McpTransport, Runner, ToolKind, ToolSpec};

use crate::{
    Checker, SteppedTool, Tool, Watchdog,
    builtin::{self, Settings},
    command::CommandTool,
    http::HttpTool,
    mcp::{self, McpTool, Servers},
    stepped_command::SteppedCommand,
    stepped_tool::Stepped,
};

/// The tools that are code of the embedding program, by name, and what it says about the built-in ones.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    tools: BTreeMap<String, Registered>,
    builtins: Settings,
    servers: Servers,
    checkers: BTreeMap<String, Arc<dyn Checker>>,
}

#[derive(Debug, Clone)]
struct Registered {
    tool: Arc<dyn Tool>,
    is_stepped: bool,
}

impl Registry {
    /// A registry without tools.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a plain tool; one that was there under the same name is replaced.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, tool: impl Tool + 'static) -> Self {
        let tool = Registered {
            tool: Arc::new(tool),
            is_stepped: false,
        };
        self.tools.insert(name.into(), tool);
        self
    }

    /// Adds a tool that takes steps; one that was there under the same name is replaced.
    #[must_use]
    pub fn with_stepped(
        mut self,
        name: impl Into<String>,
        tool: impl SteppedTool + 'static,
    ) -> Self {
        let tool = Registered {
            tool: Arc::new(Stepped(tool)),
            is_stepped: true,
        };
        self.tools.insert(name.into(), tool);
        self
    }

    /// Adds a checker for guardrails; one that was there under the same name is replaced.
    #[must_use]
    pub fn with_checker(
        mut self,
        name: impl Into<String>,
        checker: impl Checker + 'static,
    ) -> Self {
        self.checkers.insert(name.into(), Arc::new(checker));
        self
    }

    /// The checker with this name.
    pub(crate) fn checker(&self, name: &str) -> Option<Arc<dyn Checker>> {
        self.checkers.get(name).cloned()
    }

    /// The names of all checkers.
    pub(crate) fn checkers(&self) -> Vec<String> {
        self.checkers.keys().cloned().collect()
    }

    /// Has `web_search` ask here: an address with `{query}` in it, which answers with JSON, a list of objects with `title`,
    /// `url` and `snippet`. It may be a private address.
    #[must_use]
    pub fn with_search(mut self, endpoint: impl Into<String>) -> Self {
        self.builtins.search = Some(endpoint.into());
        self
    }

    /// Lets `fetch_url` reach this host even where its addresses are private.
    #[must_use]
    pub fn with_private_host(mut self, host: impl Into<String>) -> Self {
        self.builtins.allow_private.push(host.into());
        self
    }

    /// Refuses workspaces that contain this file or folder, or lie in it: what decides about tools is not for tools.
    #[must_use]
    pub fn protecting(mut self, path: impl Into<PathBuf>) -> Self {
        self.builtins.protected.push(path.into());
        self
    }

    /// The tool with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.tools.get(name).map(|found| Arc::clone(&found.tool))
    }
}

/// Why a definition's tool cannot be called by this program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoSuchTool {
    /// The definition says that the tool is code, but this program has none under its name.
    #[error("the tool `{name}` is not registered; registered are: {}", list(.registered))]
    NotRegistered {
        /// The tool.
        name: String,
        /// What the registry has.
        registered: Vec<String>,
    },
    /// The definition says that the tool takes steps, but the code under its name takes none.
    #[error(
        "the definition says that the tool `{name}` takes steps, but it is registered as a plain one; register it by \
         `Registry::with_stepped`, or declare it plain"
    )]
    TakesNoSteps {
        /// The tool.
        name: String,
    },
    /// The definition says that the tool is one effect, but the code under its name takes steps.
    #[error(
        "the definition says that the tool `{name}` is plain, but it is registered as one that takes steps; declare it \
         stepped, or register it by `Registry::with`"
    )]
    TakesSteps {
        /// The tool.
        name: String,
    },
    /// One of its commands names no program.
    #[error("the `{hook}` of the tool `{name}` is empty; its first item must be a program")]
    EmptyCommand {
        /// The tool.
        name: String,
        /// `command`, `lookup` or `compensate`.
        hook: &'static str,
    },
    /// This program cannot be its own watchdog, because its `main` does not begin with [`enter`](crate::enter).
    #[error(
        "the tool `{name}` is a command, and commands need a watchdog: call `holdpoint_tools::enter()` first in `main`, \
         or name another executable that does"
    )]
    NoWatchdog {
        /// The tool.
        name: String,
    },
    /// A built-in tool cannot be had here.
    #[error("the tool `{name}` cannot be used: {reason}")]
    Unusable {
        /// The tool.
        name: String,
        /// Why, and what could be done about it.
        reason: String,
    },
    /// One of its requests can never be sent.
    #[error("the `{hook}` of the tool `{name}` cannot be sent: {reason}")]
    Unsendable {
        /// The tool.
        name: String,
        /// `http`, `lookup` or `compensate`.
        hook: &'static str,
        /// Why.
        reason: String,
    },
    /// This version does not know how to run it.
    #[error("the tool `{name}` has a runner that this version does not know")]
    UnknownRunner {
        /// The tool.
        name: String,
    },
}

pub(crate) fn list(names: &[String]) -> String {
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    }
}

/// Makes a definition's tool callable.
///
/// # Errors
///
/// Code that is not registered, or registered as another kind of tool than the definition says; a command that names no
/// program; a command without a usable watchdog; a request that can never be sent; a built-in tool whose workspace is not
/// there or not fit, that nothing is configured for, or that this kernel cannot confine.
pub fn instantiate(
    spec: &ToolSpec,
    servers: &[McpServer],
    registry: &Registry,
    watchdog: &Watchdog,
) -> Result<Arc<dyn Tool>, NoSuchTool> {
    let name = || spec.name.clone();
    match &spec.runner {
        Runner::Command {
            command,
            cwd,
            lookup,
            compensate,
        } => {
            let hooks = [
                ("command", Some(command)),
                ("lookup", lookup.as_ref()),
                ("compensate", compensate.as_ref()),
            ];
            for (hook, argv) in hooks {
                if argv.is_some_and(Vec::is_empty) {
                    return Err(NoSuchTool::EmptyCommand { name: name(), hook });
                }
            }
            if !watchdog.is_usable() {
                return Err(NoSuchTool::NoWatchdog { name: name() });
            }
            let tool = CommandTool {
                command: command.clone(),
                lookup: lookup.clone(),
                compensate: compensate.clone(),
                cwd: cwd.clone(),
                watchdog: watchdog.clone(),
            };
            Ok(match spec.kind {
                ToolKind::Stepped => Arc::new(SteppedCommand(tool)),
                ToolKind::Plain | ToolKind::Task => Arc::new(tool),
            })
        }
        Runner::Code { .. } => {
            let Some(found) = registry.tools.get(&spec.name) else {
                return Err(NoSuchTool::NotRegistered {
                    name: name(),
                    registered: registry.tools.keys().cloned().collect(),
                });
            };
            match (spec.kind, found.is_stepped) {
                (ToolKind::Stepped, false) => Err(NoSuchTool::TakesNoSteps { name: name() }),
                (ToolKind::Plain | ToolKind::Task, true) => {
                    Err(NoSuchTool::TakesSteps { name: name() })
                }
                (ToolKind::Stepped, true) | (ToolKind::Plain | ToolKind::Task, false) => {
                    Ok(Arc::clone(&found.tool))
                }
            }
        }
        Runner::Http {
            request,
            lookup,
            compensate,
        } => match HttpTool::new(spec, request, lookup.as_deref(), compensate.as_deref()) {
            Ok(tool) => Ok(Arc::new(tool)),
            Err(unsendable) => Err(NoSuchTool::Unsendable {
                name: name(),
                hook: unsendable.hook,
                reason: unsendable.reason,
            }),
        },
        Runner::Builtin { tool, workspace } => {
            if tool.runs_commands() && !watchdog.is_usable() {
                return Err(NoSuchTool::NoWatchdog { name: name() });
            }
            builtin::instantiate(
                spec,
                *tool,
                workspace.as_deref(),
                &registry.builtins,
                watchdog,
            )
            .map_err(|reason| NoSuchTool::Unusable {
                name: name(),
                reason,
            })
        }
        Runner::Mcp { server, tool } => {
            let Some(server) = servers.iter().find(|it| it.name == *server) else {
                return Err(NoSuchTool::Unusable {
                    name: name(),
                    reason: format!("no MCP server is called `{server}`"),
                });
            };
            if matches!(server.transport, McpTransport::Stdio { .. }) && !watchdog.is_usable() {
                return Err(NoSuchTool::NoWatchdog { name: name() });
            }
            Ok(Arc::new(McpTool {
                server: server.clone(),
                tool: tool.clone(),
                version: spec.version.clone(),
                effect: spec.effect,
                servers: registry.servers.clone(),
                watchdog: watchdog.clone(),
            }))
        }
        _ => Err(NoSuchTool::UnknownRunner { name: name() }),
    }
}

/// Asks a server what it offers. It is started for this, if it is a program, and ended afterwards.
///
/// # Errors
///
/// It cannot be reached, or does not say.
pub async fn offers(server: &McpServer, watchdog: &Watchdog) -> Result<Vec<McpOffer>, String> {
    if matches!(server.transport, McpTransport::Stdio { .. }) && !watchdog.is_usable() {
        let name = server.name.clone();
        return Err(NoSuchTool::NoWatchdog { name }.to_string());
    }
    mcp::offers(server, watchdog).await
}

#[cfg(test)]
mod tests {
    use holdpoint_core::{Effect, Span, ToolKind};

    use super::*;

    #[test]
    fn a_command_is_refused_where_main_does_not_begin_with_enter() {
        let spec = ToolSpec {
            name: "t".to_owned(),
            description: String::new(),
            version: "1".to_owned(),
            effect: Effect::Read,
            input_schema: true.into(),
            runner: Runner::Command {
                command: vec!["true".to_owned()],
                cwd: "/".to_owned(),
                lookup: None,
                compensate: None,
            },
            kind: ToolKind::Plain,
            timeout: Span::from_secs(1),
            settle: Span::ZERO,
            permissions: Vec::new(),
        };
        let error = instantiate(&spec, &[], &Registry::new(), &Watchdog::default()).unwrap_err();
        assert_eq!(
            error,
            NoSuchTool::NoWatchdog {
                name: "t".to_owned()
            }
        );
        assert!(
            error
                .to_string()
                .contains("call `holdpoint_tools::enter()` first in `main`")
        );
        assert!(
            instantiate(
                &spec,
                &[],
                &Registry::new(),
                &Watchdog::at("/usr/bin/holdpoint")
            )
            .is_ok()
        );
    }
}
