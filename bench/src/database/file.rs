//! Files of SQLite.

use std::{
    ffi::OsString,
    fs::{self, File},
    path::Path,
};

use anyhow::Context as _;
use rusqlite::Connection;

/// Copies a closed database, and waits until the copy is on the disk.
pub(super) fn copy(of: &Path, to: &Path) -> anyhow::Result<()> {
    fs::copy(of, to).with_context(|| format!("cannot copy `{}`", of.display()))?;
    Ok(File::open(to)?.sync_all()?)
}

/// Puts everything of a database that nobody has open into its main file.
pub(super) fn settle(file: &Path) -> anyhow::Result<()> {
    let conn = Connection::open(file)?;
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    Ok(())
}

/// How large a database is that nobody has open, with everything in its main file.
pub(super) fn size(file: &Path) -> anyhow::Result<u64> {
    settle(file)?;
    let parts = parts(file).into_iter();
    Ok(parts
        .filter_map(|part| Some(fs::metadata(part).ok()?.len()))
        .sum())
}

/// Removes a database that nobody has open.
pub(super) fn remove(file: &Path) -> anyhow::Result<()> {
    for part in parts(file) {
        if fs::exists(&part)? {
            fs::remove_file(&part)?;
        }
    }
    Ok(())
}

fn parts(file: &Path) -> [OsString; 3] {
    ["", "-wal", "-shm"].map(|suffix| {
        let mut part = file.as_os_str().to_owned();
        part.push(suffix);
        part
    })
}
