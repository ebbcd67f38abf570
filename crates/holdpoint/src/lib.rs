//! Durable human-in-the-loop for AI agents.
//!
//! An agent stops before a risky action, the stop survives anything, a person decides, and the agent goes on from exactly
//! where it was, without doing anything twice. This crate is what a Rust program depends on; it re-exports what it needs.
//!
//! ```
//! use holdpoint::{
//!     Answer, Decision, Definition, Effect, Engine, Kit, Options, Outcome, Principal, ToolSpec, function,
//! };
//! # #[derive(Debug)]
//! # struct Model;
//! # #[async_trait::async_trait]
//! # impl holdpoint::Model for Model {
//! #     async fn turn(&self, request: holdpoint::Request<'_>, _: &mut (dyn FnMut(holdpoint::Delta) + Send))
//! #         -> Result<holdpoint::Reply, holdpoint::Failure> {
//! #         let told = request.messages.iter().any(|it| matches!(it, holdpoint::Message::Tool { .. }));
//! #         let call = holdpoint::ToolCall { id: "c1".into(), name: "refund".into(), arguments: "{}".into() };
//! #         let (text, calls) = if told { ("done".into(), vec![]) } else { (String::new(), vec![call]) };
//! #         Ok(holdpoint::Reply { text, calls, ..Default::default() })
//! #     }
//! # }
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("runs.db").display().to_string();
//!
//! let refund = function(|_args, key| async move { Outcome::done(format!("refunded under {key}")) });
//! let clerk = Definition::new("clerk", "model").with_tool(ToolSpec::code("refund", Effect::Write)).ask("refund");
//!
//! let store = holdpoint::open(&format!("sqlite:{path}"), Default::default()).await?;
//! let kit = Kit::new().with_tool("refund", refund).with_model("model", Model);
//! let engine = Engine::new(store, kit, Options::default(), None);
//!
//! let ann = Principal::local("ann");
//! let clerk = engine.publish("local", clerk).await?;
//! let run = engine.start(&ann, &clerk, "order-1001", "Please refund it").await?;
//! let thread = run.key().clone();
//! run.finish().await?; // It waits now. This process may die, and another one answer.
//!
//! let question = engine.view(&thread).await?.interrupts[0].id;
//! engine.answer(&ann, &thread, question, Answer::All(Decision::APPROVE)).await?.finish().await?;
//! assert_eq!(engine.view(&thread).await?.status, "finished");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```
//!
//! - A [`Definition`] says what an agent is, and which of its calls a person must allow; [`load`] reads one from YAML.
//! - A [`Kit`] is the code that it is made from: tools and models of this program.
//! - An [`Engine`] runs it on a store, which [`open`] opens. Everything that happened is in the store, and any process on
//!   it can go on.
//! - A [`manager::InterruptManager`] asks people on behalf of programs that have no agent here.

pub mod manager;

// What the document shows is true.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
mod document {}

pub use holdpoint_core::{
    Actor, Allowed, Answer, Answers, Artifact, ArtifactAddress, Basis, Breakpoints, Builtin, Case,
    Cause, CheckedBy, Choice, Decision, DecisionKind, Definition, EditedAction, Effect, Entry,
    Event, Finding, Flag, Gate, Grant, GrantId, GrantTerms, Guarded, Guardrail, HttpBody,
    HttpHeader, HttpMethod, HttpRequest, InterruptId, InterruptKind, InterruptMode,
    InterruptStatus, Limits, Lookup, Matches, McpServer, McpTransport, McpVariable, Message,
    OnTimeout, Outcome, Params, Policy, Preview, PreviewForm, Principal, PrincipalKind, Prompt,
    Recalled, Refusal, Rule, Ruling, RunId, Runner, Scope, Span, State, Status, Subagent, Template,
    ThreadId, Timestamp, ToolCall, ToolSpec, Transcript, UrlTemplate,
};
pub use holdpoint_definition::{Loaded, Problem, Problems, load, load_str};
pub use holdpoint_engine::{
    Adopted, Agent, Checkpoint, Engine, Error, GrantView, InterruptView, Kit, Options, PendingPage,
    PendingView, RunView, Submitted, Watcher,
};
pub use holdpoint_models::{Delta, End, Failure, Model, Reply, Request, Scripted};
pub use holdpoint_store::{SharedStore, ThreadKey, open};
pub use holdpoint_tools::{
    Call, Checker, NoSuchChecker, Question, StepContext, StepFailed, StepTrouble, SteppedTool,
    Tool, Watchdog, approved, checker, enter, function, reason,
};
