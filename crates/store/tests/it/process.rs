//! Several processes on one file, and what becomes of what a killed one held.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead as _, BufReader, Read as _},
    os::unix::{
        fs::{MetadataExt as _, PermissionsExt as _},
        process::{CommandExt as _, ExitStatusExt as _},
    },
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, ExitStatus, Stdio},
    time::Duration,
};

use holdpoint_core::{Payload, Record, Span, ThreadId};
use holdpoint_store::{
    Append, AppendError, Appended, Fence, Head, Holder, LeaseAfter, LeaseError, Options,
    SqliteStore, Store as _, ThreadKey, conformance::record,
};
use tempfile::TempDir;

const LASTS: Span = Span::from_secs(3_600);
const PART: &str = "HOLDPOINT_TEST_PART";
const FILE: &str = "HOLDPOINT_TEST_FILE";

fn key() -> ThreadKey {
    ThreadKey {
        tenant: "acme".into(),
        thread: ThreadId::of_session("acme", "agent", "s"),
    }
}

fn append(expect: u64, writer: &str, fence: Fence) -> Append {
    let payload = Payload::json(writer.as_bytes().to_vec());
    Append {
        key: key(),
        expect,
        fence,
        records: vec![Record {
            payload,
            ..record(expect + 1)
        }],
        head: Payload::json(vec![]),
        index: vec![],
        cells: vec![],
        lease: LeaseAfter::Keep,
    }
}

fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(path, &Options::default()).unwrap()
}

/// A second process: this test binary once more, playing one part.
struct Second {
    child: Child,
    said: BufReader<ChildStdout>,
}

impl Second {
    fn start(part: &str, file: &Path, set: impl FnOnce(&mut Command)) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        Self::start_as(&mut command, part, file, set)
    }

    fn start_as(
        command: &mut Command,
        part: &str,
        file: &Path,
        set: impl FnOnce(&mut Command),
    ) -> Self {
        command
            .args([
                "--exact",
                "process::the_part_of_a_second_process",
                "--nocapture",
            ])
            .env(PART, part)
            .env(FILE, file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        set(command);
        let mut child = command.spawn().unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        Self { child, said }
    }

    /// Waits until it says so. The test harness writes into the same stream.
    fn ready(mut self) -> Self {
        let mut line = String::new();
        while !line.ends_with("ready\n") {
            line.clear();
            assert_ne!(
                self.said.read_line(&mut line).unwrap(),
                0,
                "it ended too early"
            );
        }
        self
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Lets it end by itself.
    fn end(mut self) -> ExitStatus {
        drop(self.child.stdin.take());
        let mut rest = String::new();
        self.said.read_to_string(&mut rest).unwrap();
        self.child.wait().unwrap()
    }
}

fn until_told_to_end() {
    let mut input = String::new();
    std::io::stdin().read_to_string(&mut input).unwrap();
}

/// Does nothing unless another test has started this process to play a part.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_part_of_a_second_process() {
    let (Some(part), Some(file)) = (std::env::var_os(PART), std::env::var_os(FILE)) else {
        return;
    };
    let store = open(Path::new(&file));
    match part.to_str().unwrap() {
        "drive" => {
            let taken = store
                .append(append(
                    0,
                    "second",
                    Fence::Take {
                        after: 0,
                        lasts: LASTS,
                    },
                ))
                .await;
            assert_eq!(
                taken,
                Ok(Appended {
                    version: 1,
                    epoch: 1
                })
            );
            println!("ready");
            until_told_to_end();
        }
        "backup" => {
            store
                .append(append(0, "second", Fence::Open))
                .await
                .unwrap();
            store.backup(&copy_of(Path::new(&file))).await.unwrap();
        }
        "append" => {
            println!("ready");
            append_a_hundred(&store, "second").await;
        }
        "read" => {
            let head = Head {
                version: 1,
                epoch: 0,
                lease: None,
                payload: Payload::json(vec![]),
            };
            assert_eq!(store.load(&key()).await, Ok(Some(head)));
            let why = format!(
                "`{}` was opened to be read only: the file or its folder may not be written by this user",
                Path::new(&file).display()
            );
            assert_eq!(
                store.take(&key(), LASTS).await,
                Err(LeaseError::CannotDrive(why.clone()))
            );
            let unavailable = store
                .append(append(1, "second", Fence::Open))
                .await
                .unwrap_err();
            assert_eq!(
                unavailable.to_string(),
                format!("the store is unavailable: {why}")
            );
        }
        other => panic!("there is no part `{other}`"),
    }
}

fn copy_of(file: &Path) -> PathBuf {
    file.with_file_name("copy.db")
}

/// Appends until a hundred of them have won.
async fn append_a_hundred(store: &SqliteStore, writer: &str) {
    let mut version = 0;
    for _ in 0..100 {
        loop {
            match store.append(append(version, writer, Fence::Open)).await {
                Ok(appended) => {
                    version = appended.version;
                    break;
                }
                Err(AppendError::Conflict { current }) => version = current,
                Err(other) => panic!("{other}"),
            }
        }
    }
}

#[tokio::test]
async fn two_processes_append_to_one_thread_and_nothing_is_lost() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("test.db");
    let store = open(&path);
    let second = Second::start("append", &path, |_| {}).ready();
    append_a_hundred(&store, "first").await;
    assert!(second.end().success());
    let records = store.read(&key(), 0, 1_000).await.unwrap();
    let mut by_writer: BTreeMap<&[u8], usize> = BTreeMap::new();
    for record in &records {
        *by_writer.entry(&record.payload.bytes).or_default() += 1;
    }
    assert_eq!(
        by_writer,
        BTreeMap::from([(b"first".as_slice(), 100), (b"second".as_slice(), 100)])
    );
    assert_eq!(
        records.iter().map(|record| record.seq).collect::<Vec<_>>(),
        (1..=200).collect::<Vec<_>>()
    );
}

#[tokio::test]
async fn the_lease_of_a_live_process_is_not_taken_and_of_a_killed_one_at_once() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("test.db");
    let store = open(&path);
    let second = Second::start("drive", &path, |_| {}).ready();

    let alive = store.load(&key()).await.unwrap().unwrap().lease.unwrap();
    assert_eq!(alive.holder, Holder::MaybeAlive);
    assert_eq!(
        store.take(&key(), LASTS).await,
        Err(LeaseError::Held {
            lease: alive.clone()
        })
    );

    second.kill();
    let dead = holdpoint_store::Lease {
        holder: Holder::Dead,
        ..alive
    };
    assert_eq!(store.load(&key()).await.unwrap().unwrap().lease, Some(dead));
    let taken = store
        .append(append(
            1,
            "first",
            Fence::Take {
                after: 1,
                lasts: LASTS,
            },
        ))
        .await;
    assert_eq!(
        taken,
        Ok(Appended {
            version: 2,
            epoch: 2
        })
    );
}

#[tokio::test]
async fn a_dead_process_of_another_boot_may_be_alive_elsewhere() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("test.db");
    Second::start("drive", &path, |_| {}).ready().kill();
    let other = rusqlite::Connection::open(&path).unwrap();
    other
        .execute("UPDATE threads SET boot = 'another boot'", [])
        .unwrap();
    drop(other);
    let store = open(&path);
    let lease = store.load(&key()).await.unwrap().unwrap().lease.unwrap();
    assert_eq!(lease.holder, Holder::MaybeAlive);
    assert_eq!(
        store.take(&key(), LASTS).await,
        Err(LeaseError::Held { lease })
    );
}

#[tokio::test]
async fn a_process_that_ends_in_good_order_with_a_lease_leaves_its_file_so_that_nobody_waits() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("test.db");
    assert!(
        Second::start("drive", &path, |_| {})
            .ready()
            .end()
            .success()
    );
    let store = open(&path);
    let lease = store.load(&key()).await.unwrap().unwrap().lease.unwrap();
    assert_eq!(lease.holder, Holder::Dead);
    assert_eq!(store.take(&key(), LASTS).await, Ok(2));
}

#[tokio::test]
async fn commits_of_another_process_are_noticed() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("test.db");
    let store = open(&path);
    let mut changes = store.foreign_changes();
    changes.mark_unchanged();
    let second = Second::start("drive", &path, |_| {}).ready();
    tokio::time::timeout(Duration::from_secs(20), changes.changed())
        .await
        .unwrap()
        .unwrap();
    assert!(second.end().success());
}

#[tokio::test]
async fn a_user_who_may_not_write_can_still_read() {
    let folder = TempDir::new().unwrap();
    let inner = folder.path().join("inner");
    fs::create_dir(&inner).unwrap();
    let path = inner.join("test.db");
    let store = open(&path);
    assert_eq!(
        store.append(append(0, "first", Fence::Open)).await,
        Ok(Appended {
            version: 1,
            epoch: 0
        })
    );
    drop(store);
    let allow =
        |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    allow(folder.path(), 0o755);
    allow(&path, 0o444);
    allow(&inner.join("test.db.owners"), 0o555);
    allow(&inner, 0o555);

    // Nothing is forbidden to root, so the part is played by nobody, who has to be able to start the test binary.
    let mut command = Command::new(std::env::current_exe().unwrap());
    let copy: PathBuf = folder.path().join("it");
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
        command = Command::new(&copy);
        command.uid(65_534).gid(65_534);
    }
    let second = Second::start_as(&mut command, "read", &path, |_| {});
    assert!(second.end().success());
    allow(&inner, 0o755);
    allow(&inner.join("test.db.owners"), 0o755);
}

#[tokio::test]
async fn killed_before_the_commit_nothing_is_there_and_killed_after_it_everything() {
    for (point, version) in [
        ("store.commit.before", None),
        ("store.commit.after", Some(1)),
    ] {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("test.db");
        let log = folder.path().join("log");
        let second = Second::start("drive", &path, |command| {
            command
                .env("HOLDPOINT_FAILPOINT", format!("{point}:1"))
                .env("HOLDPOINT_FAILPOINT_LOG", &log);
        });
        assert_eq!(second.end().signal(), Some(9), "{point}");
        assert!(
            fs::read_to_string(log)
                .unwrap()
                .ends_with(&format!("{point}\n"))
        );
        let head = open(&path).load(&key()).await.unwrap();
        assert_eq!(head.map(|head| head.version), version, "{point}");
    }
}

#[tokio::test]
async fn killed_while_a_backup_is_made_there_is_none_and_killed_after_it_all_of_it() {
    for (point, version) in [
        ("store.backup.before", None),
        ("store.backup.after", Some(1)),
    ] {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("test.db");
        let second = Second::start("backup", &path, |command| {
            command.env("HOLDPOINT_FAILPOINT", format!("{point}:1"));
        });
        assert_eq!(second.end().signal(), Some(9), "{point}");
        let copy = copy_of(&path);
        assert_eq!(copy.exists(), version.is_some(), "{point}");
        if copy.exists() {
            let head = open(&copy).load(&key()).await.unwrap();
            assert_eq!(head.map(|head| head.version), version);
        }
        // What is left of it is in nobody's way.
        let again = folder.path().join("again.db");
        assert_eq!(open(&path).backup(&again).await, Ok(()));
    }
}
