//! What a person may say, and how an answer is read.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{ActionId, GrantTerms, InterruptId, Matches, Params, Scope, Span};

/// The kinds of decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionKind {
    /// Do it as it stands.
    Approve,
    /// Do it with other arguments.
    Edit,
    /// Do not do it.
    Reject,
    /// Do not do it; this is the tool's answer instead.
    Respond,
    /// An unknown effect: it happened, with this result.
    Committed,
    /// An unknown effect: it did not happen; try again with the same key.
    NotCommitted,
    /// An unknown effect: undo it by the tool's own compensation.
    Compensate,
    /// A question: this is the answer.
    Answer,
}

impl DecisionKind {
    /// What `interrupt_on` may list.
    pub const CONFIGURABLE: [Self; 4] = [Self::Approve, Self::Edit, Self::Reject, Self::Respond];

    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Edit => "edit",
            Self::Reject => "reject",
            Self::Respond => "respond",
            Self::Committed => "committed",
            Self::NotCommitted => "not_committed",
            Self::Compensate => "compensate",
            Self::Answer => "answer",
        }
    }

    /// The kind with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [
            Self::Approve,
            Self::Edit,
            Self::Reject,
            Self::Respond,
            Self::Committed,
            Self::NotCommitted,
            Self::Compensate,
            Self::Answer,
        ]
        .into_iter()
        .find(|kind| kind.as_str() == name)
    }
}

impl fmt::Display for DecisionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The decisions that one question allows: at least one, none twice, in the order they are offered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<DecisionKind>", into = "Vec<DecisionKind>")]
pub struct Allowed(Vec<DecisionKind>);

impl Allowed {
    /// What `interrupt_on: true` means.
    #[must_use]
    pub fn standard() -> Self {
        Self(vec![
            DecisionKind::Approve,
            DecisionKind::Edit,
            DecisionKind::Reject,
        ])
    }

    /// These decisions.
    ///
    /// # Errors
    ///
    /// An empty list, or a decision that is listed twice.
    pub fn new(kinds: Vec<DecisionKind>) -> Result<Self, BadAllowed> {
        if kinds.is_empty() {
            return Err(BadAllowed::Empty);
        }
        for (at, kind) in kinds.iter().enumerate() {
            if kinds[..at].contains(kind) {
                return Err(BadAllowed::Twice(*kind));
            }
        }
        Ok(Self(kinds))
    }

    /// Whether this decision may be made.
    #[must_use]
    pub fn contains(&self, kind: DecisionKind) -> bool {
        self.0.contains(&kind)
    }

    /// The decisions in their order.
    #[must_use]
    pub fn as_slice(&self) -> &[DecisionKind] {
        &self.0
    }
}

impl fmt::Display for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, kind) in self.0.iter().enumerate() {
            write!(f, "{}{kind}", if at == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

/// Why a list of decisions is not one that a question can allow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadAllowed {
    /// Nobody could ever answer.
    #[error("no decision is allowed; list at least one of approve, edit, reject, respond")]
    Empty,
    /// Listed twice.
    #[error("`{0}` is listed twice")]
    Twice(DecisionKind),
}

impl TryFrom<Vec<DecisionKind>> for Allowed {
    type Error = BadAllowed;

    fn try_from(kinds: Vec<DecisionKind>) -> Result<Self, BadAllowed> {
        Self::new(kinds)
    }
}

impl From<Allowed> for Vec<DecisionKind> {
    fn from(allowed: Allowed) -> Self {
        allowed.0
    }
}

/// One decision about one action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Decision {
    /// Do it as it stands.
    Approve {
        /// And let further calls like it pass without asking.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        grant: Option<GrantTerms>,
    },
    /// Do it with these arguments instead. They replace the model's; they are not merged.
    Edit {
        /// The call to make.
        edited_action: EditedAction,
    },
    /// Do not do it.
    Reject {
        /// Why; the model reads it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// Do not do it; the model gets this as the tool's answer.
    Respond {
        /// The answer.
        message: String,
    },
    /// It happened.
    Committed {
        /// What the call returned.
        #[serde(default)]
        result: Value,
    },
    /// It did not happen.
    NotCommitted,
    /// Undo it.
    Compensate,
    /// The answer to a question.
    Answer {
        /// What whoever asked gets.
        value: Value,
    },
}

/// The call that a reviewer wants instead of the model's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EditedAction {
    /// The tool.
    pub name: String,
    /// All of its arguments.
    pub args: Params,
}

impl Decision {
    /// Do it as it stands.
    pub const APPROVE: Self = Self::Approve { grant: None };

    /// Which kind it is.
    #[must_use]
    pub const fn kind(&self) -> DecisionKind {
        match self {
            Self::Approve { .. } => DecisionKind::Approve,
            Self::Edit { .. } => DecisionKind::Edit,
            Self::Reject { .. } => DecisionKind::Reject,
            Self::Respond { .. } => DecisionKind::Respond,
            Self::Committed { .. } => DecisionKind::Committed,
            Self::NotCommitted => DecisionKind::NotCommitted,
            Self::Compensate => DecisionKind::Compensate,
            Self::Answer { .. } => DecisionKind::Answer,
        }
    }
}

/// An answer to a whole interrupt, as a door received it: a decision for each of its actions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// In the order of the interrupt's actions.
    ByPosition(Vec<Decision>),
    /// By action id, in any order.
    ById(Vec<(ActionId, Decision)>),
    /// The same decision for every action, however many there are.
    All(Decision),
}

/// Answers to one thread, as a door received them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answers {
    /// To the only interrupt that is pending.
    Only(Answer),
    /// By interrupt, in any order; the others stay pending.
    ByInterrupt(Vec<(InterruptId, Answer)>),
}

impl Answers {
    /// Reads what [`Answer::parse`] reads, or a map from interrupt ids to such answers or single decisions.
    ///
    /// # Errors
    ///
    /// Says which answer is wrong, and what would be right.
    pub fn parse(text: &str) -> Result<Self, BadAnswer> {
        let value =
            crate::params::parse_strict(text).map_err(|error| BadAnswer(error.to_string()))?;
        let Value::Object(map) = &value else {
            return Answer::from_value(&value).map(Self::Only);
        };
        let named = |key: &String| key.starts_with(InterruptId::PREFIX);
        if !map.keys().any(named) {
            if !map.contains_key("decisions") {
                return bad(
                    "expected a list of decisions, an object with the one key `decisions`, or a map from interrupt \
                     ids (`int_…`) to either or to single decisions",
                );
            }
            return Answer::from_value(&value).map(Self::Only);
        }
        let mut answers = Vec::with_capacity(map.len());
        for (key, value) in map {
            let interrupt = key.parse().map_err(|error| BadAnswer(format!("{error}")))?;
            let is_decision = value.get("type").is_some();
            let answer = if is_decision {
                Answer::from_value(&Value::Array(vec![value.clone()]))
            } else {
                Answer::from_value(value)
            };
            let answer = answer.map_err(|BadAnswer(error)| BadAnswer(format!("{key}: {error}")))?;
            answers.push((interrupt, answer));
        }
        Ok(Self::ByInterrupt(answers))
    }
}

/// An answer cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadAnswer(String);

fn bad<T>(message: impl Into<String>) -> Result<T, BadAnswer> {
    Err(BadAnswer(message.into()))
}

impl Answer {
    /// Reads `[decision, …]` or `{"decisions": [decision, …]}`, strictly: an unknown key is an error, not a guess.
    ///
    /// # Errors
    ///
    /// Says which decision is wrong, and what would be right.
    pub fn parse(text: &str) -> Result<Self, BadAnswer> {
        let value =
            crate::params::parse_strict(text).map_err(|error| BadAnswer(error.to_string()))?;
        Self::from_value(&value)
    }

    /// As [`Answer::parse`], for a value that is already parsed.
    ///
    /// # Errors
    ///
    /// As [`Answer::parse`].
    pub fn from_value(value: &Value) -> Result<Self, BadAnswer> {
        let items = match value {
            Value::Array(items) => items,
            Value::Object(map) if map.len() == 1 => match map.get("decisions") {
                Some(Value::Array(items)) => items,
                Some(_) => return bad("`decisions` must be a list of decisions"),
                None => {
                    return bad(
                        "expected a list of decisions, or an object with the one key `decisions`",
                    );
                }
            },
            Value::Object(_)
            | Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_) => {
                return bad(
                    "expected a list of decisions, or an object with the one key `decisions`",
                );
            }
        };
        let mut decisions = Vec::with_capacity(items.len());
        for (at, item) in items.iter().enumerate() {
            let read = read_decision(item)
                .map_err(|BadAnswer(error)| BadAnswer(format!("decision {}: {error}", at + 1)))?;
            decisions.push(read);
        }
        let named = decisions.iter().filter(|(id, _)| id.is_some()).count();
        if named == 0 {
            return Ok(Self::ByPosition(
                decisions
                    .into_iter()
                    .map(|(_, decision)| decision)
                    .collect(),
            ));
        }
        if named < decisions.len() {
            return bad("give an `action_id` with every decision or with none");
        }
        let by_id = decisions
            .into_iter()
            .filter_map(|(id, decision)| Some((id?, decision)))
            .collect();
        Ok(Self::ById(by_id))
    }
}

fn read_decision(value: &Value) -> Result<(Option<ActionId>, Decision), BadAnswer> {
    let Value::Object(map) = value else {
        return bad("expected an object such as {\"type\":\"approve\"}");
    };
    let name = match map.get("type") {
        Some(Value::String(name)) => name.as_str(),
        Some(_) => return bad("`type` must be a string"),
        None => return bad("`type` is missing; say approve, edit, reject or respond"),
    };
    let Some(kind) = DecisionKind::from_name(name) else {
        return bad(format!(
            "`{name}` is not a decision; use approve, edit, reject or respond (for an unknown effect: committed, not_committed or compensate)"
        ));
    };
    let known: &[&str] = match kind {
        DecisionKind::Approve => &["grant"],
        DecisionKind::NotCommitted | DecisionKind::Compensate => &[],
        DecisionKind::Answer => &["value"],
        DecisionKind::Edit => &["edited_action", "editedAction"],
        DecisionKind::Reject | DecisionKind::Respond => &["message"],
        DecisionKind::Committed => &["result"],
    };
    if let Some(key) = map.keys().find(|key| {
        !["type", "action_id"].contains(&key.as_str()) && !known.contains(&key.as_str())
    }) {
        return bad(format!(
            "`{key}` does not belong to a decision of type `{name}`"
        ));
    }
    let id = match map.get("action_id") {
        None => None,
        Some(Value::String(id)) => Some(
            id.parse()
                .map_err(|error| BadAnswer(format!("`action_id`: {error}")))?,
        ),
        Some(_) => return bad("`action_id` must be a string"),
    };
    let message = match map.get("message") {
        None | Some(Value::Null) => None,
        Some(Value::String(message)) => Some(message.clone()),
        Some(_) => return bad("`message` must be a string"),
    };
    let decision = match kind {
        DecisionKind::Approve => Decision::Approve {
            grant: map.get("grant").map(read_grant).transpose()?,
        },
        DecisionKind::Answer => match map.get("value") {
            Some(value) => Decision::Answer {
                value: value.clone(),
            },
            None => return bad("a decision of type `answer` needs a `value`"),
        },
        DecisionKind::Edit => Decision::Edit {
            edited_action: read_edit(map)?,
        },
        DecisionKind::Reject => Decision::Reject { message },
        DecisionKind::Respond => match message {
            Some(message) => Decision::Respond { message },
            None => {
                return bad(
                    "a decision of type `respond` needs a `message`: it becomes the tool's answer",
                );
            }
        },
        DecisionKind::Committed => Decision::Committed {
            result: map.get("result").cloned().unwrap_or_default(),
        },
        DecisionKind::NotCommitted => Decision::NotCommitted,
        DecisionKind::Compensate => Decision::Compensate,
    };
    Ok((id, decision))
}

fn read_grant(value: &Value) -> Result<GrantTerms, BadAnswer> {
    let Value::Object(map) = value else {
        return bad("`grant` must be an object such as {\"scope\":\"thread\",\"match\":\"tool\"}");
    };
    let known = ["scope", "match", "expires_in", "expiresIn", "uses"];
    if let Some(key) = map.keys().find(|key| !known.contains(&key.as_str())) {
        return bad(format!("`{key}` does not belong to a `grant`"));
    }
    let word = |key: &str, words: &[&str]| match map.get(key) {
        Some(Value::String(word)) if words.contains(&word.as_str()) => Ok(word.clone()),
        Some(_) | None => bad(format!("`grant.{key}` must be one of {}", words.join(", "))),
    };
    let scope = match word("scope", &["thread", "agent"])?.as_str() {
        "agent" => Scope::Agent,
        _ => Scope::Thread,
    };
    let matches = match word("match", &["tool", "args", "all"])?.as_str() {
        "tool" => Matches::Tool,
        "args" => Matches::Args,
        _ => Matches::All,
    };
    if (scope, matches) == (Scope::Agent, Matches::All) {
        return bad("a `grant` for `all` calls is good for one thread only; say scope `thread`");
    }
    let expires_in = match (map.get("expires_in"), map.get("expiresIn")) {
        (None, None) => None,
        (Some(_), Some(_)) => return bad("give `expires_in` or `expiresIn`, not both"),
        (Some(text), None) | (None, Some(text)) => {
            let span = text.as_str().and_then(Span::parse);
            let span = span.filter(|span| *span > Span::ZERO);
            Some(span.map_or_else(
                || bad("`grant.expires_in` must be a length of time such as `15m`"),
                Ok,
            )?)
        }
    };
    let uses = match map.get("uses") {
        None => None,
        Some(uses) => match uses.as_u64().and_then(|uses| u32::try_from(uses).ok()) {
            Some(uses) if uses > 0 => Some(uses),
            Some(_) | None => return bad("`grant.uses` must be a whole number of at least 1"),
        },
    };
    Ok(GrantTerms {
        scope,
        matches,
        expires_in,
        uses,
    })
}

fn read_edit(map: &serde_json::Map<String, Value>) -> Result<EditedAction, BadAnswer> {
    let edited = match (map.get("edited_action"), map.get("editedAction")) {
        (Some(_), Some(_)) => {
            return bad("both `edited_action` and `editedAction` are given; send one of them");
        }
        (Some(edited), None) | (None, Some(edited)) => edited,
        (None, None) => {
            return bad(
                "a decision of type `edit` needs `edited_action`: {\"name\":…, \"args\":{…}}",
            );
        }
    };
    let Value::Object(edited) = edited else {
        return bad("`edited_action` must be an object: {\"name\":…, \"args\":{…}}");
    };
    if let Some(key) = edited
        .keys()
        .find(|key| !["name", "args"].contains(&key.as_str()))
    {
        return bad(format!(
            "`{key}` does not belong to `edited_action`; it has `name` and `args`"
        ));
    }
    let Some(Value::String(name)) = edited.get("name") else {
        return bad("`edited_action.name` is missing: name the tool");
    };
    let Some(args) = edited.get("args") else {
        return bad(
            "`edited_action.args` is missing: give all arguments, they replace the model's",
        );
    };
    let args = Params::from_value(args)
        .map_err(|error| BadAnswer(format!("`edited_action.args`: {error}")))?;
    Ok(EditedAction {
        name: name.clone(),
        args,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_and_both_spellings_are_read() {
        let plain =
            Answer::parse(r#"[{"type":"approve"},{"type":"reject","message":"no"}]"#).unwrap();
        let expected = Answer::ByPosition(vec![
            Decision::APPROVE,
            Decision::Reject {
                message: Some("no".to_owned()),
            },
        ]);
        assert_eq!(plain, expected);
        let snake = Answer::parse(
            r#"{"decisions":[{"type":"edit","edited_action":{"name":"t","args":{"a":1}}}]}"#,
        );
        let camel = Answer::parse(
            r#"{"decisions":[{"type":"edit","editedAction":{"name":"t","args":{"a":1}}}]}"#,
        );
        assert_eq!(snake.unwrap(), camel.unwrap());
    }

    #[test]
    fn a_malformed_answer_says_which_decision_and_what_would_be_right() {
        let cases = [
            ("nonsense", "not valid JSON"),
            ("\"yes\"", "expected a list of decisions"),
            (r#"{"decision":[]}"#, "expected a list of decisions"),
            (r#"{"decisions":{}}"#, "must be a list"),
            (
                r#"[{"type":"approve"},7]"#,
                "decision 2: expected an object",
            ),
            (r#"[{"kind":"approve"}]"#, "decision 1: `type` is missing"),
            (
                r#"[{"type":"aprove"}]"#,
                "decision 1: `aprove` is not a decision",
            ),
            (
                r#"[{"type":"approve","message":"x"}]"#,
                "`message` does not belong to a decision of type `approve`",
            ),
            (r#"[{"type":"respond"}]"#, "needs a `message`"),
            (r#"[{"type":"edit"}]"#, "needs `edited_action`"),
            (
                r#"[{"type":"edit","edited_action":{"args":{}}}]"#,
                "`edited_action.name` is missing",
            ),
            (
                r#"[{"type":"edit","edited_action":{"name":"t"}}]"#,
                "`edited_action.args` is missing",
            ),
            (
                r#"[{"type":"edit","edited_action":{"name":"t","args":[1]}}]"#,
                "must be a JSON object",
            ),
            (
                r#"[{"type":"edit","edited_action":{"name":"t","args":{}},"editedAction":{"name":"t","args":{}}}]"#,
                "send one of them",
            ),
            (
                r#"[{"type":"edit","edited_action":{"name":"t","args":{"n":9007199254740993}}}]"#,
                "beyond 2^53",
            ),
            (
                r#"[{"type":"approve","action_id":"act_1"}]"#,
                "is not an id",
            ),
            (
                r#"[{"type":"approve","action_id":"act_00000000000000000000000000000001"},{"type":"approve"}]"#,
                "with every decision or with none",
            ),
            (r#"[{"type":"approve","type":"reject"}]"#, "appears twice"),
        ];
        for (text, expected) in cases {
            let error = Answer::parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn a_question_that_nobody_could_answer_cannot_be_built() {
        assert_eq!(Allowed::new(vec![]), Err(BadAllowed::Empty));
        assert_eq!(
            Allowed::new(vec![DecisionKind::Approve, DecisionKind::Approve]),
            Err(BadAllowed::Twice(DecisionKind::Approve))
        );
        assert!(serde_json::from_str::<Allowed>("[]").is_err());
    }
}
