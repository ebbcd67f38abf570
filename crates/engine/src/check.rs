//! Looks at everything in a store: whether journals are whole, heads follow from them, and indexes follow from both.

use std::{collections::HashMap, sync::Arc};

use holdpoint_core::{
    Codec, Damaged, Digest, Index, IndexRow, State, decode_head, decode_records, fold, open_rows,
    past_rows,
};
use holdpoint_store::{Direction, Head, Scan, Store, ThreadKey, Unavailable};

use crate::Error;

/// How many threads, rows or blobs are read at once.
const PAGE: usize = 500;
/// How many records of a thread are read at once.
const RECORDS: u64 = 500;

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flaw {
    /// The thread, if it is one that is flawed.
    pub thread: Option<ThreadKey>,
    /// What is wrong, in words.
    pub what: String,
}

/// What was looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checked {
    /// How many threads.
    pub threads: u64,
    /// How many records.
    pub records: u64,
    /// How many rows of indexes.
    pub rows: u64,
    /// How many definitions.
    pub definitions: u64,
    /// How many threads changed while they were looked at, so that nothing is said of their rows.
    pub changed: u64,
}

/// What is told while it is looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// So many threads, of so many.
    Threads(u64, u64),
    /// Something is wrong.
    Flaw(Flaw),
}

/// The rows that a thread should have, less those that it has, as a sum of their digests. Where nothing is left they are the
/// same, and no more than this is remembered of a thread.
#[derive(Debug, Default)]
struct Balance {
    version: u64,
    sum: u128,
}

/// Nothing is expected of a thread whose journal is damaged.
type Balances = HashMap<ThreadKey, Option<Balance>>;

/// Looks at everything in a store. Others may go on with it meanwhile.
///
/// # Errors
///
/// The store cannot be read. What is wrong in it is no error: it is told.
pub async fn check(
    store: &dyn Store,
    tell: &mut (dyn FnMut(Seen) + Send),
) -> Result<Checked, Unavailable> {
    let mut checked = Checked::default();
    let mut balances = Balances::new();
    check_definitions(store, &mut checked, tell).await?;
    let of = store.count_threads().await?;
    let mut after = None;
    loop {
        let threads = store.threads(after.as_ref(), PAGE).await?;
        for (key, head) in &threads {
            let sum = check_thread(store, key, head).await;
            if let Err(what) = &sum {
                // Is it this thread that cannot be read, or nothing at all?
                store.versions(std::slice::from_ref(key)).await?;
                tell(Seen::Flaw(Flaw {
                    thread: Some(key.clone()),
                    what: what.to_string(),
                }));
            }
            let version = head.version;
            let balance = sum.ok().map(|sum| Balance { version, sum });
            balances.insert(key.clone(), balance);
            checked.threads += 1;
            checked.records += head.version;
        }
        tell(Seen::Threads(checked.threads, of.max(checked.threads)));
        let is_last = threads.len() < PAGE;
        after = threads.into_iter().next_back().map(|(key, _)| key);
        if is_last {
            break;
        }
    }
    take_rows(store, &mut checked, &mut balances).await?;
    for (key, balance) in balances {
        let Some(Balance { version, .. }) = balance.filter(|it| it.sum != 0) else {
            continue;
        };
        if store.versions(std::slice::from_ref(&key)).await? != [version] {
            checked.changed += 1;
            continue;
        }
        tell(Seen::Flaw(Flaw {
            thread: Some(key),
            what: "its rows in the indexes are not those that follow from its journal".to_owned(),
        }));
    }
    Ok(checked)
}

/// Reads a journal up to its head. Returns the sum of the rows that follow from it, or what is wrong with it: also that
/// it cannot be read at all. (That nothing can be read is told by whatever is read next.)
async fn check_thread(store: &dyn Store, key: &ThreadKey, head: &Head) -> Result<u128, Error> {
    let incomplete = Damaged::Incomplete {
        version: head.version,
    };
    let mut state = State::default();
    let mut sum = 0_u128;
    while state.version < head.version {
        let limit = RECORDS.min(head.version - state.version);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let records = store.read(key, state.version, limit).await?;
        let entries = decode_records(state.hash, &records)?;
        if entries.is_empty() {
            break;
        }
        for entry in &entries {
            fold(&mut state, entry);
            if state.version != entry.seq {
                return Err(incomplete.into());
            }
            for row in past_rows(&state, entry) {
                sum = sum.wrapping_add(weigh(&row));
            }
        }
    }
    if state.version != head.version || decode_head(&head.payload)? != state {
        return Err(incomplete.into());
    }
    for row in open_rows(&state) {
        sum = sum.wrapping_add(weigh(&row));
    }
    Ok(sum)
}

/// Takes the rows that there are away from those that there should be.
async fn take_rows(
    store: &dyn Store,
    checked: &mut Checked,
    balances: &mut Balances,
) -> Result<(), Unavailable> {
    for index in Index::ALL {
        for tenant in store.tenants(index).await? {
            let mut after = None;
            loop {
                let scan = Scan {
                    index,
                    key: None,
                    up_to: None,
                    direction: Direction::Forward,
                    after,
                    limit: PAGE,
                };
                let rows = store.scan(&tenant, scan).await?;
                for row in &rows {
                    let key = ThreadKey {
                        tenant: Arc::clone(&tenant),
                        thread: row.thread,
                    };
                    // A thread that was not seen should have none, if there is no such thread.
                    let balance = balances.entry(key).or_insert(Some(Balance::default()));
                    if let Some(balance) = balance {
                        balance.sum = balance.sum.wrapping_sub(weigh(row));
                    }
                }
                checked.rows += rows.len() as u64;
                if rows.len() < PAGE {
                    break;
                }
                after = rows.last().cloned();
            }
        }
    }
    Ok(())
}

fn weigh(row: &IndexRow) -> u128 {
    let IndexRow {
        index,
        key,
        sort,
        thread,
    } = row;
    let text = [
        &[index.number()],
        sort.to_be_bytes().as_slice(),
        thread.as_bytes(),
        key.as_bytes(),
    ]
    .concat();
    let digest = Digest::of(&text);
    let mut first = [0; 16];
    first.copy_from_slice(&digest.as_bytes()[..16]);
    u128::from_be_bytes(first)
}

async fn check_definitions(
    store: &dyn Store,
    checked: &mut Checked,
    tell: &mut (dyn FnMut(Seen) + Send),
) -> Result<(), Unavailable> {
    let mut after = None;
    loop {
        let blobs = store.blobs(after.as_ref(), PAGE).await?;
        for (tenant, digest) in &blobs {
            let payload = store.blob(tenant, *digest).await?;
            let is_so = payload.is_some_and(|payload| {
                payload.codec == Codec::Json && Digest::of(&payload.bytes) == *digest
            });
            if !is_so {
                tell(Seen::Flaw(Flaw {
                    thread: None,
                    what: format!("the definition {digest} of tenant {tenant} was changed"),
                }));
            }
            checked.definitions += 1;
        }
        if blobs.len() < PAGE {
            return Ok(());
        }
        after = blobs.last().cloned();
    }
}
