//! Who is told of new interrupts.

use std::{
    error::Error,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use holdpoint_core::{InterruptId, InterruptKind};

use super::Interrupt;

/// Why a handler could not tell anyone.
pub type HandlerError = Box<dyn Error + Send + Sync>;

/// Is told of every new interrupt of its kind, to tell others: an inbox, a queue, a chat.
///
/// A function of an [`Interrupt`] that returns a future is one. Whatever a handler does, the interrupt is there and stays
/// as it is: an error or a panic is told to the [log](super::InterruptManager::with_log), and one that takes longer than
/// ten seconds is given up.
#[async_trait]
pub trait InterruptHandler: Send + Sync {
    /// Tells them. The interrupt is saved.
    ///
    /// # Errors
    ///
    /// Nobody could be told. A named handler is told again by [`deliver`](super::InterruptManager::deliver).
    async fn notify(&self, interrupt: Interrupt) -> Result<(), HandlerError>;
}

#[async_trait]
impl<F, Fut> InterruptHandler for F
where
    F: Fn(Interrupt) -> Fut + Send + Sync,
    Fut: Future<Output = Result<(), HandlerError>> + Send,
{
    async fn notify(&self, interrupt: Interrupt) -> Result<(), HandlerError> {
        self(interrupt).await
    }
}

/// A handler did not do what it should.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandlerFailure {
    /// What it was told of.
    pub interrupt: InterruptId,
    /// The handler's name; empty if it has none.
    pub handler: String,
    /// What was the matter.
    pub reason: String,
}

impl fmt::Display for HandlerFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            interrupt,
            handler,
            reason,
        } = self;
        write!(
            f,
            "handler `{handler}` failed for interrupt `{interrupt}`: {reason}"
        )
    }
}

/// How long one handler may take.
const LIMIT: Duration = Duration::from_secs(10);

/// A handler, its kind, and the name it has or not.
#[derive(Clone)]
pub(super) struct Registered {
    pub(super) kind: InterruptKind,
    pub(super) name: String,
    handler: Arc<dyn InterruptHandler>,
}

impl Registered {
    /// Tells the handler. It runs on its own, so that neither a panic nor a hang of it is ours.
    pub(super) async fn tell(&self, interrupt: &Interrupt) -> Result<(), HandlerFailure> {
        let (handler, copy) = (Arc::clone(&self.handler), interrupt.clone());
        let mut running = tokio::spawn(async move { handler.notify(copy).await });
        let reason = match tokio::time::timeout(LIMIT, &mut running).await {
            Ok(Ok(Ok(()))) => return Ok(()),
            Ok(Ok(Err(error))) => error.to_string(),
            Ok(Err(panicked)) => panicked.to_string(),
            Err(_) => {
                running.abort();
                format!("it took longer than {LIMIT:?}")
            }
        };
        Err(HandlerFailure {
            interrupt: interrupt.id,
            handler: self.name.clone(),
            reason,
        })
    }
}

/// The handlers, in the order they were registered.
#[derive(Clone, Default)]
pub(super) struct Handlers(Arc<Mutex<Vec<Registered>>>);

impl Handlers {
    fn lock(&self) -> MutexGuard<'_, Vec<Registered>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds one; `false` where there is one of this kind and name. Without a name it is always added.
    pub(super) fn add(
        &self,
        kind: InterruptKind,
        name: &str,
        handler: Arc<dyn InterruptHandler>,
    ) -> bool {
        let mut all = self.lock();
        let known = |it: &Registered| it.kind == kind && it.name == name;
        if !name.is_empty() && all.iter().any(known) {
            return false;
        }
        all.push(Registered {
            kind,
            name: name.to_owned(),
            handler,
        });
        true
    }

    pub(super) fn of(&self, kind: InterruptKind) -> Vec<Registered> {
        let all = self.lock();
        all.iter().filter(|it| it.kind == kind).cloned().collect()
    }

    pub(super) fn names(&self) -> Vec<(InterruptKind, String)> {
        let all = self.lock();
        all.iter().map(|it| (it.kind, it.name.clone())).collect()
    }
}
