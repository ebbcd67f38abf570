//! A database of one test.

use std::{
    env,
    net::SocketAddr,
    sync::atomic::{AtomicU64, Ordering},
    thread,
};

use anyhow::Context as _;
use tokio_postgres::{Client, NoTls};

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
        Self::make(server.trim_end_matches('/'), "template1")
    }

    /// Makes another one on the same server with all that is in this one, which nobody may be connected to.
    ///
    /// # Errors
    ///
    /// Somebody is, or the server cannot be reached.
    pub fn copy(&self) -> anyhow::Result<Self> {
        Self::make(&self.server, &self.name)
    }

    fn make(server: &str, template: &str) -> anyhow::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let nth = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("holdpoint_test_{}_{nth}", std::process::id());
        command(
            format!("{server}/postgres"),
            format!("CREATE DATABASE {name} TEMPLATE {template}"),
        )?;
        let server = server.to_owned();
        Ok(Self { server, name })
    }

    /// How it is reached.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}/{}", self.server, self.name)
    }

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Does something in it.
    ///
    /// # Errors
    ///
    /// It cannot be done.
    pub fn execute(&self, sql: &str) -> anyhow::Result<()> {
        command(self.url(), sql.to_owned())
    }

    /// Asks it something: the first row of the answer, whose columns are all `bigint`.
    ///
    /// # Errors
    ///
    /// It cannot be asked, or answers with something else.
    pub fn numbers(&self, sql: &str) -> anyhow::Result<Vec<i64>> {
        numbers(self.url(), sql)
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
        let _ = command(format!("{}/postgres", self.server), drop);
    }
}

fn command(url: String, sql: String) -> anyhow::Result<()> {
    connected(url, async move |client| {
        Ok(client.batch_execute(&sql).await?)
    })
}

/// The first row of an answer.
pub(crate) fn numbers(url: String, sql: &str) -> anyhow::Result<Vec<i64>> {
    let sql = sql.to_owned();
    connected(url, async move |client| {
        let row = client.query_one(&sql, &[]).await?;
        let columns = 0..row.len();
        let numbers: Result<_, _> = columns.map(|at| row.try_get(at)).collect();
        Ok(numbers?)
    })
}

/// On a thread of its own, so that it can be done within a runtime and when one ends.
fn connected<T, W>(url: String, work: W) -> anyhow::Result<T>
where
    T: Send + 'static,
    W: AsyncFnOnce(Client) -> anyhow::Result<T> + Send + 'static,
{
    let done = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(&url, NoTls).await?;
            let talking = tokio::spawn(connection);
            let done = work(client).await;
            talking.abort();
            done
        })
    });
    done.join()
        .unwrap_or_else(|_| Err(anyhow::anyhow!("it panicked")))
}
