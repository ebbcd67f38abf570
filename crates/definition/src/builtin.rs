//! Tools that are built in, and the folder that they work in.

use std::path::Path;

use holdpoint_core::{Breakpoints, Builtin, ToolSpec};
use holdpoint_yaml::{Field, Fields, Report, quoted, suggest};

use crate::{bounds::Bounds, command::Base, family::Family};

const KEYS: [&str; 4] = ["builtin", "timeout", "settle", "permissions"];

/// Whether an item of a list of tools is a built-in one, whatever else is wrong with it.
pub(crate) fn is_meant(item: &Field<'_>) -> bool {
    item.follow("/builtin").path != item.path
}

/// The name of a built-in tool, whatever else is wrong with it.
pub(crate) fn peek<'a>(item: &Field<'a>) -> Option<&'a str> {
    // Whatever is wrong with it is reported when the item is read.
    let mut unread = Report::new("");
    is_meant(item).then(|| item.follow("/builtin").text(&mut unread))?
}

/// Reads one.
pub(crate) fn read(item: &Field<'_>, family: &Family<'_>, report: &mut Report) -> Option<ToolSpec> {
    let fields = Fields::open(item, &KEYS, report)?;
    let builtin = fields
        .required("builtin", "say which", report)
        .and_then(|field| read_which(&field, report));
    let bounds = Bounds::read(&fields, report);
    let builtin = builtin?;
    let workspace = match &family.workspace {
        Workspace::Named(path) => Some(path.as_str()),
        Workspace::Unnamed if builtin.needs_workspace() => {
            let name = builtin.as_str();
            let message = format!("`{name}` works in a folder, and none is named");
            let help = "name it in `spec`, for instance `workspace: ./work`; it reaches nothing outside of that folder";
            item.problem(&message, help, report);
            return None;
        }
        Workspace::Unnamed => None,
        // It was reported.
        Workspace::Unread if builtin.needs_workspace() => return None,
        Workspace::Unread => None,
    };
    let bounds = bounds?;
    Some(ToolSpec {
        permissions: bounds.permissions,
        ..ToolSpec::builtin(builtin, workspace).with_times(bounds.timeout, bounds.settle)
    })
}

fn read_which(field: &Field<'_>, report: &mut Report) -> Option<Builtin> {
    let name = field.text(report)?;
    if let Some(builtin) = Builtin::from_name(name) {
        return Some(builtin);
    }
    let names = Builtin::ALL.map(Builtin::as_str);
    let help = match name {
        holdpoint_core::Definition::TASK => {
            "leave it out: an agent with `subagents` has it by itself".to_owned()
        }
        Breakpoints::MODEL => format!("there are {}", names.join(", ")),
        _ => suggest(name, &names, &format!("there are {}", names.join(", "))),
    };
    let message = format!("no built-in tool is called {}", quoted(name));
    field.problem(&message, &help, report);
    None
}

/// The folder that the built-in tools of a file's agents work in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Workspace {
    /// Nothing is said.
    Unnamed,
    /// An absolute path.
    Named(String),
    /// Something is wrong with it, and was reported.
    Unread,
}

/// Reads `workspace`.
pub(crate) fn read_workspace(field: &Field<'_>, base: &Base, report: &mut Report) -> Workspace {
    let Some(text) = field.some_text(report) else {
        return Workspace::Unread;
    };
    let path = base.resolve(text);
    let fit = Path::new(&path).canonicalize();
    let (message, help) = match fit {
        Ok(real) if !real.is_dir() => (
            format!("`{path}` is not a folder"),
            "name a folder for the tools to work in",
        ),
        Ok(real) => {
            let own = Path::new(base.as_str()).canonicalize();
            if own.is_ok_and(|own| own.starts_with(&real)) {
                (
                    format!("`{path}` contains this file, and a tool could rewrite its own gates"),
                    "name a folder that holds nothing but what the tools work on, for instance `workspace: ./work`",
                )
            } else {
                return Workspace::Named(path);
            }
        }
        Err(_) => (
            format!("there is no folder `{path}`"),
            "make it, or name another one; nothing is made by itself",
        ),
    };
    field.problem(&message, help, report);
    Workspace::Unread
}
