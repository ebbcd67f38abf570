//! What a person says to an interrupt.

use holdpoint_core::{
    Answer, Decided, Decision, InterruptKind, InterruptStatus, Prompt, ThreadKind, Timestamp,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Invalid, wire};
use crate::Question;

/// What a person says to an interrupt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Response {
    /// What was chosen of the interrupt's options.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "wire::absent_if_empty"
    )]
    pub option_id: Option<String>,
    /// What was put in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// Why, or what else there is to say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub comment: String,
    /// Whether it is approved. An approval or a review must say so; for other kinds, who says nothing does not object.
    /// What a manager returns always says it.
    #[serde(default)]
    pub approved: Option<bool>,
    /// When it was said. Set by the manager; what is given is ignored.
    #[serde(default, with = "wire::rfc3339_option")]
    pub timestamp: Option<Timestamp>,
    /// Who said it. The program that hands a response over answers for that; where it names nobody, it said so itself.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "wire::absent_if_empty"
    )]
    pub user_id: Option<String>,
    /// What the answering program wants to keep with it.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// Where an agent asks: what was decided on each action. Set by whoever shows a response; an answer is given as
    /// decisions by [`Reply::Decisions`].
    #[serde(default, skip_serializing_if = "Vec::is_empty", skip_deserializing)]
    pub decisions: Vec<Decided>,
}

/// What is said to a question of anybody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// In the words that every question understands.
    Response(Box<Response>),
    /// As decisions on what an agent asks about.
    Decisions(Answer),
}

impl Reply {
    /// As the engine takes it.
    ///
    /// # Errors
    ///
    /// It does not say what this question must be told.
    pub fn into_answer(self, question: &Question) -> Result<Answer, Invalid> {
        match self {
            Self::Decisions(answer) => Ok(answer),
            Self::Response(response) => response.to_decision(question).map(Answer::All),
        }
    }
}

impl Response {
    /// Yes.
    #[must_use]
    pub fn approve() -> Self {
        Self {
            approved: Some(true),
            ..Self::default()
        }
    }

    /// No, because of this.
    #[must_use]
    pub fn reject(comment: impl Into<String>) -> Self {
        Self {
            approved: Some(false),
            comment: comment.into(),
            ..Self::default()
        }
    }

    /// This is put in.
    #[must_use]
    pub fn input(input: impl Into<Value>) -> Self {
        Self {
            input: Some(input.into()),
            ..Self::approve()
        }
    }

    /// This option, and yes.
    #[must_use]
    pub fn choose(option_id: impl Into<String>) -> Self {
        Self {
            option_id: Some(option_id.into()),
            ..Self::approve()
        }
    }

    /// Said by this user.
    #[must_use]
    pub fn by(mut self, user_id: impl Into<String>) -> Self {
        self.user_id = Some(user_id.into());
        self
    }

    /// With this to say.
    #[must_use]
    pub fn comment(mut self, comment: impl Into<String>) -> Self {
        self.comment = comment.into();
        self
    }

    /// Whether it is approved.
    #[must_use]
    pub fn is_approved(&self) -> bool {
        self.approved == Some(true)
    }

    /// What it means as a decision on all that a question asks about.
    fn to_decision(&self, question: &Question) -> Result<Decision, Invalid> {
        let kind = question.interrupt.kind;
        if let Some(prompt) = question.prompt() {
            let value = self.to_value(kind, prompt)?;
            return Ok(Decision::Answer { value });
        }
        if self.option_id.is_some() {
            return Err(Invalid::new("`option_id`: there is nothing to choose"));
        }
        if !question.shown.value.fields.is_empty()
            && let Some(input) = &self.input
        {
            let value = input.clone();
            return Ok(Decision::Answer { value });
        }
        if self.input.is_some() {
            return Err(Invalid::new(
                "`input`: this question takes decisions, as in `{\"decisions\": [{\"type\": \"approve\"}]}`",
            ));
        }
        match self.approved {
            Some(true) => Ok(Decision::APPROVE),
            Some(false) => Ok(Decision::Reject {
                message: Some(self.comment.clone()).filter(|it| !it.is_empty()),
            }),
            None => Err(Invalid::new(
                "`approved` is missing: say `true` or `false`, or decide on each action, as in `{\"decisions\": [{\"type\": \"approve\"}]}`",
            )),
        }
    }

    /// How it is kept: what was said, without who and when, which the journal knows.
    ///
    /// # Errors
    ///
    /// It does not say whether it is approved, or chooses where there is nothing to choose.
    fn to_value(&self, kind: InterruptKind, prompt: &Prompt) -> Result<Value, Invalid> {
        let says_nothing =
            self.approved.is_none() && self.input.is_none() && self.option_id.is_none();
        if says_nothing && !prompt.options.is_empty() {
            let ids: Vec<&str> = prompt.options.iter().map(|it| it.id.as_str()).collect();
            let reason = format!("`option_id` is missing: one of {}", ids.join(", "));
            return Err(Invalid::new(reason));
        }
        if says_nothing && kind == InterruptKind::Input {
            return Err(Invalid::new(
                "`input` is missing: this asks for something to be put in",
            ));
        }
        let approved = match (self.approved, kind.wants_yes_or_no()) {
            (Some(approved), _) => approved,
            (None, false) => true,
            (None, true) => {
                return Err(Invalid::new(
                    "`approved` is missing: an approval or a review must be approved or not",
                ));
            }
        };
        let mut said = Map::new();
        said.insert("approved".to_owned(), approved.into());
        if let Some(option) = &self.option_id {
            if prompt.options.is_empty() {
                let reason = format!("`option_id` is `{option}`, but there is nothing to choose");
                return Err(Invalid::new(reason));
            }
            said.insert("option_id".to_owned(), option.as_str().into());
        }
        match &self.input {
            Some(input) => drop(said.insert("input".to_owned(), input.clone())),
            // Nothing is put in; that must fit, too.
            None if approved && prompt.input_schema.is_some() => {
                said.insert("input".to_owned(), Value::Null);
            }
            None => {}
        }
        if !self.comment.is_empty() {
            said.insert("comment".to_owned(), self.comment.as_str().into());
        }
        if !self.metadata.is_empty() {
            said.insert("metadata".to_owned(), self.metadata.clone().into());
        }
        Ok(said.into())
    }

    /// What was said to a question, through whichever door.
    pub(super) fn read(question: &Question) -> Option<Self> {
        let closed = question.closed.as_ref()?;
        if closed.decisions.is_empty() {
            return None;
        }
        let said = match question.decision() {
            Some(Decision::Approve { .. }) => Self::approve(),
            Some(Decision::Reject { message }) => Self::reject(message.clone().unwrap_or_default()),
            Some(Decision::Answer { value }) => Self::from_value(question.interrupt.kind, value),
            Some(
                Decision::Edit { .. }
                | Decision::Respond { .. }
                | Decision::Committed { .. }
                | Decision::NotCommitted
                | Decision::Compensate,
            )
            | None => Self {
                approved: Some(question.status == InterruptStatus::Resolved),
                ..Self::default()
            },
        };
        let decisions = match question.asker {
            ThreadKind::Agent => closed.decisions.clone(),
            ThreadKind::Outside | ThreadKind::Grant => Vec::new(),
        };
        Some(Self {
            timestamp: Some(closed.at),
            user_id: Some(closed.by.name.clone()),
            decisions,
            ..said
        })
    }

    fn from_value(kind: InterruptKind, value: &Value) -> Self {
        let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let approved = value.get("approved").and_then(Value::as_bool);
        let input = value.get("input");
        // What says nothing of itself is what was put in.
        let whole = approved.is_none() && input.is_none() && text("option_id").is_none();
        let input = if whole { Some(value) } else { input };
        let metadata = value.get("metadata").and_then(Value::as_object);
        Self {
            option_id: text("option_id"),
            input: input.filter(|input| !input.is_null()).cloned(),
            comment: text("comment").unwrap_or_default(),
            // Silence is no approval where one is asked for.
            approved: Some(approved.unwrap_or(!kind.wants_yes_or_no())),
            timestamp: None,
            user_id: None,
            metadata: metadata.cloned().unwrap_or_default(),
            decisions: Vec::new(),
        }
    }
}
