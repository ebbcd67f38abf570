//! Both ends of a long result, and what is said of the rest.

use super::{ArtifactAddress, MAX_RESULT};

/// How much of the beginning stays in the conversation, at most.
const HEAD: usize = 8 << 10;
/// How much of the end stays in the conversation, at most.
const TAIL: usize = 4 << 10;

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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ActionId;

    const ACTION: ActionId = ActionId::from_bytes([
        1, 2, 3, 4, 5, 6, 0x70, 1, 0x80, 0xff, 0xee, 0xdd, 0xcc, 0xbb, 0xaa, 0x99,
    ]);

    fn address() -> ArtifactAddress {
        ArtifactAddress::of_result("grep", ACTION, 1)
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
    }
}
