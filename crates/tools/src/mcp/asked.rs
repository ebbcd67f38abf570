//! What a server wants of its client, and what it is given.

use std::collections::BTreeMap;

use holdpoint_core::Recalled;
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
            // Exactly what was held against the form's schema: a form may have a field `approved` of its own.
            let content = value.get("input").unwrap_or(value);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn said(value: Value) -> Value {
        answer(&Recalled::Answer { value })
    }

    #[test]
    fn what_fits_the_form_is_what_the_server_gets() {
        for (value, content) in [
            (json!({"name": "Ann"}), json!({"name": "Ann"})),
            (json!({"input": {"name": "Ann"}}), json!({"name": "Ann"})),
            (
                json!({"approved": true, "input": {"a": 1}}),
                json!({"a": 1}),
            ),
            (json!({"approved": true}), json!({"approved": true})),
        ] {
            assert_eq!(said(value), json!({"action": "accept", "content": content}));
        }
    }

    #[test]
    fn no_is_declined_and_silence_cancelled() {
        let declined = json!({"action": "decline"});
        assert_eq!(said(json!({"approved": false})), declined);
        assert_eq!(
            said(json!({"approved": false, "input": {"a": 1}})),
            declined
        );
        assert!(is_refusal(&declined));
        let cancelled = answer(&Recalled::TimedOut);
        assert_eq!(cancelled, json!({"action": "cancel"}));
        assert!(is_refusal(&cancelled));
    }

    #[test]
    fn only_a_form_is_put_before_a_person() {
        let question = |request: Value| {
            let request = Request::read("k", &request);
            match request.question("s", "t", "") {
                Ok(Answer::Known(answer)) => Ok(answer),
                Ok(Answer::AskPerson(_)) => Ok(Value::Null),
                Err(why) => Err(why),
            }
        };
        let form = json!({"method": "elicitation/create", "params": {"message": "Who?"}});
        assert_eq!(question(form), Ok(Value::Null));
        let elsewhere =
            json!({"method": "elicitation/create", "params": {"url": "https://evil.example"}});
        assert_eq!(question(elsewhere), Ok(refusal()));
        assert_eq!(
            question(json!({"method": "roots/list"})),
            Ok(json!({"roots": []}))
        );
        let why = question(json!({"method": "sampling/createMessage"})).unwrap_err();
        assert!(why.contains("`sampling/createMessage`"), "{why}");
    }

    #[test]
    fn an_answer_in_the_middle_is_for_what_was_asked_and_for_each_time_once() {
        let name = Request::elicitation(json!({"message": "Name?"}));
        let age = Request::elicitation(json!({"message": "Age?"}));
        let (first, second) = (json!({"n": 1}), json!({"n": 2}));
        let given = Given::default()
            .and_in_the_middle(std::slice::from_ref(&name), vec![first.clone()])
            .and_in_the_middle(std::slice::from_ref(&name), vec![second.clone()]);
        assert_eq!(given.to(&name, 0), Some(&first));
        assert_eq!(given.to(&name, 1), Some(&second));
        assert_eq!(given.to(&name, 2), None);
        assert_eq!(given.to(&age, 0), None);
    }
}
