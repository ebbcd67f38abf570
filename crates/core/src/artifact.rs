//! Results of calls that are too long for a conversation: they are kept apart, and the conversation has both ends of them.
//!
//! The rule is a pure function of the text. What is longer than [`MAX_RESULT`] bytes is cut: its head, a line that says how
//! much is left out and how to get at it, its tail. All of it is kept under its digest before the event that tells of it is
//! appended, so that whoever reads the event can read the rest.
//!
//! ```
//! use holdpoint_core::{cut, MAX_RESULT};
//! assert!(cut(&"x".repeat(MAX_RESULT)).is_none());
//! assert_eq!(cut(&"x".repeat(MAX_RESULT + 1)).unwrap().size(), MAX_RESULT + 1);
//! ```

mod address;
mod excerpt;

use std::{
    borrow::Cow,
    collections::{BTreeMap, btree_map::Entry},
};

use serde::{Deserialize, Serialize, de::IgnoredAny};

pub use self::{
    address::{ArtifactAddress, BadAddress},
    excerpt::{Cut, Rest, cut},
};
use crate::{Codec, Digest, Payload, ThreadId};

pub(crate) use self::excerpt::note_of;

/// How long a result may be to stand in a conversation as it is, in bytes of UTF-8.
pub const MAX_RESULT: usize = 64 << 10;

/// How long a result may be to be kept, in bytes. Of a longer one only the ends are left.
pub const MAX_ARTIFACT: usize = 16 << 20;

/// A result that is kept apart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// By what it is asked for.
    pub address: ArtifactAddress,
    /// How many bytes it has.
    pub size: u64,
    /// The digest of these bytes.
    pub digest: Digest,
    /// The digest under which it is kept, together with whose it is.
    pub kept: Digest,
}

/// A result as it is kept. It is that of one thread alone, so that nothing of other threads depends on it.
#[derive(Serialize, Deserialize)]
struct KeptArtifact<'t> {
    thread: ThreadId,
    text: Cow<'t, str>,
}

/// A result as it is kept apart: what refers to it, and its bytes.
///
/// # Errors
///
/// It cannot be written as JSON.
pub fn keep_artifact(
    thread: ThreadId,
    address: ArtifactAddress,
    text: &str,
) -> Result<(Artifact, Payload), serde_json::Error> {
    let (size, digest) = (text.len() as u64, Digest::of(text.as_bytes()));
    let text = Cow::Borrowed(text);
    let bytes = serde_json::to_vec(&KeptArtifact { thread, text })?;
    let kept = Digest::of(&bytes);
    let artifact = Artifact {
        address,
        size,
        digest,
        kept,
    };
    Ok((artifact, Payload::json(bytes)))
}

/// What is kept is not what was kept once.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAsKept {
    /// Nothing is kept under its digest any more.
    #[error("what `{0}` names is not there any more")]
    Gone(ArtifactAddress),
    /// Something else is.
    #[error("what is kept as `{0}` is not what the call returned: it was changed since")]
    Changed(ArtifactAddress),
}

/// Reads a result that was kept apart.
///
/// # Errors
///
/// It is not there, or not what was kept.
pub fn read_artifact(artifact: &Artifact, payload: Option<&Payload>) -> Result<String, NotAsKept> {
    let address = || artifact.address.clone();
    let payload = payload.filter(|it| it.codec != Codec::Erased);
    let payload = payload.ok_or_else(|| NotAsKept::Gone(address()))?;
    let kept: Option<KeptArtifact<'_>> = (Digest::of(&payload.bytes) == artifact.kept)
        .then(|| serde_json::from_slice(&payload.bytes).ok())
        .flatten();
    match kept {
        Some(kept) if Digest::of(kept.text.as_bytes()) == artifact.digest => {
            Ok(kept.text.into_owned())
        }
        Some(_) | None => Err(NotAsKept::Changed(address())),
    }
}

/// The results of a conversation that are kept apart, the oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Artifacts {
    list: Vec<Artifact>,
    places: BTreeMap<ArtifactAddress, usize>,
}

impl Artifacts {
    /// What an address once named it names for good.
    pub(crate) fn add(&mut self, artifact: &Artifact) {
        if let Entry::Vacant(place) = self.places.entry(artifact.address.clone()) {
            place.insert(self.list.len());
            self.list.push(artifact.clone());
        }
    }

    pub(crate) fn get(&self, address: &ArtifactAddress) -> Option<&Artifact> {
        self.list.get(*self.places.get(address)?)
    }

    pub(crate) fn list(&self) -> &[Artifact] {
        &self.list
    }
}

/// What is kept under a digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeptAs {
    /// A definition.
    Definition,
    /// What a person was shown of a call.
    Preview,
    /// A result.
    Artifact,
}

impl KeptAs {
    /// What these bytes are, by their form.
    #[must_use]
    pub fn of(payload: &Payload) -> Self {
        #[derive(Deserialize)]
        struct Form {
            thread: Option<IgnoredAny>,
            preview: Option<IgnoredAny>,
            text: Option<IgnoredAny>,
        }
        match serde_json::from_slice(&payload.bytes) {
            Ok(Form {
                thread: Some(_),
                text: Some(_),
                ..
            }) => Self::Artifact,
            Ok(Form {
                thread: Some(_),
                preview: Some(_),
                ..
            }) => Self::Preview,
            Ok(_) | Err(_) => Self::Definition,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ActionId;

    fn address() -> ArtifactAddress {
        ArtifactAddress::of_result("grep", ActionId::from_bytes([9; 16]), 1)
    }

    fn kept(text: &str) -> (Artifact, Payload) {
        keep_artifact(ThreadId::from_bytes([3; 16]), address(), text).unwrap()
    }

    #[test]
    fn what_was_kept_is_read_and_nothing_else_is() {
        let text = "a\0b\u{202e}\n".repeat(9);
        let (artifact, payload) = kept(&text);
        assert_eq!(
            read_artifact(&artifact, Some(&payload)).as_deref(),
            Ok(&*text)
        );
        let gone = read_artifact(&artifact, None);
        assert_eq!(gone, Err(NotAsKept::Gone(address())));
        let changed = Err(NotAsKept::Changed(address()));
        let (other, other_payload) = kept("something else");
        assert_eq!(read_artifact(&artifact, Some(&other_payload)), changed);
        // Under a digest that fits its bytes, and is not that of the result.
        let forged = Artifact {
            kept: other.kept,
            ..artifact
        };
        assert_eq!(read_artifact(&forged, Some(&other_payload)), changed);
    }

    #[test]
    fn what_is_kept_tells_what_it_is() {
        let (_, artifact) = kept("text");
        assert_eq!(KeptAs::of(&artifact), KeptAs::Artifact);
        let shown = crate::Preview::new("t", "b", crate::PreviewForm::Text);
        let (_, preview) = crate::keep_preview(ThreadId::from_bytes([3; 16]), &shown).unwrap();
        assert_eq!(KeptAs::of(&preview), KeptAs::Preview);
        let definition = serde_json::to_vec(&crate::Definition::new("a", "m")).unwrap();
        let definition = Payload::json(definition);
        assert_eq!(KeptAs::of(&definition), KeptAs::Definition);
        assert_eq!(
            KeptAs::of(&Payload::json(b"{".to_vec())),
            KeptAs::Definition
        );
    }
}
