//! W1 on PostgreSQL: what runs cost the server, and what the server could do if every commit were one row.

use holdpoint_test_postgres::Database;

use super::{Rounds, setting};
use crate::{
    holdpoint::Cycles,
    measurement::System,
    postgres::Cost,
    workload::{Parking, Spent, Workload},
};

impl Rounds<'_> {
    /// Measures Holdpoint, and notes what its runs cost the server.
    pub(super) async fn park_metered(
        &mut self,
        cycles: &mut Cycles,
        database: &Database,
        work: Parking,
    ) -> anyhow::Result<Spent> {
        let first = Parking {
            runs: work.warm_up(),
            ..work
        };
        cycles.go(first).await?;
        let meter = self.databases.postgres()?.meter()?;
        let spent = cycles.go(work).await?;
        let Cost {
            commits,
            wal,
            processor,
        } = meter.stop()?;
        let all = (first.runs + work.runs) as f64;
        let transactions = meter.transactions(database)? / all;
        let runs = work.runs as f64;
        let (commits, wal) = (commits / runs, wal / runs);
        let processor = processor.as_secs_f64() * 1e6 / runs;
        let concurrency = work.concurrency;
        eprintln!(
            "W1-pg at {concurrency}, holdpoint: {commits:.2} commits, {transactions:.1} transactions, {wal:.0} bytes of log, \
             {processor:.0} µs of the server's processor each"
        );
        let setting = setting(Workload::W1Pg, System::Holdpoint, concurrency, 0);
        self.add(setting, "commits_per_run", "ratio", commits);
        self.add(setting, "transactions_per_run", "ratio", transactions);
        self.add(setting, "wal_bytes_per_run", "bytes", wal);
        self.add(setting, "postgres_us_per_run", "us", processor);
        Ok(spent)
    }

    /// Measures what the server commits.
    pub(super) fn commit(&mut self, concurrency: usize) -> anyhow::Result<()> {
        let seconds = self.plan.pgbench_seconds;
        let postgres = self.databases.postgres()?;
        let rate = postgres.commits_per_s(concurrency, seconds)?;
        eprintln!("W1-pg at {concurrency}, pgbench: {rate:.0} commits/s");
        let setting = setting(Workload::W1Pg, System::Pgbench, concurrency, 0);
        self.add(setting, "commits_per_s", "1/s", rate);
        self.rates.note(setting, "commits_per_s", rate);
        Ok(())
    }
}
