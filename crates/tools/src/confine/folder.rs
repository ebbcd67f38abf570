//! A folder for temporary files, within the folder that a program is confined to.

use std::{
    fs::{self, DirBuilder, File},
    io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use rustix::fs::{FlockOperation, flock};

const PREFIX: &str = ".holdpoint-tmp-";
/// A process that was killed may still be within its last system call.
const TRIES: usize = 20;
const PAUSE: Duration = Duration::from_millis(10);

/// A folder that is removed when this is dropped. While it is in use it is locked.
#[derive(Debug)]
pub(crate) struct TemporaryFolder {
    path: PathBuf,
    _lock: File,
}

impl TemporaryFolder {
    /// Makes one, and removes those that a crash left.
    pub(crate) fn within(folder: &Path, name: &str) -> io::Result<Self> {
        remove_left_over(folder);
        let path = folder.join(format!("{PREFIX}{name}"));
        DirBuilder::new().mode(0o700).create(&path)?;
        let lock = File::open(&path)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self { path, _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        for _ in 0..TRIES {
            match fs::remove_dir_all(&self.path) {
                Ok(()) => return,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return,
                Err(_) => thread::sleep(PAUSE),
            }
        }
    }
}

fn remove_left_over(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX)
            && entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_ours
            && let Ok(folder) = File::open(entry.path())
            && flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok()
        {
            // It only takes room.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
