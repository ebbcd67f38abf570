//! Lengths of time as people write them: `250ms`, `5s`, `2m`, `1h`.

use std::time::Duration;

/// Says what would be right, if it is not that.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let factor = match unit {
        "ms" => Some(1),
        "s" => Some(1_000),
        "m" => Some(60_000),
        "h" => Some(3_600_000),
        _ => None,
    };
    let number: Option<u64> = number.parse().ok();
    number
        .zip(factor)
        .and_then(|(number, factor)| number.checked_mul(factor))
        .map(Duration::from_millis)
        .ok_or_else(|| format!("`{text}` is no length of time; write a whole number and ms, s, m or h, such as `250ms`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_and_a_unit_are_a_length_of_time() {
        let cases = [
            ("0ms", 0),
            ("250ms", 250),
            ("5s", 5_000),
            ("2m", 120_000),
            ("1h", 3_600_000),
            ("0s", 0),
            ("007s", 7_000),
        ];
        for (text, millis) in cases {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "5",
            "s",
            "5 s",
            "-5s",
            "1.5s",
            "5S",
            "5sec",
            "99999999999999999999s",
            "18446744073709551615h",
            "٣s",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
