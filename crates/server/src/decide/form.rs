//! What a form says, as a reply to the question that it was shown for.

use holdpoint_core::{
    Answer, Ask, Decision, DecisionKind, FieldKind, InputField, InterruptKind, Prompt, parse_strict,
};
use holdpoint_engine::{
    ActionRequest, Question,
    question::{Mending, Place, Reply, Response},
};
use serde_json::{Map, Value, json};

use super::field::{self, Field, Wrong};
use crate::problem::Problem;

/// The button that was pressed.
pub(super) const SAY: &str = "say";
/// Yes.
pub(super) const APPROVE: &str = "approve";
/// No.
pub(super) const REJECT: &str = "reject";
/// What is put in is the answer.
pub(super) const ANSWER: &str = "answer";
/// Which option.
pub(super) const OPTION: &str = "option";
/// Why.
pub(super) const COMMENT: &str = "comment";
/// That the page is ours.
pub(super) const PAGE: &str = "page";

/// What a form said: names and values.
#[derive(Debug, Default)]
pub(super) struct Entered(pub(super) Vec<(String, String)>);

impl Entered {
    /// Takes away what is said twice, and says whether anything was: nobody knows which of both is meant.
    pub(super) fn drop_ambiguous(&mut self) -> bool {
        let mut names: Vec<String> = self.0.iter().map(|(name, _)| name.clone()).collect();
        names.sort_unstable();
        let twice = names.windows(2).filter(|pair| pair[0] == pair[1]);
        let twice: Vec<String> = twice.map(|pair| pair[0].clone()).collect();
        self.0.retain(|(name, _)| !twice.contains(name));
        !twice.is_empty()
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// A text, where one was put in.
    fn text(&self, name: &str) -> Option<String> {
        let text = self.get(name)?.replace("\r\n", "\n");
        (!text.trim().is_empty()).then_some(text)
    }
}

/// Why a form says nothing that could be taken.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Complaint {
    /// As a whole.
    pub(super) whole: Option<String>,
    /// Of single controls: what they are called in the form, and what is wrong.
    pub(super) of: Vec<(String, String)>,
}

impl From<Vec<Wrong>> for Complaint {
    fn from(fields: Vec<Wrong>) -> Self {
        let named = |wrong: Wrong| (name_at(&wrong.pointer), wrong.why);
        Self {
            whole: None,
            of: fields.into_iter().map(named).collect(),
        }
    }
}

impl Complaint {
    pub(super) fn new(whole: impl Into<String>) -> Self {
        Self {
            whole: Some(whole.into()),
            of: Vec::new(),
        }
    }

    /// Of the control with this name.
    fn at(name: String, why: impl Into<String>) -> Self {
        Self {
            whole: None,
            of: vec![(name, why.into())],
        }
    }

    /// What is wrong with a control.
    pub(super) fn of(&self, name: &str) -> impl Iterator<Item = &str> {
        let found = self.of.iter().filter(move |(known, _)| known == name);
        found.map(|(_, why)| why.as_str())
    }

    /// What is wrong with a reply that was not taken as an answer, in words for the page.
    pub(super) fn about(question: &Question, reply: &Reply, problem: &Problem) -> Self {
        let mut complaint = Self::default();
        let Sheet::Prompt(_, fields) = Sheet::of(question) else {
            return Self::told(question, problem);
        };
        for Mending { place, words } in question.mendings(reply) {
            match place {
                Place::Whole => complaint.whole = Some(words),
                Place::Choice => complaint.of.push((OPTION.to_owned(), words)),
                Place::Input(pointer) => match nearest(&fields, &pointer) {
                    Some((field, "")) => complaint.of.push((name_of(field), words)),
                    Some((field, rest)) => {
                        let why = format!("{}: {words}", inside(rest));
                        complaint.of.push((name_of(field), why));
                    }
                    None => complaint.whole = Some(format!("What is filled in {words}.")),
                },
            }
        }
        if complaint == Self::default() {
            return Self::new(problem.error.clone());
        }
        complaint
    }

    /// What core says of decisions and of a model's form.
    fn told(question: &Question, problem: &Problem) -> Self {
        let said = |key: &str| field::said(&problem.details, key);
        let place = problem.details.get("position").and_then(Value::as_u64);
        let at = place.and_then(|place| usize::try_from(place).ok()?.checked_sub(1));
        let fields = &question.shown.value.fields;
        match (said("reason"), at) {
            ("arguments", Some(at)) => {
                // Where it is comes as a JSON Pointer.
                let problems = said("problem").split("; ");
                let problems = problems.map(|it| it.trim_start_matches('/'));
                let why = problems.collect::<Vec<_>>().join("; ");
                Self::at(nth("a", at), format!("these arguments do not fit: {why}"))
            }
            ("field", _) => {
                let name = said("name");
                let Some(field) = fields.iter().find(|it| it.name == name) else {
                    return Self::new(problem.error.clone());
                };
                let why = match field.kind {
                    FieldKind::Confirm => "say yes or no",
                    FieldKind::Select => "choose one of these",
                    FieldKind::Text => "must be filled in",
                };
                Self::at(name_of_input(field), why)
            }
            (_, _) => Self::new(problem.error.clone()),
        }
    }
}

/// The field at a place, or in which it is; and where in that.
fn nearest<'f, 'p>(fields: &'f [Field], pointer: &'p str) -> Option<(&'f Field, &'p str)> {
    let found = fields.iter().filter_map(|field| {
        let rest = pointer.strip_prefix(&field.pointer)?;
        (rest.is_empty() || rest.starts_with('/')).then_some((field, rest))
    });
    found.min_by_key(|(_, rest)| rest.len())
}

/// A place within what was put into one field, for people.
fn inside(rest: &str) -> String {
    let parts = rest
        .split('/')
        .skip(1)
        .map(|part| match part.parse::<usize>() {
            Ok(at) => format!("entry {}", at + 1),
            Err(_) => part.replace("~1", "/").replace("~0", "~"),
        });
    parts.collect::<Vec<_>>().join(", ")
}

/// How a question is answered.
#[derive(Debug)]
pub(super) enum Sheet<'q> {
    /// In the words of who asks: yes or no, one of the options, something put in.
    Prompt(&'q Prompt, Vec<Field>),
    /// By filling in what a model asks for.
    Fields(&'q [InputField]),
    /// By a decision on each thing that it is about.
    Decisions(&'q [Ask]),
}

impl<'q> Sheet<'q> {
    pub(super) fn of(question: &'q Question) -> Self {
        let fields = &question.shown.value.fields;
        match question.prompt() {
            Some(prompt) => {
                let is_put_in = question.interrupt.kind == InterruptKind::Input;
                let fields = match &prompt.input_schema {
                    Some(schema) => field::fields(schema),
                    None if is_put_in && prompt.options.is_empty() => vec![field::text()],
                    None => Vec::new(),
                };
                Self::Prompt(prompt, fields)
            }
            None if !fields.is_empty() => Self::Fields(fields),
            None => Self::Decisions(&question.interrupt.asks),
        }
    }

    /// What a form says to it.
    ///
    /// # Errors
    ///
    /// What is missing, or cannot be read.
    pub(super) fn read(&self, question: &Question, entered: &Entered) -> Result<Reply, Complaint> {
        match self {
            Self::Prompt(prompt, fields) => prompted(prompt, fields, entered),
            Self::Fields(fields) => filled(fields, entered),
            Self::Decisions(asks) => decided(asks, question, entered),
        }
    }
}

fn pressed(entered: &Entered) -> Result<&str, Complaint> {
    let none = || Complaint::new("It is not clear what was decided: press one of the buttons.");
    let said = entered.get(SAY).ok_or_else(none)?;
    [APPROVE, REJECT, ANSWER]
        .into_iter()
        .find(|known| *known == said)
        .ok_or_else(none)
}

fn prompted(prompt: &Prompt, fields: &[Field], entered: &Entered) -> Result<Reply, Complaint> {
    let is_no = pressed(entered)? == REJECT;
    let input = if is_no {
        None
    } else {
        let given = field::value(fields, |field| {
            entered.get(&name_of(field)).map(str::to_owned)
        })?;
        // Of an object of which nothing is filled in, an empty one is left.
        let schema = prompt.input_schema.as_ref();
        let empty = || schema.is_some_and(field::has_parts).then(|| json!({}));
        given.or_else(empty)
    };
    Ok(Reply::Response(Box::new(Response {
        approved: Some(!is_no),
        option_id: entered.text(OPTION).filter(|_| !is_no),
        input,
        comment: entered.text(COMMENT).unwrap_or_default(),
        ..Response::default()
    })))
}

/// What a field of a schema is called in the form.
pub(super) fn name_of(field: &Field) -> String {
    name_at(&field.pointer)
}

fn name_at(pointer: &str) -> String {
    format!("in{pointer}")
}

/// What a field of a model's form is called in ours.
pub(super) fn name_of_input(field: &InputField) -> String {
    format!("fill/{}", field.name)
}

/// The field that the buttons fill in, where there is one of its kind.
pub(super) fn confirmed(fields: &[InputField]) -> Option<&InputField> {
    let mut flags = fields.iter().filter(|it| it.kind == FieldKind::Confirm);
    match (flags.next(), flags.next()) {
        (Some(only), None) => Some(only),
        (_, _) => None,
    }
}

fn filled(fields: &[InputField], entered: &Entered) -> Result<Reply, Complaint> {
    let said = pressed(entered)?;
    let button = confirmed(fields).map(|it| it.name.as_str());
    let mut value = Map::new();
    for field in fields {
        let given = match field.kind {
            FieldKind::Confirm if button == Some(field.name.as_str()) => {
                Some(Value::from(said == APPROVE))
            }
            FieldKind::Confirm => match entered.get(&name_of_input(field)) {
                Some("true") => Some(true.into()),
                Some("false") => Some(false.into()),
                Some(_) | None => None,
            },
            FieldKind::Text | FieldKind::Select => {
                entered.text(&name_of_input(field)).map(Value::from)
            }
        };
        if let Some(given) = given {
            value.insert(field.name.clone(), given);
        }
    }
    let value = value.into();
    Ok(Reply::Decisions(Answer::All(Decision::Answer { value })))
}

/// What the controls for the nth thing are called.
pub(super) fn nth(what: &str, at: usize) -> String {
    format!("{what}{at}")
}

fn decided(asks: &[Ask], question: &Question, entered: &Entered) -> Result<Reply, Complaint> {
    let requests = &question.shown.value.action_requests;
    let mut decisions = Vec::new();
    for (at, (ask, request)) in asks.iter().zip(requests).enumerate() {
        let said = entered.get(&nth("d", at)).unwrap_or_default();
        let mut kinds = ask.allowed.as_slice().iter().copied();
        let Some(kind) = kinds.find(|kind| kind.as_str() == said) else {
            let mut complaint = Complaint::at(nth("d", at), "choose what is to happen");
            let name = &request.name;
            complaint.whole = Some(format!("Nothing was decided on `{name}`."));
            return Err(complaint);
        };
        if kind != DecisionKind::Edit && ask.allowed.contains(DecisionKind::Edit) {
            expect_unchanged(request, at, kind, entered)?;
        }
        let message = entered.text(&nth("m", at));
        let missing = |control: &str, what: &str| {
            let mut complaint = Complaint::at(nth(control, at), what);
            complaint.whole = Some(format!("`{}`: {what}", request.name));
            complaint
        };
        decisions.push(match kind {
            DecisionKind::Approve => json!({"type": "approve"}),
            DecisionKind::Edit => {
                let text = entered.get(&nth("a", at)).unwrap_or_default();
                let args = parse_strict(text).map_err(|error| {
                    missing("a", &format!("the arguments are no JSON: {error}"))
                })?;
                json!({"type": "edit", "edited_action": {"name": request.name, "args": args}})
            }
            DecisionKind::Reject => match message {
                Some(message) => json!({"type": "reject", "message": message}),
                None => json!({"type": "reject"}),
            },
            DecisionKind::Respond => {
                let message =
                    message.ok_or_else(|| missing("m", "write what is answered instead"))?;
                json!({"type": "respond", "message": message})
            }
            DecisionKind::Committed => match entered.text(&nth("r", at)) {
                Some(text) => {
                    let result = parse_strict(&text).map_err(|error| {
                        missing("r", &format!("what it returned is no JSON: {error}"))
                    })?;
                    json!({"type": "committed", "result": result})
                }
                None => json!({"type": "committed"}),
            },
            DecisionKind::NotCommitted => json!({"type": "not_committed"}),
            DecisionKind::Compensate => json!({"type": "compensate"}),
            DecisionKind::Answer => {
                let text = entered.get(&nth("r", at)).unwrap_or_default();
                let value = parse_strict(text)
                    .map_err(|error| missing("r", &format!("the answer is no JSON: {error}")))?;
                json!({"type": "answer", "value": value})
            }
        });
    }
    let text = json!({ "decisions": decisions }).to_string();
    let answer = Answer::parse(&text).map_err(|error| Complaint::new(error.to_string()))?;
    Ok(Reply::Decisions(answer))
}

/// Whether the text is what the page put there, or says the same in another form.
pub(super) fn is_unchanged(text: &str, args: &Value) -> bool {
    let original = pretty(args);
    let text = text.replace("\r\n", "\n");
    // Both are read in the same way, so that nothing that is lost on it makes a difference.
    text.trim() == original
        || parse_strict(&text).is_ok_and(|it| parse_strict(&original).is_ok_and(|old| old == it))
}

/// Whoever changes the arguments means the changed ones: nothing else is decided by the way.
fn expect_unchanged(
    request: &ActionRequest,
    at: usize,
    kind: DecisionKind,
    entered: &Entered,
) -> Result<(), Complaint> {
    let text = entered.get(&nth("a", at));
    if text.is_none_or(|text| is_unchanged(text, &request.args)) {
        return Ok(());
    }
    let (edit, pressed) = (words(DecisionKind::Edit), words(kind));
    let mut complaint = Complaint::at(
        nth("a", at),
        "these are not the arguments that were asked about",
    );
    complaint.whole = Some(format!(
        "Nothing was decided: you changed the arguments of `{}`, but chose “{pressed}”. Choose “{edit}” to run the \
         changed ones, or restore them as they stand above.",
        request.name
    ));
    Err(complaint)
}

/// What a decision is called on the page.
pub(super) const fn words(kind: DecisionKind) -> &'static str {
    match kind {
        DecisionKind::Approve => "Approve",
        DecisionKind::Edit => "Approve with other arguments",
        DecisionKind::Reject => "Reject",
        DecisionKind::Respond => "Answer instead",
        DecisionKind::Committed => "It happened",
        DecisionKind::NotCommitted => "It did not happen: try again",
        DecisionKind::Compensate => "Undo it",
        DecisionKind::Answer => "Answer",
    }
}

/// A value as it stands in the page.
pub(super) fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}
