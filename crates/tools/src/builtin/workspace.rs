//! The folder that file tools work in, and the only thing that they can reach.
//!
//! The folder is opened once, and everything in it is reached from there: by `openat2` with `RESOLVE_BENEATH`, so that the
//! kernel itself does not leave the folder, whatever symbolic links there are and however they change while it looks.
//! Where there is no `openat2`, each part of a path is opened on its own and no symbolic link is followed.

use std::{
    fs::File,
    io::{self, Read},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, DirEntry, FileType, Mode, OFlags, Stat, fstat, mkdirat, open, openat, statat},
    io::Errno,
};

use super::{place::Place, shown};

/// How much of a file a tool takes as a whole, and writes.
pub(super) const MAX_CONTENT: u64 = 1 << 20;

/// How often the kernel may ask to try again, because something was renamed while it looked.
const TRIES: usize = 128;

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

/// Never waits for who might write into a FIFO, nor becomes the controlling terminal.
const FILE: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// How paths are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Resolver {
    /// By the kernel, which stays beneath the folder.
    Kernel,
    /// Part by part, without symbolic links.
    Walk,
}

/// A folder that was opened.
#[derive(Debug)]
pub(super) struct Workspace {
    root: OwnedFd,
    /// As it was named, and as it really is.
    paths: [PathBuf; 2],
    resolver: Resolver,
}

impl Workspace {
    /// Opens a folder.
    ///
    /// # Errors
    ///
    /// Why it is of no use, in words for whoever named it.
    pub(super) fn open(path: &str) -> Result<Self, String> {
        let shown = shown::name(path);
        let named = PathBuf::from(path);
        if !named.is_absolute() {
            return Err(format!("the workspace `{shown}` is not an absolute path"));
        }
        let root = open(&named, FOLDER, Mode::empty()).map_err(|error| match error {
            Errno::NOENT => format!("there is no folder `{shown}` to work in; make it first"),
            Errno::NOTDIR => format!("the workspace `{shown}` is not a folder"),
            error => format!("the workspace `{shown}` cannot be opened: {error}"),
        })?;
        let real = named
            .canonicalize()
            .map_err(|error| format!("the workspace `{shown}` cannot be opened: {error}"))?;
        Ok(Self {
            resolver: resolver(&root),
            root,
            paths: [named, real],
        })
    }

    #[cfg(test)]
    pub(super) fn with(self, resolver: Resolver) -> Self {
        Self { resolver, ..self }
    }

    /// Where it really is.
    pub(super) fn path(&self) -> &Path {
        &self.paths[1]
    }

    /// Says whether this file or folder is in it, or it in that folder.
    pub(super) fn meets(&self, other: &Path) -> bool {
        let other = real(other);
        other.starts_with(self.path()) || self.path().starts_with(&other)
    }

    /// Reads a path that a model gave.
    ///
    /// # Errors
    ///
    /// Why it is not a place in the workspace.
    pub(super) fn place(&self, path: &str) -> Result<Place, String> {
        Place::read(path, [&self.paths[0], &self.paths[1]])
    }

    /// Opens a folder.
    ///
    /// # Errors
    ///
    /// Why it cannot be opened, in words for the model.
    pub(super) fn folder(&self, place: &Place) -> Result<OwnedFd, String> {
        self.follow(&place.relative(), FOLDER)
            .map_err(|error| explain(place, "folder", error))
    }

    /// Opens a regular file to be read.
    ///
    /// # Errors
    ///
    /// Why it cannot be opened, in words for the model.
    pub(super) fn file(&self, place: &Place) -> Result<(File, Stat), String> {
        let opened = self
            .follow(&place.relative(), FILE)
            .map_err(|error| explain(place, "file", error))?;
        regular(opened).map_err(|why| why.of(place))
    }

    /// Whether it is a folder.
    pub(super) fn is_folder(&self, place: &Place) -> bool {
        self.follow(&place.relative(), FOLDER).is_ok()
    }

    /// Opens the folder that a file is in, or is to be in; `make` says whether missing ones are made.
    ///
    /// # Errors
    ///
    /// Why it cannot be opened, in words for the model. `Ok(None)` where it is missing and not made.
    pub(super) fn parent<'p>(
        &self,
        place: &'p Place,
        make: Missing,
    ) -> Result<Option<(OwnedFd, &'p str)>, String> {
        let (folders, name) = place
            .split()
            .ok_or_else(|| "the workspace itself is a folder".to_owned())?;
        let failed = |error| explain(place, "folder", error);
        let mut reached = self.follow(".", FOLDER).map_err(failed)?;
        for depth in 1..=folders.len() {
            let path = folders[..depth].join("/");
            reached = match self.follow(&path, FOLDER) {
                Ok(folder) => folder,
                Err(Errno::NOENT) if make == Missing::Made => {
                    let name = folders[depth - 1].as_str();
                    match mkdirat(&reached, name, Mode::from_raw_mode(0o777)) {
                        Ok(()) | Err(Errno::EXIST) => {}
                        Err(error) => return Err(failed(error)),
                    }
                    self.follow(&path, FOLDER).map_err(failed)?
                }
                Err(Errno::NOENT) => return Ok(None),
                Err(error) => return Err(failed(error)),
            };
        }
        Ok(Some((reached, name)))
    }

    fn follow(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        match self.resolver {
            Resolver::Kernel => beneath(&self.root, path, flags),
            Resolver::Walk => walk(&self.root, path, flags),
        }
    }
}

/// What to do about folders that are not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    Made,
    Left,
}

/// What something is that is not a regular file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoFile {
    Folder,
    Link,
    Special,
    Failed(Errno),
}

impl NoFile {
    pub(super) fn of(self, place: &Place) -> String {
        let shown = place.shown();
        match self {
            Self::Folder => format!("`{shown}` is a folder"),
            Self::Link => {
                format!("`{shown}` is a symbolic link, which is neither written nor deleted")
            }
            Self::Special => format!("`{shown}` is no regular file (a device, a FIFO or a socket)"),
            Self::Failed(error) => explain(place, "file", error),
        }
    }
}

/// A file in a folder that is open, not followed if it is a symbolic link. `None` if there is none.
pub(super) fn file_in(folder: BorrowedFd<'_>, name: &str) -> Result<Option<(File, Stat)>, NoFile> {
    match openat(folder, name, FILE | OFlags::NOFOLLOW, Mode::empty()) {
        Ok(opened) => regular(opened).map(Some),
        Err(Errno::NOENT) => Ok(None),
        Err(Errno::LOOP | Errno::MLINK) => Err(NoFile::Link),
        // A socket, or a device without a driver.
        Err(Errno::NXIO | Errno::NODEV) => Err(NoFile::Special),
        Err(error) => Err(NoFile::Failed(error)),
    }
}

/// What an entry of a folder is; a symbolic link is one, wherever it leads.
pub(super) fn kind_in(folder: &OwnedFd, entry: &DirEntry) -> FileType {
    let said = entry.file_type();
    if said != FileType::Unknown {
        return said;
    }
    // Not every file system says it right away.
    statat(folder, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW).map_or(FileType::Unknown, |stat| {
        FileType::from_raw_mode(stat.st_mode)
    })
}

/// All that is in a file, if that is not more than [`MAX_CONTENT`].
pub(super) fn whole(file: &mut File) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    file.take(MAX_CONTENT + 1).read_to_end(&mut bytes)?;
    let fits = u64::try_from(bytes.len()).is_ok_and(|it| it <= MAX_CONTENT);
    Ok(fits.then_some(bytes))
}

fn regular(opened: OwnedFd) -> Result<(File, Stat), NoFile> {
    let stat = fstat(&opened).map_err(NoFile::Failed)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok((File::from(opened), stat)),
        FileType::Directory => Err(NoFile::Folder),
        FileType::Symlink => Err(NoFile::Link),
        FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => Err(NoFile::Special),
    }
}

fn explain(place: &Place, what: &str, error: Errno) -> String {
    let shown = place.shown();
    match error {
        Errno::NOENT => format!("there is no {what} `{shown}`"),
        Errno::NOTDIR => {
            format!("`{shown}` is not a folder, or leads through something that is none")
        }
        Errno::XDEV => format!("`{shown}` leads out of the workspace by a symbolic link"),
        Errno::LOOP => {
            format!("`{shown}` leads through symbolic links that cannot be followed here")
        }
        Errno::NAMETOOLONG => format!(
            "the path is too long: `{}…`",
            shown.chars().take(60).collect::<String>()
        ),
        Errno::ACCESS | Errno::PERM => format!("`{shown}`: permission denied"),
        Errno::NXIO | Errno::NODEV => NoFile::Special.of(place),
        Errno::AGAIN => format!("`{shown}` is being renamed again and again; try later"),
        Errno::ISDIR => NoFile::Folder.of(place),
        error => format!("`{shown}`: {error}"),
    }
}

/// Where a file or folder really is, as far as it is there.
pub(super) fn real(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    absolute
        .ancestors()
        .find_map(|there| {
            let rest = absolute.strip_prefix(there).ok()?;
            Some(there.canonicalize().ok()?.join(rest))
        })
        .unwrap_or(absolute)
}

#[cfg(target_os = "linux")]
fn resolver(root: &OwnedFd) -> Resolver {
    match beneath(root, ".", FOLDER) {
        Ok(_) => Resolver::Kernel,
        // Not there, or forbidden by what this process is confined by.
        Err(_) => Resolver::Walk,
    }
}

#[cfg(not(target_os = "linux"))]
fn resolver(_: &OwnedFd) -> Resolver {
    Resolver::Walk
}

#[cfg(target_os = "linux")]
fn beneath(root: &OwnedFd, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    use rustix::fs::{ResolveFlags, openat2};
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    for _ in 0..TRIES {
        match openat2(root, path, flags, Mode::empty(), resolve) {
            Err(Errno::AGAIN | Errno::INTR) => std::thread::yield_now(),
            ended => return ended,
        }
    }
    Err(Errno::AGAIN)
}

#[cfg(not(target_os = "linux"))]
fn beneath(root: &OwnedFd, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    walk(root, path, flags)
}

fn walk(root: &OwnedFd, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    let (folders, last) = path.rsplit_once('/').unwrap_or(("", path));
    let mut reached: Option<OwnedFd> = None;
    for part in folders.split('/').filter(|part| !part.is_empty()) {
        let from = reached.as_ref().unwrap_or(root);
        reached = Some(openat(
            from.as_fd(),
            part,
            FOLDER | OFlags::NOFOLLOW,
            Mode::empty(),
        )?);
    }
    let from = reached.as_ref().unwrap_or(root);
    openat(from.as_fd(), last, flags | OFlags::NOFOLLOW, Mode::empty())
}
