//! The facade from outside: the interrupt manager on a store on disk, and the examples.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod examples;
mod manager;
mod support;
