//! Durable human-in-the-loop for AI agents.
//!
//! An agent stops before a risky action, the stop survives anything, a person decides, and the agent goes on from exactly
//! where it was, without doing anything twice. This crate is what a Rust program depends on; it re-exports what it needs.
//!
//! ```
//! use std::{collections::BTreeMap, sync::Arc};
//! use holdpoint::{Answer, Decision, Engine, Kit, Options, Outcome, Principal, Registry, Watchdog};
//!
//! #[derive(Debug)]
//! struct Refund;
//! #[async_trait::async_trait]
//! impl holdpoint::Tool for Refund {
//!     async fn call(&self, call: holdpoint::Call<'_>) -> Outcome {
//!         Outcome::Done { content: format!("refunded under {}", call.key) }
//!     }
//! }
//! # #[derive(Debug)]
//! # struct Clerk;
//! # #[async_trait::async_trait]
//! # impl holdpoint::Model for Clerk {
//! #     async fn turn(&self, request: holdpoint::Request<'_>, _: &mut (dyn FnMut(holdpoint::Delta) + Send))
//! #         -> Result<holdpoint::Reply, holdpoint::Failure> {
//! #         let asked = request.messages.len() > 1;
//! #         let call = holdpoint::ToolCall { id: "c1".into(), name: "refund".into(), arguments: "{}".into() };
//! #         let (text, calls) = if asked { ("done".into(), vec![]) } else { (String::new(), vec![call]) };
//! #         Ok(holdpoint::Reply { text, calls, usage: Default::default() })
//! #     }
//! # }
//! # fn definition() -> holdpoint::Definition {
//! #     holdpoint::Definition {
//! #         format: holdpoint::FORMAT, name: "clerk".into(), version: "1".into(), model: "clerk".into(),
//! #         system_prompt: None, interrupt_mode: holdpoint::InterruptMode::Batched, limits: Default::default(),
//! #         breakpoints: Default::default(), subagents: vec![], strict: false,
//! #         tools: vec![holdpoint::ToolSpec {
//! #             name: "refund".into(), description: String::new(), version: "1".into(),
//! #             effect: holdpoint::Effect::Write, input_schema: true.into(), permissions: vec![],
//! #             runner: holdpoint::Runner::Code { hooks: Default::default() }, kind: Default::default(),
//! #             timeout: holdpoint::ToolSpec::DEFAULT_TIMEOUT, settle: holdpoint::ToolSpec::DEFAULT_SETTLE,
//! #         }],
//! #         policy: holdpoint::Policy {
//! #             interrupt_on: [("refund".to_owned(), holdpoint::Gate::ask(holdpoint::Allowed::standard()))].into(),
//! #             default: Default::default(),
//! #         },
//! #     }
//! # }
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("runs.db");
//! let store = holdpoint::open(&format!("sqlite:{}", path.display()), Default::default()).await?;
//! let registry = Registry::new().with("refund", Refund);
//! # let mut models: BTreeMap<String, Arc<dyn holdpoint::Model>> = BTreeMap::new();
//! # models.insert("clerk".to_owned(), Arc::new(Clerk));
//! let kit = Kit { registry, watchdog: Watchdog::default(), models };
//! let engine = Engine::new(store, kit, Options::default(), None);
//! let me = Principal::local("ann");
//! let agent = engine.publish(&me.actor.tenant, definition()).await?;
//!
//! let run = engine.start(&me, &agent, "order-1001", "refund it").await?;
//! let thread = run.key().clone();
//! run.finish().await?; // It waits now; this process may die, and another one answer.
//!
//! let waiting = engine.state(&thread).await?.expect("it was started");
//! let interrupt = *waiting.interrupts.keys().next().expect("the refund is gated");
//! engine.answer(&me, &thread, interrupt, Answer::All(Decision::APPROVE)).await?.finish().await?;
//! # let state = engine.state(&thread).await?.unwrap();
//! # assert_eq!(state.status(), Some(holdpoint::Status::Finished));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```

pub use holdpoint_core::{
    Actor, Allowed, Answer, Answers, Breakpoints, Cause, Choice, Decision, DecisionKind,
    Definition, EditedAction, Effect, Entry, Event, FORMAT, Gate, Grant, GrantId, GrantTerms,
    Hooks, InterruptId, InterruptKind, InterruptMode, InterruptStatus, Limits, Lookup, Matches,
    Message, OnTimeout, Outcome, Params, Policy, Principal, PrincipalKind, Prompt, Recalled, Rule,
    Ruling, RunId, Runner, Scope, Span, State, Status, Subagent, Terms, ThreadId, Timestamp,
    ToolCall, ToolKind, ToolSpec, Transcript,
};
pub use holdpoint_definition::{Loaded, Problem, Problems, load, load_str};
pub use holdpoint_engine::{
    Agent, Asking, Checkpoint, Engine, Error, GrantView, InterruptView, Kit, Options, Outside,
    OutsideClosed, RunView, Submitted, Watcher,
};
pub use holdpoint_models::{Delta, Failure, Model, Reply, Request};
pub use holdpoint_store::{SharedStore, ThreadKey, open};
pub use holdpoint_tools::{Call, Registry, Tool, Watchdog, enter};
