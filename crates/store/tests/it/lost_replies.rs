//! The connection goes away after a commit and before its reply: nothing is lost, and nothing is done twice.

use std::{
    collections::HashSet,
    env,
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use holdpoint_core::{Digest, Index, IndexChange, IndexRow, Payload, Record, Span, ThreadId};
use holdpoint_store::{
    Append, Appended, CellChange, CellThen, Fence, LeaseAfter, Options, PostgresStore, Space,
    Store, ThreadKey,
};
use holdpoint_test_postgres::Database;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
};

/// Before the name of a commit whose reply is lost. It is written into the append.
const MARK: &[u8] = b"LOSE-THE-REPLY-";
/// How long such a name is.
const NAME: usize = 8;

/// How many replies are lost.
fn effort() -> usize {
    match env::var_os("HOLDPOINT_TORTURE") {
        Some(_) => 500,
        None => 40,
    }
}

/// Stands between a store and its database.
#[derive(Debug, Default)]
struct Proxy {
    /// Whose reply was lost already.
    lost: Mutex<HashSet<Vec<u8>>>,
    cuts: AtomicUsize,
}

impl Proxy {
    async fn start(to: SocketAddr) -> (Arc<Self>, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let proxy = Arc::new(Self::default());
        let accepting = Arc::clone(&proxy);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(to).await.unwrap();
                for stream in [&client, &server] {
                    stream.set_nodelay(true).unwrap();
                }
                tokio::spawn(Arc::clone(&accepting).between(client, server));
            }
        });
        (proxy, address)
    }

    async fn between(self: Arc<Self>, client: TcpStream, server: TcpStream) {
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        let (armed, is_armed) = watch::channel(false);
        // Whichever ends, both connections are closed.
        tokio::select! {
            () = self.ask(from_client, to_server, armed) => {}
            () = self.answer(from_server, to_client, is_armed) => {}
        }
    }

    /// From the client to the server, with an eye on whose reply is to be lost.
    async fn ask(
        &self,
        mut from: OwnedReadHalf,
        mut to: OwnedWriteHalf,
        armed: watch::Sender<bool>,
    ) {
        let (mut buffer, mut tail) = (vec![0; 65_536], Vec::new());
        while let Ok(read) = from.read(&mut buffer).await
            && read > 0
        {
            tail.extend_from_slice(&buffer[..read]);
            if self.is_to_be_lost(&tail) {
                armed.send_replace(true);
            }
            // A mark may lie across two reads.
            let keep = tail.len().min(MARK.len() + NAME);
            tail.drain(..tail.len() - keep);
            if to.write_all(&buffer[..read]).await.is_err() {
                return;
            }
        }
    }

    fn is_to_be_lost(&self, bytes: &[u8]) -> bool {
        let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        let marks = bytes.windows(MARK.len() + NAME);
        let mut found = false;
        for mark in marks.filter(|window| window.starts_with(MARK)) {
            found |= lost.insert(mark[MARK.len()..].to_vec());
        }
        found
    }

    /// From the server to the client, message by message, until the one that comes after a commit.
    async fn answer(
        &self,
        mut from: OwnedReadHalf,
        mut to: OwnedWriteHalf,
        armed: watch::Receiver<bool>,
    ) {
        loop {
            let mut head = [0; 5];
            if from.read_exact(&mut head).await.is_err() {
                return;
            }
            let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
            let mut body = vec![0; usize::try_from(length).unwrap() - 4];
            if from.read_exact(&mut body).await.is_err() {
                return;
            }
            // Ready for more, and in no transaction: whatever was asked for is committed.
            if head[0] == b'Z' && body == b"I" && *armed.borrow() {
                self.cuts.fetch_add(1, Ordering::SeqCst);
                return;
            }
            if to.write_all(&head).await.is_err() || to.write_all(&body).await.is_err() {
                return;
            }
        }
    }
}

fn key(session: usize) -> ThreadKey {
    ThreadKey {
        tenant: "acme".into(),
        thread: ThreadId::of_session("acme", "agent", &session.to_string()),
    }
}

/// One append of a driver that takes its lease with the first, and of which the reply is lost.
fn append(session: usize, nth: u64) -> Append {
    let key = key(session);
    let name = format!("{session:04}{nth:04}");
    let mut head = MARK.to_vec();
    head.extend_from_slice(name.as_bytes());
    let record = |seq: u64| Record {
        seq,
        header: name.clone().into_bytes(),
        salt: [7; 16],
        payload: Payload::json(name.clone().into_bytes()),
        hash: Digest::of(format!("{name}/{seq}").as_bytes()),
    };
    let row = IndexRow {
        index: Index::Runnable,
        key: name.clone(),
        sort: 0,
        thread: key.thread,
    };
    Append {
        expect: nth * 2,
        fence: match nth {
            0 => Fence::Take {
                after: 0,
                lasts: Span::from_secs(600),
            },
            _ => Fence::Driver(1),
        },
        records: vec![record(nth * 2 + 1), record(nth * 2 + 2)],
        head: Payload::json(head),
        index: vec![IndexChange::Put(row)],
        // Every third one cannot share a statement.
        cells: if nth % 3 == 2 {
            vec![CellChange {
                space: Space::Request,
                key: name,
                expect: 0,
                then: CellThen::Set {
                    value: vec![1],
                    until: None,
                },
            }]
        } else {
            Vec::new()
        },
        lease: LeaseAfter::Keep,
        key,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_reply_was_lost_is_found_and_not_repeated() {
    const DRIVERS: usize = 8;
    let database = Database::create().unwrap();
    let (proxy, address) = Proxy::start(database.address().unwrap()).await;
    let url = database.through(address).unwrap();
    let store = Arc::new(
        PostgresStore::open(&url, &Options::default())
            .await
            .unwrap(),
    );
    let each = u64::try_from(effort().div_ceil(DRIVERS)).unwrap();
    let mut drivers = Vec::new();
    for session in 0..DRIVERS {
        let store = Arc::clone(&store);
        drivers.push(tokio::spawn(async move {
            for nth in 0..each {
                let version = nth * 2 + 2;
                assert_eq!(
                    store.append(append(session, nth)).await,
                    Ok(Appended { version, epoch: 1 }),
                    "append {nth} of {session}"
                );
            }
        }));
    }
    for driver in drivers {
        driver.await.unwrap();
    }
    // Each of them was in some commit whose reply was lost; those that were together, together.
    let cuts = proxy.cuts.load(Ordering::SeqCst);
    let lost = proxy.lost.lock().unwrap().len();
    assert_eq!(lost, usize::try_from(each).unwrap() * DRIVERS);
    assert!(cuts * DRIVERS >= lost, "{cuts} replies were lost");
    for session in 0..DRIVERS {
        let records = store.read(&key(session), 0, usize::MAX).await.unwrap();
        let seqs: Vec<u64> = records.iter().map(|record| record.seq).collect();
        assert_eq!(seqs, (1..=each * 2).collect::<Vec<_>>());
        for (record, nth) in records.chunks(2).zip(0..) {
            let name = format!("{session:04}{nth:04}");
            assert_eq!(record[0].header, name.as_bytes());
            assert_eq!(record[1].header, name.as_bytes());
        }
    }
    eprintln!("{lost} appends in {cuts} commits whose reply was lost");
}
