//! Hands on what the engine tells: hints to whoever listens, own appends to be counted, and all of it to a further watcher.

use std::sync::Arc;

use holdpoint_core::{Entry, State};
use holdpoint_engine::{OwnAppend, Said, Watcher};
use holdpoint_store::ThreadKey;

use super::Metrics;
use crate::hub::Hub;

/// Watches the engine of one store.
#[derive(Debug)]
pub(crate) struct Observer {
    pub(crate) hub: Arc<Hub>,
    pub(crate) metrics: Arc<Metrics>,
    /// Of the program that the server is part of.
    pub(crate) further: Option<Arc<dyn Watcher>>,
}

impl Watcher for Observer {
    fn committed(&self, key: &ThreadKey, entries: &Arc<[Entry]>, after: &Arc<State>) {
        self.hub.committed(key, entries, after);
        if let Some(further) = &self.further {
            further.committed(key, entries, after);
        }
    }

    fn appended(&self, append: &OwnAppend<'_>) {
        self.metrics.count(append);
        if let Some(further) = &self.further {
            further.appended(append);
        }
    }

    fn said(&self, key: &ThreadKey, said: Said<'_>) {
        self.hub.said(key, said);
        if let Some(further) = &self.further {
            further.said(key, said);
        }
    }
}
