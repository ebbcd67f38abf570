//! What may be chosen when a store is opened.

use std::sync::Arc;

use crate::{Clock, SystemClock};

/// What may be chosen when a store is opened.
#[derive(Debug, Clone)]
pub struct Options {
    pub(crate) clock: Arc<dyn Clock>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemClock::default()),
        }
    }
}

impl Options {
    /// With another clock than the machine's.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }
}
