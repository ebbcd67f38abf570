//! Text that others wrote, made safe to print: models, tools and definitions must not steer a terminal or hide in it.
//!
//! Whatever a terminal would obey (control characters, escape sequences), turn around (bidirectional overrides) or not
//! show at all (zero-width characters, tags) is printed as its number instead. Text of several lines stands behind a
//! gutter, so that it cannot pass for a line of ours either.

use std::fmt::Write as _;

/// What stands before every line of a text that others wrote.
pub(crate) const GUTTER: &str = "│ ";

/// A text as one line: line breaks are shown as `\n`.
pub(crate) fn line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        push(&mut out, char);
    }
    out
}

/// A text with its line breaks, each line behind `indent` and broken at the terminal's `width`: where the terminal broke
/// it, the rest would stand before the gutter.
pub(crate) fn block(text: &str, indent: &str, width: Width) -> String {
    let mut stream = Stream::new(indent, width);
    let mut out = stream.push(text.strip_suffix('\n').unwrap_or(text));
    if out.is_empty() || out.ends_with('\n') {
        out.push_str(indent);
    }
    out
}

/// How many columns a line may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Width {
    /// As many as it takes: no terminal breaks it.
    Any,
    /// At most this many.
    Columns(usize),
}

/// A JSON text in which nothing is left that a terminal would obey. It means the same.
pub(crate) fn json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        // INVARIANT: outside of its strings, JSON has no character that is hidden.
        if is_hidden(char) {
            for unit in char.encode_utf16(&mut [0; 2]) {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(char);
        }
    }
    out
}

/// A text that comes in pieces, with the gutter put in where a line begins.
#[derive(Debug)]
pub(crate) struct Stream {
    indent: String,
    width: Width,
    /// How many columns the line has so far; `None` between lines.
    column: Option<usize>,
    /// Whether a carriage return waits to be seen as a part of a line break.
    returned: bool,
}

impl Stream {
    /// Nothing yet.
    pub(crate) fn new(indent: &str, width: Width) -> Self {
        Self {
            indent: indent.to_owned(),
            width,
            column: None,
            returned: false,
        }
    }

    /// The next piece, ready to print.
    pub(crate) fn push(&mut self, piece: &str) -> String {
        let mut out = String::with_capacity(piece.len());
        for char in piece.chars() {
            match char {
                '\n' => {
                    self.open(&mut out);
                    out.push('\n');
                    self.column = None;
                    self.returned = false;
                    continue;
                }
                _ if std::mem::take(&mut self.returned) => self.add(&mut out, "\\r"),
                _ => {}
            }
            match char {
                '\r' => self.returned = true,
                '\t' => self.add(&mut out, "    "),
                char => {
                    let mut shown = String::new();
                    push(&mut shown, char);
                    self.add(&mut out, &shown);
                }
            }
        }
        out
    }

    /// What closes the last line.
    pub(crate) fn end(&mut self) -> String {
        let mut out = String::new();
        if std::mem::take(&mut self.returned) {
            self.add(&mut out, "\\r");
        }
        if self.column.take().is_some() {
            out.push('\n');
        }
        out
    }

    fn open(&mut self, out: &mut String) -> usize {
        *self.column.get_or_insert_with(|| {
            out.push_str(&self.indent);
            columns(&self.indent)
        })
    }

    fn add(&mut self, out: &mut String, shown: &str) {
        let wide = columns(shown);
        let mut at = self.open(out);
        if let Width::Columns(width) = self.width
            && at + wide > width
            && at > columns(&self.indent)
        {
            out.push('\n');
            self.column = None;
            at = self.open(out);
        }
        out.push_str(shown);
        self.column = Some(at + wide);
    }
}

/// How many columns a text takes: characters of East Asian scripts take two.
pub(crate) fn columns(text: &str) -> usize {
    text.chars()
        .map(|char| match char {
            '\u{1100}'..='\u{115f}'
            | '\u{2e80}'..='\u{a4cf}'
            | '\u{ac00}'..='\u{d7a3}'
            | '\u{f900}'..='\u{faff}'
            | '\u{fe30}'..='\u{fe6f}'
            | '\u{ff00}'..='\u{ff60}'
            | '\u{ffe0}'..='\u{ffe6}'
            | '\u{1f300}'..='\u{1faff}'
            | '\u{20000}'..='\u{3fffd}' => 2,
            _ => 1,
        })
        .sum()
}

fn push(out: &mut String, char: char) {
    match char {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        char if is_hidden(char) => out.extend(char.escape_unicode()),
        char => out.push(char),
    }
}

/// Whether a terminal would obey this character, turn text around at it, or not show it.
fn is_hidden(char: char) -> bool {
    char.is_control()
        || matches!(
            char,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0e}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_or_hides_is_left() {
        let cases = [
            ("\u{1b}[2J\u{1b}[H", "\\u{1b}[2J\\u{1b}[H"),
            (
                "\u{1b}]0;title\u{7}\u{9b}31m",
                "\\u{1b}]0;title\\u{7}\\u{9b}31m",
            ),
            ("pay\u{202e}05\u{2066}", "pay\\u{202e}05\\u{2066}"),
            (
                "a\u{200b}b\u{feff}\u{e0041}",
                "a\\u{200b}b\\u{feff}\\u{e0041}",
            ),
            ("x\rerror\u{8}\u{7f}", "x\\rerror\\u{8}\\u{7f}"),
            ("one\ntwo\u{2028}three", "one\\ntwo\\u{2028}three"),
            ("plain äöü 文件 ✓", "plain äöü 文件 ✓"),
        ];
        for (text, expected) in cases {
            assert_eq!(line(text), expected);
        }
    }

    #[test]
    fn every_line_of_a_block_stands_behind_the_gutter() {
        assert_eq!(
            block("one\r\ntwo\n\n\tthr\ree\n", GUTTER, Width::Any),
            "│ one\n│ two\n│ \n│     thr\\ree"
        );
        assert_eq!(block("", GUTTER, Width::Any), "│ ");
        assert_eq!(block("\n\n", GUTTER, Width::Any), "│ \n│ ");
    }

    #[test]
    fn a_long_line_cannot_leave_the_gutter() {
        let text = format!("{}⏸ approve?", " ".repeat(8));
        assert_eq!(
            block(&text, GUTTER, Width::Columns(10)),
            "│         \n│ ⏸ approv\n│ e?"
        );
        assert_eq!(
            block("文件文件", GUTTER, Width::Columns(7)),
            "│ 文件\n│ 文件"
        );
        assert_eq!(block("ab", GUTTER, Width::Columns(1)), "│ a\n│ b");
    }

    #[test]
    fn a_stream_looks_as_its_whole_text_would_wherever_it_is_cut() {
        let text = "one\r\ntwo\u{1b}[1m and more\n\nfour";
        let chars: Vec<char> = text.chars().collect();
        for cut in 0..=chars.len() {
            let (head, tail) = chars.split_at(cut);
            let mut stream = Stream::new(GUTTER, Width::Columns(9));
            let mut out = stream.push(&head.iter().collect::<String>());
            out.push_str(&stream.push(&tail.iter().collect::<String>()));
            out.push_str(&stream.end());
            let whole = block(text, GUTTER, Width::Columns(9));
            assert_eq!(out, format!("{whole}\n"));
        }
    }

    #[test]
    fn safe_json_means_the_same() {
        let value = serde_json::json!({"a": "\u{9b}31m\u{202e}\u{e0041}\u{7f}\u{1b}\"\\n ü"});
        let safe = json(&value.to_string());
        assert!(!safe.chars().any(is_hidden), "{safe}");
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&safe).unwrap(),
            value
        );
    }
}
