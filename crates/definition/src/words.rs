//! Conditions and templates: a policy's own words, checked before anything runs by them.

use std::fmt::Display;

use holdpoint_policy::{Condition, Place, Template};
use holdpoint_yaml::{Field, Report};

/// Reads a condition in CEL.
pub(crate) fn condition(field: &Field<'_>, report: &mut Report) -> Option<String> {
    let text = field.some_text(report)?;
    match Condition::compile(text) {
        Ok(_) => Some(text.to_owned()),
        Err(error) => {
            bad(
                field,
                "a condition",
                &error,
                error.place(),
                error.help(),
                report,
            );
            None
        }
    }
}

/// Reads a template for what a person is told.
pub(crate) fn template(field: &Field<'_>, report: &mut Report) -> Option<String> {
    let text = field.some_text(report)?;
    match Template::compile(text) {
        Ok(_) => Some(text.to_owned()),
        Err(error) => {
            bad(
                field,
                "a template",
                &error,
                error.place(),
                error.help(),
                report,
            );
            None
        }
    }
}

fn bad(
    field: &Field<'_>,
    what: &str,
    error: &dyn Display,
    place: Option<Place>,
    help: &str,
    report: &mut Report,
) {
    // The error counts in the text; the problem in the file, where the text begins.
    let of = place.map_or("", |_| " of the text");
    field.problem(&format!("not {what}: {error}{of}"), help, report);
}
