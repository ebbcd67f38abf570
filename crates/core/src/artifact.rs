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

use std::{
    borrow::Cow,
    collections::{BTreeMap, btree_map::Entry},
    fmt,
    str::FromStr,
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _, de::IgnoredAny};

use crate::{ActionId, Codec, Digest, Payload, ThreadId, hex};

/// How long a result may be to stand in a conversation as it is, in bytes of UTF-8.
pub const MAX_RESULT: usize = 64 << 10;

/// How long a result may be to be kept, in bytes. Of a longer one only the ends are left.
pub const MAX_ARTIFACT: usize = 16 << 20;

/// How much of the beginning stays in the conversation, at most.
const HEAD: usize = 8 << 10;
/// How much of the end stays in the conversation, at most.
const TAIL: usize = 4 << 10;

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

/// Names a result that is kept apart, within a thread: `artifact://NAME/vN`.
///
/// NAME is up to 128 letters, digits, `_` and `-`; N is a number from 1 on, without leading zeros.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArtifactAddress {
    name: String,
    version: u32,
}

/// A text names no result that is kept apart.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not of the form artifact://NAME/vN")]
pub struct BadAddress(String);

impl ArtifactAddress {
    /// What every address begins with.
    pub const SCHEME: &'static str = "artifact://";

    /// How long a name may be.
    const MAX_NAME: usize = 128;
    /// How much of a tool's name is in it.
    const MAX_TOOL: usize = 64;

    /// The address of what an attempt at an action reported.
    #[must_use]
    pub fn of_result(tool: &str, action: ActionId, attempt: u32) -> Self {
        Self::new(tool, action, "", attempt)
    }

    /// The address of what a tool said, when it was asked, that an attempt had come to.
    #[must_use]
    pub fn of_receipt(tool: &str, action: ActionId, attempt: u32) -> Self {
        Self::new(tool, action, "-receipt", attempt)
    }

    fn new(tool: &str, action: ActionId, suffix: &str, attempt: u32) -> Self {
        let spelt = |it: char| if is_plain(it) { it } else { '_' };
        let tool: String = tool.chars().map(spelt).take(Self::MAX_TOOL).collect();
        // The half of the id that is drawn. The other one is the time.
        let id = hex(&action.as_bytes()[8..]);
        Self {
            name: format!("{tool}-{id}{suffix}"),
            version: attempt.max(1),
        }
    }

    /// Reads a name and a version, as paths have them: `NAME` and `vN`.
    ///
    /// # Errors
    ///
    /// They are none.
    pub fn of_parts(name: &str, version: &str) -> Result<Self, BadAddress> {
        let bad = || BadAddress(format!("{}{name}/{version}", Self::SCHEME));
        let is_name = (1..=Self::MAX_NAME).contains(&name.len()) && name.chars().all(is_plain);
        let digits = version.strip_prefix('v').ok_or_else(bad)?;
        let is_number =
            !digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit());
        match digits.parse() {
            Ok(version) if is_name && is_number => Ok(Self {
                name: name.to_owned(),
                version,
            }),
            Ok(_) | Err(_) => Err(bad()),
        }
    }

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Which version of it.
    #[must_use]
    pub const fn version(&self) -> u32 {
        self.version
    }
}

fn is_plain(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '-')
}

impl fmt::Display for ArtifactAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}/v{}", Self::SCHEME, self.name, self.version)
    }
}

impl FromStr for ArtifactAddress {
    type Err = BadAddress;

    fn from_str(text: &str) -> Result<Self, BadAddress> {
        let bad = || BadAddress(text.to_owned());
        let path = text.strip_prefix(Self::SCHEME).ok_or_else(bad)?;
        let (name, version) = path.split_once('/').ok_or_else(bad)?;
        Self::of_parts(name, version)
    }
}

impl Serialize for ArtifactAddress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ArtifactAddress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

/// Both ends of a text that is too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut<'t> {
    head: &'t str,
    tail: &'t str,
    size: usize,
}

/// How to get at what is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest<'a> {
    /// Whoever reads the excerpt can read it, with the tool that reads files.
    Readable(&'a ArtifactAddress),
    /// It is kept, and people can read it.
    Kept(&'a ArtifactAddress),
    /// It is gone.
    Gone,
}

/// Cuts a text that is longer than [`MAX_RESULT`]; `None` if it is not.
///
/// The head has up to 8 KiB and the tail up to 4 KiB. Each ends, or begins, where a line does if that costs it no more than
/// half, and never within a character.
#[must_use]
pub fn cut(text: &str) -> Option<Cut<'_>> {
    if text.len() <= MAX_RESULT {
        return None;
    }
    let head = &text[..text.floor_char_boundary(HEAD)];
    let head = match head.rfind('\n') {
        Some(at) if at + 1 >= HEAD / 2 => &head[..=at],
        Some(_) | None => head,
    };
    let tail = &text[text.ceil_char_boundary(text.len() - TAIL)..];
    let tail = match tail.find('\n') {
        Some(at) if at < TAIL / 2 => &tail[at + 1..],
        Some(_) | None => tail,
    };
    let size = text.len();
    Some(Cut { head, tail, size })
}

impl Cut<'_> {
    /// How many bytes the whole has.
    #[must_use]
    pub const fn size(&self) -> usize {
        self.size
    }

    /// The beginning, one line about what is left out, the end.
    #[must_use]
    pub fn excerpt(&self, rest: Rest<'_>) -> String {
        let Self { head, tail, size } = self;
        let left_out = size - head.len() - tail.len();
        let how = match rest {
            Rest::Readable(address) => format!(
                "; `read_file` with the path `{address}` reads all of it, by `offset` and `limit`"
            ),
            Rest::Kept(address) => format!("; people can read all of it as `{address}`"),
            Rest::Gone => ", and were too much to be kept".to_owned(),
        };
        let line_end = if head.ends_with('\n') { "" } else { "\n" };
        format!(
            "{head}{line_end}{NOTE_BEGIN}{left_out} of {size} bytes are left out here{how}{NOTE_END}\n{tail}"
        )
    }
}

const NOTE_BEGIN: &str = "[… ";
const NOTE_END: &str = " …]";

/// The line of an excerpt that says where all of it is, if a text has one.
///
/// A tool may return such a line itself. Then whoever reads it is told of what is not there, as by the tool.
pub(crate) fn note_of(text: &str) -> Option<&str> {
    let mut lines = text.lines();
    lines.find(|line| {
        line.starts_with(NOTE_BEGIN)
            && line.ends_with(NOTE_END)
            && line.contains(" bytes are left out here; ")
            && line.contains(ArtifactAddress::SCHEME)
            && line.len() <= 400
    })
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
    use proptest::prelude::*;

    use super::*;

    const ACTION: ActionId = ActionId::from_bytes([
        1, 2, 3, 4, 5, 6, 0x70, 1, 0x80, 0xff, 0xee, 0xdd, 0xcc, 0xbb, 0xaa, 0x99,
    ]);

    fn address() -> ArtifactAddress {
        ArtifactAddress::of_result("grep", ACTION, 1)
    }

    fn kept(text: &str) -> (Artifact, Payload) {
        keep_artifact(ThreadId::from_bytes([3; 16]), address(), text).unwrap()
    }

    /// Whatever a text is made of, the rule holds.
    fn holds(text: &str) -> Result<(), TestCaseError> {
        let Some(cut) = cut(text) else {
            prop_assert!(text.len() <= MAX_RESULT);
            return Ok(());
        };
        prop_assert!(text.len() > MAX_RESULT);
        prop_assert!(text.starts_with(cut.head) && text.ends_with(cut.tail));
        prop_assert!(cut.head.len() <= HEAD && cut.tail.len() <= TAIL);
        // Half of it may be given for the end of a line, and a character has up to four bytes.
        prop_assert!(cut.head.len() >= HEAD / 2 - 3 && cut.tail.len() >= TAIL / 2 - 3);
        let longest = ArtifactAddress::of_receipt(&"t".repeat(200), ACTION, u32::MAX);
        for rest in [Rest::Readable(&longest), Rest::Kept(&longest), Rest::Gone] {
            let excerpt = cut.excerpt(rest);
            prop_assert!(excerpt.len() <= HEAD + TAIL + 400);
            prop_assert!(super::cut(&excerpt).is_none());
            let middle = &excerpt[cut.head.len()..excerpt.len() - cut.tail.len()];
            prop_assert_eq!(middle.trim_matches('\n').lines().count(), 1);
            let gone = text.len() - cut.head.len() - cut.tail.len();
            let said = format!("[… {gone} of {} bytes are left out here", text.len());
            prop_assert!(middle.contains(&said), "{}", middle);
        }
        Ok(())
    }

    #[test]
    fn what_has_the_limit_stays_and_what_has_a_byte_more_is_cut() {
        for (bytes, is_cut) in [(0, false), (65_535, false), (65_536, false), (65_537, true)] {
            assert_eq!(cut(&"a".repeat(bytes)).is_some(), is_cut, "{bytes}");
        }
        // Bytes are counted, not characters.
        assert!(cut(&"é".repeat(32_768)).is_none());
        assert!(cut(&"é".repeat(32_769)).is_some());
    }

    #[test]
    fn both_ends_are_whole_lines_where_there_are_any() {
        let text: String = (0..9_000).map(|at| format!("line {at}\n")).collect();
        let cut = cut(&text).unwrap();
        assert!(cut.head.starts_with("line 0\n") && cut.head.ends_with('\n'));
        assert!(cut.tail.starts_with("line ") && cut.tail.ends_with("line 8999\n"));
        let excerpt = cut.excerpt(Rest::Readable(&address()));
        let note = note_of(&excerpt).unwrap();
        assert!(
            note.contains("artifact://grep-80ffeeddccbbaa99/v1"),
            "{note}"
        );
        assert_eq!(note_of(&cut.excerpt(Rest::Gone)), None);
        assert_eq!(note_of(&text), None);
        let said = "bytes are left out here; `read_file` with the path `artifact://grep-80ffeeddccbbaa99/v1` reads all of it";
        assert!(excerpt.contains(said), "{excerpt}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn a_cut_is_of_the_whole_never_within_a_character_and_never_longer_than_said(
            piece in "\\PC{1,40}|[\u{0}-\u{1f}\u{7f}\u{200b}-\u{202e}\u{10ffff}]{1,9}|👩‍👩‍👧|é|\r\n|\n{1,3}",
            odd in "\\PC{0,7}|\n",
            bytes in MAX_RESULT - 40..MAX_RESULT + 9_000,
        ) {
            let text = format!("{odd}{}", piece.repeat(bytes / piece.len() + 1));
            holds(&text)?;
            holds(&format!("{text}{odd}"))?;
        }

        #[test]
        fn an_address_is_read_as_it_is_written(tool in "\\PC{0,90}", attempt in 1..u32::MAX) {
            for address in [
                ArtifactAddress::of_result(&tool, ACTION, attempt),
                ArtifactAddress::of_receipt(&tool, ACTION, attempt),
            ] {
                let text = address.to_string();
                prop_assert_eq!(text.parse::<ArtifactAddress>(), Ok(address));
            }
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        let long = format!("artifact://{}/v1", "a".repeat(129));
        for text in [
            "",
            "artifact://",
            "artifact://a",
            "artifact://a/",
            "artifact://a/1",
            "artifact://a/v",
            "artifact://a/v0",
            "artifact://a/v01",
            "artifact://a/v+1",
            "artifact://a/v-1",
            "artifact://a/v1/",
            "artifact://a/v1 ",
            " artifact://a/v1",
            "artifact://a/v4294967296",
            "artifact:///v1",
            "artifact://a/b/v1",
            "artifact://../v1",
            "artifact://a%2f/v1",
            "artifact://é/v1",
            "ARTIFACT://a/v1",
            "artifact:/a/v1",
            &long,
        ] {
            assert!(text.parse::<ArtifactAddress>().is_err(), "{text}");
        }
        assert!(
            "artifact://a-b_C9/v4294967295"
                .parse::<ArtifactAddress>()
                .is_ok()
        );
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
