//! From a file to a definition.

use std::{fs, io::Read as _, path::Path};

use holdpoint_core::Definition;

use crate::{
    agent,
    command::Base,
    problem::{Problem, Problems, Report},
    tree::{self, MAX_BYTES},
};

/// A definition that can be run, and what its author might want to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// The definition, complete: defaults filled in, paths absolute.
    pub definition: Definition,
    /// What is allowed and probably not meant, in the order of the file's lines.
    pub warnings: Vec<Problem>,
}

impl Loaded {
    /// The definition, if there is nothing to warn of.
    ///
    /// # Errors
    ///
    /// The warnings, as problems.
    pub fn strict(self) -> Result<Definition, Problems> {
        if self.warnings.is_empty() {
            Ok(self.definition)
        } else {
            Err(Problems::new(self.warnings))
        }
    }
}

/// Reads an agent from a file. Relative paths in it are seen from its folder.
///
/// # Errors
///
/// All problems of the file at once.
pub fn load(path: &Path) -> Result<Loaded, Problems> {
    let file_name = path.display().to_string();
    let refuse = |message: &str| Problems::new(vec![Problem::of_file(&file_name, message)]);
    let mut bytes = Vec::new();
    // A little more than is allowed, so that an endless file is refused like one that is too long.
    fs::File::open(path)
        .and_then(|file| file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes))
        .map_err(|error| refuse(&format!("cannot be read: {error}")))?;
    let text = String::from_utf8(bytes).map_err(|_| refuse("is not UTF-8 text"))?;
    // A bare file name has an empty parent, which means the current folder.
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    load_str(&text, &file_name, parent.unwrap_or(Path::new(".")))
}

/// Reads an agent from text, as if it stood in a file called `file_name` in the folder `base_dir`.
///
/// # Errors
///
/// All problems of the text at once.
pub fn load_str(text: &str, file_name: &str, base_dir: &Path) -> Result<Loaded, Problems> {
    let unusable = || {
        let message = format!(
            "its folder `{}` has no absolute Unicode path, so it could not be stored",
            base_dir.display()
        );
        Problems::new(vec![Problem::of_file(file_name, &message)])
    };
    let base = Base::new(base_dir).ok_or_else(unusable)?;
    let mut report = Report::new(file_name);
    let root = tree::parse(text, &mut report);
    let definition = root.and_then(|root| agent::read(&root, &base, &mut report));
    let warnings = report.finish()?;
    // INVARIANT: nothing is left out without a problem, which `finish` has returned.
    let definition = definition
        .ok_or_else(|| Problems::new(vec![Problem::of_file(file_name, "cannot be read")]))?;
    Ok(Loaded {
        definition,
        warnings,
    })
}
