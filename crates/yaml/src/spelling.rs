//! Keys in snake_case and camelCase, and did-you-mean: the known word that is nearest to a misspelt one.

/// Whether this is a key in one of its two spellings: `allowed_decisions` or `allowedDecisions`.
pub(crate) fn is_spelling(written: &str, key: &str) -> bool {
    written == key || written == snake(key) || written == camel(key)
}

fn snake(key: &str) -> String {
    let mut out = String::new();
    for char in key.chars() {
        if char.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(char.to_ascii_lowercase());
    }
    out
}

fn camel(key: &str) -> String {
    let mut out = String::new();
    let mut begins = false;
    for char in key.chars() {
        match char {
            '_' => begins = true,
            char if begins => {
                out.push(char.to_ascii_uppercase());
                begins = false;
            }
            char => out.push(char),
        }
    }
    out
}

/// The nearest of `known`, if any is near enough to be what was meant.
#[must_use]
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let folded = fold(word);
    let tolerance = (folded.len() / 3).clamp(1, 3);
    known
        .into_iter()
        .filter_map(|candidate| {
            let other = fold(candidate);
            // Cheap, and it bounds the work that a file full of long names can cause.
            if folded.len().abs_diff(other.len()) > tolerance {
                return None;
            }
            let distance = distance(&folded, &other);
            (distance <= tolerance).then_some((distance, candidate))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// `did you mean …?` if something is near, else a list of what is known.
#[must_use]
pub fn suggest(word: &str, known: &[&str], otherwise: &str) -> String {
    match nearest(word, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => otherwise.to_owned(),
    }
}

/// The same word in another convention of writing is the same word.
fn fold(word: &str) -> Vec<char> {
    word.chars()
        .filter(|char| !matches!(char, '_' | '-' | '.' | ' '))
        .flat_map(char::to_lowercase)
        .collect()
}

/// Insertions, deletions, replacements and swaps of neighbours.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let replaced = last[j] + usize::from(x != y);
            let mut best = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised_and_another_word_is_not() {
        let known = ["approve", "edit", "reject", "respond"];
        let cases = [
            ("aprove", Some("approve")),
            ("Approve", Some("approve")),
            ("apporve", Some("approve")),
            ("rejected", Some("reject")),
            ("exit", Some("edit")),
            ("committed", None),
            ("", None),
        ];
        for (word, expected) in cases {
            assert_eq!(nearest(word, known), expected, "{word}");
        }
        assert_eq!(
            nearest("interruptOn", ["interrupt_on"]),
            Some("interrupt_on")
        );
    }

    #[test]
    fn a_key_has_two_spellings_and_no_third() {
        for key in ["allowed_decisions", "allowedDecisions"] {
            assert!(is_spelling("allowed_decisions", key), "{key}");
            assert!(is_spelling("allowedDecisions", key), "{key}");
            for other in [
                "AllowedDecisions",
                "Allowed_decisions",
                "allowed-decisions",
                "alloweddecisions",
                "allowed_Decisions",
                "allowed__decisions",
            ] {
                assert!(!is_spelling(other, key), "{other} is taken for {key}");
            }
        }
        assert!(is_spelling("api_version", "apiVersion") && is_spelling("name", "name"));
    }

    #[test]
    fn swapped_neighbours_are_one_slip() {
        let chars = |text: &str| text.chars().collect::<Vec<_>>();
        assert_eq!(distance(&chars("abcd"), &chars("acbd")), 1);
        assert_eq!(distance(&chars(""), &chars("abc")), 3);
        assert_eq!(distance(&chars("kitten"), &chars("sitting")), 3);
    }
}
