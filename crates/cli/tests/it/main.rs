//! The command line as its users meet it: the real binary, the shipped examples, a store on disk.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod adopt;
mod answers;
mod artifacts;
mod asking;
mod builtins;
mod collector;
mod guardrails;
mod hostile;
mod leaving;
mod life;
mod mcp;
mod moving;
mod naming;
mod providers;
mod screens;
mod serve;
mod served;
mod stops;
mod support;
mod traces;
mod webhooks;
