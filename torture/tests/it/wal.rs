//! How often anybody committed anything, as SQLite's own log says.

use std::{fs, path::Path};

/// What `FILE-wal` holds: a header, and a frame for each page that was written. The last frame of a commit says so.
///
/// See <https://www.sqlite.org/fileformat2.html#walformat>.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wal {
    /// Another one with every log that is begun; frames of older ones stay behind it.
    salt: Vec<u8>,
    commits: usize,
}

impl Wal {
    pub(crate) fn read(db: &Path) -> Self {
        let mut path = db.as_os_str().to_owned();
        path.push("-wal");
        let bytes = fs::read(path).unwrap_or_default();
        let Some((header, frames)) = bytes.split_at_checked(32) else {
            return Self {
                salt: Vec::new(),
                commits: 0,
            };
        };
        let page = usize::try_from(number(header, 8)).unwrap();
        let salt = header.get(16..24).unwrap().to_vec();
        let commits = frames
            .chunks_exact(24 + page)
            .take_while(|frame| frame.get(8..16) == Some(&salt))
            .filter(|frame| number(frame, 4) > 0)
            .count();
        Self { salt, commits }
    }

    /// How many commits came after an earlier look; unknown where the log was begun anew in between.
    pub(crate) fn since(&self, earlier: &Self) -> Option<usize> {
        (self.salt == earlier.salt).then(|| self.commits - earlier.commits)
    }
}

fn number(bytes: &[u8], at: usize) -> u32 {
    let bytes = bytes.get(at..at + 4).unwrap();
    u32::from_be_bytes(bytes.try_into().unwrap())
}
