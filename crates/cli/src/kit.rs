//! What this process says about built-in tools: whom they may ask, and which folders are not for them.

use std::path::{Path, PathBuf};

use holdpoint_engine::Kit;

use crate::env;

/// Where `web_search` asks: an address with `{query}` in it.
const SEARCH: &str = "HOLDPOINT_SEARCH_URL";
/// Hosts, separated by commas, that `fetch_url` may reach though their addresses are private.
const PRIVATE: &str = "HOLDPOINT_FETCH_PRIVATE";

/// A kit for a process that works on these stores, and was told what to do by these files.
pub(crate) fn kit<'a>(
    stores: impl IntoIterator<Item = &'a str>,
    files: impl IntoIterator<Item = &'a Path>,
) -> Kit {
    let mut kit = Kit::new();
    let mut registry = kit.registry;
    if let Some(endpoint) = env::named(SEARCH).filter(|it| !it.is_empty()) {
        registry = registry.with_search(endpoint);
    }
    let hosts = env::named(PRIVATE).unwrap_or_default();
    for host in hosts.split(',').map(str::trim).filter(|it| !it.is_empty()) {
        registry = registry.with_private_host(host);
    }
    for store in stores {
        let Some(path) = store.strip_prefix("sqlite:") else {
            continue;
        };
        registry = registry
            .protecting(path)
            .protecting(PathBuf::from(format!("{path}.owners")));
    }
    for file in files {
        registry = registry.protecting(file);
    }
    kit.registry = registry;
    kit
}
