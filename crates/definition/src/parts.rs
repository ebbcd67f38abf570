//! What an agent and a subagent alike are made of. Where a subagent says nothing, it inherits.

use std::collections::{BTreeMap, BTreeSet};

use holdpoint_core::{
    Breakpoints, ContextRule, Definition, FIRST_FORMAT, Guardrail, InterruptMode, McpServer,
    Policy, Ruling, Sampling, Subagent, ToolSpec,
};
use holdpoint_yaml::{Content, Field, Fields, Report};

use crate::{
    family::Family,
    guardrail, mcp,
    model::{self, Models},
    policy::{self, Guarded},
    tools::{self, Tools},
};

/// The parts of one agent, as far as they could be read; whatever is missing was reported.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) model: Option<Models>,
    pub(crate) tools: Option<Tools>,
    pub(crate) servers: Option<Vec<McpServer>>,
    pub(crate) policy: Option<Policy>,
    /// Whether it says that nobody is asked, by an empty `interrupt_on`.
    pub(crate) asks_nobody: bool,
    pub(crate) interrupt_mode: Option<InterruptMode>,
    pub(crate) strict: Option<bool>,
    pub(crate) context: Option<ContextRule>,
    /// Its own. Those of the agents above are theirs, and look at it all the same.
    pub(crate) guardrails: Option<BTreeMap<String, Guardrail>>,
    /// The names of its own and of those above.
    pub(crate) guarded_by: BTreeSet<String>,
}

/// Where parts come from that are not written.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Unsaid<'a> {
    /// They get their defaults.
    Default,
    /// They are those of the agent above.
    Inherited(&'a Parts),
}

impl Unsaid<'_> {
    /// What the agent above has for a part, or the default. `None` if it could not be read.
    fn part<T>(self, of: impl FnOnce(&Parts) -> Option<T>, default: T) -> Option<T> {
        match self {
            Self::Default => Some(default),
            Self::Inherited(parent) => of(parent),
        }
    }
}

impl Parts {
    /// Reads the parts of `agent`, whose keys are `fields`.
    pub(crate) fn read(
        agent: &Field<'_>,
        fields: &Fields<'_>,
        unsaid: Unsaid<'_>,
        family: &mut Family<'_>,
        report: &mut Report,
    ) -> Self {
        let model = match (fields.optional("model"), unsaid) {
            (Some(field), _) => model::read(&field, family.base, family.names, report),
            (None, Unsaid::Default) => {
                fields.required("model", model::MISSING, report);
                None
            }
            (None, Unsaid::Inherited(parent)) => parent
                .model
                .as_ref()
                .and_then(|model| family.inherit(model, agent, report)),
        };
        let tools = match (fields.optional("tools"), unsaid) {
            (Some(field), _) => tools::read_all(&field, unsaid, family, report),
            (None, Unsaid::Default) => Some(Tools::default()),
            (None, Unsaid::Inherited(parent)) => parent
                .tools
                .as_ref()
                .and_then(|tools| family.inherit(tools, agent, report)),
        };
        let servers = match (
            fields.optional("mcp_servers"),
            fields.optional("tools"),
            unsaid,
        ) {
            (Some(field), _, _) => mcp::read_all(&field, unsaid, family, report),
            // Who says which tools a subagent has means those.
            (None, Some(_), _) | (None, None, Unsaid::Default) => Some(Vec::new()),
            (None, None, Unsaid::Inherited(parent)) => parent
                .servers
                .as_ref()
                .and_then(|servers| family.inherit(servers, agent, report)),
        };
        match &servers {
            Some(servers) => family.nodes.servers.extend(servers.iter().cloned()),
            None => family.nodes.incomplete = true,
        }
        match &tools {
            Some(tools) => family.nodes.names.extend(tools.names.iter().cloned()),
            None => family.nodes.incomplete = true,
        }
        if let (Some(model), Some(tools)) = (&model, &tools) {
            let place = fields.optional("tools");
            let place = place.as_ref().unwrap_or(agent);
            let tools = tools.specs.iter().map(|tool| tool.name.as_str());
            model::check_tools(model, tools, family.names, place, report);
        }
        let guarded = Guarded {
            tools: tools.as_ref(),
            servers: servers.as_deref(),
            has_tasks: has_subagents(fields),
        };
        let above = match unsaid {
            Unsaid::Default => Some(policy::open()),
            Unsaid::Inherited(parent) => match (&parent.policy, fields.optional("interrupt_on")) {
                (None, _) => None,
                (Some(policy), None) => family.inherit(policy, agent, report),
                (Some(policy), Some(_)) => Some(Policy {
                    default: policy.default,
                    ..policy::open()
                }),
            },
        };
        let mut policy = policy::read(fields, guarded, above, &family.asks, report);
        let asks_nobody = match (fields.optional("interrupt_on"), unsaid) {
            (Some(field), _) => is_empty_map(&field),
            (None, Unsaid::Default) => false,
            (None, Unsaid::Inherited(parent)) => parent.asks_nobody,
        };
        if let (Some(policy), Some(tools)) = (&mut policy, &tools) {
            let builtins = || tools.specs.iter().filter_map(ToolSpec::as_builtin);
            if !asks_nobody {
                policy.guard_builtins(builtins(), guarded.has_tasks);
            } else if policy.default == Ruling::Allow
                && let Some(field) = fields.optional("interrupt_on")
                && let Some((name, _)) = builtins().find(|(_, it)| it.default_gate().is_some())
            {
                let message =
                    format!("nobody is asked before a call of `{name}`, nor of any other tool");
                let help =
                    "leave `interrupt_on` out for the gates that built-in tools have by themselves";
                report.warning(field.node.at, &field.path, &message, help);
            }
        }
        let interrupt_mode = match fields.optional("interrupt_mode") {
            Some(field) => read_mode(&field, report),
            None => unsaid.part(|parent| parent.interrupt_mode, InterruptMode::Batched),
        };
        let above = unsaid.part(|parent| parent.strict, false);
        let strict = match fields.optional("strict") {
            Some(field) => read_strict(&field, above, report),
            None => above,
        };
        let context = match fields.optional("context") {
            Some(field) => read_context(&field, report),
            None => unsaid.part(|parent| parent.context, ContextRule::default()),
        };
        let mut guarded_by = match unsaid {
            Unsaid::Default => BTreeSet::new(),
            Unsaid::Inherited(parent) => parent.guarded_by.clone(),
        };
        let guardrails = match fields.optional("guardrails") {
            Some(field) => guardrail::read_all(&field, &guarded_by, family.base, report),
            None => Some(BTreeMap::new()),
        };
        guarded_by.extend(guardrails.iter().flatten().map(|(name, _)| name.clone()));
        let servers = servers.map(|mut servers| {
            for server in &mut servers {
                server.unasked = asks_nobody;
            }
            servers
        });
        Self {
            model,
            tools,
            servers,
            policy,
            asks_nobody,
            interrupt_mode,
            strict,
            context,
            guardrails,
            guarded_by,
        }
    }

    /// The definition that they make, without what only the agent of the file has.
    pub(crate) fn assemble(
        self,
        name: String,
        system_prompt: Option<String>,
        subagents: Vec<Subagent>,
        family: &Family<'_>,
    ) -> Option<Definition> {
        let definition = Definition {
            format: FIRST_FORMAT,
            name,
            version: family.version.clone(),
            model: String::new(),
            fallback: Vec::new(),
            sampling: Sampling::default(),
            context: self.context?,
            system_prompt,
            tools: self.tools?.specs,
            mcp_servers: self.servers?,
            written: None,
            policy: policy::complete(self.policy?, &family.asks),
            interrupt_mode: self.interrupt_mode?,
            limits: family.limits,
            breakpoints: Breakpoints::default(),
            subagents,
            strict: self.strict?,
            confirm: None,
            guardrails: self.guardrails?,
        };
        Some(self.model?.of(definition))
    }
}

/// Whether an agent can give tasks. A list that cannot be read is a problem of its own.
pub(crate) fn has_subagents(fields: &Fields<'_>) -> bool {
    fields.optional("subagents").is_some_and(
        |field| !matches!(&field.node.content, Content::List(items) if items.is_empty()),
    )
}

fn is_empty_map(field: &Field<'_>) -> bool {
    matches!(&field.node.content, Content::Map(entries) if entries.is_empty())
}

fn read_mode(field: &Field<'_>, report: &mut Report) -> Option<InterruptMode> {
    let words = [
        ("batched", InterruptMode::Batched),
        ("per_call", InterruptMode::PerCall),
    ];
    field.one_of("an interrupt mode", &words, report)
}

/// Less than this no model can work with.
const LEAST_TOKENS: u32 = 1_000;

fn read_context(field: &Field<'_>, report: &mut Report) -> Option<ContextRule> {
    let fields = Fields::open(field, &["max_tokens"], report)?;
    let help = "say how many tokens its model may be given, for instance `max_tokens: 120000`";
    let field = fields.required("max_tokens", help, report)?;
    let max_tokens = field.count(report)?;
    if max_tokens < LEAST_TOKENS {
        let message = format!("must be at least {LEAST_TOKENS}, not {max_tokens}");
        field.problem(&message, help, report);
        return None;
    }
    Some(ContextRule { max_tokens })
}

fn read_strict(field: &Field<'_>, above: Option<bool>, report: &mut Report) -> Option<bool> {
    let strict = field.flag(report)?;
    if !strict && above == Some(true) {
        let help = "remove it here, or above";
        field.problem(
            "the agent above is `strict`, and so is this one",
            help,
            report,
        );
        return None;
    }
    Some(strict)
}
