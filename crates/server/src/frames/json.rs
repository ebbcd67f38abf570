//! JSON that is one line to everybody, and holds no end of a stream.

use std::io;

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

use super::{is_wide_break, legacy::DONE};

/// Appends the value. If it has no JSON, nothing is appended.
///
/// # Errors
///
/// The value does not become JSON, because of a key that is no string, for example.
pub(super) fn write(out: &mut Vec<u8>, value: &impl Serialize) -> Result<(), serde_json::Error> {
    let start = out.len();
    let written = value.serialize(&mut Serializer::with_formatter(&mut *out, OneLine));
    if written.is_err() {
        out.truncate(start);
    }
    written
}

/// Appends one of our own values.
#[expect(
    clippy::expect_used,
    reason = "strings, numbers, JSON and lists of them always have a JSON spelling"
)]
pub(super) fn write_own(out: &mut Vec<u8>, value: &impl Serialize) {
    write(out, value).expect("JSON");
}

/// Appends an event with this name and one of our own values.
pub(super) fn write_event(out: &mut Vec<u8>, name: &'static str, value: &impl Serialize) {
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\ndata: ");
    write_own(out, value);
    out.extend_from_slice(b"\n\n");
}

/// Compact, without a character that anybody takes for a line break, and without `[DONE]`: inside strings, the only place
/// where they can be, both have another spelling. Control characters are escaped in all JSON.
struct OneLine;

impl Formatter for OneLine {
    fn write_string_fragment<W>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()>
    where
        W: ?Sized + io::Write,
    {
        let mut written = 0;
        for (at, char) in fragment.char_indices() {
            let end = at + char.len_utf8();
            if is_wide_break(char) || (char == ']' && fragment[..end].ends_with(DONE)) {
                writer.write_all(&fragment.as_bytes()[written..at])?;
                write!(writer, "\\u{:04x}", u32::from(char))?;
                written = end;
            }
        }
        writer.write_all(&fragment.as_bytes()[written..])
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_could_end_a_line_or_a_stream_is_escaped_and_reads_the_same() {
        let value = json!({"[DONE]": "[[DONE]]\u{85}\u{2028}\u{2029}\r\n\0\u{b}\u{1c}\u{feff}é", "n": [1, null]});
        let mut out = Vec::new();
        write_own(&mut out, &value);
        assert_eq!(
            str::from_utf8(&out).unwrap(),
            "{\"[DONE\\u005d\":\"[[DONE\\u005d]\\u0085\\u2028\\u2029\\r\\n\\u0000\\u000b\\u001c\u{feff}é\",\"n\":[1,null]}"
        );
        assert_eq!(serde_json::from_slice::<Value>(&out).unwrap(), value);
    }

    #[test]
    fn what_has_no_json_leaves_nothing_behind() {
        let mut out = b"before".to_vec();
        let keys = BTreeMap::from([(vec![1], "one")]);
        assert!(write(&mut out, &json!({"a": 1})).is_ok());
        assert!(write(&mut out, &("half", keys)).is_err());
        assert_eq!(out, b"before{\"a\":1}");
    }
}
