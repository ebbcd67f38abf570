//! The one task that commits appends of concurrent runs together.
//!
//! It waits for a first one, takes what has queued up behind it, and commits all of it in one statement. While that is
//! carried out, the next one is already on its way. What a statement did not admit, and what cannot share one, goes to
//! the desk, each for itself and beside the next statement.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::Arc,
};

use holdpoint_core::OwnerId;
use tokio::{
    sync::{Notify, Semaphore, mpsc, oneshot},
    task::yield_now,
    time::timeout,
};

use super::{
    batch::{Batch, is_plain},
    clock::Time,
    desk::{Before, Desk},
    line::Line,
    pipe::Pipe,
    pool::{Connections, PATIENCE, Tries, once},
    trouble::{Fate, Trouble},
};
use crate::{Append, AppendError, Appended, CellChange, Epoch, Unavailable, failpoint};

/// How many appends share a statement at most.
const BATCH: usize = 256;
/// How many statements are under way at most: one is carried out, one waits at the database, and the answer of one is on its
/// way back. More would be smaller ones.
const UNDER_WAY: usize = 3;
/// How often others are let go first, so that what they append can come along.
const TURNS: usize = 8;

type Verdict = Result<Appended, AppendError>;

struct Ticket {
    append: Append,
    reply: oneshot::Sender<Verdict>,
}

impl Ticket {
    fn settle(self, verdict: Verdict) {
        // Nobody waits any more: they read the thread if they want to know.
        drop(self.reply.send(verdict));
    }
}

/// Where appends are handed in.
#[derive(Debug)]
pub(super) struct Writer {
    queue: mpsc::UnboundedSender<Ticket>,
}

impl std::fmt::Debug for Ticket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ticket")
    }
}

/// What commits.
#[derive(Debug, Clone)]
pub(super) struct Scribe {
    pub(super) connections: Connections,
    pub(super) pipe: Pipe,
    pub(super) us: OwnerId,
    pub(super) time: Time,
    pub(super) committed: Arc<Notify>,
}

fn stopped() -> Unavailable {
    Unavailable::new("it was closed, or has stopped after a fault")
}

impl Writer {
    /// Starts the task.
    pub(super) fn start(scribe: Scribe) -> Self {
        let (queue, tickets) = mpsc::unbounded_channel();
        tokio::spawn(scribe.work(tickets));
        Self { queue }
    }

    /// Commits an append, together with others that wait at the same time.
    pub(super) async fn append(&self, append: Append) -> Verdict {
        let (reply, answer) = oneshot::channel();
        if self.queue.send(Ticket { append, reply }).is_err() {
            return Err(stopped().into());
        }
        answer.await.unwrap_or_else(|_| Err(stopped().into()))
    }
}

impl Scribe {
    async fn work(self, mut tickets: mpsc::UnboundedReceiver<Ticket>) {
        let mut left: VecDeque<Ticket> = VecDeque::new();
        // How many were in the statement before.
        let mut before = 0;
        let places = Arc::new(Semaphore::new(UNDER_WAY));
        loop {
            if left.is_empty() {
                match tickets.recv().await {
                    Some(ticket) => left.push_back(ticket),
                    None => return,
                }
            }
            let Ok(place) = Arc::clone(&places).acquire_owned().await else {
                return;
            };
            // A statement costs much whatever is in it, and those whose appends were in the last one are about to have the
            // next. One who is alone is not kept waiting.
            for _ in 0..TURNS {
                if before < 2 || left.len() + tickets.len() >= before {
                    break;
                }
                yield_now().await;
            }
            while left.len() < BATCH
                && let Ok(ticket) = tickets.try_recv()
            {
                left.push_back(ticket);
            }
            let mut together = Vec::with_capacity(left.len());
            let mut threads = HashSet::new();
            for _ in 0..left.len().min(BATCH) {
                let Some(ticket) = left.pop_front() else {
                    break;
                };
                if !is_plain(&ticket.append) {
                    self.send_to_desk(ticket, Before::Nothing);
                } else if threads.insert(ticket.append.key.clone()) {
                    together.push(ticket);
                } else {
                    left.push_back(ticket);
                }
            }
            // In the order in which everybody locks them.
            together.sort_unstable_by(|a, b| a.append.key.cmp(&b.append.key));
            before = together.len();
            let scribe = self.clone();
            tokio::spawn(async move {
                scribe.commit(together).await;
                drop(place);
            });
        }
    }

    async fn commit(&self, tickets: Vec<Ticket>) {
        if tickets.is_empty() {
            return;
        }
        let mut batch = Batch::default();
        for ticket in &tickets {
            batch.add(&ticket.append);
        }
        failpoint::hit("store.commit.before");
        let committed = self.send(&batch).await;
        drop(batch);
        match committed {
            Ok(mut epochs) => {
                failpoint::hit("store.commit.after");
                self.committed.notify_one();
                for (place, ticket) in tickets.into_iter().enumerate() {
                    match epochs.remove(&place) {
                        Some(epoch) => {
                            let version = ticket.append.expect + ticket.append.records.len() as u64;
                            ticket.settle(Ok(Appended { version, epoch }));
                        }
                        None => self.send_to_desk(ticket, Before::Nothing),
                    }
                }
            }
            Err(Trouble { fate, reason }) => {
                for ticket in tickets {
                    match fate {
                        Fate::Again => self.send_to_desk(ticket, Before::Nothing),
                        Fate::Unknown => self.send_to_desk(ticket, Before::Unknown),
                        Fate::Never => ticket.settle(Err(reason.clone().into())),
                    }
                }
            }
        }
    }

    /// Commits those of a batch that can be.
    async fn send(&self, batch: &Batch<'_>) -> Result<HashMap<usize, Epoch>, Trouble> {
        let teller = &self.connections.teller;
        let line = self.pipe.get(&self.connections).await?;
        let committed = timeout(PATIENCE, batch.commit(&line, self.us, &self.time)).await;
        let committed = match committed {
            Ok(committed) => committed.map_err(|error| teller.failed(&error)),
            Err(_) => Err(teller.silent()),
        };
        if let Err(Trouble {
            fate: Fate::Unknown,
            ..
        }) = committed
        {
            self.pipe.give_up(line);
        }
        committed
    }

    fn send_to_desk(&self, ticket: Ticket, before: Before) {
        let scribe = self.clone();
        tokio::spawn(async move {
            let verdict = scribe.decide(&ticket.append, before).await;
            ticket.settle(verdict);
        });
    }

    /// Does an append at the desk, again and again while the database is away for a moment.
    async fn decide(&self, append: &Append, mut before: Before) -> Verdict {
        let tries = Tries::default();
        loop {
            let done = once!(self.connections, |connection| self
                .decide_once(connection, append, before));
            let trouble = match done {
                Ok(verdict) => return verdict,
                Err(trouble) => trouble,
            };
            if trouble.fate == Fate::Unknown {
                before = Before::Unknown;
            }
            if trouble.fate == Fate::Never || !tries.go_on().await {
                return Err(trouble.reason.into());
            }
        }
    }

    async fn decide_once(
        &self,
        connection: &mut Line,
        append: &Append,
        before: Before,
    ) -> Result<Verdict, Trouble> {
        let tenant = &*append.key.tenant;
        let cells: Vec<(&str, &CellChange)> =
            append.cells.iter().map(|change| (tenant, change)).collect();
        let teller = &self.connections.teller;
        let desk = Desk::open(connection, teller, self.us, &self.time, &cells).await?;
        let verdict = desk.append(append, before).await?;
        if verdict.is_ok() {
            failpoint::hit("store.commit.before");
            desk.commit().await?;
            failpoint::hit("store.commit.after");
            self.committed.notify_one();
        }
        Ok(verdict)
    }
}
