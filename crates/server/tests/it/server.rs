//! The server itself, reached over HTTP.

mod access;
mod chat;
mod own;
mod runs;
mod support;
