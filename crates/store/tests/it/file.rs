//! What may be wrong with a database file, and what is said about it.

use std::{fs, path::Path};

use holdpoint_core::{Digest, Payload, Span, ThreadId};
use holdpoint_store::{
    Append, AppendError, Appended, Fence, LeaseAfter, LeaseError, OpenError, Options, SqliteStore,
    Store as _, ThreadKey, Unavailable, conformance::record, open,
};
use rusqlite::Connection;
use tempfile::TempDir;

const LASTS: Span = Span::from_secs(60);

/// What is said when the file is opened, with the folder's name left out.
fn refusal(folder: &TempDir, name: &str) -> String {
    let error = SqliteStore::open(&folder.path().join(name), &Options::default()).unwrap_err();
    error
        .to_string()
        .replace(&*folder.path().to_string_lossy(), "FOLDER")
}

fn first(session: &str, fence: Fence) -> Append {
    Append {
        key: ThreadKey {
            tenant: "acme".into(),
            thread: ThreadId::of_session("acme", "agent", session),
        },
        expect: 0,
        fence,
        records: vec![record(1)],
        head: Payload::json(vec![]),
        index: vec![],
        cells: vec![],
        lease: LeaseAfter::Keep,
    }
}

fn bytes(path: &Path) -> Digest {
    Digest::of(&fs::read(path).unwrap())
}

#[test]
fn a_path_that_cannot_hold_a_database_is_refused_in_plain_words() {
    let folder = TempDir::new().unwrap();
    fs::create_dir(folder.path().join("dir.db")).unwrap();
    fs::write(folder.path().join("text.db"), "Dear diary, ".repeat(100)).unwrap();
    Connection::open(folder.path().join("other.db"))
        .unwrap()
        .execute_batch("CREATE TABLE t (x)")
        .unwrap();
    let said = [
        "dir.db",
        "no/where/x.db",
        "text.db",
        "other.db",
        "text.db/x.db",
    ]
    .map(|name| refusal(&folder, name));
    assert_eq!(
        said,
        [
            "`FOLDER/dir.db` is a folder, not a database file",
            "there is no folder `FOLDER/no/where` to keep `FOLDER/no/where/x.db` in",
            "`FOLDER/text.db` is not a database",
            "`FOLDER/other.db` is a database of another program",
            "`FOLDER/text.db/x.db` cannot be looked at: Not a directory (os error 20)",
        ]
    );
    assert!(!folder.path().join("other.db.owners").exists());
}

#[test]
fn a_file_of_a_newer_format_is_refused_by_number_and_not_touched() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("test.db");
    drop(SqliteStore::open(&path, &Options::default()).unwrap());
    let future = Connection::open(&path).unwrap();
    future
        .execute_batch("INSERT INTO migrations VALUES (7, x'00'); PRAGMA journal_mode = DELETE")
        .unwrap();
    drop(future);
    let before = bytes(&path);
    let error = SqliteStore::open(&path, &Options::default()).unwrap_err();
    assert_eq!(
        error,
        OpenError::Newer {
            store: format!("`{}`", path.display()),
            found: 7,
            reads: 2
        }
    );
    assert_eq!(
        refusal(&folder, "test.db"),
        "`FOLDER/test.db` has format 7, but this version reads formats up to 2: use a newer version"
    );
    assert_eq!(bytes(&path), before);
}

#[test]
fn a_file_whose_layout_is_not_what_its_number_says_is_refused() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("test.db");
    drop(SqliteStore::open(&path, &Options::default()).unwrap());
    Connection::open(&path)
        .unwrap()
        .execute_batch("UPDATE migrations SET checksum = x'00'")
        .unwrap();
    assert_eq!(
        refusal(&folder, "test.db"),
        "`FOLDER/test.db` says it has format 2, but is not laid out as this version knows that format"
    );
}

#[tokio::test]
async fn an_empty_file_becomes_a_store() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("test.db");
    fs::write(&path, "").unwrap();
    let store = SqliteStore::open(&path, &Options::default()).unwrap();
    assert_eq!(
        store.append(first("s", Fence::Open)).await,
        Ok(Appended {
            version: 1,
            epoch: 0
        })
    );
}

#[tokio::test]
async fn where_owners_cannot_be_told_apart_a_store_is_read_and_written_but_not_driven() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("test.db.owners"), "in the way").unwrap();
    let store = SqliteStore::open(&folder.path().join("test.db"), &Options::default()).unwrap();
    let free = first("s", Fence::Open);
    let key = free.key.clone();
    assert_eq!(
        store.append(free).await,
        Ok(Appended {
            version: 1,
            epoch: 0
        })
    );
    assert_eq!(store.read(&key, 0, 10).await, Ok(vec![record(1)]));
    let why = format!(
        "`{}` cannot hold the lock that shows we are alive: File exists (os error 17)",
        folder.path().join("test.db.owners").display()
    );
    assert_eq!(
        store.take(&key, LASTS).await,
        Err(LeaseError::CannotDrive(why.clone()))
    );
    let taking = first(
        "t",
        Fence::Take {
            after: 0,
            lasts: LASTS,
        },
    );
    assert_eq!(
        store.append(taking).await,
        Err(AppendError::CannotDrive(why))
    );
}

#[tokio::test]
async fn a_database_that_was_removed_or_replaced_takes_no_more_appends() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("test.db");
    let store = SqliteStore::open(&path, &Options::default()).unwrap();
    let gone = format!(
        "`{}` was removed or replaced while it was in use",
        path.display()
    );
    let gone = AppendError::Unavailable(Unavailable::new(gone));
    fs::rename(&path, folder.path().join("away.db")).unwrap();
    assert_eq!(
        store.append(first("s", Fence::Open)).await,
        Err(gone.clone())
    );
    fs::write(&path, "").unwrap();
    assert_eq!(store.append(first("s", Fence::Open)).await, Err(gone));
    fs::rename(folder.path().join("away.db"), &path).unwrap();
    assert_eq!(
        store.append(first("s", Fence::Open)).await,
        Ok(Appended {
            version: 1,
            epoch: 0
        })
    );
}

#[test]
fn a_new_file_may_be_opened_by_many_at_once() {
    for _ in 0..10 {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("test.db");
        let opened: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| SqliteStore::open(&path, &Options::default()).map(drop)))
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        assert_eq!(opened, vec![Ok(()); 8]);
    }
}

#[tokio::test]
async fn a_thread_that_is_full_says_so() {
    let folder = TempDir::new().unwrap();
    let store = SqliteStore::open(&folder.path().join("test.db"), &Options::default()).unwrap();
    let last = (1 << 24) - 1;
    let append = Append {
        expect: last,
        records: vec![record(last + 1)],
        ..first("s", Fence::Open)
    };
    let full = "a thread of this store holds at most 16777215 records".to_owned();
    assert_eq!(
        store.append(append).await,
        Err(AppendError::Malformed(full))
    );
}

#[test]
fn a_store_leaves_nothing_behind_but_its_file() {
    let folder = TempDir::new().unwrap();
    drop(SqliteStore::open(&folder.path().join("test.db"), &Options::default()).unwrap());
    let mut left: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|file| file.unwrap().file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["test.db", "test.db.owners"]);
    assert_eq!(
        fs::read_dir(folder.path().join("test.db.owners"))
            .unwrap()
            .count(),
        0
    );
}

#[test]
fn files_of_owners_that_are_long_dead_are_swept_away() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("test.db");
    let owners = folder.path().join("test.db.owners");
    fs::create_dir(&owners).unwrap();
    for name in ["fresh", "old", "alive"] {
        fs::write(owners.join(name), "").unwrap();
    }
    let alive = fs::File::open(owners.join("alive")).unwrap();
    alive.lock().unwrap();
    let long_ago = std::time::SystemTime::UNIX_EPOCH;
    for name in ["old", "alive"] {
        fs::File::options()
            .write(true)
            .open(owners.join(name))
            .unwrap()
            .set_modified(long_ago)
            .unwrap();
    }
    drop(SqliteStore::open(&path, &Options::default()).unwrap());
    let mut left: Vec<_> = fs::read_dir(owners)
        .unwrap()
        .map(|file| file.unwrap().file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["alive", "fresh"]);
}

#[tokio::test]
async fn a_store_is_opened_by_its_url() {
    let folder = TempDir::new().unwrap();
    let url = format!("sqlite:{}", folder.path().join("test.db").display());
    assert!(open(&url, Options::default()).await.unwrap().is_durable());
    assert!(
        !open("memory:", Options::default())
            .await
            .unwrap()
            .is_durable()
    );
    // Whatever may be a password is not shown.
    for (url, shown) in [
        ("", ""),
        ("sqlite:", "sqlite:…"),
        ("redis://ann:secret@host", "redis:…"),
        ("postgres//ann:secret@host", "postgres//ann:…"),
        ("password=secret", "password:…"),
        ("memory", "memory"),
        ("test.db", "test.db"),
    ] {
        let error = open(url, Options::default()).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("`{shown}` names no store: use `sqlite:PATH`, `postgres://…` or `memory:`")
        );
    }
}

/// Nobody should have to wait for the lease of a process that ended in good order but in the middle of its work.
#[tokio::test]
async fn the_lease_of_a_store_that_was_closed_is_free_at_once() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("test.db");
    let here = SqliteStore::open(&path, &Options::default()).unwrap();
    let closed = SqliteStore::open(&path, &Options::default()).unwrap();
    let taking = first(
        "s",
        Fence::Take {
            after: 0,
            lasts: LASTS,
        },
    );
    let key = taking.key.clone();
    closed.append(taking).await.unwrap();
    assert!(here.take(&key, LASTS).await.is_err());
    drop(closed);
    assert_eq!(here.take(&key, LASTS).await, Ok(2));
}

#[tokio::test]
async fn a_file_that_somebody_died_over_is_put_back_and_driven() {
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name);
    let store = SqliteStore::open(&at("test.db"), &Options::default()).unwrap();
    store.append(first("s", Fence::Open)).await.unwrap();
    // A copy is not in the mode that stores are written in until somebody opens it, and they may die over that.
    store.backup(&at("copy.db")).await.unwrap();
    let dying = Connection::open(at("copy.db")).unwrap();
    dying
        .execute_batch(
            "PRAGMA cache_size = 2; BEGIN; CREATE TABLE torn (x);
             WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 200)
             INSERT INTO torn SELECT randomblob(4000) FROM n",
        )
        .unwrap();
    for ending in ["", "-journal"] {
        let (from, to) = (format!("copy.db{ending}"), format!("left.db{ending}"));
        fs::copy(at(&from), at(&to)).unwrap();
    }
    let left = SqliteStore::open(&at("left.db"), &Options::default()).unwrap();
    let key = first("s", Fence::Open).key;
    assert_eq!(left.read(&key, 0, 10).await, Ok(vec![record(1)]));
    assert_eq!(left.adopt().await, Ok(()));
    assert_eq!(left.take(&key, LASTS).await, Ok(1_000_001));
}
