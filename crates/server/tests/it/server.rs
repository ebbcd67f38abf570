//! The server itself, reached over HTTP.

mod access;
mod chat;
mod doubt;
mod own;
mod runs;
mod support;
