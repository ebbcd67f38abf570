//! Appends that depend on a cell, while somebody else is in the middle of changing it: on PostgreSQL they share a statement, so
//! the database must make them wait, and look again.

use std::{sync::Arc, time::Duration};

use holdpoint_core::{Digest, Payload, Record, ThreadId};
use holdpoint_store::{
    Append, AppendError, CellChange, CellThen, Fence, LeaseAfter, Options, PostgresStore, Space,
    Store as _, ThreadKey,
};
use holdpoint_test_postgres::Database;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, NoTls};

const TENANT: &str = "acme";

fn cell(expect: u64, then: CellThen) -> CellChange {
    CellChange {
        space: Space::Definition,
        key: "agent".to_owned(),
        expect,
        then,
    }
}

/// The first append of a thread, which depends on the cell's first version.
fn append(session: &str) -> Append {
    let thread = ThreadId::of_session(TENANT, "agent", session);
    Append {
        key: ThreadKey {
            tenant: TENANT.into(),
            thread,
        },
        expect: 0,
        fence: Fence::Open,
        records: vec![Record {
            seq: 1,
            header: b"{}".to_vec(),
            salt: [7; 16],
            payload: Payload::json(b"{}".to_vec()),
            hash: Digest::of(session.as_bytes()),
        }],
        head: Payload::json(b"{}".to_vec()),
        index: Vec::new(),
        cells: vec![cell(1, CellThen::Keep)],
        lease: LeaseAfter::Keep,
    }
}

async fn open() -> (Arc<PostgresStore>, Client, Database) {
    let database = Database::create().unwrap();
    let (url, options) = (database.url(), Options::default());
    let store = Arc::new(PostgresStore::open(&url, &options).await.unwrap());
    let value = CellThen::Set {
        value: vec![1],
        until: None,
    };
    assert_eq!(store.set_cell(TENANT, cell(0, value)).await, Ok(1));
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    tokio::spawn(connection);
    (store, client, database)
}

async fn until_it_waits<T>(client: &Client, appending: &JoinHandle<T>) {
    let waits = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    while client.query(waits, &[]).await.unwrap().is_empty() {
        assert!(!appending.is_finished(), "it did not wait");
        // What is seen of others stays the same until it is forgotten.
        let forget = "SELECT pg_stat_clear_snapshot()";
        client.batch_execute(forget).await.unwrap();
    }
}

#[tokio::test]
async fn an_append_waits_for_whoever_changes_what_it_depends_on_and_is_refused_then() {
    let (store, client, _database) = open().await;
    let change = "BEGIN; UPDATE cells SET version = 2";
    client.batch_execute(change).await.unwrap();
    let appending = tokio::spawn({
        let store = Arc::clone(&store);
        async move { store.append(append("s")).await }
    });
    until_it_waits(&client, &appending).await;
    client.batch_execute("COMMIT").await.unwrap();
    let refused = AppendError::CellConflict {
        space: Space::Definition,
        key: "agent".to_owned(),
    };
    assert_eq!(appending.await.unwrap(), Err(refused));
    assert_eq!(store.load(&append("s").key).await, Ok(None));
}

#[tokio::test]
async fn appends_that_depend_on_the_same_cell_do_not_wait_for_each_other() {
    let (store, client, _database) = open().await;
    // As another process has it while it commits such an append.
    let depend = "BEGIN; SELECT FROM cells FOR SHARE";
    client.batch_execute(depend).await.unwrap();
    assert!(store.append(append("s")).await.is_ok());
    client.batch_execute("COMMIT").await.unwrap();
}

#[tokio::test]
async fn an_append_that_waits_does_not_keep_those_behind_it_waiting() {
    let (store, client, _database) = open().await;
    assert!(store.append(append("held")).await.is_ok());
    // As a process has it that was frozen in the middle of a transaction.
    let hold = "BEGIN; SELECT FROM threads FOR UPDATE";
    client.batch_execute(hold).await.unwrap();
    let mut second = append("held");
    second.expect = 1;
    second.records[0].seq = 2;
    let appending = tokio::spawn({
        let store = Arc::clone(&store);
        async move { store.append(second).await }
    });
    until_it_waits(&client, &appending).await;
    let others = async {
        for other in 0..20 {
            assert!(store.append(append(&other.to_string())).await.is_ok());
        }
    };
    // Sooner than the database is taken for gone.
    let done = tokio::time::timeout(Duration::from_secs(8), others).await;
    assert!(done.is_ok() && !appending.is_finished());
    client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(appending.await.unwrap().map(|it| it.version), Ok(2));
}
