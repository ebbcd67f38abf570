//! One random sequence of operations on all backends at once: whatever can be seen of one is seen of the others.

use std::{collections::BTreeMap, env, path::Path, sync::Arc};

use holdpoint_core::{
    Digest, Index, IndexChange, IndexRow, Payload, Record, Span, ThreadId, Timestamp,
};
use holdpoint_store::{
    Amendment, Append, CellChange, CellThen, Clock, Direction, Fence, LeaseAfter, ManualClock,
    MemoryStore, Options, PostgresStore, Scan, SharedStore, Space, SqliteStore, ThreadKey,
    conformance::record,
};
use holdpoint_test_postgres::Database;
use tempfile::TempDir;

/// How much is tried: a little, or all of it where that is asked for.
fn effort() -> (u64, usize) {
    match env::var_os("HOLDPOINT_TORTURE") {
        Some(_) => (50, 2_000),
        None => (5, 300),
    }
}

/// Two handles on each backend, as two processes have them.
struct Backends {
    stores: Vec<(&'static str, [SharedStore; 2])>,
    clock: Arc<ManualClock>,
    _folder: TempDir,
    _database: Database,
}

impl Backends {
    async fn new() -> Self {
        let clock = Arc::new(ManualClock::new(Timestamp::from_millis(1_700_000_000_000)));
        let shown: Arc<dyn Clock> = Arc::<ManualClock>::clone(&clock);
        let options = Options::default().with_clock(shown);
        let memory = MemoryStore::new(&options);
        let sibling = memory.sibling();
        let folder = tempfile::tempdir().unwrap();
        let sqlite = |path: &Path| -> SharedStore {
            Arc::new(SqliteStore::open(&path.join("test.db"), &options).unwrap())
        };
        let database = Database::create().unwrap();
        let url = database.url();
        let postgres = async || Arc::new(PostgresStore::open(&url, &options).await.unwrap());
        Self {
            stores: vec![
                ("memory", [Arc::new(memory), Arc::new(sibling)]),
                ("sqlite", [sqlite(folder.path()), sqlite(folder.path())]),
                ("postgres", [postgres().await, postgres().await]),
            ],
            clock,
            _folder: folder,
            _database: database,
        }
    }

    /// Does the same on all of them. What they say must be the same, but for the names of the handles.
    async fn all(&self, what: &Operation, told: &str) -> String {
        let mut said: Option<(&str, String)> = None;
        for (name, handles) in &self.stores {
            let mut answer = what.on(handles).await;
            for (handle, store) in ["HERE", "THERE"].into_iter().zip(handles) {
                answer = answer.replace(&store.owner().to_string(), handle);
                answer = answer.replace(&format!("{:?}", store.owner()), handle);
            }
            match &said {
                None => said = Some((name, answer)),
                Some((first, expected)) => assert_eq!(
                    &answer, expected,
                    "{name} and {first} differ: {told}: {what:?}"
                ),
            }
        }
        said.map(|(_, answer)| answer).unwrap_or_default()
    }
}

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        // Marsaglia's xorshift64*.
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % limit
    }

    fn is(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn one_of<T: Copy>(&mut self, values: &[T]) -> T {
        values[usize::try_from(self.below(values.len() as u64)).unwrap()]
    }
}

#[derive(Debug)]
enum Operation {
    Append(usize, Append),
    Take(usize, ThreadKey, Span),
    Renew(usize, ThreadKey, u64, Span),
    Release(usize, ThreadKey, u64, u64),
    SetCell(usize, &'static str, CellChange),
    Amend(usize, &'static str, Amendment),
    Load(usize, ThreadKey),
    LoadAll(usize, &'static str),
    Versions(usize),
    Read(usize, ThreadKey, u64, usize),
    Scan(usize, &'static str, Scan),
    Tenants(usize, Index),
    Cell(usize, &'static str, Space, String),
    Cells(usize, &'static str, Space, Option<String>, usize),
    Sweep(usize, usize),
    PutBlob(usize, &'static str, Vec<u8>),
    Blob(usize, &'static str, Vec<u8>),
}

const TENANTS: [&str; 3] = ["acme", "globex", "ünïcode\u{0}tenant"];
const SESSIONS: [&str; 4] = ["a", "b", "c", "d"];
const KEYS: [&str; 6] = ["", "a", "b", "\u{0}", "z\u{0}z", "日本"];
const SPACES: [Space; 2] = [Space::Grant, Space::Request];
const INDEXES: [Index; 3] = [Index::Runnable, Index::Pending, Index::Session];

fn key(tenant: &str, session: &str) -> ThreadKey {
    ThreadKey {
        tenant: tenant.into(),
        thread: ThreadId::of_session(tenant, "agent", session),
    }
}

fn keys() -> Vec<ThreadKey> {
    TENANTS
        .iter()
        .flat_map(|tenant| SESSIONS.iter().map(|session| key(tenant, session)))
        .collect()
}

impl Operation {
    async fn on(&self, handles: &[SharedStore; 2]) -> String {
        match self {
            Self::Append(by, append) => format!("{:?}", handles[*by].append(append.clone()).await),
            Self::Take(by, key, lasts) => format!("{:?}", handles[*by].take(key, *lasts).await),
            Self::Renew(by, key, epoch, lasts) => {
                format!("{:?}", handles[*by].renew(key, *epoch, *lasts).await)
            }
            Self::Release(by, key, epoch, version) => {
                format!("{:?}", handles[*by].release(key, *epoch, *version).await)
            }
            Self::SetCell(by, tenant, change) => {
                format!("{:?}", handles[*by].set_cell(tenant, change.clone()).await)
            }
            Self::Amend(by, tenant, amendment) => {
                format!("{:?}", handles[*by].amend(tenant, amendment.clone()).await)
            }
            Self::Load(by, key) => format!("{:?}", handles[*by].load(key).await),
            Self::LoadAll(by, tenant) => {
                let threads: Vec<ThreadId> = SESSIONS
                    .iter()
                    .map(|session| key(tenant, session).thread)
                    .collect();
                format!(
                    "{:?}",
                    handles[*by].load_all(&(*tenant).into(), &threads).await
                )
            }
            Self::Versions(by) => format!("{:?}", handles[*by].versions(&keys()).await),
            Self::Read(by, key, after, limit) => {
                format!("{:?}", handles[*by].read(key, *after, *limit).await)
            }
            Self::Scan(by, tenant, scan) => {
                format!("{:?}", handles[*by].scan(tenant, scan.clone()).await)
            }
            Self::Tenants(by, index) => format!("{:?}", handles[*by].tenants(*index).await),
            Self::Cell(by, tenant, space, key) => {
                format!("{:?}", handles[*by].cell(tenant, *space, key).await)
            }
            Self::Cells(by, tenant, space, after, limit) => {
                let after = after.as_deref();
                format!(
                    "{:?}",
                    handles[*by].cells(tenant, *space, after, *limit).await
                )
            }
            Self::Sweep(by, limit) => format!("{:?}", handles[*by].sweep(*limit).await),
            Self::PutBlob(by, tenant, bytes) => {
                let payload = Payload::json(bytes.clone());
                format!(
                    "{:?}",
                    handles[*by]
                        .put_blob(tenant, payload, Digest::of(bytes))
                        .await
                )
            }
            Self::Blob(by, tenant, bytes) => {
                format!("{:?}", handles[*by].blob(tenant, Digest::of(bytes)).await)
            }
        }
    }
}

/// What is known of the threads, so that most of what is tried can succeed.
#[derive(Default)]
struct Known {
    versions: BTreeMap<ThreadKey, u64>,
    epochs: BTreeMap<ThreadKey, u64>,
}

impl Known {
    fn version(&self, key: &ThreadKey) -> u64 {
        self.versions.get(key).copied().unwrap_or(0)
    }

    fn epoch(&self, key: &ThreadKey) -> u64 {
        self.epochs.get(key).copied().unwrap_or(0)
    }
}

fn index_change(random: &mut Random, key: &ThreadKey, now: Timestamp) -> IndexChange {
    let other = ThreadId::of_session("acme", "agent", random.one_of(&SESSIONS));
    let row = IndexRow {
        index: random.one_of(&INDEXES),
        key: random.one_of(&KEYS).to_owned(),
        sort: random.one_of(&[i64::MIN, -1, 0, 7, now.as_micros(), i64::MAX]),
        thread: if random.is(90) { key.thread } else { other },
    };
    if random.is(65) {
        IndexChange::Put(row)
    } else {
        IndexChange::Remove(row)
    }
}

fn cell_change(random: &mut Random, now: Timestamp) -> CellChange {
    let until = [None, Some(now + Span::from_secs(3)), Some(now)];
    CellChange {
        space: random.one_of(&SPACES),
        key: random.one_of(&KEYS).to_owned(),
        expect: random.below(4),
        then: match random.below(5) {
            0 => CellThen::Remove,
            1 => CellThen::Keep,
            _ => CellThen::Set {
                value: vec![u8::try_from(random.below(256)).unwrap(); 3],
                until: random.one_of(&until),
            },
        },
    }
}

fn amendment(random: &mut Random, key: &ThreadKey, now: Timestamp) -> Amendment {
    Amendment {
        index: (0..random.below(4))
            .map(|_| index_change(random, key, now))
            .collect(),
        cells: (0..random.below(3))
            .map(|_| cell_change(random, now))
            .collect(),
    }
}

fn append(random: &mut Random, known: &Known, key: &ThreadKey, now: Timestamp) -> Append {
    let expect = if random.is(85) {
        known.version(key)
    } else {
        random.below(6)
    };
    let epoch = if random.is(85) {
        known.epoch(key)
    } else {
        random.below(4)
    };
    let fence = match random.below(3) {
        0 => Fence::Open,
        1 => Fence::Driver(epoch),
        _ => Fence::Take {
            after: epoch,
            lasts: Span::from_secs(1 + random.below(4)),
        },
    };
    let count = if random.is(3) { 0 } else { 1 + random.below(3) };
    let skipped = u64::from(random.is(2));
    let records: Vec<Record> = (1..=count)
        .map(|step| {
            let mut record = record(expect + step + skipped);
            record.hash = Digest::of(&random.below(u64::MAX).to_be_bytes());
            record
        })
        .collect();
    Append {
        key: key.clone(),
        expect,
        fence,
        head: Payload::json(vec![0; usize::try_from(random.below(300)).unwrap()]),
        records,
        index: (0..random.below(4))
            .map(|_| index_change(random, key, now))
            .collect(),
        cells: if random.is(20) {
            (0..random.below(3))
                .map(|_| cell_change(random, now))
                .collect()
        } else {
            Vec::new()
        },
        lease: if random.is(20) {
            LeaseAfter::Release
        } else {
            LeaseAfter::Keep
        },
    }
}

fn scan(random: &mut Random, now: Timestamp) -> Scan {
    let after = IndexRow {
        index: Index::Runnable,
        key: random.one_of(&KEYS).to_owned(),
        sort: random.one_of(&[i64::MIN, 0, 7, now.as_micros()]),
        thread: ThreadId::of_session("acme", "agent", random.one_of(&SESSIONS)),
    };
    let index = random.one_of(&INDEXES);
    Scan {
        index,
        key: random.is(50).then(|| random.one_of(&KEYS).to_owned()),
        up_to: random
            .is(30)
            .then(|| random.one_of(&[0, 7, now.as_micros()])),
        direction: random.one_of(&[Direction::Forward, Direction::Backward]),
        after: random.is(40).then_some(IndexRow { index, ..after }),
        limit: random.one_of(&[0, 1, 3, 100, usize::MAX]),
    }
}

fn operation(random: &mut Random, known: &Known, now: Timestamp) -> Operation {
    let by = usize::from(random.is(40));
    let tenant = random.one_of(&TENANTS);
    let key = key(tenant, random.one_of(&SESSIONS));
    let (version, epoch) = (known.version(&key), known.epoch(&key));
    let lasts = Span::from_secs(1 + random.below(4));
    match random.below(20) {
        0..=7 => Operation::Append(by, append(random, known, &key, now)),
        8 => Operation::Take(by, key, lasts),
        9 => Operation::Renew(by, key, epoch.saturating_sub(random.below(2)), lasts),
        10 => Operation::Release(by, key, epoch, version.saturating_sub(random.below(2))),
        11 => Operation::SetCell(by, tenant, cell_change(random, now)),
        12 => Operation::Amend(by, tenant, amendment(random, &key, now)),
        13 => Operation::Load(by, key),
        14 => match random.below(3) {
            0 => Operation::LoadAll(by, tenant),
            1 => Operation::Versions(by),
            _ => Operation::Tenants(by, random.one_of(&INDEXES)),
        },
        15 => {
            let (after, limit) = (random.below(6), random.one_of(&[0, 1, 5, usize::MAX]));
            Operation::Read(by, key, after, limit)
        }
        16 => Operation::Scan(by, tenant, scan(random, now)),
        17 => {
            let key = random.one_of(&KEYS).to_owned();
            Operation::Cell(by, tenant, random.one_of(&SPACES), key)
        }
        18 => {
            let after = random.is(50).then(|| random.one_of(&KEYS).to_owned());
            let limit = random.one_of(&[0, 1, 3, usize::MAX]);
            Operation::Cells(by, tenant, random.one_of(&SPACES), after, limit)
        }
        _ => {
            let bytes = vec![u8::try_from(random.below(4)).unwrap(); 5];
            match random.below(3) {
                0 => Operation::Sweep(by, random.one_of(&[0, 1, 10])),
                1 => Operation::PutBlob(by, tenant, bytes),
                _ => Operation::Blob(by, tenant, bytes),
            }
        }
    }
}

/// Takes note of what an operation changed.
async fn learn(known: &mut Known, store: &SharedStore, key: &ThreadKey) {
    if let Some(head) = store.load(key).await.unwrap() {
        known.versions.insert(key.clone(), head.version);
        known.epochs.insert(key.clone(), head.epoch);
    }
}

#[tokio::test]
async fn memory_sqlite_and_postgres_cannot_be_told_apart() {
    let (seeds, operations) = effort();
    let (mut done, mut admitted) = (0_usize, 0_usize);
    for seed in 1..=seeds {
        let backends = Backends::new().await;
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut known = Known::default();
        for nth in 0..operations {
            if random.is(15) {
                backends
                    .clock
                    .advance(Span::from_millis(random.below(2_000)));
            }
            let operation = operation(&mut random, &known, backends.clock.now());
            let told = format!("seed {seed}, operation {nth}");
            let said = backends.all(&operation, &told).await;
            if let Operation::Append(_, Append { key, .. })
            | Operation::Take(_, key, _)
            | Operation::Renew(_, key, ..)
            | Operation::Release(_, key, ..) = &operation
            {
                done += 1;
                admitted += usize::from(said.starts_with("Ok"));
                learn(&mut known, &backends.stores[0].1[0], key).await;
            }
        }
        // In the end nothing that is left differs either.
        for key in keys() {
            let told = format!("seed {seed}, at the end");
            backends.all(&Operation::Load(0, key.clone()), &told).await;
            let journal = Operation::Read(1, key, 0, usize::MAX);
            backends.all(&journal, &told).await;
        }
    }
    assert!(
        admitted * 3 > done,
        "{admitted} of {done} changes were admitted, which proves little"
    );
    eprintln!("{seeds} seeds, {operations} operations each: {admitted} of {done} changes admitted");
}
