//! What is done on a PostgreSQL server, by its own counters.

use std::time::Duration;

use anyhow::Context as _;
use holdpoint_test_postgres::{Database, Server};

use crate::process;

/// What something cost the server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cost {
    /// How many transactions wrote something: PostgreSQL gives a number to those, and to no others.
    pub(crate) commits: f64,
    /// How many bytes of its write-ahead log.
    pub(crate) wal: f64,
    /// What all of its processes had of the processors.
    pub(crate) processor: Duration,
}

#[derive(Debug, Clone, Copy)]
struct Counters {
    commits: i64,
    wal: i64,
    processor: Duration,
}

impl Counters {
    fn read(server: &Server) -> anyhow::Result<Self> {
        // First, because asking costs something too.
        let processor = process::processor_of_all(server.pid()?)?;
        let counted = server.numbers(
            "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint,
                    pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint",
        )?;
        let &[commits, wal] = counted.as_slice() else {
            anyhow::bail!("PostgreSQL does not say how far it is");
        };
        Ok(Self {
            commits,
            wal,
            processor,
        })
    }
}

/// Measures what something costs the server. It is for one who is alone on it.
#[derive(Debug)]
pub(crate) struct Meter<'a> {
    server: &'a Server,
    before: Counters,
}

impl<'a> Meter<'a> {
    /// From now on.
    pub(super) fn start(server: &'a Server) -> anyhow::Result<Self> {
        let before = Counters::read(server)?;
        Ok(Self { server, before })
    }

    /// Until now.
    ///
    /// # Errors
    ///
    /// The server cannot be reached.
    pub(crate) fn stop(&self) -> anyhow::Result<Cost> {
        let after = Counters::read(self.server)?;
        Ok(Cost {
            commits: (after.commits - self.before.commits) as f64,
            wal: (after.wal - self.before.wal) as f64,
            processor: after.processor.saturating_sub(self.before.processor),
        })
    }

    /// How many transactions a database has seen, whether they wrote or not. It takes its connections away from those who
    /// have some, because a connection keeps its counts for itself until it ends.
    ///
    /// # Errors
    ///
    /// The server cannot be reached, or connections do not end.
    pub(crate) fn transactions(&self, database: &Database) -> anyhow::Result<f64> {
        let name = database.name();
        let end = format!(
            "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity WHERE datname = '{name}'"
        );
        self.server.numbers(&end)?;
        let count = format!(
            "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = '{name}'"
        );
        let count = self.server.numbers(&count)?;
        let count = count.first().context("PostgreSQL has counted nothing")?;
        Ok(*count as f64)
    }
}
