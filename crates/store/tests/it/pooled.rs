//! The conformance suite on PostgreSQL behind PgBouncer in transaction mode, where nobody can listen.

use std::sync::Arc;

use holdpoint_store::{Clock, Options, PostgresStore, SharedStore};
use holdpoint_test_postgres::{Bouncer, Database};

/// Fewer than the two handles have, so that each of them is given to one and to the other.
const CONNECTIONS: usize = 3;

async fn open(clock: Arc<dyn Clock>) -> (SharedStore, SharedStore, (Bouncer, Database)) {
    let database = Database::create().unwrap();
    let bouncer = Bouncer::before(&database, CONNECTIONS).unwrap();
    let options = Options::default().with_clock(clock);
    let url = database.through(bouncer.address()).unwrap();
    let url = format!("{url}&pooling=transaction");
    let open = async || Arc::new(PostgresStore::open(&url, &options).await.unwrap());
    (open().await, open().await, (bouncer, database))
}

holdpoint_store::conformance_tests!(open, deaf);
