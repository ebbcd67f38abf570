//! What a door can find out beforehand. It binds nobody: whatever is sent is checked again when it comes.

use holdpoint_core::{
    ActionId, Breakpoints, Command, Context, Digest, Limits, Params, Principal, Supersede, decide,
};
use holdpoint_store::ThreadKey;

use crate::{Engine, Error, thread::fresh_seed};

impl Engine {
    /// Whether a thread takes a new input, so that a door can refuse one before it changes anything else.
    ///
    /// # Errors
    ///
    /// The refusal that a start would get; the store fails.
    pub async fn check_start(
        &self,
        by: &Principal,
        key: &ThreadKey,
        agent: &str,
        session: &str,
    ) -> Result<(), Error> {
        let state = self.state(key).await?.unwrap_or_default();
        let now = self.store().now();
        let mut context = Context {
            now,
            by: by.clone(),
            seed: fresh_seed(now)?,
        };
        let command = Command::StartRun {
            thread: key.thread,
            tenant: key.tenant.to_string(),
            agent: agent.to_owned(),
            session: session.to_owned(),
            definition: Digest::default(),
            input: String::new(),
            limits: Limits::default(),
            breakpoints: Breakpoints::default(),
            supersede: Supersede::Nothing,
        };
        decide(&state, command, &mut context)?;
        Ok(())
    }

    /// Checks arguments against the schema of an open action's tool, so that a door can ask again at once.
    ///
    /// The inner error says what does not fit, for a person to read.
    ///
    /// # Errors
    ///
    /// The store fails, or the action's definition cannot be used.
    pub async fn check_args(
        &self,
        key: &ThreadKey,
        action: ActionId,
        args: &Params,
    ) -> Result<Result<(), String>, Error> {
        let state = self.state(key).await?.unwrap_or_default();
        let Some(action) = state.actions.get(&action) else {
            return Ok(Ok(()));
        };
        let root = self.agent(&key.tenant, action.definition).await?;
        Ok(match root.at(&action.frame) {
            Some(agent) => agent.check(&action.tool.name, args),
            None => Ok(()),
        })
    }
}
