//! An agent's file together with its scenario, as this machine would run it.

use std::path::Path;

use holdpoint_core::Definition;
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
    match holdpoint_models::check(&definition.model, &definition.tools) {
        Ok(more) => warnings.extend(more),
        Err(error) => {
            let name = file.display().to_string();
            let problems = if let NoSuchModel::Scenario(bad) = &error {
                bad.problems().to_vec()
            } else {
                vec![Problem::of_file(&name, &error.to_string())]
            };
            return Err(Refused {
                code: "model_unusable",
                what: format!("the model of `{name}`"),
                problems,
            });
        }
    }
    Ok(Loaded {
        definition,
        warnings,
    })
}
