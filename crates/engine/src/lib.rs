//! Drives runs: model turn → policy → interrupt or execution → next turn, over crashes and restarts.
//!
//! Core decides, the store keeps, and this crate is the loop between them: it asks core what may go on, makes the calls,
//! and turns their outcomes into commands.

mod adopt;
mod agent;
mod answer;
mod artifact;
mod check;
mod deep;
mod driver;
mod drivers;
mod engine;
mod entry;
mod error;
mod flight;
mod fork;
mod grants;
mod guard;
mod judge;
mod mcp;
mod outbox;
mod outside;
mod precheck;
mod presence;
pub mod question;
mod questions;
mod reading;
mod recent;
mod recovery;
mod request;
mod respond;
mod rights;
mod runs;
mod shown;
mod submit;
mod summary;
mod task;
mod thread;
mod turn;
mod view;
mod waiting;
mod words;

pub use adopt::Adopted;
pub use agent::{Agent, Kit};
pub use check::{Checked, Flaw, Seen, check};
pub use engine::{Engine, Forgetful, Options, OwnAppend, Said, Watcher};
pub use error::Error;
pub use grants::GrantView;
pub use mcp::Completed;
pub use outbox::{DeadLetter, MANAGE as MANAGE_WEBHOOKS, Message};
pub use outside::{Asked, Asking, News};
pub use presence::Drives;
pub use questions::{Closed, Question, Wanted};
pub use request::{Mark, Marked, Request};
pub use rights::Rights;
pub use submit::Submitted;
pub use summary::RunSummary;
pub use task::offered;
pub use view::{
    ActionRequest, Checkpoint, InterruptView, PendingAction, PendingPage, PendingView,
    QuestionView, RequestView, ReviewConfig, RunView, SideEffect, UsageView,
};
pub use waiting::Waiting;
