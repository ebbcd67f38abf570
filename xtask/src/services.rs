//! What tests need besides programs: a PostgreSQL server of their own, gone when they are over.

use std::process::Command;

use holdpoint_test_postgres::{Programs, Server, VARIABLE};

/// The services, while they are needed.
#[derive(Debug)]
pub(crate) struct Services {
    /// None where somebody names a server to use.
    postgres: Option<Server>,
}

impl Services {
    /// Starts them.
    pub(crate) fn start() -> anyhow::Result<Self> {
        // Now, because tests that run at once cannot.
        Programs::install_pgbouncer()?;
        if let Some(named) = std::env::var_os(VARIABLE) {
            eprintln!(
                "PostgreSQL: {}, as {VARIABLE} says",
                named.to_string_lossy()
            );
            return Ok(Self { postgres: None });
        }
        let server = Server::start(Programs::find_or_install()?, &[])?;
        eprintln!("PostgreSQL: {}", server.url());
        Ok(Self {
            postgres: Some(server),
        })
    }

    /// Tells a command where they are.
    pub(crate) fn announce(&self, command: &mut Command) {
        if let Some(postgres) = &self.postgres {
            postgres.announce(command);
        }
    }
}
