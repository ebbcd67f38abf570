//! The conformance suite on PostgreSQL.

use std::sync::Arc;

use holdpoint_store::{Clock, Options, PostgresStore, SharedStore};
use holdpoint_test_postgres::Database;

async fn open(clock: Arc<dyn Clock>) -> (SharedStore, SharedStore, Database) {
    let database = Database::create().unwrap();
    let options = Options::default().with_clock(clock);
    let url = database.url();
    let open = async || Arc::new(PostgresStore::open(&url, &options).await.unwrap());
    (open().await, open().await, database)
}

holdpoint_store::conformance_tests!(open);
