//! Names of tenants.

use std::collections::BTreeSet;

use holdpoint_core::is_name;
use holdpoint_yaml::{Field, Report, quoted};

/// What is said where they are not read.
pub(super) struct Words {
    /// What would be right.
    pub(super) help: &'static str,
    /// What is wrong with `*`.
    pub(super) star: &'static str,
}

/// Reads a list of them. One that is listed twice is a problem.
pub(super) fn read_all(
    field: &Field<'_>,
    words: &Words,
    report: &mut Report,
) -> Option<BTreeSet<String>> {
    let mut tenants = BTreeSet::new();
    let mut complete = true;
    for item in field.items(words.help, report)? {
        match read(&item, words, report) {
            None => complete = false,
            Some(tenant) => {
                if tenants.contains(&tenant) {
                    let message = format!("{} is listed twice", quoted(&tenant));
                    item.problem(&message, "keep one of them", report);
                }
                tenants.insert(tenant);
            }
        }
    }
    complete.then_some(tenants)
}

/// Reads one.
pub(super) fn read(field: &Field<'_>, words: &Words, report: &mut Report) -> Option<String> {
    let text = field.some_text(report)?;
    if text == "*" {
        field.problem(words.star, words.help, report);
        return None;
    }
    if !is_name(text) || text.starts_with('_') {
        let message = format!("{} cannot be a tenant", quoted(text));
        let help = "use letters, digits, `_`, `-` and `.`, and not `_` first";
        field.problem(&message, help, report);
        return None;
    }
    Some(text.to_owned())
}
