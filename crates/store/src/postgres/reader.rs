//! The tasks that read for concurrent runs together: one for heads, one for cells.
//!
//! Both are read several times in the life of a run, and a statement costs more than what it finds. So a task waits for a
//! first one that is wanted, takes what has queued up behind it, and reads all of it at once.

use std::future::Future;

use tokio::{
    sync::{mpsc, oneshot},
    task::yield_now,
};
use tokio_postgres::{Error, Row};

use super::{
    line::Line,
    pool::{Connections, again},
    query,
};
use crate::Unavailable;

/// How many share a statement at most.
const GROUP: usize = 256;

type Found = Result<Option<Row>, Unavailable>;

/// The key of something that is read by its key.
pub(super) trait Key: Send + Sync + 'static {
    /// What is there of these, each after its [`query::place`].
    fn find(
        connection: &Line,
        keys: &[Self],
    ) -> impl Future<Output = Result<Vec<Row>, Error>> + Send
    where
        Self: Sized;
}

/// Where things are asked for.
#[derive(Debug)]
pub(super) struct Reader<K> {
    queue: mpsc::UnboundedSender<(K, oneshot::Sender<Found>)>,
}

impl<K: Key> Reader<K> {
    /// Starts the task.
    pub(super) fn start(connections: Connections) -> Self {
        let (queue, wanted) = mpsc::unbounded_channel();
        tokio::spawn(work(connections, wanted));
        Self { queue }
    }

    /// What [`Key::find`] finds of it, together with others that are wanted at the same time.
    pub(super) async fn read(&self, key: K) -> Found {
        let stopped = || Unavailable::new("it was closed, or has stopped after a fault");
        let (reply, answer) = oneshot::channel();
        // INVARIANT: what it finds was read after this, so it shows whatever was acknowledged before.
        if self.queue.send((key, reply)).is_err() {
            return Err(stopped());
        }
        answer.await.unwrap_or_else(|_| Err(stopped()))
    }
}

async fn work<K: Key>(
    connections: Connections,
    mut wanted: mpsc::UnboundedReceiver<(K, oneshot::Sender<Found>)>,
) {
    let mut group = Vec::with_capacity(GROUP);
    while wanted.recv_many(&mut group, GROUP).await > 0 {
        // Those who were told of their appends at the same time are about to ask too: they go first.
        yield_now().await;
        while group.len() < GROUP
            && let Ok(more) = wanted.try_recv()
        {
            group.push(more);
        }
        let (keys, replies): (Vec<K>, Vec<_>) = group.drain(..).unzip();
        let found = again!(connections, |connection| K::find(connection, &keys));
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
