//! A person's answer: checked against schemas, policy and the current definition before it is submitted.

use holdpoint_core::{
    Action, ActionId, Answer, Answers, Ask, Bond, Command, Context, Decision, Digest, Index,
    IndexRow, InterruptId, InterruptKind, InterruptStatus, Principal, Prompt, Refusal, Reply,
    RestatedCall, RunId, State, Subject, ThreadKind, Timestamp, Verdict, closing, decide,
    decode_records,
};
use holdpoint_store::{Head, ThreadKey};
use serde_json::{Map, Value};

use crate::{
    Engine, Error, Request, Submitted,
    agent::Current,
    driver::{OUTDATED, Order, Standing},
    guard,
    judge::{self, Caller},
    question::each_problem,
    thread::{Thread, engine_principal, fresh_seed},
};

/// An answer to one question.
#[derive(Debug, Clone)]
pub(crate) struct Given {
    pub(crate) interrupt: InterruptId,
    pub(crate) answer: Answer,
    /// What it is bound to besides the question.
    pub(crate) bond: Bond,
}

impl Given {
    fn free((interrupt, answer): (InterruptId, Answer)) -> Self {
        Self {
            interrupt,
            answer,
            bond: Bond::default(),
        }
    }
}

/// What an answer is checked against.
struct Basis {
    thread: Thread,
    /// Where it was read and is there.
    head: Option<Head>,
    /// The definition of its agent that is the current one.
    current: Option<Current>,
    known: Known,
}

/// How something is known.
#[derive(Clone, Copy)]
enum Known {
    /// It was just read.
    Read,
    /// It was so when this process last saw it.
    Remembered,
}

impl Engine {
    /// Answers a pending interrupt.
    ///
    /// # Errors
    ///
    /// The answer is refused, and nothing has changed; or the question was stale, and stands anew.
    pub async fn answer(
        &self,
        request: impl Into<Request>,
        key: &ThreadKey,
        interrupt: InterruptId,
        answer: Answer,
    ) -> Result<Submitted, Error> {
        self.answer_all(request, key, vec![(interrupt, answer)])
            .await
    }

    /// Answers what a run asks: its only pending interrupt, or those that are named.
    ///
    /// # Errors
    ///
    /// As [`Engine::answer_all`]; it asks nothing, or several things.
    pub async fn answer_run(
        &self,
        request: impl Into<Request>,
        key: &ThreadKey,
        run: RunId,
        answers: Answers,
    ) -> Result<Submitted, Error> {
        let request = request.into();
        let answered = async {
            let state = self.state(key).await?.ok_or(Refusal::NotFound)?;
            let answers = meant(&state, run, answers, self.store().now())?;
            let answers = answers.into_iter().map(Given::free).collect();
            self.answer_once(&request, key, answers).await
        };
        self.once(&request, Box::pin(answered)).await
    }

    /// Answers several pending interrupts of a thread: all of these answers are taken, or none.
    ///
    /// # Errors
    ///
    /// One of them is refused, and nothing has changed; or a question was stale, and stands anew.
    pub async fn answer_all(
        &self,
        request: impl Into<Request>,
        key: &ThreadKey,
        answers: Vec<(InterruptId, Answer)>,
    ) -> Result<Submitted, Error> {
        let request = request.into();
        let answers = answers.into_iter().map(Given::free).collect();
        let answered = self.answer_once(&request, key, answers);
        self.once(&request, Box::pin(answered)).await
    }

    pub(crate) async fn answer_once(
        &self,
        request: &Request,
        key: &ThreadKey,
        answers: Vec<Given>,
    ) -> Result<Submitted, Error> {
        if let Some(remembered) = self.remembered(key).await? {
            match self.answer_on(request, remembered, answers.clone()).await {
                // It may have changed elsewhere. Only what is read counts against an answer.
                Err(Error::Refused(_)) => {}
                other => return other,
            }
        }
        let read = self.read(key).await?;
        match self.answer_on(request, read, answers).await {
            Err(Error::Refused(refusal)) => Err(self.explain(key, refusal).await?),
            other => other,
        }
    }

    /// What this process knows of a thread that it parked itself. It reads nothing: an append finds out whether it is so still.
    async fn remembered(&self, key: &ThreadKey) -> Result<Option<Basis>, Error> {
        let Some(parked) = self.recent().take(key) else {
            return Ok(None);
        };
        if parked.state.kind != ThreadKind::Agent {
            return Ok(None);
        }
        let agent = &parked.state.agent;
        let current = self.agents().last_seen(self.store(), &key.tenant, agent);
        let current = current.await?;
        let thread = Thread {
            key: key.clone(),
            state: parked.state,
            epoch: parked.epoch,
            transcript: Some(parked.transcript),
        };
        Ok(Some(Basis {
            thread,
            head: None,
            current,
            known: Known::Remembered,
        }))
    }

    async fn read(&self, key: &ThreadKey) -> Result<Basis, Error> {
        let head = self.store().load(key).await?;
        let thread = self.thread(key, head.as_ref())?;
        let current = match thread.state.kind {
            ThreadKind::Agent if head.is_some() => self.current(key, &thread.state.agent).await?,
            ThreadKind::Agent | ThreadKind::Outside | ThreadKind::Grant => None,
        };
        Ok(Basis {
            thread,
            head,
            current,
            known: Known::Read,
        })
    }

    async fn answer_on(
        &self,
        request: &Request,
        basis: Basis,
        answers: Vec<Given>,
    ) -> Result<Submitted, Error> {
        let Basis {
            thread,
            head,
            current,
            known,
        } = basis;
        let key = thread.key.clone();
        let mut replies = Vec::with_capacity(answers.len());
        for given in answers {
            let lacking = self.lacking(request, &thread, &given).await?;
            let Given {
                interrupt,
                answer,
                bond,
            } = given;
            let mut misfits = self.misfits(&thread, interrupt, &answer).await?;
            let edited = self.show_edited(&thread, interrupt, &answer, &mut misfits);
            let shown = edited.await?;
            replies.push(Reply {
                interrupt,
                answer,
                misfits,
                lacking,
                shown,
                bond,
            });
        }
        let command = Command::Answer {
            answers: replies.clone(),
        };
        let now = self.store().now();
        let mut context = Context {
            now,
            by: request.by.clone(),
            seed: fresh_seed(now)?,
        };
        // Gates are passed in their order: the tool's version is looked at only once the answer fits.
        decide(&thread.state, command.clone(), &mut context)?;
        // An answer is only taken by whoever could go on with it: what it allows, and what the model says to it.
        if let Some(run) = &thread.state.run
            && thread.state.kind == ThreadKind::Agent
        {
            self.agent(&key.tenant, run.definition).await?;
        }
        for reply in &replies {
            if let Some(current) = current
                && let Some(restate) = self.stale(&thread, reply, current).await?
            {
                return Err(match known {
                    Known::Read => self.ask_again(&key, reply.interrupt, restate).await?,
                    Known::Remembered => OUTDATED.into(),
                });
            }
        }
        let mut order = request.order(command);
        order.relies_on = match known {
            Known::Read => None,
            Known::Remembered => current,
        };
        self.submit_on(thread, head.as_ref(), order).await
    }

    /// Asks a question again whose subject has changed.
    async fn ask_again(
        &self,
        key: &ThreadKey,
        interrupt: InterruptId,
        restate: Command,
    ) -> Result<Error, Error> {
        let by = engine_principal(&key.tenant);
        let order = Order::new(restate, by);
        let Standing { state, .. } = self.append_open(key, order).await?;
        let again = state
            .interrupts
            .values()
            .find(|new| new.supersedes == Some(interrupt));
        Ok(match again {
            Some(new) => Refusal::StaleQuestion {
                old: interrupt,
                new: new.id,
            }
            .into(),
            None => Refusal::NotPending { interrupt }.into(),
        })
    }

    /// What of an answer fits no schema, or no policy.
    async fn misfits(
        &self,
        thread: &Thread,
        interrupt: InterruptId,
        answer: &Answer,
    ) -> Result<Vec<(ActionId, String)>, Error> {
        let mut misfits = Vec::new();
        let Some(interrupt) = thread.state.interrupts.get(&interrupt) else {
            return Ok(misfits);
        };
        let Ok(assigned) = interrupt.assign(answer, &thread.state) else {
            return Ok(misfits);
        };
        for (ask, decision) in assigned {
            let problem = match &decision {
                Decision::Edit { edited_action } => {
                    self.edit_problem(thread, ask, &edited_action.args).await?
                }
                Decision::Answer { value } => match &ask.subject {
                    Subject::Question { prompt, .. } => {
                        question_problem(interrupt.kind, prompt, value)
                    }
                    Subject::Action { .. }
                    | Subject::Effect { .. }
                    | Subject::Model
                    | Subject::Node { .. }
                    | Subject::Restored { .. }
                    | Subject::Output { .. }
                    // Core looks at the form itself.
                    | Subject::Confirmation { .. } => None,
                },
                // A bare yes chooses nothing, and puts nothing in.
                Decision::Approve { .. } => match &ask.subject {
                    Subject::Question { prompt, .. } => {
                        let mut yes = Map::from_iter([("approved".to_owned(), true.into())]);
                        if prompt.input_schema.is_some() {
                            yes.insert("input".to_owned(), Value::Null);
                        }
                        question_problem(interrupt.kind, prompt, &yes.into())
                    }
                    Subject::Action { .. }
                    | Subject::Effect { .. }
                    | Subject::Model
                    | Subject::Node { .. }
                    | Subject::Restored { .. }
                    | Subject::Output { .. }
                    | Subject::Confirmation { .. } => None,
                },
                Decision::Reject { .. }
                | Decision::Respond { .. }
                | Decision::Committed { .. }
                | Decision::NotCommitted
                | Decision::Compensate => None,
            };
            misfits.extend(problem.map(|problem| (ask.action_id, problem)));
        }
        Ok(misfits)
    }

    /// Edited arguments must fit the tool's schema, the policy must not deny them, and guardrails must find nothing in them
    /// that was not shown.
    async fn edit_problem(
        &self,
        thread: &Thread,
        ask: &Ask,
        args: &holdpoint_core::Params,
    ) -> Result<Option<String>, Error> {
        let Some(action) = thread.state.actions.get(&ask.action_id) else {
            return Ok(None);
        };
        let root = self.agent(&thread.key.tenant, action.definition).await?;
        let Some(agent) = root.at(&action.frame) else {
            return Ok(None);
        };
        if let Err(misfit) = agent.check(&action.tool.name, args) {
            return Ok(Some(misfit));
        }
        let user = self.requester_of(&thread.state, action, &[&root]).await?;
        let (Some(user), Some(tool)) = (user, agent.facts(&action.tool.name, args)) else {
            return Ok(None);
        };
        let caller = caller(&root, action, &user);
        let denied = caller.verdict(&tool, args).verdict == Verdict::Deny;
        if denied {
            let denied = "the policy does not allow the tool with these arguments";
            return Ok(Some(denied.to_owned()));
        }
        Ok(guard::edit_problem(caller, action, ask, args).await)
    }

    /// The command that asks again, where a tool that the answer would let run has changed.
    async fn stale(
        &self,
        thread: &Thread,
        reply: &Reply,
        current: Current,
    ) -> Result<Option<Command>, Error> {
        let id = reply.interrupt;
        let Some(interrupt) = thread.state.interrupts.get(&id) else {
            return Ok(None);
        };
        let Ok(assigned) = interrupt.assign(&reply.answer, &thread.state) else {
            return Ok(None);
        };
        let mut calls = Vec::new();
        for (ask, decision) in assigned {
            let runs = matches!(decision, Decision::Approve { .. } | Decision::Edit { .. });
            let Some(action) = thread.state.actions.get(&ask.action_id) else {
                continue;
            };
            if runs && matches!(ask.subject, Subject::Action { .. }) {
                calls.extend(self.drift(thread, action, current).await?);
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
        thread: &Thread,
        action: &Action,
        current: Current,
    ) -> Result<Option<RestatedCall>, Error> {
        if current.digest() == action.definition {
            return Ok(None);
        }
        let tenant = &thread.key.tenant;
        let pinned = self.agent(tenant, action.definition).await?;
        let current = self.agent(tenant, current.digest()).await?;
        let agents = [&*pinned, &*current];
        let Some(user) = self.requester_of(&thread.state, action, &agents).await? else {
            return Ok(None);
        };
        Ok(judge::drift(
            action,
            &pinned,
            caller(&current, action, &user),
        ))
    }

    /// The row that says where a question of this thread was closed.
    async fn closed_row(
        &self,
        key: &ThreadKey,
        interrupt: InterruptId,
    ) -> Result<Option<IndexRow>, Error> {
        let row = self.row_of(&key.tenant, Index::Closed, interrupt).await?;
        Ok(row.filter(|row| row.thread == key.thread))
    }

    /// Adds to a refusal who decided before, which only the journal knows.
    pub(crate) async fn explain(&self, key: &ThreadKey, refusal: Refusal) -> Result<Error, Error> {
        if let Refusal::Expired { .. } = refusal {
            // What is due is done by whoever sees it.
            let by = engine_principal(&key.tenant);
            let command = Command::Tick;
            self.append_open(key, Order::new(command, by)).await?;
        }
        let Refusal::NotPending { interrupt } = refusal else {
            return Ok(refusal.into());
        };
        let mut row = self.closed_row(key, interrupt).await?;
        if row.is_none() {
            let state = self.state(key).await?;
            if state.is_some_and(|state| state.interrupts.contains_key(&interrupt)) {
                // A driver found it due just then, and what it did about that was dropped together with the answer.
                let expired = Refusal::Expired { interrupt };
                return Box::pin(self.explain(key, expired)).await;
            }
            // It was closed between these two looks, if it ever was.
            row = self.closed_row(key, interrupt).await?;
        }
        let Some(row) = row else {
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
                Some(closing) if closing.status == InterruptStatus::Timeout => {
                    Refusal::Expired { interrupt }.into()
                }
                Some(closing) => Error::AlreadyDecided {
                    interrupt,
                    status: closing.status,
                    by: closing.by,
                    token: closing.token,
                },
                None => Refusal::NotPending { interrupt }.into(),
            },
        )
    }
}

/// The interrupts of a run that these answers are for.
fn meant(
    state: &State,
    run: RunId,
    answers: Answers,
    now: Timestamp,
) -> Result<Vec<(InterruptId, Answer)>, Error> {
    let pending = |id: &InterruptId| state.interrupts.get(id).filter(|it| it.run == run);
    match answers {
        Answers::ByInterrupt(answers) => {
            // One that is closed may be named: who was faster is told further on. One of another run may not.
            let foreign =
                |id: &InterruptId| state.interrupts.contains_key(id) && pending(id).is_none();
            match answers.iter().map(|(id, _)| *id).find(foreign) {
                Some(interrupt) => Err(Refusal::NotPending { interrupt }.into()),
                None => Ok(answers),
            }
        }
        Answers::Only(answer) => {
            let ids: Vec<InterruptId> = state.interrupts.keys().copied().collect();
            let ids: Vec<InterruptId> =
                ids.into_iter().filter(|id| pending(id).is_some()).collect();
            match ids.as_slice() {
                pending if !pending.is_empty() && state.was_just_answered(now) => {
                    let pending = pending.to_vec();
                    Err(Refusal::JustAnswered { pending }.into())
                }
                [only] => Ok(vec![(*only, answer)]),
                [] => Err(Error::NothingPending),
                several => Err(Error::Ambiguous {
                    pending: several.to_vec(),
                }),
            }
        }
    }
}

/// Whose call an action is, by this definition.
pub(crate) const fn caller<'a>(
    root: &'a crate::Agent,
    action: &'a Action,
    user: &'a Principal,
) -> Caller<'a> {
    let frame = &action.frame;
    Caller { root, frame, user }
}

/// Why this is no answer to a question.
fn question_problem(kind: InterruptKind, prompt: &Prompt, value: &Value) -> Option<String> {
    if let Some(unfit) = prompt.misfit(kind, value) {
        return Some(unfit.to_string());
    }
    match each_problem(prompt, value, 3, &|error| error.to_string()) {
        Ok(found) => (!found.is_empty()).then(|| found.join("; ")),
        Err(problem) => Some(problem),
    }
}
