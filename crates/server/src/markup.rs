//! Texts of others in a page: they are texts, and nothing else.

use std::{collections::BTreeSet, fmt::Write as _};

/// A text as it stands in a page. It cannot be anything but a text there, and what cannot be seen, or turns the order of
/// what can, is shown by its number.
pub(crate) fn safe(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        if let Some(entity) = entity(char) {
            out.push_str(entity);
        } else if is_hidden(char) && !matches!(char, '\n' | '\t') {
            let _ = write!(out, "<b class=\"hidden\">U+{:04X}</b>", u32::from(char));
        } else {
            out.push(char);
        }
    }
    out
}

/// The same as the value of an attribute or in a text area, where there is no markup.
pub(crate) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match entity(char) {
            Some(entity) => out.push_str(entity),
            None => out.push(char),
        }
    }
    out
}

/// The numbers of the characters of a text that cannot be seen or turn its order, each once: where a text must stand as it is,
/// they are told beside it.
pub(crate) fn unseen(text: &str) -> Vec<String> {
    let found = text
        .chars()
        .filter(|char| is_hidden(*char) && !matches!(char, '\n' | '\r' | '\t'));
    let found: BTreeSet<char> = found.collect();
    let numbers = found
        .into_iter()
        .map(|char| format!("U+{:04X}", u32::from(char)));
    numbers.collect()
}

/// What stands for a character that would mean something in markup.
const fn entity(char: char) -> Option<&'static str> {
    match char {
        '&' => Some("&amp;"),
        '<' => Some("&lt;"),
        '>' => Some("&gt;"),
        '"' => Some("&quot;"),
        '\'' => Some("&#39;"),
        _ => None,
    }
}

/// Controls, what has no width, and what turns the direction of a text.
fn is_hidden(char: char) -> bool {
    char.is_control()
        || matches!(
            u32::from(char),
            0xAD | 0x61C
                | 0x115F..=0x1160
                | 0x17B4..=0x17B5
                | 0x180B..=0x180F
                | 0x200B..=0x200F
                | 0x2028..=0x202E
                | 0x2060..=0x206F
                | 0x3164
                | 0xFE00..=0xFE0F
                | 0xFEFF
                | 0xFFA0
                | 0xFFF0..=0xFFFB
                | 0xE0000..=0xE0FFF
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_stays_one_and_shows_what_cannot_be_seen() {
        assert_eq!(
            safe("<img src=x onerror='a'>&\"\n"),
            "&lt;img src=x onerror=&#39;a&#39;&gt;&amp;&quot;\n"
        );
        assert_eq!(
            safe("pay\u{202e}001\u{200b}\u{0}"),
            "pay<b class=\"hidden\">U+202E</b>001<b class=\"hidden\">U+200B</b><b class=\"hidden\">U+0000</b>"
        );
        assert_eq!(unseen("a\u{202e}b\u{202e}\u{0}\r\n"), ["U+0000", "U+202E"]);
        assert_eq!(unseen("请批准 é 👍"), [""; 0]);
        assert_eq!(safe("请批准 é 👍"), "请批准 é 👍");
        assert_eq!(
            plain("</textarea><b>'\""),
            "&lt;/textarea&gt;&lt;b&gt;&#39;&quot;"
        );
    }
}
