//! A path as a model gives it, taken apart before the kernel sees it.

use std::path::Path;

use super::shown;

/// What the names of half-written files begin with. Nobody else may use such names.
pub(super) const RESERVED: &str = ".holdpoint-";

/// The longest path that the kernel takes at once.
const MAX_PATH: usize = 4_096;

/// A path within a workspace, without `..` and without an empty part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    parts: Vec<String>,
}

impl Place {
    /// The workspace itself.
    pub(super) const fn root() -> Self {
        Self { parts: Vec::new() }
    }

    /// Reads a path. An absolute one must lie in one of `roots`, which are the workspace.
    ///
    /// # Errors
    ///
    /// Why it is not a place in the workspace, in words for the model.
    pub(super) fn read(path: &str, roots: [&Path; 2]) -> Result<Self, String> {
        let shown = shown::name(path);
        if path.is_empty() {
            return Err("the path is empty".to_owned());
        }
        if path.len() >= MAX_PATH {
            return Err(format!(
                "the path is too long: `{}…`",
                shown::name(&path.chars().take(60).collect::<String>())
            ));
        }
        if path.contains('\0') {
            return Err(format!("`{shown}` has a NUL character"));
        }
        let relative = if path.starts_with('/') {
            let below = roots
                .iter()
                .find_map(|root| Path::new(path).strip_prefix(root).ok()?.to_str());
            below.ok_or_else(|| {
                format!(
                    "`{shown}` is outside of the workspace; paths are seen from the workspace, and only what is in it can \
                     be reached"
                )
            })?
        } else {
            path
        };
        let mut parts = Vec::new();
        for part in relative.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    return Err(format!(
                        "`{shown}` has a `..`, which is not followed; paths are seen from the workspace"
                    ));
                }
                _ if part.starts_with(RESERVED) => {
                    return Err(format!(
                        "`{shown}`: names that begin with `{RESERVED}` are not for use"
                    ));
                }
                _ => parts.push(part.to_owned()),
            }
        }
        Ok(Self { parts })
    }

    /// As the kernel is given it: `.` for the workspace itself.
    pub(super) fn relative(&self) -> String {
        if self.parts.is_empty() {
            ".".to_owned()
        } else {
            self.parts.join("/")
        }
    }

    /// As people and models are shown it.
    pub(super) fn shown(&self) -> String {
        shown::name(&self.relative())
    }

    /// The folders that lead to it, and its own name. `None` for the workspace itself.
    pub(super) fn split(&self) -> Option<(&[String], &str)> {
        let (name, folders) = self.parts.split_last()?;
        Some((folders, name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &str) -> Result<String, String> {
        let roots = [Path::new("/srv/work"), Path::new("/mnt/work")];
        Place::read(path, roots).map(|it| it.relative())
    }

    #[test]
    fn a_path_is_seen_from_the_workspace() {
        for (path, expected) in [
            ("a.txt", "a.txt"),
            ("./a//b/", "a/b"),
            (".", "."),
            ("/srv/work/a", "a"),
            ("/mnt/work/a/b", "a/b"),
            ("/srv/work", "."),
            ("..a/...", "..a/..."),
            ("é/漢", "é/漢"),
        ] {
            assert_eq!(read(path).as_deref(), Ok(expected), "{path}");
        }
    }

    #[test]
    fn what_leads_out_of_it_is_refused() {
        for path in [
            "",
            "..",
            "a/../b",
            "../etc/passwd",
            "/etc/passwd",
            "/srv/workshop/a",
            "/srv/work/../x",
            "a\0b",
            ".holdpoint-1.part",
            "a/.holdpoint-tmp/x",
        ] {
            assert!(read(path).is_err(), "{path}");
        }
        let said = read("/etc/\u{202e}dwssap").unwrap_err();
        assert!(said.contains("`/etc/\\u{202e}dwssap` is outside"), "{said}");
    }
}
