//! The environment that HTTP tools are tested in: with secrets, and with proxies that must not be used.

use std::os::unix::process::CommandExt;

/// A secret with characters that JSON escapes.
pub(crate) const TOKEN: &str = "tok\"en-4711";

const MARK: &str = "HOLDPOINT_TEST_SURROUNDINGS";

/// A process cannot change its own environment, so it is started again with another.
pub(crate) fn enter() {
    if std::env::var_os(MARK).is_some() {
        return;
    }
    let mut again = std::process::Command::new(std::env::current_exe().unwrap());
    again.args(std::env::args_os().skip(1));
    for proxy in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"] {
        // Nobody listens there: whoever uses it fails.
        again.env(proxy, "http://127.0.0.1:1/");
    }
    let error = again
        .env_remove("NO_PROXY")
        .env_remove("no_proxy")
        .env(MARK, "1")
        .env("PAY_TOKEN", TOKEN)
        .env("EMPTY_TOKEN", "")
        .env("BROKEN_TOKEN", "a\nb")
        .exec();
    panic!("{error}");
}
