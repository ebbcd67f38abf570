//! What an agent is: its model, prompt, tools, policy and limits. A run is pinned to one definition by its digest.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    Allowed, Builtin, Confirmation, ContextRule, Digest, FIRST_FORMAT, FORMAT, Gate, Guardrail,
    HttpRequest, McpServer, Policy, Ruling, SECOND_FORMAT, Span,
};

/// An agent's definition, complete and checked: every default filled in, every path absolute.
///
/// ```
/// use holdpoint_core::{Definition, Effect, ToolSpec};
/// let clerk = Definition::new("clerk", "scripted:/srv/clerk.yaml")
///     .with_prompt("You pay money back.")
///     .with_tool(ToolSpec::code("get_order", Effect::Read))
///     .with_tool(ToolSpec::code("refund", Effect::Write).with_description("Pays an order back."))
///     .ask("refund");
/// assert!(clerk.policy.may_ask("refund") && !clerk.policy.may_ask("get_order"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definition {
    /// The stored format's version.
    #[serde(rename = "v")]
    pub format: u16,
    /// The agent's name.
    pub name: String,
    /// The definition's own version, as its author counts.
    pub version: String,
    /// Which model answers, for instance `scripted:/path/scenario.yaml` or `openai:gpt-4o`. Where a provider is found, and by
    /// which key, is not part of a definition.
    pub model: String,
    /// Which models answer where that one cannot, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallback: Vec<String>,
    /// How it is asked.
    #[serde(default, skip_serializing_if = "Sampling::is_unsaid")]
    pub sampling: Sampling,
    /// How much of a long conversation it is given.
    #[serde(default, skip_serializing_if = "ContextRule::is_unsaid")]
    pub context: ContextRule,
    /// What the model is told first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// The tools it may call.
    pub tools: Vec<ToolSpec>,
    /// The servers of the Model Context Protocol that it has tools of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mcp_servers: Vec<McpServer>,
    /// The digest of what was written, before servers were asked what they offer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<Digest>,
    /// Which calls a person must allow.
    pub policy: Policy,
    /// How gated calls of one turn are asked about.
    pub interrupt_mode: InterruptMode,
    /// Where it must stop.
    pub limits: Limits,
    /// Where it stops to be looked at.
    #[serde(default, skip_serializing_if = "Breakpoints::is_empty")]
    pub breakpoints: Breakpoints,
    /// The agents that it may give tasks to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subagents: Vec<Subagent>,
    /// Whether its subagents' policies may only tighten its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub strict: bool,
    /// How it recognises that its model asks for a confirmation in plain words. Only the agent itself has one: what a
    /// subagent says is said to the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm: Option<Confirmation>,
    /// What looks at its calls and its words, by name. Those of the agents above look at a subagent's as well.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub guardrails: BTreeMap<String, Guardrail>,
}

/// How a model is asked. What is unsaid is as its provider has it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sampling {
    /// How many tokens it may write in a turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// How freely it chooses its words, in thousandths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature_milli: Option<u16>,
    /// How much it thinks before it answers, in its provider's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
}

impl Sampling {
    fn is_unsaid(&self) -> bool {
        *self == Self::default()
    }
}

/// An agent that another one may give tasks to. Whatever it inherits is filled in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subagent {
    /// What the model that gives it tasks is told about it.
    pub description: String,
    /// What it is. Its name is unique among its siblings.
    pub definition: Definition,
}

/// Where a run stops to be looked at: `model` and names of tools, in every frame.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Breakpoints {
    /// Before the node is entered.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub before: BTreeSet<String>,
    /// After it was left.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub after: BTreeSet<String>,
}

impl Breakpoints {
    /// The node that is a model's turn.
    pub const MODEL: &'static str = "model";

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.before.is_empty() && self.after.is_empty()
    }
}

/// Building one in code.
impl Definition {
    /// An agent without tools, with this model, in which nobody is asked.
    #[must_use]
    pub fn new(name: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            format: FIRST_FORMAT,
            name: name.into(),
            version: "1".to_owned(),
            model: model.into(),
            fallback: Vec::new(),
            sampling: Sampling::default(),
            context: ContextRule::default(),
            system_prompt: None,
            tools: Vec::new(),
            mcp_servers: Vec::new(),
            written: None,
            policy: Policy::open(),
            interrupt_mode: InterruptMode::Batched,
            limits: Limits::default(),
            breakpoints: Breakpoints::default(),
            subagents: Vec::new(),
            strict: false,
            confirm: None,
            guardrails: BTreeMap::new(),
        }
    }

    /// With another version than `1`.
    #[must_use]
    pub fn with_version(mut self, version: impl Into<String>) -> Self {
        self.version = version.into();
        self
    }

    /// With another model to answer where those before it cannot.
    #[must_use]
    pub fn with_fallback(mut self, model: impl Into<String>) -> Self {
        self.fallback.push(model.into());
        self
    }

    /// Asks its models so.
    #[must_use]
    pub fn with_sampling(mut self, sampling: Sampling) -> Self {
        self.sampling = sampling;
        self
    }

    /// Gives its model no more of a long conversation than this.
    #[must_use]
    pub const fn with_context(mut self, context: ContextRule) -> Self {
        self.context = context;
        self
    }

    /// With this for the model to be told first.
    #[must_use]
    pub fn with_prompt(mut self, prompt: impl Into<String>) -> Self {
        self.system_prompt = Some(prompt.into());
        self
    }

    /// With this tool, in place of one of the same name.
    #[must_use]
    pub fn with_tool(mut self, tool: ToolSpec) -> Self {
        self.tools.retain(|it| it.name != tool.name);
        self.tools.push(tool);
        self
    }

    /// With this built-in tool, and the gate that it has where nothing else is said of it: a person approves or rejects what
    /// writes, runs a command or reaches the network. `workspace` is the absolute path of the folder that it works in.
    ///
    /// ```
    /// use holdpoint_core::{Builtin, Definition};
    /// let clerk = Definition::new("clerk", "scripted:/srv/clerk.yaml")
    ///     .with_builtin(Builtin::ReadFile, Some("/srv/papers"))
    ///     .with_builtin(Builtin::WriteFile, Some("/srv/papers"));
    /// assert!(clerk.policy.may_ask("write_file") && !clerk.policy.may_ask("read_file"));
    /// ```
    #[must_use]
    pub fn with_builtin(self, builtin: Builtin, workspace: Option<&str>) -> Self {
        self.with_tool(ToolSpec::builtin(builtin, workspace))
            .guarded()
    }

    /// With this agent to give tasks to, in place of one of the same name.
    #[must_use]
    pub fn with_subagent(mut self, description: impl Into<String>, definition: Self) -> Self {
        self.subagents
            .retain(|it| it.definition.name != definition.name);
        self.subagents.push(Subagent {
            description: description.into(),
            definition,
        });
        self.guarded()
    }

    /// With the default gates of its built-in tools.
    fn guarded(mut self) -> Self {
        let builtins = self.tools.iter().filter_map(ToolSpec::as_builtin);
        self.policy
            .guard_builtins(builtins, !self.subagents.is_empty());
        self
    }

    /// Has a person asked before each call of this tool: they approve, edit or reject. `*` is every tool without a gate
    /// of its own.
    #[must_use]
    pub fn ask(self, tool: impl Into<String>) -> Self {
        self.gate(tool, Gate::ask(Allowed::standard()))
    }

    /// Says when a person is asked before a call of this tool, and how.
    #[must_use]
    pub fn gate(mut self, tool: impl Into<String>, gate: Gate) -> Self {
        self.policy.interrupt_on.insert(tool.into(), gate);
        self
    }

    /// Says what happens to calls of tools that have no gate. Unless this is said, they run.
    #[must_use]
    pub const fn otherwise(mut self, ruling: Ruling) -> Self {
        self.policy.default = ruling;
        self
    }

    /// Has each gated call of a turn asked about on its own, while the turn's other calls run.
    #[must_use]
    pub const fn ask_per_call(mut self) -> Self {
        self.interrupt_mode = InterruptMode::PerCall;
        self
    }

    /// With these limits.
    #[must_use]
    pub const fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Waits for a confirmation where the model asks for one in plain words.
    #[must_use]
    pub fn confirm(mut self, confirmation: Confirmation) -> Self {
        self.confirm = Some(confirmation);
        self
    }

    /// With this guardrail, in place of one of the same name. It looks at the calls and words of subagents as well.
    ///
    /// ```
    /// use holdpoint_core::{Definition, Effect, Guardrail, ToolSpec};
    /// let clerk = Definition::new("clerk", "scripted:/srv/clerk.yaml")
    ///     .with_tool(ToolSpec::code("send_mail", Effect::Write))
    ///     .guard("money", Guardrail::keywords(["wire", "refund"]).of_tools(["send_mail"]));
    /// assert_eq!(clerk.flaw(), None);
    /// ```
    #[must_use]
    pub fn guard(mut self, name: impl Into<String>, guardrail: Guardrail) -> Self {
        self.guardrails.insert(name.into(), guardrail);
        self
    }

    /// Stops before this node is entered: `model`, or a tool.
    #[must_use]
    pub fn stop_before(mut self, node: impl Into<String>) -> Self {
        self.breakpoints.before.insert(node.into());
        self
    }

    /// Stops after this node was left: `model`, or a tool.
    #[must_use]
    pub fn stop_after(mut self, node: impl Into<String>) -> Self {
        self.breakpoints.after.insert(node.into());
        self
    }
}

impl Definition {
    /// The tool by which a task is given to a subagent.
    pub const TASK: &'static str = "task";

    /// How deep subagents may be nested.
    pub const MAX_DEPTH: usize = 8;

    /// The subagent with this name.
    #[must_use]
    pub fn subagent(&self, name: &str) -> Option<&Subagent> {
        self.subagents
            .iter()
            .find(|subagent| subagent.definition.name == name)
    }

    /// The stored spelling: canonical JSON, so that equal definitions have one digest.
    ///
    /// # Errors
    ///
    /// A number in a schema that canonical JSON cannot hold.
    pub fn to_canonical(&self) -> Result<String, serde_json::Error> {
        let format = self.least_format();
        if self.format == format {
            return serde_json_canonicalizer::to_string(self);
        }
        let stored = Self {
            format,
            ..self.clone()
        };
        serde_json_canonicalizer::to_string(&stored)
    }

    /// The first version of the stored format that can express it.
    fn least_format(&self) -> u16 {
        let is_third = !self.mcp_servers.is_empty() || !self.guardrails.is_empty();
        let is_first = self.fallback.is_empty()
            && self.sampling.is_unsaid()
            && self.context.is_unsaid()
            && self.tools.iter().all(|it| it.as_builtin().is_none());
        let own = match (is_first, is_third) {
            (_, true) => FORMAT,
            (true, false) => FIRST_FORMAT,
            (false, false) => SECOND_FORMAT,
        };
        let subagents = self.subagents.iter().map(|it| it.definition.least_format());
        subagents.fold(own, u16::max)
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
    /// Whether it is one effect, or takes steps.
    #[serde(default, skip_serializing_if = "ToolKind::is_plain")]
    pub kind: ToolKind,
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

    /// A tool that is code of the embedding program, registered under this name. It takes any object.
    #[must_use]
    pub fn code(name: impl Into<String>, effect: Effect) -> Self {
        Self {
            name: name.into(),
            description: String::new(),
            version: "1".to_owned(),
            effect,
            input_schema: json!({"type": "object"}),
            runner: Runner::Code {
                hooks: Hooks::default(),
            },
            kind: ToolKind::Plain,
            timeout: Self::DEFAULT_TIMEOUT,
            settle: Self::DEFAULT_SETTLE,
            permissions: Vec::new(),
        }
    }

    /// A built-in tool. `workspace` is the absolute path of the folder that it works in, if it needs one.
    #[must_use]
    pub fn builtin(builtin: Builtin, workspace: Option<&str>) -> Self {
        let workspace = workspace.filter(|_| builtin.needs_workspace());
        Self {
            name: builtin.as_str().to_owned(),
            description: builtin.description().to_owned(),
            version: builtin.version().to_owned(),
            effect: builtin.effect(),
            input_schema: builtin.schema(),
            runner: Runner::Builtin {
                tool: builtin,
                workspace: workspace.map(str::to_owned),
            },
            kind: ToolKind::Plain,
            timeout: Self::DEFAULT_TIMEOUT,
            settle: Self::DEFAULT_SETTLE,
            permissions: Vec::new(),
        }
    }

    /// Its name and which one it is, if it is a built-in tool.
    #[must_use]
    pub fn as_builtin(&self) -> Option<(String, Builtin)> {
        match &self.runner {
            Runner::Builtin { tool, .. } => Some((self.name.clone(), *tool)),
            Runner::Command { .. }
            | Runner::Http { .. }
            | Runner::Code { .. }
            | Runner::Mcp { .. } => None,
        }
    }

    /// A stepped tool that is code of the embedding program: its steps are its effects, and none of them may do more
    /// than this.
    #[must_use]
    pub fn stepped(name: impl Into<String>, effect: Effect) -> Self {
        Self {
            kind: ToolKind::Stepped,
            ..Self::code(name, effect)
        }
    }

    /// With this for the model to be told about it.
    #[must_use]
    pub fn with_description(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }

    /// With another version than `1`; an approval holds for one version only.
    #[must_use]
    pub fn with_version(mut self, version: impl Into<String>) -> Self {
        self.version = version.into();
        self
    }

    /// With this JSON Schema of its arguments.
    #[must_use]
    pub fn with_schema(mut self, schema: Value) -> Self {
        self.input_schema = schema;
        self
    }

    /// With other times: how long one call may take, and how long after that an effect may still appear.
    #[must_use]
    pub const fn with_times(mut self, timeout: Span, settle: Span) -> Self {
        self.timeout = timeout;
        self.settle = settle;
        self
    }

    /// Its code can say whether a call took effect. Nothing changes for a command, whose hooks are commands.
    #[must_use]
    pub fn with_lookup(mut self) -> Self {
        if let Runner::Code { hooks } = &mut self.runner {
            hooks.lookup = true;
        }
        self
    }

    /// Its code can undo a call. Nothing changes for a command, whose hooks are commands.
    #[must_use]
    pub fn with_compensation(mut self) -> Self {
        if let Runner::Code { hooks } = &mut self.runner {
            hooks.compensate = true;
        }
        self
    }

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
            Runner::Http {
                lookup, compensate, ..
            } => Hooks {
                lookup: lookup.is_some(),
                compensate: compensate.is_some(),
            },
            Runner::Code { hooks } => *hooks,
            Runner::Builtin { tool, .. } => Hooks {
                lookup: tool.has_lookup(),
                compensate: false,
            },
            Runner::Mcp { .. } => Hooks {
                lookup: false,
                compensate: false,
            },
        }
    }
}

/// What a call of a tool is made of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolKind {
    /// The whole call is the effect.
    #[default]
    Plain,
    /// Entering it has no effect and can be repeated; its steps are the effects, and it may ask people in between.
    Stepped,
    /// It gives a task to a subagent.
    Task,
}

impl ToolKind {
    pub(crate) const fn is_plain(&self) -> bool {
        matches!(self, Self::Plain)
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
    /// By an HTTP request.
    Http {
        /// What is sent.
        request: Box<HttpRequest>,
        /// Asks whether a call took effect.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lookup: Option<Box<HttpRequest>>,
        /// Undoes a call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        compensate: Option<Box<HttpRequest>>,
    },
    /// By code of the embedding program, registered under the tool's name.
    Code {
        /// Which hooks that code has.
        hooks: Hooks,
    },
    /// By this program itself.
    Builtin {
        /// Which of its tools it is.
        tool: Builtin,
        /// The folder that it works in, as an absolute path.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        workspace: Option<String>,
    },
    /// By a server of the Model Context Protocol.
    Mcp {
        /// What the agent calls the server.
        server: String,
        /// What the server calls the tool.
        tool: String,
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

impl Effect {
    /// As definitions spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Idempotent => "idempotent",
            Self::Write => "write",
        }
    }
}

/// How gated calls of one model turn are asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum InterruptMode {
    /// All of them in one interrupt; the turn's other calls wait for it.
    Batched,
    /// Each of them in an interrupt of its own; the turn's other calls run at once.
    PerCall,
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
