//! How many threads to drive runs with.

use std::{num::NonZero, thread};

/// What a program spends its time on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trade {
    /// It drives runs.
    Driving,
    /// It drives runs, and speaks HTTP with those who wait for them.
    Serving,
}

/// How many threads a program whose main work is a store should give its runtime.
///
/// Whoever only drives gets one for every processor but one, which is left to the thread that writes: everybody waits for
/// that thread, so it must not queue for a processor. Whoever serves has more to do for a run than that thread has, and is
/// waited for more than it: they get all.
#[must_use]
pub fn workers(trade: Trade) -> usize {
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    match trade {
        Trade::Driving => processors.saturating_sub(1).max(1),
        Trade::Serving => processors,
    }
}
