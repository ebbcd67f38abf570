//! What is wrong with an answer, place by place, in words for whoever fills in a form.
//!
//! The rules are those by which an answer is taken; only the words are others.

use holdpoint_core::{Answer, Decision, Prompt, Unfit};
use jsonschema::{
    ValidationError,
    error::{TypeKind, ValidationErrorKind},
};
use serde_json::Value;

use super::Reply;
use crate::{Question, deep};

/// How many problems with what is put in are told at once.
const TOLD: usize = 20;

/// What has to be mended in an answer, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mending {
    /// Where.
    pub place: Place,
    /// What is wrong there, as in “must be at least 0”.
    pub words: String,
}

/// A place in an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// All of it.
    Whole,
    /// What is chosen.
    Choice,
    /// What is put in, and where in that, as a JSON Pointer.
    Input(String),
}

impl Question {
    /// What has to be mended in this reply before it could be taken as an answer to a question of a program or a tool;
    /// nothing where it fits, and for other questions.
    #[must_use]
    pub fn mendings(&self, reply: &Reply) -> Vec<Mending> {
        let mending = |place, words: &str| {
            vec![Mending {
                place,
                words: words.to_owned(),
            }]
        };
        let Some(prompt) = self.prompt() else {
            return Vec::new();
        };
        let value = match reply.clone().into_answer(self) {
            Ok(Answer::All(Decision::Answer { value })) => value,
            Ok(Answer::All(_) | Answer::ByPosition(_) | Answer::ById(_)) => return Vec::new(),
            Err(invalid) => return mending(Place::Whole, &invalid.into_reason()),
        };
        match prompt.misfit(self.interrupt.kind, &value) {
            Some(Unfit::Unsaid) => mending(Place::Whole, "say yes or no"),
            Some(Unfit::NothingChosen { .. } | Unfit::NoOption { .. }) => {
                mending(Place::Choice, "choose one of these")
            }
            Some(Unfit::NothingPutIn) => mending(Place::Input(String::new()), "must be filled in"),
            None => each_problem(prompt, &value, TOLD, &told)
                .unwrap_or_else(|why| mending(Place::Whole, &why)),
        }
    }
}

/// What of an answer does not fit the schema of what is put in.
///
/// # Errors
///
/// The schema is none.
pub(crate) fn each_problem<T>(
    prompt: &Prompt,
    value: &Value,
    most: usize,
    tell: &dyn Fn(&ValidationError<'_>) -> T,
) -> Result<Vec<T>, String> {
    let Some(schema) = &prompt.input_schema else {
        return Ok(Vec::new());
    };
    // Whoever says no need not put anything in.
    if value.get("approved") == Some(&Value::Bool(false)) && value.get("input").is_none() {
        return Ok(Vec::new());
    }
    // What is put in stands under `input` where the answer says more than that, and is the answer itself otherwise.
    let input = value.get("input").unwrap_or(value);
    let validator = jsonschema::validator_for(schema)
        .map_err(|error| format!("the question's schema is not valid: {error}"))?;
    if validator.is_valid(input) {
        return Ok(Vec::new());
    }
    deep::explainable(schema, input)
        .map_err(|why| format!("what is put in does not fit; {why}"))?;
    let found = validator.iter_errors(input).take(most);
    Ok(found.map(|error| tell(&error)).collect())
}

fn told(error: &ValidationError<'_>) -> Mending {
    let mut pointer = error.instance_path().as_str().to_owned();
    if let ValidationErrorKind::Required { property } = error.kind() {
        let name = property.as_str().unwrap_or_default();
        pointer = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
    }
    Mending {
        place: Place::Input(pointer),
        words: words(error),
    }
}

fn words(error: &ValidationError<'_>) -> String {
    use ValidationErrorKind as Kind;
    let several = |limit: u64, one: &str, many: &str| {
        let noun = if limit == 1 { one } else { many };
        format!("{limit} {noun}")
    };
    let characters = |limit: u64| several(limit, "character", "characters");
    let entries = |limit: u64| several(limit, "entry", "entries");
    match error.kind() {
        Kind::Required { .. } => "must be filled in".to_owned(),
        Kind::Minimum { limit } => format!("must be at least {limit}"),
        Kind::Maximum { limit } => format!("must be at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("must be more than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("must be less than {limit}"),
        Kind::MultipleOf { multiple_of } => format!("must be a multiple of {multiple_of}"),
        Kind::MinLength { limit } => format!("must have at least {}", characters(*limit)),
        Kind::MaxLength { limit } => format!("must have at most {}", characters(*limit)),
        Kind::MinItems { limit } => format!("must have at least {}", entries(*limit)),
        Kind::MaxItems { limit } => format!("must have at most {}", entries(*limit)),
        Kind::UniqueItems => "must not have the same entry twice".to_owned(),
        Kind::Pattern { pattern } => format!("must have the form {pattern}"),
        Kind::Format { format } => format!("must be a valid {format}"),
        Kind::Enum { options } => format!("must be one of {options}"),
        Kind::Constant { expected_value } => format!("must be {expected_value}"),
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            format!("has what is not asked for: {}", unexpected.join(", "))
        }
        Kind::AnyOf { .. } | Kind::OneOfNotValid { .. } => {
            "fits none of the forms that are possible here".to_owned()
        }
        Kind::OneOfMultipleValid { .. } => {
            "fits more than one of the forms that are possible here".to_owned()
        }
        Kind::Type {
            kind: TypeKind::Single(kind),
        } => match kind.to_string().as_str() {
            "string" => "must be a text".to_owned(),
            "integer" => "must be a whole number".to_owned(),
            "number" => "must be a number".to_owned(),
            "boolean" => "must be yes or no".to_owned(),
            "array" => "must be a list".to_owned(),
            "object" => "must be an object".to_owned(),
            _ => error.to_string(),
        },
        // What people hardly come across on a page is said in the validator's words.
        Kind::Type { .. }
        | Kind::AdditionalItems { .. }
        | Kind::BacktrackLimitExceeded { .. }
        | Kind::RegexEngineFailure { .. }
        | Kind::Contains
        | Kind::ContentEncoding { .. }
        | Kind::ContentMediaType { .. }
        | Kind::Custom { .. }
        | Kind::FalseSchema
        | Kind::FromUtf8 { .. }
        | Kind::MaxProperties { .. }
        | Kind::MinProperties { .. }
        | Kind::Not { .. }
        | Kind::PropertyNames { .. }
        | Kind::UnevaluatedItems { .. }
        | Kind::Referencing(_) => error.to_string(),
    }
}
