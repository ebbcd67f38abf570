//! A copy of the whole file, made while others write it.
//!
//! `VACUUM INTO` reads within one transaction, so it sees one state of the file, and in write-ahead mode a reader holds up no
//! writer. (SQLite's backup interface would either do the same, or start again whenever somebody writes.) It also leaves
//! behind what was erased and lies about in free pages. Until it ends, the log of the original only grows.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use holdpoint_core::Timestamp;
use rusqlite::{
    Connection, ErrorCode, OpenFlags,
    types::{ToSqlOutput, ValueRef},
};

use super::{
    connection::{self, Sight},
    marks::{self, Mark},
    moving,
    trouble::{Place, explain},
};
use crate::{BackupError, failpoint};

/// What a copy is made of.
#[derive(Debug, Clone)]
pub(super) struct Source {
    pub(super) place: Place,
    pub(super) sight: Sight,
}

impl Source {
    /// Makes a copy, with the mark of one. Blocks while it does.
    pub(super) fn copy(&self, to: &Path, now: Timestamp) -> Result<(), BackupError> {
        let failed = |error: io::Error| BackupError::Failed {
            path: to.to_owned(),
            reason: error.to_string(),
        };
        let place = std::path::absolute(to).map_err(failed)?;
        vacant(&place)?;
        let conn = connection::reader(self.place.path(), self.sight)
            .map_err(|error| self.place.unavailable(&error))?;
        self.place.check()?;
        let mode = fs::metadata(self.place.path())
            .map_err(failed)?
            .permissions()
            .mode();
        let part = Part::beside(&place).map_err(failed)?;
        part.fill(&conn, now).map_err(|error| {
            if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) {
                return self.place.unavailable(&error).into();
            }
            let (path, reason) = (to.to_owned(), explain(to, &error));
            BackupError::Failed { path, reason }
        })?;
        if let Some(moving) = part.has_a_part_in_a_move(to)? {
            return Err(BackupError::Unsupported(moving.refusal()));
        }
        // DURABILITY: it gets its name when all of it is on the disk.
        part.finish(mode).map_err(failed)?;
        failpoint::hit("store.backup.before");
        match fs::hard_link(&part.path, &place) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(BackupError::Exists { path: place });
            }
            // Some file systems know no second names. There, a file that comes to be right now is overwritten.
            Err(_) => {
                vacant(&place)?;
                fs::rename(&part.path, &place).map_err(failed)?;
            }
        }
        failpoint::hit("store.backup.after");
        folder(&place)
            .and_then(|folder| File::open(folder)?.sync_all())
            .map_err(failed)
    }
}

/// Whether nothing is at a path, nor beside it what SQLite would take for the rest of a database there.
fn vacant(path: &Path) -> Result<(), BackupError> {
    for path in [
        path.to_owned(),
        beside(path, "-wal"),
        beside(path, "-journal"),
    ] {
        if fs::symlink_metadata(&path).is_ok() {
            return Err(BackupError::Exists { path });
        }
    }
    Ok(())
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

fn folder(path: &Path) -> io::Result<&Path> {
    let none = || io::Error::new(io::ErrorKind::InvalidInput, "it names no file");
    path.parent().ok_or_else(none)
}

/// A copy that is not whole yet, under another name beside the one it will have. That name goes in any case.
struct Part {
    path: PathBuf,
}

impl Part {
    fn beside(path: &Path) -> io::Result<Self> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let mut name = OsString::from(".");
        name.push(path.file_name().unwrap_or_default());
        name.push(format!(".{:016x}.part", u64::from_be_bytes(random)));
        let part = Self {
            path: folder(path)?.join(name),
        };
        // Nobody reads a copy who may not read the original, not even while it is made.
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&part.path)?;
        Ok(part)
    }

    fn fill(&self, original: &Connection, now: Timestamp) -> rusqlite::Result<()> {
        let path = ValueRef::Text(self.path.as_os_str().as_encoded_bytes());
        original.execute("VACUUM INTO ?1", [ToSqlOutput::Borrowed(path)])?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let copy = Connection::open_with_flags(&self.path, flags)?;
        marks::raise(&copy, Mark::Backup, now.as_micros())
    }

    /// What part the original had in a move when it was copied: such a copy could never be adopted.
    fn has_a_part_in_a_move(&self, to: &Path) -> Result<Option<crate::Part>, BackupError> {
        let copy = Connection::open_with_flags(&self.path, OpenFlags::SQLITE_OPEN_READ_ONLY);
        let part = copy.and_then(|copy| moving::part(&copy));
        part.map_err(|error| BackupError::Failed {
            path: to.to_owned(),
            reason: explain(to, &error),
        })
    }

    /// Lets those see it who may see the original; whoever made it may also write it, to adopt it.
    fn finish(&self, mode: u32) -> io::Result<()> {
        let file = File::open(&self.path)?;
        file.set_permissions(fs::Permissions::from_mode((mode & 0o777) | 0o600))?;
        file.sync_all()
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        for path in [self.path.clone(), beside(&self.path, "-journal")] {
            // Whatever cannot be removed stays: it does no harm.
            drop(fs::remove_file(path));
        }
    }
}
