//! The compare-and-set table: small values beside the threads, each with a version, and some with an end.
//!
//! A cell is found by tenant, space and key. It is changed by whoever names the version it has, and no version of a cell
//! ever comes back with another value, even if it was removed or has ended in between.

use holdpoint_core::Timestamp;

/// The tenant of what belongs to no tenant. No caller can be of it.
pub const SYSTEM_TENANT: &str = "_system";

/// A change to the compare-and-set table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellChange {
    /// What kind of thing the cell holds.
    pub space: Space,
    /// Its name within tenant and space.
    pub key: String,
    /// The version it must have; 0 = it must be absent.
    pub expect: u64,
    /// What becomes of it.
    pub then: CellThen,
}

/// What becomes of a cell that has the expected version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CellThen {
    /// It gets this value.
    Set {
        /// What it holds then.
        value: Vec<u8>,
        /// When it ends, by [`Store::now`](crate::Store::now); `None` = never.
        ///
        /// From that moment on the cell is absent in every respect: it reads as `None`, a change that expects 0 succeeds,
        /// and one that expects the version it had is refused, whether or not it was swept away meanwhile.
        until: Option<Timestamp>,
    },
    /// It is removed.
    Remove,
    /// It stays as it is: the append only depends on it.
    Keep,
}

/// What the cells of the compare-and-set table are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Space {
    /// The current definition's digest of an agent.
    Definition,
    /// Grants.
    Grant,
    /// API and signing keys.
    Key,
    /// Tokens that were used.
    Token,
    /// What was tried in vain to be told to somebody outside.
    Outbox,
    /// What a request with an idempotency key led to.
    Request,
    /// Which servers live on the store.
    Server,
    /// Who outside is told what happens.
    Endpoint,
}

impl Space {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Definition,
        Self::Grant,
        Self::Key,
        Self::Token,
        Self::Outbox,
        Self::Request,
        Self::Server,
        Self::Endpoint,
    ];

    /// The space with this number, if this build knows it.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.number() == number)
    }

    /// The number a store keeps.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Definition => 1,
            Self::Grant => 2,
            Self::Key => 3,
            Self::Token => 4,
            Self::Outbox => 5,
            Self::Request => 6,
            Self::Server => 7,
            Self::Endpoint => 8,
        }
    }
}

/// A cell's value, with the version that a change must name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// Grows with every write.
    pub version: u64,
    /// What it holds.
    pub value: Vec<u8>,
    /// When it ends; `None` = never.
    pub until: Option<Timestamp>,
}
