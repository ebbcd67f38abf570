//! The gate before the CEL parser, which recurses on its input and aborts the process when its stack overflows.
//!
//! The scan reads the words of an expression exactly as the parser's lexer does, and refuses every text in which that
//! lexer would stumble: after a stumble it goes on inside what was meant as a string, and sees brackets that a laxer
//! scan took for text. What passes is short, lexically sound, has its brackets in pairs, and nests at most 16 deep,
//! where one level is an open bracket, a ternary whose end is not reached, or a prefix operator (`!`, `-`) whose operand
//! is not.

use crate::{BadCondition, Place};

/// The longest expression, in bytes.
pub(crate) const MAX_LENGTH: usize = 1024;

/// The deepest nesting.
pub(crate) const MAX_NESTING: usize = 16;

/// Refuses what must not reach the parser.
pub(crate) fn admit(text: &str) -> Result<(), BadCondition> {
    if text.len() > MAX_LENGTH {
        return Err(BadCondition::new(
            format!(
                "a condition of {} bytes is longer than {MAX_LENGTH}",
                text.len()
            ),
            None,
            "shorten it, or let the tool check what it is given",
        ));
    }
    let mut scan = Scan {
        text,
        at: 0,
        levels: vec![Level::new(None)],
        after_operand: false,
        seen: false,
    };
    while scan.at < text.len() {
        scan.word()?;
    }
    scan.end()
}

struct Level {
    /// The bracket that opened it, and where.
    bracket: Option<(u8, usize)>,
    /// Ternaries whose last branch is not at its end.
    ternaries: usize,
    /// Prefix operators whose operand is not at its end.
    prefixes: usize,
}

impl Level {
    const fn new(bracket: Option<(u8, usize)>) -> Self {
        Self {
            bracket,
            ternaries: 0,
            prefixes: 0,
        }
    }
}

struct Scan<'a> {
    text: &'a str,
    at: usize,
    // INVARIANT: never empty; the first level is the expression itself.
    levels: Vec<Level>,
    /// Whether the last word ended an operand: then `-` is an operator between two, else a prefix.
    after_operand: bool,
    /// Whether there was any word.
    seen: bool,
}

impl Scan<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.text
            .as_bytes()
            .get(self.at + ahead)
            .copied()
            .unwrap_or(0)
    }

    fn skip_while(&mut self, belongs: impl Fn(u8) -> bool) {
        while self.at < self.text.len() && belongs(self.peek(0)) {
            self.at += 1;
        }
    }

    fn bad<T>(
        &self,
        at: usize,
        what: impl Into<String>,
        help: impl Into<String>,
    ) -> Result<T, BadCondition> {
        Err(BadCondition::new(
            what,
            Some(Place::of(self.text, at)),
            help,
        ))
    }

    /// Reads one word, or what is between two.
    fn word(&mut self) -> Result<(), BadCondition> {
        let start = self.at;
        match self.peek(0) {
            b' ' | b'\t' | b'\r' | b'\n' | 0x0c => {
                self.at += 1;
                return Ok(());
            }
            b'/' if self.peek(1) == b'/' => {
                self.skip_while(|byte| byte != b'\n');
                return Ok(());
            }
            b'"' | b'\'' => {
                self.string(start, Escapes::Known)?;
                self.operand();
            }
            b'0'..=b'9' => self.number(start)?,
            b'.' if self.peek(1).is_ascii_digit() => self.number(start)?,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => self.name(start)?,
            open @ (b'(' | b'[' | b'{') => {
                self.at += 1;
                self.levels.push(Level::new(Some((open, start))));
                self.after_operand = false;
            }
            close @ (b')' | b']' | b'}') => self.close(start, close)?,
            _ => self.operator(start)?,
        }
        self.seen = true;
        let depth: usize = self.levels.len() - 1
            + self
                .levels
                .iter()
                .map(|level| level.ternaries + level.prefixes)
                .sum::<usize>();
        if depth > MAX_NESTING {
            return self.bad(
                start,
                format!("nested deeper than {MAX_NESTING} levels"),
                "say it with fewer brackets, ternaries and `!`; `a && b && c` needs none",
            );
        }
        Ok(())
    }

    fn level(&mut self) -> &mut Level {
        if self.levels.is_empty() {
            self.levels.push(Level::new(None));
        }
        let last = self.levels.len() - 1;
        &mut self.levels[last]
    }

    fn operand(&mut self) {
        self.level().prefixes = 0;
        self.after_operand = true;
    }

    fn close(&mut self, start: usize, close: u8) -> Result<(), BadCondition> {
        let wanted = match close {
            b')' => b'(',
            b']' => b'[',
            _ => b'{',
        };
        match self.level().bracket {
            Some((open, _)) if open == wanted => {
                self.levels.pop();
                self.at += 1;
                self.operand();
                Ok(())
            }
            Some((open, at)) => {
                let place = Place::of(self.text, at);
                self.bad(
                    start,
                    format!(
                        "`{}` does not close the `{}` of {place}",
                        char::from(close),
                        char::from(open)
                    ),
                    "close brackets in the order in which they were opened",
                )
            }
            None => self.bad(
                start,
                format!("`{}` closes nothing", char::from(close)),
                "remove it, or open its bracket before",
            ),
        }
    }

    fn end(&self) -> Result<(), BadCondition> {
        if let Some((open, at)) = self.levels.last().and_then(|level| level.bracket) {
            return self.bad(
                at,
                format!("`{}` is never closed", char::from(open)),
                "close it",
            );
        }
        if self.seen {
            Ok(())
        } else {
            Err(BadCondition::new(
                "the condition is empty",
                None,
                "write one, such as `args.amount > 100`, or leave it out",
            ))
        }
    }

    fn name(&mut self, start: usize) -> Result<(), BadCondition> {
        self.skip_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let name = &self.text[start..self.at];
        if matches!(self.peek(0), b'"' | b'\'') {
            match name {
                "r" | "R" => {
                    self.string(start, Escapes::Raw)?;
                    self.operand();
                    return Ok(());
                }
                "b" | "B" | "br" | "bR" | "Br" | "BR" => {
                    return self.bad(
                        start,
                        "a condition has no use for bytes",
                        "write the text without `b`; arguments are text, numbers, lists and maps",
                    );
                }
                _ => {}
            }
        }
        let help = match name {
            "and" => "write `&&`",
            "or" => "write `||`",
            "not" => "write `!`",
            "in" => {
                self.after_operand = false;
                return Ok(());
            }
            _ => {
                self.operand();
                return Ok(());
            }
        };
        if self.text[..start].trim_end().ends_with('.') {
            self.operand();
            return Ok(());
        }
        self.bad(start, format!("`{name}` is not an operator"), help)
    }

    fn number(&mut self, start: usize) -> Result<(), BadCondition> {
        if self.peek(0) == b'0' && self.peek(1) == b'x' && self.peek(2).is_ascii_hexdigit() {
            self.at += 2;
            self.skip_while(|byte| byte.is_ascii_hexdigit());
        } else {
            self.skip_while(|byte| byte.is_ascii_digit());
            if self.peek(0) == b'.' && self.peek(1).is_ascii_digit() {
                self.at += 1;
                self.skip_while(|byte| byte.is_ascii_digit());
            }
            let sign = usize::from(matches!(self.peek(1), b'+' | b'-'));
            if matches!(self.peek(0), b'e' | b'E') && self.peek(1 + sign).is_ascii_digit() {
                self.at += 1 + sign;
                self.skip_while(|byte| byte.is_ascii_digit());
            }
        }
        if matches!(self.peek(0), b'u' | b'U') {
            self.at += 1;
        }
        let next = self.peek(0);
        if next.is_ascii_alphanumeric() || matches!(next, b'_' | b'"' | b'\'') {
            return self.bad(
                start,
                "a number runs into what follows it",
                "put a space or an operator between them, and a name before its digits",
            );
        }
        self.operand();
        Ok(())
    }

    fn operator(&mut self, start: usize) -> Result<(), BadCondition> {
        let (first, second) = (self.peek(0), self.peek(1));
        match (first, second) {
            (b'=' | b'!' | b'<' | b'>', b'=') | (b'&', b'&') | (b'|', b'|') => self.at += 2,
            (b'!', _) => {
                self.at += 1;
                self.level().prefixes += 1;
            }
            (b'-', _) => {
                self.at += 1;
                if !self.after_operand {
                    self.level().prefixes += 1;
                }
            }
            (b'?', _) => {
                self.at += 1;
                self.level().ternaries += 1;
            }
            (b',', _) => {
                self.at += 1;
                let level = self.level();
                level.ternaries = 0;
                level.prefixes = 0;
            }
            (b'<' | b'>' | b'+' | b'*' | b'/' | b'%' | b':' | b'.', _) => self.at += 1,
            (b'=', _) => return self.bad(start, "`=` is not an operator", "compare with `==`"),
            (b'&', _) => return self.bad(start, "`&` is not an operator", "write `&&`"),
            (b'|', _) => return self.bad(start, "`|` is not an operator", "write `||`"),
            (b'`', _) => {
                return self.bad(
                    start,
                    "names are not written in backticks",
                    "write `args[\"a-name\"]`",
                );
            }
            _ => {
                let c = self.text[start..].chars().next().unwrap_or_default();
                return self.bad(
                    start,
                    format!("`{}` does not belong into a condition", c.escape_debug()),
                    "names and operators are ASCII; write other characters inside quotes, as in `args[\"金额\"]`",
                );
            }
        }
        self.after_operand = false;
        Ok(())
    }

    /// Reads a string from its first quote on.
    fn string(&mut self, start: usize, escapes: Escapes) -> Result<(), BadCondition> {
        let quote = self.peek(0);
        let triple = self.peek(1) == quote && self.peek(2) == quote;
        let width = if triple { 3 } else { 1 };
        self.at += width;
        loop {
            if self.at >= self.text.len() {
                return self.bad(
                    start,
                    "a text is not closed",
                    "end it with the quote that began it",
                );
            }
            let byte = self.peek(0);
            if byte == quote && (!triple || (self.peek(1) == quote && self.peek(2) == quote)) {
                self.at += width;
                return Ok(());
            }
            match byte {
                b'\n' | b'\r' if !triple => {
                    return self.bad(
                        start,
                        "a text is not closed on its line",
                        "end it with the quote that began it, or begin and end it with three",
                    );
                }
                b'\\' if escapes == Escapes::Known => self.escape()?,
                _ => self.at += 1,
            }
        }
    }

    fn escape(&mut self) -> Result<(), BadCondition> {
        let start = self.at;
        let hex = |digits: usize| (2..2 + digits).all(|i| self.peek(i).is_ascii_hexdigit());
        let octal = |i: usize| matches!(self.peek(i), b'0'..=b'7');
        let length = match self.peek(1) {
            b'a' | b'b' | b'f' | b'n' | b'r' | b't' | b'v' | b'"' | b'\'' | b'\\' | b'?' | b'`' => {
                2
            }
            b'x' | b'X' if hex(2) => 4,
            b'u' if hex(4) => 6,
            b'U' if hex(8) => 10,
            b'0'..=b'3' if octal(2) && octal(3) => 4,
            _ => {
                return self.bad(
                    start,
                    "a backslash here begins no known escape",
                    r#"write two, or a text that takes them as they are: `r"\d+"`"#,
                );
            }
        };
        self.at += length;
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Escapes {
    Known,
    Raw,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        admit(text).unwrap_err().to_string()
    }

    #[test]
    fn sixteen_levels_pass_and_seventeen_do_not_whatever_they_are_made_of() {
        let shapes: [(&str, &str); 13] = [
            ("(", ")"),
            ("[", "]"),
            ("{1:", "}"),
            ("f(", ")"),
            ("a[", "]"),
            ("!", ""),
            ("-", ""),
            ("- ", ""),
            ("-//\n", ""),
            ("1?1:", ""),
            ("a?", ":1"),
            ("f(x, ", ")"),
            ("a.all(x,", ")"),
        ];
        for (open, close) in shapes {
            let nested = |n: usize| format!("{}1{}", open.repeat(n), close.repeat(n));
            assert_eq!(admit(&nested(16)), Ok(()), "{open}");
            assert!(
                refusal(&nested(17)).contains("nested deeper than 16"),
                "{open}: {}",
                refusal(&nested(17))
            );
        }
        for mixed in ["[{!", "({-", "!(-", "a?[", "f(!-[{"] {
            let text = mixed.repeat(17);
            assert!(refusal(&text).contains("nested deeper"), "{mixed}");
        }
    }

    #[test]
    fn what_stands_beside_another_is_not_nested_in_it() {
        for text in [
            "1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1",
            "f(a?b:c, a?b:c, a?b:c, a?b:c, a?b:c, a?b:c, a?b:c, a?b:c, a?b:c, a?b:c, a?b:c, a?b:c, a?b:c, a?b:c)",
            "[-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1]",
            "!a && !a && !a && !a && !a && !a && !a && !a && !a && !a && !a && !a && !a && !a && !a && !a && !a",
            "a[0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0]",
            "a.f().f().f().f().f().f().f().f().f().f().f().f().f().f().f().f().f().f()",
        ] {
            assert_eq!(admit(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn brackets_inside_texts_and_comments_do_not_count() {
        let many = "([{".repeat(30);
        for text in [
            format!("'{many}'"),
            format!("\"{many}\""),
            format!("'''{many}'''"),
            format!("\"\"\"\n{many}\n\"\"\""),
            format!("r'{many}\\'"),
            format!("R\"\"\"{many}\"\"\""),
            format!("'\\'{many}'"),
            format!("\"\\\"{many}\""),
            format!("'''\\'''{many}'''"),
            format!("1 // {many}"),
            format!("1 // it's\n + 1 // \"{many}"),
        ] {
            assert_eq!(admit(&text), Ok(()), "{text}");
        }
    }

    #[test]
    fn brackets_that_the_lexer_would_see_outside_of_texts_do_count() {
        let many = "(".repeat(17);
        for text in [
            // A raw text ends at its first quote, whatever stands before it.
            format!("r'\\'{many}'"),
            format!("R\"\\\"{many}\""),
            // But only `r` alone makes it raw.
            format!("xr'\\''{many}"),
            format!("''{many}"),
            format!("'''''' {many}"),
            format!("'''a''' {many} '''b'''"),
            format!("1 // '\n{many}"),
            format!("'//' {many}"),
        ] {
            assert!(refusal(&text).contains("nested deeper"), "{text}");
        }
    }

    #[test]
    fn a_text_in_which_the_lexer_would_stumble_is_refused() {
        for (text, expected) in [
            ("'abc", "a text is not closed at column 1"),
            ("'''abc''", "a text is not closed at column 1"),
            ("'a\nb'", "a text is not closed on its line at column 1"),
            ("'''' + 1", "a text is not closed at column 1"),
            (r"'\q(((('", "begins no known escape at column 2"),
            (r"'\x1'", "begins no known escape"),
            (r"'\u12'", "begins no known escape"),
            (r"'\777'", "begins no known escape"),
            (r"'\", "begins no known escape"),
            (r"'''\q'''", "begins no known escape"),
            ("0r'\\'(((('", "a number runs into what follows it"),
            ("1.5r'\\'('", "a number runs into"),
            ("1ur'('", "a number runs into"),
            ("0x", "a number runs into"),
            ("1e", "a number runs into"),
            (".5x", "a number runs into"),
            ("1'x'", "a number runs into"),
            ("b'x'", "no use for bytes"),
            ("bR'\\'('", "no use for bytes"),
            ("a = 1", "`=` is not an operator at column 3"),
            ("a & b", "`&` is not an operator"),
            ("a | b", "`|` is not an operator"),
            ("a and b", "`and` is not an operator at column 3"),
            ("a.`b`", "not written in backticks"),
            (
                "金额 > 1",
                "`金` does not belong into a condition at column 1",
            ),
            ("args（1）", "`（` does not belong"),
            ("a\u{0}b", "does not belong"),
            ("a @ b", "`@` does not belong"),
            ("(a", "`(` is never closed at column 1"),
            ("[(a]", "`]` does not close the `(` of column 2 at column 4"),
            ("a)", "`)` closes nothing at column 2"),
            ("", "the condition is empty"),
            (" // nothing\n", "the condition is empty"),
        ] {
            assert!(
                refusal(text).contains(expected),
                "{text}: {}",
                refusal(text)
            );
        }
    }

    #[test]
    fn a_field_may_be_called_like_an_operator_of_another_language() {
        assert_eq!(admit("args.and == args . or"), Ok(()));
    }

    #[test]
    fn the_length_is_counted_in_bytes() {
        assert_eq!(admit(&format!("'{}'", "a".repeat(1022))), Ok(()));
        assert!(refusal(&format!("'{}'", "a".repeat(1023))).contains("longer than 1024"));
        assert!(refusal(&format!("'{}'", "金".repeat(342))).contains("1028 bytes"));
    }
}
