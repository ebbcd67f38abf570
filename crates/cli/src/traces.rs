//! Runs as OpenTelemetry traces, where this build can and the environment wants them.

#[cfg(feature = "otel")]
mod sending;

use std::sync::Arc;

use holdpoint_core::{Entry, State};
use holdpoint_engine::{OwnAppend, Said, Watcher};
use holdpoint_store::ThreadKey;

#[cfg(feature = "otel")]
pub(crate) use self::sending::{flush, watcher};

/// Nobody: this build sends no traces.
#[cfg(not(feature = "otel"))]
pub(crate) fn watcher(_complain: impl Fn(&str)) -> Option<Arc<dyn Watcher>> {
    None
}

/// Nothing waits to be sent: this build sends no traces.
#[cfg(not(feature = "otel"))]
pub(crate) async fn flush() {}

/// This watcher, and beside it the one that sends traces, if they are wanted. What goes wrong with them is told `complain`.
pub(crate) fn beside(
    watcher: Arc<dyn Watcher>,
    complain: impl Fn(&str) + Send + Sync + 'static,
) -> Arc<dyn Watcher> {
    match self::watcher(complain) {
        Some(traces) => Arc::new(Both(watcher, traces)),
        None => watcher,
    }
}

/// Two watchers of one engine.
#[derive(Debug)]
struct Both(Arc<dyn Watcher>, Arc<dyn Watcher>);

impl Watcher for Both {
    fn committed(&self, key: &ThreadKey, entries: &Arc<[Entry]>, after: &Arc<State>) {
        self.0.committed(key, entries, after);
        self.1.committed(key, entries, after);
    }

    fn appended(&self, append: &OwnAppend<'_>) {
        self.0.appended(append);
        self.1.appended(append);
    }

    fn said(&self, key: &ThreadKey, said: Said<'_>) {
        self.0.said(key, said);
        self.1.said(key, said);
    }
}
