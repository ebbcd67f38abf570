//! The layout of the database, and how an older one becomes today's.
//!
//! A layout is never edited once it was released: what changes is another migration at the end of the list. Several
//! servers may start at once; a lock lets one of them do it, and the others find it done.

use holdpoint_core::Digest;
use tokio_postgres::Error;

use super::line::{Deal, Line};

/// The layouts there ever were; each is reached from the one before.
const ALL: [&str; 2] = [
    include_str!("migrations/0001_journal.sql"),
    include_str!("migrations/0002_moving.sql"),
];

/// The layout that this build reads and writes. A build that stands for the version before this one knows none newer than
/// that one did, and is there to show that both get along while one takes the other's place.
pub(super) const FORMAT: u64 = ALL.len() as u64
    - if cfg!(feature = "previous-format") {
        1
    } else {
        0
    };

/// The lock under which layouts change: `HOLD`.
pub(super) const LOCK: i64 = 0x484f_4c44;

/// The layouts that this build knows.
fn known() -> impl Iterator<Item = &'static str> {
    ALL.into_iter().zip(0..FORMAT).map(|(sql, _)| sql)
}

/// What is found in a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing yet.
    Empty,
    /// A layout of ours that this build knows.
    Known(u64),
    /// A layout of ours from the future.
    Newer(u64),
    /// A layout that has the number of one of ours but is another.
    Altered(u64),
    /// Tables of something else, under our names.
    Foreign,
}

/// Brings a database up to today's layout, if it is one of ours or empty. Returns what was found.
///
/// One that is empty stays so if it `must_exist`.
pub(super) async fn migrate(connection: &mut Line, must_exist: bool) -> Result<Found, Error> {
    let tx = connection.transaction().await?;
    tx.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK])
        .await?;
    let found = inspect(&tx).await?;
    let from = match found {
        Found::Empty if must_exist => return Ok(found),
        Found::Empty => {
            tx.batch_execute(
                "CREATE TABLE holdpoint_migrations (version bigint PRIMARY KEY, checksum bytea NOT NULL)",
            )
            .await?;
            0
        }
        Found::Known(format) => format,
        Found::Newer(_) | Found::Altered(_) | Found::Foreign => return Ok(found),
    };
    for (sql, version) in known().zip(1_i64..) {
        if version.unsigned_abs() > from {
            tx.batch_execute(sql).await?;
            tx.execute(
                "INSERT INTO holdpoint_migrations (version, checksum) VALUES ($1, $2)",
                &[&version, &checksum(sql).as_slice()],
            )
            .await?;
        }
    }
    tx.commit().await?;
    Ok(found)
}

async fn inspect(tx: &Deal<'_>) -> Result<Found, Error> {
    let there = tx
        .query_one(
            "SELECT to_regclass('holdpoint_migrations') IS NOT NULL,
                    to_regclass('threads') IS NOT NULL OR to_regclass('events') IS NOT NULL",
            &[],
        )
        .await?;
    let (is_ours, has_tables): (bool, bool) = (there.try_get(0)?, there.try_get(1)?);
    match (is_ours, has_tables) {
        (false, false) => return Ok(Found::Empty),
        (false, true) => return Ok(Found::Foreign),
        (true, _) => {}
    }
    let rows = tx
        .query(
            "SELECT version, checksum FROM holdpoint_migrations ORDER BY version",
            &[],
        )
        .await?;
    let mut format = 0;
    let mut is_altered = false;
    for row in &rows {
        let (version, found): (i64, &[u8]) = (row.try_get(0)?, row.try_get(1)?);
        format = version.unsigned_abs();
        let nth = usize::try_from(version - 1).unwrap_or(usize::MAX);
        is_altered |= known()
            .nth(nth)
            .is_some_and(|sql| checksum(sql).as_slice() != found);
    }
    Ok(if format > FORMAT {
        Found::Newer(format)
    } else if is_altered {
        Found::Altered(format)
    } else {
        Found::Known(format)
    })
}

fn checksum(sql: &str) -> [u8; 32] {
    *Digest::of(sql.as_bytes()).as_bytes()
}
