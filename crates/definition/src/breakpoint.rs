//! `breakpoints`: where a run stops to be looked at.

use std::collections::BTreeSet;

use holdpoint_core::{Breakpoints, Definition};
use holdpoint_yaml::{Field, Fields, Report, quoted, suggest};

use crate::family::Family;

/// Reads `before` and `after`: lists of `model` and of tools that any agent of the file has.
pub(crate) fn read(
    field: &Field<'_>,
    family: &Family<'_>,
    report: &mut Report,
) -> Option<Breakpoints> {
    let fields = Fields::open(field, &["before", "after"], report)?;
    let mut side = |key: &str| match fields.optional(key) {
        None => Some(BTreeSet::new()),
        Some(field) => read_side(&field, family, report),
    };
    let (before, after) = (side("before"), side("after"));
    Some(Breakpoints {
        before: before?,
        after: after?,
    })
}

fn read_side(
    field: &Field<'_>,
    family: &Family<'_>,
    report: &mut Report,
) -> Option<BTreeSet<String>> {
    let items = field.items(
        "list `model` or tools, for instance [model, refund]",
        report,
    )?;
    let mut nodes = BTreeSet::new();
    let mut complete = true;
    for item in items {
        let Some(name) = item.text(report) else {
            complete = false;
            continue;
        };
        check(&item, name, family, report);
        if !nodes.insert(name.to_owned()) {
            let message = format!("{} is listed twice", quoted(name));
            item.problem(&message, "keep one of them", report);
        }
    }
    complete.then_some(nodes)
}

fn check(item: &Field<'_>, name: &str, family: &Family<'_>, report: &mut Report) {
    let mut known = vec![Breakpoints::MODEL];
    if family.has_tasks {
        known.push(Definition::TASK);
    }
    known.extend(family.nodes.names.iter().map(String::as_str));
    let mut servers = family.nodes.servers.iter();
    if family.nodes.incomplete
        || known.contains(&name)
        || servers.any(|server| server.has_named(name))
    {
        return;
    }
    let help = suggest(name, &known, &format!("use {}", known.join(", ")));
    let message = format!(
        "no tool is called {}, so a run would never stop here",
        quoted(name)
    );
    item.problem(&message, &help, report);
}
