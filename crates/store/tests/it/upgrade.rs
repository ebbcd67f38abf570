//! A PostgreSQL database comes to today's layout, whoever else is about to do the same.

use holdpoint_core::ThreadId;
use holdpoint_store::{Options, PostgresStore, Store as _, ThreadKey};
use holdpoint_test_postgres::Database;
use tokio::task::JoinSet;

/// The first layout, and that it is there.
const FIRST: &str = concat!(
    "CREATE TABLE holdpoint_migrations (version bigint PRIMARY KEY, checksum bytea NOT NULL);",
    include_str!("../../src/postgres/migrations/0001_journal.sql"),
    "INSERT INTO threads (tenant, thread, version, epoch, head) VALUES
        ('acme', decode(repeat('07', 16), 'hex'), 1, 4, '\\x000100000000020000007b7d');"
);

async fn open_at_once(database: &Database) -> Vec<PostgresStore> {
    let mut openings = JoinSet::new();
    for _ in 0..8 {
        let url = database.url();
        openings.spawn(async move { PostgresStore::open(&url, &Options::default()).await });
    }
    let opened = openings.join_all().await;
    opened.into_iter().map(Result::unwrap).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn servers_that_start_at_once_on_an_empty_database_all_find_it_laid_out() {
    let database = Database::create().unwrap();
    for store in open_at_once(&database).await {
        assert_eq!(store.count_threads().await, Ok(0));
        assert_eq!(store.part().await, Ok(None));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn servers_that_start_at_once_on_an_older_database_bring_it_up_to_date_once() {
    let database = Database::create().unwrap();
    let checksum = holdpoint_core::Digest::of(
        include_str!("../../src/postgres/migrations/0001_journal.sql").as_bytes(),
    );
    let checksum = checksum.to_string();
    let hex = checksum.rsplit(':').next().unwrap();
    database
        .execute(&format!(
            "{FIRST} INSERT INTO holdpoint_migrations VALUES (1, decode('{hex}', 'hex'))"
        ))
        .unwrap();
    let key = ThreadKey {
        tenant: "acme".into(),
        thread: ThreadId::from_bytes([7; 16]),
    };
    for store in open_at_once(&database).await {
        let head = store.load(&key).await.unwrap().unwrap();
        assert_eq!((head.version, head.epoch), (1, 4));
        assert_eq!(store.part().await, Ok(None));
    }
}
