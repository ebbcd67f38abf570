//! `write_file` and `edit_file`: all of a change or nothing of it.
//!
//! A file is written under another name in the same folder, made durable there, and renamed. Between looking at what is in
//! the file and renaming, the folder is locked, so that of two changes made by tools, one sees the other. Programs that do
//! not lock can still write in between.

use std::{
    fs::File,
    io::Write as _,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    thread,
    time::Duration,
};

use holdpoint_core::{Basis, Digest, Lookup, Preview, PreviewForm};
use rustix::{
    fs::{
        AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, RenameFlags, Stat, fchmod, flock,
        fsync, openat, renameat, renameat_with, unlinkat,
    },
    io::Errno,
};
use serde::Deserialize;
use serde_json::Value;
use similar::TextDiff;

use super::{
    place::{Place, RESERVED},
    reading::kind_of,
    work::Wanted,
    workspace::{MAX_CONTENT, Missing, NoFile, Workspace, file_in, whole},
};

/// How the names of half-written files end.
const PART: &str = ".part";
/// How long a diff may take; a worse one is made then.
const DIFF_TIME: Duration = Duration::from_millis(500);
/// How often it is tried to lock a folder.
const LOCK_PAUSE: Duration = Duration::from_millis(2);

#[derive(Debug, Deserialize)]
pub(super) struct WriteFile {
    path: String,
    // Left out is not null: what deletes must be said.
    #[serde(deserialize_with = "said")]
    content: Option<String>,
}

fn said<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Option::deserialize(from)
}

#[derive(Debug, Deserialize)]
pub(super) struct EditFile {
    path: String,
    old_string: String,
    new_string: String,
    #[serde(default)]
    replace_all: bool,
}

/// What is to be done to a file.
#[derive(Debug)]
pub(super) enum Change {
    Write(WriteFile),
    Edit(EditFile),
}

/// Why nothing was changed, or nobody knows.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NotDone {
    /// Certainly nothing was.
    Nothing(String),
    Unknown(String),
}

impl From<String> for NotDone {
    fn from(why: String) -> Self {
        Self::Nothing(why)
    }
}

/// What is in a file; `None` if there is none.
type Content = Option<Vec<u8>>;

/// Of a file that is not there: no content has it.
fn digest(content: Option<&[u8]>) -> Digest {
    content.map_or_else(Digest::default, Digest::of)
}

impl Change {
    fn path(&self) -> &str {
        match self {
            Self::Write(write) => &write.path,
            Self::Edit(edit) => &edit.path,
        }
    }

    /// What is in the file afterwards.
    fn apply(&self, place: &Place, old: Option<&[u8]>) -> Result<Content, String> {
        let shown = place.shown();
        let new = match self {
            Self::Write(WriteFile { content: None, .. }) => {
                if old.is_none() {
                    return Err(format!("there is no file `{shown}` to delete"));
                }
                return Ok(None);
            }
            Self::Write(WriteFile {
                content: Some(content),
                ..
            }) => content.as_bytes().to_vec(),
            Self::Edit(edit) => edit.apply(&shown, old)?.into_bytes(),
        };
        if u64::try_from(new.len()).is_ok_and(|size| size <= MAX_CONTENT) {
            Ok(Some(new))
        } else {
            Err(format!(
                "`{shown}` would be {} bytes long; a file is written up to {MAX_CONTENT} bytes",
                new.len()
            ))
        }
    }

    /// What a model is told when it was done.
    fn told(&self, place: &Place, new: Option<&[u8]>) -> String {
        let shown = place.shown();
        match (self, new) {
            (Self::Edit(_), _) => format!("edited `{shown}`"),
            (Self::Write(_), None) => format!("deleted `{shown}`"),
            (Self::Write(_), Some(new)) => format!("wrote {} bytes to `{shown}`", new.len()),
        }
    }
}

impl EditFile {
    fn apply(&self, shown: &str, old: Option<&[u8]>) -> Result<String, String> {
        let Some(old) = old else {
            return Err(format!("there is no file `{shown}`"));
        };
        let old = std::str::from_utf8(old).map_err(|_| format!("`{shown}` is no UTF-8 text"))?;
        if self.old_string.is_empty() {
            return Err("`old_string` is empty".to_owned());
        }
        if self.old_string == self.new_string {
            return Err("`old_string` and `new_string` are the same".to_owned());
        }
        let count = old.matches(&self.old_string).count();
        match count {
            0 => Err(format!(
                "`old_string` is not in `{shown}`; read the file, and give the text to the character"
            )),
            1 => Ok(old.replacen(&self.old_string, &self.new_string, 1)),
            _ if self.replace_all => {
                // Before memory is taken for it.
                let grown = self.new_string.len().saturating_mul(count);
                if u64::try_from(grown).is_ok_and(|size| size > 2 * MAX_CONTENT) {
                    return Err(format!(
                        "`{shown}` would be longer than {MAX_CONTENT} bytes"
                    ));
                }
                Ok(old.replace(&self.old_string, &self.new_string))
            }
            _ => Err(format!(
                "`old_string` is in `{shown}` {count} times; give more of the text around it, or say `replace_all`"
            )),
        }
    }
}

/// What is in the file now, and its permissions.
fn look(workspace: &Workspace, place: &Place) -> Result<(Content, Option<Stat>), String> {
    let Some((folder, name)) = workspace.parent(place, Missing::Left)? else {
        return Ok((None, None));
    };
    look_in(folder.as_fd(), name, place)
}

fn look_in(
    folder: BorrowedFd<'_>,
    name: &str,
    place: &Place,
) -> Result<(Content, Option<Stat>), String> {
    let Some((mut file, stat)) = file_in(folder, name).map_err(|why| why.of(place))? else {
        return Ok((None, None));
    };
    let content = whole(&mut file)
        .map_err(|error| format!("`{}` cannot be read: {error}", place.shown()))?
        .ok_or_else(|| {
            format!(
                "`{}` is larger than {MAX_CONTENT} bytes, and is not changed by this tool",
                place.shown()
            )
        })?;
    Ok((Some(content), Some(stat)))
}

/// What a change would do.
pub(super) fn preview(workspace: &Workspace, change: &Change) -> Result<Preview, String> {
    let place = workspace.place(change.path())?;
    let (old, _) = look(workspace, &place)?;
    let new = change.apply(&place, old.as_deref())?;
    let basis = Basis {
        before: digest(old.as_deref()),
        after: digest(new.as_deref()),
    };
    let shown = place.shown();
    let title = match (change, &old, &new) {
        (_, _, None) => format!("Delete {shown}"),
        (_, None, Some(_)) => format!("Create {shown}"),
        (Change::Write(_), Some(_), Some(_)) => format!("Overwrite {shown}"),
        (Change::Edit(_), Some(_), Some(_)) => format!("Edit {shown}"),
    };
    let (body, form) = difference(&shown, old.as_deref(), new.as_deref());
    if body.len() > Preview::MAX_BODY && new.is_none() {
        let bytes = old.as_deref().unwrap_or_default();
        let (size, digest) = (bytes.len(), Digest::of(bytes));
        let body = format!("a file too large to be shown is deleted: {size} bytes, {digest}\n");
        return Ok(Preview::new(title, body, PreviewForm::Text).with_basis(basis));
    }
    if body.len() > Preview::MAX_BODY {
        return Err(format!(
            "the change of `{shown}` is too large to be shown to a person; write less at once"
        ));
    }
    Ok(Preview::new(title, body, form).with_basis(basis))
}

fn difference(shown: &str, old: Option<&[u8]>, new: Option<&[u8]>) -> (String, PreviewForm) {
    let text = |content: Option<&[u8]>| match content {
        None => Some(String::new()),
        Some(bytes) if kind_of(bytes).is_some() => None,
        Some(bytes) => String::from_utf8(bytes.to_vec()).ok(),
    };
    let Some(before) = text(old) else {
        let bytes = old.unwrap_or_default();
        let kind = kind_of(bytes).unwrap_or("text that is not UTF-8");
        let mut body = format!(
            "what is there now cannot be shown: {kind}, {} bytes, {}\n",
            bytes.len(),
            Digest::of(bytes)
        );
        if let Some(new) = new {
            body.push_str("what would be there:\n");
            body.push_str(&String::from_utf8_lossy(new));
        }
        return (body, PreviewForm::Text);
    };
    let after = new.map_or_else(String::new, |new| String::from_utf8_lossy(new).into_owned());
    if before == after {
        let body = match (old, new) {
            (Some(_), None) => "the file is empty\n",
            (None, Some(_)) => "the file will be empty\n",
            _ => "nothing changes\n",
        };
        return (body.to_owned(), PreviewForm::Text);
    }
    let side = |content: Option<&[u8]>, mark: &str| {
        content.map_or_else(|| "/dev/null".to_owned(), |_| format!("{mark}/{shown}"))
    };
    let diff = TextDiff::configure()
        .timeout(DIFF_TIME)
        .diff_lines(&before, &after);
    let body = diff
        .unified_diff()
        .header(&side(old, "a"), &side(new, "b"))
        .to_string();
    (body, PreviewForm::Diff)
}

/// Changes a file. Where there is a basis, only if the file is what it was.
pub(super) fn make(
    workspace: &Workspace,
    change: &Change,
    basis: Option<&Basis>,
    key: &str,
    wanted: &Wanted,
) -> Result<String, NotDone> {
    let place = workspace.place(change.path())?;
    // What cannot work makes no folders.
    let (old, _) = look(workspace, &place)?;
    change.apply(&place, old.as_deref())?;
    let Some((folder, name)) = workspace.parent(&place, Missing::Made)? else {
        return Err(NotDone::Nothing(format!(
            "there is no folder for `{}`",
            place.shown()
        )));
    };
    lock(&folder, &place, wanted)?;
    clean(&folder);
    // INVARIANT: from here to the renaming nobody else who locks changes what is in this folder.
    let (old, stat) = look_in(folder.as_fd(), name, &place)?;
    let new = change.apply(&place, old.as_deref())?;
    if let Some(basis) = basis {
        let found = Basis {
            before: digest(old.as_deref()),
            after: digest(new.as_deref()),
        };
        if found != *basis {
            return Err(NotDone::Nothing(format!(
                "`{}` is not what it was when this call was shown to a person; nothing was written. Read it and make the \
                 call again.",
                place.shown()
            )));
        }
    }
    if !wanted.holds() {
        return Err(NotDone::Nothing(
            "its time was over before anything was written".to_owned(),
        ));
    }
    match &new {
        Some(new) => replace(&folder, name, new, stat.as_ref(), key, &place)?,
        None => unlinkat(&folder, name, AtFlags::empty())
            .map_err(|error| format!("`{}` cannot be deleted: {error}", place.shown()))?,
    }
    // DURABILITY: what was renamed or deleted is so after a crash only once the folder is on the disk.
    fsync(&folder).map_err(|error| {
        NotDone::Unknown(format!(
            "`{}` was changed, but the folder could not be made durable: {error}",
            place.shown()
        ))
    })?;
    Ok(change.told(&place, new.as_deref()))
}

/// What became of a change that was based on something.
pub(super) fn find(
    workspace: &Workspace,
    change: &Change,
    basis: Option<&Basis>,
    wanted: &Wanted,
) -> Lookup {
    let unknown = |reason: String| Lookup::Unknown { reason };
    let Some(basis) = basis else {
        return unknown("it is not known what was in the file before the call".to_owned());
    };
    let place = match workspace.place(change.path()) {
        Ok(place) => place,
        Err(why) => return unknown(why),
    };
    if let Ok(Some((folder, _))) = workspace.parent(&place, Missing::Left)
        && lock(&folder, &place, wanted).is_ok()
    {
        clean(&folder);
    }
    let (content, _) = match look(workspace, &place) {
        Ok(found) => found,
        Err(why) => return unknown(why),
    };
    let now = digest(content.as_deref());
    if now == basis.after {
        Lookup::Committed {
            receipt: Value::String(change.told(&place, content.as_deref())),
        }
    } else if now == basis.before {
        Lookup::NotFound
    } else {
        unknown(format!(
            "`{}` is neither what it was before the call nor what the call would have made of it",
            place.shown()
        ))
    }
}

/// Locks a folder until it is closed.
fn lock(folder: &OwnedFd, place: &Place, wanted: &Wanted) -> Result<(), String> {
    loop {
        match flock(folder, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(Errno::WOULDBLOCK | Errno::INTR) if wanted.holds() => thread::sleep(LOCK_PAUSE),
            Err(Errno::WOULDBLOCK) => {
                return Err(format!(
                    "the folder of `{}` is being written by somebody else all the time",
                    place.shown()
                ));
            }
            Err(error) => {
                return Err(format!(
                    "the folder of `{}` cannot be locked: {error}",
                    place.shown()
                ));
            }
        }
    }
}

/// Removes what a crash left half written. Who is writing holds the lock.
fn clean(folder: &OwnedFd) {
    let Ok(entries) = Dir::read_from(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let ours = name
            .to_str()
            .is_ok_and(|name| name.starts_with(RESERVED) && name.ends_with(PART));
        if ours && matches!(entry.file_type(), FileType::RegularFile | FileType::Unknown) {
            // It only takes room.
            let _ = unlinkat(folder, name, AtFlags::empty());
        }
    }
}

/// Puts a content in the place of a file, or where there is none.
fn replace(
    folder: &OwnedFd,
    name: &str,
    content: &[u8],
    old: Option<&Stat>,
    key: &str,
    place: &Place,
) -> Result<(), String> {
    let key = Digest::of(key.as_bytes()).to_string();
    let short = key
        .trim_start_matches("sha256:")
        .get(..16)
        .unwrap_or_default();
    let part = format!("{RESERVED}{short}{PART}");
    let failed = |error: std::io::Error| format!("`{}` cannot be written: {error}", place.shown());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let made = openat(folder, part.as_str(), flags, Mode::from_raw_mode(0o666));
    let made = made.map_err(|error| failed(error.into()))?;
    let written = (|| -> std::io::Result<()> {
        if let Some(old) = old {
            // What may be executed stays so; what belongs to somebody else's group gives no rights away.
            fchmod(&made, Mode::from_raw_mode(old.st_mode & 0o777))?;
        }
        let mut file = File::from(made);
        file.write_all(content)?;
        // DURABILITY: a name never leads to content that is not on the disk.
        file.sync_all()?;
        if old.is_some() {
            renameat(folder, part.as_str(), folder, name)?;
        } else {
            create(folder, &part, name)?;
        }
        Ok(())
    })();
    written.map_err(|error| {
        // Nothing leads to it.
        let _ = unlinkat(folder, part.as_str(), AtFlags::empty());
        failed(error)
    })
}

/// Renames to a name that nobody has.
fn create(folder: &OwnedFd, part: &str, name: &str) -> Result<(), Errno> {
    match renameat_with(folder, part, folder, name, RenameFlags::NOREPLACE) {
        // Not every file system can.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => match file_in(folder.as_fd(), name) {
            Ok(None) => renameat(folder, part, folder, name),
            Ok(Some(_)) | Err(NoFile::Folder | NoFile::Link | NoFile::Special) => Err(Errno::EXIST),
            Err(NoFile::Failed(error)) => Err(error),
        },
        ended => ended,
    }
}
