//! The one task that reads heads for concurrent runs together.
//!
//! A head is read several times in the life of a run, and a statement costs more than what it finds. So it waits for a first
//! one that is wanted, takes what has queued up behind it, and reads all of them at once.

use tokio::sync::{mpsc, oneshot};
use tokio_postgres::Row;

use super::{
    pool::{Connections, again},
    query,
};
use crate::{ThreadKey, Unavailable};

/// How many heads share a statement at most.
const GROUP: usize = 256;

type Found = Result<Option<Row>, Unavailable>;

/// Where heads are asked for.
#[derive(Debug)]
pub(super) struct Reader {
    queue: mpsc::UnboundedSender<(ThreadKey, oneshot::Sender<Found>)>,
}

impl Reader {
    /// Starts the task.
    pub(super) fn start(connections: Connections) -> Self {
        let (queue, wanted) = mpsc::unbounded_channel();
        tokio::spawn(work(connections, wanted));
        Self { queue }
    }

    /// The head of a thread as [`query::heads`] finds it, together with others that are wanted at the same time.
    pub(super) async fn head(&self, key: &ThreadKey) -> Found {
        let stopped = || Unavailable::new("it was closed, or has stopped after a fault");
        let (reply, answer) = oneshot::channel();
        // INVARIANT: what it finds was read after this, so it shows whatever was acknowledged before.
        if self.queue.send((key.clone(), reply)).is_err() {
            return Err(stopped());
        }
        answer.await.unwrap_or_else(|_| Err(stopped()))
    }
}

async fn work(
    connections: Connections,
    mut wanted: mpsc::UnboundedReceiver<(ThreadKey, oneshot::Sender<Found>)>,
) {
    let mut group = Vec::with_capacity(GROUP);
    while wanted.recv_many(&mut group, GROUP).await > 0 {
        let (keys, replies): (Vec<ThreadKey>, Vec<_>) = group.drain(..).unzip();
        let found = again!(connections, |connection| query::heads(connection, &keys));
        let mut replies: Vec<_> = replies.into_iter().map(Some).collect();
        let mut answer = |place: usize, found: Found| {
            if let Some(reply) = replies.get_mut(place).and_then(Option::take) {
                // Whoever asked may have gone.
                drop(reply.send(found));
            }
        };
        match found {
            Ok(rows) => {
                for row in rows {
                    if let Some(place) = query::place(&row) {
                        answer(place, Ok(Some(row)));
                    }
                }
                (0..keys.len()).for_each(|place| answer(place, Ok(None)));
            }
            Err(reason) => {
                (0..keys.len()).for_each(|place| answer(place, Err(reason.clone())));
            }
        }
    }
}
