//! What a form says, as a reply to the question that it was shown for.

use holdpoint_core::{
    Answer, Ask, Decision, DecisionKind, FieldKind, InputField, Prompt, parse_strict,
};
use holdpoint_engine::{
    Question,
    question::{Reply, Response},
};
use serde_json::{Map, Value, json};

use super::field::{self, Field, Wrong};

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
    /// Of single fields.
    pub(super) fields: Vec<Wrong>,
}

impl From<Vec<Wrong>> for Complaint {
    fn from(fields: Vec<Wrong>) -> Self {
        Self {
            whole: None,
            fields,
        }
    }
}

impl Complaint {
    pub(super) fn new(whole: impl Into<String>) -> Self {
        Self {
            whole: Some(whole.into()),
            fields: Vec::new(),
        }
    }
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
                let schema = prompt.input_schema.as_ref();
                Self::Prompt(prompt, schema.map(field::fields).unwrap_or_default())
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
            Self::Prompt(_, fields) => prompted(fields, entered),
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

fn prompted(fields: &[Field], entered: &Entered) -> Result<Reply, Complaint> {
    let is_no = pressed(entered)? == REJECT;
    let input = if is_no {
        None
    } else {
        field::value(fields, |field| {
            entered.get(&name_of(field)).map(str::to_owned)
        })?
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
    format!("in{}", field.pointer)
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
            let name = &request.name;
            return Err(Complaint::new(format!("Nothing was decided on `{name}`.")));
        };
        let message = entered.text(&nth("m", at));
        let missing = |what: &str| Complaint::new(format!("`{}`: {what}", request.name));
        decisions.push(match kind {
            DecisionKind::Approve => json!({"type": "approve"}),
            DecisionKind::Edit => {
                let text = entered.get(&nth("a", at)).unwrap_or_default();
                let args = parse_strict(text)
                    .map_err(|error| missing(&format!("the arguments are no JSON: {error}")))?;
                json!({"type": "edit", "edited_action": {"name": request.name, "args": args}})
            }
            DecisionKind::Reject => match message {
                Some(message) => json!({"type": "reject", "message": message}),
                None => json!({"type": "reject"}),
            },
            DecisionKind::Respond => {
                let message = message.ok_or_else(|| missing("write what is answered instead"))?;
                json!({"type": "respond", "message": message})
            }
            DecisionKind::Committed => match entered.text(&nth("r", at)) {
                Some(text) => {
                    let result = parse_strict(&text).map_err(|error| {
                        missing(&format!("what it returned is no JSON: {error}"))
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
                    .map_err(|error| missing(&format!("the answer is no JSON: {error}")))?;
                json!({"type": "answer", "value": value})
            }
        });
    }
    let text = json!({ "decisions": decisions }).to_string();
    let answer = Answer::parse(&text).map_err(|error| Complaint::new(error.to_string()))?;
    Ok(Reply::Decisions(answer))
}
