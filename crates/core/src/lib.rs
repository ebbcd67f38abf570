//! The domain of Holdpoint: types, events and the state machine.
mod decision;
mod definition;
mod digest;
mod id;
mod message;
mod outcome;
mod params;
mod principal;
mod record;
mod time;

pub use decision::{Allowed, Answer, BadAllowed, BadAnswer, Decision, DecisionKind, EditedAction};
pub use definition::{
    DefaultRule, Definition, Effect, Gate, Hooks, InterruptMode, Limits, Policy, Runner, ToolSpec, Verdict,
};
pub use digest::{BadDigest, Digest};
pub use id::{ActionId, BadId, InterruptId, OwnerId, RunId, Seed, ThreadId, hex};
pub use message::{Message, ToolCall, ToolStatus};
pub use outcome::{Lookup, Outcome};
pub use params::{BadParams, MAX_DEPTH, Params, parse_strict};
pub use principal::{Actor, Principal, PrincipalKind};
pub use record::{Codec, FORMAT, Header, Index, IndexChange, IndexRow, Payload, Record};
pub use time::{Span, Timestamp};
