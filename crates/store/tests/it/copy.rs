//! Everything moves from any store to any other, or nothing does.

use std::sync::Arc;

use holdpoint_core::{
    Digest, Index, IndexChange, IndexRow, Payload, Record, Span, ThreadId, Timestamp,
};
use holdpoint_store::{
    Append, AppendError, BackupError, CellChange, CellThen, Copied, CopyError, Direction, End,
    Fence, Head, KeptCells, LeaseAfter, ManualClock, MemoryStore, Move, Options, Part,
    SYSTEM_TENANT, Scan, SharedStore, Space, SqliteStore, Store, ThreadKey, abandon, copy,
};
#[cfg(feature = "postgres")]
use holdpoint_test_postgres::Database;
use tempfile::TempDir;
use tokio::task::JoinSet;

const NOW: Timestamp = Timestamp::from_millis(1_763_200_000_000);

/// A store, and what it needs to exist.
struct Place {
    store: SharedStore,
    clock: Arc<ManualClock>,
    _folder: TempDir,
    #[cfg(feature = "postgres")]
    _database: Option<Database>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Memory,
    Sqlite,
    #[cfg(feature = "postgres")]
    Postgres,
}

const KINDS: &[Kind] = &[
    Kind::Memory,
    Kind::Sqlite,
    #[cfg(feature = "postgres")]
    Kind::Postgres,
];

impl Place {
    async fn new(kind: Kind) -> Self {
        let clock = Arc::new(ManualClock::new(NOW));
        let options = Options::default().with_clock(Arc::<ManualClock>::clone(&clock));
        let folder = tempfile::tempdir().unwrap();
        #[cfg(feature = "postgres")]
        let database = (kind == Kind::Postgres).then(|| Database::create().unwrap());
        let store: SharedStore = match kind {
            Kind::Memory => Arc::new(MemoryStore::new(&options)),
            Kind::Sqlite => {
                Arc::new(SqliteStore::open(&folder.path().join("test.db"), &options).unwrap())
            }
            #[cfg(feature = "postgres")]
            Kind::Postgres => {
                let url = database.as_ref().unwrap().url();
                Arc::new(
                    holdpoint_store::PostgresStore::open(&url, &options)
                        .await
                        .unwrap(),
                )
            }
        };
        Self {
            store,
            clock,
            _folder: folder,
            #[cfg(feature = "postgres")]
            _database: database,
        }
    }

    fn end<'a>(&'a self, name: &'a str) -> End<'a> {
        End {
            store: &*self.store,
            name,
        }
    }
}

async fn moved(from: &Place, to: &Place) -> Result<Copied, CopyError> {
    copy(from.end("old"), to.end("new"), &mut |_| {}).await
}

fn key(tenant: &str, session: &str) -> ThreadKey {
    ThreadKey {
        tenant: tenant.into(),
        thread: ThreadId::of_session(tenant, "agent", session),
    }
}

/// Records of a journal that can be read, after those that it has.
fn records(key: &ThreadKey, after: u64, previous: Digest, count: u64) -> Vec<Record> {
    let mut previous = previous;
    let mut made = Vec::new();
    for seq in after + 1..=after + count {
        let tenant = &key.tenant;
        let header = format!(r#"{{"type":"paused","at":{seq},"by":["{tenant}","user","ann"]}}"#);
        let (header, salt) = (header.into_bytes(), [7; 16]);
        let payload = Payload::json(b"{}".to_vec());
        let digest = Record::payload_digest(&salt, &payload.bytes);
        let hash = Record::link(&previous, seq, &header, &digest);
        previous = hash;
        made.push(Record {
            seq,
            header,
            salt,
            payload,
            hash,
        });
    }
    made
}

fn append(key: &ThreadKey, records: Vec<Record>) -> Append {
    let first = records.first().unwrap().seq;
    let row = IndexRow {
        index: Index::Session,
        key: format!("row {first}"),
        sort: 0,
        thread: key.thread,
    };
    Append {
        key: key.clone(),
        expect: first - 1,
        fence: Fence::Open,
        head: Payload::json(format!("head {}", records.last().unwrap().seq).into_bytes()),
        records,
        index: vec![IndexChange::Put(row)],
        cells: Vec::new(),
        lease: LeaseAfter::Keep,
    }
}

fn cell(space: Space, key: &str, expect: u64, until: Option<Timestamp>) -> CellChange {
    CellChange {
        space,
        key: key.to_owned(),
        expect,
        then: CellThen::Set {
            value: key.as_bytes().to_vec(),
            until,
        },
    }
}

/// Some of everything: more than fits in a page, a long journal, a driver that is dead, cells that ended or were removed.
async fn fill(place: &Place) {
    let store = &place.store;
    let mut appends = JoinSet::new();
    for number in 0..620 {
        let key = key(["acme", "zenith"][number % 2], &format!("s{number}"));
        let made = records(&key, 0, Digest::default(), 2);
        let (store, append) = (Arc::clone(store), append(&key, made));
        appends.spawn(async move { store.append(append).await });
    }
    let appended = appends.join_all().await;
    assert!(appended.iter().all(Result::is_ok));
    let long = key("acme", "long");
    let made = records(&long, 0, Digest::default(), 1_300);
    store.append(append(&long, made)).await.unwrap();
    let driven = key("acme", "driven");
    let taken = Append {
        fence: Fence::Take {
            after: 0,
            lasts: Span::from_secs(1),
        },
        ..append(&driven, records(&driven, 0, Digest::default(), 1))
    };
    store.append(taken).await.unwrap();
    let swept = cell(Space::Request, "swept", 0, Some(NOW + Span::from_secs(1)));
    for expect in 0..3 {
        let swept = CellChange {
            expect,
            ..swept.clone()
        };
        store.set_cell("acme", swept).await.unwrap();
    }
    place.clock.advance(Span::from_secs(2));
    assert_eq!(store.sweep(9).await, Ok(1));
    for (tenant, change) in [
        ("acme", cell(Space::Definition, "agent", 0, None)),
        (
            "acme",
            cell(Space::Request, "lent", 0, Some(NOW + Span::from_secs(99))),
        ),
        ("zenith", cell(Space::Key, "removed", 0, None)),
        (
            "zenith",
            CellChange {
                then: CellThen::Remove,
                ..cell(Space::Key, "removed", 4, None)
            },
        ),
    ] {
        store.set_cell(tenant, change).await.unwrap();
    }
    for tenant in ["acme", "zenith"] {
        let definition = Payload::json(b"definition".to_vec());
        let digest = Digest::of(&definition.bytes);
        store.put_blob(tenant, definition, digest).await.unwrap();
    }
}

#[derive(Debug, PartialEq)]
struct Everything {
    threads: Vec<(ThreadKey, Head)>,
    records: Vec<Vec<Record>>,
    rows: Vec<Vec<IndexRow>>,
    cells: KeptCells,
    blobs: Vec<(Arc<str>, Digest)>,
}

async fn everything(store: &dyn Store) -> Everything {
    let threads = store.threads(None, usize::MAX).await.unwrap().into_iter();
    let mut threads: Vec<_> = threads.map(|(key, head)| (key, head.unwrap())).collect();
    let mut all = Vec::new();
    for (key, head) in &mut threads {
        all.push(store.read(key, 0, usize::MAX).await.unwrap());
        // It ended; nobody takes it along.
        head.lease = None;
    }
    let mut rows = Vec::new();
    for index in Index::ALL {
        for tenant in store.tenants(index).await.unwrap() {
            let scan = Scan {
                index,
                key: None,
                up_to: None,
                direction: Direction::Forward,
                after: None,
                limit: usize::MAX,
            };
            rows.push(store.scan(&tenant, scan).await.unwrap());
        }
    }
    Everything {
        threads,
        records: all,
        rows,
        cells: store.kept_cells(None, usize::MAX).await.unwrap(),
        blobs: store.blobs(None, usize::MAX).await.unwrap(),
    }
}

#[tokio::test]
async fn everything_moves_between_any_two_stores_and_only_the_new_one_goes_on() {
    for from in KINDS {
        for to in KINDS {
            let (from, to) = (Place::new(*from).await, Place::new(*to).await);
            fill(&from).await;
            let before = everything(&*from.store).await;
            let mut told = Vec::new();
            let copied = copy(from.end("old"), to.end("new"), &mut |it| told.push(it))
                .await
                .unwrap();
            assert_eq!(
                copied,
                Copied {
                    threads: 622,
                    records: 2 * 620 + 1_300 + 1
                }
            );
            assert_eq!(told.last().map(|it| (it.threads, it.of)), Some((622, 622)));
            assert_eq!(everything(&*to.store).await, before);
            assert_eq!(everything(&*from.store).await, before);

            let key = key("acme", "long");
            let more = || {
                let last = before.records.iter().map(|it| it.last().unwrap());
                let last = last.max_by_key(|it| it.seq).unwrap();
                append(&key, records(&key, last.seq, last.hash, 1))
            };
            let refused = from.store.append(more()).await.unwrap_err();
            assert!(
                refused.to_string().contains("has moved to new"),
                "{refused}"
            );
            assert_eq!(to.store.append(more()).await.unwrap().version, 1_301);
            assert_eq!(to.store.part().await, Ok(None));
            let again = moved(&from, &to).await.unwrap_err();
            assert!(matches!(again, CopyError::Elsewhere { .. }), "{again}");
        }
    }
}

#[tokio::test]
async fn what_was_acknowledged_before_the_seal_has_moved_and_nothing_was_after_it() {
    for (from, to) in [
        (Kind::Sqlite, Kind::Memory),
        #[cfg(feature = "postgres")]
        (Kind::Postgres, Kind::Sqlite),
    ] {
        let (from, to) = (Place::new(from).await, Place::new(to).await);
        let mut writers = JoinSet::new();
        for writer in 0..8 {
            let store = Arc::clone(&from.store);
            writers.spawn(async move {
                let mut acknowledged = Vec::new();
                for number in 0.. {
                    let key = key("acme", &format!("{writer}-{number}"));
                    let made = records(&key, 0, Digest::default(), 1);
                    let append = append(&key, made);
                    match store.append(append).await {
                        Ok(_) => acknowledged.push(key),
                        Err(AppendError::Unavailable(_)) => break,
                        Err(odd) => panic!("{odd}"),
                    }
                    // Some have cells, and go another way.
                    let cell = cell(Space::Token, &format!("{writer}-{number}"), 0, None);
                    match store.set_cell("acme", cell).await {
                        Ok(_) => {}
                        Err(AppendError::Unavailable(_)) => break,
                        Err(odd) => panic!("{odd}"),
                    }
                }
                acknowledged
            });
        }
        while from.store.count_threads().await.unwrap() < 200 {
            tokio::task::yield_now().await;
        }
        let copied = moved(&from, &to).await.unwrap();
        let acknowledged = writers.join_all().await.concat();
        assert_eq!(copied.threads, acknowledged.len() as u64);
        let versions = to.store.versions(&acknowledged).await.unwrap();
        assert!(versions.iter().all(|version| *version == 1));
    }
}

#[tokio::test]
async fn a_copy_that_was_cut_off_goes_on_and_one_that_was_given_up_does_not() {
    for to in KINDS {
        let (from, to) = (Place::new(Kind::Sqlite).await, Place::new(*to).await);
        fill(&from).await;
        let ticket = Move {
            ticket: 5,
            other: "new".to_owned(),
        };
        let (leaving, arriving) = (
            Part::Leaving(ticket.clone()),
            Part::Arriving(Move {
                other: "old".to_owned(),
                ..ticket
            }),
        );
        // Cut off before the seal, and after it.
        to.store.set_part(None, Some(&arriving)).await.unwrap();
        from.store.set_part(None, Some(&leaving)).await.unwrap();
        // Part of a thread, and a whole one, have arrived.
        let long = key("acme", "long");
        let mut import = holdpoint_store::Import {
            ticket: 5,
            ..holdpoint_store::Import::default()
        };
        let head = from.store.load(&long).await.unwrap().unwrap();
        import.threads.push(holdpoint_store::ImportedThread {
            key: long.clone(),
            epoch: 0,
            head: head.payload,
            records: from.store.read(&long, 0, 10).await.unwrap(),
        });
        to.store.import(import).await.unwrap();

        assert_eq!(abandon(from.end("old")).await, Ok(true));
        let refused = moved(&from, &to).await.unwrap_err();
        assert!(matches!(refused, CopyError::NotEmpty(_)), "{refused}");
        assert_eq!(abandon(from.end("old")).await, Ok(false));
        let late = key("acme", "late");
        let made = records(&late, 0, Digest::default(), 1);
        from.store.append(append(&late, made)).await.unwrap();

        from.store.set_part(None, Some(&leaving)).await.unwrap();
        assert_eq!(moved(&from, &to).await.unwrap().threads, 623);
        assert_eq!(everything(&*to.store).await, everything(&*from.store).await);
        let refused = abandon(from.end("old")).await.unwrap_err();
        assert!(
            refused.to_string().contains("has moved to new"),
            "{refused}"
        );
    }
}

#[tokio::test]
async fn nothing_is_copied_while_somebody_is_at_work_or_where_something_is() {
    let (from, to) = (
        Place::new(Kind::Sqlite).await,
        Place::new(Kind::Sqlite).await,
    );
    let same = copy(from.end("old"), from.end("old"), &mut |_| {}).await;
    assert!(matches!(same, Err(CopyError::Same(_))));

    let until = Some(NOW + Span::from_secs(10));
    let server = cell(Space::Server, "one", 0, until);
    from.store.set_cell(SYSTEM_TENANT, server).await.unwrap();
    let refused = moved(&from, &to).await.unwrap_err();
    assert!(matches!(refused, CopyError::Served(_)), "{refused}");
    from.clock.advance(Span::from_secs(10));

    let driven = key("acme", "driven");
    let mut taken = Append {
        fence: Fence::Take {
            after: 0,
            lasts: Span::from_secs(10),
        },
        ..append(&driven, records(&driven, 0, Digest::default(), 1))
    };
    taken.index.push(IndexChange::Put(IndexRow {
        index: Index::Runnable,
        key: String::new(),
        sort: 0,
        thread: driven.thread,
    }));
    from.store.append(taken).await.unwrap();
    let refused = moved(&from, &to).await.unwrap_err();
    assert!(matches!(refused, CopyError::Driven { .. }), "{refused}");
    from.clock.advance(Span::from_secs(10));

    let there = key("acme", "there");
    let made = records(&there, 0, Digest::default(), 1);
    to.store.append(append(&there, made)).await.unwrap();
    let refused = moved(&from, &to).await.unwrap_err();
    assert!(matches!(refused, CopyError::NotEmpty(_)), "{refused}");
    for place in [&from, &to] {
        assert_eq!(place.store.part().await, Ok(None), "nothing was changed");
    }
}

#[tokio::test]
async fn a_journal_that_was_tampered_with_does_not_move_and_neither_store_goes_on() {
    let (from, to) = (
        Place::new(Kind::Memory).await,
        Place::new(Kind::Memory).await,
    );
    let key = key("acme", "tampered");
    let mut made = records(&key, 0, Digest::default(), 3);
    made[1].header = made[1].header.to_ascii_uppercase();
    from.store.append(append(&key, made)).await.unwrap();
    let refused = moved(&from, &to).await.unwrap_err();
    assert!(matches!(refused, CopyError::Damaged { .. }), "{refused}");
    assert!(matches!(
        from.store.part().await,
        Ok(Some(Part::Leaving(_)))
    ));
    assert!(matches!(to.store.part().await, Ok(Some(Part::Arriving(_)))));
    assert_eq!(abandon(from.end("old")).await, Ok(true));
}

/// As far as somebody got who was cut off: the old store is sealed, the new one has a little of it.
async fn cut_off(from: &Place, to: &Place, ticket: u32) {
    let moving = |other: &str| Move {
        ticket,
        other: other.to_owned(),
    };
    let (leaving, arriving) = (Part::Leaving(moving("new")), Part::Arriving(moving("old")));
    assert_eq!(to.store.set_part(None, Some(&arriving)).await, Ok(true));
    assert_eq!(from.store.set_part(None, Some(&leaving)).await, Ok(true));
}

#[tokio::test]
async fn a_store_leaves_for_one_other_and_for_no_second() {
    for kind in KINDS {
        let [from, first, second] = [
            Place::new(*kind).await,
            Place::new(Kind::Sqlite).await,
            Place::new(Kind::Memory).await,
        ];
        fill(&from).await;
        cut_off(&from, &first, 5).await;
        let elsewhere = |refused: Result<Copied, CopyError>| {
            let refused = refused.unwrap_err();
            assert!(matches!(refused, CopyError::Elsewhere { .. }), "{refused}");
        };
        // It is on its way to another, whatever that is called.
        elsewhere(moved(&from, &second).await);
        assert_eq!(second.store.part().await, Ok(None));
        assert_eq!(moved(&from, &first).await.unwrap().threads, 622);
        elsewhere(moved(&from, &second).await);
        elsewhere(moved(&from, &first).await);
        assert_eq!(second.store.count_threads().await, Ok(0));
    }
}

#[tokio::test]
async fn of_two_that_move_one_store_at_once_to_two_others_one_does() {
    for round in 0..20 {
        let [from, first, second] = [
            Place::new(Kind::Sqlite).await,
            Place::new(Kind::Memory).await,
            Place::new(Kind::Memory).await,
        ];
        for number in 0..round {
            let key = key("acme", &format!("s{number}"));
            let made = records(&key, 0, Digest::default(), 1);
            from.store.append(append(&key, made)).await.unwrap();
        }
        let (one, other) = tokio::join!(moved(&from, &first), moved(&from, &second));
        assert!(one.is_ok() != other.is_ok(), "{one:?} {other:?}");
        let (winner, loser) = if one.is_ok() {
            (first, second)
        } else {
            (second, first)
        };
        assert_eq!(winner.store.count_threads().await, Ok(round));
        assert_eq!(loser.store.count_threads().await, Ok(0));
        for place in [&winner, &loser] {
            assert_eq!(place.store.part().await, Ok(None));
        }
    }
}

#[tokio::test]
async fn an_empty_store_is_not_moved_onto_itself_by_another_name() {
    let place = Place::new(Kind::Sqlite).await;
    let same = copy(place.end("old"), place.end("./old"), &mut |_| {}).await;
    assert!(matches!(same, Err(CopyError::Same(_))), "{same:?}");
    assert_eq!(place.store.part().await, Ok(None));
}

#[tokio::test]
async fn there_is_no_backup_of_a_store_that_is_moving() {
    let (from, to) = (
        Place::new(Kind::Sqlite).await,
        Place::new(Kind::Sqlite).await,
    );
    fill(&from).await;
    cut_off(&from, &to, 5).await;
    let folder = tempfile::tempdir().unwrap();
    for place in [&from, &to] {
        let path = folder.path().join("backup.db");
        let refused = place.store.backup(&path).await;
        assert!(
            matches!(refused, Err(BackupError::Unsupported(_))),
            "{refused:?}"
        );
        assert!(!path.exists());
    }
}
