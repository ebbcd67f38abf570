//! What is benchmarked: an agent with one tool, a model that plays its part at no cost, and a tool that counts.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use async_trait::async_trait;
use holdpoint_core::{
    Allowed, Breakpoints, ContextRule, Definition, Effect, FIRST_FORMAT, Gate, Hooks,
    InterruptMode, Limits, Outcome, Policy, Ruling, Runner, Sampling, Span, ToolCall, ToolKind,
    ToolSpec, Usage,
};
use holdpoint_engine::Kit;
use holdpoint_models::{Delta, Failure, Model, Reply, Request};
use holdpoint_tools::{Call, Tool};
use tokio::time::Instant;

/// The one tool.
const TOOL: &str = "transfer";

/// The one model.
const MODEL: &str = "bench:steps";

/// Whether a person is asked before the tool runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asking {
    /// For every call.
    Always,
    /// Never.
    Never,
}

/// The agent's definition.
fn definition(asking: Asking) -> Definition {
    let gate = match asking {
        Asking::Always => Gate::ask(Allowed::standard()),
        Asking::Never => Gate::open(),
    };
    let tool = ToolSpec {
        name: TOOL.to_owned(),
        description: "Moves money from one account to another.".to_owned(),
        version: "1".to_owned(),
        effect: Effect::Write,
        input_schema: serde_json::json!({
            "type": "object",
            "properties": {"to": {"type": "string"}, "amount": {"type": "integer"}},
            "required": ["to", "amount"],
        }),
        runner: Runner::Code {
            hooks: Hooks::default(),
        },
        kind: ToolKind::Plain,
        timeout: ToolSpec::DEFAULT_TIMEOUT,
        settle: ToolSpec::DEFAULT_SETTLE,
        permissions: Vec::new(),
    };
    Definition {
        format: FIRST_FORMAT,
        name: "bench".to_owned(),
        version: "1".to_owned(),
        model: MODEL.to_owned(),
        fallback: Vec::new(),
        sampling: Sampling::default(),
        context: ContextRule {
            max_tokens: u32::MAX,
        },
        system_prompt: Some("You move money when you are asked to.".to_owned()),
        mcp_servers: Vec::new(),
        written: None,
        tools: vec![tool],
        policy: Policy {
            interrupt_on: BTreeMap::from([(TOOL.to_owned(), gate)]),
            default: Ruling::Deny,
        },
        interrupt_mode: InterruptMode::Batched,
        limits: Limits {
            turns: 1_000_000,
            calls: 1_000_000,
            time: Span::from_secs(86_400),
        },
        breakpoints: Breakpoints::default(),
        subagents: Vec::new(),
        strict: false,
        confirm: None,
        guardrails: std::collections::BTreeMap::new(),
    }
}

/// The agent, the code that it is made from, and what its tool sees.
#[derive(Debug)]
pub(crate) struct Scene {
    pub(crate) definition: Definition,
    pub(crate) kit: Kit,
    pub(crate) ledger: Arc<Ledger>,
}

impl Scene {
    /// The model makes so many calls before it is done; their results have so many characters.
    pub(crate) fn new(asking: Asking, steps: usize, characters: usize) -> Self {
        let ledger = Arc::new(Ledger::default());
        let tool = Counter::new(Arc::clone(&ledger), characters);
        Self {
            definition: definition(asking),
            kit: Kit::new()
                .with_tool(TOOL, tool)
                .with_model(MODEL, Stepper { steps }),
            ledger,
        }
    }
}

/// Calls the tool once a turn until it has been called often enough, then says that it is done.
#[derive(Debug)]
struct Stepper {
    /// How many calls a run makes.
    steps: usize,
}

#[async_trait]
impl Model for Stepper {
    async fn turn(
        &self,
        request: Request<'_>,
        _deltas: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Reply, Failure> {
        // One message of the user, then two for each step. Counting them would cost more the longer the thread is.
        let done = request.messages.len().saturating_sub(1) / 2;
        let usage = Usage {
            input_tokens: 100,
            output_tokens: 20,
            ..Usage::default()
        };
        if done >= self.steps {
            return Ok(Reply {
                text: "It is done.".to_owned(),
                calls: Vec::new(),
                usage,
                ..Reply::default()
            });
        }
        let call = ToolCall {
            id: format!("call_{done}"),
            name: TOOL.to_owned(),
            arguments: format!(r#"{{"to":"account-4711","amount":{}}}"#, done + 100),
        };
        Ok(Reply {
            text: String::new(),
            calls: vec![call],
            usage,
            ..Reply::default()
        })
    }
}

/// What the tool saw.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    effects: AtomicUsize,
    times: Mutex<Vec<Instant>>,
}

impl Ledger {
    /// How often the tool was called.
    pub(crate) fn effects(&self) -> usize {
        self.effects.load(Ordering::Relaxed)
    }

    /// When each call was made, in order, if that is kept.
    pub(crate) fn times(&self) -> Vec<Instant> {
        self.times
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// Counts its calls, and returns random text.
#[derive(Debug)]
struct Counter {
    /// Where it counts.
    ledger: Arc<Ledger>,
    /// How many characters it returns; none: a short fixed text, and times are not kept.
    characters: usize,
    /// The state of its random numbers.
    random: AtomicU64,
}

impl Counter {
    /// A tool that returns this many characters.
    fn new(ledger: Arc<Ledger>, characters: usize) -> Self {
        let random = AtomicU64::new(0x9e37_79b9_7f4a_7c15);
        Self {
            ledger,
            characters,
            random,
        }
    }
}

#[async_trait]
impl Tool for Counter {
    async fn call(&self, _call: Call<'_>) -> Outcome {
        self.ledger.effects.fetch_add(1, Ordering::Relaxed);
        if self.characters == 0 {
            let content = "transferred".to_owned();
            return Outcome::Done { content };
        }
        self.ledger
            .times
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Instant::now());
        let mut state = self.random.load(Ordering::Relaxed);
        let content = printable(&mut state, self.characters);
        self.random.store(state, Ordering::Relaxed);
        Outcome::Done { content }
    }
}

/// Random printable ASCII, so that nothing can be compressed away.
fn printable(state: &mut u64, characters: usize) -> String {
    let mut text = String::with_capacity(characters);
    for _ in 0..characters {
        // Marsaglia's xorshift64.
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        let nth = u8::try_from((*state >> 32) % 95).unwrap_or(0);
        text.push(char::from(b' ' + nth));
    }
    text
}
