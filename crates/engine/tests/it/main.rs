//! The engine on a real store, with models and tools that are code of the test.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod adopt;
mod artifacts;
mod drift;
mod guardrails;
mod life;
mod offers;
mod outbox;
mod peers;
mod previews;
mod recovery;
mod requests;
mod stops;
mod support;
mod turns;
