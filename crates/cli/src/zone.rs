//! Points in time as people read them.

use holdpoint_core::Timestamp;
use jiff::tz::TimeZone;

/// RFC 3339 with the offset of the local zone.
pub(crate) fn rfc3339(at: Timestamp) -> String {
    zoned(at).strftime("%Y-%m-%dT%H:%M:%S%.6f%:z").to_string()
}

/// Date and time of day in the local zone.
pub(crate) fn short(at: Timestamp) -> String {
    zoned(at).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// Time of day in the local zone, to the millisecond.
pub(crate) fn time_of_day(at: Timestamp) -> String {
    zoned(at).strftime("%H:%M:%S%.3f").to_string()
}

fn zoned(at: Timestamp) -> jiff::Zoned {
    jiff::Timestamp::from_microsecond(at.as_micros())
        .unwrap_or(jiff::Timestamp::UNIX_EPOCH)
        .to_zoned(TimeZone::system())
}
