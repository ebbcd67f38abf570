//! The domain of Holdpoint: types, events and the state machine. No I/O, no async, no clock, no randomness.
//!
//! Three pure functions are the heart, and all else is plumbing around them:
//!
//! - [`decide`]: may this happen, and what follows?
//! - [`apply`]: how does an event change the head?
//! - [`next`]: what may go on now?
mod action;
mod apply;
mod decide;
mod decision;
mod definition;
mod digest;
mod event;
mod history;
mod id;
mod index;
mod interrupt;
mod journal;
mod message;
mod misfit;
mod next;
mod outcome;
mod params;
mod preview;
mod principal;
mod record;
mod refusal;
mod state;
mod time;
mod transcript;

pub use action::{Action, ActionStatus, Doubt, Role, ToolFacts, Warrant, WarrantFrom};
pub use apply::apply;
pub use decide::{
    Command, Context, Judged, JudgedCall, MAX_ATTEMPTS, MAX_REJECTIONS, ModelTrouble, Past, Proof,
    RestatedCall, SettledAs, ToolNow, decide,
};
pub use decision::{Allowed, Answer, BadAllowed, BadAnswer, Decision, DecisionKind, EditedAction};
pub use definition::{
    DefaultRule, Definition, Effect, Gate, Hooks, InterruptMode, Limits, Policy, Runner, ToolSpec,
    Verdict,
};
pub use digest::{BadDigest, Digest};
pub use event::{
    AfterLate, AfterLookup, AfterModel, AfterUnknown, Called, Decided, Event, Fate, Finish,
    LimitKind, Restated, RunOutcome, Seen, Stop, Usage, content_of,
};
pub use history::{Closing, Step, closing, past_action, steps};
pub use id::{ActionId, BadId, InterruptId, OwnerId, RunId, Seed, ThreadId, hex};
pub use interrupt::{Ask, Cause, Interrupt, InterruptKind, InterruptStatus, OnTimeout, Subject};
pub use journal::{
    Batch, Damaged, Entry, Sealed, decode_definition, decode_head, decode_records, fold,
};
pub use message::{Message, ToolCall, ToolStatus};
pub use misfit::{Asked, Misfit};
pub use next::{Work, next};
pub use outcome::{Lookup, Outcome};
pub use params::{BadParams, MAX_DEPTH, Params, parse_strict};
pub use preview::default_description;
pub use principal::{Actor, Principal, PrincipalKind};
pub use record::{Codec, FORMAT, Header, Index, IndexChange, IndexRow, Payload, Record};
pub use refusal::{Refusal, explain_cause};
pub use state::{Active, Frame, FramePath, FramePhase, Phase, Run, State, Status};
pub use time::{Span, Timestamp};
pub use transcript::Transcript;
