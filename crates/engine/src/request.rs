//! Who asks for something, and by what a request is known again when it comes twice.
//!
//! A mark is committed together with what the request led to, in the same append. So whoever got no answer may send the
//! request again: it is done once, and the second time says what the first one led to.

use std::future::Future;

use holdpoint_core::{Command, Digest, Principal, RunId, Span, State, ThreadId, hex};
use holdpoint_store::{CellChange, CellThen, Space};
use serde::{Deserialize, Serialize};

use crate::{Engine, Error, Submitted, driver::Order};

/// Who asks for something.
#[derive(Debug, Clone)]
pub struct Request {
    /// Who.
    pub by: Principal,
    /// By what it is known again.
    pub mark: Option<Mark>,
}

impl From<&Principal> for Request {
    fn from(by: &Principal) -> Self {
        Self {
            by: by.clone(),
            mark: None,
        }
    }
}

impl Request {
    pub(crate) fn order(&self, command: Command) -> Order {
        Order {
            command,
            by: self.by.clone(),
            mark: self.mark.clone(),
            relies_on: None,
        }
    }
}

/// By what a request is known again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    key: String,
    fingerprint: Digest,
    lasts: Span,
}

impl Mark {
    /// A mark for whoever named it so. Two requests with one mark are the same if they have the same fingerprint, and a
    /// mistake otherwise. It is forgotten after a while.
    #[must_use]
    pub fn new(scope: &[&str], fingerprint: Digest, lasts: Span) -> Self {
        // Lengths first, so that no two scopes are spelt alike.
        let spelt = scope.iter().map(|part| format!("{}:{part}", part.len()));
        let digest = Digest::of(spelt.collect::<String>().as_bytes());
        Self {
            key: hex(digest.as_bytes()),
            fingerprint,
            lasts,
        }
    }
}

/// What a request led to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marked {
    /// Tells it from others under the same mark.
    pub fingerprint: Digest,
    /// The thread in which it did something.
    pub thread: ThreadId,
    /// The event after which.
    pub after: u64,
    /// The run that it concerned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
}

impl Engine {
    /// What a request with this mark led to, if it came before.
    ///
    /// # Errors
    ///
    /// Another request came with this mark; the store fails.
    pub async fn marked(&self, tenant: &str, mark: &Mark) -> Result<Option<Marked>, Error> {
        let cell = self.store().cell(tenant, Space::Request, &mark.key).await?;
        let Some(cell) = cell else { return Ok(None) };
        let marked = serde_json::from_slice(&cell.value).ok();
        let marked: Option<Marked> =
            marked.filter(|it: &Marked| it.fingerprint == mark.fingerprint);
        marked.map(Some).ok_or(Error::OtherRequest)
    }

    /// Does what a request asks for, unless it came before.
    pub(crate) async fn once(
        &self,
        request: &Request,
        work: impl Future<Output = Result<Submitted, Error>>,
    ) -> Result<Submitted, Error> {
        let Some(mark) = &request.mark else {
            return work.await;
        };
        let tenant = &request.by.actor.tenant;
        if let Some(marked) = self.marked(tenant, mark).await? {
            return Err(Error::Replayed(Box::new(marked)));
        }
        let error = match work.await {
            Ok(submitted) => return Ok(submitted),
            Err(error) => error,
        };
        // The same request may have been faster on another way; and a commit whose reply was lost is looked up.
        match self.marked(tenant, mark).await? {
            Some(marked) => Err(Error::Replayed(Box::new(marked))),
            None => Err(error),
        }
    }

    /// Remembers a request that changed nothing, because all was so already.
    pub(crate) async fn note(&self, order: &Order, state: &State) -> Result<(), Error> {
        let Some(change) = self.mark_change(order, state.version, state) else {
            return Ok(());
        };
        let tenant = &order.by.actor.tenant;
        match self.store().set_cell(tenant, change).await {
            Ok(_) => Ok(()),
            Err(holdpoint_store::AppendError::CellConflict { .. }) => {
                Err(self.replayed(order).await?)
            }
            Err(error) => Err(crate::error::from_append(error)),
        }
    }

    /// What an append that carries this order keeps of it. `state` is what it leads to.
    pub(crate) fn mark_change(
        &self,
        order: &Order,
        after: u64,
        state: &State,
    ) -> Option<CellChange> {
        let mark = order.mark.as_ref()?;
        let marked = Marked {
            fingerprint: mark.fingerprint,
            thread: state.thread,
            after,
            run: state.run.as_ref().map(|run| run.id),
        };
        Some(CellChange {
            space: Space::Request,
            key: mark.key.clone(),
            expect: 0,
            then: CellThen::Set {
                value: serde_json::to_vec(&marked).ok()?,
                until: Some(self.store().now() + mark.lasts),
            },
        })
    }

    /// What is said of a request whose mark was there already.
    pub(crate) async fn replayed(&self, order: &Order) -> Result<Error, Error> {
        let Some(mark) = &order.mark else {
            return Ok(Error::OtherRequest);
        };
        let marked = self.marked(&order.by.actor.tenant, mark).await?;
        // It was forgotten in this very moment: whoever asks again is heard.
        let gone = || {
            holdpoint_store::Unavailable::new("the request's mark ended just now; send it again")
        };
        Ok(marked.map_or_else(|| gone().into(), |marked| Error::Replayed(Box::new(marked))))
    }
}
