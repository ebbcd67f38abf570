//! Confirmation by keyword: an agent whose model asks for a confirmation in plain words waits for it.
//!
//! This is a fallback for agents that have no tools to gate: it looks at the words, and words can be missed. Whatever
//! must not happen unasked belongs behind a gate.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Decision, InterruptStatus, Span, content_of};

/// How an agent recognises that its model asks for a confirmation, and what people are then asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confirmation {
    /// The words, any of which makes a reply a request. Upper and lower case are the same, and so is all white space.
    pub keywords: Vec<String>,
    /// The form that people fill in.
    pub fields: Vec<InputField>,
    /// How long the request stays open; for ever if unsaid. Then the run ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
}

/// One field of a form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputField {
    /// Its name in the answer.
    pub name: String,
    /// What is put in.
    #[serde(rename = "type")]
    pub kind: FieldKind,
    /// What people read.
    pub label: String,
    /// Whether it must be filled in. A confirmation always must: silence is no consent.
    pub required: bool,
    /// What there is to select from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
}

/// What is put into a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FieldKind {
    /// A text.
    Text,
    /// Yes or no.
    Confirm,
    /// One of the options.
    Select,
}

impl Confirmation {
    /// The words that are looked for unless others are given.
    pub const KEYWORDS: [&'static str; 13] = [
        "please confirm",
        "do you confirm",
        "are you sure",
        "shall i proceed",
        "would you like me to proceed",
        "do you want to proceed",
        "do you want me to",
        "should i go ahead",
        "confirm before",
        "confirmation required",
        "waiting for your confirmation",
        "need your approval",
        "needs your approval",
    ];

    /// The same in Chinese.
    pub const KEYWORDS_ZH: [&'static str; 10] = [
        "请确认",
        "请您确认",
        "是否确认",
        "确认要",
        "您确定",
        "你确定",
        "是否继续",
        "是否执行",
        "需要您的批准",
        "等待您的确认",
    ];

    /// How many fields a form may have, and a field options.
    pub const MAX_FIELDS: usize = 16;
    /// How many options a field may have.
    pub const MAX_OPTIONS: usize = 64;
    /// The longest keyword, name, label or option, in characters.
    pub const MAX_TEXT: usize = 200;

    /// With the usual words and one field, open for ever.
    #[must_use]
    pub fn standard() -> Self {
        let keywords = Self::KEYWORDS.iter().map(|word| (*word).to_owned());
        Self {
            keywords: keywords.collect(),
            fields: vec![InputField::confirm("confirm", "Confirm action")],
            timeout: None,
        }
    }

    /// Whether this text asks for a confirmation; and where the line begins in which it first does.
    #[must_use]
    pub fn asked_at(&self, text: &str) -> Option<usize> {
        let folded = Folded::new(text);
        let keywords = self.keywords.iter();
        let at = keywords.filter_map(|keyword| folded.text.find(&Folded::new(keyword).text));
        at.min().map(|at| folded.line_at(at))
    }

    /// Why nobody could confirm anything this way.
    #[must_use]
    pub(crate) fn flaw(&self) -> Option<String> {
        if self.keywords.is_empty() {
            return Some("`confirm` has no keywords, so it would never ask".to_owned());
        }
        let fits = |text: &str| (1..=Self::MAX_TEXT).contains(&text.chars().count());
        let blank = |text: &&String| text.trim().is_empty() || !fits(text);
        if let Some(keyword) = self.keywords.iter().find(blank) {
            let (keyword, max) = (keyword.escape_debug(), Self::MAX_TEXT);
            return Some(format!(
                "the keyword `{keyword}` must have 1 to {max} characters that are not blank"
            ));
        }
        if self.timeout == Some(Span::ZERO) {
            return Some("`confirm.timeout` must be longer than nothing".to_owned());
        }
        if !(1..=Self::MAX_FIELDS).contains(&self.fields.len()) {
            let max = Self::MAX_FIELDS;
            return Some(format!("a form for confirmations has 1 to {max} fields"));
        }
        let confirms = |field: &InputField| field.kind == FieldKind::Confirm;
        if !self.fields.iter().any(confirms) {
            return Some(
                "a form for confirmations needs a field of type `confirm`, or nobody could say no"
                    .to_owned(),
            );
        }
        self.fields.iter().enumerate().find_map(|(at, field)| {
            let name = field.name.escape_debug();
            if !fits(&field.name) || !fits(&field.label) {
                let max = Self::MAX_TEXT;
                return Some(format!(
                    "the field `{name}` needs a name and a label of 1 to {max} characters"
                ));
            }
            if self.fields[..at].iter().any(|it| it.name == field.name) {
                return Some(format!("two fields are called `{name}`"));
            }
            let selects = field.kind == FieldKind::Select;
            let bad = |option: &String| !fits(option);
            if selects == field.options.is_empty()
                || field.options.len() > Self::MAX_OPTIONS
                || field.options.iter().any(bad)
            {
                return Some(format!(
                    "the field `{name}`: a field of type `select` has 1 to {} options of 1 to {} characters, and no \
                     other has any",
                    Self::MAX_OPTIONS,
                    Self::MAX_TEXT
                ));
            }
            None
        })
    }
}

impl InputField {
    /// A field to say yes or no in.
    #[must_use]
    pub fn confirm(name: impl Into<String>, label: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            kind: FieldKind::Confirm,
            label: label.into(),
            required: true,
            options: Vec::new(),
        }
    }

    /// Why this is nothing that can be put into it.
    fn misfit(&self, value: &Value) -> Option<String> {
        let text = value.as_str();
        match self.kind {
            FieldKind::Confirm if value.is_boolean() => None,
            FieldKind::Confirm => Some("must be `true` or `false`".to_owned()),
            FieldKind::Text if text.is_some_and(|text| !self.required || !text.is_empty()) => None,
            FieldKind::Text if text.is_some() => Some("must not be empty".to_owned()),
            FieldKind::Text => Some("must be a text".to_owned()),
            FieldKind::Select
                if text.is_some_and(|text| self.options.iter().any(|it| it == text)) =>
            {
                None
            }
            FieldKind::Select => Some(format!("must be one of: {}", self.options.join(", "))),
        }
    }
}

/// What is wrong with a filled-in form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` {problem}")]
pub struct BadField {
    /// The field.
    pub name: String,
    /// What is wrong with it.
    pub problem: String,
}

/// A form that was filled in as it must be.
#[derive(Debug)]
pub struct Filled<'a> {
    fields: &'a [InputField],
    values: Map<String, Value>,
    /// What whoever refused had to say.
    message: Option<&'a str>,
}

impl<'a> Filled<'a> {
    /// What a decision puts into the fields.
    ///
    /// # Errors
    ///
    /// The first field that is not filled in as it must be.
    pub fn new(fields: &'a [InputField], decision: &'a Decision) -> Result<Self, BadField> {
        let all = |value: bool| {
            let confirms = fields.iter().filter(|it| it.kind == FieldKind::Confirm);
            let filled = confirms.map(|field| (field.name.clone(), Value::Bool(value)));
            filled.collect::<Map<_, _>>()
        };
        let (values, message) = match decision {
            Decision::Approve { .. } => (all(true), None),
            Decision::Reject { message } => (all(false), message.as_deref()),
            Decision::Answer {
                value: Value::Object(values),
            } => (values.clone(), None),
            Decision::Answer { .. }
            | Decision::Edit { .. }
            | Decision::Respond { .. }
            | Decision::Committed { .. }
            | Decision::NotCommitted
            | Decision::Compensate => {
                let field = fields.first().map_or("confirm", |field| &field.name);
                return Err(BadField {
                    name: field.to_owned(),
                    problem: format!(
                        "the answer must be an object with a value for each field, as in `{{\"{field}\": true}}`"
                    ),
                });
            }
        };
        let filled = Self {
            fields,
            values,
            message,
        };
        filled.check()?;
        Ok(filled)
    }

    fn check(&self) -> Result<(), BadField> {
        let bad = |name: &str, problem: String| {
            Err(BadField {
                name: name.to_owned(),
                problem,
            })
        };
        let known: Vec<&str> = self.fields.iter().map(|it| it.name.as_str()).collect();
        if let Some(name) = self.values.keys().find(|it| !known.contains(&it.as_str())) {
            return bad(name, format!("is no field; fields: {}", known.join(", ")));
        }
        for field in self.fields {
            match self.values.get(&field.name) {
                Some(value) => {
                    if let Some(problem) = field.misfit(value) {
                        return bad(&field.name, problem);
                    }
                }
                // Whoever refuses need not fill in the rest; but yes or no must be said everywhere.
                None if field.kind == FieldKind::Confirm => {
                    return bad(&field.name, "is missing: say `true` or `false`".to_owned());
                }
                None if field.required && !self.refuses() => {
                    return bad(&field.name, "is required".to_owned());
                }
                None => {}
            }
        }
        Ok(())
    }

    /// Whether any confirmation is refused.
    fn refuses(&self) -> bool {
        let refused = |field: &InputField| {
            field.kind == FieldKind::Confirm
                && self.values.get(&field.name) == Some(&Value::Bool(false))
        };
        self.fields.iter().any(refused)
    }

    /// How the request is closed by it.
    pub(crate) fn status(&self) -> InterruptStatus {
        if self.refuses() {
            InterruptStatus::Rejected
        } else {
            InterruptStatus::Resolved
        }
    }

    /// What the model is told.
    pub(crate) fn says(&self) -> String {
        let given = self.fields.iter().filter_map(|field| {
            let value = content_of(self.values.get(&field.name)?);
            Some(format!("{}: {value}", field.label))
        });
        let given = given.collect::<Vec<_>>().join("; ");
        let (then, message) = if self.refuses() {
            ("The user declined. Do not proceed.", self.message)
        } else {
            ("Please proceed.", None)
        };
        let message = message.map_or_else(String::new, |message| format!(" They said: {message}"));
        format!("User response: {given}. {then}{message}")
    }
}

/// What the model is told where nobody answered.
pub(crate) const UNANSWERED: &str =
    "The request for confirmation was not answered. Do not proceed with it.";

/// A text in which upper and lower case, and all white space, are the same.
pub(crate) fn folded(text: &str) -> String {
    Folded::new(text).text
}

/// A text in which upper and lower case, and all white space, are the same.
struct Folded {
    text: String,
    /// Where lines with something in them begin: here, and in the original.
    lines: Vec<(usize, usize)>,
}

impl Folded {
    fn new(original: &str) -> Self {
        let mut folded = Self {
            text: String::with_capacity(original.len()),
            lines: Vec::new(),
        };
        let mut line = Some(0);
        let mut space = false;
        for (at, char) in original.char_indices() {
            if matches!(char, '\n' | '\r') {
                line = Some(at + 1);
            }
            if char.is_whitespace() {
                space = true;
                continue;
            }
            if space && !folded.text.is_empty() {
                folded.text.push(' ');
            }
            space = false;
            if let Some(line) = line.take() {
                folded.lines.push((folded.text.len(), line));
            }
            folded.text.push(fold_case(char));
        }
        folded
    }

    /// Where the line begins in the original that holds what is found here.
    fn line_at(&self, at: usize) -> usize {
        let before = self.lines.partition_point(|(here, _)| *here <= at);
        before.checked_sub(1).map_or(0, |line| self.lines[line].1)
    }
}

/// Unicode's simple case folding: what is the same character up to case becomes the same character.
fn fold_case(char: char) -> char {
    // It has a capital letter but is not the small one of it.
    if char == 'ı' {
        return char;
    }
    if char.is_ascii() {
        return char.to_ascii_lowercase();
    }
    let upper = only(char.to_uppercase()).unwrap_or(char);
    only(upper.to_lowercase()).unwrap_or(char)
}

fn only(mut chars: impl ExactSizeIterator<Item = char>) -> Option<char> {
    if chars.len() == 1 { chars.next() } else { None }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asked(text: &str) -> Option<&str> {
        let at = Confirmation::standard().asked_at(text)?;
        Some(&text[at..])
    }

    #[test]
    fn every_example_of_the_table_asks() {
        let examples = [
            "Please confirm you want to delete...",
            "Do you confirm this action?",
            "Are you sure you want to proceed?",
            "Shall I proceed with the deployment?",
            "Would you like me to proceed?",
            "Do you want to proceed with deletion?",
            "Do you want me to send this email?",
            "Should I go ahead and reset the database?",
            "Please confirm before I execute this.",
            "Confirmation required for this action.",
            "Waiting for your confirmation...",
            "This action needs your approval.",
        ];
        for example in examples {
            assert_eq!(asked(example), Some(example));
            let shouted = example.to_uppercase();
            assert_eq!(asked(&shouted), Some(shouted.as_str()));
        }
        for keyword in Confirmation::KEYWORDS {
            assert!(asked(keyword).is_some(), "{keyword}");
        }
        for text in ["", "All done.", "please", "I confirm.", "请确认"] {
            assert_eq!(asked(text), None, "{text}");
        }
    }

    #[test]
    fn the_request_begins_with_the_line_that_holds_it() {
        let text =
            "我将要删除以下过期用户数据:共 1,234 条记录。\n\n  Please\n confirm: 即将删除。\nYes?";
        assert_eq!(asked(text), Some("  Please\n confirm: 即将删除。\nYes?"));
        assert_eq!(asked("a\r\nARE  YOU\tSURE?"), Some("ARE  YOU\tSURE?"));
    }

    #[test]
    fn case_is_folded_as_unicode_says() {
        for (left, right) in [('ſ', 'S'), ('Σ', 'ς'), ('K', 'k'), ('ẞ', 'ß'), ('Ä', 'ä')] {
            assert_eq!(fold_case(left), fold_case(right), "{left} {right}");
        }
        assert_ne!(fold_case('ı'), fold_case('I'));
        assert_ne!(fold_case('İ'), fold_case('i'));
    }

    #[test]
    fn other_words_can_be_looked_for() {
        let mut chinese = Confirmation::standard();
        chinese.keywords = Confirmation::KEYWORDS_ZH
            .iter()
            .map(|word| (*word).to_owned())
            .collect();
        assert_eq!(chinese.asked_at("好的。\n请确认是否删除?"), Some(10));
        assert_eq!(chinese.asked_at("Are you sure?"), None);
        assert_eq!(chinese.flaw(), None);
    }

    fn form() -> Vec<InputField> {
        let field = |name: &str, kind, required| InputField {
            name: name.to_owned(),
            kind,
            label: name.to_uppercase(),
            required,
            options: Vec::new(),
        };
        let mut where_to = field("where", FieldKind::Select, true);
        where_to.options = vec!["east".to_owned(), "west".to_owned()];
        vec![
            InputField::confirm("confirm", "Confirm action"),
            field("why", FieldKind::Text, true),
            field("note", FieldKind::Text, false),
            where_to,
        ]
    }

    fn filled(value: Value) -> Result<(InterruptStatus, String), (String, String)> {
        let (fields, decision) = (form(), Decision::Answer { value });
        match Filled::new(&fields, &decision) {
            Ok(filled) => Ok((filled.status(), filled.says())),
            Err(bad) => Err((bad.name, bad.problem)),
        }
    }

    #[test]
    fn what_is_put_in_is_told_in_the_order_of_the_form() {
        let answer = json!({"where": "west", "why": "because", "confirm": true});
        let expected =
            "User response: Confirm action: true; WHY: because; WHERE: west. Please proceed.";
        let expected = (InterruptStatus::Resolved, expected.to_owned());
        assert_eq!(filled(answer), Ok(expected));
        let expected =
            "User response: Confirm action: false. The user declined. Do not proceed.".to_owned();
        assert_eq!(
            filled(json!({"confirm": false})),
            Ok((InterruptStatus::Rejected, expected)),
            "whoever refuses need not fill in the rest"
        );
    }

    #[test]
    fn silence_is_no_consent_and_a_bad_field_is_named() {
        let cases = [
            (json!({}), "confirm", "is missing"),
            (json!(true), "confirm", "must be an object"),
            (json!({"confirm": "yes"}), "confirm", "`true` or `false`"),
            (json!({"confirm": true}), "why", "is required"),
            (json!({"confirm": true, "why": ""}), "why", "not be empty"),
            (json!({"confirm": true, "why": 1}), "why", "must be a text"),
            (
                json!({"confirm": true, "why": "x", "where": "up"}),
                "where",
                "one of: east, west",
            ),
            (json!({"confirm": true, "wyh": "x"}), "wyh", "is no field"),
        ];
        for (value, field, problem) in cases {
            let (name, text) = filled(value.clone()).unwrap_err();
            assert_eq!(name, field, "{value}");
            assert!(text.contains(problem), "{value}: {text}");
        }
    }

    #[test]
    fn yes_and_no_can_be_said_without_a_form() {
        let one = [InputField::confirm("confirm", "Confirm action")];
        let yes = Filled::new(&one, &Decision::APPROVE).unwrap();
        assert_eq!(
            yes.says(),
            "User response: Confirm action: true. Please proceed."
        );
        let no = Decision::Reject {
            message: Some("too late".to_owned()),
        };
        let no = Filled::new(&one, &no).unwrap();
        assert_eq!(no.status(), InterruptStatus::Rejected);
        assert!(no.says().ends_with("Do not proceed. They said: too late"));
        let fields = form();
        let bad = Filled::new(&fields, &Decision::APPROVE).unwrap_err();
        assert_eq!(bad.name, "why", "a yes must be a whole answer");
    }

    #[test]
    fn a_form_that_nobody_could_use_is_refused() {
        let flaw = |change: &dyn Fn(&mut Confirmation)| {
            let mut confirmation = Confirmation::standard();
            change(&mut confirmation);
            confirmation.flaw().unwrap_or_default()
        };
        assert_eq!(flaw(&|_| {}), "");
        assert!(flaw(&|it| it.keywords.clear()).contains("no keywords"));
        assert!(flaw(&|it| it.keywords.push(" \n".to_owned())).contains("not blank"));
        assert!(flaw(&|it| it.timeout = Some(Span::ZERO)).contains("timeout"));
        assert!(flaw(&|it| it.fields.clear()).contains("1 to 16 fields"));
        assert!(flaw(&|it| it.fields[0].kind = FieldKind::Text).contains("say no"));
        assert!(flaw(&|it| it.fields.push(it.fields[0].clone())).contains("two fields"));
        assert!(flaw(&|it| it.fields[0].options.push("x".to_owned())).contains("options"));
        assert!(flaw(&|it| it.fields[0].label.clear()).contains("label"));
    }
}
