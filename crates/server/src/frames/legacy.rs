//! Bare `data:` lines.

use std::mem;

use super::{InterruptState, is_wide_break, json};

/// What the last frame of a stream says.
pub(super) const DONE: &str = "[DONE]";

/// How much of a `[DONE]` in the text stays in its frame; the rest begins the next.
const DONE_CUT: usize = "[DON".len();

/// A chat as bare `data:` lines: text as it comes, an interrupt behind a NUL byte, `[DONE]` at the end.
///
/// # What a receiver gets
///
/// The `data` of all text frames, put together, is the text, with two changes: NUL has become U+FFFD, and every line break
/// (CR, LF or CRLF) has become LF, since the format has no other way to say them.
///
/// # What text cannot do
///
/// - Leave its field: each line of it is a `data:` line of its own, and a frame ends behind every character that some
///   readers take for a line break.
/// - Look like an interrupt: there is no NUL in it.
/// - End the stream: the bytes `[DONE]` are nowhere but in the last frame. Where the text says so, a frame ends in the
///   middle of it.
#[derive(Debug, Default)]
pub struct Legacy {
    /// The text so far ended in a CR. Whether that is a line break, or half of one, shows in what follows.
    held_cr: bool,
}

impl Legacy {
    /// A piece of text. Nothing is sent for an empty one, and a CR at its end waits for what follows.
    pub fn text(&mut self, out: &mut Vec<u8>, token: &str) {
        let plain = self.plain(token);
        frames(out, &plain);
    }

    /// The question at which the chat now waits.
    pub fn interrupt(&mut self, out: &mut Vec<u8>, state: &InterruptState) {
        self.release(out);
        out.extend_from_slice(b"data: \0INTERRUPT:");
        json::write_own(out, state);
        out.extend_from_slice(b"\n\n");
    }

    /// Something went wrong. The format has no other way to say it than as text.
    pub fn error(&mut self, out: &mut Vec<u8>, message: &str) {
        self.release(out);
        let mut plain = self.plain(&format!("[error] {message}"));
        if mem::take(&mut self.held_cr) {
            plain.push('\n');
        }
        frames(out, &plain);
    }

    /// The end.
    pub fn done(&mut self, out: &mut Vec<u8>) {
        self.release(out);
        frame(out, DONE);
    }

    /// The text with LF as its only line break and without NUL, up to a CR at its end.
    fn plain(&mut self, token: &str) -> String {
        let mut plain = String::with_capacity(token.len() + 1);
        for char in token.chars() {
            if mem::take(&mut self.held_cr) {
                plain.push('\n');
                if char == '\n' {
                    continue;
                }
            }
            match char {
                '\r' => self.held_cr = true,
                '\0' => plain.push(char::REPLACEMENT_CHARACTER),
                other => plain.push(other),
            }
        }
        plain
    }

    /// Sends the CR that was held back: no LF follows.
    fn release(&mut self, out: &mut Vec<u8>) {
        if mem::take(&mut self.held_cr) {
            frame(out, "\n");
        }
    }
}

/// Sends plain text in as few frames as may be.
fn frames(out: &mut Vec<u8>, plain: &str) {
    for part in plain.split_inclusive(is_wide_break) {
        let mut rest = part;
        while let Some(at) = rest.find(DONE) {
            let (head, tail) = rest.split_at(at + DONE_CUT);
            frame(out, head);
            rest = tail;
        }
        frame(out, rest);
    }
}

/// One event. Always with a space behind the colon, since a parser takes one away.
fn frame(out: &mut Vec<u8>, data: &str) {
    for line in data.split('\n') {
        out.extend_from_slice(b"data: ");
        out.extend_from_slice(line.as_bytes());
        out.push(b'\n');
    }
    out.push(b'\n');
}
