//! A part of a list.

use holdpoint_core::InterruptId;

/// Which part of a list is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// Only what comes after this interrupt, whether or not it is in the list itself.
    pub after: Option<InterruptId>,
    /// At most this many.
    pub limit: usize,
}

impl Page {
    /// All of it.
    pub const ALL: Self = Self::first(usize::MAX);

    /// The first so many.
    #[must_use]
    pub const fn first(limit: usize) -> Self {
        Self { after: None, limit }
    }

    /// As many, after this interrupt.
    #[must_use]
    pub const fn after(self, id: InterruptId) -> Self {
        Self {
            after: Some(id),
            limit: self.limit,
        }
    }
}

impl Default for Page {
    fn default() -> Self {
        Self::first(100)
    }
}
