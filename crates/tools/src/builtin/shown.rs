//! Names that others chose, in a text for a model or a person.

use std::fmt::Write as _;

/// A name as one line in which nothing is hidden: what a terminal would obey, turn around or not show is its number.
pub(super) fn name(name: &str) -> String {
    let mut shown = String::with_capacity(name.len());
    for character in name.chars() {
        if is_hidden(character) {
            // Writing into a text cannot fail.
            let _ = write!(shown, "\\u{{{:x}}}", u32::from(character));
        } else {
            shown.push(character);
        }
    }
    shown
}

fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_name_is_hidden() {
        assert_eq!(name("plain/é 漢.txt"), "plain/é 漢.txt");
        assert_eq!(name("a\nb\u{1b}[2J"), "a\\u{a}b\\u{1b}[2J");
        assert_eq!(name("exe\u{202e}txt.sh"), "exe\\u{202e}txt.sh");
        assert_eq!(name("a\u{200b}b\u{feff}"), "a\\u{200b}b\\u{feff}");
    }
}
