//! From a definition's model reference to the model.

use std::{path::Path, sync::Arc};

use holdpoint_core::ToolSpec;
use holdpoint_yaml::Problem;

use crate::{BadScenario, Model, Scripted};

/// Why a reference leads to no model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoSuchModel {
    /// Nobody provides such models.
    #[error("nobody provides the model `{reference}`; possible is: `scripted:/absolute/path.yaml`")]
    UnknownProvider {
        /// As it was written.
        reference: String,
    },
    /// A scenario that would be another one in another folder.
    #[error("the path in `{reference}` must be absolute")]
    RelativePath {
        /// As it was written.
        reference: String,
    },
    /// The scenario file is missing or wrong.
    #[error(transparent)]
    Scenario(#[from] BadScenario),
}

/// The model that a reference names. Reads the scenario file of a scripted one.
///
/// # Errors
///
/// An unknown provider, or a scenario that cannot be played.
pub fn resolve(reference: &str) -> Result<Arc<dyn Model>, NoSuchModel> {
    Ok(Arc::new(scripted(reference)?))
}

/// What is probably not meant about an agent with this model and these tools: calls of tools that it does not have.
///
/// # Errors
///
/// As [`resolve`].
pub fn check(reference: &str, tools: &[ToolSpec]) -> Result<Vec<Problem>, NoSuchModel> {
    Ok(scripted(reference)?.unknown_tools(tools))
}

fn scripted(reference: &str) -> Result<Scripted, NoSuchModel> {
    match reference.split_once(':') {
        Some(("scripted", path)) if Path::new(path).is_absolute() => {
            Ok(Scripted::load(Path::new(path))?)
        }
        Some(("scripted", _)) => Err(NoSuchModel::RelativePath {
            reference: reference.to_owned(),
        }),
        Some(_) | None => Err(NoSuchModel::UnknownProvider {
            reference: reference.to_owned(),
        }),
    }
}
