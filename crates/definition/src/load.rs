//! From a file to a definition.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use holdpoint_core::Definition;

use holdpoint_yaml::{Field, Problem, Problems, Report};

use crate::{
    command::Base,
    frame::{self, Agent, KIND},
    model,
    names::{Names, Setting},
};

/// A definition that can be run, and what its author might want to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// The definition, complete: defaults filled in, paths absolute.
    pub definition: Definition,
    /// Where its threads are kept, if its file says so: the url of a store. Unsaid, whoever runs it decides.
    pub store: Option<String>,
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

/// Reads an agent from a file. Relative paths in it are seen from its folder, and names stand for nothing.
///
/// # Errors
///
/// All problems of the file at once.
pub fn load(path: &Path) -> Result<Loaded, Problems> {
    load_file(path, &Names::default(), None)
}

/// As [`load`], and warns of programs that cannot be found on `search`, the `PATH` of whoever will call them.
///
/// # Errors
///
/// All problems of the file at once.
pub fn load_for(path: &Path, search: &OsStr) -> Result<Loaded, Problems> {
    load_file(path, &Names::default(), Some(search))
}

/// As [`load`], for where the agent will run: its names stand for something there, and programs are looked for.
///
/// # Errors
///
/// All problems of the file at once.
pub fn load_in(path: &Path, setting: &Setting<'_>) -> Result<Loaded, Problems> {
    load_file(path, setting.names, setting.search)
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
pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

fn load_file(path: &Path, names: &Names, search: Option<&OsStr>) -> Result<Loaded, Problems> {
    let file_name = path.display().to_string();
    let text = holdpoint_yaml::read_file(path, &file_name)
        .map_err(|problem| Problems::new(vec![problem]))?;
    let mut base = base_of(&file_name, folder_of(path))?;
    if let Some(search) = search {
        base = base.searching(search);
    }
    load_text(&text, &file_name, &base, names)
}

/// Reads an agent from text, as if it stood in a file called `file_name` in the folder `base_dir`.
///
/// # Errors
///
/// All problems of the text at once.
pub fn load_str(text: &str, file_name: &str, base_dir: &Path) -> Result<Loaded, Problems> {
    let base = base_of(file_name, base_dir)?;
    load_text(text, file_name, &base, &Names::default())
}

/// The folder from which a file's paths are seen.
pub(crate) fn base_of(file_name: &str, folder: &Path) -> Result<Base, Problems> {
    Base::new(folder).ok_or_else(|| {
        let message = format!(
            "its folder `{}` has no absolute Unicode path, so it could not be stored",
            folder.display()
        );
        Problems::new(vec![Problem::of_file(file_name, &message)])
    })
}

fn load_text(text: &str, file_name: &str, base: &Base, names: &Names) -> Result<Loaded, Problems> {
    let mut report = Report::new(file_name);
    let root = holdpoint_yaml::parse(text, KIND, &mut report);
    let agent = root.and_then(|root| frame::read(&root, base, names, &mut report));
    let warnings = report.finish()?;
    let Agent { definition, store } = agent.ok_or_else(|| unread(file_name))?;
    Ok(Loaded {
        definition,
        store,
        warnings,
    })
}

/// INVARIANT: nothing is left out without a problem, which has been returned instead.
pub(crate) fn unread(file_name: &str) -> Problems {
    Problems::new(vec![Problem::of_file(file_name, "cannot be read")])
}
