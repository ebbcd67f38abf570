//! A PostgreSQL server of the bench's own: as it is shipped, so with `fsync` and `synchronous_commit`, on the disk that
//! everything else is on.

mod meter;
mod pgbench;

use std::path::Path;

use anyhow::{Context as _, ensure};
use holdpoint_test_postgres::{Database, Programs, Server};

pub(crate) use self::meter::{Cost, Meter};

/// The server, which ends with this.
#[derive(Debug)]
pub(crate) struct Postgres {
    server: Server,
    about: String,
}

impl Postgres {
    /// Installs it if it is not there, and starts it in a folder beneath this one.
    ///
    /// # Errors
    ///
    /// It cannot be installed or started, or is not as durable as it should be.
    pub(crate) fn start(folder: &Path) -> anyhow::Result<Self> {
        let server = Server::start_within(folder, Programs::find_or_install()?, &[])?;
        let asked = server.numbers(
            "SELECT current_setting('server_version_num')::bigint, current_setting('max_connections')::bigint,
                    (current_setting('fsync') = 'on' AND current_setting('synchronous_commit') = 'on'
                     AND current_setting('full_page_writes') = 'on')::int::bigint",
        )?;
        let &[version, connections, is_durable] = asked.as_slice() else {
            anyhow::bail!("PostgreSQL does not say what it is");
        };
        ensure!(is_durable == 1, "PostgreSQL is not durable here");
        let about = format!(
            "PostgreSQL {}.{}, as it is shipped but for `max_connections = {connections}`",
            version / 10_000,
            version % 10_000
        );
        Ok(Self { server, about })
    }

    /// Which version of what it is.
    pub(crate) fn about(&self) -> &str {
        &self.about
    }

    /// Makes a database.
    ///
    /// # Errors
    ///
    /// It cannot be reached.
    pub(crate) fn create(&self) -> anyhow::Result<Database> {
        Database::on(&self.server.url())
    }

    /// From now on, what a database costs the server.
    ///
    /// # Errors
    ///
    /// It cannot be reached.
    pub(crate) fn meter(&self) -> anyhow::Result<Meter<'_>> {
        Meter::start(&self.server)
    }

    /// What it commits a second, as PostgreSQL's own program measures it: so many clients for so many seconds.
    ///
    /// # Errors
    ///
    /// It cannot be measured.
    pub(crate) fn commits_per_s(&self, clients: usize, seconds: usize) -> anyhow::Result<f64> {
        let database = self.create()?;
        pgbench::commits_per_s(&self.server, &database, clients, seconds)
            .context("pgbench could not measure")
    }
}
