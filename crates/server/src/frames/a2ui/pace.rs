//! When text that waits is sent.

use holdpoint_core::{Span, Timestamp};

/// Between two text frames lies at least this time, unless the text more than doubles.
const BREATH: Span = Span::from_millis(50);
/// How many bytes may be spent for each byte of text.
const SHARE: usize = 32;
/// How many bytes may be spent on top of that.
const ALLOWANCE: usize = 4_096;
/// What a text frame costs, beside the text in it.
const ENVELOPE: usize = 100;

/// Decides when text that waits is sent.
///
/// Every text frame repeats the whole message, so a frame for each token would cost the square of the text. Two things must
/// come together before one is sent:
///
/// - Time: 50 ms have passed since the last one, or more text waits than the message had so far.
/// - Means: every byte of text earns 32 bytes of frames, and each stream begins with 4096 of them. What a frame costs must
///   have been earned.
///
/// So however tokens arrive, the frames that are sent by this rule take no more than `4096 + 32 × text` bytes, as long as
/// nothing in the text needs escaping. And because each byte that waits earns more than it costs, no more than
/// `(message + 100) / 30` bytes of text ever wait for want of means: one word in a short message, a line in a long one.
#[derive(Debug, Default)]
pub(super) struct Pace {
    earned: usize,
    spent: usize,
    last: Option<Timestamp>,
}

impl Pace {
    /// Some more text has come.
    pub(super) const fn earn(&mut self, bytes: usize) {
        self.earned = self.earned.saturating_add(bytes);
    }

    /// Whether what waits may be sent now. If so, that is counted as done.
    pub(super) fn takes(&mut self, now: Timestamp, sent: usize, waiting: usize) -> bool {
        let rested = self.last.is_none_or(|last| now.since(last) >= BREATH);
        let means = ALLOWANCE.saturating_add(self.earned.saturating_mul(SHARE));
        let spent = [sent, waiting, waiting, ENVELOPE]
            .into_iter()
            .fold(self.spent, usize::saturating_add);
        let goes = (rested || waiting > sent) && spent <= means;
        if goes {
            self.spent = spent;
            self.last = Some(now);
        }
        goes
    }

    /// Text was sent because something else had to follow it. That is never refused, and costs nothing.
    pub(super) const fn forced(&mut self, now: Timestamp) {
        self.last = Some(now);
    }
}
