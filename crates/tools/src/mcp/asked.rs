//! What a server wants of its client, and what it is given.

use std::collections::BTreeMap;

use holdpoint_core::{Prompt, Recalled};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Question;

/// The longest text of a server that a person is shown.
const MAX_MESSAGE: usize = 4 << 10;

const ELICIT: &str = "elicitation/create";
const ROOTS: &str = "roots/list";

/// Something that a server wants.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Request {
    /// Under which name it wants it; empty in the middle of a call.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) key: String,
    /// What.
    pub(super) method: String,
    /// In more words.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub(super) params: Value,
}

/// How a request is answered.
pub(super) enum Answer {
    /// Without a person.
    Known(Value),
    AskPerson(Question),
}

impl Request {
    /// As a server spells it.
    pub(super) fn read(key: &str, request: &Value) -> Self {
        let method = request.get("method").and_then(Value::as_str);
        Self {
            key: key.to_owned(),
            method: method.unwrap_or_default().to_owned(),
            params: request.get("params").cloned().unwrap_or_default(),
        }
    }

    /// A form, in the middle of a call.
    pub(super) fn elicitation(params: Value) -> Self {
        Self {
            key: String::new(),
            method: ELICIT.to_owned(),
            params,
        }
    }

    /// # Errors
    ///
    /// Nobody here has what the server wants.
    pub(super) fn question(
        &self,
        server: &str,
        tool: &str,
        before: &str,
    ) -> Result<Answer, String> {
        match self.method.as_str() {
            ROOTS => Ok(Answer::Known(json!({"roots": []}))),
            // It was not told that it may send people elsewhere.
            ELICIT if self.params.get("url").is_some() => Ok(Answer::Known(refusal())),
            ELICIT => {
                let message = self.params.get("message").and_then(Value::as_str);
                let message = message.unwrap_or_default();
                let message = &message[..message.floor_char_boundary(MAX_MESSAGE)];
                let description = [message, before].join("\n\n");
                let question = Question::input(format!("`{server}` asks for input"))
                    .description(description.trim())
                    .data(json!({"mcp_server": server, "tool": tool}));
                Ok(Answer::AskPerson(
                    match self.params.get("requestedSchema") {
                        Some(schema) => question.input_schema(schema.clone()),
                        None => question,
                    },
                ))
            }
            other => Err(format!(
                "the MCP server `{server}` wants `{other}` of its client, which is not to be had here"
            )),
        }
    }
}

/// What a person said, as servers read it.
pub(super) fn answer(recalled: &Recalled) -> Value {
    match recalled {
        Recalled::Answer { value } if value.get("approved") == Some(&Value::Bool(false)) => {
            refusal()
        }
        Recalled::Answer { value } => {
            let content = Prompt::put_in(value).cloned().unwrap_or_else(|| json!({}));
            json!({"action": "accept", "content": content})
        }
        Recalled::TimedOut | Recalled::Slept => json!({"action": "cancel"}),
    }
}

fn refusal() -> Value {
    json!({"action": "decline"})
}

/// Whether nothing is given by it.
pub(super) fn is_refusal(answer: &Value) -> bool {
    answer
        .get("action")
        .is_some_and(|action| action != "accept")
}

/// What a server is given along with a call.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Given {
    /// What it wanted as a result.
    pub(super) responses: Option<BTreeMap<String, Value>>,
    /// Its own state, back.
    pub(super) state: Option<String>,
    /// What it wanted in the middle of a call, as often as it wanted it.
    pub(super) in_the_middle: Vec<(Request, Value)>,
}

impl Given {
    pub(super) fn responses(
        requests: &[Request],
        answers: Vec<Value>,
        state: Option<String>,
    ) -> Self {
        let keys = requests.iter().map(|it| it.key.clone());
        let responses: BTreeMap<_, _> = keys.zip(answers).collect();
        Self {
            responses: (!responses.is_empty()).then_some(responses),
            state,
            in_the_middle: Vec::new(),
        }
    }

    pub(super) fn and_in_the_middle(mut self, requests: &[Request], answers: Vec<Value>) -> Self {
        let requests = requests.iter().cloned();
        self.in_the_middle.extend(requests.zip(answers));
        self
    }

    /// The answer to a request that comes for the `nth` time in one call.
    pub(super) fn to(&self, request: &Request, nth: usize) -> Option<&Value> {
        let mut same = self.in_the_middle.iter().filter(|(it, _)| it == request);
        same.nth(nth).map(|(_, answer)| answer)
    }
}
