//! Times as the API spells them.

use holdpoint_core::Timestamp;

/// In RFC 3339, in UTC, to the microsecond: always as long, so that they sort as they read.
pub(crate) fn rfc3339(at: Timestamp) -> String {
    // INVARIANT: the store's clock stays within the years that can be spelt.
    jiff::Timestamp::from_microsecond(at.as_micros())
        .map_or_else(|_| String::new(), |at| format!("{at:.6}"))
}
