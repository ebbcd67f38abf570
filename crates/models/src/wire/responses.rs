//! The Responses API of OpenAI. Nothing is kept there: every request carries the whole conversation.

use std::collections::BTreeMap;

use holdpoint_core::{ToolCall, Usage};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Flow, Question, Reading, broke_off, chat::named, data};
use crate::{
    Delta, End, Failure, Reply,
    seam::{Piece as Text, Seam},
    spoken::{Layout, Piece, Spoken, Turn, schema, temperature, turns},
    sse::Event,
    trouble::{Complaint, Spelling},
};

pub(super) fn body(question: Question<'_>) -> Value {
    let Question {
        model,
        reference,
        request,
        ..
    } = question;
    let mut input = Vec::new();
    for turn in turns(request.messages, reference) {
        match turn {
            Turn::User(text) => input.push(said("user", "input_text", &text)),
            Turn::Model(spoken) => add_spoken(&mut input, &spoken),
        }
    }
    let mut body = json!({
        "model": model,
        "input": input,
        "stream": true,
        "store": false,
    });
    if let Some(system) = request.system {
        body["instructions"] = json!(system);
    }
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            let mut function = json!({
                "type": "function",
                "name": tool.name,
                "parameters": schema(tool),
                "strict": false,
            });
            if !tool.description.is_empty() {
                function["description"] = json!(tool.description);
            }
            function
        });
        body["tools"] = tools.collect();
    }
    let sampling = request.sampling;
    if let Some(most) = sampling.max_output_tokens {
        body["max_output_tokens"] = json!(most);
    }
    if let Some(milli) = sampling.temperature_milli {
        body["temperature"] = json!(temperature(milli));
    }
    if let Some(effort) = &sampling.effort {
        body["reasoning"] = json!({"effort": effort});
        body["include"] = json!(["reasoning.encrypted_content"]);
    }
    body
}

fn said(role: &str, kind: &str, text: &str) -> Value {
    json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]})
}

fn add_spoken(input: &mut Vec<Value>, spoken: &Spoken<'_>) {
    let calls = |at: usize| {
        let call = &spoken.calls[at];
        json!({
            "type": "function_call",
            "call_id": call.id,
            "name": call.name,
            "arguments": call.arguments,
        })
    };
    let text = |text: &str| {
        let is_any = !text.trim().is_empty();
        is_any.then(|| said("assistant", "output_text", text))
    };
    if let Some(Layout(pieces)) = Layout::of(spoken) {
        let mut from = 0;
        for piece in pieces {
            match piece {
                Piece::Verbatim(item) => input.push(item),
                Piece::Text(bytes) => {
                    input.extend(text(&spoken.text[from..from + bytes]));
                    from += bytes;
                }
                Piece::Call(at) => input.push(calls(at)),
            }
        }
    } else {
        input.extend(text(spoken.text));
        input.extend((0..spoken.calls.len()).map(calls));
    }
    input.extend(spoken.calls.iter().map(
        |call| json!({"type": "function_call_output", "call_id": call.id, "output": call.result}),
    ));
}

pub(super) fn reading(reference: &str) -> Box<dyn Reading> {
    Box::new(Responses {
        reference: reference.to_owned(),
        ..Responses::default()
    })
}

#[derive(Debug, Deserialize)]
struct Told {
    #[serde(default, rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    delta: Option<Text>,
    #[serde(default)]
    output_index: Option<u64>,
    #[serde(default)]
    item: Option<Item>,
    #[serde(default)]
    response: Option<Response>,
    #[serde(default)]
    error: Option<Spelling>,
    #[serde(default)]
    code: Option<Value>,
    #[serde(default)]
    message: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Response {
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    output: Option<Vec<Item>>,
    #[serde(default)]
    usage: Option<Spent>,
    #[serde(default)]
    error: Option<Spelling>,
    #[serde(default)]
    incomplete_details: Option<Details>,
}

#[derive(Debug, Deserialize)]
struct Details {
    #[serde(default)]
    reason: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Spent {
    #[serde(default)]
    input_tokens: Option<u64>,
    #[serde(default)]
    output_tokens: Option<u64>,
    #[serde(default)]
    input_tokens_details: Option<Known>,
}

#[derive(Debug, Deserialize)]
struct Known {
    #[serde(default)]
    cached_tokens: Option<u64>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Item {
    Message {
        #[serde(default)]
        content: Option<Vec<Content>>,
    },
    FunctionCall {
        #[serde(default)]
        call_id: Option<String>,
        #[serde(default)]
        name: Option<String>,
        #[serde(default)]
        arguments: Option<String>,
    },
    Reasoning {
        #[serde(default)]
        id: Option<String>,
        #[serde(default)]
        summary: Option<Value>,
        #[serde(default)]
        encrypted_content: Option<String>,
    },
    #[serde(other)]
    Other,
}

#[derive(Debug, Clone, Deserialize)]
struct Content {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    refusal: Option<String>,
}

/// How an answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Ending {
    Completed,
    Incomplete(String),
}

#[derive(Debug, Default)]
struct Responses {
    reference: String,
    /// What was said in pieces, by the item that it belongs to.
    heard: BTreeMap<u64, String>,
    text: String,
    seam: Seam,
    items: BTreeMap<u64, Item>,
    ending: Option<Ending>,
    usage: Usage,
    model: String,
}

impl Reading for Responses {
    fn take(
        &mut self,
        event: &Event,
        deltas: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Flow, Failure> {
        if event.data.trim() == "[DONE]" {
            return Ok(Flow::Over);
        }
        if event.data.trim().is_empty() {
            return Ok(Flow::More);
        }
        let told: Told = data(event)?;
        let kind = told.kind.as_deref().unwrap_or(&event.name).to_owned();
        let at = told.output_index.unwrap_or_default();
        match kind.as_str() {
            "response.output_text.delta" | "response.refusal.delta" => {
                let text = self.seam.join(told.delta);
                if !text.is_empty() {
                    self.heard.entry(at).or_default().push_str(&text);
                    self.text.push_str(&text);
                    deltas(Delta::Text(text));
                }
            }
            "response.output_item.done" => {
                if let Some(item) = told.item {
                    self.items.insert(at, item);
                }
            }
            "response.completed" => {
                self.end(told.response, Ending::Completed, deltas);
                return Ok(Flow::Over);
            }
            "response.incomplete" => {
                let details = told.response.as_ref();
                let details = details.and_then(|it| it.incomplete_details.as_ref());
                let reason = details.and_then(|it| it.reason.clone());
                let ending = Ending::Incomplete(reason.unwrap_or_default());
                self.end(told.response, ending, deltas);
                return Ok(Flow::Over);
            }
            "response.failed" | "response.cancelled" => {
                let error = told.response.and_then(|it| it.error).or(told.error);
                let complaint = error.map(Complaint::from).unwrap_or_default();
                return Err(complaint.means(None, None));
            }
            "error" => {
                let said = told.error.unwrap_or(Spelling::Object {
                    kind: None,
                    code: told.code,
                    message: told.message,
                });
                return Err(Complaint::from(said).means(None, None));
            }
            _ => {
                if let Some(error) = told.error {
                    return Err(Complaint::from(error).means(None, None));
                }
            }
        }
        Ok(Flow::More)
    }

    fn is_whole(&self) -> bool {
        self.ending.is_some()
    }

    fn reply(self: Box<Self>) -> Result<Reply, Failure> {
        let end = match &self.ending {
            None => return Err(broke_off()),
            Some(Ending::Completed) => End::Said,
            Some(Ending::Incomplete(reason)) => match reason.as_str() {
                "max_output_tokens" => End::CutOff,
                "content_filter" => {
                    let reason = "the answer ended with `content_filter`".to_owned();
                    return Err(Failure::Withheld { reason });
                }
                other => {
                    let other = other.escape_debug();
                    let reason = format!("the answer is incomplete, because of `{other}`");
                    return Err(Failure::Unavailable { reason });
                }
            },
        };
        let mut layout = Layout::default();
        let mut calls = Vec::new();
        for (at, item) in self.items {
            match item {
                Item::Message { .. } => {
                    layout.add_text(self.heard.get(&at).map_or(0, String::len));
                }
                Item::FunctionCall {
                    call_id,
                    name,
                    arguments,
                } => {
                    layout.0.push(Piece::Call(calls.len()));
                    calls.push(ToolCall {
                        id: call_id.unwrap_or_default(),
                        name: name.unwrap_or_default(),
                        arguments: arguments.unwrap_or_default(),
                    });
                }
                Item::Reasoning {
                    id,
                    summary,
                    encrypted_content: Some(encrypted),
                } => {
                    let mut item = json!({
                        "type": "reasoning",
                        "summary": summary.unwrap_or(json!([])),
                        "encrypted_content": encrypted,
                    });
                    if let Some(id) = id {
                        item["id"] = json!(id);
                    }
                    layout.0.push(Piece::Verbatim(item));
                }
                // Without what is encrypted there is nothing that could be given back.
                Item::Reasoning { .. } | Item::Other => {}
            }
        }
        Ok(Reply {
            text: self.text,
            calls: named(calls.into_iter(), end)?,
            end,
            usage: self.usage,
            model: self.model,
            carried: layout.kept(&self.reference),
        })
    }
}

impl Responses {
    fn end(
        &mut self,
        response: Option<Response>,
        ending: Ending,
        deltas: &mut (dyn FnMut(Delta) + Send),
    ) {
        self.ending = Some(ending);
        let Some(response) = response else { return };
        if let Some(spent) = response.usage {
            let known = spent.input_tokens_details;
            self.usage = Usage {
                input_tokens: spent.input_tokens.unwrap_or_default(),
                output_tokens: spent.output_tokens.unwrap_or_default(),
                cached_tokens: known.and_then(|it| it.cached_tokens).unwrap_or_default(),
                cost_nano_usd: 0,
            };
        }
        self.model = response.model.unwrap_or_default();
        // The whole answer, as it stands at the end, is the better word; but some leave it out there.
        let output = response.output.unwrap_or_default();
        if !output.is_empty() {
            self.items = (0..).zip(output).collect();
        }
        if self.text.is_empty() {
            self.catch_up(deltas);
        }
    }

    /// Says what came whole, and not in pieces.
    fn catch_up(&mut self, deltas: &mut (dyn FnMut(Delta) + Send)) {
        for (at, item) in &self.items {
            let Item::Message { content } = item else {
                continue;
            };
            let parts = content.iter().flatten();
            let texts = parts.flat_map(|part| [&part.text, &part.refusal]);
            for text in texts.flatten().filter(|text| !text.is_empty()) {
                self.heard.entry(*at).or_default().push_str(text);
                self.text.push_str(text);
                deltas(Delta::Text(text.clone()));
            }
        }
    }
}
