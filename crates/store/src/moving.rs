//! How everything in a store moves to another: what part each of them has in it, and what is handed over.
//!
//! A store that has a part in a move takes nothing, from anybody: that is enforced where it is written, so that it holds for
//! processes that know nothing of the move. One that is *leaving* does so until the move is over or given up, one that has
//! *left* for good, and one that is *arriving* until it is whole; meanwhile it takes what comes from the other store.

use std::sync::Arc;

use holdpoint_core::{Digest, IndexRow, Payload, Record, Timestamp};

use crate::{Epoch, Space, ThreadKey, Unavailable};

/// A move from one store to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move {
    /// What both stores know it by, and no other two.
    pub ticket: u32,
    /// The other store, as it may be shown.
    pub other: String,
}

/// What part a store has in a move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// It is copied to another store, and takes nothing new meanwhile.
    Leaving(Move),
    /// It was copied to another store, which went on; it never takes anything new again.
    Left(Move),
    /// It is filled from another store, and is not whole yet.
    Arriving(Move),
}

impl Part {
    /// What a store keeps of it.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Leaving(_) => "leaving",
            Self::Left(_) => "left",
            Self::Arriving(_) => "arriving",
        }
    }

    /// From what a store has kept.
    pub(crate) fn from_name(name: &str, moving: Move) -> Option<Self> {
        match name {
            "leaving" => Some(Self::Leaving(moving)),
            "left" => Some(Self::Left(moving)),
            "arriving" => Some(Self::Arriving(moving)),
            _ => None,
        }
    }

    /// Which move it is.
    #[must_use]
    pub const fn moving(&self) -> &Move {
        match self {
            Self::Leaving(moving) | Self::Left(moving) | Self::Arriving(moving) => moving,
        }
    }

    /// Why the store is not to be used.
    #[must_use]
    pub fn refusal(&self) -> String {
        match self {
            Self::Leaving(Move { other, .. }) => format!(
                "this store is being moved to {other}, and takes nothing new: `holdpoint store copy` goes on with that, or gives it up with `--abandon`"
            ),
            Self::Left(Move { other, .. }) => {
                format!("this store has moved to {other}: use that one")
            }
            Self::Arriving(Move { other, .. }) => format!(
                "this store is being filled from {other} by `holdpoint store copy`, and is not whole yet"
            ),
        }
    }
}

/// Whether a store takes what comes by this ticket.
pub(crate) fn expect_arriving(part: Option<&Part>, ticket: u32) -> Result<(), Unavailable> {
    match part {
        Some(Part::Arriving(moving)) if moving.ticket == ticket => Ok(()),
        Some(_) | None => Err(Unavailable::new(
            "what is copied to this store does not belong there: somebody else copies to it, or it is whole",
        )),
    }
}

/// A cell as it is kept, with what is left of one that was removed or has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptCell {
    /// The tenant it belongs to.
    pub tenant: Arc<str>,
    /// What it is for.
    pub space: Space,
    /// Its name within tenant and space.
    pub key: String,
    /// Its version.
    pub version: u64,
    /// What it holds; `None` = it was removed.
    pub value: Option<Vec<u8>>,
    /// When it ends.
    pub until: Option<Timestamp>,
}

/// Cells as they are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptCells {
    /// In the order of tenant, space and key.
    pub cells: Vec<KeptCell>,
    /// The highest version of a cell that was swept away.
    pub swept: u64,
}

/// A thread, or the next part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedThread {
    /// The thread.
    pub key: ThreadKey,
    /// The epoch of the last lease that was taken.
    pub epoch: Epoch,
    /// The fold of all its records.
    pub head: Payload,
    /// Records that follow on those that are there; at least one. The last one's sequence is the version then.
    pub records: Vec<Record>,
}

/// What a store that is arriving is given, in one commit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Import {
    /// The move that it belongs to. A store that has no part in that one takes nothing of it.
    pub ticket: u32,
    /// Threads, each no more than once.
    pub threads: Vec<ImportedThread>,
    /// Rows of indexes, with their tenants.
    pub rows: Vec<(Arc<str>, IndexRow)>,
    /// Cells.
    pub cells: KeptCells,
    /// Blobs, with their tenants and digests.
    pub blobs: Vec<(Arc<str>, Digest, Payload)>,
}
