//! Reads, on connections of their own: long ones on threads of their own, short ones where they are asked for.

use std::{
    fmt,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc::{self, Receiver, Sender},
    },
    thread::JoinHandle,
};

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::{
    backup::Source,
    connection::{self, Sight},
    writer::stopped,
};
use crate::Unavailable;

/// How many reads go on at once on threads of their own.
const READERS: usize = 2;

/// How many short reads go on at once where they are asked for.
const AT_ONCE: usize = 2;

type Query = Box<dyn FnOnce(&Connection) + Send>;

/// The threads that read.
#[derive(Debug)]
pub(super) struct Readers {
    source: Source,
    desks: Vec<Reader>,
    at_once: Vec<Mutex<Connection>>,
}

struct Reader {
    queue: Option<Sender<Query>>,
    waiting: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("waiting", &self.waiting)
            .finish_non_exhaustive()
    }
}

impl Readers {
    /// Starts the threads, each with the connection that was opened for it.
    pub(super) fn start(source: Source, mut conns: Vec<Connection>) -> std::io::Result<Self> {
        let at_once = conns.split_off(READERS.min(conns.len()));
        let desks = conns
            .into_iter()
            .map(Reader::start)
            .collect::<Result<_, _>>()?;
        let at_once = at_once.into_iter().map(Mutex::new).collect();
        Ok(Self {
            source,
            desks,
            at_once,
        })
    }

    /// What is read, for a copy of it.
    pub(super) const fn source(&self) -> &Source {
        &self.source
    }

    /// Opens the connections.
    pub(super) fn connect(path: &Path, sight: Sight) -> rusqlite::Result<Vec<Connection>> {
        (0..READERS + AT_ONCE)
            .map(|_| connection::reader(path, sight))
            .collect()
    }

    /// Runs a query that finds one row by its key. That takes less than handing it to another thread and waiting for
    /// the answer, so it is done at once wherever a connection is free.
    pub(super) async fn point<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Unavailable> {
        if let Some(conn) = self.at_once.iter().find_map(|conn| conn.try_lock().ok()) {
            return query(&conn).map_err(|error| self.source.place.unavailable(&error));
        }
        self.query(query).await
    }

    /// Runs a query on the thread with the shortest queue.
    pub(super) async fn query<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Unavailable> {
        let desk = self
            .desks
            .iter()
            .min_by_key(|desk| desk.waiting.load(Ordering::Relaxed))
            .ok_or_else(stopped)?;
        let (reply, answer) = oneshot::channel();
        desk.send(Box::new(move |conn| {
            // Whoever asked may have gone away.
            drop(reply.send(query(conn)));
        }))?;
        let result = answer.await.map_err(|_| stopped())?;
        result.map_err(|error| self.source.place.unavailable(&error))
    }
}

impl Reader {
    fn start(conn: Connection) -> std::io::Result<Self> {
        let (queue, queries) = mpsc::channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&waiting);
        let thread = std::thread::Builder::new()
            .name("holdpoint-reader".to_owned())
            .spawn(move || work(&conn, &queries, &count))?;
        Ok(Self {
            queue: Some(queue),
            waiting,
            thread: Some(thread),
        })
    }

    fn send(&self, query: Query) -> Result<(), Unavailable> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let queue = self.queue.as_ref().ok_or_else(stopped)?;
        queue.send(query).map_err(|_| stopped())
    }
}

fn work(conn: &Connection, queries: &Receiver<Query>, waiting: &AtomicUsize) {
    for query in queries {
        query(conn);
        waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // A panic of that thread was reported when it happened.
            drop(thread.join());
        }
    }
}
