//! From a file to a definition.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use holdpoint_core::Definition;

use holdpoint_yaml::{Field, Problem, Problems, Report};

use crate::{
    agent::{self, KIND},
    command::Base,
    model,
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
    load_file(path, |base| base)
}

/// As [`load`], and warns of programs that cannot be found on `search`, the `PATH` of whoever will call them.
///
/// # Errors
///
/// All problems of the file at once.
pub fn load_for(path: &Path, search: &OsStr) -> Result<Loaded, Problems> {
    load_file(path, |base| base.searching(search))
}

/// The scenario that an agent's file names, whatever else is wrong with the file: so that both can be explained at once.
#[must_use]
pub fn scenario_of(path: &Path) -> Option<PathBuf> {
    let mut unread = Report::new("");
    let text = holdpoint_yaml::read_file(path, "").ok()?;
    let root = holdpoint_yaml::parse(&text, KIND, &mut unread)?;
    let primary = Field::root(&root).follow("/spec/model/primary");
    let file = primary.text(&mut unread)?.strip_prefix(model::SCRIPTED)?;
    let scenario = PathBuf::from(Base::new(folder_of(path))?.resolve(file));
    scenario.is_file().then_some(scenario)
}

/// A bare file name has an empty parent, which means the current folder.
fn folder_of(path: &Path) -> &Path {
    path.parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

fn load_file(path: &Path, with: impl FnOnce(Base) -> Base) -> Result<Loaded, Problems> {
    let file_name = path.display().to_string();
    let text = holdpoint_yaml::read_file(path, &file_name)
        .map_err(|problem| Problems::new(vec![problem]))?;
    load_text(&text, &file_name, folder_of(path), with)
}

/// Reads an agent from text, as if it stood in a file called `file_name` in the folder `base_dir`.
///
/// # Errors
///
/// All problems of the text at once.
pub fn load_str(text: &str, file_name: &str, base_dir: &Path) -> Result<Loaded, Problems> {
    load_text(text, file_name, base_dir, |base| base)
}

fn load_text(
    text: &str,
    file_name: &str,
    base_dir: &Path,
    with: impl FnOnce(Base) -> Base,
) -> Result<Loaded, Problems> {
    let unusable = || {
        let message = format!(
            "its folder `{}` has no absolute Unicode path, so it could not be stored",
            base_dir.display()
        );
        Problems::new(vec![Problem::of_file(file_name, &message)])
    };
    let base = Base::new(base_dir).map(with).ok_or_else(unusable)?;
    let mut report = Report::new(file_name);
    let root = holdpoint_yaml::parse(text, KIND, &mut report);
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
