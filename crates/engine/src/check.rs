//! Looks at everything in a store: whether journals are whole, heads follow from them, and indexes follow from both.

use std::{
    collections::{HashMap, HashSet},
    fmt::Display,
    sync::Arc,
};

use holdpoint_core::{
    Codec, Damaged, Digest, Index, IndexRow, State, ThreadKind, decode_head, decode_records, fold,
    open_rows, past_rows,
};
use holdpoint_store::{Direction, Head, Scan, Store, ThreadKey, Unavailable};

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

/// The digests of definitions, with their tenants.
type Definitions = HashSet<(Arc<str>, Digest)>;

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
    let definitions = check_definitions(store, &mut checked, tell).await?;
    let of = store.count_threads().await?;
    let mut after = None;
    loop {
        let threads = store.threads(after.as_ref(), PAGE).await?;
        for (key, head) in &threads {
            let sum = match head {
                Ok(head) => check_thread(store, key, head, &definitions).await,
                Err(unreadable) => Err(format!("its head cannot be read: {}", unreadable.reason())),
            };
            if let Err(what) = &sum {
                // Is it this thread that cannot be read, or nothing at all?
                store.versions(std::slice::from_ref(key)).await?;
                tell(Seen::Flaw(Flaw {
                    thread: Some(key.clone()),
                    what: what.clone(),
                }));
            }
            let version = head.as_ref().map_or(0, |head| head.version);
            let balance = sum.ok().map(|sum| Balance { version, sum });
            balances.insert(key.clone(), balance);
            checked.threads += 1;
            checked.records += version;
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
async fn check_thread(
    store: &dyn Store,
    key: &ThreadKey,
    head: &Head,
    definitions: &Definitions,
) -> Result<u128, String> {
    let incomplete = Damaged::Incomplete {
        version: head.version,
    };
    let mut state = State::default();
    let mut sum = 0_u128;
    while state.version < head.version {
        let limit = RECORDS.min(head.version - state.version);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let records = store.read(key, state.version, limit).await;
        let records =
            records.map_err(|error| format!("its journal cannot be read: {}", error.reason()))?;
        let entries = decode_records(state.hash, &records).map_err(words)?;
        if entries.is_empty() {
            break;
        }
        for entry in &entries {
            fold(&mut state, entry);
            if state.version != entry.seq {
                return Err(words(incomplete));
            }
            for row in past_rows(&state, entry) {
                sum = sum.wrapping_add(weigh(&row));
            }
        }
    }
    if state.version != head.version || decode_head(&head.payload).map_err(words)? != state {
        return Err(words(incomplete));
    }
    if let Some(run) = &state.run
        && state.kind == ThreadKind::Agent
        && state.active().is_some()
        && !definitions.contains(&(Arc::clone(&key.tenant), run.definition))
    {
        return Err(format!(
            "its run needs the definition {} of `{}`, which is not there",
            run.definition, state.agent
        ));
    }
    let more = store.read(key, head.version, 1).await.map_err(words)?;
    let versions = store.versions(std::slice::from_ref(key));
    if !more.is_empty() && versions.await.map_err(words)? == [head.version] {
        return Err("its journal goes on after its head".to_owned());
    }
    for row in open_rows(&state) {
        sum = sum.wrapping_add(weigh(&row));
    }
    Ok(sum)
}

fn words(trouble: impl Display) -> String {
    trouble.to_string()
}

/// Takes the rows that there are away from those that there should be.
async fn take_rows(
    store: &dyn Store,
    checked: &mut Checked,
    balances: &mut Balances,
) -> Result<(), Unavailable> {
    let told = |index: &Index| matches!(index, Index::Outbox | Index::DeadLetter);
    // What was told and what was given up does not follow from any journal.
    for index in Index::ALL.into_iter().filter(|index| !told(index)) {
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

/// Looks at the definitions that there are, and returns them.
async fn check_definitions(
    store: &dyn Store,
    checked: &mut Checked,
    tell: &mut (dyn FnMut(Seen) + Send),
) -> Result<Definitions, Unavailable> {
    let mut definitions = Definitions::new();
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
        let is_last = blobs.len() < PAGE;
        after = blobs.last().cloned();
        definitions.extend(blobs);
        if is_last {
            return Ok(definitions);
        }
    }
}
