//! Resume tokens: leave for one person to answer one question, once.
//!
//! A token is signed and holds all that it is bound to, so nothing is kept of it until it is used; then its id stands with
//! the answer in the journal, and the one answer that a question takes is also the one use of the token.

mod claims;
mod envelope;
mod keyring;
mod leave;
pub(crate) mod routes;

pub(crate) use claims::Claims;
pub(crate) use envelope::{Form, open, seal};
pub(crate) use keyring::Keyring;
pub use keyring::KeyringError;
pub(crate) use leave::{Giver, holder, lasting, leave};
