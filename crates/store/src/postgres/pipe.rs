//! The connection that appends go out on, one statement after the other.
//!
//! The next statement is sent while the one before is carried out, so that the database finds it waiting: a process that goes
//! to sleep between two statements, and must be woken, costs more than a small statement does. They are carried out in their
//! order, so one that waits for a lock would keep all others waiting. It waits a moment only; then what is in it is done one by one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::timeout;

use super::{
    line::{Line, Manner},
    pool::{Connections, PATIENCE},
    trouble::Trouble,
};

/// How long a statement waits for a lock. Others hold one while they commit.
const MANNERS: &str = "SET lock_timeout = '1s'";

/// The connection, once there is one.
#[derive(Debug, Clone, Default)]
pub(super) struct Pipe {
    line: Arc<Mutex<Option<Arc<Line>>>>,
}

impl Pipe {
    /// The connection. Behind a pooler it is one of one's own each time: what is said to one that is lent for a statement, as
    /// how long to wait, is forgotten, or said to somebody else.
    pub(super) async fn get(&self, connections: &Connections) -> Result<Arc<Line>, Trouble> {
        if let Some(line) = self.standing() {
            return Ok(line);
        }
        let line = connections.get().await?;
        if line.manner() == Manner::Pooled {
            return Ok(Arc::new(line));
        }
        let trouble = match timeout(PATIENCE, line.client().batch_execute(MANNERS)).await {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(connections.teller.failed(&error)),
            Err(_) => Some(connections.teller.silent()),
        };
        if let Some(trouble) = trouble {
            line.forget();
            return Err(trouble);
        }
        let line = Arc::new(line);
        // Two may have come here at once. The last one stays, and the other one is lent to others afterwards.
        *self.place() = Some(Arc::clone(&line));
        Ok(line)
    }

    /// Does not use it again, because something failed that leaves it in doubt.
    pub(super) fn give_up(&self, line: Arc<Line>) {
        self.place()
            .take_if(|standing| Arc::ptr_eq(standing, &line));
        // Whoever else has a statement on it comes here too, unless that went well; then so does the connection.
        if let Some(line) = Arc::into_inner(line) {
            line.forget();
        }
    }

    fn standing(&self) -> Option<Arc<Line>> {
        let place = self.place();
        let line = place.as_ref().filter(|line| !line.client().is_closed());
        line.map(Arc::clone)
    }

    fn place(&self) -> MutexGuard<'_, Option<Arc<Line>>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
