//! A provider of models for tests: it says what it is told to, as slowly and as brokenly as it is told to.
//!
//! ```
//! use holdpoint_test_provider::{Answer, Api, Server, said};
//! let server = Server::start(|asked| {
//!     let text = asked.body["model"].as_str().unwrap_or_default();
//!     Answer::stream(said(text).in_api(Api::Chat))
//! });
//! assert!(server.url().starts_with("http://127.0.0.1:"));
//! ```

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod server;
mod speech;

pub use server::{Answer, Asked, Gate, Server};
pub use speech::{Api, Said, said};
