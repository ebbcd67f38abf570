//! How many threads to drive runs with.

use std::{num::NonZero, thread};

/// How many threads a program whose main work is a store should give its runtime: one for every processor but one, which
/// is left to the thread that writes. Everybody waits for that thread, so it must not queue for a processor.
#[must_use]
pub fn workers() -> usize {
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    processors.saturating_sub(1).max(1)
}
