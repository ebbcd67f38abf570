//! Looks at everything in a store: whether journals are whole, heads follow from them, and indexes follow from both.

use std::{
    collections::{HashMap, HashSet},
    fmt::Display,
    sync::Arc,
};

use holdpoint_core::{
    Artifact, Codec, Damaged, Digest, Index, IndexRow, KeptAs, State, ThreadKind, decode_head,
    decode_records, fold, open_rows, past_rows,
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
    /// How many previews of calls.
    pub previews: u64,
    /// How many results of calls that are kept apart.
    pub artifacts: u64,
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

/// The digests of definitions and of whatever else is kept apart, with their tenants.
type Blobs = HashSet<(Arc<str>, Digest)>;

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
    let blobs = check_blobs(store, &mut checked, tell).await?;
    let of = store.count_threads().await?;
    let mut after = None;
    loop {
        let threads = store.threads(after.as_ref(), PAGE).await?;
        for (key, head) in &threads {
            let sum = match head {
                Ok(head) => check_thread(store, key, head, &blobs).await,
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
    blobs: &Blobs,
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
            if let Some(artifact) = entry.event.artifact()
                && !blobs.contains(&(Arc::clone(&key.tenant), artifact.kept))
                && !is_kept(store, key, artifact).await?
            {
                return Err(format!("`{}` is not there any more", artifact.address));
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
        && !blobs.contains(&(Arc::clone(&key.tenant), run.definition))
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

/// Whether a result is kept that was not when the blobs were looked at: it may be of a moment ago.
async fn is_kept(store: &dyn Store, key: &ThreadKey, artifact: &Artifact) -> Result<bool, String> {
    let payload = store
        .blob(&key.tenant, artifact.kept)
        .await
        .map_err(words)?;
    Ok(payload.is_some_and(|payload| Digest::of(&payload.bytes) == artifact.kept))
}

/// Looks at the definitions that there are and at what else is kept apart, and returns their digests.
async fn check_blobs(
    store: &dyn Store,
    checked: &mut Checked,
    tell: &mut (dyn FnMut(Seen) + Send),
) -> Result<Blobs, Unavailable> {
    let mut found = Blobs::new();
    let mut after = None;
    loop {
        let blobs = store.blobs(after.as_ref(), PAGE).await?;
        for (tenant, digest) in &blobs {
            let payload = store.blob(tenant, *digest).await?;
            let payload = payload.filter(|payload| {
                payload.codec == Codec::Json && Digest::of(&payload.bytes) == *digest
            });
            match payload.as_ref().map(KeptAs::of) {
                Some(KeptAs::Definition) => checked.definitions += 1,
                Some(KeptAs::Preview) => checked.previews += 1,
                Some(KeptAs::Artifact) => checked.artifacts += 1,
                // What it was cannot be told any more.
                None => tell(Seen::Flaw(Flaw {
                    thread: None,
                    what: format!("what is kept as {digest} of tenant {tenant} was changed"),
                })),
            }
        }
        let is_last = blobs.len() < PAGE;
        after = blobs.last().cloned();
        found.extend(blobs);
        if is_last {
            return Ok(found);
        }
    }
}
