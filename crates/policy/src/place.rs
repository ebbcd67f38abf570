//! Where in a text something is.

use std::fmt;

/// A place in a text, as editors count: from 1, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Place {
    /// The line.
    pub line: usize,
    /// The character in the line.
    pub column: usize,
}

impl Place {
    pub(crate) const fn new(line: usize, column: usize) -> Self {
        Self { line, column }
    }

    /// The place of a byte offset; that of the end if it is beyond.
    pub(crate) fn of(text: &str, offset: usize) -> Self {
        let before = text
            .char_indices()
            .take_while(|(at, _)| *at < offset)
            .map(|(_, c)| c);
        let mut place = Self::new(1, 1);
        for c in before {
            if c == '\n' {
                place = Self::new(place.line + 1, 1);
            } else {
                place.column += 1;
            }
        }
        place
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 1 {
            write!(f, "column {}", self.column)
        } else {
            write!(f, "line {}, column {}", self.line, self.column)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_characters_and_not_bytes() {
        assert_eq!(Place::of("金额 > 1", 7), Place::new(1, 4));
        assert_eq!(Place::of("a\n金x", 5), Place::new(2, 2));
        assert_eq!(Place::of("ab", 99).to_string(), "column 3");
        assert_eq!(Place::of("a\nb", 2).to_string(), "line 2, column 1");
    }
}
