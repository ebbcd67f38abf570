//! How connections are opened.

use std::{path::Path, thread, time::Duration};

use rusqlite::{Connection, ErrorCode, OpenFlags, config::DbConfig};

use super::keeper;

/// How often, and how long each time, a writer waits for another process before it gives up: 10 s in all.
///
/// SQLite's own waiting sleeps for up to 100 ms at a time, in which a busy neighbour commits a hundred times.
const TRIES: i32 = 20_000;
const WAIT: Duration = Duration::from_micros(500);

/// How a reader looks at a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sight {
    /// Together with writers.
    Shared,
    /// In a folder where nothing may be created, so that what readers and writers share in memory cannot exist. Right
    /// only while nobody writes.
    Frozen,
}

fn patient(tries: i32) -> bool {
    thread::sleep(WAIT);
    tries < TRIES
}

/// The connection that writes. Where the file may not be written, its first write fails.
pub(super) fn writer(path: &Path) -> rusqlite::Result<Connection> {
    let mut conn = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    conn.busy_handler(Some(patient))?;
    plan_once(&conn)?;
    conn.set_prepared_statement_cache_capacity(64);
    // Counts for a new file. A commit is many small changes side by side, and every page of them is a write of its own.
    conn.pragma_update(None, "page_size", 8_192)?;
    write_ahead(&conn)?;
    // DURABILITY: in WAL mode, anything less loses acknowledged commits when the power fails.
    conn.pragma_update(None, "synchronous", "FULL")?;
    conn.pragma_update(None, "cache_size", -16_384)?;
    conn.pragma_update(None, "wal_autocheckpoint", keeper::HELP)?;
    Ok(conn)
}

/// The connection that moves the log to its place. It waits for nobody: whoever else does so does its work.
pub(super) fn keeper(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    // DURABILITY: the log is forgotten once its pages are in their place, so they must be there for sure.
    conn.pragma_update(None, "synchronous", "FULL")?;
    conn.pragma_update(None, "cache_size", -64)?;
    Ok(conn)
}

/// Has a statement planned when it is prepared and never again. Otherwise SQLite plans anew whenever a bound value could
/// change its mind, a `LIMIT` among them, which costs more than the reading itself.
fn plan_once(conn: &Connection) -> rusqlite::Result<()> {
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}

/// Turns write-ahead logging on. Where two processes do so at once in a new file, SQLite does not wait, so we do.
fn write_ahead(conn: &Connection) -> rusqlite::Result<()> {
    let mut tries = 0;
    loop {
        match conn
            .pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0))
        {
            Ok(mode) if mode == "wal" => return Ok(()),
            Err(error) if error.sqlite_error_code() != Some(ErrorCode::DatabaseBusy) => {
                return Err(error);
            }
            Ok(_) | Err(_) if patient(tries) => tries += 1,
            Ok(_) => return Err(rusqlite::Error::InvalidQuery),
            Err(error) => return Err(error),
        }
    }
}

/// A connection that only reads.
pub(super) fn reader(path: &Path, sight: Sight) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut conn = match sight {
        Sight::Shared => Connection::open_with_flags(path, flags)?,
        Sight::Frozen => {
            Connection::open_with_flags(frozen_uri(path), flags | OpenFlags::SQLITE_OPEN_URI)?
        }
    };
    conn.busy_handler(Some(patient))?;
    plan_once(&conn)?;
    conn.set_prepared_statement_cache_capacity(32);
    conn.pragma_update(None, "cache_size", -2_048)?;
    Ok(conn)
}

fn frozen_uri(path: &Path) -> String {
    let mut uri = String::from("file:");
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'~' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
                uri.push(char::from(*byte));
            }
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri + "?immutable=1"
}
