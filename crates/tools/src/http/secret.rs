//! Secrets of tools: read when they are used.

use holdpoint_core::Secret;

/// The secret that this variable of the environment holds now. An empty one is none.
#[expect(
    clippy::disallowed_methods,
    reason = "a secret is read when it is used, so that nothing keeps it"
)]
pub(crate) fn named(variable: &str) -> Option<Secret> {
    std::env::var(variable).ok().and_then(Secret::new)
}
