//! Creating, waiting, resolving, listing.

use std::{fmt, sync::Arc};

use holdpoint_core::{
    InterruptId, InterruptKind, InterruptStatus, Misfit, Principal, PrincipalKind, Refusal,
    ThreadKind,
};
use holdpoint_engine::{Engine, Error, News, Question, question::Reply};
use holdpoint_store::{AppendError, CellChange, CellThen, Space};

use super::{
    HandlerFailure, Interrupt, InterruptHandler, InterruptOptions, ManagerError, Page, Response,
    handler::{Handlers, Registered},
    outcome::outcome,
};

type Log = Arc<dyn Fn(&HandlerFailure) + Send + Sync>;

/// Creates interrupts, waits for them and resolves them. Cheap to clone.
///
/// An interrupt is closed once: whoever comes second is told who was first. It is closed in the store, and only then is
/// anybody told; where the store fails, it is pending still and can be resolved later.
#[derive(Clone)]
pub struct InterruptManager {
    engine: Engine,
    by: Principal,
    handlers: Handlers,
    log: Option<Log>,
}

impl fmt::Debug for InterruptManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InterruptManager")
            .field("by", &self.by.actor)
            .field("handlers", &self.handlers.names())
            .finish_non_exhaustive()
    }
}

impl InterruptManager {
    /// A manager of the interrupts in this engine's store, within the tenant of this principal, who asks.
    #[must_use]
    pub fn new(engine: Engine, by: Principal) -> Self {
        Self {
            engine,
            by,
            handlers: Handlers::default(),
            log: None,
        }
    }

    /// With something to tell of handlers that fail.
    #[must_use]
    pub fn with_log(mut self, log: impl Fn(&HandlerFailure) + Send + Sync + 'static) -> Self {
        self.log = Some(Arc::new(log));
        self
    }

    fn tenant(&self) -> &str {
        &self.by.actor.tenant
    }
}

/// Asking, and waiting.
impl InterruptManager {
    /// Creates an interrupt and waits for the response. One that is not approved is a response, too.
    ///
    /// # Errors
    ///
    /// As [`create_pending`](Self::create_pending) and [`wait`](Self::wait).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the interrupt as it is; creating it again waits for the same one. With
    /// [`bind_to_caller`](InterruptOptions::bind_to_caller) it is canceled instead, once it was saved.
    pub async fn create(&self, options: InterruptOptions) -> Result<Response, ManagerError> {
        let bound = options.bind_to_caller;
        let id = self.create_pending(options).await?.id;
        let bond = bound.then(|| Bond {
            manager: self.clone(),
            id: Some(id),
        });
        let response = self.wait(id).await;
        if let Some(bond) = bond {
            bond.release();
        }
        response
    }

    /// Creates an interrupt and returns at once: it is saved, and the handlers of its kind are being told.
    ///
    /// Where the same question of the same node is pending, or was answered at the same checkpoint, that one is returned.
    ///
    /// # Errors
    ///
    /// The options do not fit; the node has another question pending; the store fails, and then nobody was told.
    pub async fn create_pending(
        &self,
        options: InterruptOptions,
    ) -> Result<Interrupt, ManagerError> {
        let asking = options.into_asking()?;
        let asked = match self.engine.ask(&self.by, asking).await {
            Ok(asked) => asked,
            Err(Error::BadQuestion(reason)) => return Err(ManagerError::invalid(reason)),
            Err(Error::Refused(Refusal::InterruptPending { pending })) if !pending.is_empty() => {
                let pending = pending[0];
                return Err(ManagerError::NodeBusy { pending });
            }
            Err(error) => return Err(error.into()),
        };
        // DURABILITY: it is saved. Only from here on may anybody hear of it.
        let interrupt = Interrupt::from(self.find(asked.interrupt).await?);
        match asked.news {
            News::New => self.tell(interrupt.clone(), |_| true),
            // Whoever created it may have died before everyone was told.
            News::Known | News::Replayed if interrupt.status == InterruptStatus::Pending => {
                self.tell(interrupt.clone(), |handler| !handler.name.is_empty());
            }
            News::Known | News::Replayed => {}
        }
        Ok(interrupt)
    }

    /// Waits until an interrupt is closed, here or by another process.
    ///
    /// # Errors
    ///
    /// [`Canceled`](ManagerError::Canceled), [`Timeout`](ManagerError::Timeout),
    /// [`NotFound`](ManagerError::NotFound); the store fails.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub async fn wait(&self, id: InterruptId) -> Result<Response, ManagerError> {
        loop {
            let waited = self.engine.wait(self.tenant(), id).await;
            let closed = match waited {
                Err(Error::Refused(Refusal::NotPending { .. })) => {
                    return Err(ManagerError::NotFound { id });
                }
                other => other?,
            };
            if let Some(outcome) = outcome(&closed) {
                return outcome;
            }
        }
    }
}

/// Reading.
impl InterruptManager {
    /// An interrupt as it stands.
    ///
    /// # Errors
    ///
    /// [`NotFound`](ManagerError::NotFound); the store fails.
    pub async fn get(&self, id: InterruptId) -> Result<Interrupt, ManagerError> {
        Ok(self.find(id).await?.into())
    }

    /// Interrupts by when they were created, then by id: of one workflow or of all, in one status or in any. An empty
    /// `workflow_id` is none.
    ///
    /// # Errors
    ///
    /// There is no interrupt that the page begins after; the store fails.
    pub async fn list(
        &self,
        workflow_id: Option<&str>,
        status: Option<InterruptStatus>,
        page: Page,
    ) -> Result<Vec<Interrupt>, ManagerError> {
        let workflow = workflow_id.filter(|id| !id.is_empty());
        let all = self.engine.outside_of(self.tenant(), workflow).await?;
        let all = self.up_to_date(all).await?;
        let start = match page.after {
            None => 0,
            Some(id) => {
                let at = all.iter().position(|it| it.interrupt.id == id);
                at.ok_or(ManagerError::NotFound { id })? + 1
            }
        };
        let wanted = |it: &Question| status.is_none_or(|status| it.status == status);
        let page = all.into_iter().skip(start).filter(wanted).take(page.limit);
        Ok(page.map(Interrupt::from).collect())
    }

    /// All pending interrupts of a workflow, or of all.
    ///
    /// # Errors
    ///
    /// The store fails.
    pub async fn pending(&self, workflow_id: Option<&str>) -> Result<Vec<Interrupt>, ManagerError> {
        let status = Some(InterruptStatus::Pending);
        self.list(workflow_id, status, Page::ALL).await
    }

    async fn find(&self, id: InterruptId) -> Result<Question, ManagerError> {
        let found = self.engine.question(self.tenant(), id).await?;
        // What an agent asks goes on with the agent, and so is not a manager's to answer.
        let found = found.filter(|it| it.asker == ThreadKind::Outside);
        let found = self.up_to_date(found.into_iter().collect()).await?;
        let mut found = found.into_iter();
        found.next().ok_or(ManagerError::NotFound { id })
    }

    /// Closes what nobody answered in time, so that nothing is shown as pending that can no longer be answered.
    async fn up_to_date(&self, mut all: Vec<Question>) -> Result<Vec<Question>, ManagerError> {
        let now = self.engine.store().now();
        for one in &mut all {
            let due = one.interrupt.due_at().is_some_and(|at| at <= now);
            if one.closed.is_none() && due {
                self.engine.tick(&one.key).await?.finish().await?;
                let id = one.interrupt.id;
                if let Some(closed) = self.engine.question(self.tenant(), id).await? {
                    *one = closed;
                }
            }
        }
        Ok(all)
    }
}

/// Closing.
impl InterruptManager {
    /// Resolves a pending interrupt. It is `resolved` if it is approved, and `rejected` otherwise.
    ///
    /// # Errors
    ///
    /// The response does not fit, and the interrupt stays pending; [`NotFound`](ManagerError::NotFound);
    /// [`AlreadyFinal`](ManagerError::AlreadyFinal); the store fails.
    pub async fn resolve(&self, id: InterruptId, response: Response) -> Result<(), ManagerError> {
        let found = self.find(id).await?;
        if let Some(closed) = already_final(&found) {
            return Err(closed);
        }
        // Whoever it says has decided: an agent is not believed.
        if !self.by.actor.may_decide() {
            let by = self.by.actor.to_string();
            return Err(ManagerError::Forbidden { by });
        }
        let by = match &response.user_id {
            Some(user) if user.is_empty() => {
                return Err(ManagerError::invalid("`user_id` is empty"));
            }
            Some(user) => Principal::new(PrincipalKind::User, self.tenant(), user),
            None => self.by.clone(),
        };
        let reply = Reply::Response(Box::new(response));
        match self
            .engine
            .respond(&by, &found, reply, Default::default())
            .await
        {
            // A run that only asks is over; there is nothing to drive.
            Ok(_) => Ok(()),
            Err(error) => Err(self.explain(id, error).await?),
        }
    }

    /// Rejects a pending interrupt.
    ///
    /// # Errors
    ///
    /// As [`resolve`](Self::resolve).
    pub async fn reject(
        &self,
        id: InterruptId,
        comment: impl Into<String>,
    ) -> Result<(), ManagerError> {
        self.resolve(id, Response::reject(comment)).await
    }

    /// Cancels a pending interrupt: whoever waits gets [`Canceled`](ManagerError::Canceled).
    ///
    /// # Errors
    ///
    /// [`NotFound`](ManagerError::NotFound); [`AlreadyFinal`](ManagerError::AlreadyFinal); the store fails.
    pub async fn cancel(&self, id: InterruptId) -> Result<(), ManagerError> {
        match self.engine.withdraw(&self.by, id).await {
            Ok(_) => Ok(()),
            Err(error) => Err(self.explain(id, error).await?),
        }
    }

    /// What a refusal means to the caller.
    async fn explain(&self, id: InterruptId, error: Error) -> Result<ManagerError, ManagerError> {
        if let Error::AlreadyDecided { status, by, .. } = error {
            return Ok(ManagerError::AlreadyFinal { id, status, by });
        }
        if let Error::BadReply(invalid) = error {
            return Ok(invalid.into());
        }
        let Error::Refused(refusal) = &error else {
            return Ok(error.into());
        };
        if let Refusal::Misfit(Misfit::Value { problem, .. }) = refusal {
            return Ok(ManagerError::invalid(format!(
                "the response does not fit: {problem}"
            )));
        }
        if let Refusal::Forbidden { by } = refusal {
            return Ok(ManagerError::Forbidden { by: by.clone() });
        }
        let closed = already_final(&self.find(id).await?);
        Ok(closed.unwrap_or(ManagerError::Engine(error)))
    }
}

/// Telling.
impl InterruptManager {
    /// Has a handler told of every interrupt of this kind that is created by this manager, after those that were
    /// registered before it.
    pub fn register_handler(&self, kind: InterruptKind, handler: impl InterruptHandler + 'static) {
        self.handlers.add(kind, "", Arc::new(handler));
    }

    /// As [`register_handler`](Self::register_handler), under a name: registered twice it is told once, and it is noted
    /// in the store what it was told of. Returns whether it is new. An empty name is none.
    pub fn register_named_handler(
        &self,
        kind: InterruptKind,
        name: &str,
        handler: impl InterruptHandler + 'static,
    ) -> bool {
        self.handlers.add(kind, name, Arc::new(handler))
    }

    /// Tells the named handlers of every pending interrupt that they were not told of yet: because it was created while
    /// they were not there, or because they failed. Call it when the program starts, and now and then.
    ///
    /// A handler is told at least once; it tells repetitions by the interrupt's id. Returns how many were told.
    ///
    /// # Errors
    ///
    /// The store fails.
    pub async fn deliver(&self) -> Result<usize, ManagerError> {
        let mut told = 0;
        for interrupt in self.pending(None).await? {
            for handler in self.handlers.of(interrupt.kind) {
                if !handler.name.is_empty() && self.tell_once(&handler, &interrupt).await? {
                    told += 1;
                }
            }
        }
        Ok(told)
    }

    /// Tells handlers, one after the other, while the caller goes on.
    fn tell(&self, interrupt: Interrupt, wanted: fn(&Registered) -> bool) {
        let mut handlers = self.handlers.of(interrupt.kind);
        handlers.retain(wanted);
        if handlers.is_empty() {
            return;
        }
        let manager = self.clone();
        tokio::spawn(async move {
            for handler in handlers {
                if handler.name.is_empty() {
                    manager.tell_now(&handler, &interrupt).await;
                } else {
                    // What the store does not know of is delivered again.
                    drop(manager.tell_once(&handler, &interrupt).await);
                }
            }
        });
    }

    /// Tells a named handler unless it is noted that it was told. Returns whether it was told now.
    async fn tell_once(
        &self,
        handler: &Registered,
        interrupt: &Interrupt,
    ) -> Result<bool, ManagerError> {
        let (store, tenant) = (self.engine.store(), self.tenant());
        let key = format!("interrupt/{}/{}", interrupt.id, handler.name);
        let noted = store.cell(tenant, Space::Outbox, &key).await;
        if noted.map_err(Error::from)?.is_some() || !self.tell_now(handler, interrupt).await {
            return Ok(false);
        }
        let note = CellChange {
            space: Space::Outbox,
            key,
            expect: 0,
            then: CellThen::Set {
                value: Vec::new(),
                until: None,
            },
        };
        match store.set_cell(tenant, note).await {
            // Another process told it at the same time.
            Ok(_) | Err(AppendError::CellConflict { .. }) => Ok(true),
            Err(AppendError::Unavailable(error)) => Err(Error::from(error).into()),
            Err(error) => Err(ManagerError::Engine(
                holdpoint_store::Unavailable::new(error.to_string()).into(),
            )),
        }
    }

    async fn tell_now(&self, handler: &Registered, interrupt: &Interrupt) -> bool {
        match handler.tell(interrupt).await {
            Ok(()) => true,
            Err(failure) => {
                if let Some(log) = &self.log {
                    log(&failure);
                }
                false
            }
        }
    }
}

fn already_final(found: &Question) -> Option<ManagerError> {
    let closed = found.closed.as_ref()?;
    Some(ManagerError::AlreadyFinal {
        id: found.interrupt.id,
        status: found.status,
        by: closed.by.clone(),
    })
}

/// Cancels an interrupt when its caller is gone.
struct Bond {
    manager: InterruptManager,
    id: Option<InterruptId>,
}

impl Bond {
    fn release(mut self) {
        self.id = None;
    }
}

impl Drop for Bond {
    fn drop(&mut self) {
        // Without a runtime the process is ending; the interrupt stays until it expires.
        if let (Some(id), Ok(runtime)) = (self.id, tokio::runtime::Handle::try_current()) {
            let manager = self.manager.clone();
            runtime.spawn(async move {
                // It may have been closed meanwhile, which is as well.
                drop(manager.cancel(id).await);
            });
        }
    }
}
