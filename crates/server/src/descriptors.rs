//! How many files and connections this process may have open.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Raises the number of descriptors as far as this process may, and says how many that are. The usual limit is meant for
/// programs that wait with `select`; a server with a thousand streams needs more.
pub(crate) fn raise() -> u64 {
    let mut limit = getrlimit(Resource::Nofile);
    let before = limit.current;
    limit.current = limit.maximum;
    let now = setrlimit(Resource::Nofile, limit).map_or(before, |()| limit.maximum);
    now.unwrap_or(u64::MAX)
}
