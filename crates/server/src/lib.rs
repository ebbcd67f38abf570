//! Holdpoint over HTTP: the chat API, runs and their streams, and who may do what.
//!
//! A door: it translates, and decides nothing. A [`Server`] is opened ([`Opening`]) from a configuration, with code of the
//! program that embeds it if there is any, and runs until it is told to stop; [`frames`] turns what happens into bytes of
//! Server-Sent Events; [`Keys`], and tokens of issuers that the configuration names, are by what callers are known.

mod agents;
mod background;
mod body;
mod caller;
mod catalog;
mod chat;
mod clock;
mod connections;
mod decide;
mod descriptors;
mod follow;
pub mod frames;
mod hub;
mod interrupts;
mod jwt;
mod keys;
mod log;
mod markup;
mod metrics;
mod once;
mod openapi;
mod page;
mod page_of;
mod path;
mod problem;
mod query;
mod reach;
mod room;
mod router;
mod runs;
mod secret;
mod server;
mod story;
mod streams;
mod token;
mod webhooks;
mod world;

pub use caller::Access;
pub use holdpoint_definition::{MetricsAccess, ServerFile, ServerLimits};
pub use keys::{KeyError, KeyRecord, Keys, NewKey};
pub use openapi::document;
pub use problem::{CODES, Problem};
pub use server::{Opening, Server, StartError};
pub use token::KeyringError;
