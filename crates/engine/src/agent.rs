//! A definition, made ready to use: schemas compiled, tools and model at hand.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use holdpoint_core::{
    Definition, Digest, FramePath, MAX_OFFERED_NAME, Params, Payload, Principal, ToolFacts,
    ToolKind, ToolSpec, can_be_offered, decode_definition,
};
use holdpoint_models::{Model, Providers};
use holdpoint_store::{CellChange, CellThen, SharedStore, Space};
use holdpoint_tools::{Checker, Registry, SteppedTool, Tool, Watchdog, instantiate};
use jsonschema::Validator;

use crate::{
    Error, Rights, deep,
    error::from_append,
    guard::{self, Guard},
    task,
    words::Words,
};

/// A definition that runs can be pinned to.
#[derive(Debug)]
pub struct Agent {
    /// What it is.
    pub definition: Definition,
    /// Its digest.
    pub digest: Digest,
    tools: BTreeMap<String, AgentTool>,
    /// What its model is offered: its tools, and the one by which it gives tasks.
    offered: Vec<ToolSpec>,
    words: Words,
    subagents: BTreeMap<String, Self>,
    model: Arc<dyn Model>,
    /// Its own guardrails.
    guards: Vec<Guard>,
}

#[derive(Debug)]
struct AgentTool {
    validator: Validator,
    schema: Digest,
    /// `None` for the one that is no call to the outside: giving a task to a subagent.
    runner: Option<Arc<dyn Tool>>,
}

fn validator(definition: &Definition, spec: &ToolSpec) -> Result<Validator, Error> {
    jsonschema::validator_for(&spec.input_schema).map_err(|error| {
        let reason = format!(
            "the schema of the tool `{}` is not valid: {error}",
            spec.name
        );
        Error::Definition {
            agent: definition.name.clone(),
            reason,
        }
    })
}

impl Agent {
    fn new(definition: Definition, digest: Digest, kit: &Kit) -> Result<Self, Error> {
        let mut tools = BTreeMap::new();
        for spec in &definition.tools {
            let tool = AgentTool {
                validator: validator(&definition, spec)?,
                schema: spec.schema_digest(),
                runner: Some(instantiate(
                    spec,
                    &definition.mcp_servers,
                    &kit.registry,
                    &kit.watchdog,
                )?),
            };
            tools.insert(spec.name.clone(), tool);
        }
        let offered = task::offered(&definition);
        if let Some(task) = task::spec(&definition) {
            let tool = AgentTool {
                validator: validator(&definition, &task)?,
                schema: task::schema_digest(),
                runner: None,
            };
            tools.insert(task.name, tool);
        }
        let words = Words::new(&definition)?;
        let model = kit.model_of(&definition)?;
        let guards = guard::guards(&definition, kit)?;
        let mut subagents = BTreeMap::new();
        for subagent in &definition.subagents {
            let agent = Self::new(subagent.definition.clone(), digest, kit)?;
            subagents.insert(agent.definition.name.clone(), agent);
        }
        Ok(Self {
            definition,
            digest,
            tools,
            offered,
            words,
            subagents,
            model,
            guards,
        })
    }

    /// The subagent whose frame this is; itself for the root.
    pub(crate) fn at(&self, frame: &FramePath) -> Option<&Self> {
        self.lineage(frame)
            .map(|lineage| lineage.last().copied().unwrap_or(self))
    }

    /// The agents on the way to a frame, this one first.
    pub(crate) fn lineage(&self, frame: &FramePath) -> Option<Vec<&Self>> {
        let mut lineage = vec![self];
        let mut agent = self;
        for name in frame.lineage() {
            agent = agent.subagents.get(name)?;
            lineage.push(agent);
        }
        Some(lineage)
    }

    /// What its model is offered.
    pub(crate) fn offered(&self) -> &[ToolSpec] {
        &self.offered
    }

    /// The conditions and texts of its policy.
    pub(crate) const fn words(&self) -> &Words {
        &self.words
    }

    /// What an action must know of a tool that it calls with these arguments.
    pub(crate) fn facts(&self, tool: &str, params: &Params) -> Option<ToolFacts> {
        let spec = self.offered.iter().find(|offered| offered.name == tool)?;
        let mut facts = facts(spec);
        if facts.kind == ToolKind::Task {
            facts.version = task::version(&self.definition, params)?;
        }
        Some(facts)
    }

    /// The permission that a tool needs and a requester has not.
    pub(crate) fn forbids(&self, tool: &str, user: &Principal) -> Option<&str> {
        let spec = self.offered.iter().find(|offered| offered.name == tool)?;
        let missing = spec.permissions.iter().find(|needed| !user.may(needed));
        missing.map(String::as_str)
    }

    /// Whether a tool needs a permission at all.
    pub(crate) fn is_restricted(&self, tool: &str) -> bool {
        let mut offered = self.offered.iter();
        offered.any(|spec| spec.name == tool && !spec.permissions.is_empty())
    }

    /// Its own guardrails. Those of the agents above look at what it does as well.
    pub(crate) fn guards(&self) -> &[Guard] {
        &self.guards
    }

    pub(crate) fn model(&self) -> &Arc<dyn Model> {
        &self.model
    }

    pub(crate) fn runner(&self, tool: &str) -> Option<Arc<dyn Tool>> {
        self.tools.get(tool)?.runner.clone()
    }

    pub(crate) fn schema(&self, tool: &str) -> Option<Digest> {
        self.tools.get(tool).map(|tool| tool.schema)
    }

    /// Checks arguments against a tool's schema. The error says what is wrong, and where.
    pub(crate) fn check(&self, name: &str, params: &Params) -> Result<(), String> {
        let Some(tool) = self.tools.get(name) else {
            return Ok(());
        };
        let value = params.to_value();
        if tool.validator.is_valid(&value) {
            return Ok(());
        }
        let mut offered = self.offered.iter();
        if let Some(spec) = offered.find(|spec| spec.name == name) {
            deep::explainable(&spec.input_schema, &value)?;
        }
        let found: Vec<String> = tool
            .validator
            .iter_errors(&value)
            .take(3)
            .map(|error| {
                let at = error.instance_path().to_string();
                if at.is_empty() {
                    error.to_string()
                } else {
                    format!("{at}: {error}")
                }
            })
            .collect();
        Err(found.join("; "))
    }

    /// Whether a person may have to be asked.
    #[must_use]
    pub fn is_gated(&self) -> bool {
        let asks = |tool: &ToolSpec| {
            tool.kind == ToolKind::Stepped || self.definition.policy.may_ask(&tool.name)
        };
        let breakpoints = &self.definition.breakpoints;
        self.offered.iter().any(asks)
            || !breakpoints.is_empty()
            || self.definition.confirm.is_some()
            || !self.guards.is_empty()
            || self.subagents.values().any(Self::is_gated)
    }
}

pub(crate) fn facts(spec: &ToolSpec) -> ToolFacts {
    ToolFacts {
        name: spec.name.clone(),
        version: spec.version.clone(),
        effect: spec.effect,
        timeout: spec.timeout,
        settle: spec.settle,
        hooks: spec.hooks(),
        kind: spec.kind,
    }
}

/// What agents are made from besides their definitions: code tools, models and the watchdog of this program.
#[derive(Debug, Clone, Default)]
pub struct Kit {
    /// Tools that are code of this program.
    pub registry: Registry,
    /// The watchdog that command tools run under.
    pub watchdog: Watchdog,
    /// Models that are code of this program, by the reference under which definitions name them.
    pub models: BTreeMap<String, Arc<dyn Model>>,
    /// Everybody else who provides models.
    pub providers: Providers,
    /// Who knows what requesters may do now. Without, what they came with counts.
    pub rights: Option<Arc<dyn Rights>>,
}

impl Kit {
    /// Without tools and models of this program.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// With this tool, under the name by which definitions know it.
    #[must_use]
    pub fn with_tool(mut self, name: impl Into<String>, tool: impl Tool + 'static) -> Self {
        self.registry = self.registry.with(name, tool);
        self
    }

    /// With this tool that takes steps.
    #[must_use]
    pub fn with_stepped(
        mut self,
        name: impl Into<String>,
        tool: impl SteppedTool + 'static,
    ) -> Self {
        self.registry = self.registry.with_stepped(name, tool);
        self
    }

    /// With this checker, under the name by which guardrails know it.
    #[must_use]
    pub fn with_checker(
        mut self,
        name: impl Into<String>,
        checker: impl Checker + 'static,
    ) -> Self {
        self.registry = self.registry.with_checker(name, checker);
        self
    }

    /// With this model, under the reference by which definitions know it.
    #[must_use]
    pub fn with_model(mut self, reference: impl Into<String>, model: impl Model + 'static) -> Self {
        self.models.insert(reference.into(), Arc::new(model));
        self
    }

    /// With these providers of models, in place of those that everybody knows.
    #[must_use]
    pub fn with_providers(mut self, providers: holdpoint_core::Providers) -> Self {
        self.providers = Providers::new(providers);
        self
    }

    /// With somebody who knows what requesters may do now.
    #[must_use]
    pub fn with_rights(mut self, rights: impl Rights + 'static) -> Self {
        self.rights = Some(Arc::new(rights));
        self
    }

    /// The model of a definition, with those that answer where it cannot.
    fn model_of(&self, definition: &Definition) -> Result<Arc<dyn Model>, Error> {
        let mut candidates = Vec::new();
        for reference in [&definition.model].into_iter().chain(&definition.fallback) {
            let model = match self.models.get(reference) {
                Some(model) => Arc::clone(model),
                None => self.provided(reference, definition)?,
            };
            candidates.push((reference.clone(), model));
        }
        Ok(self.providers.route(candidates))
    }

    fn provided(&self, reference: &str, definition: &Definition) -> Result<Arc<dyn Model>, Error> {
        let is_provided = self.providers.known().named(reference).is_some();
        let unfit = |tool: &&ToolSpec| is_provided && !can_be_offered(&tool.name);
        if let Some(tool) = definition.tools.iter().find(unfit) {
            return Err(Error::Definition {
                agent: definition.name.clone(),
                reason: format!(
                    "`{reference}` takes no tool that is called `{}`: use up to {MAX_OFFERED_NAME} letters, digits, `_` and `-`",
                    tool.name
                ),
            });
        }
        Ok(self.providers.resolve(reference)?)
    }
}

/// Which definition of an agent is the current one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Current {
    digest: Digest,
    version: u64,
}

impl Current {
    pub(crate) const fn digest(self) -> Digest {
        self.digest
    }

    pub(crate) const fn version(self) -> u64 {
        self.version
    }

    /// Makes an append depend on this still being so.
    pub(crate) fn unchanged(self, agent: &str) -> CellChange {
        CellChange {
            space: Space::Definition,
            key: agent.to_owned(),
            expect: self.version,
            then: CellThen::Keep,
        }
    }
}

fn read_digest(agent: &str, cell: &[u8]) -> Result<Digest, Error> {
    let text = String::from_utf8_lossy(cell);
    text.parse().map_err(|_| Error::Definition {
        agent: agent.to_owned(),
        reason: format!("its current digest `{text}` cannot be read"),
    })
}

/// The definitions that this process has made ready.
#[derive(Debug)]
pub(crate) struct Agents {
    kit: Kit,
    ready: Mutex<HashMap<Digest, Arc<Agent>>>,
    /// The current definition by tenant and agent, as it was last read.
    seen: Mutex<HashMap<(String, String), Current>>,
}

impl Agents {
    pub(crate) fn new(mut kit: Kit) -> Self {
        // A tool has no business with the keys of models.
        let keys = kit.providers.known().secret_variables();
        kit.watchdog = kit.watchdog.withholding(keys);
        Self {
            kit,
            ready: Mutex::default(),
            seen: Mutex::default(),
        }
    }

    pub(crate) const fn watchdog(&self) -> &Watchdog {
        &self.kit.watchdog
    }

    pub(crate) fn rights(&self) -> Option<&Arc<dyn Rights>> {
        self.kit.rights.as_ref()
    }

    fn known(&self, digest: Digest) -> Option<Arc<Agent>> {
        self.ready
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&digest)
            .cloned()
    }

    fn keep(&self, agent: Agent) -> Arc<Agent> {
        let agent = Arc::new(agent);
        self.ready
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(agent.digest, Arc::clone(&agent));
        agent
    }

    /// Makes a definition ready, without storing it. Returns its canonical text as well.
    pub(crate) fn prepare(&self, definition: Definition) -> Result<(Arc<Agent>, String), Error> {
        let unusable = |reason: String| Error::Definition {
            agent: definition.name.clone(),
            reason,
        };
        if let Some(reason) = definition.flaw() {
            return Err(unusable(reason));
        }
        let text = definition.to_canonical();
        let text = text.map_err(|error| unusable(error.to_string()))?;
        let digest = Digest::of(text.as_bytes());
        let agent = match self.known(digest) {
            Some(agent) => agent,
            None => self.keep(Agent::new(definition, digest, &self.kit)?),
        };
        Ok((agent, text))
    }

    /// Stores a definition by its digest and makes it the current one of its agent.
    pub(crate) async fn publish(
        &self,
        store: &SharedStore,
        tenant: &str,
        definition: Definition,
    ) -> Result<Arc<Agent>, Error> {
        let definition = self.complete(store, definition).await?.definition;
        let name = definition.name.clone();
        loop {
            let cell = store.cell(tenant, Space::Definition, &name).await?;
            let stored = cell.as_ref().map(|cell| read_digest(&name, &cell.value));
            let stored = stored.transpose()?;
            let careful = self.as_careful_as(store, tenant, &definition, stored);
            let (agent, text) = self.prepare(careful.await?)?;
            let digest = agent.digest;
            store
                .put_blob(tenant, Payload::json(text.into_bytes()), digest)
                .await?;
            if stored == Some(digest) {
                return Ok(agent);
            }
            let change = CellChange {
                space: Space::Definition,
                key: name.clone(),
                expect: cell.map_or(0, |cell| cell.version),
                then: CellThen::Set {
                    value: digest.to_string().into_bytes(),
                    until: None,
                },
            };
            match store.set_cell(tenant, change).await {
                Ok(_) => return Ok(agent),
                Err(holdpoint_store::AppendError::CellConflict { .. }) => {}
                Err(error) => return Err(from_append(error)),
            }
        }
    }

    /// The agent with this digest, as it was stored.
    pub(crate) async fn pinned(
        &self,
        store: &SharedStore,
        tenant: &str,
        digest: Digest,
    ) -> Result<Arc<Agent>, Error> {
        if let Some(agent) = self.known(digest) {
            return Ok(agent);
        }
        let payload = store.blob(tenant, digest).await?.ok_or_else(|| {
            let reason = format!("its stored form {digest} is missing");
            Error::Definition {
                agent: String::new(),
                reason,
            }
        })?;
        Ok(self.keep(Agent::new(decode_definition(&payload)?, digest, &self.kit)?))
    }

    /// An agent's current definition: its digest, and the version of the cell that says so.
    pub(crate) async fn current(
        &self,
        store: &SharedStore,
        tenant: &str,
        agent: &str,
    ) -> Result<Option<Current>, Error> {
        let Some(cell) = store.cell(tenant, Space::Definition, agent).await? else {
            return Ok(None);
        };
        let digest = read_digest(agent, &cell.value)?;
        let current = Current {
            digest,
            version: cell.version,
        };
        self.seen()
            .insert((tenant.to_owned(), agent.to_owned()), current);
        Ok(Some(current))
    }

    /// An agent's current definition as this process last saw it. Only for an append that depends on it being so still.
    pub(crate) async fn last_seen(
        &self,
        store: &SharedStore,
        tenant: &str,
        agent: &str,
    ) -> Result<Option<Current>, Error> {
        let seen = self
            .seen()
            .get(&(tenant.to_owned(), agent.to_owned()))
            .copied();
        match seen {
            Some(current) => Ok(Some(current)),
            None => self.current(store, tenant, agent).await,
        }
    }

    fn seen(&self) -> MutexGuard<'_, HashMap<(String, String), Current>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
