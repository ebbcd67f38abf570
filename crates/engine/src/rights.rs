//! What requesters may do now: a run that waited for days goes on with the permissions of today.

use std::{collections::BTreeSet, fmt::Debug};

use async_trait::async_trait;
use holdpoint_core::{Action, ActionId, Answer, Decision, Principal, State, Subject};
use holdpoint_store::Unavailable;

use crate::{Agent, Engine, Error, Question, Request, answer::Given, thread::Thread};

/// Somebody who knows what people may do now.
#[async_trait]
pub trait Rights: Debug + Send + Sync {
    /// The permissions that they have now; `None` where nobody here knows, and those they came with count. They never have
    /// more than those they came with.
    ///
    /// # Errors
    ///
    /// It cannot be found out now. Nothing is done then.
    async fn of(&self, requester: &Principal) -> Result<Option<BTreeSet<String>>, Unavailable>;
}

impl Engine {
    /// A requester with what they may do now, as far as anybody here knows.
    pub(crate) async fn with_rights_of_now(
        &self,
        requester: &Principal,
    ) -> Result<Principal, Error> {
        let requester = requester.clone();
        let Some(rights) = self.agents().rights() else {
            return Ok(requester);
        };
        Ok(match rights.of(&requester).await? {
            Some(now) => requester.limited_to(&now),
            None => requester,
        })
    }

    /// Who asked for the run of an action, with what they may do now if that matters for its tool, as any of these agents
    /// have it.
    pub(crate) async fn requester_of(
        &self,
        state: &State,
        action: &Action,
        agents: &[&Agent],
    ) -> Result<Option<Principal>, Error> {
        let Some(run) = &state.run else {
            return Ok(None);
        };
        let mut callers = agents.iter().filter_map(|root| root.at(&action.frame));
        Ok(Some(
            if callers.any(|agent| agent.is_restricted(&action.tool.name)) {
                self.with_rights_of_now(&run.requester).await?
            } else {
                run.requester.clone()
            },
        ))
    }

    /// The permission that the tool of an action needs and whoever asked for it does not have now.
    pub(crate) async fn lacking_now(
        &self,
        state: &State,
        action: &Action,
        root: &Agent,
    ) -> Result<Option<String>, Error> {
        let requester = self.requester_of(state, action, &[root]).await?;
        let (Some(requester), Some(agent)) = (requester, root.at(&action.frame)) else {
            return Ok(None);
        };
        let missing = agent.forbids(&action.tool.name, &requester);
        Ok(missing.map(str::to_owned))
    }

    /// The tools that a pending question is about whose calls nobody's approval lets run now, because whoever asked for the
    /// run has lost a permission that they need. It is only a look: what counts is how it is when it is answered.
    ///
    /// # Errors
    ///
    /// The store fails, or what is stored cannot be read.
    pub async fn not_permitted(&self, question: &Question) -> Result<Vec<String>, Error> {
        let thread = self.load(&question.key).await?;
        let state = &thread.state;
        let mut tools = Vec::new();
        for ask in &question.interrupt.asks {
            let action = state.actions.get(&ask.action_id);
            let is_call = matches!(ask.subject, Subject::Action { .. });
            let Some(action) = action.filter(|_| is_call) else {
                continue;
            };
            let root = self.agent(&question.key.tenant, action.definition).await?;
            if self.lacking_now(state, action, &root).await?.is_some() {
                tools.push(action.tool.name.clone());
            }
        }
        Ok(tools)
    }

    /// The calls that a question is about and whose requester lacks a permission by now, with that permission.
    pub(crate) async fn lacking(
        &self,
        request: &Request,
        thread: &Thread,
        given: &Given,
    ) -> Result<Vec<(ActionId, String)>, Error> {
        let mut lacking = Vec::new();
        if !may_let_run(&given.answer) {
            return Ok(lacking);
        }
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
                    run.requester.clone().limited_to(&request.by.permissions)
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

/// Whether an answer may let a call run that it was asked about. Saying no takes no look at what anybody may do.
fn may_let_run(answer: &Answer) -> bool {
    let runs = |decision: &Decision| match decision {
        Decision::Approve { .. } | Decision::Edit { .. } => true,
        Decision::Reject { .. }
        | Decision::Respond { .. }
        | Decision::Committed { .. }
        | Decision::NotCommitted
        | Decision::Compensate
        | Decision::Answer { .. } => false,
    };
    match answer {
        Answer::All(decision) => runs(decision),
        Answer::ByPosition(decisions) => decisions.iter().any(runs),
        Answer::ById(decisions) => decisions.iter().any(|(_, decision)| runs(decision)),
    }
}
