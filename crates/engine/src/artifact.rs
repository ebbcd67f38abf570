//! Results that are too long for a conversation: kept apart before anything tells of them, and read again by their address.

use holdpoint_core::{
    Action, Artifact, ArtifactAddress, Builtin, Lookup, MAX_ARTIFACT, Outcome, Params, Rest, Role,
    Runner, State, ToolSpec, Transcript, content_of, cut, keep_artifact, read_artifact,
};
use holdpoint_store::{ThreadKey, failpoint};
use holdpoint_tools::{kept_path, no_such_kept, read_kept};
use serde_json::Value;

use crate::{Agent, Engine, Error};

/// A result as an event has it: all of it, or both ends and what is kept apart.
pub(crate) type Told<T> = (T, Option<Box<Artifact>>);

impl Agent {
    /// Whether its model can read what is kept apart.
    fn reads_artifacts(&self) -> bool {
        self.definition.tools.iter().any(is_reader)
    }

    /// The path by which this call wants to read what is kept apart, if it wants to.
    pub(crate) fn asks_for_kept(&self, action: &Action) -> Option<String> {
        let mut tools = self.definition.tools.iter();
        let spec = tools.find(|spec| spec.name == action.tool.name)?;
        let is_call = action.role == Role::Call;
        (is_call && is_reader(spec))
            .then(|| kept_path(&action.params))
            .flatten()
    }
}

fn is_reader(spec: &ToolSpec) -> bool {
    matches!(
        spec.runner,
        Runner::Builtin {
            tool: Builtin::ReadFile,
            ..
        }
    )
}

/// A result that a call wants to read, found in the conversation that the call belongs to.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    path: String,
    artifact: Option<Artifact>,
}

impl Found {
    /// Looks for it. What another conversation has is not found here.
    pub(crate) fn new(path: String, transcript: &Transcript) -> Self {
        let address: Option<ArtifactAddress> = path.parse().ok();
        let artifact = address.and_then(|address| transcript.artifact(&address).cloned());
        Self { path, artifact }
    }
}

impl Engine {
    /// Keeps what a call reported apart, where that is too long.
    pub(crate) async fn keep_outcome(
        &self,
        key: &ThreadKey,
        agent: &Agent,
        action: &Action,
        attempt: u32,
        outcome: Outcome,
    ) -> Told<Outcome> {
        let tool = &action.tool.name;
        let address = || ArtifactAddress::of_result(tool, action.id, attempt);
        match outcome {
            Outcome::Done { content } => {
                let (content, artifact) = self.keep(key, agent, action, address, content).await;
                (Outcome::Done { content }, artifact)
            }
            Outcome::Failed { error } => {
                let (error, artifact) = self.keep(key, agent, action, address, error).await;
                (Outcome::Failed { error }, artifact)
            }
            // It is what was seen of the call, and no result.
            Outcome::Unknown { reason } => {
                let short = cut(&reason).map(|cut| cut.excerpt(Rest::Gone));
                let reason = short.unwrap_or(reason);
                (Outcome::Unknown { reason }, None)
            }
        }
    }

    /// Keeps what a tool said of a call apart, where that is too long.
    pub(crate) async fn keep_lookup(
        &self,
        key: &ThreadKey,
        agent: &Agent,
        action: &Action,
        lookup: Lookup,
    ) -> Told<Lookup> {
        let address = || ArtifactAddress::of_receipt(&action.tool.name, action.id, action.attempts);
        match lookup {
            Lookup::Committed { receipt } => {
                let (receipt, kept) = self
                    .keep_receipt(key, agent, action, address, receipt)
                    .await;
                (Lookup::Committed { receipt }, kept)
            }
            Lookup::Partial { receipt } => {
                let (receipt, kept) = self
                    .keep_receipt(key, agent, action, address, receipt)
                    .await;
                (Lookup::Partial { receipt }, kept)
            }
            Lookup::NotFound | Lookup::Unknown { .. } => (lookup, None),
        }
    }

    async fn keep_receipt(
        &self,
        key: &ThreadKey,
        agent: &Agent,
        action: &Action,
        address: impl FnOnce() -> ArtifactAddress,
        receipt: Value,
    ) -> Told<Value> {
        let text = content_of(&receipt);
        if cut(&text).is_none() {
            return (receipt, None);
        }
        match self.keep(key, agent, action, address, text).await {
            (ends, Some(artifact)) => (Value::String(ends), Some(artifact)),
            // What could not be kept apart stays as it is, unless that is too much.
            (ends, None) if cut(&ends).is_none() => (Value::String(ends), None),
            (_, None) => (receipt, None),
        }
    }

    async fn keep(
        &self,
        key: &ThreadKey,
        agent: &Agent,
        action: &Action,
        address: impl FnOnce() -> ArtifactAddress,
        text: String,
    ) -> Told<String> {
        let Some(cut) = cut(&text) else {
            return (text, None);
        };
        // What a step returned is given to its tool again and again, which needs all of it.
        if action.step.is_some() {
            return (text, None);
        }
        if text.len() > MAX_ARTIFACT {
            return (cut.excerpt(Rest::Gone), None);
        }
        let address = address();
        let reader = agent.at(&action.frame);
        let ends = cut.excerpt(if reader.is_some_and(Agent::reads_artifacts) {
            Rest::Readable(&address)
        } else {
            Rest::Kept(&address)
        });
        let Ok((artifact, payload)) = keep_artifact(key.thread, address, &text) else {
            return (text, None);
        };
        // DURABILITY: it is there before anything refers to it.
        let kept = self
            .store()
            .put_blob(&key.tenant, payload, artifact.kept)
            .await;
        failpoint::hit("engine.artifact.kept");
        match kept {
            Ok(()) => (ends, Some(Box::new(artifact))),
            // A call that was made is never without its result: then it is in the journal.
            Err(_) => (text, None),
        }
    }

    /// What a call gets that reads what was kept apart.
    pub(crate) async fn read_found(&self, tenant: &str, args: &Params, found: &Found) -> Outcome {
        let Some(artifact) = &found.artifact else {
            return Outcome::failed(no_such_kept(&found.path));
        };
        match self.read_artifact(tenant, artifact).await {
            Ok(text) => match read_kept(args, &text) {
                Ok(content) => Outcome::Done { content },
                Err(error) => Outcome::Failed { error },
            },
            Err(Error::NotAsKept(error)) => Outcome::failed(error.to_string()),
            Err(error) => Outcome::unknown(error.to_string()),
        }
    }

    /// Reads a result that was kept apart.
    ///
    /// # Errors
    ///
    /// The store fails; or what it has is not what was kept, and then nothing is given in its place.
    pub async fn read_artifact(&self, tenant: &str, artifact: &Artifact) -> Result<String, Error> {
        let payload = self.store().blob(tenant, artifact.kept).await?;
        Ok(read_artifact(artifact, payload.as_ref())?)
    }

    /// What is kept apart of a thread's conversation up to a state that was read before, that before a fork included.
    ///
    /// # Errors
    ///
    /// As [`Engine::transcript`].
    pub async fn artifacts(&self, key: &ThreadKey, state: &State) -> Result<Vec<Artifact>, Error> {
        let transcript = self.transcript(key, state).await?;
        Ok(transcript.artifacts().to_vec())
    }
}
