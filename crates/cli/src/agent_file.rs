//! An agent's file together with its scenario, as this machine would run it.

use std::{collections::BTreeMap, path::Path};

use holdpoint_core::{Definition, ToolSpec};
use holdpoint_definition::Problem;
use holdpoint_models::{NoSuchModel, Scripted};

use crate::env;

/// An agent that can be run, and what its author might want to know.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) definition: Definition,
    pub(crate) warnings: Vec<Problem>,
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

/// Reads an agent and its scenario. Nothing is created by it.
///
/// # Errors
///
/// All problems of both files at once.
pub(crate) fn load(file: &Path) -> Result<Loaded, Refused> {
    let loaded = match env::search_path() {
        Some(search) => holdpoint_definition::load_for(file, &search),
        None => holdpoint_definition::load(file),
    };
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
    for (model, tools) in models_of(&definition) {
        match holdpoint_models::check(model, &tools) {
            Ok(more) => warnings.extend(more),
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
    })
}

/// The models of an agent and its subagents, each with the tools of all those that use it.
fn models_of(definition: &Definition) -> BTreeMap<&str, Vec<ToolSpec>> {
    let mut models: BTreeMap<&str, Vec<ToolSpec>> = BTreeMap::new();
    let mut agents = vec![definition];
    while let Some(agent) = agents.pop() {
        let tools = models.entry(&agent.model).or_default();
        tools.extend(holdpoint_engine::offered(agent));
        agents.extend(agent.subagents.iter().map(|subagent| &subagent.definition));
    }
    models
}
