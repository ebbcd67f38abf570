//! Characters that are line breaks to some.

/// Whether some reader takes this character for the end of a line, though a stream's lines end with CR, LF or CRLF only.
///
/// Python's `splitlines` does, and clients that are built on it. In JavaScript, two of them end what `.` matches.
#[must_use]
pub const fn is_wide_break(char: char) -> bool {
    matches!(
        char,
        '\u{B}' | '\u{C}' | '\u{1C}'..='\u{1E}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}
