//! `fields`: the form that people fill in where a model asks for a confirmation.

use holdpoint_core::{Confirmation, FieldKind, InputField};
use holdpoint_yaml::{Field, Fields, Report, quoted};

use crate::name;

const KINDS: [(&str, FieldKind); 3] = [
    ("text", FieldKind::Text),
    ("confirm", FieldKind::Confirm),
    ("select", FieldKind::Select),
];

/// Reads a form. Somewhere in it people can say no.
pub(crate) fn read(field: &Field<'_>, report: &mut Report) -> Option<Vec<InputField>> {
    let help = "begin with `- {name: confirm, type: confirm, label: …}`";
    let mut items = field.items(help, report)?;
    if !(1..=Confirmation::MAX_FIELDS).contains(&items.len()) {
        let (max, count) = (Confirmation::MAX_FIELDS, items.len());
        let message = format!("a form has 1 to {max} fields, not {count}");
        let help = if items.is_empty() {
            "leave it out for one field that says yes or no"
        } else {
            "ask for less"
        };
        field.problem(&message, help, report);
        return None;
    }
    name::label(field, &mut items);
    let mut names: Vec<&str> = Vec::new();
    for item in &items {
        let Some(name) = name::peek(item) else {
            continue;
        };
        if names.contains(&name) {
            let message = format!("a second field is called {}", quoted(name));
            item.problem(&message, "give each its own name", report);
        }
        names.push(name);
    }
    let form: Vec<_> = items.iter().map(|item| read_field(item, report)).collect();
    let form = form.into_iter().collect::<Option<Vec<_>>>()?;
    if !form.iter().any(|it| it.kind == FieldKind::Confirm) {
        let message = "no field is of type `confirm`, so nobody could say no";
        let help = "add `- {name: confirm, type: confirm, label: …}`";
        field.problem(message, help, report);
        return None;
    }
    Some(form)
}

fn read_field(item: &Field<'_>, report: &mut Report) -> Option<InputField> {
    let known = ["name", "type", "label", "required", "options"];
    let fields = Fields::open(item, &known, report)?;
    let name = fields
        .required("name", "every field needs a name", report)
        .and_then(|field| short_text(&field, report));
    let kind = fields
        .required("type", "use text, confirm or select", report)
        .and_then(|field| field.one_of("a type of fields", &KINDS, report));
    let label = match fields.optional("label") {
        None => name,
        Some(field) => short_text(&field, report),
    };
    let required = match fields.optional("required") {
        None => Some(true),
        Some(field) => read_required(&field, kind, report),
    };
    let options = read_options(item, &fields, kind, report);
    Some(InputField {
        name: name?.to_owned(),
        kind: kind?,
        label: label?.to_owned(),
        required: required?,
        options: options?.into_iter().map(str::to_owned).collect(),
    })
}

fn read_required(field: &Field<'_>, kind: Option<FieldKind>, report: &mut Report) -> Option<bool> {
    let required = field.flag(report)?;
    if !required && kind == Some(FieldKind::Confirm) {
        let message = "a field of type `confirm` is always required: silence is no consent";
        field.problem(message, "take `required: false` away", report);
        return None;
    }
    Some(required)
}

fn read_options<'a>(
    item: &Field<'a>,
    fields: &Fields<'a>,
    kind: Option<FieldKind>,
    report: &mut Report,
) -> Option<Vec<&'a str>> {
    const HELP: &str =
        "list what there is to select from, for instance `options: [today, tomorrow]`";
    let field = fields.optional("options");
    let field = match (kind?, field) {
        (FieldKind::Select, Some(field)) => field,
        (FieldKind::Select, None) => {
            if !fields.is_misspelt("options") {
                let message = "a field of type `select` needs `options`";
                item.problem(message, HELP, report);
            }
            return None;
        }
        (FieldKind::Text | FieldKind::Confirm, None) => return Some(Vec::new()),
        (FieldKind::Text | FieldKind::Confirm, Some(field)) => {
            let message = "only a field of type `select` has `options`";
            field.problem(message, "say `type: select`, or remove them", report);
            return None;
        }
    };
    let items = field.items(HELP, report)?;
    let max = Confirmation::MAX_OPTIONS;
    if !(1..=max).contains(&items.len()) {
        let message = format!("a field has 1 to {max} options, not {}", items.len());
        field.problem(&message, HELP, report);
        return None;
    }
    let mut options = Vec::new();
    let mut complete = true;
    for item in items {
        let Some(option) = short_text(&item, report) else {
            complete = false;
            continue;
        };
        if options.contains(&option) {
            let message = format!("{} is listed twice", quoted(option));
            item.problem(&message, "keep one of them", report);
        }
        options.push(option);
    }
    complete.then_some(options)
}

/// Text that says something, and is no longer than a word on a form may be.
pub(crate) fn short_text<'a>(field: &Field<'a>, report: &mut Report) -> Option<&'a str> {
    const MAX: usize = Confirmation::MAX_TEXT;
    let text = field.some_text(report)?;
    if text.chars().nth(MAX).is_some() {
        let message = format!("{} is longer than {MAX} characters", quoted(text));
        field.problem(&message, "make it shorter", report);
        return None;
    }
    Some(text)
}
