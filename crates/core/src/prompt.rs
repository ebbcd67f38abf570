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

    /// Why this is no answer to it. Whether what is put in fits the schema is not looked at here.
    #[must_use]
    pub fn misfit(&self, kind: InterruptKind, value: &Value) -> Option<String> {
        let approved = value.get("approved");
        match approved {
            Some(Value::Bool(_)) => {}
            None if !kind.wants_yes_or_no() => {}
            Some(_) | None => {
                return Some(r#"`approved` must be `true` or `false`, as in `{"approved": false, "reason": "…"}`"#.to_owned());
            }
        }
        if self.options.is_empty() {
            return None;
        }
        let chosen = value.get("option_id");
        // Whoever says no, or yes to what is asked, need not choose; nor who puts something in.
        if chosen.is_none() && (approved.is_some() || self.input_schema.is_some()) {
            return None;
        }
        let known: Vec<&str> = self.options.iter().map(|it| it.id.as_str()).collect();
        if chosen
            .and_then(Value::as_str)
            .is_some_and(|id| known.contains(&id))
        {
            return None;
        }
        let form = format!(
            r#"choose as in `{{"option_id": "{}"}}`, of: {}"#,
            known[0],
            known.join(", ")
        );
        Some(match chosen {
            Some(chosen) => format!("`option_id` {chosen} is none of the options; {form}"),
            None => format!("nothing is chosen; {form}"),
        })
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
                let misfit = prompt.misfit(kind, &value).unwrap_or_default();
                assert!(misfit.contains("`true` or `false`"), "{value}: {misfit}");
            }
        }
        let put_in = InterruptKind::Input;
        assert_eq!(prompt.misfit(put_in, &json!(5)), None);
        assert!(prompt.misfit(put_in, &json!({"approved": "no"})).is_some());
    }

    #[test]
    fn what_is_chosen_is_one_of_the_options() {
        let prompt = choosing(&["a", "b"]);
        let put_in = InterruptKind::Input;
        for value in [json!({"option_id": "b"}), json!({"approved": false})] {
            assert_eq!(prompt.misfit(put_in, &value), None, "{value}");
        }
        for value in [
            json!({"option_id": "zz"}),
            json!({"option_id": 5}),
            json!("a"),
            json!({}),
        ] {
            let misfit = prompt.misfit(put_in, &value).unwrap_or_default();
            assert!(
                misfit.contains(r#"`{"option_id": "a"}`, of: a, b"#),
                "{value}: {misfit}"
            );
        }
        let approval = json!({"approved": true, "option_id": "zz"});
        assert!(prompt.misfit(InterruptKind::Approval, &approval).is_some());
        let free = Prompt {
            input_schema: Some(json!({})),
            ..prompt
        };
        assert_eq!(free.misfit(put_in, &json!("something else")), None);
    }
}
