//! Sizes such as `1MiB`.

use std::ops::RangeInclusive;

use holdpoint_yaml::{Content, Field, Report};

/// From 1 KiB, below which no request fits, to 1 GiB, above which one would take the memory of all others.
const SENSIBLE: RangeInclusive<u64> = 1 << 10..=1 << 30;

/// Reads a size in bytes.
pub(super) fn read(field: &Field<'_>, report: &mut Report) -> Option<u64> {
    let size = match &field.node.content {
        Content::Number(text) | Content::Text(text) => parse(text),
        Content::Null | Content::Bool(_) | Content::List(_) | Content::Map(_) => None,
    };
    let size = size.filter(|size| SENSIBLE.contains(size));
    if size.is_none() {
        let message = format!(
            "must be a size from 1KiB to 1GiB, not {}",
            field.node.describe()
        );
        let help = "write bytes, or a whole number and one of KiB, MiB, GiB, for instance `1MiB`";
        field.problem(&message, help, report);
    }
    size
}

fn parse(text: &str) -> Option<u64> {
    let units = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];
    let with_unit = units
        .iter()
        .find_map(|(unit, bytes)| Some((text.strip_suffix(unit)?, *bytes)));
    let (number, bytes) = with_unit.unwrap_or((text, 1));
    // `parse` would take a sign.
    if !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    number.parse::<u64>().ok()?.checked_mul(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_or_a_whole_number_and_one_unit() {
        let cases = [
            ("0", 0),
            ("65536", 65_536),
            ("64KiB", 65_536),
            ("1MiB", 1_048_576),
            ("2GiB", 2_147_483_648),
        ];
        for (text, bytes) in cases {
            assert_eq!(parse(text), Some(bytes), "{text}");
        }
        for text in [
            "",
            "KiB",
            "1 MiB",
            "+1MiB",
            "-1",
            "1.5MiB",
            "1MB",
            "1mib",
            "1k",
            "99999999999999999999",
            "99999999999GiB",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
