//! What models promise to the engine, and scenario files to those who write them.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod approval;
mod bad_files;
mod conversation;
mod failing;
mod matching;
mod provided;
mod references;
mod speaking;
