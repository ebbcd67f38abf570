//! The thread that moves what was committed from the log to its place.
//!
//! The writer would do it itself, in the middle of a commit that somebody waits for: the larger the file, the more pages are
//! scattered over it, and the longer that takes. Beside the writer nobody waits. But where many write at once, two threads
//! at one disk only hold each other up; then the writer does it, and so it does where this thread falls behind ([`HELP`]).

use std::{
    sync::mpsc::{self, Receiver, SyncSender},
    thread::JoinHandle,
};

use rusqlite::Connection;

/// How many pages of the log are moved at once beside the writer. While they are, the disk is busy and commits take longer,
/// so it is a little and often: for half a second of runs, not for five.
const FEW: i64 = 256;

/// How many the writer moves at once where many write: what is written again and again goes to its place once in 16 MiB.
const ENOUGH: i64 = 2_048;

/// At how many pages the writer moves them itself. A longer log is slower to read: its index comes in pieces of this size,
/// and every one of them is looked into for every page.
pub(super) const HELP: i64 = 4_000;

/// After how many commits the log is looked at.
const COMMITS: u32 = 4;

/// How many writes share a commit where many write at once.
const CROWD: usize = 4;

/// The writer's end.
#[derive(Debug)]
pub(super) struct Keeper {
    nudge: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
    commits: u32,
}

impl Keeper {
    /// Starts the thread.
    pub(super) fn start(conn: Connection) -> std::io::Result<Self> {
        let (nudge, nudged) = mpsc::sync_channel(1);
        let thread = std::thread::Builder::new()
            .name("holdpoint-keeper".to_owned())
            .spawn(move || keep(&conn, &nudged))?;
        Ok(Self {
            nudge: Some(nudge),
            thread: Some(thread),
            commits: 0,
        })
    }

    /// So many writes were committed together on this connection.
    pub(super) fn committed(&mut self, conn: &Connection, writes: usize) {
        self.commits = (self.commits + 1) % COMMITS;
        if self.commits > 0 {
            return;
        }
        if writes >= CROWD {
            move_if(conn, ENOUGH);
        } else if let Some(nudge) = &self.nudge {
            // One that is at work looks again when it is done.
            let _ = nudge.try_send(());
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.nudge = None;
        if let Some(thread) = self.thread.take() {
            // A panic of that thread was reported when it happened.
            drop(thread.join());
        }
    }
}

fn keep(conn: &Connection, nudged: &Receiver<()>) {
    while nudged.recv().is_ok() {
        move_if(conn, FEW);
    }
}

/// Moves what is in the log to its place, if it is so much.
fn move_if(conn: &Connection, enough: i64) {
    // A failure is no harm: the next commit meets it too, and says so.
    if backlog(conn).is_ok_and(|pages| pages >= enough) {
        drop(checkpoint(conn, "PASSIVE"));
    }
}

/// How many pages of the log are not in their place yet.
fn backlog(conn: &Connection) -> rusqlite::Result<i64> {
    checkpoint(conn, "NOOP").map(|(log, moved)| log - moved)
}

/// How many pages there are in the log, and how many of them are in their place.
fn checkpoint(conn: &Connection, mode: &str) -> rusqlite::Result<(i64, i64)> {
    let mut pragma = conn.prepare_cached(&format!("PRAGMA wal_checkpoint({mode})"))?;
    pragma.query_row([], |row| Ok((row.get(1)?, row.get(2)?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::connection;

    #[test]
    fn what_was_committed_is_moved_while_nobody_waits() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("test.db");
        let writer = connection::writer(&path).unwrap();
        writer
            .execute_batch("CREATE TABLE t (x BLOB); INSERT INTO t VALUES (zeroblob(1000000))")
            .unwrap();
        let other = connection::keeper(&path).unwrap();
        let few = backlog(&other).unwrap();
        assert!((100..FEW).contains(&few), "{few} pages");
        let mut keeper = Keeper::start(connection::keeper(&path).unwrap()).unwrap();
        for _ in 0..COMMITS {
            keeper.committed(&writer, 1);
        }
        drop(keeper);
        assert_eq!(backlog(&other).unwrap(), few, "they are not enough");

        let mut keeper = Keeper::start(connection::keeper(&path).unwrap()).unwrap();
        writer
            .execute_batch("INSERT INTO t VALUES (zeroblob(3000000))")
            .unwrap();
        assert!((FEW..ENOUGH).contains(&backlog(&other).unwrap()));
        for _ in 0..COMMITS {
            keeper.committed(&writer, 1);
        }
        drop(keeper);
        assert_eq!(backlog(&other).unwrap(), 0);
    }

    #[test]
    fn where_many_write_at_once_the_writer_moves_them() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("test.db");
        let writer = connection::writer(&path).unwrap();
        writer
            .execute_batch("CREATE TABLE t (x BLOB); INSERT INTO t VALUES (zeroblob(20000000))")
            .unwrap();
        let (nudge, nudged) = mpsc::sync_channel(1);
        let mut keeper = Keeper {
            nudge: Some(nudge),
            thread: None,
            commits: 0,
        };
        for _ in 0..COMMITS {
            keeper.committed(&writer, CROWD);
        }
        assert_eq!(backlog(&writer).unwrap(), 0);
        assert!(nudged.try_recv().is_err(), "nobody else is asked to");
    }

    #[test]
    fn where_nobody_moves_them_the_writer_does() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("test.db");
        let writer = connection::writer(&path).unwrap();
        let other = connection::keeper(&path).unwrap();
        writer.execute_batch("CREATE TABLE t (x BLOB)").unwrap();
        for _ in 0..6 {
            writer
                .execute_batch("INSERT INTO t VALUES (zeroblob(20000000))")
                .unwrap();
            assert!(backlog(&other).unwrap() < HELP);
        }
    }
}
