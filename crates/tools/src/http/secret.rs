//! Secrets: read when they are used, shown to nobody.

use std::fmt;

/// A secret. Debugging shows that there is one.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Secret(pub(super) String);

impl Secret {
    /// The secret that this variable of the environment holds now. An empty one is none.
    #[expect(
        clippy::disallowed_methods,
        reason = "a secret is read when it is used, so that nothing keeps it"
    )]
    pub(super) fn named(variable: &str) -> Option<Self> {
        let text = std::env::var(variable).ok()?;
        (!text.is_empty()).then_some(Self(text))
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
pub(super) struct Scrub {
    /// Longest first, so that no part of one is left over.
    spellings: Vec<Secret>,
}

impl Scrub {
    pub(super) fn add(&mut self, secret: &Secret) {
        let json = serde_json::Value::from(secret.0.as_str()).to_string();
        let escaped = json.trim_matches('"');
        for spelling in [secret.0.as_str(), escaped] {
            if !spelling.is_empty() {
                self.spellings.push(Secret(spelling.to_owned()));
            }
        }
        self.spellings
            .sort_by_key(|spelling| std::cmp::Reverse(spelling.0.len()));
        self.spellings.dedup();
    }

    /// The length of the longest, in bytes.
    pub(super) fn longest(&self) -> usize {
        self.spellings.first().map_or(0, |secret| secret.0.len())
    }

    pub(super) fn clean(&self, mut text: String) -> String {
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
    fn a_secret_is_taken_out_in_every_spelling_and_shown_by_none() {
        let mut scrub = Scrub::default();
        scrub.add(&Secret("a\"b".to_owned()));
        scrub.add(&Secret("a\"b-long".to_owned()));
        assert_eq!(
            scrub.clean(r#"x a"b y {"t":"a\"b"} a"b-long z"#.to_owned()),
            r#"x [secret] y {"t":"[secret]"} [secret] z"#
        );
        assert_eq!(scrub.longest(), r#"a\"b-long"#.len());
        let shown = format!("{scrub:?} {:?}", Secret("token".to_owned()));
        assert!(
            !shown.contains("a\"b") && !shown.contains("token"),
            "{shown}"
        );
    }
}
