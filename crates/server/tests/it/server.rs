//! The server itself, reached over HTTP.

mod access;
mod chat;
mod doubt;
mod interrupts;
mod metrics;
mod own;
mod runs;
mod support;
