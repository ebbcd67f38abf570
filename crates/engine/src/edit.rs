//! Tells whether edited arguments would fit, before they are sent as an answer.

use holdpoint_core::{ActionId, Params};
use holdpoint_store::ThreadKey;

use crate::{Engine, Error};

impl Engine {
    /// Checks arguments against the schema of an open action's tool, so that a door can ask again at once. The answer is
    /// checked in any case when it comes.
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
        let agent = self.agent(&key.tenant, action.definition).await?;
        Ok(agent.check(&action.tool.name, args))
    }
}
