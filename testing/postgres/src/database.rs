//! A database of one test.

use std::{
    env,
    net::SocketAddr,
    sync::atomic::{AtomicU64, Ordering},
    thread,
};

use anyhow::Context as _;
use tokio_postgres::NoTls;

use crate::VARIABLE;

/// A database of its own on a server, dropped when the test is over.
#[derive(Debug)]
pub struct Database {
    server: String,
    name: String,
}

impl Database {
    /// Makes one on the server that `HOLDPOINT_TEST_POSTGRES` names, which `cargo xtask test` starts.
    ///
    /// # Errors
    ///
    /// Nobody named a server, or it cannot be reached.
    pub fn create() -> anyhow::Result<Self> {
        let server = env::var_os(VARIABLE).with_context(|| {
            format!(
                "this needs a PostgreSQL server: `cargo xtask test` starts one, and {VARIABLE} names another, such as \
                 postgres://postgres@127.0.0.1:5432"
            )
        })?;
        let server = server.into_string().ok().context("no text")?;
        Self::on(&server)
    }

    /// Makes one on this server.
    ///
    /// # Errors
    ///
    /// It cannot be reached.
    pub fn on(server: &str) -> anyhow::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let nth = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("holdpoint_test_{}_{nth}", std::process::id());
        let server = server.trim_end_matches('/').to_owned();
        command(&server, format!("CREATE DATABASE {name}"))?;
        Ok(Self { server, name })
    }

    /// How it is reached.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}/{}", self.server, self.name)
    }

    /// Where its server is.
    ///
    /// # Errors
    ///
    /// It is not named by an address and a port.
    pub fn address(&self) -> anyhow::Result<SocketAddr> {
        let address = self.server.rsplit(['@', '/']).next().unwrap_or_default();
        address
            .parse()
            .with_context(|| format!("`{address}` is not an address and a port"))
    }

    /// How it is reached by way of another address, which hears all that is said.
    ///
    /// # Errors
    ///
    /// As [`Database::address`].
    pub fn through(&self, address: SocketAddr) -> anyhow::Result<String> {
        let direct = self.address()?.to_string();
        let server = self.server.replace(&direct, &address.to_string());
        Ok(format!("{server}/{}?sslmode=disable", self.name))
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let drop = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        // The server may be gone, and the database with it.
        let _ = command(&self.server, drop);
    }
}

/// On a thread of its own, so that it can be done within a runtime and when one ends.
fn command(server: &str, sql: String) -> anyhow::Result<()> {
    let url = format!("{server}/postgres");
    let done = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(&url, NoTls).await?;
            let talking = tokio::spawn(connection);
            client.batch_execute(&sql).await?;
            talking.abort();
            anyhow::Ok(())
        })
    });
    done.join()
        .unwrap_or_else(|_| Err(anyhow::anyhow!("it panicked")))
}
