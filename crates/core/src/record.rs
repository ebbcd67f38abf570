//! What a store keeps: sealed records, chained by hash, and rows of generic indexes.
//!
//! A store sees bytes, never the domain. Each record's hash covers the previous hash, its sequence, its header and a
//! *salted digest* of its payload. So a payload may later be re-encrypted or erased (with its salt) and the chain still
//! holds, and an erased payload cannot be guessed from its digest.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::{Actor, Digest, ThreadId, Timestamp};

/// The version of the stored format that this build writes.
pub const FORMAT: u16 = 3;

/// The first version of the stored format. Definitions that it can express are still written in it, because their digests
/// must not change with the build.
pub const FIRST_FORMAT: u16 = 1;

/// The second version: fallback, sampling, a rule of context, built-in tools. What it can express is still written in it.
pub const SECOND_FORMAT: u16 = 2;

/// How the bytes of a payload are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Codec {
    /// Nothing is left but the salted digest, so that the chain can still be checked.
    Erased,
    /// JSON text, not encrypted.
    Json,
}

impl Codec {
    /// The number a store keeps.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Erased => 0,
            Self::Json => 1,
        }
    }

    /// The codec with this number, if this build knows it.
    #[must_use]
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Erased),
            1 => Some(Self::Json),
            _ => None,
        }
    }
}

/// Encoded bytes, with what is needed to read them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payload {
    /// How `bytes` are encoded.
    pub codec: Codec,
    /// The key they are encrypted under; `None` while they are not.
    pub key_id: Option<String>,
    /// The encoded bytes.
    pub bytes: Vec<u8>,
}

impl Payload {
    /// JSON text in the clear.
    #[must_use]
    pub const fn json(bytes: Vec<u8>) -> Self {
        Self {
            codec: Codec::Json,
            key_id: None,
            bytes,
        }
    }
}

/// The part of an event that is never erased: when, and by whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The stored format's version; 1 where it is not said.
    #[serde(rename = "v", default = "first", skip_serializing_if = "is_first")]
    pub format: u16,
    /// What happened, by name: it is still known when the payload is erased.
    #[serde(rename = "type")]
    pub name: String,
    /// Whether it is the last event of its append. Only there the thread is in a state that may be looked at.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub end: bool,
    /// When it was decided. Never earlier than the event before it.
    pub at: Timestamp,
    /// Who did it: tenant, kind and name.
    #[serde(with = "short")]
    pub by: Actor,
}

/// An actor as a list, because every event of every journal carries one.
mod short {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::{Actor, PrincipalKind};

    pub(super) fn serialize<S: Serializer>(by: &Actor, serializer: S) -> Result<S::Ok, S::Error> {
        (&by.tenant, by.kind, &by.name).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Actor, D::Error> {
        let (tenant, kind, name) = <(String, PrincipalKind, String)>::deserialize(deserializer)?;
        Ok(Actor { tenant, name, kind })
    }
}

const fn first() -> u16 {
    1
}

const fn is_first(format: &u16) -> bool {
    *format == 1
}

/// One event as a store keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its position in the thread; the first is 1.
    pub seq: u64,
    /// The header as JSON, exactly the bytes that were hashed.
    pub header: Vec<u8>,
    /// Mixed into the payload's digest; erased together with the payload.
    pub salt: [u8; 16],
    /// The event itself, without its name.
    pub payload: Payload,
    /// `sha256(previous hash, seq, header, sha256(salt, plain payload))`.
    pub hash: Digest,
}

impl Record {
    /// The salted digest of a payload: what is left of it when it is erased.
    #[must_use]
    pub fn payload_digest(salt: &[u8; 16], plain: &[u8]) -> Digest {
        Digest::from_bytes(
            Sha256::new()
                .chain_update(salt)
                .chain_update(plain)
                .finalize()
                .into(),
        )
    }

    /// The hash that a record with these parts must carry.
    #[must_use]
    pub fn link(previous: &Digest, seq: u64, header: &[u8], payload: &Digest) -> Digest {
        let hash = Sha256::new()
            .chain_update(previous.as_bytes())
            .chain_update(seq.to_be_bytes())
            .chain_update((header.len() as u64).to_be_bytes())
            .chain_update(header)
            .chain_update(payload.as_bytes())
            .finalize();
        Digest::from_bytes(hash.into())
    }
}

/// One row of a generic index: found by (index, tenant, key), ordered by `sort`, it leads to a thread.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IndexRow {
    /// Which index.
    pub index: Index,
    /// What the row is found by; empty where the whole index is walked by `sort`.
    pub key: String,
    /// The order within a key: a time, a sequence, or 0.
    pub sort: i64,
    /// The thread the row belongs to.
    pub thread: ThreadId,
}

/// The indexes there are. A store treats them all alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Index {
    /// Threads with work that a driver could do now: key empty, sort = when it became so.
    Runnable,
    /// Pending interrupts: key = interrupt id (so by age), sort = when it was asked.
    Pending,
    /// What is due at a time: questions that expire, sleeps that end. Key empty, sort = the time.
    Due,
    /// Closed interrupts: key = interrupt id, sort = the sequence of the event that closed it.
    Closed,
    /// Runs: key = run id (so by age), sort = the sequence of the event that started it.
    Run,
    /// Threads by session: key = session, sort = 0.
    Session,
    /// Outside interrupts by workflow: key = workflow id, sort = when it was asked.
    Workflow,
    /// Grants that are wider than a thread: key = agent, sort = the sequence of the answer that gave it.
    Grant,
    /// Forks: key = the thread that they go on from, sort = the event after which. What a fork reads is not trimmed.
    Fork,
    /// Pending interrupts of agents by who asked for the run: key = the principal, sort = when it was asked.
    Asked,
    /// What is still to be told to somebody outside: key = the endpoint and the interrupt (so by age), sort = the sequence of
    /// the event that is told.
    Outbox,
    /// What could not be told, and is not tried any more; as [`Index::Outbox`].
    DeadLetter,
}

impl Index {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Runnable,
        Self::Pending,
        Self::Due,
        Self::Closed,
        Self::Run,
        Self::Session,
        Self::Workflow,
        Self::Grant,
        Self::Fork,
        Self::Asked,
        Self::Outbox,
        Self::DeadLetter,
    ];

    /// The number a store keeps.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Runnable => 1,
            Self::Pending => 2,
            Self::Due => 3,
            Self::Closed => 4,
            Self::Run => 5,
            Self::Session => 6,
            Self::Workflow => 7,
            Self::Grant => 8,
            Self::Fork => 9,
            Self::Asked => 10,
            Self::Outbox => 11,
            Self::DeadLetter => 12,
        }
    }
}

/// A change to an index, committed with the events it follows from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IndexChange {
    /// The row appears.
    Put(IndexRow),
    /// The row disappears.
    Remove(IndexRow),
}
