//! The one thread that writes.
//!
//! It waits for a first write, takes what has queued up behind it, and commits all of it in one transaction. A write is
//! checked before it changes anything, so one that is refused leaves nothing to undo and the others go on. Nothing is
//! remembered between transactions: every check reads.

use std::{
    sync::{
        Arc,
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread::JoinHandle,
    time::Duration,
};

use holdpoint_core::{OwnerId, Timestamp};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::{oneshot, watch};

use super::{
    keeper::Keeper,
    marks::{self, Mark},
    owners::Owners,
    trouble::Place,
};
use crate::{
    Holder, Unavailable,
    admission::{Census, Tenure},
    backup::NOT_ADOPTED,
    failpoint,
};

/// How many writes share a transaction at most.
const BATCH: usize = 512;

/// How often an idle writer looks whether others have written.
const LOOK: Duration = Duration::from_millis(50);

/// What a write works with.
pub(super) struct Desk<'a> {
    pub(super) tx: &'a Transaction<'a>,
    pub(super) owners: &'a Owners,
    /// Whether the file is a copy that nobody has adopted.
    pub(super) is_backup: bool,
}

impl Census for Desk<'_> {
    fn now(&self) -> Timestamp {
        self.owners.now()
    }

    fn us(&self) -> OwnerId {
        self.owners.us()
    }

    fn may_drive(&self) -> Result<(), String> {
        if self.is_backup {
            return Err(NOT_ADOPTED.to_owned());
        }
        Ok(())
    }

    fn tenure(&self, until: Timestamp) -> Result<Tenure, String> {
        self.owners.tenure(until)
    }

    fn other(&self, tenure: &Tenure) -> Holder {
        self.owners.other(tenure)
    }
}

/// What a write came to within its transaction, unless the database failed.
pub(super) type Verdict<T, E> = rusqlite::Result<Result<T, E>>;

/// Something to be written.
pub(super) trait Write: Send + 'static {
    type Done: Send + 'static;
    type Error: From<Unavailable> + Send + 'static;

    /// Whether it adds to a journal.
    const IS_APPEND: bool;

    /// Whether it is the last write of its transaction, because those after it might be refused by what it does.
    const IS_LAST: bool = false;

    /// Writes it, or changes nothing and says why.
    fn write(&self, desk: &Desk<'_>) -> Verdict<Self::Done, Self::Error>;
}

/// A write in the queue, whatever its type.
trait Job: Send {
    fn is_append(&self) -> bool;

    fn is_last(&self) -> bool;

    fn run(&mut self, desk: &Desk<'_>) -> rusqlite::Result<()>;

    /// Tells the one who waits.
    fn settle(self: Box<Self>, committed: Result<(), Unavailable>);
}

struct Ticket<W: Write> {
    write: W,
    outcome: Option<Result<W::Done, W::Error>>,
    reply: oneshot::Sender<Result<W::Done, W::Error>>,
}

impl<W: Write> Job for Ticket<W> {
    fn is_append(&self) -> bool {
        W::IS_APPEND
    }

    fn is_last(&self) -> bool {
        W::IS_LAST
    }

    fn run(&mut self, desk: &Desk<'_>) -> rusqlite::Result<()> {
        self.outcome = Some(self.write.write(desk)?);
        Ok(())
    }

    fn settle(self: Box<Self>, committed: Result<(), Unavailable>) {
        let outcome = match (committed, self.outcome) {
            (Ok(()), Some(outcome)) => outcome,
            (Ok(()), None) => Err(stopped().into()),
            (Err(unavailable), _) => Err(unavailable.into()),
        };
        // Nobody waits any more: they read the thread if they want to know.
        drop(self.reply.send(outcome));
    }
}

/// What is said when the other end of a queue is gone.
pub(super) fn stopped() -> Unavailable {
    Unavailable::new("it was closed, or has stopped after a fault")
}

/// Where writes are handed in. Closing it lets the thread finish what is queued and end.
#[derive(Debug)]
pub(super) struct Writer {
    queue: Option<Sender<Box<dyn Job>>>,
    thread: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for dyn Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Job")
    }
}

impl Writer {
    /// Starts the thread.
    pub(super) fn start(
        conn: Connection,
        keeper: Keeper,
        place: Place,
        owners: Arc<Owners>,
        changes: watch::Sender<u64>,
    ) -> std::io::Result<Self> {
        let (queue, jobs) = mpsc::channel();
        let mut scribe = Scribe {
            keeper,
            conn,
            place,
            owners,
            changes,
            seen: None,
        };
        // Here and not on the thread, so that what happens from now on is noticed.
        scribe.look_around();
        let thread = std::thread::Builder::new()
            .name("holdpoint-writer".to_owned())
            .spawn(move || scribe.work(&jobs))?;
        Ok(Self {
            queue: Some(queue),
            thread: Some(thread),
        })
    }

    /// Commits a write, together with others that wait at the same time.
    pub(super) async fn write<W: Write>(&self, write: W) -> Result<W::Done, W::Error> {
        let (reply, answer) = oneshot::channel();
        let ticket = Box::new(Ticket {
            write,
            outcome: None,
            reply,
        });
        let queued = self
            .queue
            .as_ref()
            .is_some_and(|queue| queue.send(ticket).is_ok());
        if !queued {
            return Err(stopped().into());
        }
        answer.await.unwrap_or_else(|_| Err(stopped().into()))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // A panic of that thread was reported when it happened.
            drop(thread.join());
        }
    }
}

/// What runs on the thread.
struct Scribe {
    // Dropped first: the last connection to be closed, ours, tidies the database up.
    keeper: Keeper,
    conn: Connection,
    place: Place,
    owners: Arc<Owners>,
    changes: watch::Sender<u64>,
    /// The last state of the file that was not our own doing.
    seen: Option<i64>,
}

impl Scribe {
    fn work(mut self, jobs: &Receiver<Box<dyn Job>>) {
        loop {
            self.look_around();
            match jobs.recv_timeout(LOOK) {
                Ok(first) => {
                    let mut batch = vec![first];
                    while batch.len() < BATCH
                        && batch.last().is_some_and(|job| !job.is_last())
                        && let Ok(job) = jobs.try_recv()
                    {
                        batch.push(job);
                    }
                    self.commit(batch);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn commit(&mut self, mut batch: Vec<Box<dyn Job>>) {
        let committed = self.place.check().and_then(|()| {
            self.attempt(&mut batch)
                .map_err(|error| self.place.unavailable(&error))
        });
        for job in batch {
            job.settle(committed.clone());
        }
    }

    /// One transaction. If anything in it fails, all of it is rolled back.
    fn attempt(&mut self, batch: &mut [Box<dyn Job>]) -> rusqlite::Result<()> {
        let tx = self
            .conn
            .transaction_with_behavior(TransactionBehavior::Immediate)?;
        let desk = Desk {
            tx: &tx,
            owners: &self.owners,
            is_backup: marks::read(&tx, Mark::Backup)?.is_some(),
        };
        for job in batch.iter_mut() {
            job.run(&desk)?;
        }
        // What is about a thread's journal, and what is beside it: a lease, a definition.
        let (before, after) = if batch.iter().any(|job| job.is_append()) {
            ("store.commit.before", "store.commit.after")
        } else {
            ("store.side.before", "store.side.after")
        };
        failpoint::hit(before);
        // DURABILITY: nobody is told of success before this has returned.
        tx.commit()?;
        failpoint::hit(after);
        self.keeper.committed(&self.conn, batch.len());
        Ok(())
    }

    /// Notices commits of other connections. Our own do not change this number, and our readers never commit.
    fn look_around(&mut self) {
        let version = self
            .conn
            .prepare_cached("PRAGMA data_version")
            .and_then(|mut pragma| pragma.query_row([], |row| row.get::<_, i64>(0)));
        // A failure here would be met again, and reported, by the next read or write.
        if let Ok(version) = version
            && self
                .seen
                .replace(version)
                .is_some_and(|seen| seen != version)
        {
            self.changes.send_modify(|count| *count += 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use holdpoint_core::{Payload, ThreadId};
    use tempfile::TempDir;

    use super::{
        super::{connection, schema},
        *,
    };
    use crate::{
        Append, AppendError, Appended, Fence, LeaseAfter, SystemClock, ThreadKey,
        conformance::record,
    };

    type Answer = oneshot::Receiver<Result<Appended, AppendError>>;

    fn scribe(folder: &Path) -> Scribe {
        let path = folder.join("test.db");
        let mut conn = connection::writer(&path).unwrap();
        schema::migrate(&mut conn).unwrap();
        let owners = Owners::join(&path, Arc::new(SystemClock::default())).unwrap();
        Scribe {
            keeper: Keeper::start(connection::keeper(&path).unwrap()).unwrap(),
            conn,
            place: Place::new(&path).unwrap(),
            owners: Arc::new(owners),
            changes: watch::Sender::new(0),
            seen: None,
        }
    }

    fn ticket(session: &str, expect: u64, size: usize) -> (Box<dyn Job>, Answer) {
        let thread = ThreadId::of_session("acme", "agent", session);
        let write = Append {
            key: ThreadKey {
                tenant: Arc::from("acme"),
                thread,
            },
            expect,
            fence: Fence::Open,
            records: vec![record(expect + 1)],
            head: Payload::json(vec![0; size]),
            index: vec![],
            cells: vec![],
            lease: LeaseAfter::Keep,
        };
        let (reply, answer) = oneshot::channel();
        (
            Box::new(Ticket {
                write,
                outcome: None,
                reply,
            }),
            answer,
        )
    }

    fn commit(
        scribe: &mut Scribe,
        batch: Vec<(Box<dyn Job>, Answer)>,
    ) -> Vec<Result<Appended, AppendError>> {
        let (jobs, answers): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
        scribe.commit(jobs);
        answers
            .into_iter()
            .map(|mut answer| answer.try_recv().unwrap())
            .collect()
    }

    fn at(version: u64) -> Result<Appended, AppendError> {
        Ok(Appended { version, epoch: 0 })
    }

    #[test]
    fn in_one_transaction_a_loser_gets_its_own_error_and_the_others_are_committed() {
        let folder = TempDir::new().unwrap();
        let mut scribe = scribe(folder.path());
        let batch = vec![
            ticket("a", 0, 9),
            ticket("b", 7, 9),
            ticket("a", 0, 9),
            ticket("a", 1, 9),
            ticket("c", 0, 9),
        ];
        let conflict = |current| Err(AppendError::Conflict { current });
        assert_eq!(
            commit(&mut scribe, batch),
            [at(1), conflict(0), conflict(1), at(2), at(1)]
        );
    }

    #[test]
    fn when_the_disk_is_full_nobody_is_told_of_success_and_the_next_batch_starts_afresh() {
        let folder = TempDir::new().unwrap();
        let mut scribe = scribe(folder.path());
        assert_eq!(commit(&mut scribe, vec![ticket("a", 0, 9)]), [at(1)]);
        scribe
            .conn
            .pragma_update(None, "max_page_count", 1)
            .unwrap();

        let full = format!(
            "the disk that holds `{}` is full",
            folder.path().join("test.db").display()
        );
        let unavailable = Err(AppendError::Unavailable(Unavailable::new(full)));
        let batch = vec![
            ticket("a", 1, 9),
            ticket("b", 0, 100_000),
            ticket("c", 0, 9),
        ];
        assert_eq!(
            commit(&mut scribe, batch),
            [unavailable.clone(), unavailable.clone(), unavailable]
        );

        scribe
            .conn
            .pragma_update(None, "max_page_count", 1_000_000)
            .unwrap();
        assert_eq!(
            commit(
                &mut scribe,
                vec![ticket("a", 1, 9), ticket("b", 0, 100_000)]
            ),
            [at(2), at(1)]
        );
    }

    #[test]
    fn a_database_that_may_no_longer_be_written_says_so() {
        let folder = TempDir::new().unwrap();
        let mut scribe = scribe(folder.path());
        scribe.conn.pragma_update(None, "query_only", true).unwrap();
        let path = folder.path().join("test.db");
        let reason = format!(
            "`{}` cannot be written: the file or its folder is read-only for this user",
            path.display()
        );
        let unavailable = AppendError::Unavailable(Unavailable::new(reason));
        assert_eq!(
            commit(&mut scribe, vec![ticket("a", 0, 9)]),
            [Err(unavailable)]
        );
    }
}
