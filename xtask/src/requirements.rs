//! The map from requirements to the tests that show them, in `docs/requirements.md`.
//!
//! Every row of a table there names a line and what shows it: `PACKAGE::TEST`, the file of a doc test, or a client's test:
//! `FILE: TITLE`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use anyhow::Context;

use crate::{env, listing};

const MAP: &str = "docs/requirements.md";

/// How many lines each section of the requirements has.
const SECTIONS: [(&str, u32); 6] = [
    ("R0", 81),
    ("R1", 88),
    ("R2", 54),
    ("R3", 37),
    ("R4", 52),
    ("X", 15),
];

/// Reads the map and compares it with the tests there are.
pub(crate) fn check() -> anyhow::Result<()> {
    let text = fs::read_to_string(env::root().join(MAP)).context(MAP)?;
    let problems = problems(&text, &listing::tests()?, &env::root());
    anyhow::ensure!(problems.is_empty(), "{}", problems.join("\n"));
    Ok(())
}

fn problems(text: &str, tests: &BTreeSet<String>, root: &Path) -> Vec<String> {
    let mut problems = Vec::new();
    let mut seen = BTreeMap::new();
    for (number, row) in (1..).zip(text.lines()) {
        let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
        let &[line, .., shown_by] = cells.as_slice() else {
            continue;
        };
        if !row.starts_with('|') || !line.starts_with(['R', 'X']) {
            continue;
        }
        let mut report = |what: &str| problems.push(format!("{MAP}:{number}: {line}: {what}"));
        if !is_known(line) {
            report("there is no such requirement");
        }
        if let Some(first) = seen.insert(line, number) {
            report(&format!("already listed in line {first}"));
        }
        let witnesses: Vec<_> = shown_by.split('`').skip(1).step_by(2).collect();
        if witnesses.is_empty() {
            report("nothing shows it; name a test in backticks, or leave the line out");
        }
        for witness in witnesses {
            if let Some(what) = missing(witness, tests, root) {
                report(&what);
            }
        }
    }
    problems
}

fn is_known(line: &str) -> bool {
    let Some((section, number)) = line.split_once('.') else {
        return false;
    };
    let lines = SECTIONS.iter().find(|(name, _)| *name == section);
    let number = number.parse::<u32>().ok();
    // One spelling each: `R3.07` would escape the search for doubles.
    matches!((lines, number), (Some((_, last)), Some(n)) if (1..=*last).contains(&n) && line == format!("{section}.{n}"))
}

fn missing(witness: &str, tests: &BTreeSet<String>, root: &Path) -> Option<String> {
    if witness.ends_with(".rs") || witness.ends_with(".md") {
        let text = fs::read_to_string(root.join(witness)).unwrap_or_default();
        return (!text.contains("```")).then(|| format!("`{witness}` is no file with a doc test"));
    }
    if let Some((file, title)) = witness.split_once(": ") {
        let text = fs::read_to_string(root.join(file)).unwrap_or_default();
        // A title may go on with what differs between several of a kind.
        let is_there = ['"', '`']
            .iter()
            .any(|quote| text.contains(&format!("test({quote}{title}")));
        return (!is_there).then(|| format!("there is no test \"{title}\" in `{file}`"));
    }
    if tests.contains(witness) {
        return None;
    }
    let name = witness.rsplit("::").next().unwrap_or(witness);
    let alike: Vec<_> = tests
        .iter()
        .filter(|test| test.rsplit("::").next() == Some(name))
        .map(|test| format!("`{test}`"))
        .collect();
    Some(match alike.as_slice() {
        [] => format!("there is no test `{witness}`"),
        [..] => format!("there is no test `{witness}`, but {}", alike.join(", ")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_names_each_known_line_once_and_tests_that_exist() {
        let tests = BTreeSet::from(["core::it::a".to_owned(), "core::b".to_owned()]);
        let text = "\
| line | what | shown by |
|---|---|---|
| R3.1 | one | `core::it::a`, `core::b` |
| R3.1 | twice | `core::b` |
| R3.38 | unknown | `core::b` |
| R3.02 | misspelt | `core::b` |
| X.4 | gone | `core::a` |
| X.5 | nothing | to come |
| X.6 | a client's | `a.test.mjs: it works` |
";
        let found = problems(text, &tests, Path::new("/nowhere"));
        let expected = [
            "docs/requirements.md:4: R3.1: already listed in line 3",
            "docs/requirements.md:5: R3.38: there is no such requirement",
            "docs/requirements.md:6: R3.02: there is no such requirement",
            "docs/requirements.md:7: X.4: there is no test `core::a`, but `core::it::a`",
            "docs/requirements.md:8: X.5: nothing shows it; name a test in backticks, or leave the line out",
            "docs/requirements.md:9: X.6: there is no test \"it works\" in `a.test.mjs`",
        ];
        assert_eq!(found, expected);
    }
}
