//! Did-you-mean: the known word that is nearest to a misspelt one.

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
    fn swapped_neighbours_are_one_slip() {
        let chars = |text: &str| text.chars().collect::<Vec<_>>();
        assert_eq!(distance(&chars("abcd"), &chars("acbd")), 1);
        assert_eq!(distance(&chars(""), &chars("abc")), 3);
        assert_eq!(distance(&chars("kitten"), &chars("sitting")), 3);
    }
}
