//! What could not be answered.

/// The longest reason, in characters: it may quote arguments.
const MAX_REASON: usize = 200;

/// A policy's words give no answer about this call. It fails closed: ask a person.
///
/// The message says why, for that person. It may quote what the arguments hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Unclear {
    reason: String,
}

impl Unclear {
    pub(crate) fn new(reason: impl AsRef<str>) -> Self {
        Self {
            reason: brief(reason.as_ref(), MAX_REASON),
        }
    }

    /// Why there is no answer: one line, at most 200 characters.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

/// The text on one line, and at most so many characters of it.
pub(crate) fn brief(text: &str, most: usize) -> String {
    let mut line: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(most + 1)
        .collect();
    if let Some((cut, _)) = line.char_indices().nth(most) {
        let last = line[..cut]
            .char_indices()
            .next_back()
            .map_or(0, |(at, _)| at);
        line.truncate(last);
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_one_short_line_however_long_its_cause() {
        let reason = Unclear::new("行\n".repeat(500));
        assert_eq!(reason.reason().chars().count(), 200);
        assert!(reason.reason().ends_with('…') && !reason.reason().contains('\n'));
        assert_eq!(Unclear::new("short").to_string(), "short");
    }
}
