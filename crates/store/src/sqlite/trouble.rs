//! What went wrong with a database file, in words.

use std::{
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use rusqlite::ErrorCode;

use crate::Unavailable;

/// Says what an error of SQLite means for the person who has to do something about it.
pub(super) fn explain(path: &Path, error: &rusqlite::Error) -> String {
    let path = path.display();
    let code = error.sqlite_error_code();
    let is = |wanted| code == Some(wanted);
    if is(ErrorCode::DiskFull) {
        format!("the disk that holds `{path}` is full")
    } else if is(ErrorCode::ReadOnly) || is(ErrorCode::PermissionDenied) {
        format!("`{path}` cannot be written: the file or its folder is read-only for this user")
    } else if is(ErrorCode::NotADatabase) {
        format!("`{path}` is not a database")
    } else if is(ErrorCode::DatabaseCorrupt) {
        format!("`{path}` is damaged: {error}")
    } else if is(ErrorCode::CannotOpen) {
        format!(
            "`{path}` cannot be opened: it, or a file beside it, may not be read or created by this user"
        )
    } else if is(ErrorCode::DatabaseBusy) || is(ErrorCode::DatabaseLocked) {
        format!("`{path}` stayed locked by another process for too long")
    } else if is(ErrorCode::ConstraintViolation)
        && let rusqlite::Error::SqliteFailure(_, Some(refusal)) = error
    {
        // The only constraint that anything meets is the seal of a store that is moving, which says why.
        format!("`{path}`: {refusal}")
    } else if is(ErrorCode::SystemIoFailure) {
        format!("the disk that holds `{path}` failed: {error}")
    } else {
        format!("`{path}` cannot be used: {error}")
    }
}

/// A database file that is open.
#[derive(Debug, Clone)]
pub(super) struct Place {
    path: PathBuf,
    /// Device and inode.
    file: (u64, u64),
}

impl Place {
    pub(super) fn new(path: &Path) -> io::Result<Self> {
        let file = identify(path)?;
        Ok(Self {
            path: path.to_owned(),
            file,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn unavailable(&self, error: &rusqlite::Error) -> Unavailable {
        Unavailable::new(explain(&self.path, error))
    }

    /// Whether the path still leads to the file that is open. If not, what is written would be gone when it is closed.
    pub(super) fn check(&self) -> Result<(), Unavailable> {
        if identify(&self.path).is_ok_and(|file| file == self.file) {
            return Ok(());
        }
        let path = self.path.display();
        Err(Unavailable::new(format!(
            "`{path}` was removed or replaced while it was in use"
        )))
    }
}

fn identify(path: &Path) -> io::Result<(u64, u64)> {
    let meta = fs::metadata(path)?;
    Ok((meta.dev(), meta.ino()))
}
