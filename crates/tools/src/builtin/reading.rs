//! `read_file` and `ls`.

use std::{
    fmt::Write as _,
    fs::File,
    io::{BufRead, BufReader, Read},
};

use holdpoint_core::ArtifactAddress;
use rustix::fs::{Dir, FileType};
use serde::Deserialize;

use super::{
    kept::no_such_kept,
    place::{Place, RESERVED},
    shown,
    workspace::{Workspace, kind_in},
};

/// How many lines are read at once.
pub(super) const MAX_LINES: usize = 2_000;
/// How many bytes are read at once. What is read is never so long that it would be kept apart.
pub(super) const MAX_READ: usize = 60 << 10;
/// How many bytes of text are given of what is looked for or fetched.
pub(super) const MAX_TEXT: usize = 256 << 10;
/// How far into a file one can look.
const MAX_SEEN: u64 = 256 << 20;
/// How many names are listed.
pub(super) const MAX_NAMES: usize = 2_000;
/// How much of a file shows whether it is text.
const HEAD: usize = 8 << 10;

#[derive(Debug, Deserialize)]
pub(super) struct ReadFile {
    pub(super) path: String,
    offset: Option<usize>,
    limit: Option<usize>,
}

impl ReadFile {
    /// The number of the first line that is wanted, and how many lines are.
    pub(super) fn extent(&self) -> (usize, usize) {
        let first = self.offset.unwrap_or(1).max(1);
        let limit = self.limit.unwrap_or(MAX_LINES).clamp(1, MAX_LINES);
        (first, limit)
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Ls {
    path: Option<String>,
}

/// Reads lines of a text file, with their numbers.
pub(super) fn read_file(workspace: &Workspace, args: &ReadFile) -> Result<String, String> {
    if args.path.starts_with(ArtifactAddress::SCHEME) {
        // What is kept apart is not in the workspace: whoever makes the call finds it.
        return Err(no_such_kept(&args.path));
    }
    let place = workspace.place(&args.path)?;
    let (file, stat) = workspace.file(&place)?;
    let size = u64::try_from(stat.st_size).unwrap_or_default();
    let shown = place.shown();
    let failed = |error: std::io::Error| format!("`{shown}` cannot be read: {error}");
    let mut file = BufReader::with_capacity(HEAD, file);
    let head = file.fill_buf().map_err(failed)?;
    if let Some(kind) = kind_of(head) {
        return Err(format!("`{shown}` is no text: {kind}, {size} bytes"));
    }
    if size == 0 && head.is_empty() {
        return Ok(format!("[`{shown}` is empty]"));
    }
    let (first, limit) = args.extent();
    let mut lines = Lines::new(file);
    for number in 1..first {
        if !lines.skip().map_err(failed)? {
            let count = number - 1;
            return Err(format!("`{shown}` has only {count} lines"));
        }
        if lines.seen > MAX_SEEN {
            let most = MAX_SEEN >> 20;
            return Err(format!(
                "line {first} of `{shown}` is behind the first {most} MiB, which is as far as this tool looks"
            ));
        }
    }
    let mut text = String::new();
    let mut number = first;
    let mut line = Vec::new();
    while number < first + limit {
        line.clear();
        let room = MAX_READ.saturating_sub(text.len());
        let Some(extent) = lines.next(&mut line, room).map_err(failed)? else {
            break;
        };
        if extent == Extent::Cut && number > first {
            let end = number - 1;
            return Ok(format!(
                "{text}[lines {first} to {end}; go on with offset {number}]\n"
            ));
        }
        let cut = extent == Extent::Cut;
        let whole = match std::str::from_utf8(&line) {
            Ok(whole) => whole,
            // Cut in the middle of a character.
            Err(error) if cut && error.error_len().is_none() => {
                std::str::from_utf8(&line[..error.valid_up_to()]).unwrap_or_default()
            }
            Err(_) => {
                return Err(format!(
                    "`{shown}` is no text: line {number} is not UTF-8; {size} bytes"
                ));
            }
        };
        // Writing into a text cannot fail.
        let _ = writeln!(text, "{number:>6}\t{whole}");
        if cut {
            let _ = writeln!(
                text,
                "[line {number} is longer than what comes at once and was cut here; go on with offset {}]",
                number + 1
            );
            return Ok(text);
        }
        number += 1;
    }
    if number == first {
        let count = first - 1;
        return Err(format!("`{shown}` has only {count} lines"));
    }
    if !lines.is_at_end().map_err(failed)? {
        let end = number - 1;
        let _ = writeln!(text, "[lines {first} to {end}; go on with offset {number}]");
    }
    Ok(text)
}

/// What a file is that is no text, by its first bytes.
pub(super) fn kind_of(head: &[u8]) -> Option<&'static str> {
    const KINDS: [(&[u8], &str); 12] = [
        (b"\x7fELF", "a program"),
        (b"\x89PNG", "a PNG image"),
        (b"\xff\xd8\xff", "a JPEG image"),
        (b"GIF8", "a GIF image"),
        (b"%PDF-", "a PDF document"),
        (b"PK\x03\x04", "a ZIP archive"),
        (b"\x1f\x8b", "gzip data"),
        (b"BZh", "bzip2 data"),
        (b"\xfd7zXZ\0", "xz data"),
        (b"\x28\xb5\x2f\xfd", "zstd data"),
        (b"SQLite format 3\0", "an SQLite database"),
        (b"\xff\xfe", "text that is not UTF-8"),
    ];
    let known = KINDS.iter().find(|(magic, _)| head.starts_with(magic));
    match known {
        Some((_, kind)) => Some(kind),
        None => head.contains(&0).then_some("binary data"),
    }
}

/// Whether there is all of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    Whole,
    Cut,
}

struct Lines {
    file: BufReader<File>,
    seen: u64,
}

impl Lines {
    const fn new(file: BufReader<File>) -> Self {
        Self { file, seen: 0 }
    }

    fn skip(&mut self) -> std::io::Result<bool> {
        let mut any = false;
        while self.seen <= MAX_SEEN {
            let buffer = self.file.fill_buf()?;
            if buffer.is_empty() {
                return Ok(any);
            }
            any = true;
            let (used, ends) = match buffer.iter().position(|byte| *byte == b'\n') {
                Some(at) => (at + 1, true),
                None => (buffer.len(), false),
            };
            self.file.consume(used);
            self.seen += used as u64;
            if ends {
                return Ok(true);
            }
        }
        Ok(any)
    }

    /// The next line, without its end; at most so many bytes of it.
    fn next(&mut self, line: &mut Vec<u8>, room: usize) -> std::io::Result<Option<Extent>> {
        let limit = room as u64 + 1;
        let count = (&mut self.file).take(limit).read_until(b'\n', line)?;
        if count == 0 {
            return Ok(None);
        }
        if line.last() == Some(&b'\n') {
            line.pop();
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            return Ok(Some(Extent::Whole));
        }
        if line.len() > room {
            line.truncate(room);
            return Ok(Some(Extent::Cut));
        }
        Ok(Some(Extent::Whole))
    }

    fn is_at_end(&mut self) -> std::io::Result<bool> {
        Ok(self.file.fill_buf()?.is_empty())
    }
}

/// Lists a folder.
pub(super) fn ls(workspace: &Workspace, args: &Ls) -> Result<String, String> {
    let place = match &args.path {
        None => Place::root(),
        Some(path) => workspace.place(path)?,
    };
    let shown = place.shown();
    let folder = workspace.folder(&place)?;
    let failed = |error: rustix::io::Errno| format!("`{shown}` cannot be listed: {error}");
    let mut names = Vec::new();
    for entry in Dir::read_from(&folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy();
        if name == "." || name == ".." || name.starts_with(RESERVED) {
            continue;
        }
        let mark = match kind_in(&folder, &entry) {
            FileType::Directory => "/",
            FileType::Symlink => "@",
            FileType::RegularFile
            | FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => "",
        };
        names.push(format!("{}{mark}", shown::name(&name)));
    }
    if names.is_empty() {
        return Ok(format!("[`{shown}` is empty]"));
    }
    names.sort_unstable();
    let more = names.len().saturating_sub(MAX_NAMES);
    names.truncate(MAX_NAMES);
    let mut text = names.join("\n");
    if more > 0 {
        // Writing into a text cannot fail.
        let _ = write!(text, "\n[and {more} more]");
    }
    Ok(text)
}
