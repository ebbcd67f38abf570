//! Which processes are alive: each holds a lock on a file of its own, `<DB>.owners/<owner id>`, as long as it lives.
//!
//! The database file itself is never locked this way: SQLite's own locks live there, and closing any other handle on
//! that file in the same process would silently drop them.

use std::{
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use holdpoint_core::{OwnerId, Timestamp};

use crate::{
    Clock, Holder,
    admission::{Census, Tenure},
};

/// After this time nobody holds a lease of a dead process any more, so its file serves no purpose.
const KEPT: Duration = Duration::from_secs(3_600);

/// This process among the others that share a database.
#[derive(Debug)]
pub(super) struct Owners {
    folder: PathBuf,
    us: OwnerId,
    boot: Option<String>,
    clock: Arc<dyn Clock>,
    lock: Result<Lock, String>,
}

/// Our own file, locked. Removed when we end without a lease.
#[derive(Debug)]
struct Lock {
    path: PathBuf,
    /// The lock lasts as long as this is open.
    file: File,
    /// How many leases we hold; too many where a commit failed.
    held: AtomicI64,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Whoever finds a lease of ours sees by the file, unlocked, that we are gone. What is left is swept later.
        if self.held.load(Ordering::Relaxed) <= 0 {
            drop(fs::remove_file(&self.path));
        }
    }
}

impl Owners {
    /// Makes our own file, and clears away those of processes that are long dead.
    pub(super) fn join(database: &Path, clock: Arc<dyn Clock>) -> Result<Self, getrandom::Error> {
        let mut id = [0; 16];
        getrandom::fill(&mut id)?;
        let us = OwnerId::from_bytes(id);
        let mut folder = database.as_os_str().to_owned();
        folder.push(".owners");
        let folder = PathBuf::from(folder);
        let lock = Lock::make(&folder, us).map_err(|error| {
            format!(
                "`{}` cannot hold the lock that shows we are alive: {error}",
                folder.display()
            )
        });
        sweep(&folder);
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")
            .ok()
            .map(|id| id.trim_end().to_owned());
        Ok(Self {
            folder,
            us,
            boot,
            clock,
            lock,
        })
    }

    /// Takes note of a lease that changes hands.
    pub(super) fn note(&self, before: Option<&Tenure>, after: Option<&Tenure>) {
        let ours =
            |tenure: Option<&Tenure>| i64::from(tenure.is_some_and(|it| it.owner == self.us));
        if let Ok(lock) = &self.lock {
            lock.held
                .fetch_add(ours(after) - ours(before), Ordering::Relaxed);
        }
    }

    /// Whether the lock of an owner on this machine is free while its file is there.
    fn has_left_its_file(&self, owner: OwnerId) -> bool {
        is_unlocked(&self.folder.join(owner.to_string())).unwrap_or(false)
    }
}

impl Lock {
    fn make(folder: &Path, owner: OwnerId) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let path = folder.join(owner.to_string());
        let lock = Self {
            file: File::create_new(&path)?,
            path,
            held: AtomicI64::new(0),
        };
        lock.file.try_lock()?;
        Ok(lock)
    }
}

/// Looks whether a lock is free with a shared lock, so that several may look at once.
fn is_unlocked(path: &Path) -> io::Result<bool> {
    match File::open(path)?.try_lock_shared() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Removes files of dead processes. Whatever cannot be looked at or removed stays: it does no harm.
fn sweep(folder: &Path) {
    let Ok(files) = fs::read_dir(folder) else {
        return;
    };
    for file in files.flatten() {
        let age = file
            .metadata()
            .and_then(|meta| meta.modified())
            .ok()
            .and_then(|time| time.elapsed().ok());
        let path = file.path();
        if age.is_some_and(|age| age > KEPT) && is_unlocked(&path).unwrap_or(false) {
            drop(fs::remove_file(path));
        }
    }
}

impl Census for Owners {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn us(&self) -> OwnerId {
        self.us
    }

    fn tenure(&self, until: Timestamp) -> Result<Tenure, String> {
        match &self.lock {
            Ok(_) => Ok(Tenure {
                owner: self.us,
                boot: self.boot.clone(),
                until,
            }),
            Err(reason) => Err(reason.clone()),
        }
    }

    fn other(&self, tenure: &Tenure) -> Holder {
        // Without a boot id, or with another one, the process may be on another machine that shares the folder.
        let same_boot = self.boot.is_some() && tenure.boot == self.boot;
        if same_boot && self.has_left_its_file(tenure.owner) {
            Holder::Dead
        } else {
            Holder::MaybeAlive
        }
    }
}
