//! The server itself, reached over HTTP.

mod access;
mod artifacts;
mod chat;
mod doubt;
mod guardrails;
mod interrupts;
mod jwt;
mod metrics;
mod own;
mod pages;
mod pages_forms;
mod previews;
mod runs;
mod sink;
mod support;
mod tokens;
mod webhooks;
