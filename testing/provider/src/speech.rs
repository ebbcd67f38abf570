//! One answer, as each API has it.

use serde_json::{Value, json};

/// How it is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// Chat completions.
    Chat,
    /// Responses.
    Responses,
    /// Messages.
    Anthropic,
}

impl Api {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Chat, Self::Responses, Self::Anthropic];

    /// The provider that everybody knows for it, and the path of its base URL.
    #[must_use]
    pub const fn provider(self) -> (&'static str, &'static str) {
        match self {
            Self::Chat => ("openai", "/v1"),
            Self::Responses => ("openai-responses", "/v1"),
            Self::Anthropic => ("anthropic", ""),
        }
    }
}

/// What a model says.
#[derive(Debug, Clone, Default)]
pub struct Said {
    text: Vec<String>,
    calls: Vec<(String, String, Vec<String>)>,
    is_cut_off: bool,
}

/// A model says these words, one after the other.
#[must_use]
pub fn said(text: &str) -> Said {
    let text = text.split_inclusive(' ').map(str::to_owned).collect();
    Said {
        text,
        ..Said::default()
    }
}

impl Said {
    /// And calls this, with these pieces of its arguments.
    #[must_use]
    pub fn calling(mut self, id: &str, name: &str, arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(|it| (*it).to_owned()).collect();
        self.calls.push((id.to_owned(), name.to_owned(), arguments));
        self
    }

    /// And comes to the limit of what it may write.
    #[must_use]
    pub fn cut_off(mut self) -> Self {
        self.is_cut_off = true;
        self
    }

    /// The stream in this API.
    #[must_use]
    pub fn in_api(&self, api: Api) -> String {
        match api {
            Api::Chat => self.chat(),
            Api::Responses => self.responses(),
            Api::Anthropic => self.anthropic(),
        }
    }

    fn chat(&self) -> String {
        let chunk = |delta: Value, finish: Value| {
            data(&json!({
                "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "test-1",
                "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}],
                "usage": null,
            }))
        };
        let mut stream = chunk(
            json!({"role": "assistant", "content": "", "refusal": null}),
            Value::Null,
        );
        for text in &self.text {
            stream += &chunk(json!({"content": text}), Value::Null);
        }
        for (index, (id, name, arguments)) in self.calls.iter().enumerate() {
            let call = json!({"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": ""}});
            stream += &chunk(json!({"tool_calls": [call]}), Value::Null);
            for piece in arguments {
                let call = json!({"index": index, "function": {"arguments": piece}});
                stream += &chunk(json!({"tool_calls": [call]}), Value::Null);
            }
        }
        let finish = match (self.is_cut_off, self.calls.is_empty()) {
            (true, _) => "length",
            (false, false) => "tool_calls",
            (false, true) => "stop",
        };
        stream += &chunk(json!({}), json!(finish));
        stream += &data(&json!({
            "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "test-1", "choices": [],
            "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120,
                "prompt_tokens_details": {"cached_tokens": 40}},
        }));
        stream + "data: [DONE]\n\n"
    }

    fn responses(&self) -> String {
        let mut number = 0;
        let mut event = |mut value: Value| {
            value["sequence_number"] = json!(number);
            number += 1;
            let kind = value["type"].as_str().unwrap().to_owned();
            format!("event: {kind}\n{}", data(&value))
        };
        let response = |status: &str| {
            json!({"id": "resp_1", "object": "response", "status": status, "model": "test-1", "output": [],
                "error": null, "incomplete_details": null, "usage": null})
        };
        let mut stream =
            event(json!({"type": "response.created", "response": response("in_progress")}));
        stream +=
            &event(json!({"type": "response.in_progress", "response": response("in_progress")}));
        let mut output = Vec::new();
        if !self.text.is_empty() {
            let item = |status: &str, content: Value| json!({"id": "msg_1", "type": "message", "role": "assistant", "status": status, "content": content});
            stream += &event(
                json!({"type": "response.output_item.added", "output_index": 0, "item": item("in_progress", json!([]))}),
            );
            let part = |text: &str| json!({"type": "output_text", "text": text, "annotations": []});
            stream += &event(
                json!({"type": "response.content_part.added", "item_id": "msg_1", "output_index": 0, "content_index": 0, "part": part("")}),
            );
            for text in &self.text {
                stream += &event(
                    json!({"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "content_index": 0, "delta": text}),
                );
            }
            let text = self.text.concat();
            stream += &event(
                json!({"type": "response.output_text.done", "item_id": "msg_1", "output_index": 0, "content_index": 0, "text": text}),
            );
            let item = item("completed", json!([part(&text)]));
            stream += &event(
                json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
            );
            output.push(item);
        }
        for (id, name, arguments) in &self.calls {
            let at = output.len();
            let item = |status: &str, arguments: &str| {
                json!({"id": format!("fc_{at}"), "type": "function_call", "status": status,
                    "call_id": id, "name": name, "arguments": arguments})
            };
            stream += &event(
                json!({"type": "response.output_item.added", "output_index": at, "item": item("in_progress", "")}),
            );
            for piece in arguments {
                stream += &event(
                    json!({"type": "response.function_call_arguments.delta", "item_id": format!("fc_{at}"), "output_index": at, "delta": piece}),
                );
            }
            let whole = arguments.concat();
            stream += &event(
                json!({"type": "response.function_call_arguments.done", "item_id": format!("fc_{at}"), "output_index": at, "arguments": whole}),
            );
            let item = item("completed", &whole);
            stream += &event(
                json!({"type": "response.output_item.done", "output_index": at, "item": item}),
            );
            output.push(item);
        }
        let (kind, status) = if self.is_cut_off {
            ("response.incomplete", "incomplete")
        } else {
            ("response.completed", "completed")
        };
        let mut response = response(status);
        response["output"] = json!(output);
        response["usage"] = json!({"input_tokens": 100, "output_tokens": 20, "total_tokens": 120,
            "input_tokens_details": {"cached_tokens": 40}, "output_tokens_details": {"reasoning_tokens": 0}});
        if self.is_cut_off {
            response["incomplete_details"] = json!({"reason": "max_output_tokens"});
        }
        stream + &event(json!({"type": kind, "response": response}))
    }

    fn anthropic(&self) -> String {
        let event = |value: Value| {
            let kind = value["type"].as_str().unwrap().to_owned();
            format!("event: {kind}\n{}", data(&value))
        };
        let mut stream = event(json!({"type": "message_start", "message": {
            "id": "msg_1", "type": "message", "role": "assistant", "content": [], "model": "test-1",
            "stop_reason": null, "stop_sequence": null,
            "usage": {"input_tokens": 50, "cache_creation_input_tokens": 10, "cache_read_input_tokens": 40, "output_tokens": 1},
        }}));
        stream += &event(json!({"type": "ping"}));
        let mut at = 0;
        if !self.text.is_empty() {
            stream += &event(
                json!({"type": "content_block_start", "index": at, "content_block": {"type": "text", "text": ""}}),
            );
            for text in &self.text {
                stream += &event(
                    json!({"type": "content_block_delta", "index": at, "delta": {"type": "text_delta", "text": text}}),
                );
            }
            stream += &event(json!({"type": "content_block_stop", "index": at}));
            at += 1;
        }
        for (id, name, arguments) in &self.calls {
            stream += &event(json!({"type": "content_block_start", "index": at,
                "content_block": {"type": "tool_use", "id": id, "name": name, "input": {}}}));
            for piece in [""].into_iter().chain(arguments.iter().map(String::as_str)) {
                stream += &event(
                    json!({"type": "content_block_delta", "index": at, "delta": {"type": "input_json_delta", "partial_json": piece}}),
                );
            }
            stream += &event(json!({"type": "content_block_stop", "index": at}));
            at += 1;
        }
        let reason = match (self.is_cut_off, self.calls.is_empty()) {
            (true, _) => "max_tokens",
            (false, false) => "tool_use",
            (false, true) => "end_turn",
        };
        stream += &event(
            json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null}, "usage": {"output_tokens": 20}}),
        );
        stream + &event(json!({"type": "message_stop"}))
    }
}

fn data(value: &Value) -> String {
    format!("data: {value}\n\n")
}
