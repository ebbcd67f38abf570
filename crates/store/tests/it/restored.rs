//! A dump of a PostgreSQL database that was restored elsewhere is the past, and is not driven before somebody says so.

use std::sync::Arc;

use holdpoint_core::{Payload, Span, ThreadId};
use holdpoint_store::{
    Append, Fence, LeaseAfter, LeaseError, Options, PostgresStore, Store as _, ThreadKey,
    conformance::record,
};
use holdpoint_test_postgres::Database;

async fn open(database: &Database) -> PostgresStore {
    PostgresStore::open(&database.url(), &Options::default())
        .await
        .unwrap()
}

/// Until nobody is connected to it any more.
fn copy(database: &Database) -> Database {
    loop {
        if let Ok(copy) = database.copy() {
            return copy;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_finds_itself_elsewhere_is_a_backup_and_the_original_is_not() {
    let original = Database::create().unwrap();
    let key = ThreadKey {
        tenant: Arc::from("acme"),
        thread: ThreadId::of_session("acme", "agent", "s"),
    };
    let lasts = Span::from_secs(1);
    let store = open(&original).await;
    let append = Append {
        key: key.clone(),
        expect: 0,
        fence: Fence::Open,
        records: vec![record(1)],
        head: Payload::json(vec![]),
        index: vec![],
        cells: vec![],
        lease: LeaseAfter::Keep,
    };
    store.append(append).await.unwrap();
    drop(store);
    let copied = copy(&original);

    let store = open(&copied).await;
    assert!(store.backup_made_at().await.unwrap().is_some());
    let refused = store.take(&key, lasts).await;
    assert!(matches!(refused, Err(LeaseError::CannotDrive(_))));
    // It stays so, until it is adopted; and then it is where it is.
    drop(store);
    let store = open(&copied).await;
    assert!(store.backup_made_at().await.unwrap().is_some());
    store.adopt().await.unwrap();
    drop(store);
    let store = open(&copied).await;
    assert_eq!(store.backup_made_at().await, Ok(None));
    assert!(store.take(&key, lasts).await.is_ok());

    let store = open(&original).await;
    assert_eq!(store.backup_made_at().await, Ok(None));
    assert_eq!(store.take(&key, lasts).await, Ok(1));
}
