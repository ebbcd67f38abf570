//! From a definition's model reference to the model.

use std::{path::Path, sync::Arc};

use holdpoint_core::{KeyFrom, McpServer, ToolSpec};
use holdpoint_yaml::Problem;

use crate::{
    BadScenario, Model, Scripted,
    breaker::Breakers,
    provided::{Clients, Provided, base_of, is_elsewhere},
    route::{Candidate, Route},
    secret::{in_file, variable_text},
};

/// Why a reference leads to no model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoSuchModel {
    /// Nobody provides such models.
    #[error(
        "nobody provides the model `{reference}`; write `PROVIDER:MODEL`, for instance `openai:gpt-4o`, or `scripted:/absolute/path.yaml`; known are {known}"
    )]
    UnknownProvider {
        /// As it was written.
        reference: String,
        /// The providers that there are.
        known: String,
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

/// Everybody who provides models to this process. Clones are the same: they share connections, and what is known of who
/// does not answer right now.
#[derive(Debug, Clone, Default)]
pub struct Providers {
    known: Arc<holdpoint_core::Providers>,
    clients: Arc<Clients>,
    breakers: Breakers,
}

impl Providers {
    /// Those that are configured.
    #[must_use]
    pub fn new(known: holdpoint_core::Providers) -> Self {
        Self {
            known: Arc::new(known),
            ..Self::default()
        }
    }

    /// What is known of them.
    #[must_use]
    pub fn known(&self) -> &holdpoint_core::Providers {
        &self.known
    }

    /// The model that a reference names. Reads the scenario file of a scripted one; nobody is connected to.
    ///
    /// # Errors
    ///
    /// An unknown provider, or a scenario that cannot be played.
    pub fn resolve(&self, reference: &str) -> Result<Arc<dyn Model>, NoSuchModel> {
        if let Some((name, provider, model)) = self.known.named(reference) {
            let clients = Arc::clone(&self.clients);
            let provided = Provided::new(reference, name, model, provider, clients);
            return Ok(Arc::new(provided));
        }
        Ok(Arc::new(self.scripted(reference)?))
    }

    /// A model that is answered by the first of these that can. One alone is just that one.
    ///
    /// # Panics
    ///
    /// Never: without any, it is a model that cannot be asked.
    #[must_use]
    pub fn route(&self, candidates: Vec<(String, Arc<dyn Model>)>) -> Arc<dyn Model> {
        if let [(_, only)] = candidates.as_slice() {
            return Arc::clone(only);
        }
        let candidates = candidates
            .into_iter()
            .map(|(reference, model)| Candidate { reference, model });
        Arc::new(Route::new(candidates.collect(), self.breakers.clone()))
    }

    /// What is probably not meant about an agent with this model and these tools: calls of tools that it does not have.
    ///
    /// # Errors
    ///
    /// As [`resolve`](Self::resolve).
    pub fn check(
        &self,
        reference: &str,
        tools: &[ToolSpec],
        servers: &[McpServer],
    ) -> Result<Vec<Problem>, NoSuchModel> {
        if self.known.named(reference).is_some() {
            return Ok(Vec::new());
        }
        Ok(self.scripted(reference)?.unknown_tools(tools, servers))
    }

    /// Why a model could not be asked right now, as far as that is seen from here: its key is missing, or the environment says that
    /// it is where it cannot be reached.
    #[must_use]
    pub fn not_ready(&self, reference: &str) -> Option<String> {
        let (name, provider, _) = self.known.named(reference)?;
        if let Err(why) = base_of(provider) {
            return Some(format!("`{name}` cannot be asked: {why}"));
        }
        match &provider.key {
            KeyFrom::Nowhere => None,
            KeyFrom::Variable(_) if is_elsewhere(provider) => None,
            KeyFrom::Variable(variable) if variable_text(variable).is_none() => Some(format!(
                "the key of `{name}` is not here: the environment has no `{variable}`"
            )),
            KeyFrom::Variable(_) => None,
            KeyFrom::File(path) => in_file(path).err(),
        }
    }

    fn scripted(&self, reference: &str) -> Result<Scripted, NoSuchModel> {
        match reference.split_once(':') {
            Some(("scripted", path)) if Path::new(path).is_absolute() => {
                Ok(Scripted::load(Path::new(path))?)
            }
            Some(("scripted", _)) => Err(NoSuchModel::RelativePath {
                reference: reference.to_owned(),
            }),
            Some(_) | None => Err(NoSuchModel::UnknownProvider {
                reference: reference.to_owned(),
                known: self.known.names().collect::<Vec<_>>().join(", "),
            }),
        }
    }
}

/// The model that a reference names, where nothing is configured.
///
/// # Errors
///
/// As [`Providers::resolve`].
pub fn resolve(reference: &str) -> Result<Arc<dyn Model>, NoSuchModel> {
    Providers::default().resolve(reference)
}
