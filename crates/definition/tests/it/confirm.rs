//! `confirm`: agents that ask people where their model asks in plain words.

use holdpoint_core::{Confirmation, FieldKind, InputField, Span};
use insta::assert_snapshot;

use crate::{AGENT, folder, read, said_by};

/// What [`AGENT`] with this as its `confirm` waits for; there is nothing to warn of, and core agrees.
fn confirm(text: &str) -> Option<Confirmation> {
    let dir = folder();
    let loaded = read(&format!("{AGENT}  confirm: {text}\n"), dir.path());
    let loaded = loaded.unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(loaded.warnings, []);
    assert_eq!(loaded.definition.flaw(), None);
    loaded.definition.confirm
}

fn words<'a>(lists: impl IntoIterator<Item = &'a [&'a str]>) -> Vec<String> {
    let words = lists.into_iter().flatten();
    words.map(|word| (*word).to_owned()).collect()
}

#[test]
fn unsaid_and_false_ask_nobody_and_true_is_as_usual() {
    let dir = folder();
    assert_eq!(read(AGENT, dir.path()).unwrap().definition.confirm, None);
    assert_eq!(confirm("false"), None);
    assert_eq!(confirm("true"), Some(Confirmation::standard()));
    assert_eq!(confirm("{}"), Some(Confirmation::standard()));
}

#[test]
fn keywords_are_added_to_the_usual_ones_or_take_their_place() {
    let usual = Confirmation::KEYWORDS.as_slice();
    let zh = Confirmation::KEYWORDS_ZH.as_slice();
    let cases = [
        ("{keywords: [May I]}", words([usual, &["May I"]])),
        ("{keywords: []}", words([usual])),
        ("{presets: [zh]}", words([usual, zh])),
        (
            "{presets: [zh], keywords: [may i]}",
            words([usual, zh, &["may i"]]),
        ),
        (
            "{keywords: [may i], keywords_only: true}",
            words([["may i"].as_slice()]),
        ),
        ("{presets: [zh], keywordsOnly: true}", words([zh])),
        (
            "{keywords: [may i], keywords_only: false}",
            words([usual, &["may i"]]),
        ),
        // What is there already is there once, in whatever case.
        (
            "{keywords: [Please  Confirm, 请确认, may i], presets: [zh, zh]}",
            words([usual, zh, &["may i"]]),
        ),
    ];
    for (text, keywords) in cases {
        let expected = Confirmation {
            keywords,
            ..Confirmation::standard()
        };
        assert_eq!(confirm(text), Some(expected), "{text}");
    }
}

#[test]
fn a_form_has_fields_of_three_types() {
    let text = r"
    fields:
      - {name: confirm, type: confirm, label: 确认删除}
      - {name: reason, type: text, required: false}
      - {name: when, type: select, label: When?, options: [today, tomorrow]}
    timeout: 5m";
    let expected = Confirmation {
        fields: vec![
            InputField::confirm("confirm", "确认删除"),
            InputField {
                name: "reason".to_owned(),
                kind: FieldKind::Text,
                label: "reason".to_owned(),
                required: false,
                options: Vec::new(),
            },
            InputField {
                name: "when".to_owned(),
                kind: FieldKind::Select,
                label: "When?".to_owned(),
                required: true,
                options: words([["today", "tomorrow"].as_slice()]),
            },
        ],
        timeout: Some(Span::from_secs(300)),
        ..Confirmation::standard()
    };
    assert_eq!(confirm(text), Some(expected));
}

#[test]
fn what_nobody_could_answer_or_would_ever_ask_is_refused() {
    let long = "x".repeat(Confirmation::MAX_TEXT + 1);
    let yes = "{name: c, type: confirm}";
    let many = vec![yes; Confirmation::MAX_FIELDS + 1].join(", ");
    let options = (0..=Confirmation::MAX_OPTIONS).map(|at| format!("o{at}"));
    let options = options.collect::<Vec<_>>().join(", ");
    let cases = [
        "".to_owned(),
        "yes".to_owned(),
        "[please confirm]".to_owned(),
        "{keyword: [x]}".to_owned(),
        "{keywords: please}".to_owned(),
        "{keywords: [\"\", \" \", 7]}".to_owned(),
        format!("{{keywords: [{long}]}}"),
        "{keywords: [may i, May  I]}".to_owned(),
        "{keywords_only: true}".to_owned(),
        "{keywords: [], presets: [], keywords_only: true}".to_owned(),
        "{keywords_only: only}".to_owned(),
        "{presets: zh}".to_owned(),
        "{presets: [zh-cn, 7]}".to_owned(),
        "{timeout: 300}".to_owned(),
        "{timeout: 0s}".to_owned(),
        "{fields: {name: c}}".to_owned(),
        "{fields: []}".to_owned(),
        "{fields: [confirm]}".to_owned(),
        "{fields: [{}]}".to_owned(),
        "{fields: [{name: \"\", type: yesno, label: \" \", required: maybe}]}".to_owned(),
        format!("{{fields: [{{name: {long}, type: confirm}}]}}"),
        "{fields: [{name: c, typ: confirm}]}".to_owned(),
        "{fields: [{name: reason, type: text}]}".to_owned(),
        format!("{{fields: [{yes}, {yes}]}}"),
        format!("{{fields: [{many}]}}"),
        "{fields: [{name: c, type: confirm, required: false}]}".to_owned(),
        "{fields: [{name: c, type: confirm, options: [yes]}]}".to_owned(),
        format!("{{fields: [{yes}, {{name: s, type: select}}]}}"),
        format!("{{fields: [{yes}, {{name: s, type: select, option: [a]}}]}}"),
        format!("{{fields: [{yes}, {{name: s, type: select, options: []}}]}}"),
        format!("{{fields: [{yes}, {{name: s, type: select, options: [a, \"\", a]}}]}}"),
        format!("{{fields: [{yes}, {{name: s, type: select, options: [{options}]}}]}}"),
    ];
    let mut all = String::new();
    for case in cases {
        let said = said_by(read, &format!("{AGENT}  confirm: {case}\n"));
        let mut shown = case.chars();
        let start: String = shown.by_ref().take(90).collect();
        let more = if shown.next().is_some() { "…" } else { "" };
        all.push_str(&format!("# {start}{more}\n{said}\n\n"));
    }
    assert_snapshot!(all);
}
