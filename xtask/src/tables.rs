//! Flat JSON objects as Markdown tables, one for each test that wrote them.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context;
use serde_json::Value;

const BEGIN: &str = "<!-- torture: begin -->";
const END: &str = "<!-- torture: end -->";

/// Columns that come first, in this order; others follow by name.
const FIRST: [&str; 5] = ["scenario", "points", "passed", "waited", "violations"];

/// One table per test.
pub(crate) fn render(rows: &[Value]) -> String {
    let mut tests: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
    for row in rows {
        tests.entry(cell(&row["test"])).or_default().push(row);
    }
    // Tests run side by side, so the order in which they wrote says nothing.
    for rows in tests.values_mut() {
        rows.sort_by_key(|row| cell(&row["scenario"]));
    }
    let tables: Vec<_> = tests.iter().map(|(test, rows)| table(test, rows)).collect();
    tables.join("\n")
}

fn table(test: &str, rows: &[&Value]) -> String {
    let keys: BTreeSet<_> = rows
        .iter()
        .filter_map(|row| row.as_object())
        .flat_map(|row| row.keys().map(String::as_str))
        .filter(|key| *key != "test")
        .collect();
    let first = FIRST.into_iter().filter(|key| keys.contains(key));
    let others = keys.iter().copied().filter(|key| !FIRST.contains(key));
    let columns: Vec<_> = first.chain(others).collect();
    let mut lines = vec![
        format!("### {test}\n"),
        format!("| {} |", columns.join(" | ")),
        format!("|{}", "---|".repeat(columns.len())),
    ];
    for row in rows {
        let cells: Vec<_> = columns.iter().map(|column| cell(&row[column])).collect();
        lines.push(format!("| {} |", cells.join(" | ")));
    }
    lines.join("\n") + "\n"
}

fn cell(value: &Value) -> String {
    let text = match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    };
    text.replace('|', "\\|").replace('\n', " ")
}

/// Puts the tables between the marks of a page, and leaves everything else as it is.
pub(crate) fn replace(page: &str, tables: &str) -> anyhow::Result<String> {
    let (before, rest) = page
        .split_once(BEGIN)
        .with_context(|| format!("there is no line `{BEGIN}`"))?;
    let (_, after) = rest
        .split_once(END)
        .with_context(|| format!("there is no line `{END}`"))?;
    Ok(format!("{before}{BEGIN}\n\n{tables}\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rows_become_a_table_per_test_and_the_text_around_stays() {
        let rows = [
            json!({"test": "kills", "scenario": "reject", "points": 7, "passed": 6, "waited": 1}),
            json!({"test": "bad answers", "scenario": "a|b", "violations": 0}),
            json!({"test": "kills", "scenario": "approve", "points": 9, "seed": 3, "passed": 9}),
        ];
        let page = format!("# Title\n{BEGIN}\nold\n{END}\nafter\n");
        let expected = format!(
            "# Title\n{BEGIN}\n
### bad answers\n
| scenario | violations |
|---|---|
| a\\|b | 0 |\n
### kills\n
| scenario | points | passed | waited | seed |
|---|---|---|---|---|
| approve | 9 | 9 |  | 3 |
| reject | 7 | 6 | 1 |  |\n
{END}\nafter\n"
        );
        let page = replace(&page, &render(&rows)).unwrap();
        assert_eq!(page, expected);
        assert_eq!(replace(&page, &render(&rows)).unwrap(), expected);
        assert!(replace("no marks", "").is_err());
    }
}
