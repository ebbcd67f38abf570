//! Programs and files that a definition names, made absolute so that a run can be resumed from any folder.

use std::{
    env,
    ffi::{OsStr, OsString},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use holdpoint_yaml::{Field, Report, quoted};

/// The folder of the YAML file.
#[derive(Debug)]
pub(crate) struct Base {
    /// INVARIANT: absolute.
    path: PathBuf,
    text: String,
    /// Where programs without a folder are looked for; `None` if that is not known.
    search: Option<OsString>,
}

impl Base {
    /// `None` if the folder has no absolute path, or one that is not Unicode and could not be stored.
    pub(crate) fn new(dir: &Path) -> Option<Self> {
        let path = std::path::absolute(dir).ok()?;
        let text = path.to_str()?.to_owned();
        Some(Self {
            path,
            text,
            search: None,
        })
    }

    /// With the `PATH` on which programs will be looked for.
    pub(crate) fn searching(mut self, search: &OsStr) -> Self {
        self.search = Some(search.to_owned());
        self
    }

    /// Whether a program without a folder is not there; `false` if that cannot be known.
    fn lacks(&self, name: &str) -> bool {
        let Some(search) = &self.search else {
            return false;
        };
        // Programs run in this folder, so that is where a relative entry is seen from.
        let mut folders = env::split_paths(search).map(|folder| self.path.join(folder));
        !folders.any(|folder| is_executable(&folder.join(name)))
    }

    /// The folder itself.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// A path seen from the folder. `..` stays: behind a symbolic link it is not what it looks like.
    pub(crate) fn resolve(&self, relative: &str) -> String {
        let joined = self.path.join(relative);
        // INVARIANT: both parts are Unicode, and tidying adds nothing.
        std::path::absolute(&joined)
            .unwrap_or(joined)
            .to_string_lossy()
            .into_owned()
    }
}

/// Reads program and arguments.
pub(crate) fn read(field: &Field<'_>, base: &Base, report: &mut Report) -> Option<Vec<String>> {
    const HELP: &str =
        "list the program and its arguments, for instance [./refund, --fast]; no shell is involved";
    let items = field.items(HELP, report)?;
    if items.is_empty() {
        field.problem("must not be empty", HELP, report);
        return None;
    }
    let words: Vec<_> = items
        .iter()
        .enumerate()
        .map(|(at, item)| {
            let word = item.text(report)?;
            if word.contains('\0') {
                item.problem("must not contain a NUL character", "", report);
                return None;
            }
            if at > 0 {
                let ours = word.starts_with("./") || word.starts_with("../");
                return Some(if ours {
                    base.resolve(word)
                } else {
                    word.to_owned()
                });
            }
            if word.is_empty() {
                item.problem("the program must not be empty", HELP, report);
                return None;
            }
            // It may be there where the agent will run, so these are only warnings.
            let mut warn = |message: &str, help: &str| {
                report.warning(item.node.at, &item.path, message, help);
            };
            if !word.contains('/') {
                if base.lacks(word) {
                    let message = format!("there is no program {} on PATH", quoted(word));
                    let help = "calls will fail until it is there; a program beside this file is written with a `./`";
                    warn(&message, help);
                }
                return Some(word.to_owned());
            }
            let program = base.resolve(word);
            if !Path::new(&program).is_file() {
                let message = format!("there is no program `{program}`");
                let help =
                    "calls will fail until it is there; a name without a `/` is looked up on PATH";
                warn(&message, help);
            } else if !is_executable(Path::new(&program)) {
                let message = format!("`{program}` cannot be executed");
                warn(&message, "calls will fail; allow it with `chmod +x`");
            }
            Some(program)
        })
        .collect();
    words.into_iter().collect()
}

/// Whether anyone may run it: who will, is not known here.
fn is_executable(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_seen_from_the_folder_of_the_file() {
        let base = Base::new(Path::new("/agents/refund")).unwrap();
        let cases = [
            ("./a", "/agents/refund/a"),
            ("bin/a", "/agents/refund/bin/a"),
            ("../a", "/agents/refund/../a"),
            ("/usr/bin/a", "/usr/bin/a"),
        ];
        for (path, expected) in cases {
            assert_eq!(base.resolve(path), expected);
        }
        assert!(
            Base::new(Path::new("relative"))
                .unwrap()
                .as_str()
                .starts_with('/')
        );
    }
}
