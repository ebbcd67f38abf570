//! A clock that driver and watchdog share, and that counts on while the machine sleeps.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

#[cfg(target_os = "linux")]
const CLOCK: ClockId = ClockId::Boottime;
// Elsewhere the monotonic clock already counts sleep, or nothing does.
#[cfg(not(target_os = "linux"))]
const CLOCK: ClockId = ClockId::Monotonic;

/// The time since some point that is the same for all processes of this machine until it boots again.
pub(super) fn now() -> Duration {
    let time = clock_gettime(CLOCK);
    Duration::from_secs(time.tv_sec.unsigned_abs())
        + Duration::from_nanos(time.tv_nsec.unsigned_abs())
}
