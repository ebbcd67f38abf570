//! pgbench, which comes with PostgreSQL: how often a second one row is committed, when nobody shares a commit.

use std::{
    io::Write as _,
    process::{Command, Stdio},
};

use anyhow::{Context as _, ensure};
use holdpoint_test_postgres::{Database, Server};

/// One transaction of it.
const SCRIPT: &[u8] = b"INSERT INTO commits (n) VALUES (1);\n";

/// How many threads its clients share at most.
const THREADS: usize = 2;

pub(super) fn commits_per_s(
    server: &Server,
    database: &Database,
    clients: usize,
    seconds: usize,
) -> anyhow::Result<f64> {
    database.execute("CREATE TABLE commits (n bigint NOT NULL)")?;
    database.execute("CHECKPOINT")?;
    let mut pgbench = server.program("pgbench");
    pgbench
        .args(["--no-vacuum", "--protocol", "prepared", "--file", "-"])
        .args(["--client", &clients.to_string()])
        .args(["--jobs", &clients.min(THREADS).to_string()])
        .args(["--time", &seconds.to_string()])
        .arg(database.url());
    let said = run(&mut pgbench)?;
    rate(&said).with_context(|| format!("it said `{said}`"))
}

fn run(pgbench: &mut Command) -> anyhow::Result<String> {
    let mut child = pgbench
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut stdin = child.stdin.take().context("it takes no script")?;
    stdin.write_all(SCRIPT)?;
    drop(stdin);
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "{}", output.status);
    Ok(String::from_utf8(output.stdout)?)
}

fn rate(said: &str) -> Option<f64> {
    let line = said.lines().find_map(|line| line.strip_prefix("tps = "))?;
    line.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_found_in_what_pgbench_says() {
        let said = "number of clients: 32\ntps = 5123.456789 (without initial connection time)\n";
        assert_eq!(rate(said), Some(5_123.456_789));
        assert_eq!(rate("nothing of it"), None);
    }
}
