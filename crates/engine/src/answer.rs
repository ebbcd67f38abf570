//! A person's answer: checked against the schema and the current definition before it is submitted.

use holdpoint_core::{
    Action, Answer, Command, Context, Decision, Digest, Index, InterruptId, Principal, Refusal,
    RestatedCall, Subject, closing, decide, decode_records,
};
use holdpoint_store::{Scan, ThreadKey};

use crate::{
    Engine, Error, Submitted,
    agent::Current,
    driver::Order,
    judge,
    thread::{Thread, engine_principal, fresh_seed},
};

impl Engine {
    /// Answers a pending interrupt.
    ///
    /// # Errors
    ///
    /// The answer is refused, and nothing has changed; or the question was stale, and stands anew.
    pub async fn answer(
        &self,
        by: &Principal,
        key: &ThreadKey,
        interrupt: InterruptId,
        answer: Answer,
    ) -> Result<Submitted, Error> {
        let head = self.store().load(key).await?;
        let thread = self.thread(key, head.as_ref())?;
        let misfits = self.misfits(&thread, interrupt, &answer).await?;
        let command = Command::Answer {
            interrupt,
            answer: answer.clone(),
            misfits,
        };
        let now = self.store().now();
        let mut context = Context {
            now,
            by: by.clone(),
            seed: fresh_seed(now)?,
        };
        // Gates are passed in their order: the tool's version is looked at only once the answer fits.
        if let Err(refusal) = decide(&thread.state, command.clone(), &mut context) {
            return Err(self.explain(key, refusal).await?);
        }
        // An answer is only taken by whoever could go on with it: what it allows, and what the model says to it.
        if let Some(run) = &thread.state.run {
            self.agent(&key.tenant, run.definition).await?;
        }
        if let Some(restate) = self.stale(&thread, interrupt, &answer).await? {
            let by = engine_principal(&key.tenant);
            let state = self
                .append_open(
                    key,
                    Order {
                        command: restate,
                        by,
                    },
                )
                .await?;
            let again = state
                .interrupts
                .values()
                .find(|new| new.supersedes == Some(interrupt));
            return Err(match again {
                Some(new) => Refusal::StaleQuestion {
                    old: interrupt,
                    new: new.id,
                }
                .into(),
                None => Refusal::NotPending { interrupt }.into(),
            });
        }
        let order = Order {
            command,
            by: by.clone(),
        };
        match self.submit_on(thread, head.as_ref(), order).await {
            Err(Error::Refused(refusal)) => Err(self.explain(key, refusal).await?),
            other => other,
        }
    }

    /// Edited arguments that do not fit their tool's schema.
    async fn misfits(
        &self,
        thread: &Thread,
        interrupt: InterruptId,
        answer: &Answer,
    ) -> Result<Vec<(holdpoint_core::ActionId, String)>, Error> {
        let mut misfits = Vec::new();
        let Some(interrupt) = thread.state.interrupts.get(&interrupt) else {
            return Ok(misfits);
        };
        let Ok(assigned) = interrupt.assign(answer, &thread.state) else {
            return Ok(misfits);
        };
        for (ask, decision) in assigned {
            let Some(action) = thread.state.actions.get(&ask.action_id) else {
                continue;
            };
            if let Decision::Edit { edited_action } = &decision {
                let agent = self.agent(&thread.key.tenant, action.definition).await?;
                if let Err(misfit) = agent.check(&action.tool.name, &edited_action.args) {
                    misfits.push((ask.action_id, misfit));
                }
            }
        }
        Ok(misfits)
    }

    /// The command that asks again, where a tool that the answer would let run has changed.
    async fn stale(
        &self,
        thread: &Thread,
        id: InterruptId,
        answer: &Answer,
    ) -> Result<Option<Command>, Error> {
        let Some(interrupt) = thread.state.interrupts.get(&id) else {
            return Ok(None);
        };
        let Ok(assigned) = interrupt.assign(answer, &thread.state) else {
            return Ok(None);
        };
        let Some(current) = self.current(&thread.key, &thread.state.agent).await? else {
            return Ok(None);
        };
        let mut calls = Vec::new();
        for (ask, decision) in assigned {
            let runs = matches!(decision, Decision::Approve | Decision::Edit { .. });
            let Some(action) = thread.state.actions.get(&ask.action_id) else {
                continue;
            };
            if runs && matches!(ask.subject, Subject::Action { .. }) {
                calls.extend(self.drift(&thread.key, action, current).await?);
            }
        }
        let definition = current.digest();
        Ok((!calls.is_empty()).then_some(Command::Restate {
            definition,
            interrupt: Some(id),
            calls,
        }))
    }

    /// Which definition of an agent is the current one.
    pub(crate) async fn current(
        &self,
        key: &ThreadKey,
        agent: &str,
    ) -> Result<Option<Current>, Error> {
        self.agents()
            .current(self.store(), &key.tenant, agent)
            .await
    }

    /// What the current definition changes for an action; `None` if nothing that matters.
    pub(crate) async fn drift(
        &self,
        key: &ThreadKey,
        action: &Action,
        current: Current,
    ) -> Result<Option<RestatedCall>, Error> {
        if current.digest() == action.definition {
            return Ok(None);
        }
        let pinned = self.agent(&key.tenant, action.definition).await?;
        let current = self.agent(&key.tenant, current.digest()).await?;
        Ok(judge::drift(action, &pinned, &current))
    }

    /// Adds to a refusal who decided before, which only the journal knows.
    async fn explain(&self, key: &ThreadKey, refusal: Refusal) -> Result<Error, Error> {
        let Refusal::NotPending { interrupt } = refusal else {
            return Ok(refusal.into());
        };
        let scan = Scan {
            index: Index::Closed,
            key: Some(interrupt.to_string()),
            up_to: None,
            after: None,
            limit: 1,
        };
        let rows = self.store().scan(&key.tenant, scan).await?;
        let Some(row) = rows.first().filter(|row| row.thread == key.thread) else {
            return Ok(Refusal::NotPending { interrupt }.into());
        };
        let seq = u64::try_from(row.sort).unwrap_or(0);
        let before = seq.saturating_sub(2);
        let records = self.store().read(key, before, 2).await?;
        // The record before only serves to check the link.
        let previous = if before + 1 == seq {
            Digest::default()
        } else {
            records
                .first()
                .map_or_else(Digest::default, |record| record.hash)
        };
        let last: Vec<_> = records
            .into_iter()
            .filter(|record| record.seq == seq)
            .collect();
        let entries = decode_records(previous, &last)?;
        Ok(
            match entries.first().and_then(|entry| closing(entry, interrupt)) {
                Some(closing) => Error::AlreadyDecided {
                    interrupt,
                    status: closing.status,
                    by: closing.by,
                },
                None => Refusal::NotPending { interrupt }.into(),
            },
        )
    }
}
