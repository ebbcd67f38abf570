//! The server itself, reached over HTTP.

mod access;
mod chat;
mod runs;
mod support;
