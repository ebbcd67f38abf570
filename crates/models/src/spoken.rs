//! A conversation as every provider wants it: calls with their results, ids that fit, arguments that are objects.

use std::{borrow::Cow, collections::BTreeSet};

use holdpoint_core::{Carried, MAX_OFFERED_NAME, Message, ToolCall, ToolSpec, ToolStatus};
use serde_json::{Map, Value, json};

/// How long an id of a call may be.
const MAX_ID: usize = 40;
const NO_RESULT: &str = "There is no result of this call.";

/// Who says something.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Turn<'a> {
    User(Cow<'a, str>),
    Model(Spoken<'a>),
}

/// What a model said.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Spoken<'a> {
    pub(crate) text: &'a str,
    pub(crate) calls: Vec<Called<'a>>,
    pub(crate) carried: Option<&'a Carried>,
}

/// A call with its result.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Called<'a> {
    /// Unique over the conversation, and as every provider takes it.
    pub(crate) id: String,
    pub(crate) name: Cow<'a, str>,
    /// JSON text of an object.
    pub(crate) arguments: &'a str,
    pub(crate) result: &'a str,
    pub(crate) status: ToolStatus,
}

/// Puts a conversation in order. `reference` is the model that is asked: only what it wanted to be given back is given back.
pub(crate) fn turns<'a>(messages: &'a [Message], reference: &str) -> Vec<Turn<'a>> {
    let mut ids = Ids::of(messages);
    let mut turns = Vec::new();
    let mut answered = vec![false; messages.len()];
    for (at, message) in messages.iter().enumerate() {
        match message {
            Message::User { content } => turns.push(Turn::User(Cow::Borrowed(content))),
            Message::Assistant {
                content,
                tool_calls,
                carried,
            } => {
                let called = tool_calls.iter().enumerate();
                let calls = called.map(|(order, call)| {
                    let result = result_of(call, messages, at, &mut answered);
                    sent(call, ids.fit(call, at, order), result)
                });
                let spoken = Spoken {
                    text: content,
                    calls: calls.collect(),
                    carried: carried.as_deref().filter(|it| it.by == reference),
                };
                // What says nothing at all is refused by some.
                if !spoken.text.trim().is_empty() || !spoken.calls.is_empty() {
                    turns.push(Turn::Model(spoken));
                }
            }
            Message::Tool { name, content, .. } if !answered[at] => {
                // Nobody remembers the call. What came of it is worth more than the form.
                let text = format!("Result of `{name}`:\n{content}");
                turns.push(Turn::User(Cow::Owned(text)));
            }
            Message::Tool { .. } => {}
            // What this version does not know cannot be said.
            _ => {}
        }
    }
    turns
}

fn sent<'a>(call: &'a ToolCall, id: String, result: Option<(&'a str, ToolStatus)>) -> Called<'a> {
    let is_object = serde_json::from_str::<Map<String, Value>>(&call.arguments).is_ok();
    let (result, status) = result.unwrap_or((NO_RESULT, ToolStatus::Error));
    Called {
        id,
        name: fit_name(&call.name),
        arguments: if is_object { &call.arguments } else { "{}" },
        result,
        status,
    }
}

/// The result of a call, which stands somewhere before the model speaks again.
fn result_of<'a>(
    call: &ToolCall,
    messages: &'a [Message],
    at: usize,
    answered: &mut [bool],
) -> Option<(&'a str, ToolStatus)> {
    for (position, message) in messages.iter().enumerate().skip(at + 1) {
        match message {
            Message::Tool {
                tool_call_id,
                content,
                status,
                ..
            } if *tool_call_id == call.id && !answered[position] => {
                answered[position] = true;
                return Some((content, *status));
            }
            Message::Assistant { .. } => return None,
            Message::Tool { .. } | Message::User { .. } | _ => {}
        }
    }
    None
}

/// A model may have called what no provider would let it call again.
fn fit_name(name: &str) -> Cow<'_, str> {
    if holdpoint_core::can_be_offered(name) {
        return Cow::Borrowed(name);
    }
    let fits = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-');
    let name: String = name
        .chars()
        .map(|char| if fits(char) { char } else { '_' })
        .take(MAX_OFFERED_NAME)
        .collect();
    Cow::Owned(if name.is_empty() {
        "_".to_owned()
    } else {
        name
    })
}

/// The ids of a conversation's calls.
struct Ids<'a> {
    /// Those that stand in it, whether they fit or not.
    written: BTreeSet<&'a str>,
    used: BTreeSet<String>,
}

impl<'a> Ids<'a> {
    fn of(messages: &'a [Message]) -> Self {
        let calls = messages.iter().flat_map(|message| match message {
            Message::Assistant { tool_calls, .. } => tool_calls.as_slice(),
            Message::User { .. } | Message::Tool { .. } | _ => &[],
        });
        Self {
            written: calls.map(|call| call.id.as_str()).collect(),
            used: BTreeSet::new(),
        }
    }

    /// The call's own id, or one after its place, which stays the same however long the conversation gets.
    fn fit(&mut self, call: &ToolCall, message: usize, order: usize) -> String {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        let fits = (1..=MAX_ID).contains(&call.id.len()) && call.id.bytes().all(fits);
        if fits && self.used.insert(call.id.clone()) {
            return call.id.clone();
        }
        let mut id = format!("c{message}_{order}");
        while self.written.contains(id.as_str()) || self.used.contains(&id) {
            id.push('_');
        }
        self.used.insert(id.clone());
        id
    }
}

/// The schema of a tool's arguments: everybody wants it to say that they are an object.
pub(crate) fn schema(tool: &ToolSpec) -> Value {
    match &tool.input_schema {
        Value::Object(schema) if schema.contains_key("type") => Value::Object(schema.clone()),
        Value::Object(schema) => {
            let mut schema = schema.clone();
            schema.insert("type".to_owned(), json!("object"));
            Value::Object(schema)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            json!({"type": "object"})
        }
    }
}

/// A temperature, of thousandths.
pub(crate) fn temperature(milli: u16) -> f64 {
    f64::from(milli) / 1_000.0
}

/// What a model said in the order in which it said it, where that must be given back as it was: for a provider whose
/// reasoning stands between the words.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Layout(pub(crate) Vec<Piece>);

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Piece {
    /// In the provider's own form.
    Verbatim(Value),
    /// So many bytes of the text.
    Text(usize),
    /// The call at this place.
    Call(usize),
}

const TEXT: &str = "holdpoint.text";
const CALL: &str = "holdpoint.call";

impl Layout {
    pub(crate) fn add_text(&mut self, bytes: usize) {
        if let Some(Piece::Text(before)) = self.0.last_mut() {
            *before += bytes;
        } else {
            self.0.push(Piece::Text(bytes));
        }
    }

    /// As it is kept; `None` if nothing in it must be given back.
    pub(crate) fn kept(&self, reference: &str) -> Option<Carried> {
        let has_more = |piece: &Piece| matches!(piece, Piece::Verbatim(_));
        if !self.0.iter().any(has_more) {
            return None;
        }
        let items = self.0.iter().map(|piece| match piece {
            Piece::Verbatim(value) => value.clone(),
            Piece::Text(bytes) => json!({"type": TEXT, "bytes": bytes}),
            Piece::Call(index) => json!({"type": CALL, "index": index}),
        });
        Some(Carried {
            by: reference.to_owned(),
            items: Value::Array(items.collect()).to_string(),
        })
    }

    /// What was kept with these words; `None` if it does not fit them.
    pub(crate) fn of(spoken: &Spoken<'_>) -> Option<Self> {
        let items: Vec<Value> = serde_json::from_str(&spoken.carried?.items).ok()?;
        let (mut from, mut calls) = (0, 0);
        let mut pieces = Vec::with_capacity(items.len());
        for item in items {
            let number = |key: &str| usize::try_from(item.get(key)?.as_u64()?).ok();
            match item.get("type").and_then(Value::as_str)? {
                TEXT => {
                    let bytes = number("bytes")?;
                    from += bytes;
                    if !spoken.text.is_char_boundary(from) {
                        return None;
                    }
                    pieces.push(Piece::Text(bytes));
                }
                CALL if number("index")? == calls => {
                    pieces.push(Piece::Call(calls));
                    calls += 1;
                }
                CALL => return None,
                _ => pieces.push(Piece::Verbatim(item)),
            }
        }
        (from == spoken.text.len() && calls == spoken.calls.len()).then_some(Self(pieces))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
        ToolCall {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: arguments.to_owned(),
        }
    }

    fn model(calls: &[ToolCall]) -> Message {
        Message::Assistant {
            content: String::new(),
            tool_calls: calls.to_vec(),
            carried: None,
        }
    }

    fn result(id: &str, content: &str) -> Message {
        Message::Tool {
            tool_call_id: id.to_owned(),
            name: "t".to_owned(),
            content: content.to_owned(),
            status: ToolStatus::Success,
            action_id: None,
        }
    }

    fn calls(messages: &[Message]) -> Vec<(String, String, String, String)> {
        let turns = turns(messages, "m");
        let spoken = turns.iter().filter_map(|turn| match turn {
            Turn::Model(spoken) => Some(&spoken.calls),
            Turn::User(_) => None,
        });
        spoken
            .flatten()
            .map(|it| {
                let name = it.name.clone().into_owned();
                let (arguments, result) = (it.arguments.to_owned(), it.result.to_owned());
                (it.id.clone(), name, arguments, result)
            })
            .collect()
    }

    fn row(
        id: &str,
        name: &str,
        arguments: &str,
        result: &str,
    ) -> (String, String, String, String) {
        let [id, name, arguments, result] = [id, name, arguments, result].map(str::to_owned);
        (id, name, arguments, result)
    }

    #[test]
    fn ids_that_repeat_or_do_not_fit_are_replaced_on_both_sides() {
        let long = "x".repeat(41);
        let messages = [
            model(&[call("a", "t", "{}"), call("a", "t", "{}")]),
            result("a", "first"),
            result("a", "second"),
            model(&[
                call("a", "t", "{}"),
                call(&long, "t", "{}"),
                call("", "t", "{}"),
            ]),
            result(&long, "of the long one"),
            result("a", "third"),
            model(&[call("c3_1", "t", "{}")]),
        ];
        assert_eq!(
            calls(&messages),
            [
                row("a", "t", "{}", "first"),
                row("c0_1", "t", "{}", "second"),
                row("c3_0", "t", "{}", "third"),
                row("c3_1_", "t", "{}", "of the long one"),
                row("c3_2", "t", "{}", NO_RESULT),
                row("c3_1", "t", "{}", NO_RESULT),
            ]
        );
    }

    #[test]
    fn what_is_no_object_and_what_is_no_name_is_not_sent() {
        let messages = [model(&[
            call("a", "files.read", "{\"a\": 1 }"),
            call("b", "", "[1]"),
            call("c", "löschen", "{\"a\":"),
            call("d", "t", ""),
        ])];
        assert_eq!(
            calls(&messages),
            [
                row("a", "files_read", "{\"a\": 1 }", NO_RESULT),
                row("b", "_", "{}", NO_RESULT),
                row("c", "l_schen", "{}", NO_RESULT),
                row("d", "t", "{}", NO_RESULT),
            ]
        );
    }

    #[test]
    fn a_result_whose_call_is_gone_is_told_all_the_same() {
        let messages = [result("a", "7")];
        assert_eq!(
            turns(&messages, "m"),
            [Turn::User(Cow::Borrowed("Result of `t`:\n7"))]
        );
    }

    #[test]
    fn what_is_carried_is_given_back_to_the_one_that_said_it_and_only_where_it_fits() {
        let layout = Layout(vec![
            Piece::Verbatim(json!({"type": "thinking", "signature": "s"})),
            Piece::Text(2),
            Piece::Call(0),
        ]);
        let carried = layout.kept("m").unwrap();
        let message = |content: &str| Message::Assistant {
            content: content.to_owned(),
            tool_calls: vec![call("a", "t", "{}")],
            carried: Some(Box::new(carried.clone())),
        };
        let found = |message: Message, reference: &str| {
            let messages = [message];
            let turns = turns(&messages, reference);
            let [Turn::Model(spoken)] = turns.as_slice() else {
                panic!("{turns:?}");
            };
            Layout::of(spoken)
        };
        assert_eq!(found(message("ok"), "m"), Some(layout));
        assert_eq!(found(message("ok"), "other"), None);
        assert_eq!(found(message("changed"), "m"), None);
        assert!(found(message("ü"), "m").is_some());
        assert_eq!(Layout(vec![Piece::Text(1)]).kept("m"), None);
    }
}
