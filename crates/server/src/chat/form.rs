//! Every question as a form of a chat, and a filled-in form as an answer.
//!
//! The chat API knows forms of three kinds of fields. What the model asks in plain words has its own form; every other
//! question gets one here, if it can be answered that way at all. What cannot is answered through the run.

use holdpoint_core::{
    Answer, Ask, Decision, DecisionKind, FieldKind, Filled, InputField, Interrupt, InterruptKind,
    Prompt, Subject,
};
use serde_json::{Map, Value, json};

use crate::problem::Problem;

const CONFIRM: &str = "confirm";
const DECISION: &str = "decision";
const MESSAGE: &str = "message";
const OPTION: &str = "option_id";
const VALUE: &str = "value";

/// The form of a question; `None` if it cannot be answered in a chat.
pub(crate) fn fields(interrupt: &Interrupt) -> Option<Vec<InputField>> {
    let first = interrupt.asks.first()?;
    match &first.subject {
        Subject::Confirmation { fields, .. } => Some(fields.clone()),
        Subject::Question { prompt, .. } => about_question(interrupt.kind, prompt),
        Subject::Model => yes_or_no(&interrupt.asks, "Try again"),
        Subject::Node { .. } | Subject::Restored { .. } => yes_or_no(&interrupt.asks, "Go on"),
        Subject::Action { .. } => {
            yes_or_no(&interrupt.asks, "Approve").or_else(|| selection(&interrupt.asks, &DECISIONS))
        }
        Subject::Effect { .. } => selection(&interrupt.asks, &DECISIONS),
        // Whoever chats is who is not to hear it, so what it is cannot be approved here.
        Subject::Output { .. } => selection(&interrupt.asks, &[DecisionKind::Reject]),
    }
}

/// What a filled-in form says.
///
/// # Errors
///
/// It does not fit the form, or there is none.
pub(crate) fn answer(interrupt: &Interrupt, input: &Map<String, Value>) -> Result<Answer, Problem> {
    let Some(fields) = fields(interrupt) else {
        return Err(Problem::new(
            "use_runs_api",
            "this question has no form; answer it with `POST /api/v1/runs/{run_id}/resume`",
        )
        .with(json!({"run_id": interrupt.run, "interrupt_id": interrupt.id})));
    };
    let filled = Decision::Answer {
        value: Value::Object(input.clone()),
    };
    let subject = interrupt.asks.first().map(|ask| &ask.subject);
    if let Some(Subject::Confirmation { .. }) = subject {
        return Ok(Answer::All(filled));
    }
    if let Err(bad) = Filled::new(&fields, &filled) {
        return Err(Problem::new("misfit", bad.to_string())
            .with(json!({"reason": "field", "name": bad.name, "problem": bad.problem})));
    }
    let text = |name: &str| input.get(name).and_then(Value::as_str).map(str::to_owned);
    if let Some(Subject::Question { .. }) = subject {
        return Ok(Answer::All(Decision::Answer {
            value: question_value(input),
        }));
    }
    let kind = match input.get(CONFIRM) {
        Some(Value::Bool(true)) => DecisionKind::Approve,
        Some(_) => DecisionKind::Reject,
        None => text(DECISION)
            .and_then(|name| DecisionKind::from_name(&name))
            .unwrap_or(DecisionKind::Reject),
    };
    let message = text(MESSAGE).filter(|message| !message.is_empty());
    Ok(Answer::All(match kind {
        DecisionKind::Approve => Decision::APPROVE,
        DecisionKind::Respond => Decision::Respond {
            message: message.unwrap_or_default(),
        },
        DecisionKind::Committed => Decision::Committed {
            result: message.map_or(Value::Null, Value::String),
        },
        DecisionKind::NotCommitted => Decision::NotCommitted,
        DecisionKind::Compensate => Decision::Compensate,
        DecisionKind::Reject | DecisionKind::Edit | DecisionKind::Answer => {
            Decision::Reject { message }
        }
    }))
}

fn field(name: &str, kind: FieldKind, label: &str) -> InputField {
    InputField {
        name: name.to_owned(),
        kind,
        label: label.to_owned(),
        required: true,
        options: Vec::new(),
    }
}

fn all_allow(asks: &[Ask], kind: DecisionKind) -> bool {
    asks.iter().all(|ask| ask.allowed.contains(kind))
}

/// One field for yes and no, where both may be said.
fn yes_or_no(asks: &[Ask], label: &str) -> Option<Vec<InputField>> {
    let both = [DecisionKind::Approve, DecisionKind::Reject];
    both.iter()
        .all(|kind| all_allow(asks, *kind))
        .then(|| vec![InputField::confirm(CONFIRM, label)])
}

/// The decisions that need no more than a text.
const DECISIONS: [DecisionKind; 6] = [
    DecisionKind::Approve,
    DecisionKind::Reject,
    DecisionKind::Respond,
    DecisionKind::Committed,
    DecisionKind::NotCommitted,
    DecisionKind::Compensate,
];

/// One field for those of these decisions that are allowed, and one for a text.
fn selection(asks: &[Ask], kinds: &[DecisionKind]) -> Option<Vec<InputField>> {
    let kinds = kinds.iter().filter(|kind| all_allow(asks, **kind));
    let options: Vec<String> = kinds.map(|kind| kind.as_str().to_owned()).collect();
    if options.is_empty() {
        return None;
    }
    let decision = InputField {
        options,
        ..field(DECISION, FieldKind::Select, "Decision")
    };
    let message = InputField {
        required: false,
        ..field(MESSAGE, FieldKind::Text, "Message")
    };
    Some(vec![decision, message])
}

/// What a tool's own code asks, where a form can hold the answer.
fn about_question(kind: InterruptKind, prompt: &Prompt) -> Option<Vec<InputField>> {
    let label = if prompt.title.is_empty() {
        "Answer"
    } else {
        &prompt.title
    };
    let choice = || InputField {
        options: prompt.options.iter().map(|it| it.id.clone()).collect(),
        ..field(OPTION, FieldKind::Select, label)
    };
    let takes_text = prompt
        .input_schema
        .as_ref()
        .is_none_or(|schema| schema.get("type") == Some(&json!("string")));
    match (kind.wants_yes_or_no(), prompt.options.is_empty()) {
        (true, true) if prompt.input_schema.is_none() => {
            Some(vec![InputField::confirm(CONFIRM, label)])
        }
        // Whoever says no need not choose, although it is required.
        (true, false) if prompt.input_schema.is_none() => {
            Some(vec![InputField::confirm(CONFIRM, label), choice()])
        }
        (false, false) => Some(vec![choice()]),
        (false, true) if takes_text => Some(vec![field(VALUE, FieldKind::Text, label)]),
        (_, _) => None,
    }
}

fn question_value(input: &Map<String, Value>) -> Value {
    if let Some(value) = input.get(VALUE) {
        return value.clone();
    }
    let mut answer = Map::new();
    if let Some(approved) = input.get(CONFIRM) {
        answer.insert("approved".to_owned(), approved.clone());
    }
    if let Some(option) = input.get(OPTION) {
        answer.insert(OPTION.to_owned(), option.clone());
    }
    Value::Object(answer)
}
