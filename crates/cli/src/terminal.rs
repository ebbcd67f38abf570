//! The three streams: stdout is data, stderr is everything else, stdin is asked only where a person sits.

use std::{
    io::{self, IsTerminal, Write},
    sync::atomic::{AtomicBool, Ordering},
};

use serde::Serialize;

use crate::safe_text::{self, Stream, Width};

/// Whether a person sits at both ends, so that questions can be asked.
pub(crate) fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Whether what is printed is read at once.
pub(crate) fn is_live() -> bool {
    io::stdout().is_terminal() && io::stderr().is_terminal()
}

/// Whether progress has anyone to reassure.
pub(crate) fn is_watched() -> bool {
    io::stderr().is_terminal()
}

/// How wide what is printed may be.
fn width() -> Width {
    let size = rustix::termios::tcgetwinsize(io::stdout());
    match size.map(|size| usize::from(size.ws_col)) {
        Ok(columns) if columns > 0 => Width::Columns(columns),
        Ok(_) | Err(_) => Width::Any,
    }
}

/// A text that others wrote, safe to print, each line behind `indent`.
pub(crate) fn block(text: &str, indent: &str) -> String {
    safe_text::block(text, indent, width())
}

/// The same for a text that comes in pieces.
pub(crate) fn stream() -> Stream {
    Stream::new(safe_text::GUTTER, width())
}

/// Prints data and a newline.
pub(crate) fn data(text: &str) {
    part(&format!("{text}\n"));
}

/// Prints data as it comes.
pub(crate) fn part(text: &str) {
    let mut stdout = io::stdout().lock();
    let written = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush());
    // A reader that has gone away needs no more. Any other loss is told once, and by the exit code; what was done is in
    // the store all the same.
    if let Err(error) = written
        && error.kind() != io::ErrorKind::BrokenPipe
        && !LOST.swap(true, Ordering::Relaxed)
    {
        note(&format!(
            "error: standard output cannot be written: {error}"
        ));
    }
}

/// Prints a text that others wrote as it is, unless a terminal would obey it.
pub(crate) fn whole(text: &str) {
    if io::stdout().is_terminal() {
        data(&block(text, ""));
    } else {
        part(text);
    }
}

/// Whether something that was to be printed got lost.
static LOST: AtomicBool = AtomicBool::new(false);

/// Whether something that was to be printed got lost.
pub(crate) fn has_lost_output() -> bool {
    LOST.load(Ordering::Relaxed)
}

/// Prints one JSON value on a line of its own.
pub(crate) fn json(value: &impl Serialize) {
    // INVARIANT: what is printed are our own wire types, whose keys are strings.
    let text = serde_json::to_string(value).unwrap_or_default();
    data(&safe_text::json(&text));
}

/// Prints a line that is not data.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Forgets what was typed before a question was shown: it cannot have been meant as an answer to it.
pub(crate) fn discard_typed_ahead() {
    // Where this is not possible, what was typed must still be a clear decision.
    let _ = rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
}
