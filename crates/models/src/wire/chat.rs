//! Chat completions of OpenAI, which most others speak too.

use std::collections::BTreeSet;

use holdpoint_core::{LimitField, ToolCall, Usage};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Flow, Question, Reading, broke_off, data};
use crate::{
    Delta, End, Failure, Reply,
    seam::{Piece as Text, Seam},
    spoken::{Turn, schema, temperature, turns},
    sse::Event,
    trouble::{Complaint, Spelling},
};

pub(super) fn body(question: Question<'_>) -> Value {
    let Question {
        provider,
        model,
        reference,
        request,
    } = question;
    let mut messages = Vec::new();
    if let Some(system) = request.system {
        messages.push(json!({"role": "system", "content": system}));
    }
    for turn in turns(request.messages, reference) {
        match turn {
            Turn::User(text) => messages.push(json!({"role": "user", "content": text})),
            Turn::Model(spoken) => {
                let text = (!spoken.text.is_empty()).then_some(spoken.text);
                let mut message = json!({"role": "assistant", "content": text});
                if !spoken.calls.is_empty() {
                    let calls = spoken.calls.iter().map(|call| {
                        json!({
                            "id": call.id,
                            "type": "function",
                            "function": {"name": call.name, "arguments": call.arguments},
                        })
                    });
                    message["tool_calls"] = calls.collect();
                }
                messages.push(message);
                messages.extend(spoken.calls.iter().map(
                    |call| json!({"role": "tool", "tool_call_id": call.id, "content": call.result}),
                ));
            }
        }
    }
    let mut body = json!({
        "model": model,
        "messages": messages,
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            let mut function = json!({"name": tool.name, "parameters": schema(tool)});
            if !tool.description.is_empty() {
                function["description"] = json!(tool.description);
            }
            json!({"type": "function", "function": function})
        });
        body["tools"] = tools.collect();
    }
    let sampling = request.sampling;
    if let Some(most) = sampling.max_output_tokens {
        let field = match provider.limit_field {
            LimitField::MaxCompletionTokens => "max_completion_tokens",
            LimitField::MaxTokens => "max_tokens",
        };
        body[field] = json!(most);
    }
    if let Some(milli) = sampling.temperature_milli {
        body["temperature"] = json!(temperature(milli));
    }
    if let Some(effort) = &sampling.effort {
        body["reasoning_effort"] = json!(effort);
    }
    body
}

pub(super) fn reading() -> Box<dyn Reading> {
    Box::new(Chat::default())
}

#[derive(Debug, Deserialize)]
struct Chunk {
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    choices: Option<Vec<Choice>>,
    #[serde(default)]
    usage: Option<Spent>,
    #[serde(default)]
    error: Option<Spelling>,
}

#[derive(Debug, Deserialize)]
struct Choice {
    #[serde(default)]
    index: u64,
    #[serde(default)]
    delta: Option<Piece>,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Piece {
    #[serde(default)]
    content: Option<Text>,
    #[serde(default)]
    refusal: Option<Text>,
    #[serde(default)]
    tool_calls: Option<Vec<CallPiece>>,
}

#[derive(Debug, Deserialize)]
struct CallPiece {
    #[serde(default)]
    index: Option<u64>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    function: Option<FunctionPiece>,
}

#[derive(Debug, Deserialize)]
struct FunctionPiece {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    arguments: Option<Text>,
}

#[derive(Debug, Deserialize)]
struct Spent {
    #[serde(default)]
    prompt_tokens: Option<u64>,
    #[serde(default)]
    completion_tokens: Option<u64>,
    #[serde(default)]
    prompt_tokens_details: Option<Known>,
}

#[derive(Debug, Deserialize)]
struct Known {
    #[serde(default)]
    cached_tokens: Option<u64>,
}

/// A call as far as it is known.
#[derive(Debug)]
struct Begun {
    index: u64,
    call: ToolCall,
    seam: Seam,
}

#[derive(Debug, Default)]
struct Chat {
    text: String,
    seam: Seam,
    calls: Vec<Begun>,
    finish: Option<String>,
    usage: Usage,
    model: String,
}

impl Reading for Chat {
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
        if event.name == "error" {
            return Err(Complaint::of_body(&event.data).means(None, None));
        }
        let chunk: Chunk = data(event)?;
        if let Some(error) = chunk.error {
            return Err(Complaint::from(error).means(None, None));
        }
        if let Some(model) = chunk.model.filter(|model| !model.is_empty()) {
            self.model = model;
        }
        if let Some(spent) = chunk.usage {
            self.usage = Usage {
                input_tokens: spent.prompt_tokens.unwrap_or_default(),
                output_tokens: spent.completion_tokens.unwrap_or_default(),
                cached_tokens: spent
                    .prompt_tokens_details
                    .and_then(|it| it.cached_tokens)
                    .unwrap_or_default(),
                cost_nano_usd: 0,
            };
        }
        let choices = chunk.choices.unwrap_or_default();
        for choice in choices.into_iter().filter(|choice| choice.index == 0) {
            if let Some(piece) = choice.delta {
                self.add(piece, deltas);
            }
            if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
                self.finish = Some(reason);
            }
        }
        Ok(Flow::More)
    }

    fn is_whole(&self) -> bool {
        self.finish.is_some()
    }

    fn reply(self: Box<Self>) -> Result<Reply, Failure> {
        let end = match self.finish.as_deref() {
            None => return Err(broke_off()),
            Some("stop" | "tool_calls" | "function_call" | "eos" | "end_turn") => End::Said,
            Some("length" | "max_tokens" | "model_length") => End::CutOff,
            Some("content_filter") => {
                let reason = "the answer ended with `content_filter`".to_owned();
                return Err(Failure::Withheld { reason });
            }
            Some(other) => {
                let reason = format!("the answer ended with `{}`", other.escape_debug());
                return Err(Failure::Unavailable { reason });
            }
        };
        Ok(Reply {
            text: self.text,
            calls: named(self.calls.into_iter().map(|begun| begun.call), end)?,
            end,
            usage: self.usage,
            model: self.model,
            carried: None,
        })
    }
}

impl Chat {
    fn add(&mut self, piece: Piece, deltas: &mut (dyn FnMut(Delta) + Send)) {
        for text in [piece.content, piece.refusal] {
            let text = self.seam.join(text);
            if !text.is_empty() {
                self.text.push_str(&text);
                deltas(Delta::Text(text));
            }
        }
        for piece in piece.tool_calls.unwrap_or_default() {
            let Begun { call, seam, .. } = self.call(piece.index, piece.id.unwrap_or_default());
            let Some(function) = piece.function else {
                continue;
            };
            // Some say the whole name again in every piece.
            let name = function.name.unwrap_or_default();
            if call.name != name {
                call.name.push_str(&name);
            }
            call.arguments.push_str(&seam.join(function.arguments));
        }
    }

    /// The call that a piece belongs to. Some count all their calls as 0; then a new id is what tells them apart.
    fn call(&mut self, index: Option<u64>, id: String) -> &mut Begun {
        let known = match index {
            Some(index) => self.calls.iter().rposition(|it| it.index == index),
            None if id.is_empty() => self.calls.len().checked_sub(1),
            None => self.calls.iter().rposition(|it| it.call.id == id),
        };
        let known = known.filter(|at| {
            let call = &self.calls[*at].call;
            id.is_empty() || call.id.is_empty() || call.id == id
        });
        let at = known.unwrap_or_else(|| {
            let index = index.unwrap_or(self.calls.len() as u64);
            let call = ToolCall {
                id: String::new(),
                name: String::new(),
                arguments: String::new(),
            };
            let seam = Seam::default();
            self.calls.push(Begun { index, call, seam });
            self.calls.len() - 1
        });
        let begun = &mut self.calls[at];
        if !id.is_empty() {
            begun.call.id = id;
        }
        begun
    }
}

/// The calls of a whole answer: each has a name, and an id of its own.
pub(super) fn named(
    calls: impl Iterator<Item = ToolCall>,
    end: End,
) -> Result<Vec<ToolCall>, Failure> {
    let mut calls: Vec<ToolCall> = calls.collect();
    if end == End::CutOff {
        // It may have been cut off in the middle of a name.
        calls.retain(|call| !call.name.is_empty());
    }
    if calls.iter().any(|call| call.name.is_empty()) {
        return Err(Failure::Unavailable {
            reason: "the answer has a call without a name".to_owned(),
        });
    }
    let mut seen = BTreeSet::new();
    for at in 0..calls.len() {
        let mut id = calls[at].id.clone();
        let mut number = at;
        while id.is_empty() || seen.contains(&id) {
            id = format!("call_{number}");
            number += calls.len();
        }
        seen.insert(id.clone());
        calls[at].id = id;
    }
    Ok(calls)
}
