//! What the documents show is what happens.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod documents;
