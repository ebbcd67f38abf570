//! The domain of Holdpoint: types, events and the state machine. No I/O, no async, no clock, no randomness.
//!
//! Three pure functions are the heart, and all else is plumbing around them:
//!
//! - [`decide`]: may this happen, and what follows?
//! - [`apply`]: how does an event change the head?
//! - [`next`]: what may go on now?
mod action;
mod apply;
mod artifact;
mod builtin;
mod confirm;
mod context;
mod decide;
mod decision;
mod definition;
mod digest;
mod event;
mod flaw;
mod grant;
mod guard;
mod history;
mod http;
mod id;
mod index;
mod interrupt;
mod journal;
mod mcp;
mod memo;
mod message;
mod misfit;
mod next;
mod outbox;
mod outcome;
mod params;
mod pass;
mod policy;
mod preview;
mod principal;
mod prompt;
mod provider;
mod record;
mod refusal;
mod secret;
mod shown;
pub mod spans;
mod state;
mod tally;
mod time;
mod transcript;

pub use action::{Action, ActionStatus, Doubt, Role, ToolFacts, Wait, Warrant, WarrantFrom};
pub use apply::apply;
pub use artifact::{
    Artifact, ArtifactAddress, BadAddress, Cut, KeptAs, MAX_ARTIFACT, MAX_RESULT, NotAsKept, Rest,
    cut, keep_artifact, read_artifact,
};
pub use builtin::Builtin;
pub use confirm::{BadField, Confirmation, FieldKind, Filled, InputField};
pub use context::{ContextRule, fit};
pub use decide::{
    Command, Context, Judged, JudgedCall, MAX_ATTEMPTS, MAX_REJECTIONS, ModelTrouble, Past, Proof,
    Reply, RestatedCall, SettledAs, Supersede, Suspension, ToolNow, decide,
};
pub use decision::{
    Allowed, Answer, Answers, BadAllowed, BadAnswer, Decision, DecisionKind, EditedAction,
};
pub use definition::{
    Breakpoints, Definition, Effect, Hooks, InterruptMode, Limits, Runner, Sampling, Subagent,
    ToolKind, ToolSpec,
};
pub use digest::{BadDigest, Digest};
pub use event::{
    AfterLate, AfterLookup, AfterModel, AfterUnknown, Called, Carried, Decided, Event, Fate,
    Finish, LimitKind, Restated, RunOutcome, Seen, Stop, Usage, content_of,
};
pub use flaw::{MAX_NAME, is_name};
pub use grant::{Grant, GrantTerms, GrantUse, Like, Matches, Scope};
pub use guard::{
    Case, CheckedBy, Finding, Flag, Guarded, Guardrail, HeldReply, Requester, flag_lines,
};
pub use history::{Closing, Step, closing, past_action, steps};
pub use http::{
    AddressKind, BadArgument, BadTemplate, Fill, HttpBody, HttpHeader, HttpMethod, HttpRequest,
    Template, UrlTemplate,
};
pub use id::{
    ActionId, BadId, GrantId, InterruptId, OwnerId, RunId, Seed, ThreadId, hex, parse_hex,
};
pub use index::{open_rows, past_rows};
pub use interrupt::{
    Ask, Cause, Interrupt, InterruptKind, InterruptStatus, OnTimeout, Side, Subject,
};
pub use journal::{
    Batch, Damaged, Entry, Sealed, decode_definition, decode_head, decode_records, fold,
};
pub use mcp::{McpHints, McpOffer, McpServer, McpTransport, McpVariable};
pub use memo::{Memo, Memos, Misnamed, Recalled, StepEnd};
pub use message::{Message, ToolCall, ToolStatus};
pub use misfit::{Asked, Misfit};
pub use next::{Work, next};
pub use outbox::{Letter, Subscription, Subscriptions, Tries, letters};
pub use outcome::{Lookup, Outcome};
pub use params::{BadParams, MAX_DEPTH, Params, parse_strict};
pub use pass::{Bond, Holder, Pass, Via};
pub use policy::{Conditions, Gate, Judgement, Policy, Rule, Ruling, Terms, Verdict};
pub use preview::{call_lines, default_description};
pub use principal::{Actor, Credential, Principal, PrincipalKind};
pub use prompt::{Choice, Prompt, Unfit};
pub use provider::{
    Api, BadBase, KeyFrom, LimitField, MAX_OFFERED_NAME, PROVIDER_SILENCE, Price, Provider,
    Providers, can_be_offered,
};
pub use record::{
    Codec, FIRST_FORMAT, FORMAT, Header, Index, IndexChange, IndexRow, Payload, Record,
    SECOND_FORMAT,
};
pub use refusal::{Refusal, explain_cause};
pub use secret::{Scrub, Secret};
pub use shown::{Basis, Preview, PreviewForm, Shown, keep_preview, read_preview};
pub use state::{
    Active, Frame, FramePath, FramePhase, Origin, Phase, Run, State, Status, ThreadKind,
};
pub use tally::{Ending, Spared, Tally, tally};
pub use time::{Span, Timestamp};
pub use transcript::{Conversation, Transcript};
