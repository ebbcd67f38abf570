//! From a file to its text.

use std::{fs, io::Read as _, path::Path};

use crate::{Problem, tree::MAX_BYTES};

/// The text of a file, whose name is as `file` in what is said of it.
///
/// # Errors
///
/// It cannot be read, or is no text.
pub fn read_file(path: &Path, file: &str) -> Result<String, Problem> {
    let mut bytes = Vec::new();
    // A little more than is allowed, so that an endless file is refused like one that is too long.
    fs::File::open(path)
        .and_then(|file| file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes))
        .map_err(|error| Problem::of_file(file, &format!("cannot be read: {error}")))?;
    String::from_utf8(bytes).map_err(|_| Problem::of_file(file, "is not UTF-8 text"))
}
