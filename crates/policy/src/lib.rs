//! What a policy's own words say of one call.
//!
//! A policy may hold two kinds of words: a [`Condition`] (CEL) that decides whether a person is asked, and a [`Template`]
//! (Jinja) that tells them what the call would do. Both speak of the same four things, the [`Facts`]: `args`, `tool`,
//! `agent` and `user`.
//!
//! The words come from whoever wrote the definition; the arguments come from a model, and so from anybody. This crate
//! promises that neither can bring the process down or hold it up:
//!
//! - Words that are wrong are refused when they are read, with the place and the remedy.
//! - What cannot be answered about a call is [`Unclear`]. It is never `false`: the caller asks a person.
//! - Size, nesting, work and stack are bounded, and the bounds depend on nothing but the words and the call. There is no
//!   clock: the same call gives the same answer on a slow machine.
//!
//! ```
//! use holdpoint_core::{Effect, Params, Principal};
//! use holdpoint_policy::{Agent, Condition, Facts, Template, Tool};
//!
//! let args = Params::parse(r#"{"to": "a@example.com", "amount": 250}"#).unwrap();
//! let facts = Facts {
//!     args: &args,
//!     tool: Tool { name: "pay", version: "1", effect: Effect::Write },
//!     agent: Agent { name: "clerk", path: "" },
//!     user: &Principal::local("ada"),
//! };
//!
//! let large = Condition::compile("args.amount > 100").unwrap();
//! assert_eq!(large.evaluate(&facts), Ok(true));
//!
//! let unknown = Condition::compile("args.currency == 'EUR'").unwrap();
//! assert_eq!(unknown.evaluate(&facts).unwrap_err().to_string(), "there is no `currency`");
//!
//! let text = Template::compile("Pay {{ args.amount }} to {{ args.to }}").unwrap();
//! assert_eq!(text.render(&facts).unwrap(), "Pay 250 to a@example.com");
//! ```

mod condition;
mod facts;
mod guard;
mod pattern;
mod place;
mod room;
mod template;
mod unclear;
mod vocabulary;
mod work;

pub use condition::{BadCondition, Condition};
pub use facts::{Agent, Facts, Tool};
pub use place::Place;
pub use template::{BadTemplate, Template};
pub use unclear::Unclear;
