//! What a program or a server said, made safe to print.

/// How many lines a reason quotes.
const QUOTED_LINES: usize = 5;
/// And how many characters, before escaping.
const QUOTED_CHARS: usize = 500;

/// The first lines of a text, safe to print on a terminal.
pub(crate) fn quote(said: &str) -> String {
    let lines: Vec<_> = said.trim().lines().take(QUOTED_LINES).collect();
    let text = lines.join("\n");
    let mut quoted = String::new();
    for character in text.chars().take(QUOTED_CHARS) {
        if character.is_control() {
            quoted.extend(character.escape_default());
        } else {
            quoted.push(character);
        }
    }
    if text.len() < said.trim().len() || text.chars().count() > QUOTED_CHARS {
        quoted.push_str(" …");
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_is_quoted_without_control_characters_and_with_an_end() {
        assert_eq!(quote("  plain\n"), "plain");
        assert_eq!(quote("a\u{1b}[31mb\nc\u{7}"), r"a\u{1b}[31mb\nc\u{7}");
        assert_eq!(quote("1\n2\n3\n4\n5\n6"), r"1\n2\n3\n4\n5 …");
        assert_eq!(quote(&"é".repeat(501)), format!("{} …", "é".repeat(500)));
        assert_eq!(quote(&"é".repeat(500)), "é".repeat(500));
    }
}
