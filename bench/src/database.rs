//! The files that are measured on.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use rusqlite::Connection;

/// A folder of database files, each with a name of its own.
#[derive(Debug)]
pub(crate) struct Databases<'a> {
    folder: &'a Path,
    files: usize,
}

impl<'a> Databases<'a> {
    /// In this folder.
    pub(crate) const fn new(folder: &'a Path) -> Self {
        Self { folder, files: 0 }
    }

    /// A name that no file has.
    pub(crate) fn fresh(&mut self) -> PathBuf {
        self.files += 1;
        self.folder.join(format!("{}.db", self.files))
    }

    /// A copy of a closed database. It is on the disk when this returns, so that nobody who is measured has to wait
    /// for that.
    ///
    /// # Errors
    ///
    /// It cannot be copied.
    pub(crate) fn copy(&mut self, of: &Path) -> anyhow::Result<PathBuf> {
        let copy = self.fresh();
        fs::copy(of, &copy).with_context(|| format!("cannot copy `{}`", of.display()))?;
        File::open(&copy)?.sync_all()?;
        Ok(copy)
    }
}

/// Puts everything of a database that nobody has open into its main file.
///
/// # Errors
///
/// It cannot be written.
pub(crate) fn settle(file: &Path) -> anyhow::Result<()> {
    let conn = Connection::open(file)?;
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    Ok(())
}

/// Removes a database that nobody has open. Returns how large it was with everything in its main file.
///
/// # Errors
///
/// It cannot be written or removed.
pub(crate) fn remove(file: &Path) -> anyhow::Result<u64> {
    settle(file)?;
    discard(file)
}

/// Removes a database as it is, and returns its size.
fn discard(file: &Path) -> anyhow::Result<u64> {
    let mut bytes = 0;
    for suffix in ["", "-wal", "-shm"] {
        let mut part = file.as_os_str().to_owned();
        part.push(suffix);
        if let Ok(meta) = fs::metadata(&part) {
            bytes += meta.len();
            fs::remove_file(&part)?;
        }
    }
    Ok(bytes)
}
