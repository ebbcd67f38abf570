//! Keys: read when they are used, shown to nobody.
//!
//! They are not wiped from memory: the HTTP client has a copy of its own, over which nobody here has a say.

use std::{fmt, fs::File, io::Read, path::Path};

/// How long a file with a key may be.
const MAX_KEY: u64 = 16 << 10;

/// A secret. Debugging shows that there is one.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(String);

impl Secret {
    /// What this variable of the environment holds now. An empty one is none.
    pub(crate) fn in_variable(variable: &str) -> Option<Self> {
        variable_text(variable).map(Self)
    }

    /// What this file holds now, without the space around it.
    pub(crate) fn in_file(path: &Path) -> Result<Self, String> {
        let unusable = |reason: &str| format!("the key file `{}` {reason}", path.display());
        let mut text = String::new();
        File::open(path)
            .and_then(|file| file.take(MAX_KEY).read_to_string(&mut text))
            .map_err(|error| unusable(&format!("cannot be read: {error}")))?;
        match text.trim() {
            "" => Err(unusable("is empty")),
            key => Ok(Self(key.to_owned())),
        }
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
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

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// What stands in the place of a secret that someone sent back.
const REMOVED: &str = "[secret]";

/// Takes the secrets of one request out of what is told of it: a provider may repeat what it was sent.
#[derive(Debug, Default)]
pub(crate) struct Scrub {
    /// Longest first, so that no part of one is left over.
    spellings: Vec<Secret>,
}

impl Scrub {
    pub(crate) fn add(&mut self, secret: &Secret) {
        let json = serde_json::Value::from(secret.expose()).to_string();
        let escaped = json.trim_matches('"');
        for spelling in [secret.expose(), escaped] {
            if !spelling.is_empty() {
                self.spellings.push(Secret(spelling.to_owned()));
            }
        }
        self.spellings
            .sort_by_key(|spelling| std::cmp::Reverse(spelling.0.len()));
        self.spellings.dedup();
    }

    pub(crate) fn clean(&self, mut text: String) -> String {
        for Secret(spelling) in &self.spellings {
            if text.contains(spelling) {
                text = text.replace(spelling, REMOVED);
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_taken_out_in_every_spelling_and_shown_by_none() {
        let mut scrub = Scrub::default();
        scrub.add(&Secret("sk-\"1".to_owned()));
        assert_eq!(
            scrub.clean(r#"no sk-"1, {"key":"sk-\"1"}"#.to_owned()),
            r#"no [secret], {"key":"[secret]"}"#
        );
        let shown = format!("{scrub:?} {:?}", Secret("sk-1".to_owned()));
        assert!(!shown.contains("sk-"), "{shown}");
    }

    #[test]
    fn a_file_may_have_space_around_its_key_and_must_have_a_key() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, "  sk-1\r\n").unwrap();
        assert_eq!(Secret::in_file(&path).unwrap().expose(), "sk-1");
        std::fs::write(&path, "\n").unwrap();
        assert!(Secret::in_file(&path).unwrap_err().ends_with("is empty"));
        assert!(Secret::in_file(folder.path()).is_err());
    }
}
