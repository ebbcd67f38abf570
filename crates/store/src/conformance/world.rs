//! What a promise is tested with.

use std::{any::Any, future::Future, sync::Arc};

use holdpoint_core::{
    Digest, Index, IndexChange, IndexRow, Payload, Record, Span, ThreadId, Timestamp,
};

use crate::{
    Append, Clock, Direction, Fence, Head, Lease, LeaseAfter, ManualClock, Scan, SharedStore,
    Store, ThreadKey,
};

/// Two handles on the same data, which was empty at first, and the clock they both go by.
#[derive(Debug)]
pub struct World {
    pub(super) here: SharedStore,
    pub(super) there: SharedStore,
    pub(super) clock: Arc<ManualClock>,
    /// What the data needs to exist, for instance a temporary folder.
    _ground: Box<dyn Any + Send>,
}

/// How long leases last here.
pub(super) const LASTS: Span = Span::from_secs(10);

impl World {
    /// The world that `open` makes.
    pub async fn new<F, Opening, Ground>(open: F) -> Self
    where
        F: FnOnce(Arc<dyn Clock>) -> Opening,
        Opening: Future<Output = (SharedStore, SharedStore, Ground)>,
        Ground: Any + Send,
    {
        let clock = Arc::new(ManualClock::new(Timestamp::from_millis(1_700_000_000_000)));
        let shown: Arc<dyn Clock> = Arc::<ManualClock>::clone(&clock);
        let (here, there, ground) = open(shown).await;
        Self {
            here,
            there,
            clock,
            _ground: Box::new(ground),
        }
    }
}

/// The thread of a session.
pub(super) fn key(session: &str) -> ThreadKey {
    ThreadKey {
        tenant: Arc::from("acme"),
        thread: ThreadId::of_session("acme", "agent", session),
    }
}

/// A small record, which differs from those of other sequences.
#[must_use]
pub fn record(seq: u64) -> Record {
    Record {
        seq,
        header: format!(r#"{{"v":1,"at":{seq}}}"#).into_bytes(),
        salt: [u8::try_from(seq % 251).unwrap_or(0); 16],
        payload: Payload::json(format!(r#"{{"event":{seq}}}"#).into_bytes()),
        hash: Digest::of(&seq.to_be_bytes()),
    }
}

/// A head that says at which version it was written, and by whom.
pub(super) fn head(version: u64, writer: &str) -> Payload {
    Payload::json(format!(r#"{{"version":{version},"writer":"{writer}"}}"#).into_bytes())
}

/// An append of two records by anyone.
pub(super) fn append(key: &ThreadKey, expect: u64) -> Append {
    let records: Vec<Record> = (1..=2)
        .map(|step| record(expect.saturating_add(step)))
        .collect();
    Append {
        key: key.clone(),
        expect,
        fence: Fence::Open,
        head: head(expect.saturating_add(2), "someone"),
        records,
        index: Vec::new(),
        cells: Vec::new(),
        lease: LeaseAfter::Keep,
    }
}

/// The same by the driver with this epoch.
pub(super) fn drive(key: &ThreadKey, expect: u64, epoch: u64) -> Append {
    Append {
        fence: Fence::Driver(epoch),
        ..append(key, expect)
    }
}

/// The same, taking the lease.
pub(super) fn take(key: &ThreadKey, expect: u64, after: u64) -> Append {
    Append {
        fence: Fence::Take {
            after,
            lasts: LASTS,
        },
        ..append(key, expect)
    }
}

/// A row of an index for a thread.
pub(super) fn row(index: Index, key: &str, sort: i64, thread: &ThreadKey) -> IndexRow {
    IndexRow {
        index,
        key: key.to_owned(),
        sort,
        thread: thread.thread,
    }
}

/// Every row of an index.
pub(super) fn all(index: Index) -> Scan {
    Scan {
        index,
        key: None,
        up_to: None,
        direction: Direction::Forward,
        after: None,
        limit: usize::MAX,
    }
}

/// Everything that can be read of a thread, and of an index beside it.
pub(super) async fn everything(
    store: &dyn Store,
    key: &ThreadKey,
) -> (Option<Head>, Vec<Record>, Vec<IndexRow>) {
    let (head, records, rows) = (
        store.load(key).await,
        store.read(key, 0, usize::MAX).await,
        store.scan(&key.tenant, all(Index::Runnable)).await,
    );
    match (head, records, rows) {
        (Ok(head), Ok(records), Ok(rows)) => (head, records, rows),
        unreadable => panic!("{unreadable:?}"),
    }
}

/// The lease of a thread, as `store` sees it.
pub(super) async fn lease(store: &dyn Store, key: &ThreadKey) -> Option<Lease> {
    everything(store, key).await.0.and_then(|head| head.lease)
}

/// A row that puts the thread into the index that [`everything`] reads.
pub(super) fn runnable(key: &ThreadKey, sort: i64) -> IndexChange {
    IndexChange::Put(row(Index::Runnable, "", sort, key))
}
