//! Text that was cut between the two halves of a character.
//!
//! Who counts text in UTF-16, as JavaScript does, may cut an emoji in two; in JSON the halves are `\\ud83d` and `\\ude42`,
//! neither of which is a character. They belong together again once the next piece is there.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error, Visitor},
};

/// A piece of text as it came: UTF-8, but for halves of characters, which stand in it as if they were some (WTF-8).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Piece(Vec<u8>);

impl<'de> Deserialize<'de> for Piece {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = Piece;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text")
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Piece, E> {
                Ok(Piece(bytes.to_vec()))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Piece, E> {
                self.visit_bytes(text.as_bytes())
            }
        }
        deserializer.deserialize_bytes(Bytes)
    }
}

/// Puts pieces together.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seam {
    /// The first half of a character, at the end of what came so far.
    high: Option<u16>,
}

impl Seam {
    /// The text that is complete with this piece. A half whose other half does not come is replaced.
    pub(crate) fn join(&mut self, piece: Option<Piece>) -> String {
        let Piece(bytes) = piece.unwrap_or_default();
        let mut text = String::with_capacity(bytes.len());
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let valid = match std::str::from_utf8(rest) {
                Ok(valid) => valid,
                Err(error) => std::str::from_utf8(&rest[..error.valid_up_to()]).unwrap_or_default(),
            };
            if !valid.is_empty() {
                self.give_up(&mut text);
                text.push_str(valid);
                rest = &rest[valid.len()..];
                continue;
            }
            let half = half(rest);
            match (half, self.high) {
                (Some(low @ 0xdc00..=0xdfff), Some(high)) => {
                    self.high = None;
                    text.extend(char::decode_utf16([high, low]).map(Result::unwrap_or_default));
                }
                (Some(high @ 0xd800..=0xdbff), _) => {
                    self.give_up(&mut text);
                    self.high = Some(high);
                }
                _ => {
                    self.give_up(&mut text);
                    text.push(char::REPLACEMENT_CHARACTER);
                }
            }
            rest = &rest[half.map_or(1, |_| 3)..];
        }
        text
    }

    fn give_up(&mut self, text: &mut String) {
        if self.high.take().is_some() {
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
}

/// The half of a character that bytes begin with.
fn half(bytes: &[u8]) -> Option<u16> {
    match bytes {
        [0xed, second @ 0xa0..=0xbf, third @ 0x80..=0xbf, ..] => {
            Some(0xd000 | (u16::from(second & 0x3f) << 6) | u16::from(third & 0x3f))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(pieces: &[&str]) -> Vec<String> {
        let mut seam = Seam::default();
        pieces
            .iter()
            .map(|piece| seam.join(serde_json::from_str(piece).unwrap()))
            .collect()
    }

    #[test]
    fn halves_of_a_character_come_together_again_wherever_they_were_cut() {
        assert_eq!(joined(&[r#""a\ud83d""#, r#""\ude42b""#]), ["a", "🙂b"]);
        assert_eq!(
            joined(&[r#""\ud83d""#, r#""""#, "null", r#""\ude42""#]),
            ["", "", "", "🙂"]
        );
        assert_eq!(joined(&[r#""ü\ud83d\ude42🙂\n""#]), ["ü🙂🙂\n"]);
    }

    #[test]
    fn half_a_character_alone_is_replaced() {
        assert_eq!(joined(&[r#""\ude42a""#]), ["\u{fffd}a"]);
        assert_eq!(joined(&[r#""\ud83d""#, r#""a""#]), ["", "\u{fffd}a"]);
        assert_eq!(
            joined(&[r#""\ud83d""#, r#""\ud83d""#, r#""\ude42""#]),
            ["", "\u{fffd}", "🙂"]
        );
    }
}
