//! What requesters may do now: a run that waited for days goes on with the permissions of today.

use std::{collections::BTreeSet, fmt::Debug};

use async_trait::async_trait;
use holdpoint_core::{ActionId, Actor, Principal, Subject};
use holdpoint_store::Unavailable;

use crate::{Engine, Error, Request, answer::Given, thread::Thread};

/// Somebody who knows what people may do now.
#[async_trait]
pub trait Rights: Debug + Send + Sync {
    /// The permissions that they have now; `None` where nobody here knows, and those they came with count.
    ///
    /// # Errors
    ///
    /// It cannot be found out now. Nothing is done then.
    async fn of(&self, actor: &Actor) -> Result<Option<BTreeSet<String>>, Unavailable>;
}

impl Engine {
    /// A requester with what they may do now, as far as anybody here knows.
    pub(crate) async fn with_rights_of_now(
        &self,
        requester: &Principal,
    ) -> Result<Principal, Error> {
        let mut requester = requester.clone();
        if let Some(rights) = self.agents().rights()
            && let Some(permissions) = rights.of(&requester.actor).await?
        {
            requester.permissions = permissions;
        }
        Ok(requester)
    }

    /// The calls that a question is about and whose requester lacks a permission by now, with that permission.
    pub(crate) async fn lacking(
        &self,
        request: &Request,
        thread: &Thread,
        given: &Given,
    ) -> Result<Vec<(ActionId, String)>, Error> {
        let mut lacking = Vec::new();
        let state = &thread.state;
        let (Some(run), Some(interrupt)) = (&state.run, state.interrupts.get(&given.interrupt))
        else {
            return Ok(lacking);
        };
        let mut of_now = None;
        for ask in &interrupt.asks {
            let Subject::Action { .. } = ask.subject else {
                continue;
            };
            let Some(action) = state.actions.get(&ask.action_id) else {
                continue;
            };
            let root = self.agent(&thread.key.tenant, action.definition).await?;
            let Some(agent) = root.at(&action.frame) else {
                continue;
            };
            let tool = &action.tool.name;
            if !agent.is_restricted(tool) {
                continue;
            }
            let requester = match of_now.take() {
                Some(requester) => requester,
                // Whoever answers with a key or a session of their own has just shown what they may do.
                None if request.by.actor == run.requester.actor && given.bond.pass.is_none() => {
                    request.by.clone()
                }
                None => self.with_rights_of_now(&run.requester).await?,
            };
            let missing = agent.forbids(tool, &requester);
            lacking.extend(missing.map(|missing| (ask.action_id, missing.to_owned())));
            of_now = Some(requester);
        }
        Ok(lacking)
    }
}
