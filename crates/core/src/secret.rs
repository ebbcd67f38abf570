//! Secrets: shown to nobody, and taken out of what comes back from whoever was sent one.

use std::fmt;

/// A secret. Debugging shows that there is one. It is not wiped from memory: whoever sends it has a copy of its own.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// This text, which nobody is shown from now on. An empty one is none.
    #[must_use]
    pub fn new(text: String) -> Option<Self> {
        (!text.is_empty()).then_some(Self(text))
    }

    /// The text, for whoever sends it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// What stands in the place of a secret that someone sent back.
const REMOVED: &str = "[secret]";

/// Takes the secrets of one request out of what came back: a server may repeat what it was sent, and what comes back is
/// stored and shown.
#[derive(Debug, Default)]
pub struct Scrub {
    /// Longest first, so that no part of one is left over.
    spellings: Vec<Secret>,
}

impl Scrub {
    /// Has this one taken out, too, as it is and as JSON spells it.
    pub fn add(&mut self, secret: &Secret) {
        let json = serde_json::Value::from(secret.expose()).to_string();
        let escaped = json.trim_matches('"');
        let spellings = [secret.expose(), escaped];
        self.spellings.extend(
            spellings
                .iter()
                .filter_map(|it| Secret::new((*it).to_owned())),
        );
        self.spellings
            .sort_by_key(|spelling| std::cmp::Reverse(spelling.0.len()));
        self.spellings.dedup();
    }

    /// The length of the longest, in bytes.
    #[must_use]
    pub fn longest(&self) -> usize {
        self.spellings.first().map_or(0, |secret| secret.0.len())
    }

    /// The text without any of them.
    #[must_use]
    pub fn clean(&self, mut text: String) -> String {
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

    fn secret(text: &str) -> Secret {
        Secret::new(text.to_owned()).unwrap()
    }

    #[test]
    fn a_secret_is_taken_out_in_every_spelling_and_shown_by_none() {
        let mut scrub = Scrub::default();
        scrub.add(&secret("a\"b"));
        scrub.add(&secret("a\"b-long"));
        assert_eq!(
            scrub.clean(r#"x a"b y {"t":"a\"b"} a"b-long z"#.to_owned()),
            r#"x [secret] y {"t":"[secret]"} [secret] z"#
        );
        assert_eq!(scrub.longest(), r#"a\"b-long"#.len());
        assert_eq!(Secret::new(String::new()), None);
        let shown = format!("{scrub:?} {:?}", secret("token"));
        assert!(
            !shown.contains("a\"b") && !shown.contains("token"),
            "{shown}"
        );
    }
}
