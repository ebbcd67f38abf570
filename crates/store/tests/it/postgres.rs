//! PostgreSQL keeps the promises of every backend.

use std::{
    env,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use holdpoint_store::{Clock, Options, PostgresStore, SharedStore};
use tokio_postgres::NoTls;

/// A database of its own, which is dropped when the test is over.
#[derive(Debug)]
pub(crate) struct Database {
    server: String,
    name: String,
}

impl Database {
    /// Makes one on the server that `HOLDPOINT_TEST_POSTGRES` names.
    pub(crate) async fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let server = server();
        let nth = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("holdpoint_test_{}_{nth}", std::process::id());
        command(&server, &format!("CREATE DATABASE {name}")).await;
        Self { server, name }
    }

    /// How it is reached.
    pub(crate) fn url(&self) -> String {
        format!("{}/{}", self.server, self.name)
    }

    async fn open(&self, clock: &Arc<dyn Clock>) -> SharedStore {
        let options = Options::default().with_clock(Arc::clone(clock));
        Arc::new(PostgresStore::open(&self.url(), &options).await.unwrap())
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let (server, name) = (self.server.clone(), self.name.clone());
        // The runtime of the test is about to end, and waits for nothing.
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            let drop = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
            runtime.block_on(command(&server, &drop));
        });
        dropping.join().unwrap();
    }
}

/// The server for tests, without a database.
fn server() -> String {
    let Some(url) = env::var_os("HOLDPOINT_TEST_POSTGRES") else {
        panic!(
            "these tests need a PostgreSQL server: `cargo xtask test` brings one up, and `HOLDPOINT_TEST_POSTGRES` names \
             another, such as postgres://postgres@127.0.0.1:5432"
        );
    };
    url.into_string().unwrap().trim_end_matches('/').to_owned()
}

async fn command(server: &str, sql: &str) {
    let (client, connection) = tokio_postgres::connect(&format!("{server}/postgres"), NoTls)
        .await
        .unwrap();
    let talking = tokio::spawn(connection);
    client.batch_execute(sql).await.unwrap();
    talking.abort();
}

async fn open(clock: Arc<dyn Clock>) -> (SharedStore, SharedStore, Database) {
    let database = Database::new().await;
    let here = database.open(&clock).await;
    let there = database.open(&clock).await;
    (here, there, database)
}

holdpoint_store::conformance_tests!(open);
