//! What names of agents and tools are made of.

use holdpoint_core::is_name;
use holdpoint_yaml::{Field, Report, quoted};

/// Reads a name of `whose`, for instance `a tool`.
pub(crate) fn read(
    field: &Field<'_>,
    whose: &str,
    help: &str,
    report: &mut Report,
) -> Option<String> {
    let name = field.text(report)?;
    if !is_name(name) {
        let message = format!("{} cannot be {whose}'s name", quoted(name));
        field.problem(&message, help, report);
        return None;
    }
    Some(name.to_owned())
}

/// The items of a list, each with its name in its path where it has a usable one: that says more than a number, in
/// every message.
pub(crate) fn label(list: &Field<'_>, items: &mut [Field<'_>]) {
    for item in items {
        if let Some(name) = peek(item).filter(|name| is_name(name)) {
            item.path = format!("{}[{name}]", list.path);
        }
    }
}

/// The name of a list's item, whatever else is wrong with it.
pub(crate) fn peek<'a>(item: &Field<'a>) -> Option<&'a str> {
    // Whatever is wrong with it is reported when the item is read.
    let mut unread = Report::new("");
    let name = item.follow("/name");
    (name.path != item.path).then(|| name.text(&mut unread))?
}
