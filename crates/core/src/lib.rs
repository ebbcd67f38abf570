//! The domain of Holdpoint: types, events and the state machine.
mod digest;
mod id;
mod principal;
mod record;
mod time;

pub use digest::{BadDigest, Digest};
pub use id::{ActionId, BadId, InterruptId, OwnerId, RunId, Seed, ThreadId, hex};
pub use principal::{Actor, Principal, PrincipalKind};
pub use record::{Codec, FORMAT, Header, Index, IndexChange, IndexRow, Payload, Record};
pub use time::{Span, Timestamp};
