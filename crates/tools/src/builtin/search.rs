//! `glob` and `grep`.

use std::{
    fmt::Write as _,
    os::fd::{AsFd, OwnedFd},
};

use globset::{GlobBuilder, GlobMatcher};
use regex::{Regex, RegexBuilder};
use rustix::fs::{Dir, FileType, Mode, OFlags, openat};
use serde::Deserialize;

use super::{
    place::{Place, RESERVED},
    reading::{MAX_NAMES, MAX_TEXT, kind_of},
    shown,
    work::Wanted,
    workspace::{Workspace, file_in, kind_in, whole},
};

/// How deep folders are looked into.
const MAX_DEPTH: usize = 64;
/// How many files and folders are looked at.
const MAX_SEEN: usize = 200_000;
/// How many lines are found unless the call says how many, and at most.
const LINES: usize = 200;
const MAX_LINES: usize = 2_000;
/// How much of a line is shown.
const LINE_CHARS: usize = 500;
/// How large a compiled pattern may be.
const MAX_PATTERN: usize = 1 << 20;

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

#[derive(Debug, Deserialize)]
pub(super) struct Glob {
    pattern: String,
    path: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Grep {
    pattern: String,
    path: Option<String>,
    glob: Option<String>,
    max: Option<usize>,
}

/// Finds files by their names.
pub(super) fn glob(workspace: &Workspace, args: &Glob, wanted: &Wanted) -> Result<String, String> {
    let pattern = args.pattern.trim_start_matches("./");
    let matcher = matcher(pattern)?;
    let place = below(workspace, args.path.as_deref())?;
    let mut found = Vec::new();
    let mut walk = Walk::new(workspace, &place, wanted)?;
    walk.each(|file| {
        if matcher.is_match(file.below) {
            found.push(shown::name(file.path));
        }
        if found.len() > MAX_NAMES {
            Then::Stop
        } else {
            Then::GoOn
        }
    });
    if found.is_empty() {
        return Ok(format!("[no file matches]{}", walk.remark()));
    }
    let more = found.len() > MAX_NAMES;
    found.truncate(MAX_NAMES);
    found.sort_unstable();
    let mut text = found.join("\n");
    if more {
        // Writing into a text cannot fail.
        let _ = write!(
            text,
            "\n[there are more than {MAX_NAMES}; narrow the pattern]"
        );
    }
    text.push_str(&walk.remark());
    Ok(text)
}

/// Finds lines in files.
pub(super) fn grep(workspace: &Workspace, args: &Grep, wanted: &Wanted) -> Result<String, String> {
    let regex = RegexBuilder::new(&args.pattern)
        .size_limit(MAX_PATTERN)
        .dfa_size_limit(MAX_PATTERN)
        .build()
        .map_err(|error| format!("`pattern` is not a regular expression: {error}"))?;
    let matcher = args.glob.as_deref().map(matcher).transpose()?;
    let place = below(workspace, args.path.as_deref())?;
    let mut found = Found {
        regex,
        max: args.max.unwrap_or(LINES).clamp(1, MAX_LINES),
        count: 0,
        text: String::new(),
        skipped: 0,
    };
    if place.split().is_some() && !workspace.is_folder(&place) {
        let (mut file, _) = workspace.file(&place)?;
        match whole(&mut file) {
            Ok(Some(bytes)) => drop(found.look(&place.relative(), &bytes)),
            Ok(None) => return Err(format!("`{}` is larger than 1 MiB", place.shown())),
            Err(error) => return Err(format!("`{}` cannot be read: {error}", place.shown())),
        }
        return Ok(found.told(""));
    }
    let mut walk = Walk::new(workspace, &place, wanted)?;
    walk.each(|file| {
        let of_interest = matcher
            .as_ref()
            .is_none_or(|matcher| matcher.is_match(file.below) || matcher.is_match(file.name));
        if !of_interest {
            return Then::GoOn;
        }
        let bytes = match file_in(file.folder.as_fd(), file.name) {
            Ok(Some((mut opened, _))) => whole(&mut opened).ok().flatten(),
            Ok(None) => return Then::GoOn,
            Err(_) => None,
        };
        match bytes {
            Some(bytes) => found.look(file.path, &bytes),
            None => {
                found.skipped += 1;
                Then::GoOn
            }
        }
    });
    let remark = walk.remark();
    Ok(found.told(&remark))
}

struct Found {
    regex: Regex,
    max: usize,
    count: usize,
    text: String,
    /// Files that were too large, or could not be read.
    skipped: usize,
}

impl Found {
    fn look(&mut self, path: &str, bytes: &[u8]) -> Then {
        if kind_of(&bytes[..bytes.len().min(8 << 10)]).is_some() {
            return Then::GoOn;
        }
        let text = String::from_utf8_lossy(bytes);
        let path = shown::name(path);
        for (number, line) in (1..).zip(text.lines()) {
            if !self.regex.is_match(line) {
                continue;
            }
            self.count += 1;
            if self.count > self.max || self.text.len() > MAX_TEXT {
                return Then::Stop;
            }
            let end = line.char_indices().nth(LINE_CHARS);
            let (line, cut) = end.map_or((line, ""), |(end, _)| (&line[..end], " …"));
            // Writing into a text cannot fail.
            let _ = writeln!(self.text, "{path}:{number}:{line}{cut}");
        }
        Then::GoOn
    }

    fn told(mut self, remark: &str) -> String {
        if self.text.is_empty() {
            self.text.push_str("[no line matches]");
        }
        // Writing into a text cannot fail.
        if self.count > self.max {
            let _ = write!(self.text, "[there are more than {} lines]", self.max);
        }
        if self.skipped > 0 {
            let _ = write!(
                self.text,
                "\n[{} files were not looked into: larger than 1 MiB, or not readable]",
                self.skipped
            );
        }
        self.text.push_str(remark);
        self.text.trim_end_matches('\n').to_owned()
    }
}

fn below(workspace: &Workspace, path: Option<&str>) -> Result<Place, String> {
    path.map_or_else(|| Ok(Place::root()), |path| workspace.place(path))
}

fn matcher(pattern: &str) -> Result<GlobMatcher, String> {
    GlobBuilder::new(pattern)
        .literal_separator(true)
        .backslash_escape(true)
        .build()
        .map(|glob| glob.compile_matcher())
        .map_err(|error| {
            format!(
                "`{}` is not a pattern: {}",
                shown::name(pattern),
                error.kind()
            )
        })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    GoOn,
    Stop,
}

/// A file that was met.
struct Met<'a> {
    folder: &'a OwnedFd,
    name: &'a str,
    /// Seen from the workspace.
    path: &'a str,
    /// Seen from where the walk began.
    below: &'a str,
}

/// Meets the regular files below a folder, in no order. Symbolic links and `.git` are left alone.
struct Walk<'a> {
    wanted: &'a Wanted,
    begin: Option<(OwnedFd, String)>,
    seen: usize,
    cut: Option<&'static str>,
}

impl<'a> Walk<'a> {
    fn new(workspace: &Workspace, place: &Place, wanted: &'a Wanted) -> Result<Self, String> {
        let prefix = match place.split() {
            None => String::new(),
            Some(_) => format!("{}/", place.relative()),
        };
        Ok(Self {
            wanted,
            begin: Some((workspace.folder(place)?, prefix)),
            seen: 0,
            cut: None,
        })
    }

    fn remark(&self) -> String {
        self.cut
            .map_or_else(String::new, |cut| format!("\n[{cut}]"))
    }

    fn each(&mut self, mut meet: impl FnMut(&Met<'_>) -> Then) {
        let Some((folder, prefix)) = self.begin.take() else {
            return;
        };
        let begin = prefix.len();
        // Each with the folders in it that are yet to be looked into: so many are open at once as it is deep.
        let mut open = Vec::new();
        match self.list(&folder, &prefix, begin, &mut meet) {
            Some(inner) => open.push((folder, prefix, inner)),
            None => return,
        }
        while let Some((folder, prefix, inner)) = open.last_mut() {
            let Some(name) = inner.pop() else {
                open.pop();
                continue;
            };
            let path = format!("{prefix}{name}/");
            // It may be gone, or something else by now.
            let Ok(next) = openat(folder.as_fd(), name.as_str(), FOLDER, Mode::empty()) else {
                continue;
            };
            if open.len() >= MAX_DEPTH {
                self.cut = Some("folders nested deeper than 64 were not looked into");
                continue;
            }
            match self.list(&next, &path, begin, &mut meet) {
                Some(inner) => open.push((next, path, inner)),
                None => return,
            }
        }
    }

    /// Meets the files of one folder, and says which folders are in it. `None` if that is all.
    fn list(
        &mut self,
        folder: &OwnedFd,
        prefix: &str,
        begin: usize,
        meet: &mut impl FnMut(&Met<'_>) -> Then,
    ) -> Option<Vec<String>> {
        let mut inner = Vec::new();
        let Ok(entries) = Dir::read_from(folder) else {
            return Some(inner);
        };
        for entry in entries.flatten() {
            // What is not Unicode could not be asked for.
            let Ok(name) = entry.file_name().to_str() else {
                continue;
            };
            if matches!(name, "." | ".." | ".git") || name.starts_with(RESERVED) {
                continue;
            }
            self.seen += 1;
            if self.seen > MAX_SEEN {
                self.cut = Some("there are too many files; say where to look by `path`");
                return None;
            }
            if !self.wanted.holds() {
                self.cut =
                    Some("there was no time to look everywhere; say where to look by `path`");
                return None;
            }
            match kind_in(folder, &entry) {
                FileType::Directory => inner.push(name.to_owned()),
                FileType::RegularFile => {
                    let path = format!("{prefix}{name}");
                    let met = Met {
                        folder,
                        name,
                        path: &path,
                        below: &path[begin..],
                    };
                    if meet(&met) == Then::Stop {
                        return None;
                    }
                }
                FileType::Symlink
                | FileType::Fifo
                | FileType::Socket
                | FileType::CharacterDevice
                | FileType::BlockDevice
                | FileType::Unknown => {}
            }
        }
        Some(inner)
    }
}
