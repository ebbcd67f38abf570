//! The one place that reads the environment.

use std::{ffi::OsString, fs, path::PathBuf};

use holdpoint_core::Span;

/// The name of the operating system's user, under which everything done here is recorded.
///
/// The user database comes first: the environment says whatever whoever set it wanted.
pub(crate) fn os_user() -> String {
    let uid = rustix::process::getuid().as_raw();
    fs::read_to_string("/etc/passwd")
        .ok()
        .and_then(|passwd| name_in(&passwd, uid))
        .or_else(from_environment)
        .unwrap_or_else(|| format!("uid-{uid}"))
}

/// Where the system looks for programs.
pub(crate) fn search_path() -> Option<OsString> {
    std::env::var_os("PATH")
}

/// How long leases last, where a test says so: builds that are shipped do not listen.
pub(crate) fn lease() -> Option<Span> {
    if !cfg!(feature = "failpoints") {
        return None;
    }
    let millis = std::env::var_os("HOLDPOINT_TEST_LEASE_MS")?;
    let millis = millis.into_string().ok()?.parse().ok()?;
    Some(Span::from_millis(millis))
}

/// What a server logs, if somebody says.
pub(crate) fn log() -> Option<String> {
    std::env::var_os("HOLDPOINT_LOG")?.into_string().ok()
}

/// A variable that a configuration names.
pub(crate) fn named(name: &str) -> Option<String> {
    std::env::var_os(name)?.into_string().ok()
}

/// The store that commands use where none is named.
pub(crate) fn store() -> Option<String> {
    std::env::var_os("HOLDPOINT_STORE")?.into_string().ok()
}

/// The configuration whose models count where none is named.
pub(crate) fn config() -> Option<PathBuf> {
    std::env::var_os("HOLDPOINT_CONFIG").map(PathBuf::from)
}

fn name_in(passwd: &str, uid: u32) -> Option<String> {
    let uid = uid.to_string();
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        (fields.nth(1)? == uid).then(|| name.to_owned())
    })
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is the edge at which the environment is read"
)]
fn from_environment() -> Option<String> {
    ["USER", "LOGNAME"]
        .into_iter()
        .filter_map(|name| std::env::var(name).ok())
        .find(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_its_number_and_not_by_another_that_begins_alike() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nten:x:10:10::/:\none:x:1:1::/:\n";
        assert_eq!(name_in(passwd, 1).as_deref(), Some("one"));
        assert_eq!(name_in(passwd, 0).as_deref(), Some("root"));
        assert_eq!(name_in(passwd, 100), None);
    }
}
