//! Backups: copies that are made while the original is written, and are not driven until somebody adopts them.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use holdpoint_core::{Payload, Span, ThreadId};
use holdpoint_store::{
    Append, AppendError, Appended, BackupError, Fence, Head, LeaseAfter, LeaseError, Options,
    SqliteStore, Store as _, ThreadKey, conformance::record,
};
use rusqlite::Connection;
use tempfile::TempDir;

const LASTS: Span = Span::from_secs(60);

const TAKE: Fence = Fence::Take {
    after: 0,
    lasts: LASTS,
};

/// What is said to whoever wants to drive a backup.
const WHY: &str = "this is a backup, and what it holds may have gone on elsewhere; `--adopt` makes it the store to go on with";

fn key(session: &str) -> ThreadKey {
    ThreadKey {
        tenant: "acme".into(),
        thread: ThreadId::of_session("acme", "agent", session),
    }
}

fn append(session: &str, expect: u64, fence: Fence) -> Append {
    Append {
        key: key(session),
        expect,
        fence,
        records: vec![record(expect + 1)],
        head: Payload::json((expect + 1).to_string().into_bytes()),
        index: vec![],
        cells: vec![],
        lease: LeaseAfter::Keep,
    }
}

fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(path, &Options::default()).unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn check_integrity(path: &Path) {
    let conn = Connection::open(path).unwrap();
    let found: String = conn
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(found, "ok");
}

/// Somebody who appends to a thread of their own until they are told to stop.
struct Busy {
    session: String,
    acknowledged: Arc<AtomicU64>,
    task: tokio::task::JoinHandle<()>,
}

impl Busy {
    fn start(store: &Arc<SqliteStore>, session: &str, stop: &Arc<AtomicBool>) -> Self {
        let (store, stop) = (Arc::clone(store), Arc::clone(stop));
        let (name, acknowledged) = (session.to_owned(), Arc::new(AtomicU64::new(0)));
        let told = Arc::clone(&acknowledged);
        let task = tokio::spawn(async move {
            let mut version = 0;
            while !stop.load(Ordering::SeqCst) {
                let appended = store.append(append(&name, version, Fence::Open)).await;
                version = appended.unwrap().version;
                told.store(version, Ordering::SeqCst);
            }
        });
        Self {
            session: session.to_owned(),
            acknowledged,
            task,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_made_while_others_append_holds_all_that_was_acknowledged_and_is_whole() {
    let folder = TempDir::new().unwrap();
    let store = Arc::new(open(&folder.path().join("test.db")));
    let stop = Arc::new(AtomicBool::new(false));
    let busy: Vec<_> = (0..4)
        .map(|number| Busy::start(&store, &format!("busy {number}"), &stop))
        .collect();
    let versions = || -> Vec<u64> {
        busy.iter()
            .map(|busy| busy.acknowledged.load(Ordering::SeqCst))
            .collect()
    };
    let mut copies = Vec::new();
    for round in 1..=3_u64 {
        while versions().iter().any(|version| *version < round * 50) {
            tokio::task::yield_now().await;
        }
        let (at_least, to) = (versions(), folder.path().join(format!("copy {round}.db")));
        assert_eq!(store.backup(&to).await, Ok(()));
        copies.push((at_least, to));
    }
    stop.store(true, Ordering::SeqCst);
    let mut sessions = Vec::new();
    for busy in busy {
        busy.task.await.unwrap();
        sessions.push(busy.session);
    }
    for (at_least, path) in copies {
        check_integrity(&path);
        let copy = open(&path);
        for (session, at_least) in sessions.iter().zip(at_least) {
            let key = key(session);
            let Head {
                version, payload, ..
            } = copy.load(&key).await.unwrap().unwrap();
            assert!(version >= at_least, "{version} and not {at_least}");
            assert_eq!(payload, Payload::json(version.to_string().into_bytes()));
            let records = copy.read(&key, 0, usize::MAX).await.unwrap();
            assert_eq!(records, (1..=version).map(record).collect::<Vec<_>>());
        }
    }
}

#[tokio::test]
async fn a_backup_is_read_and_appended_to_but_not_driven_until_it_is_adopted() {
    let folder = TempDir::new().unwrap();
    let (original, path) = (
        open(&folder.path().join("test.db")),
        folder.path().join("copy.db"),
    );
    original.append(append("s", 0, TAKE)).await.unwrap();
    original.append(append("t", 0, Fence::Open)).await.unwrap();
    let before = original.now();
    original.backup(&path).await.unwrap();
    let after = original.now();
    let (copy, other) = (open(&path), open(&path));
    for store in [&copy, &other] {
        let made_at = store.backup_made_at().await.unwrap().unwrap();
        assert!(before <= made_at && made_at <= after);
    }
    assert_eq!(original.backup_made_at().await, Ok(None));

    assert_eq!(copy.read(&key("s"), 0, 9).await, Ok(vec![record(1)]));
    let appended = copy.append(append("t", 1, Fence::Open)).await;
    assert_eq!(appended.map(|it| it.version), Ok(2));
    // In the first thread the copied lease of the original's driver has not ended.
    for session in ["s", "t"] {
        assert_eq!(
            copy.take(&key(session), LASTS).await,
            Err(LeaseError::CannotDrive(WHY.to_owned()))
        );
    }
    let refused = Err(AppendError::CannotDrive(WHY.to_owned()));
    assert_eq!(copy.append(append("new", 0, TAKE)).await, refused);
    assert_eq!(copy.load(&key("new")).await, Ok(None));

    assert_eq!(copy.adopt().await, Ok(()));
    for store in [&copy, &other] {
        assert_eq!(store.backup_made_at().await, Ok(None));
    }
    // Whoever had opened it before notices.
    assert_eq!(other.take(&key("t"), LASTS).await, Ok(1_000_001));
    let appended = Appended {
        version: 1,
        epoch: 1,
    };
    assert_eq!(copy.append(append("new", 0, TAKE)).await, Ok(appended));
    // The original was never marked, and goes on.
    assert_eq!(original.take(&key("t"), LASTS).await, Ok(1));
}

#[tokio::test]
async fn no_driver_of_the_past_appends_to_an_adopted_backup() {
    let folder = TempDir::new().unwrap();
    let (original, path) = (
        open(&folder.path().join("test.db")),
        folder.path().join("copy.db"),
    );
    original.append(append("s", 0, TAKE)).await.unwrap();
    original.backup(&path).await.unwrap();
    let copy = open(&path);
    copy.adopt().await.unwrap();
    let adopted = Head {
        version: 1,
        epoch: 1_000_001,
        lease: None,
        payload: Payload::json(b"1".to_vec()),
    };
    assert_eq!(copy.load(&key("s")).await, Ok(Some(adopted.clone())));
    let fenced = Err(AppendError::Fenced { current: 1_000_001 });
    let again = Fence::Take {
        after: 1,
        lasts: LASTS,
    };
    for fence in [Fence::Driver(1), again] {
        assert_eq!(copy.append(append("s", 1, fence)).await, fenced);
    }
    assert_eq!(copy.adopt().await, Ok(()));
    assert_eq!(copy.load(&key("s")).await, Ok(Some(adopted)));
    assert_eq!(copy.take(&key("s"), LASTS).await, Ok(1_000_002));
}

#[tokio::test]
async fn a_backup_of_a_backup_is_one_too_and_so_is_one_of_a_store_that_was_adopted() {
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name);
    let original = open(&at("test.db"));
    original.append(append("s", 0, Fence::Open)).await.unwrap();
    original.backup(&at("first.db")).await.unwrap();
    let first = open(&at("first.db"));
    first.backup(&at("second.db")).await.unwrap();
    first.adopt().await.unwrap();
    first.backup(&at("third.db")).await.unwrap();
    for name in ["second.db", "third.db"] {
        let copy = open(&at(name));
        assert_eq!(
            copy.take(&key("s"), LASTS).await,
            Err(LeaseError::CannotDrive(WHY.to_owned())),
            "{name}"
        );
    }
}

#[tokio::test]
async fn a_backup_overwrites_nothing() {
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name);
    let store = open(&at("test.db"));
    fs::write(at("there.db"), "dear diary").unwrap();
    fs::create_dir(at("folder")).unwrap();
    symlink(at("nowhere"), at("link.db")).unwrap();
    // These belong to a database that is gone, but SQLite would read them as if they were the copy's.
    fs::write(at("log.db-wal"), "log").unwrap();
    fs::write(at("journal.db-journal"), "journal").unwrap();
    let before = names(folder.path());
    for (name, in_the_way) in [
        ("test.db", "test.db"),
        ("there.db", "there.db"),
        ("folder", "folder"),
        ("link.db", "link.db"),
        ("log.db", "log.db-wal"),
        ("journal.db", "journal.db-journal"),
    ] {
        let exists = BackupError::Exists {
            path: at(in_the_way),
        };
        assert_eq!(store.backup(&at(name)).await, Err(exists), "{name}");
    }
    assert_eq!(names(folder.path()), before);
    assert_eq!(fs::read(at("there.db")).unwrap(), b"dear diary");
}

#[tokio::test]
async fn of_backups_to_one_name_at_once_exactly_one_is_made() {
    let folder = TempDir::new().unwrap();
    let store = Arc::new(open(&folder.path().join("test.db")));
    store.append(append("s", 0, Fence::Open)).await.unwrap();
    let to = folder.path().join("copy.db");
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let (store, to) = (Arc::clone(&store), to.clone());
            tokio::spawn(async move { store.backup(&to).await })
        })
        .collect();
    let mut outcomes = Vec::new();
    for task in tasks {
        outcomes.push(task.await.unwrap());
    }
    outcomes.sort_by_key(Result::is_err);
    let mut expected = vec![Ok(())];
    expected.resize(8, Err(BackupError::Exists { path: to.clone() }));
    assert_eq!(outcomes, expected);
    check_integrity(&to);
    drop(store);
    assert_eq!(
        names(folder.path()),
        ["copy.db", "test.db", "test.db.owners"]
    );
}

#[tokio::test]
async fn a_backup_that_cannot_be_made_says_why_and_leaves_nothing() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder.path().join("test.db"));
    let before = names(folder.path());
    for (name, reason) in [
        ("no/where.db", "No such file or directory (os error 2)"),
        ("test.db/x.db", "Not a directory (os error 20)"),
    ] {
        let path = folder.path().join(name);
        let error = store.backup(&path).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "the backup `{}` could not be made: {reason}",
                path.display()
            )
        );
    }
    assert_eq!(names(folder.path()), before);
}

#[tokio::test]
async fn a_database_that_was_removed_has_no_backup() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("test.db");
    let store = open(&path);
    fs::rename(&path, folder.path().join("away.db")).unwrap();
    fs::write(&path, "").unwrap();
    let error = store.backup(&folder.path().join("copy.db")).await;
    assert_eq!(
        error.unwrap_err().to_string(),
        format!(
            "the store is unavailable: `{}` was removed or replaced while it was in use",
            path.display()
        )
    );
    assert!(!folder.path().join("copy.db").exists());
}

#[tokio::test]
async fn a_backup_is_seen_by_those_who_may_see_the_original() {
    let folder = TempDir::new().unwrap();
    let (path, to) = (folder.path().join("test.db"), folder.path().join("copy.db"));
    let store = open(&path);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    store.backup(&to).await.unwrap();
    assert_eq!(
        fs::metadata(to).unwrap().permissions().mode() & 0o777,
        0o640
    );
}
