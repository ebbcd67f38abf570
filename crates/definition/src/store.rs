//! Where threads are kept.

use holdpoint_yaml::{Field, Report};

use crate::{command::Base, names::discreet};

/// The store that forgets.
pub(crate) const MEMORY: &str = "memory:";
pub(crate) const SQLITE: &str = "sqlite:";
const ENV: &str = "env:";
const POSTGRES: [&str; 2] = ["postgres://", "postgresql://"];

/// The variable of the environment that has the url of a store, where it is not named itself (`env:NAME`): a url may hold a
/// password, which neither a file nor a command line should show.
#[must_use]
pub fn store_variable(url: &str) -> Option<&str> {
    url.strip_prefix(ENV)
}

/// Reads the url of a store, or where it is found. A path in it becomes absolute.
pub(crate) fn read(field: &Field<'_>, base: &Base, report: &mut Report) -> Option<String> {
    const HELP: &str = "use `sqlite:PATH`, `postgres://HOST/DATABASE`, `env:NAME` or `memory:`";
    let text = field.some_text(report)?;
    if text == MEMORY {
        return Some(text.to_owned());
    }
    if let Some(path) = text.strip_prefix(SQLITE) {
        if path.is_empty() || path.contains('\0') {
            field.problem("`sqlite:` names no file", HELP, report);
            return None;
        }
        return Some(format!("{SQLITE}{}", base.resolve(path)));
    }
    if let Some(name) = store_variable(text) {
        let is_plain = |char: char| char.is_ascii_alphanumeric() || char == '_';
        if name.is_empty() || !name.chars().all(is_plain) {
            let help = "write for instance `env:HOLDPOINT_STORE`";
            field.problem("`env:` names no variable", help, report);
            return None;
        }
        return Some(text.to_owned());
    }
    if POSTGRES.iter().any(|scheme| text.starts_with(scheme)) {
        return Some(text.to_owned());
    }
    field.problem(&format!("{} names no store", discreet(text)), HELP, report);
    None
}
