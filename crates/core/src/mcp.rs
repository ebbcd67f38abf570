//! Servers of the Model Context Protocol, as data: how one is reached, and what its tools become in a definition.
//!
//! A definition names servers. Their tools are asked for before it is stored, and stand in it from then on: a run is pinned
//! to what its servers offered then, down to the words. What a server says of itself never makes a tool less guarded unless the
//! definition trusts it.

mod schema;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    Allowed, Definition, Digest, Effect, Gate, HttpHeader, MAX_OFFERED_NAME, Policy, Ruling,
    Runner, Span, ToolKind, ToolSpec, can_be_offered, hex,
};

/// A server whose tools an agent has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpServer {
    /// What the agent calls it. Its tools are called `NAME__TOOL`.
    pub name: String,
    /// How it is reached.
    pub transport: McpTransport,
    /// Which of its tools the agent has; all of them if unsaid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<BTreeSet<String>>,
    /// What repeating a call would do, where somebody who knows has said so.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub effects: BTreeMap<String, Effect>,
    /// Whether what the server says of its tools is believed where it makes them less guarded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trust_hints: bool,
    /// Whether nobody is asked about its tools unless something else is said of them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unasked: bool,
    /// How long one call may take.
    pub timeout: Span,
    /// How long after the deadline an effect may still appear.
    pub settle: Span,
    /// What the requester must be permitted, for any of its tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permissions: Vec<String>,
    /// Whether it was asked for its tools, and they are among the definition's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub listed: bool,
    /// What its tools were when this text was published with them for the first time, by what it calls them. It is what
    /// the text was written for: what is another tool by now is asked about, for as long as the text stays as it is.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub seen: BTreeMap<String, String>,
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum McpTransport {
    /// It is a program that speaks on its standard input and output.
    Stdio {
        /// Program and arguments.
        command: Vec<String>,
        /// The folder it runs in.
        cwd: String,
        /// What it has in its environment beside what every program needs.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        env: BTreeMap<String, McpVariable>,
    },
    /// It answers HTTP requests.
    Http {
        /// Where.
        url: String,
        /// What is sent along with each request.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        headers: BTreeMap<String, HttpHeader>,
        /// Hosts that may have private addresses, and addresses that are fine though they are not public.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        allow_private: Vec<String>,
    },
}

/// A variable of a server's environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum McpVariable {
    /// This text.
    Text(String),
    /// What this variable of our own environment holds when the server is started.
    Secret {
        /// The variable.
        name: String,
    },
}

/// A tool, as its server offers it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct McpOffer {
    /// What the server calls it.
    pub name: String,
    /// What models are told about it.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub input_schema: Value,
    /// What the server says that it does.
    pub hints: McpHints,
}

/// What a server says that one of its tools does. It may be mistaken, and it may lie.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct McpHints {
    /// It changes nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// It may destroy something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    /// Doing it twice is doing it once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
}

/// How many tools a server may offer.
const MOST_TOOLS: usize = 256;
/// How much JSON these may be in all.
const MOST_JSON: usize = 1 << 20;
/// How much of a digest tells two tools apart, where whoever made both wants them to look alike.
const TELLING: usize = 32;

impl McpServer {
    /// What stands between a server's name and that of its tool.
    pub const BETWEEN: &'static str = "__";
    /// The longest name of a server.
    pub const MAX_NAME: usize = 32;

    /// A server that is a program, run in this folder.
    #[must_use]
    pub fn stdio(
        name: impl Into<String>,
        command: impl IntoIterator<Item = impl Into<String>>,
        cwd: impl Into<String>,
    ) -> Self {
        Self::new(
            name.into(),
            McpTransport::Stdio {
                command: command.into_iter().map(Into::into).collect(),
                cwd: cwd.into(),
                env: BTreeMap::new(),
            },
        )
    }

    /// A server at this address.
    #[must_use]
    pub fn http(name: impl Into<String>, url: impl Into<String>) -> Self {
        Self::new(
            name.into(),
            McpTransport::Http {
                url: url.into(),
                headers: BTreeMap::new(),
                allow_private: Vec::new(),
            },
        )
    }

    fn new(name: String, transport: McpTransport) -> Self {
        Self {
            name,
            transport,
            only: None,
            effects: BTreeMap::new(),
            trust_hints: false,
            unasked: false,
            timeout: ToolSpec::DEFAULT_TIMEOUT,
            settle: ToolSpec::DEFAULT_SETTLE,
            permissions: Vec::new(),
            listed: false,
            seen: BTreeMap::new(),
        }
    }

    /// Whether `name` can be the name of a server.
    #[must_use]
    pub fn is_name(name: &str) -> bool {
        can_be_offered(name) && name.len() <= Self::MAX_NAME && !name.contains(Self::BETWEEN)
    }

    /// What an agent calls a tool of this server. A name that no model would take is changed, and told from others by a part
    /// of its digest.
    #[must_use]
    pub fn name_of(&self, tool: &str) -> String {
        let whole = format!("{}{}{tool}", self.name, Self::BETWEEN);
        if can_be_offered(&whole) {
            return whole;
        }
        let fits = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-');
        let mut name: String = whole
            .chars()
            .map(|char| if fits(char) { char } else { '_' })
            .collect();
        let told = told_by(whole.as_bytes(), 8);
        name.truncate(MAX_OFFERED_NAME - told.len() - 1);
        format!("{name}_{told}")
    }

    /// Whether an agent's name of a tool is that of one of this server's.
    #[must_use]
    pub fn has_named(&self, tool: &str) -> bool {
        let rest = tool.strip_prefix(self.name.as_str());
        rest.is_some_and(|rest| rest.starts_with(Self::BETWEEN))
    }

    /// Whether it is reached as another one is, so that both have one answer to what they offer.
    #[must_use]
    pub fn is_reached_like(&self, other: &Self) -> bool {
        self.name == other.name && self.transport == other.transport
    }

    fn spec(&self, offer: &McpOffer) -> ToolSpec {
        ToolSpec {
            name: self.name_of(&offer.name),
            description: offer.description.clone(),
            version: offer.version(),
            effect: self.effect(offer),
            input_schema: offer.input_schema.clone(),
            runner: Runner::Mcp {
                server: self.name.clone(),
                tool: offer.name.clone(),
            },
            kind: ToolKind::Stepped,
            timeout: self.timeout,
            settle: self.settle,
            permissions: self.permissions.clone(),
        }
    }

    fn effect(&self, offer: &McpOffer) -> Effect {
        if let Some(said) = self.effects.get(&offer.name) {
            return *said;
        }
        let trusted = self.trust_hints && !offer.hints.is_contradictory();
        if trusted && offer.hints.read_only == Some(true) {
            return Effect::Read;
        }
        if trusted && offer.hints.idempotent == Some(true) {
            return Effect::Idempotent;
        }
        Effect::Write
    }

    /// The gate of a tool of which nothing else is said.
    fn gate(&self, offer: &McpOffer) -> Option<Gate> {
        let hints = offer.hints;
        let only_reads = hints.read_only == Some(true) && !hints.is_contradictory();
        if self.unasked || (self.trust_hints && only_reads) {
            return None;
        }
        Some(offer.gate())
    }

    /// What of this can be had.
    fn chosen<'o>(&self, offers: &'o [McpOffer]) -> Result<Vec<&'o McpOffer>, String> {
        let whose = format!("the MCP server `{}`", self.name);
        let known: BTreeSet<&str> = offers.iter().map(|it| it.name.as_str()).collect();
        if known.len() < offers.len() {
            return Err(format!("{whose} offers two tools under one name"));
        }
        let named = self.only.iter().flatten().chain(self.effects.keys());
        if let Some(missing) = named.into_iter().find(|it| !known.contains(it.as_str())) {
            return Err(format!(
                "{whose} has no tool `{missing}`; it has {}",
                list(&known)
            ));
        }
        let wanted = |offer: &&McpOffer| {
            self.only
                .as_ref()
                .is_none_or(|only| only.contains(&offer.name))
        };
        let chosen: Vec<&McpOffer> = offers.iter().filter(wanted).collect();
        self.check(&chosen)?;
        Ok(chosen)
    }

    /// Whether an agent can have these.
    fn check(&self, chosen: &[&McpOffer]) -> Result<(), String> {
        let whose = format!("the MCP server `{}`", self.name);
        let json = serde_json::to_vec(chosen).map_or(usize::MAX, |it| it.len());
        if chosen.len() > MOST_TOOLS || json > MOST_JSON {
            return Err(format!(
                "{whose} offers {} tools with {json} bytes of descriptions and schemas, and an agent has at most \
                 {MOST_TOOLS} of one server with {MOST_JSON} bytes; name those that it needs in `tools`",
                chosen.len()
            ));
        }
        for offer in chosen {
            let name = &offer.name;
            if !offer.input_schema.is_object() {
                return Err(format!(
                    "{whose} offers `{name}` without a schema of its arguments"
                ));
            }
            if let Err(why) = schema::check(&offer.input_schema) {
                return Err(format!("{whose} offers `{name}` with a schema that {why}"));
            }
        }
        Ok(())
    }

    /// Whether an agent can have what the server offers by now, of the tools that it has.
    ///
    /// # Errors
    ///
    /// It cannot. Its tools stay as they are then, and are not called.
    pub fn check_changed(&self, offers: &[McpOffer]) -> Result<(), String> {
        let known = offers.iter().filter(|it| self.seen.contains_key(&it.name));
        self.check(&known.collect::<Vec<_>>())
    }
}

/// So many characters that tell one text from others.
fn told_by(text: &[u8], characters: usize) -> String {
    let mut told = hex(Digest::of(text).as_bytes());
    told.truncate(characters);
    told
}

fn list(names: &BTreeSet<&str>) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    names.iter().copied().collect::<Vec<_>>().join(", ")
}

impl McpHints {
    /// Whether it is said to change nothing and to destroy something. Whoever says both is not believed in either.
    fn is_contradictory(self) -> bool {
        self.read_only == Some(true) && self.destructive == Some(true)
    }
}

impl McpOffer {
    /// Tells it from whatever else its server may offer under its name: it changes with every word.
    #[must_use]
    pub fn version(&self) -> String {
        let text = serde_json_canonicalizer::to_string(&json!(self)).unwrap_or_default();
        told_by(text.as_bytes(), TELLING)
    }

    fn gate(&self) -> Gate {
        let mut gate = Gate::ask(Allowed::standard());
        // What is said to destroy something is not allowed once and for all.
        gate.terms.always_ask = self.hints.destructive == Some(true);
        gate
    }
}

impl Policy {
    /// The gate that holds for a tool; one that asks if there is none. `None` where it is denied without one.
    fn gate_to_tighten(&self, tool: &str) -> Option<Gate> {
        match self.gate(tool) {
            Some(gate) => Some(gate.clone()),
            None if self.default == Ruling::Deny => None,
            None => Some(Gate::ask(Allowed::standard())),
        }
    }

    /// Has a person asked each time where one is asked anyway, without a rule that says when.
    fn never_for_good(&mut self, tool: &str) {
        if let Some(gate) = self
            .gate(tool)
            .filter(|it| it.rules.is_empty() && it.may_ask())
        {
            let mut gate = gate.clone();
            gate.terms.always_ask = true;
            self.interrupt_on.insert(tool.to_owned(), gate);
        }
    }

    /// Adds a gate where nothing is said of a tool. Where everything that is not named is denied, that stays so.
    fn guard(&mut self, tool: &str, gate: Gate) {
        if self.default != Ruling::Deny && !self.interrupt_on.contains_key(Self::ANY) {
            self.interrupt_on.entry(tool.to_owned()).or_insert(gate);
        }
    }
}

/// The servers of a definition, and what they offer.
impl Definition {
    /// With the tools of this server, once it was asked what it offers. Unless something else is said of them, a person is asked
    /// before each call.
    #[must_use]
    pub fn with_mcp_server(mut self, server: McpServer) -> Self {
        self.mcp_servers.retain(|it| it.name != server.name);
        self.mcp_servers.push(server);
        self
    }

    /// Tells what was written from every other text, before servers were asked what they offer. Which models answer does not
    /// count: that may be said for one run, and says nothing of tools.
    ///
    /// # Errors
    ///
    /// As [`Definition::to_canonical`].
    pub fn digest_of_text(&self) -> Result<Digest, serde_json::Error> {
        let text = self.clone().without_models().to_canonical()?;
        Ok(Digest::of(text.as_bytes()))
    }

    fn without_models(mut self) -> Self {
        self.model.clear();
        self.fallback.clear();
        for subagent in &mut self.subagents {
            let definition = subagent.definition.clone().without_models();
            subagent.definition = definition;
        }
        self
    }

    /// With the models of another definition of the same text.
    #[must_use]
    pub fn with_models_of(mut self, other: &Self) -> Self {
        self.model.clone_from(&other.model);
        self.fallback.clone_from(&other.fallback);
        for subagent in &mut self.subagents {
            if let Some(other) = other.subagent(&subagent.definition.name) {
                let definition = subagent.definition.clone();
                subagent.definition = definition.with_models_of(&other.definition);
            }
        }
        self
    }

    /// The servers of this agent and its subagents that were not asked yet what they offer, each of them once.
    #[must_use]
    pub fn unlisted_servers(&self) -> Vec<&McpServer> {
        let mut found: Vec<&McpServer> = Vec::new();
        for server in self.all_servers() {
            if !server.listed && !found.iter().any(|it| it.is_reached_like(server)) {
                found.push(server);
            }
        }
        found
    }

    fn all_servers(&self) -> Vec<&McpServer> {
        let below = self.subagents.iter();
        let below = below.flat_map(|it| it.definition.all_servers());
        self.mcp_servers.iter().chain(below).collect()
    }

    /// With the tools that this server offers, wherever it is named.
    ///
    /// # Errors
    ///
    /// What is said of its tools does not fit what it offers; it offers what an agent cannot have.
    pub fn with_offers(mut self, server: &McpServer, offers: &[McpOffer]) -> Result<Self, String> {
        self.take_offers(server, offers)?;
        Ok(self)
    }

    fn take_offers(&mut self, asked: &McpServer, offers: &[McpOffer]) -> Result<(), String> {
        for server in &mut self.mcp_servers {
            if server.listed || !server.is_reached_like(asked) {
                continue;
            }
            let chosen = server.chosen(offers)?;
            let names: BTreeSet<String> =
                chosen.iter().map(|it| server.name_of(&it.name)).collect();
            let gates = self.policy.interrupt_on.keys();
            let mut idle = gates.filter(|it| server.has_named(it) && !names.contains(*it));
            if let Some(gate) = idle.next() {
                let names: BTreeSet<&str> = names.iter().map(String::as_str).collect();
                return Err(format!(
                    "no tool is called `{gate}`, so its gate would guard nothing; those of the MCP server `{}` are {}",
                    server.name,
                    list(&names)
                ));
            }
            for offer in chosen {
                let spec = server.spec(offer);
                if let Some(gate) = server.gate(offer) {
                    self.policy.guard(&spec.name, gate);
                }
                if offer.hints.destructive == Some(true) {
                    self.policy.never_for_good(&spec.name);
                }
                server.seen.insert(offer.name.clone(), offer.version());
                self.tools.push(spec);
            }
            server.listed = true;
        }
        for subagent in &mut self.subagents {
            subagent.definition.take_offers(asked, offers)?;
        }
        Ok(())
    }

    /// What this definition becomes where a server offers its tools otherwise than it did; `None` if all that are in it are as
    /// they were, or an agent cannot have what they became. No tool is added, and none is taken out: a list that lacks one may
    /// be a mistake of a moment.
    #[must_use]
    pub fn with_changed_offers(&self, server: &McpServer, offers: &[McpOffer]) -> Option<Self> {
        let mut changed = self.clone();
        changed.change_offers(server, offers);
        changed.be_as_careful_as(self);
        (changed != *self).then_some(changed)
    }

    fn change_offers(&mut self, asked: &McpServer, offers: &[McpOffer]) {
        for server in &self.mcp_servers {
            if !server.is_reached_like(asked) || server.check_changed(offers).is_err() {
                continue;
            }
            for spec in &mut self.tools {
                let tool = spec.of_mcp_server(&server.name);
                let offer = tool.and_then(|tool| offers.iter().find(|it| it.name == tool));
                if let Some(offer) = offer {
                    *spec = server.spec(offer);
                }
            }
        }
        for subagent in &mut self.subagents {
            subagent.definition.change_offers(asked, offers);
        }
    }

    /// This definition, made of the same text as `before` once its servers were asked again. A tool that they offer otherwise by
    /// now is asked about from now on, whatever is said of it: that was said of something else.
    #[must_use]
    pub fn as_careful_as(mut self, before: &Self) -> Self {
        self.be_as_careful_as(before);
        self
    }

    fn be_as_careful_as(&mut self, before: &Self) {
        for server in &mut self.mcp_servers {
            let known = before.mcp_servers.iter().find(|it| it.name == server.name);
            let seen = known.map(|it| it.seen.clone()).unwrap_or_default();
            server.seen.extend(seen);
        }
        for spec in &mut self.tools {
            let Runner::Mcp { server, tool } = &spec.runner else {
                continue;
            };
            let server = self.mcp_servers.iter().find(|it| it.name == *server);
            let seen = server.and_then(|it| it.seen.get(tool));
            if let Some(known) = before.tool(&spec.name) {
                spec.effect = spec.effect.max(known.effect);
            }
            if let Some(gate) = before.policy.interrupt_on.get(&spec.name) {
                let gates = &mut self.policy.interrupt_on;
                gates
                    .entry(spec.name.clone())
                    .or_insert_with(|| gate.clone());
            }
            if seen.is_some_and(|seen| *seen != spec.version)
                && let Some(mut gate) = self.policy.gate_to_tighten(&spec.name)
            {
                gate.terms.always_ask = true;
                self.policy.interrupt_on.insert(spec.name.clone(), gate);
            }
        }
        for subagent in &mut self.subagents {
            if let Some(known) = before.subagent(&subagent.definition.name) {
                subagent.definition.be_as_careful_as(&known.definition);
            }
        }
    }
}

impl ToolSpec {
    /// What this server calls it, if it is one of its tools.
    fn of_mcp_server(&self, server: &str) -> Option<&str> {
        match &self.runner {
            Runner::Mcp { server: of, tool } if of == server => Some(tool),
            Runner::Mcp { .. }
            | Runner::Command { .. }
            | Runner::Http { .. }
            | Runner::Code { .. }
            | Runner::Builtin { .. } => None,
        }
    }
}
