//! `read_file`, where what it reads is the result of an earlier call that was too long for the conversation.
//!
//! Whoever makes the call finds the text; here it is only shown, by the same arguments and in nearly the same form as a
//! file. It is never so long that it would have to be kept apart itself.

use std::fmt::Write as _;

use holdpoint_core::{ArtifactAddress, Params};

use super::{
    reading::{MAX_READ, ReadFile},
    shown,
};

/// How long a line may be, in bytes. A longer one comes in pieces.
const MAX_PIECE: usize = 8 << 10;

/// What a call of `read_file` wants to read, if that is no file but a result that was kept apart.
#[must_use]
pub fn kept_path(args: &Params) -> Option<String> {
    let args: ReadFile = serde_json::from_value(args.to_value()).ok()?;
    args.path
        .starts_with(ArtifactAddress::SCHEME)
        .then_some(args.path)
}

/// What a model is told that asks for a result that its conversation does not have.
#[must_use]
pub fn no_such_kept(path: &str) -> String {
    format!("there is no such artifact: `{}`", shown::name(path))
}

/// Reads lines of a result that was kept apart, with their numbers.
///
/// What is longer than 8 KiB counts as several lines, and the number of one that goes on the line before ends with `+`.
///
/// # Errors
///
/// Why there is nothing to read, in words for the model.
pub fn read_kept(args: &Params, text: &str) -> Result<String, String> {
    let args: ReadFile = serde_json::from_value(args.to_value())
        .map_err(|error| format!("the arguments cannot be read: {error}"))?;
    let (first, limit) = args.extent();
    let mut read = String::new();
    let mut number = 0;
    for (piece, goes_on) in pieces(text) {
        number += 1;
        if number < first {
            continue;
        }
        // The first piece always has room.
        let is_full = read.len() + piece.len() + 32 > MAX_READ;
        if number - first >= limit || is_full {
            let end = number - 1;
            // Writing into a text cannot fail.
            let _ = writeln!(read, "[lines {first} to {end}; go on with offset {number}]");
            return Ok(read);
        }
        let mark = if goes_on { "+" } else { "" };
        let _ = writeln!(read, "{number:>6}{mark}\t{piece}");
    }
    if number < first {
        let shown = shown::name(&args.path);
        return Err(format!("`{shown}` has only {number} lines"));
    }
    Ok(read)
}

/// The lines of a text without their ends, long ones in pieces; and whether each goes on the one before.
fn pieces(text: &str) -> impl Iterator<Item = (&str, bool)> {
    text.split_inclusive('\n').flat_map(|line| {
        let mut rest = Some(line.strip_suffix('\n').unwrap_or(line));
        let mut goes_on = false;
        std::iter::from_fn(move || {
            let line = rest?;
            let (piece, after) = line.split_at(line.floor_char_boundary(MAX_PIECE));
            rest = (!after.is_empty()).then_some(after);
            Some((piece, std::mem::replace(&mut goes_on, true)))
        })
    })
}

#[cfg(test)]
mod tests {
    use holdpoint_core::{MAX_RESULT, cut};
    use serde_json::{Value, json};

    use super::*;

    fn args(value: &Value) -> Params {
        Params::parse(&value.to_string()).unwrap()
    }

    /// A model that reads on as it is told to.
    fn read_all(text: &str, limit: usize) -> Result<String, String> {
        let mut whole = String::new();
        let mut offset = 1;
        loop {
            let asked = json!({"path": "artifact://a/v1", "offset": offset, "limit": limit});
            let read = read_kept(&args(&asked), text)?;
            assert!(read.len() <= MAX_RESULT && cut(&read).is_none());
            let mut next: Option<usize> = None;
            // What is shown of a line has no end of a line in it.
            for line in read.split_terminator('\n') {
                if let Some(told) = line.strip_prefix("[lines ") {
                    let number = told.trim_end_matches(']').rsplit(' ').next().unwrap();
                    next = Some(number.parse().unwrap());
                    break;
                }
                let (number, piece) = line.split_once('\t').unwrap();
                if !number.ends_with('+') && offset > 1 {
                    whole.push('\n');
                }
                whole.push_str(piece);
                offset += 1;
            }
            match next {
                Some(next) => assert_eq!(next, offset, "it goes on where it stopped"),
                None => return Ok(whole),
            }
        }
    }

    #[test]
    fn a_path_that_is_no_file_is_told_from_one() {
        let path = |value: Value| kept_path(&args(&value));
        let address = "artifact://a/v1".to_owned();
        assert_eq!(path(json!({"path": address})), Some(address));
        assert_eq!(
            path(json!({"path": "artifact://"})),
            Some("artifact://".to_owned())
        );
        assert_eq!(path(json!({"path": "artifact"})), None);
        assert_eq!(path(json!({"path": "./artifact://a/v1"})), None);
        assert_eq!(path(json!({"file": 1})), None);
    }

    #[test]
    fn lines_come_by_offset_and_limit() {
        let text = "one\ntwo\r\nthree\n";
        let read = |more: Value| {
            let mut asked = json!({"path": "artifact://a/v1"});
            asked
                .as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            read_kept(&args(&asked), text)
        };
        let all = "     1\tone\n     2\ttwo\r\n     3\tthree\n";
        assert_eq!(read(json!({})).unwrap(), all);
        assert_eq!(
            read(json!({"offset": 2, "limit": 1})).unwrap(),
            "     2\ttwo\r\n[lines 2 to 2; go on with offset 3]\n"
        );
        assert_eq!(
            read(json!({"offset": 4})).unwrap_err(),
            "`artifact://a/v1` has only 3 lines"
        );
    }

    #[test]
    fn one_endless_line_is_read_to_its_end() {
        let text = "é漢x".repeat(50_000);
        assert_eq!(read_all(&text, 2_000).unwrap(), text);
    }

    #[test]
    fn whoever_reads_on_has_all_of_it_and_never_too_much_at_once() {
        let lengths = [0, 1, 2, 7, 8_191, 8_192, 8_193, 16_384, 30_000, 61_440];
        let whats = ["a", "é", "漢", "\r", "\t", "\u{1}", "+", "[lines 1"];
        for (at, what) in whats.into_iter().enumerate() {
            for limit in [1, 3, 40] {
                let lines = lengths.iter().cycle().skip(at).take(30);
                let lines: Vec<_> = lines.map(|it| what.repeat(it / what.len())).collect();
                let text = format!("x{}x", lines.join("\n"));
                let read = read_all(&text, limit);
                assert!(read.as_ref() == Ok(&text), "{what:?} by {limit}");
            }
        }
    }
}
