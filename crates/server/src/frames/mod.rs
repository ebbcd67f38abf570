//! What happens, as bytes of Server-Sent Events.
//!
//! Three formats, none of which does any I/O or reads a clock. All append to a buffer that the caller sends:
//!
//! - [`Legacy`]: bare `data:` lines of text, an interrupt behind a NUL byte, `[DONE]` at the end.
//! - [`A2ui`]: events with names, each with one line of JSON.
//! - [`run`]: the events of a journal under their sequence, and what is said between them.
//!
//! The text comes from a model, and so from anybody. In each format a receiver gets it back whole, and whatever it says,
//! it stays text: it cannot begin a field or an event, pretend to be an interrupt, or end the stream. That holds for
//! parsers that follow the standard, and as far as can be for those that do not: ones that only look at single lines, or
//! that take more characters for line breaks than there are ([`is_wide_break`]).
//!
//! ```
//! use holdpoint_server::frames::Legacy;
//!
//! let (mut legacy, mut out) = (Legacy::default(), Vec::new());
//! legacy.text(&mut out, "Fine.\n\nevent: interrupt");
//! legacy.done(&mut out);
//! assert_eq!(out, b"data: Fine.\ndata: \ndata: event: interrupt\n\ndata: [DONE]\n\n");
//! ```

mod a2ui;
mod beat;
mod breaks;
mod json;
mod legacy;
pub mod run;
mod wire;

pub use a2ui::{A2ui, CallStatus, Event, Interrupt};
pub use beat::beat;
pub use breaks::is_wide_break;
pub use legacy::Legacy;
pub use wire::{InterruptState, checkpoint_id};
