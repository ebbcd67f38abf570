//! What may be chosen when a store is opened.

use std::sync::Arc;

use crate::{Clock, SystemClock};

/// What may be chosen when a store is opened.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The clock that was given.
    pub(crate) clock: Option<Arc<dyn Clock>>,
    /// Whether a database that has nothing in it is refused.
    pub(crate) must_exist: bool,
}

impl Options {
    /// With another clock than the store's own: that of the database where it has one, and else the machine's.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Where there is no store yet, none is made. (A file is made all the same: look whether it is there.)
    #[must_use]
    pub const fn existing(mut self) -> Self {
        self.must_exist = true;
        self
    }

    /// The clock of a store that has none of its own.
    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        let clock = self.clock.clone();
        clock.unwrap_or_else(|| Arc::new(SystemClock::default()))
    }
}
