//! The agents that are offered: read from files, and read again when these change.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use holdpoint_core::Digest;
use holdpoint_definition::{Loaded, Names, Problems, Setting};
use holdpoint_engine::Agent;

/// What is offered right now.
#[derive(Debug, Clone, Default)]
pub(crate) struct Catalog {
    pub(crate) agents: BTreeMap<String, Offered>,
    /// Files that cannot be used as they are now; what they said last goes on.
    pub(crate) problems: BTreeMap<PathBuf, String>,
}

/// One agent.
#[derive(Debug, Clone)]
pub(crate) struct Offered {
    pub(crate) agent: Arc<Agent>,
    /// Where its threads live.
    pub(crate) store: String,
    /// Its file; none has an agent that the program itself brings along.
    pub(crate) file: Option<PathBuf>,
}

impl Offered {
    /// Where it stands, for people.
    pub(crate) fn place(&self) -> String {
        match &self.file {
            Some(file) => format!("`{}`", file.display()),
            None => "the program itself".to_owned(),
        }
    }
}

/// By what a file is told from what it was before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stamp {
    size: u64,
    modified: Option<SystemTime>,
    digest: Digest,
}

impl Stamp {
    /// What the file is now.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    pub(crate) fn of(path: &Path) -> std::io::Result<Self> {
        let about = std::fs::metadata(path)?;
        let bytes = std::fs::read(path)?;
        Ok(Self {
            size: about.len(),
            modified: about.modified().ok(),
            digest: Digest::of(&bytes),
        })
    }
}

/// Reads one agent's file. Programs that cannot be found on `search` are warned of.
///
/// # Errors
///
/// All problems of the file at once.
pub(crate) fn load(path: &Path, names: &Names, search: Option<&OsStr>) -> Result<Loaded, Problems> {
    let setting = Setting { names, search };
    holdpoint_definition::load_in(path, &setting)
}
