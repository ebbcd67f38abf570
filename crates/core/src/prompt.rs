//! A question of a tool's own code, or of a program outside.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Allowed, DecisionKind, Digest, InterruptKind, Span};

/// What is asked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompt {
    /// In a few words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// In more words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// What the person needs to see.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub data: Value,
    /// What they may choose from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<Choice>,
    /// The JSON Schema of what they may put in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Value>,
    /// How long it stays open, for whoever wants to see it as it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// The position of the asking program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint_id: Option<String>,
    /// What the asking program wants to keep with it.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// Something to choose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// What an answer names.
    pub id: String,
    /// What the person reads.
    pub label: String,
    /// In more words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Which one a door may show as chosen. Nothing is ever chosen by itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_default: bool,
}

/// Why something is no answer to a question, whatever may be put in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// It says neither yes nor no.
    #[error(
        r#"`approved` must be `true` or `false`, as in `{{"approved": false, "reason": "…"}}`"#
    )]
    Unsaid,
    /// It chooses none of the options.
    #[error("nothing is chosen; {}", form(.of))]
    NothingChosen {
        /// Their ids.
        of: Vec<String>,
    },
    /// It chooses something else.
    #[error("`option_id` {chosen} is none of the options; {}", form(.of))]
    NoOption {
        /// What, as JSON.
        chosen: String,
        /// The ids of the options.
        of: Vec<String>,
    },
    /// It puts nothing in where that is what is asked for.
    #[error(r#"nothing is put in; answer as in `{{"input": "…"}}`"#)]
    NothingPutIn,
}

/// How one of these is chosen.
fn form(ids: &[String]) -> String {
    let first = ids.first().map_or("", String::as_str);
    let all = ids.join(", ");
    format!(r#"choose as in `{{"option_id": "{first}"}}`, of: {all}"#)
}

impl Prompt {
    /// The longest question, as JSON. It is part of the head, which every append writes.
    pub const MAX_LEN: usize = 16 * 1_024;

    /// Tells this question from others under the same name.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let text = serde_json_canonicalizer::to_string(self).unwrap_or_default();
        Digest::of(text.as_bytes())
    }

    /// What may be said to it.
    pub(crate) fn allowed(&self, kind: InterruptKind) -> Allowed {
        let mut kinds = vec![DecisionKind::Answer];
        // Where yes and no are answers, they can be said so.
        if kind.wants_yes_or_no() {
            kinds.extend([DecisionKind::Approve, DecisionKind::Reject]);
        }
        // INVARIANT: the list is neither empty nor repetitive.
        Allowed::new(kinds).unwrap_or_else(|_| Allowed::standard())
    }

    /// What is put in by an answer: what stands under `input` where the answer says more than that, and the answer itself
    /// otherwise.
    #[must_use]
    pub fn put_in(value: &Value) -> Option<&Value> {
        let says_more = ["approved", "option_id", "input"]
            .iter()
            .any(|name| value.get(name).is_some());
        let whole = Some(value).filter(|_| !says_more);
        value.get("input").or(whole).filter(|it| !it.is_null())
    }

    /// Why this is no answer to it. Whether what is put in fits the schema is not looked at here.
    #[must_use]
    pub fn misfit(&self, kind: InterruptKind, value: &Value) -> Option<Unfit> {
        let approved = value.get("approved");
        match approved {
            // Whoever says no need not choose, nor put anything in; but nobody chooses what is not there.
            Some(Value::Bool(false)) => return self.choice_misfit(value.get("option_id")?),
            Some(Value::Bool(true)) => {}
            None if !kind.wants_yes_or_no() => {}
            Some(_) | None => return Some(Unfit::Unsaid),
        }
        if !self.options.is_empty() {
            return match value.get("option_id") {
                Some(chosen) => self.choice_misfit(chosen),
                None => Some(Unfit::NothingChosen { of: self.ids() }),
            };
        }
        // Where there is a schema, that says what may be left out.
        let is_wanted = kind == InterruptKind::Input && self.input_schema.is_none();
        let is_nothing = |it: &Value| {
            it.as_str().is_some_and(|text| text.trim().is_empty())
                || it.as_object().is_some_and(Map::is_empty)
        };
        let is_missing = Self::put_in(value).is_none_or(is_nothing);
        (is_wanted && is_missing).then_some(Unfit::NothingPutIn)
    }

    fn choice_misfit(&self, chosen: &Value) -> Option<Unfit> {
        let ids = self.ids();
        let id = chosen.as_str();
        if ids.is_empty() || id.is_some_and(|id| ids.iter().any(|it| it == id)) {
            return None;
        }
        let chosen = chosen.to_string();
        Some(Unfit::NoOption { chosen, of: ids })
    }

    fn ids(&self) -> Vec<String> {
        self.options.iter().map(|it| it.id.clone()).collect()
    }

    /// How long it is.
    #[must_use]
    pub fn len(&self) -> usize {
        serde_json::to_string(self).map_or(usize::MAX, |text| text.len())
    }

    /// Whether nothing is asked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn choosing(ids: &[&str]) -> Prompt {
        let options = ids.iter().map(|id| Choice {
            id: (*id).to_owned(),
            label: String::new(),
            description: String::new(),
            is_default: false,
        });
        Prompt {
            options: options.collect(),
            ..Prompt::default()
        }
    }

    fn misfit(prompt: &Prompt, kind: InterruptKind, value: &Value) -> String {
        let misfit = prompt.misfit(kind, value);
        misfit.map(|it| it.to_string()).unwrap_or_default()
    }

    #[test]
    fn yes_and_no_are_said_in_so_many_words() {
        let prompt = Prompt::default();
        for kind in [InterruptKind::Approval, InterruptKind::Review] {
            for value in [
                json!({"approved": true}),
                json!({"approved": false, "x": 1}),
            ] {
                assert_eq!(prompt.misfit(kind, &value), None);
            }
            for value in [json!({"approved": "no"}), json!({}), json!(5), json!(null)] {
                let misfit = misfit(&prompt, kind, &value);
                assert!(misfit.contains("`true` or `false`"), "{value}: {misfit}");
            }
        }
        let put_in = InterruptKind::Input;
        assert_eq!(prompt.misfit(put_in, &json!(5)), None);
        assert!(prompt.misfit(put_in, &json!({"approved": "no"})).is_some());
    }

    #[test]
    fn what_is_chosen_is_one_of_the_options_and_only_who_says_no_chooses_none() {
        let prompt = choosing(&["a", "b"]);
        let put_in = InterruptKind::Input;
        for value in [json!({"option_id": "b"}), json!({"approved": false})] {
            assert_eq!(prompt.misfit(put_in, &value), None, "{value}");
        }
        for value in [
            json!({"option_id": "zz"}),
            json!({"option_id": 5}),
            json!({"approved": false, "option_id": "zz"}),
            json!({"approved": true}),
            json!({"approved": true, "input": "something else"}),
            json!("a"),
            json!({}),
        ] {
            let misfit = misfit(&prompt, put_in, &value);
            assert!(
                misfit.contains(r#"`{"option_id": "a"}`, of: a, b"#),
                "{value}: {misfit}"
            );
        }
        let approval = InterruptKind::Approval;
        let yes = json!({"approved": true});
        let chosen = json!({"approved": true, "option_id": "b"});
        assert!(prompt.misfit(approval, &yes).is_some());
        assert_eq!(prompt.misfit(approval, &chosen), None);
        let with_schema = Prompt {
            input_schema: Some(json!({})),
            ..prompt
        };
        assert!(with_schema.misfit(put_in, &json!("a")).is_some());
    }

    #[test]
    fn what_asks_for_something_to_be_put_in_is_not_answered_by_nothing() {
        let (prompt, put_in) = (Prompt::default(), InterruptKind::Input);
        for value in [
            json!({"approved": true}),
            json!({"approved": true, "input": null}),
            json!({"approved": true, "input": " \n"}),
            json!({"input": ""}),
            json!({}),
            json!(null),
        ] {
            let misfit = prompt.misfit(put_in, &value);
            assert_eq!(misfit, Some(Unfit::NothingPutIn), "{value}");
        }
        for value in [json!({"input": 0}), json!("x"), json!({"approved": false})] {
            assert_eq!(prompt.misfit(put_in, &value), None, "{value}");
        }
        for other in [InterruptKind::Breakpoint, InterruptKind::Error] {
            assert_eq!(prompt.misfit(other, &json!({"approved": true})), None);
        }
        let optional = Prompt {
            input_schema: Some(json!({})),
            ..prompt
        };
        assert_eq!(optional.misfit(put_in, &json!({"approved": true})), None);
    }
}
