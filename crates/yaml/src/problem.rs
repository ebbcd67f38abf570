//! What is wrong with a file: where, what, and what would be right.

use std::fmt;

use serde::Serialize;

use crate::tree::Position;

/// One problem of a file, or one warning about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Problem {
    /// The file, as it was named by whoever asked.
    pub file: String,
    /// The line, from 1; 0 if the file as a whole is meant.
    pub line: usize,
    /// The column in characters, from 1; 0 if the file as a whole is meant.
    pub column: usize,
    /// Which value is meant, for instance `spec.interrupt_on.delete_file`; empty if it is no single one.
    pub path: String,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

impl Problem {
    /// A problem of the file as a whole.
    #[must_use]
    pub fn of_file(file: &str, message: &str) -> Self {
        Self {
            file: printable(file),
            line: 0,
            column: 0,
            path: String::new(),
            message: printable(message),
            help: None,
        }
    }
}

impl Problem {
    /// On one line, where there is no room for more: what would be right stands in brackets.
    #[must_use]
    pub fn in_one_line(&self) -> String {
        let what = self.what();
        match &self.help {
            Some(help) => format!("{what} ({help})"),
            None => what,
        }
    }

    fn what(&self) -> String {
        let mut text = self.file.clone();
        if self.line > 0 {
            text.push_str(&format!(":{}:{}", self.line, self.column));
        }
        if !self.path.is_empty() {
            text.push_str(&format!(": {}", self.path));
        }
        format!("{text}: {}", self.message)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what())?;
        if let Some(help) = &self.help {
            write!(f, "\n  help: {help}")?;
        }
        Ok(())
    }
}

/// Everything that is wrong with one file, in the order of its lines. Never empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(transparent)]
#[error("{}", lines(.0))]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// These problems.
    ///
    /// INVARIANT: `problems` is not empty.
    #[must_use]
    pub fn new(problems: Vec<Problem>) -> Self {
        Self(problems)
    }

    /// The problems, in the order of the file's lines.
    #[must_use]
    pub fn as_slice(&self) -> &[Problem] {
        &self.0
    }
}

fn lines(problems: &[Problem]) -> String {
    problems
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("\n")
}

/// Collects what is found while a file is read.
#[derive(Debug)]
pub struct Report {
    file: String,
    problems: Vec<Problem>,
    warnings: Vec<Problem>,
}

impl Report {
    /// A report on this file, without anything in it.
    #[must_use]
    pub fn new(file: &str) -> Self {
        Self {
            file: file.to_owned(),
            problems: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Notes a problem; the file will be refused.
    pub fn problem(&mut self, at: Position, path: &str, message: &str, help: &str) {
        let problem = self.found(at, path, message, help);
        self.problems.push(problem);
    }

    /// Notes something that is allowed and probably not meant.
    pub fn warning(&mut self, at: Position, path: &str, message: &str, help: &str) {
        let warning = self.found(at, path, message, help);
        self.warnings.push(warning);
    }

    fn found(&self, at: Position, path: &str, message: &str, help: &str) -> Problem {
        Problem {
            line: at.line,
            column: at.column,
            path: printable(path),
            help: (!help.is_empty()).then(|| printable(help)),
            ..Problem::of_file(&self.file, message)
        }
    }

    /// The warnings, or the problems if there are any.
    ///
    /// # Errors
    ///
    /// The problems, in the order of the file's lines.
    pub fn finish(mut self) -> Result<Vec<Problem>, Problems> {
        let place = |found: &Problem| (found.line, found.column);
        self.warnings.sort_by_key(place);
        self.problems.sort_by_key(place);
        if self.problems.is_empty() {
            Ok(self.warnings)
        } else {
            Err(Problems::new(self.problems))
        }
    }
}

/// A user's text in backticks, shortened if it is long.
#[must_use]
pub fn quoted(text: &str) -> String {
    const LONGEST: usize = 60;
    match text.char_indices().nth(LONGEST) {
        None => format!("`{text}`"),
        Some((end, _)) => format!("`{}…`", &text[..end]),
    }
}

/// Escapes what a terminal would obey or hide: a file may come from someone else.
fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        let hidden = matches!(char, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
        if char.is_control() || hidden {
            out.extend(char.escape_default());
        } else {
            out.push(char);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_never_steered_by_a_file() {
        let mut report = Report::new("a\u{1b}b.yaml");
        let at = Position { line: 1, column: 2 };
        report.problem(at, "spec.\u{202e}x", "bad\nline", "");
        let problems = report.finish().unwrap_err();
        assert_eq!(
            problems.to_string(),
            "a\\u{1b}b.yaml:1:2: spec.\\u{202e}x: bad\\nline"
        );
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(quoted("short"), "`short`");
        assert_eq!(quoted(&"ä".repeat(61)), format!("`{}…`", "ä".repeat(60)));
    }
}
