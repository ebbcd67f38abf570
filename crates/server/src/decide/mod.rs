//! Pages on which a person decides, opened by a link that somebody was given.
//!
//! A link is leave for one person to answer one question, as a token is, but for a browser. Opening it changes nothing,
//! however often it is fetched and by whatever looks into mail before people do. What decides is a form, sent back from the
//! page itself: it carries a text that only the page has, and a browser says where it comes from.

mod field;
mod form;
mod guard;
mod html;
pub(crate) mod links;
pub(crate) mod routes;

use holdpoint_core::{Actor, Digest, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// That a page was shown by us, and what it showed.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Shown {
    /// The link by which it was opened.
    link: String,
    /// All that it asked.
    subject: Digest,
}

/// Leave to see what waits for somebody, and to open it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Waiting {
    tenant: String,
    user: String,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    roles: BTreeSet<String>,
    expires_at: Timestamp,
    issuer: Actor,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    issuer_key: Option<String>,
}
