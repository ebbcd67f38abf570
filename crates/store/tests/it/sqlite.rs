//! The conformance suite on SQLite.

use std::sync::Arc;

use holdpoint_store::{Clock, Options, SharedStore, SqliteStore};
use tempfile::TempDir;

async fn open(clock: Arc<dyn Clock>) -> (SharedStore, SharedStore, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let options = Options::default().with_clock(clock);
    let open = || Arc::new(SqliteStore::open(&folder.path().join("test.db"), &options).unwrap());
    (open(), open(), folder)
}

holdpoint_store::conformance_tests!(open);
