//! Ids: sixteen bytes behind a type, printed with a prefix that says what they name.
//!
//! Core has no randomness. Fresh ids are derived from a [`Seed`] that arrives with each command, and begin with its
//! time, so that sorting by id is sorting by age.
//!
//! ```
//! use holdpoint_core::{RunId, Seed, Timestamp};
//! let seed = Seed::new([7; 16], Timestamp::from_millis(1_700_000_000_000));
//! let id: RunId = seed.run_id();
//! assert!(id.to_string().starts_with("run_018bcfe5"));
//! assert_eq!(id.to_string().parse::<RunId>().unwrap(), id);
//! ```

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use sha2::{Digest as _, Sha256};

use crate::{Span, Timestamp};

/// A text is not an id of the wanted kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not an id of the form `{prefix}` and 32 hex digits")]
pub struct BadId {
    text: String,
    prefix: &'static str,
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; 16]);

        impl $name {
            /// What the printed form begins with.
            pub const PREFIX: &'static str = $prefix;

            /// The id with these bytes.
            #[must_use]
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(bytes)
            }

            /// The sixteen bytes.
            #[must_use]
            pub const fn as_bytes(&self) -> &[u8; 16] {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(Printed::new($prefix, &self.0).as_str())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = BadId;

            fn from_str(text: &str) -> Result<Self, BadId> {
                text.strip_prefix($prefix)
                    .and_then(parse_hex::<16>)
                    .map(Self)
                    .ok_or_else(|| BadId { text: text.to_owned(), prefix: $prefix })
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(Printed::new($prefix, &self.0).as_str())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(D::Error::custom)
            }
        }
    )*};
}

ids! {
    /// A thread: the unit of isolation and of journalling.
    ThreadId = "thr_";
    /// A run: one execution inside a thread.
    RunId = "run_";
    /// An interrupt: one durable question.
    InterruptId = "int_";
    /// An action: one tool call, or one thing a person is asked about.
    ActionId = "act_";
    /// A grant: what a person allowed for several calls.
    GrantId = "grt_";
    /// A process that may drive threads.
    OwnerId = "own_";
}

/// Sixteen bytes that follow from these parts, which do not run together.
pub(crate) fn derive(parts: &[&[u8]]) -> [u8; 16] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash.finalize()[..16]);
    bytes
}

impl ActionId {
    /// When it was made, in whole milliseconds. A step's id is derived and says nothing.
    pub(crate) fn made_at(&self) -> Timestamp {
        let mut millis = [0; 8];
        millis[2..].copy_from_slice(&self.0[..6]);
        Timestamp::from_millis(i64::from_be_bytes(millis))
    }

    /// The id of a step of this action. Whoever begins the step, and however often, means the same one.
    #[must_use]
    pub fn step(&self, name: &str) -> Self {
        Self(derive(&[b"holdpoint/step/1", &self.0, name.as_bytes()]))
    }
}

impl GrantId {
    /// The id of the grant that is given by approving an action.
    #[must_use]
    pub fn of_approval(interrupt: InterruptId, action: ActionId) -> Self {
        Self(derive(&[b"holdpoint/grant/1", &interrupt.0, &action.0]))
    }
}

impl ThreadId {
    /// The id of the thread that `agent` and `session` name within `tenant`.
    ///
    /// It is derived, not drawn: two processes that open one session at the same time meet at the same thread, and the
    /// compare-and-set of its first append lets one of them create it.
    #[must_use]
    pub fn of_session(tenant: &str, agent: &str, session: &str) -> Self {
        let parts = ["holdpoint/thread/1", tenant, agent, session];
        Self(derive(&parts.map(str::as_bytes)))
    }

    /// The id of the thread of questions that a node of a workflow outside asks.
    #[must_use]
    pub fn of_node(tenant: &str, workflow: &str, node: &str) -> Self {
        let parts = ["holdpoint/outside/1", tenant, workflow, node];
        Self(derive(&parts.map(str::as_bytes)))
    }

    /// The id of the thread in which the uses of a grant are counted.
    #[must_use]
    pub fn of_grant(tenant: &str, grant: GrantId) -> Self {
        Self(derive(&[
            b"holdpoint/grant-thread/1",
            tenant.as_bytes(),
            &grant.0,
        ]))
    }
}

/// The randomness and the time from which one command's fresh ids and salts are derived.
#[derive(Clone)]
pub struct Seed {
    random: [u8; 16],
    at: Timestamp,
    drawn: u64,
}

// The random bytes salt the digests of stored payloads, so they stay out of logs.
impl fmt::Debug for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seed")
            .field("drawn", &self.drawn)
            .finish_non_exhaustive()
    }
}

impl Seed {
    /// A seed from sixteen random bytes.
    #[must_use]
    pub const fn new(random: [u8; 16], at: Timestamp) -> Self {
        Self {
            random,
            at,
            drawn: 0,
        }
    }

    fn draw(&self, label: &str, number: u64) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(self.random);
        hash.update(label);
        hash.update(number.to_be_bytes());
        hash.finalize().into()
    }

    /// Sixteen bytes in the layout of UUID version 7: milliseconds, a counter, then randomness.
    fn fresh(&self, number: u64) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&self.draw("id", number)[..16]);
        bytes[..6].copy_from_slice(&self.at.as_millis().to_be_bytes()[2..]);
        // The draw's number comes next, so that what one command creates sorts in the order it was created.
        let order = number.to_be_bytes();
        bytes[6] = 0x70 | (order[6] & 0x0f);
        bytes[7] = order[7];
        bytes[8] = 0x80 | (bytes[8] & 0x3f);
        bytes
    }

    fn next(&mut self) -> [u8; 16] {
        self.drawn += 1;
        self.fresh(self.drawn)
    }

    /// The randomness for another command.
    #[must_use]
    pub fn fork(&mut self, at: Timestamp) -> Self {
        self.drawn += 1;
        let mut random = [0; 16];
        random.copy_from_slice(&self.draw("fork", self.drawn)[..16]);
        Self::new(random, at)
    }

    /// The id of the run that this command starts. Always the same for one seed.
    #[must_use]
    pub fn run_id(&self) -> RunId {
        RunId(self.fresh(0))
    }

    /// A fresh interrupt id.
    pub fn interrupt_id(&mut self) -> InterruptId {
        InterruptId(self.next())
    }

    /// A fresh action id.
    pub fn action_id(&mut self) -> ActionId {
        ActionId(self.next())
    }

    /// A random time up to this one.
    pub fn up_to(&mut self, most: Span) -> Span {
        self.drawn += 1;
        let drawn = self.draw("span", self.drawn);
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&drawn[..8]);
        Span::from_micros(u64::from_be_bytes(bytes) % (most.as_micros() + 1))
    }

    /// A fresh nonce for an envelope.
    pub fn nonce(&mut self) -> String {
        hex(&self.next())
    }

    /// The salt for the payload of the event with this sequence.
    #[must_use]
    pub fn salt(&self, seq: u64) -> [u8; 16] {
        let mut salt = [0; 16];
        salt.copy_from_slice(&self.draw("salt", seq)[..16]);
        salt
    }
}

/// A prefix and hex digits, put together without asking for memory: ids and digests are most of what a head says.
pub(crate) struct Printed {
    text: [u8; Self::MAX],
    len: usize,
}

impl Printed {
    /// As long as a digest.
    const MAX: usize = "sha256:".len() + 64;

    pub(crate) fn new(prefix: &str, bytes: &[u8]) -> Self {
        let mut text = [0; Self::MAX];
        let len = prefix.len() + bytes.len() * 2;
        let (head, tail) = text.split_at_mut(prefix.len());
        head.copy_from_slice(prefix.as_bytes());
        for (pair, byte) in tail.chunks_exact_mut(2).zip(bytes) {
            pair.copy_from_slice(&digits(*byte));
        }
        Self { text, len }
    }

    pub(crate) fn as_str(&self) -> &str {
        // INVARIANT: only ASCII was put in.
        std::str::from_utf8(&self.text[..self.len]).unwrap_or_default()
    }
}

const fn digits(byte: u8) -> [u8; 2] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    [DIGITS[(byte >> 4) as usize], DIGITS[(byte & 0xf) as usize]]
}

/// Lower-case hex digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.extend(digits(*byte).map(char::from));
    }
    text
}

/// Reads exactly `N` bytes of lower-case hex.
#[must_use]
pub fn parse_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    fn digit(byte: u8) -> Option<u8> {
        match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'a'..=b'f' => Some(byte - b'a' + 10),
            _ => None,
        }
    }
    let text = text.as_bytes();
    if text.len() != N * 2 {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_of_another_kind_or_of_the_wrong_length_is_refused() {
        for text in [
            "",
            "run_",
            "thr_00",
            "int_00000000000000000000000000000000",
            "thr_0000000000000000000000000000000G",
        ] {
            assert!(text.parse::<ThreadId>().is_err(), "{text}");
        }
    }

    #[test]
    fn one_session_is_one_thread_and_parts_do_not_run_together() {
        assert_eq!(
            ThreadId::of_session("t", "a", "s"),
            ThreadId::of_session("t", "a", "s")
        );
        assert_ne!(
            ThreadId::of_session("t", "ab", "c"),
            ThreadId::of_session("t", "a", "bc")
        );
        assert_ne!(
            ThreadId::of_session("t", "a", "s"),
            ThreadId::of_session("u", "a", "s")
        );
    }

    #[test]
    fn fresh_ids_differ_and_sort_by_time() {
        let mut early = Seed::new([1; 16], Timestamp::from_millis(1_000));
        let mut late = Seed::new([0; 16], Timestamp::from_millis(1_001));
        let (a, b) = (early.action_id(), early.action_id());
        assert_ne!(a, b);
        assert!(a < late.action_id());
    }
}
