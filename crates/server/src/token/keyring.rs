//! The keys that tokens are signed with. They are never in a store: whoever reads a backup can decide nothing by it.

use std::{
    fmt,
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use holdpoint_core::{hex, parse_hex};

use crate::secret::{KEY_LEN, same, signature};

/// What tokens are signed for, and nothing else is.
const DOMAIN: &str = "holdpoint/token/1";

/// Why there are no keys.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyringError {
    /// A text is not a list of keys.
    #[error(
        "{place}: entry {number} is no key: write NAME:KEY, a name of lower-case letters, digits and `-`, and a key of 64 hex digits; the first one signs, all of them are accepted"
    )]
    Bad {
        /// Where the text stands.
        place: String,
        /// Which entry, from 1.
        number: usize,
    },
    /// There is none in a text.
    #[error("{0}: there is no key in it")]
    Empty(String),
    /// A file cannot be read or made.
    #[error("`{}` cannot be used: {reason}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: io::Error,
    },
    /// There is no randomness.
    #[error("the operating system gave no randomness: {0}")]
    Random(getrandom::Error),
}

/// Keys by name. The first one signs; all of them are accepted, so that a new one can be put first while tokens of the old one
/// are still on their way.
pub(crate) struct Keyring(Vec<(String, [u8; KEY_LEN])>);

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.0.iter().map(|(name, _)| name))
            .finish()
    }
}

impl Keyring {
    /// Keys that are written `NAME:KEY`, one after the other.
    ///
    /// # Errors
    ///
    /// One of them is none, or there are none.
    pub(crate) fn parse(text: &str, place: &str) -> Result<Self, KeyringError> {
        let entries = text.split([',', '\n']).map(str::trim);
        let entries = entries.filter(|entry| !entry.is_empty() && !entry.starts_with('#'));
        let mut keys: Vec<(String, [u8; KEY_LEN])> = Vec::new();
        for (at, entry) in entries.enumerate() {
            let key = entry.split_once(':').and_then(|(name, key)| {
                let plain =
                    |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
                let is_name = (1..=32).contains(&name.len()) && name.bytes().all(plain);
                let is_new = keys.iter().all(|(known, _)| known != name);
                let key = parse_hex::<KEY_LEN>(key)?;
                (is_name && is_new).then(|| (name.to_owned(), key))
            });
            keys.push(key.ok_or_else(|| KeyringError::Bad {
                place: place.to_owned(),
                number: at + 1,
            })?);
        }
        if keys.is_empty() {
            return Err(KeyringError::Empty(place.to_owned()));
        }
        Ok(Self(keys))
    }

    /// A key that is forgotten with this process.
    ///
    /// # Errors
    ///
    /// There is no randomness.
    pub(crate) fn fleeting() -> Result<Self, KeyringError> {
        Ok(Self(vec![("fleeting".to_owned(), fresh()?)]))
    }

    /// The keys in a file, which is made with one key if it is not there. Only its owner may read it.
    ///
    /// # Errors
    ///
    /// It cannot be read or made.
    pub(crate) fn kept_in(path: &Path) -> Result<Self, KeyringError> {
        let failed = |reason| KeyringError::File {
            path: path.to_owned(),
            reason,
        };
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make(path, &fresh()?).map_err(failed)?;
                fs::read_to_string(path).map_err(failed)?
            }
            Err(error) => return Err(failed(error)),
        };
        Self::parse(&text, &path.display().to_string())
    }

    /// The name of the key that signs, and what it says of a message.
    pub(crate) fn signing(&self) -> (&str, impl Fn(&[u8]) -> [u8; 32]) {
        // INVARIANT: there is at least one key.
        let (name, key) = &self.0[0];
        (name, move |message: &[u8]| signature(key, DOMAIN, message))
    }

    /// Whether the key with this name has said so of a message.
    pub(crate) fn has_signed(&self, name: &str, message: &[u8], said: &[u8]) -> bool {
        let key = self.0.iter().find(|(known, _)| known == name);
        key.is_some_and(|(_, key)| same(&signature(key, DOMAIN, message), said))
    }
}

fn fresh() -> Result<[u8; KEY_LEN], KeyringError> {
    let mut key = [0; KEY_LEN];
    getrandom::fill(&mut key).map_err(KeyringError::Random)?;
    Ok(key)
}

/// Makes a file with a key. Of several that do so at once, one does: it is there whole, or not at all.
fn make(path: &Path, key: &[u8; KEY_LEN]) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = PathBuf::from(name);
    let written = write(&part, key).and_then(|()| match fs::hard_link(&part, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    });
    let removed = fs::remove_file(&part);
    written.and(removed)
}

fn write(part: &Path, key: &[u8; KEY_LEN]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file: File = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(part)?;
    writeln!(file, "k1:{}", hex(key))?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_and_the_first_one_signs() {
        let (a, b) = ("a".repeat(64), "b".repeat(64));
        let old = Keyring::parse(&format!("old:{a}"), "here").unwrap();
        let both = Keyring::parse(&format!("# kept\nnew:{b}\nold:{a}\n"), "here").unwrap();
        let (name, sign) = old.signing();
        let said = sign(b"message");
        assert_eq!(name, "old");
        assert!(both.has_signed("old", b"message", &said));
        assert!(!both.has_signed("new", b"message", &said));
        assert!(!both.has_signed("old", b"another", &said));
        assert!(!both.has_signed("old", b"message", &said[..31]));
        assert!(!both.has_signed("none", b"message", &said));
        assert_eq!(both.signing().0, "new");
        assert!(!format!("{both:?}").contains(&b), "a key is not shown");
    }

    #[test]
    fn what_is_no_key_is_refused_by_its_place() {
        let key = "a".repeat(64);
        for (text, number) in [
            ("k1".to_owned(), 1),
            (format!("k1:{key},k2:{}", &key[1..]), 2),
            (format!("K1:{key}"), 1),
            (format!(":{key}"), 1),
            (format!("k1:{key},k1:{key}"), 2),
        ] {
            let Err(KeyringError::Bad { number: found, .. }) = Keyring::parse(&text, "here") else {
                panic!("{text}");
            };
            assert_eq!(found, number, "{text}");
        }
        assert!(matches!(
            Keyring::parse("# none\n", "here"),
            Err(KeyringError::Empty(_))
        ));
    }

    #[test]
    fn a_file_is_made_once_for_its_owner_only() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        let first = Keyring::kept_in(&path).unwrap();
        let second = Keyring::kept_in(&path).unwrap();
        let (name, sign) = first.signing();
        assert!(second.has_signed(name, b"m", &sign(b"m")));
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            1,
            "nothing else is left"
        );
    }
}
