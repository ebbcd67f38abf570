//! Whether a database is still where it was.
//!
//! A dump that is restored is the past, as a backup is, and nothing in it says so. But it is restored into another database
//! than the one it was made of. So a store keeps the identity of its database, and one that finds itself in another is marked
//! as a backup. What copies a whole server byte for byte, as a standby or a snapshot of its disk does, is not noticed.

use tokio_postgres::{Error, error::SqlState};

use super::{
    line::{Deal, Line},
    schema::LOCK,
};

/// The server and the database: nobody else has both numbers.
const HERE: &str = "SELECT system_identifier || '/' || oid FROM pg_control_system(), pg_database WHERE datname = current_database()";

/// Compares where the store is with where it was, and keeps where it is.
pub(super) async fn settle(connection: &mut Line) -> Result<(), Error> {
    let tx = connection.transaction().await?;
    tx.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK])
        .await?;
    let here: String = match tx.query_one(HERE, &[]).await {
        Ok(row) => row.try_get(0)?,
        // There are servers that do not tell everybody who they are. There, nothing is noticed.
        Err(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => return Ok(()),
        Err(error) => return Err(error),
    };
    let home = tx
        .query_opt("SELECT note FROM marks WHERE name = 'home'", &[])
        .await?;
    let home: Option<String> = home.map(|row| row.try_get(0)).transpose()?;
    if home.as_ref() == Some(&here) {
        return Ok(());
    }
    if home.is_some() {
        mark_as_backup(&tx).await?;
    }
    let keep = "INSERT INTO marks (name, value, note) VALUES ('home', 0, $1)
                ON CONFLICT (name) DO UPDATE SET note = excluded.note";
    tx.execute(keep, &[&here]).await?;
    tx.commit().await
}

/// As of when a server last said that it lives, because nothing says when a dump was made; as of now if none did.
async fn mark_as_backup(tx: &Deal<'_>) -> Result<(), Error> {
    let mark = "INSERT INTO marks (name, value)
                SELECT 'backup', least(
                    (SELECT max(until) FROM cells WHERE space = $1),
                    (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
                )
                ON CONFLICT DO NOTHING";
    let server = i16::from(crate::Space::Server.number());
    tx.execute(mark, &[&server]).await?;
    Ok(())
}
