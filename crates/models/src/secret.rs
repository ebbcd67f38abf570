//! Keys of providers: read when they are used.

use std::{fs::File, io::Read, path::Path};

use holdpoint_core::Secret;

/// How long a file with a key may be.
const MAX_KEY: u64 = 16 << 10;

/// What this variable of the environment holds now, without the space around it. An empty one is none.
pub(crate) fn in_variable(variable: &str) -> Option<Secret> {
    let text = variable_text(variable)?;
    Secret::new(text.trim().to_owned())
}

/// What this file holds now, without the space around it.
pub(crate) fn in_file(path: &Path) -> Result<Secret, String> {
    let unusable = |reason: &str| format!("the key file `{}` {reason}", path.display());
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(MAX_KEY).read_to_string(&mut text))
        .map_err(|error| unusable(&format!("cannot be read: {error}")))?;
    Secret::new(text.trim().to_owned()).ok_or_else(|| unusable("is empty"))
}

/// What a variable of the environment says now; `None` where it says nothing.
#[expect(
    clippy::disallowed_methods,
    reason = "a key is read when it is used, so that nothing keeps it"
)]
pub(crate) fn variable_text(variable: &str) -> Option<String> {
    let text = std::env::var(variable).ok()?;
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_may_have_space_around_its_key_and_must_have_a_key() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, "  sk-1\r\n").unwrap();
        assert_eq!(in_file(&path).unwrap().expose(), "sk-1");
        std::fs::write(&path, "\n").unwrap();
        assert!(in_file(&path).unwrap_err().ends_with("is empty"));
        assert!(in_file(folder.path()).is_err());
    }
}
