//! `confirm`: the words by which a model asks for a confirmation, and the form that people then fill in.

use std::collections::BTreeSet;

use holdpoint_core::Confirmation;
use holdpoint_yaml::{Content, Field, Fields, Report, quoted};

use crate::form;

/// Reads `confirm: true`, `false` or a map.
pub(crate) fn read(field: &Field<'_>, report: &mut Report) -> Option<Option<Confirmation>> {
    match &field.node.content {
        Content::Bool(true) => Some(Some(Confirmation::standard())),
        Content::Bool(false) => Some(None),
        Content::Map(_) => read_map(field, report).map(Some),
        Content::Null | Content::Number(_) | Content::Text(_) | Content::List(_) => {
            let message = format!(
                "must be true, false or a map, not {}",
                field.node.describe()
            );
            let help = "use true, false or {keywords: […], fields: […], timeout: 5m}";
            field.problem(&message, help, report);
            None
        }
    }
}

fn read_map(field: &Field<'_>, report: &mut Report) -> Option<Confirmation> {
    let known = ["keywords", "presets", "keywords_only", "fields", "timeout"];
    let fields = Fields::open(field, &known, report)?;
    let timeout = match fields.optional("timeout") {
        None => Some(None),
        Some(field) => field.positive_duration(report).map(Some),
    };
    let confirmation = read_parts(&fields, report);
    Some(Confirmation {
        timeout: timeout?,
        ..confirmation?
    })
}

/// Reads the words and the form; the rest is as usual.
pub(crate) fn read_parts(fields: &Fields<'_>, report: &mut Report) -> Option<Confirmation> {
    let keywords = read_keywords(fields, report);
    let form = match fields.optional("fields") {
        None => Some(Confirmation::standard().fields),
        Some(field) => form::read(&field, report),
    };
    Some(Confirmation {
        keywords: keywords?,
        fields: form?,
        timeout: None,
    })
}

fn read_keywords(fields: &Fields<'_>, report: &mut Report) -> Option<Vec<String>> {
    let own = match fields.optional("keywords") {
        None => Some(Vec::new()),
        Some(field) => read_own(&field, report),
    };
    let presets = match fields.optional("presets") {
        None => Some(Vec::new()),
        Some(field) => read_presets(&field, report),
    };
    let only = fields.optional("keywords_only");
    let usual = match &only {
        None => Some(true),
        Some(field) => field.flag(report).map(|only| !only),
    };
    let (own, presets) = (own?, presets?);
    let usual: &[&str] = if usual? { &Confirmation::KEYWORDS } else { &[] };
    // One that is there already is found anyway.
    let mut seen = BTreeSet::new();
    let words = usual.iter().chain(&presets).chain(&own);
    let words = words.filter(|word| seen.insert(folded(word)));
    let keywords: Vec<_> = words.map(|word| (*word).to_owned()).collect();
    if let (true, Some(only)) = (keywords.is_empty(), only) {
        let help = "list `keywords` or `presets: [zh]`, or take `keywords_only` away";
        only.problem(
            "no keyword is left, so nobody would ever be asked",
            help,
            report,
        );
        return None;
    }
    Some(keywords)
}

/// Reads a list of words.
pub(crate) fn read_own<'a>(field: &Field<'a>, report: &mut Report) -> Option<Vec<&'a str>> {
    let items = field.items(
        "list the words, for instance [\"may i\", \"ok to\"]",
        report,
    )?;
    let mut words = Vec::new();
    let mut seen = BTreeSet::new();
    let mut complete = true;
    for item in items {
        let Some(word) = form::short_text(&item, report) else {
            complete = false;
            continue;
        };
        if !seen.insert(folded(word)) {
            let message = format!("{} is listed twice", quoted(word));
            let help = "keep one of them; upper and lower case are the same";
            item.problem(&message, help, report);
        }
        words.push(word);
    }
    complete.then_some(words)
}

fn read_presets(field: &Field<'_>, report: &mut Report) -> Option<Vec<&'static str>> {
    let items = field.items("list the presets, for instance [zh]", report)?;
    let known = [("zh", Confirmation::KEYWORDS_ZH.as_slice())];
    let words = items.iter().map(|item| {
        let words = item.one_of("a preset of keywords", &known, report);
        words.map(<[&str]>::to_vec)
    });
    let words = words.collect::<Vec<_>>().into_iter();
    words
        .collect::<Option<Vec<_>>>()
        .map(|words| words.concat())
}

/// What is looked for: upper and lower case are the same, and so is all white space.
fn folded(word: &str) -> String {
    let words: Vec<_> = word.split_whitespace().map(str::to_lowercase).collect();
    words.join(" ")
}
