//! What a guardrail's checker is given: one call, or what a model said.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

use crate::{FramePath, Principal, confirm::folded};

/// One call, or what a model said, as a checker gets it. It is the JSON that programs and servers are given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "on", rename_all = "snake_case")]
pub enum Case {
    /// A call that is about to be judged.
    Call {
        /// The agent whose model asks for it.
        agent: String,
        /// The subagents on the way to it; empty for the agent itself.
        frame: FramePath,
        /// The tool.
        tool: String,
        /// The arguments.
        args: Value,
        /// Who asked for the run.
        user: Requester,
    },
    /// What a model said, before anybody is told.
    Output {
        /// The agent whose model it is.
        agent: String,
        /// The subagents on the way to it; empty for the agent itself.
        frame: FramePath,
        /// What it said.
        text: String,
        /// Who asked for the run.
        user: Requester,
    },
}

/// Who asked for a run, as a checker gets it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Requester {
    /// The name.
    pub name: String,
    /// The roles.
    pub roles: BTreeSet<String>,
    /// The permissions.
    pub permissions: BTreeSet<String>,
}

impl From<&Principal> for Requester {
    fn from(principal: &Principal) -> Self {
        Self {
            name: principal.actor.name.clone(),
            roles: principal.roles.clone(),
            permissions: principal.permissions.clone(),
        }
    }
}

impl Case {
    /// A call of the agent itself, for nobody in particular: to try a checker with.
    #[must_use]
    pub fn call(agent: impl Into<String>, tool: impl Into<String>, args: Value) -> Self {
        Self::Call {
            agent: agent.into(),
            frame: FramePath::root(),
            tool: tool.into(),
            args,
            user: Requester::default(),
        }
    }

    /// What the agent itself says, to nobody in particular: to try a checker with.
    #[must_use]
    pub fn output(agent: impl Into<String>, text: impl Into<String>) -> Self {
        Self::Output {
            agent: agent.into(),
            frame: FramePath::root(),
            text: text.into(),
            user: Requester::default(),
        }
    }

    /// Those of these words that stand in it: of a call, in one of the texts or names among its arguments, or in how they are
    /// spelt.
    pub(super) fn those_of<'w>(&self, words: &'w [String]) -> impl Iterator<Item = &'w str> {
        let mut texts = Vec::new();
        match self {
            Self::Output { text, .. } => texts.push(text.clone()),
            Self::Call { args, .. } => {
                collect(args, &mut texts);
                texts.push(args.to_string());
            }
        }
        let texts: Vec<String> = texts.iter().map(|text| folded(text)).collect();
        let stands = move |word: &&str| {
            let word = folded(word);
            texts.iter().any(|text| text.contains(&word))
        };
        words.iter().map(String::as_str).filter(stands)
    }
}

fn collect(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
        Value::Object(entries) => {
            for (name, value) in entries {
                texts.push(name.clone());
                collect(value, texts);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(args: Value, word: &str) -> bool {
        let words = [word.to_owned()];
        Case::call("a", "t", args).those_of(&words).next().is_some()
    }

    #[test]
    fn words_are_found_wherever_they_stand_in_the_arguments() {
        assert!(found(
            json!({"body": ["x", {"note": "Wire\n Transfer"}]}),
            "wire transfer"
        ));
        assert!(found(json!({"Wire": 1}), "wire"));
        assert!(found(json!({"n": 4111}), "4111"));
        assert!(found(json!({"q": "say \"wire\""}), "\"WIRE\""));
        assert!(!found(json!({"body": "w ire"}), "wire"));
    }

    #[test]
    fn a_checker_is_given_one_document() {
        let call = Case::call("clerk", "mail", json!({"to": "a"}));
        let none = json!({"name": "", "roles": [], "permissions": []});
        assert_eq!(
            serde_json::to_value(&call).unwrap(),
            json!({"on": "call", "agent": "clerk", "frame": "", "tool": "mail", "args": {"to": "a"}, "user": none})
        );
        let said = Case::output("clerk", "hello");
        assert_eq!(
            serde_json::to_value(&said).unwrap(),
            json!({"on": "output", "agent": "clerk", "frame": "", "text": "hello", "user": none})
        );
    }
}
