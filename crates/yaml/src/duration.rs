//! Lengths of time such as `60s`.

use holdpoint_core::Span;

use crate::{
    fields::Field,
    problem::{Report, quoted},
    tree::Content,
};

const HELP: &str = "write a whole number and one of ms, s, m, h, for instance `60s`";

impl Field<'_> {
    /// A length of time; zero is one.
    pub fn duration(&self, report: &mut Report) -> Option<Span> {
        let text = match &self.node.content {
            Content::Text(text) => text,
            // A bare number would be read as seconds by some and as milliseconds by others.
            Content::Number(number) => {
                self.problem(&format!("{} has no unit", quoted(number)), HELP, report);
                return None;
            }
            Content::Null | Content::Bool(_) | Content::List(_) | Content::Map(_) => {
                self.problem(
                    &format!("must be a length of time, not {}", self.node.describe()),
                    HELP,
                    report,
                );
                return None;
            }
        };
        let span = Span::parse(text);
        if span.is_none() {
            self.problem(
                &format!("{} is not a length of time", quoted(text)),
                HELP,
                report,
            );
        }
        span
    }

    /// A length of time that must not be zero.
    pub fn positive_duration(&self, report: &mut Report) -> Option<Span> {
        let span = self.duration(report)?;
        if span == Span::ZERO {
            self.problem(
                "must be longer than zero",
                "leave it out for the default",
                report,
            );
            return None;
        }
        Some(span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_number_and_one_unit() {
        let cases = [
            ("250ms", 250),
            ("60s", 60_000),
            ("5m", 300_000),
            ("1h", 3_600_000),
            ("0s", 0),
        ];
        for (text, millis) in cases {
            assert_eq!(Span::parse(text), Some(Span::from_millis(millis)), "{text}");
        }
        for text in [
            "",
            "60",
            "s",
            "1.5s",
            "-1s",
            "1 s",
            "1h30m",
            "1d",
            "1S",
            "99999999999999999999s",
            "9999999999999h",
        ] {
            assert_eq!(Span::parse(text), None, "{text}");
        }
    }
}
