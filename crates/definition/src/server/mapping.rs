//! `models` and `stores`: what names in agents' files stand for.

use std::collections::BTreeMap;

use holdpoint_core::Providers;
use holdpoint_yaml::{Field, Fields, Report, join, quoted};

use super::provider;
use crate::{command::Base, model, names::Names, store};

/// Reads them, and who provides models. What they stand for is checked here, so that nobody has to look at it again.
pub(super) fn read(fields: &Fields<'_>, base: &Base, report: &mut Report) -> Option<Names> {
    let providers = match fields.optional("providers") {
        None => Some(Providers::default()),
        Some(field) => provider::read_all(&field, base, report),
    };
    // Where a provider could not be read, what refers to it is no problem of its own.
    let known = Names {
        providers: providers.clone().unwrap_or_default(),
        ..Names::default()
    };
    let models = match fields.optional("models") {
        None => Some(BTreeMap::new()),
        Some(field) => read_map(&field, "model", report, |field, report| {
            model::read_reference(field, base, &known, report)
        }),
    };
    let stores = match fields.optional("stores") {
        None => Some(BTreeMap::new()),
        Some(field) => read_map(&field, "store", report, |field, report| {
            store::read(field, base, report)
        }),
    };
    Some(Names {
        models: models?,
        stores: stores?,
        providers: providers?,
    })
}

fn read_map(
    field: &Field<'_>,
    what: &str,
    report: &mut Report,
    read: impl Fn(&Field<'_>, &mut Report) -> Option<String>,
) -> Option<BTreeMap<String, String>> {
    let mut names = BTreeMap::new();
    let mut complete = true;
    for entry in field.entries(report)? {
        let name = &entry.key;
        if name.trim().is_empty() {
            let help = "write the name as agents' files do";
            report.problem(entry.at, &field.path, "a name must not be empty", help);
        }
        // An agent's file that says so would be read as something else than it says.
        if name.starts_with(model::SCRIPTED) {
            let message = format!("{} is no name of a {what}", quoted(name));
            let help = "it says already what it stands for; remove it";
            report.problem(entry.at, &field.path, &message, help);
        }
        let value = Field {
            node: &entry.value,
            path: join(&field.path, name),
        };
        match read(&value, report) {
            Some(reference) => drop(names.insert(name.clone(), reference)),
            None => complete = false,
        }
    }
    complete.then_some(names)
}
