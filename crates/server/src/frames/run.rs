//! Our own format: a run's journal, and what is said between its events.
//!
//! Events of the journal carry their sequence as id, so that a client that comes back says where it was. Nothing else has an
//! id: the text of a model that is still speaking is in no journal, and is void once its message is committed.
//!
//! ```
//! use holdpoint_server::frames::run;
//! use serde_json::json;
//!
//! let mut out = Vec::new();
//! run::record(&mut out, 7, "run_finished", &json!({"run_id": "run_1"}))?;
//! assert_eq!(out, b"id: 7\nevent: run_finished\ndata: {\"run_id\":\"run_1\"}\n\n");
//! # Ok::<(), serde_json::Error>(())
//! ```

use std::time::Duration;

use holdpoint_core::{FramePath, RunId};
use serde::Serialize;

use super::json;

/// Text of a model that is still speaking.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Spoken<'a> {
    /// The run.
    pub run_id: RunId,
    /// Which agent of the run speaks.
    pub frame: &'a FramePath,
    /// Which try at this turn it is; with another try the text begins anew.
    pub attempt: u32,
    /// What is said.
    pub text: &'a str,
}

/// An event of the journal, under its sequence. A line break in the name, which no name has, is left out.
///
/// # Errors
///
/// The event does not become JSON. Nothing is written then.
pub fn record(
    out: &mut Vec<u8>,
    seq: u64,
    name: &str,
    event: &impl Serialize,
) -> Result<(), serde_json::Error> {
    let start = out.len();
    out.extend_from_slice(format!("id: {seq}\nevent: ").as_bytes());
    out.extend(name.bytes().filter(|byte| !matches!(byte, b'\r' | b'\n')));
    out.extend_from_slice(b"\ndata: ");
    let written = json::write(out, event);
    match written {
        Ok(()) => out.extend_from_slice(b"\n\n"),
        Err(_) => out.truncate(start),
    }
    written
}

/// Some more text, which follows what was said in this attempt.
pub fn delta(out: &mut Vec<u8>, spoken: &Spoken<'_>) {
    json::write_event(out, "delta", spoken);
}

/// All text of this attempt so far. It takes the place of whatever the client has of the message.
pub fn message_reset(out: &mut Vec<u8>, spoken: &Spoken<'_>) {
    json::write_event(out, "message_reset", spoken);
}

/// An interrupt as it stands.
pub fn interrupt(out: &mut Vec<u8>, interrupt: &impl Serialize) {
    json::write_event(out, "interrupt", interrupt);
}

/// A sign of life. It is an event and no comment, because a browser does not show comments to its page.
pub fn heartbeat(out: &mut Vec<u8>) {
    out.extend_from_slice(b"event: heartbeat\ndata: {}\n\n");
}

/// The server goes away; whoever wants to know more comes back.
pub fn closing(out: &mut Vec<u8>) {
    out.extend_from_slice(b"event: closing\ndata: {}\n\n");
}

/// How long a client waits before it comes back.
pub fn retry(out: &mut Vec<u8>, wait: Duration) {
    out.extend_from_slice(format!("retry: {}\n\n", wait.as_millis()).as_bytes());
}
