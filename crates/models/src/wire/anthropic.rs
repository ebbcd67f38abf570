//! The Messages API of Anthropic.

use std::collections::BTreeMap;

use holdpoint_core::{ToolCall, ToolStatus, Usage};
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

/// How much may be written where nobody says.
const MAX_TOKENS: u32 = 8_192;
/// The least that may be thought.
const MIN_BUDGET: u32 = 1_024;

pub(super) fn body(question: Question<'_>) -> Result<Value, Failure> {
    let Question {
        model,
        reference,
        request,
        ..
    } = question;
    let sampling = request.sampling;
    let max_tokens = sampling.max_output_tokens.unwrap_or(MAX_TOKENS);
    let turns = turns(request.messages, reference);
    let budget = match sampling.effort.as_deref() {
        None => None,
        Some(effort) => budget(effort, max_tokens)?,
    };
    // Thinking cannot begin in the middle of a turn with calls that began without.
    let budget = budget.filter(|_| has_thought(&turns));
    let mut body = json!({
        "model": model,
        "max_tokens": max_tokens,
        "messages": messages(&turns, budget.is_some()),
        "stream": true,
    });
    if let Some(system) = request.system.filter(|text| !text.trim().is_empty()) {
        body["system"] = json!(system);
    }
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            let mut offered = json!({"name": tool.name, "input_schema": schema(tool)});
            if !tool.description.is_empty() {
                offered["description"] = json!(tool.description);
            }
            offered
        });
        body["tools"] = tools.collect();
    }
    match (budget, sampling.temperature_milli) {
        // Whoever thinks chooses freely: another temperature is refused.
        (Some(budget), _) => {
            body["thinking"] = json!({"type": "enabled", "budget_tokens": budget});
        }
        (None, Some(milli)) => body["temperature"] = json!(temperature(milli)),
        (None, None) => {}
    }
    Ok(body)
}

/// How many of the tokens may be thought; `None` where that is too little to be allowed.
fn budget(effort: &str, max_tokens: u32) -> Result<Option<u32>, Failure> {
    let budget = match effort {
        "low" => max_tokens / 4,
        "medium" => max_tokens / 2,
        "high" => max_tokens / 4 * 3,
        other => {
            let other = other.escape_debug();
            let reason = format!("the effort `{other}` is not known here; use low, medium or high");
            return Err(Failure::Rejected { reason });
        }
    };
    Ok(Some(budget.max(MIN_BUDGET)).filter(|budget| *budget < max_tokens))
}

/// Whether everything that was said since the user spoke has its thoughts with it.
fn has_thought(turns: &[Turn<'_>]) -> bool {
    let since = turns.iter().rev().map_while(|turn| match turn {
        Turn::Model(spoken) => Some(spoken),
        Turn::User(_) => None,
    });
    since.into_iter().all(|spoken| Layout::of(spoken).is_some())
}

fn messages(turns: &[Turn<'_>], thinks: bool) -> Vec<Value> {
    let last_user = turns.iter().rposition(|turn| matches!(turn, Turn::User(_)));
    let mut messages: Vec<(&str, Vec<Value>)> = Vec::new();
    let mut say = |role, blocks: Vec<Value>| match messages.last_mut() {
        // Neighbours of one role are one message.
        Some((last, said)) if *last == role => said.extend(blocks),
        _ if blocks.is_empty() => {}
        _ => messages.push((role, blocks)),
    };
    if matches!(turns.first(), Some(Turn::Model(_))) {
        // The user must come first, also where the beginning was left out.
        say(
            "user",
            vec![json!({"type": "text", "text": "(earlier messages were left out)"})],
        );
    }
    for (at, turn) in turns.iter().enumerate() {
        match turn {
            Turn::User(text) => {
                // An empty text is refused.
                let blank = text.trim().is_empty();
                let text = if blank { "(empty)" } else { text };
                say("user", vec![json!({"type": "text", "text": text})]);
            }
            Turn::Model(spoken) => {
                let is_old = last_user.is_some_and(|last| at < last);
                let layout = Layout::of(spoken).filter(|_| thinks || is_old);
                say("assistant", blocks(spoken, layout));
                let results = spoken.calls.iter().map(|call| {
                    let mut result = json!({
                        "type": "tool_result",
                        "tool_use_id": call.id,
                        "content": call.result,
                    });
                    if call.status == ToolStatus::Error {
                        result["is_error"] = json!(true);
                    }
                    result
                });
                say("user", results.collect());
            }
        }
    }
    let messages = messages.into_iter();
    messages
        .map(|(role, content)| json!({"role": role, "content": content}))
        .collect()
}

fn blocks(spoken: &Spoken<'_>, layout: Option<Layout>) -> Vec<Value> {
    let text = |text: &str| {
        // Blank text is refused.
        let is_any = !text.trim().is_empty();
        is_any.then(|| json!({"type": "text", "text": text}))
    };
    let call = |at: usize| {
        let call = &spoken.calls[at];
        let input: Value = serde_json::from_str(call.arguments).unwrap_or_else(|_| json!({}));
        json!({"type": "tool_use", "id": call.id, "name": call.name, "input": input})
    };
    let mut blocks = Vec::new();
    let Some(Layout(pieces)) = layout else {
        blocks.extend(text(spoken.text));
        blocks.extend((0..spoken.calls.len()).map(call));
        return blocks;
    };
    let mut from = 0;
    for piece in pieces {
        match piece {
            Piece::Verbatim(block) => blocks.push(block),
            Piece::Text(bytes) => {
                blocks.extend(text(&spoken.text[from..from + bytes]));
                from += bytes;
            }
            Piece::Call(at) => blocks.push(call(at)),
        }
    }
    blocks
}

pub(super) fn reading(reference: &str) -> Box<dyn Reading> {
    Box::new(Messages {
        reference: reference.to_owned(),
        ..Messages::default()
    })
}

#[derive(Debug, Deserialize)]
struct Told {
    #[serde(default, rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    index: Option<u64>,
    #[serde(default)]
    message: Option<Begun>,
    #[serde(default)]
    content_block: Option<Block>,
    #[serde(default)]
    delta: Option<Piecemeal>,
    #[serde(default)]
    usage: Option<Spent>,
    #[serde(default)]
    error: Option<Spelling>,
}

#[derive(Debug, Deserialize)]
struct Begun {
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    usage: Option<Spent>,
}

#[derive(Debug, Default, Deserialize)]
struct Spent {
    #[serde(default)]
    input_tokens: Option<u64>,
    #[serde(default)]
    cache_read_input_tokens: Option<u64>,
    #[serde(default)]
    cache_creation_input_tokens: Option<u64>,
    #[serde(default)]
    output_tokens: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    Text {
        #[serde(default)]
        text: Option<String>,
    },
    ToolUse {
        #[serde(default)]
        id: Option<String>,
        #[serde(default)]
        name: Option<String>,
        #[serde(default)]
        input: Option<Value>,
    },
    Thinking {
        #[serde(default)]
        thinking: Option<String>,
        #[serde(default)]
        signature: Option<String>,
    },
    RedactedThinking {
        #[serde(default)]
        data: Option<String>,
    },
    #[serde(other)]
    Other,
}

/// A piece of a block, or of what is said of the whole message.
#[derive(Debug, Deserialize)]
struct Piecemeal {
    #[serde(default)]
    text: Option<Text>,
    #[serde(default)]
    partial_json: Option<Text>,
    #[serde(default)]
    thinking: Option<Text>,
    #[serde(default)]
    signature: Option<String>,
    #[serde(default)]
    stop_reason: Option<String>,
}

/// A block as far as it is known.
#[derive(Debug)]
struct Open {
    content: Content,
    seam: Seam,
    is_over: bool,
}

#[derive(Debug)]
enum Content {
    Text(String),
    Call {
        call: ToolCall,
        input: Option<Value>,
    },
    Thought {
        thinking: String,
        signature: String,
    },
    Redacted(String),
    Other,
}

#[derive(Debug, Default)]
struct Messages {
    reference: String,
    text: String,
    blocks: BTreeMap<u64, Open>,
    stop_reason: Option<String>,
    has_stopped: bool,
    spent: Spent,
    model: String,
}

impl Reading for Messages {
    fn take(
        &mut self,
        event: &Event,
        deltas: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Flow, Failure> {
        if event.data.trim().is_empty() {
            return Ok(Flow::More);
        }
        let told: Told = data(event)?;
        let kind = told.kind.as_deref().unwrap_or(&event.name).to_owned();
        let at = told.index.unwrap_or_default();
        match kind.as_str() {
            "message_start" => {
                if let Some(begun) = told.message {
                    self.model = begun.model.unwrap_or_default();
                    self.add_spent(begun.usage);
                }
            }
            "content_block_start" => {
                if let Some(block) = told.content_block {
                    self.begin(at, block, deltas);
                }
            }
            "content_block_delta" => {
                if let Some(piece) = told.delta {
                    self.add(at, piece, deltas);
                }
            }
            "content_block_stop" => {
                if let Some(block) = self.blocks.get_mut(&at) {
                    block.is_over = true;
                }
            }
            "message_delta" => {
                self.add_spent(told.usage);
                let reason = told.delta.and_then(|it| it.stop_reason);
                self.stop_reason = reason.or(self.stop_reason.take());
            }
            "message_stop" => {
                self.has_stopped = true;
                return Ok(Flow::Over);
            }
            _ => {
                if let Some(error) = told.error {
                    return Err(Complaint::from(error).means(None, None));
                }
                if kind == "error" {
                    return Err(Complaint::of_body(&event.data).means(None, None));
                }
            }
        }
        Ok(Flow::More)
    }

    fn is_whole(&self) -> bool {
        self.has_stopped && self.stop_reason.is_some()
    }

    fn reply(self: Box<Self>) -> Result<Reply, Failure> {
        if !self.is_whole() {
            return Err(broke_off());
        }
        let end = match self.stop_reason.as_deref() {
            Some("end_turn" | "stop_sequence" | "tool_use") => End::Said,
            Some("max_tokens" | "model_context_window_exceeded") => End::CutOff,
            Some("refusal") => {
                let reason = "the answer ended with `refusal`".to_owned();
                return Err(Failure::Withheld { reason });
            }
            // Nobody knows what is to come of its calls.
            other => {
                let other = other.unwrap_or_default().escape_debug();
                let reason = format!("the answer ended with `{other}`");
                return Err(Failure::Unavailable { reason });
            }
        };
        if end == End::Said && self.blocks.values().any(|block| !block.is_over) {
            return Err(broke_off());
        }
        let mut layout = Layout::default();
        let mut calls = Vec::new();
        for block in self.blocks.into_values() {
            match block.content {
                Content::Text(text) => layout.add_text(text.len()),
                Content::Call { mut call, input } => {
                    if call.arguments.is_empty()
                        && let Some(input) = input
                    {
                        call.arguments = input.to_string();
                    }
                    layout.0.push(Piece::Call(calls.len()));
                    calls.push(call);
                }
                Content::Thought {
                    thinking,
                    signature,
                } => layout.0.push(Piece::Verbatim(json!({
                    "type": "thinking",
                    "thinking": thinking,
                    "signature": signature,
                }))),
                Content::Redacted(data) => layout.0.push(Piece::Verbatim(json!({
                    "type": "redacted_thinking",
                    "data": data,
                }))),
                Content::Other => {}
            }
        }
        let spent = self.spent;
        let [new, read, written] = [
            spent.input_tokens,
            spent.cache_read_input_tokens,
            spent.cache_creation_input_tokens,
        ]
        .map(Option::unwrap_or_default);
        Ok(Reply {
            text: self.text,
            calls: named(calls.into_iter(), end)?,
            end,
            usage: Usage {
                input_tokens: new.saturating_add(read).saturating_add(written),
                output_tokens: spent.output_tokens.unwrap_or_default(),
                cached_tokens: read,
                cost_nano_usd: 0,
            },
            model: self.model,
            // What was cut off in the middle of a thought has no signature.
            carried: (end == End::Said)
                .then(|| layout.kept(&self.reference))
                .flatten(),
        })
    }
}

impl Messages {
    fn begin(&mut self, at: u64, block: Block, deltas: &mut (dyn FnMut(Delta) + Send)) {
        let content = match block {
            Block::Text { text } => {
                let text = text.unwrap_or_default();
                if !text.is_empty() {
                    self.text.push_str(&text);
                    deltas(Delta::Text(text.clone()));
                }
                Content::Text(text)
            }
            Block::ToolUse { id, name, input } => Content::Call {
                call: ToolCall {
                    id: id.unwrap_or_default(),
                    name: name.unwrap_or_default(),
                    arguments: String::new(),
                },
                // Some send it whole at once, and not in pieces.
                input: input.filter(|it| it.as_object().is_some_and(|it| !it.is_empty())),
            },
            Block::Thinking {
                thinking,
                signature,
            } => Content::Thought {
                thinking: thinking.unwrap_or_default(),
                signature: signature.unwrap_or_default(),
            },
            Block::RedactedThinking { data } => Content::Redacted(data.unwrap_or_default()),
            Block::Other => Content::Other,
        };
        let open = Open {
            content,
            seam: Seam::default(),
            is_over: false,
        };
        self.blocks.insert(at, open);
    }

    fn add(&mut self, at: u64, piece: Piecemeal, deltas: &mut (dyn FnMut(Delta) + Send)) {
        let Some(block) = self.blocks.get_mut(&at) else {
            return;
        };
        match &mut block.content {
            Content::Text(said) => {
                let text = block.seam.join(piece.text);
                if !text.is_empty() {
                    said.push_str(&text);
                    self.text.push_str(&text);
                    deltas(Delta::Text(text));
                }
            }
            Content::Call { call, .. } => {
                call.arguments
                    .push_str(&block.seam.join(piece.partial_json));
            }
            Content::Thought {
                thinking,
                signature,
            } => {
                thinking.push_str(&block.seam.join(piece.thinking));
                signature.push_str(&piece.signature.unwrap_or_default());
            }
            Content::Redacted(_) | Content::Other => {}
        }
    }

    /// What is said later is the sum, not more.
    fn add_spent(&mut self, spent: Option<Spent>) {
        let spent = spent.unwrap_or_default();
        let known = &mut self.spent;
        known.input_tokens = spent.input_tokens.or(known.input_tokens);
        known.cache_read_input_tokens = spent
            .cache_read_input_tokens
            .or(known.cache_read_input_tokens);
        known.cache_creation_input_tokens = spent
            .cache_creation_input_tokens
            .or(known.cache_creation_input_tokens);
        known.output_tokens = spent.output_tokens.or(known.output_tokens);
    }
}
