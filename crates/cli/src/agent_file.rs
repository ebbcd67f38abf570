//! An agent's file together with its scenario, as this machine would run it.

use std::{collections::BTreeMap, path::Path};

use holdpoint_core::{Definition, McpServer, ToolSpec};
use holdpoint_definition::{Names, Problem, Setting};
use holdpoint_models::{NoSuchModel, Providers, Scripted};

use crate::{env, failure::Failure};

/// An agent that can be run, and what its author might want to know.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) definition: Definition,
    pub(crate) warnings: Vec<Problem>,
    /// Keys that are missing, so that models could not be asked here and now.
    pub(crate) missing: Vec<Problem>,
}

/// Why an agent cannot be run.
#[derive(Debug)]
pub(crate) struct Refused {
    /// The stable code.
    pub(crate) code: &'static str,
    /// What has problems.
    pub(crate) what: String,
    /// Everything that is wrong, in the agent's file and in its scenario; never empty.
    pub(crate) problems: Vec<Problem>,
}

/// What names of models stand for, and who provides them: as a server's configuration says, if one is named.
///
/// # Errors
///
/// All problems of the configuration.
pub(crate) fn names(config: Option<&Path>) -> Result<Names, Failure> {
    let Some(config) = config else {
        return Ok(Names::default());
    };
    let file = holdpoint_definition::load_server(config).map_err(|problems| {
        let text = problems.to_string();
        Failure::unusable("bad_configuration", text.clone())
            .lines(text.lines().map(str::to_owned).collect())
    })?;
    Ok(file.names)
}

/// Reads an agent and its scenario. Nothing is created by it, and nobody is connected to.
///
/// # Errors
///
/// All problems of both files at once.
pub(crate) fn load(file: &Path, names: &Names) -> Result<Loaded, Refused> {
    let search = env::search_path();
    let setting = Setting {
        names,
        search: search.as_deref(),
    };
    let loaded = holdpoint_definition::load_in(file, &setting);
    let loaded = loaded.map_err(|found| {
        let mut problems = found.as_slice().to_vec();
        let scenario = holdpoint_definition::scenario_of(file);
        if let Some(Err(bad)) = scenario.map(|path| Scripted::load(&path)) {
            problems.extend_from_slice(bad.problems());
        }
        Refused {
            code: "bad_definition",
            what: format!("`{}`", file.display()),
            problems,
        }
    })?;
    let (definition, mut warnings) = (loaded.definition, loaded.warnings);
    let name = file.display().to_string();
    let mut problems = Vec::new();
    let mut missing: Vec<Problem> = Vec::new();
    let providers = Providers::new(names.providers.clone());
    for (model, users) in models_of(&definition) {
        match providers.check(model, &users.tools, &users.servers) {
            Ok(more) => {
                warnings.extend(more);
                let text = providers.not_ready(model);
                missing.extend(text.map(|text| Problem::of_file(&name, &text)));
            }
            Err(NoSuchModel::Scenario(bad)) => problems.extend_from_slice(bad.problems()),
            Err(error) => problems.push(Problem::of_file(&name, &error.to_string())),
        }
    }
    if !problems.is_empty() {
        return Err(Refused {
            code: "model_unusable",
            what: format!("the model of `{name}`"),
            problems,
        });
    }
    Ok(Loaded {
        definition,
        warnings,
        missing,
    })
}

/// What the agents have that use one model.
#[derive(Default)]
struct Users {
    tools: Vec<ToolSpec>,
    servers: Vec<McpServer>,
}

/// The models of an agent and its subagents, each with the tools of all those that use it.
fn models_of(definition: &Definition) -> BTreeMap<&str, Users> {
    let mut models: BTreeMap<&str, Users> = BTreeMap::new();
    let mut agents = vec![definition];
    while let Some(agent) = agents.pop() {
        let offered = holdpoint_engine::offered(agent);
        for model in [&agent.model].into_iter().chain(&agent.fallback) {
            let users = models.entry(model).or_default();
            users.tools.extend(offered.iter().cloned());
            users.servers.extend(agent.mcp_servers.iter().cloned());
        }
        agents.extend(agent.subagents.iter().map(|subagent| &subagent.definition));
    }
    models
}
