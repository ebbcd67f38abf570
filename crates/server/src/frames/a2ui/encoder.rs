//! The encoder: keeps the message so far.

use holdpoint_core::Timestamp;
use serde::Serialize;

use super::{Event, pace::Pace};
use crate::frames::json;

/// A chat as events with names, each with one line of JSON: `{"type", "timestamp", "data"}`.
///
/// # What a receiver gets
///
/// The JSON is exactly what was sent. The `delta` of all text events of a message, put together, is its text, and so is the
/// `content` of the last; `content` is always what has come of the message so far.
///
/// # When text is sent
///
/// Not with every token, because `content` grows. Text waits until 50 ms have passed since the last text event, and until
/// enough has come to pay for sending the message again: all text events together cost no more than 32 bytes for each
/// byte of text, and 4 KiB. It never waits beyond the next event of another kind. When no text comes for a while, call
/// [`tick`](Self::tick) after 50 ms, and [`flush`](Self::flush) when the silence lasts, for example with each heartbeat:
/// a flush is not counted, and costs one more frame with the whole message.
///
/// ```
/// use holdpoint_core::Timestamp;
/// use holdpoint_server::frames::{A2ui, Event};
///
/// let (mut a2ui, mut out) = (A2ui::default(), Vec::new());
/// let now = Timestamp::from_millis(1_746_000_000_000);
/// a2ui.text(&mut out, now, "Hel");
/// a2ui.text(&mut out, now, "lo");
/// a2ui.send(&mut out, now, &Event::Done);
/// assert_eq!(
///     str::from_utf8(&out).unwrap(),
///     r#"event: text
/// data: {"type":"text","timestamp":1746000000000,"data":{"content":"Hel","delta":"Hel"}}
///
/// event: text
/// data: {"type":"text","timestamp":1746000000000,"data":{"content":"Hello","delta":"lo"}}
///
/// event: done
/// data: {"type":"done","timestamp":1746000000000,"data":null}
///
/// "#
/// );
/// ```
#[derive(Debug, Default)]
pub struct A2ui {
    /// The message so far.
    content: String,
    /// How much of it has been sent.
    sent: usize,
    pace: Pace,
}

impl A2ui {
    /// A piece of text. It is sent now, or later with what follows.
    pub fn text(&mut self, out: &mut Vec<u8>, now: Timestamp, delta: &str) {
        self.content.push_str(delta);
        self.pace.earn(delta.len());
        self.tick(out, now);
    }

    /// Sends text that waits if it is time.
    pub fn tick(&mut self, out: &mut Vec<u8>, now: Timestamp) {
        let waiting = self.waiting();
        if waiting > 0 && self.pace.takes(now, self.sent, waiting) {
            self.write_text(out, now);
        }
    }

    /// Sends text that waits, whether or not it is time.
    pub fn flush(&mut self, out: &mut Vec<u8>, now: Timestamp) {
        if self.waiting() > 0 {
            self.pace.forced(now);
            self.write_text(out, now);
        }
    }

    /// How many bytes of text wait.
    #[must_use]
    pub const fn waiting(&self) -> usize {
        self.content.len() - self.sent
    }

    /// The text that follows is another message.
    pub fn begin_message(&mut self, out: &mut Vec<u8>, now: Timestamp) {
        self.flush(out, now);
        self.content.clear();
        self.sent = 0;
    }

    /// Anything but text. Text that waits is sent before it.
    pub fn send(&mut self, out: &mut Vec<u8>, now: Timestamp, event: &Event<'_>) {
        self.flush(out, now);
        write(out, now, event.name(), event);
    }

    fn write_text(&mut self, out: &mut Vec<u8>, now: Timestamp) {
        let text = Text {
            content: &self.content,
            delta: &self.content[self.sent..],
        };
        write(out, now, "text", &text);
        self.sent = self.content.len();
    }
}

#[derive(Serialize)]
struct Text<'a> {
    content: &'a str,
    delta: &'a str,
}

#[derive(Serialize)]
struct Envelope<'a, T> {
    #[serde(rename = "type")]
    name: &'static str,
    timestamp: i64,
    data: &'a T,
}

fn write(out: &mut Vec<u8>, now: Timestamp, name: &'static str, data: &impl Serialize) {
    let envelope = Envelope {
        name,
        timestamp: now.as_millis(),
        data,
    };
    json::write_event(out, name, &envelope);
}
