//! Events with names, each with one line of JSON.

mod encoder;
mod event;
mod pace;

pub use encoder::A2ui;
pub use event::{CallStatus, Event, Interrupt};
