//! The server itself, reached over HTTP.

mod access;
mod chat;
mod doubt;
mod interrupts;
mod jwt;
mod metrics;
mod own;
mod runs;
mod support;
mod tokens;
