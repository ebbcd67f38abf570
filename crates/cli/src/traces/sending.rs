//! The one sender of traces of this process.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use holdpoint_engine::Watcher;
use holdpoint_traces::{Complaint, Traces, Wish};

use crate::{env, safe_text};

/// How long a process that is done waits for a collector to take what is left.
const FAREWELL: Duration = Duration::from_secs(2);

static TRACES: OnceLock<Option<Arc<Traces>>> = OnceLock::new();

/// Whoever sends traces, if they are wanted: the same for all engines. What goes wrong with it is told `complain`.
pub(crate) fn watcher(complain: impl Fn(&str) + Send + Sync + 'static) -> Option<Arc<dyn Watcher>> {
    let traces = TRACES.get_or_init(|| start(complain)).clone()?;
    Some(traces)
}

fn start(complain: impl Fn(&str) + Send + Sync + 'static) -> Option<Arc<Traces>> {
    let complaint = Complaint::new(move |text| complain(&safe_text::line(text)));
    match Wish::read(env::named) {
        Wish::None => None,
        Wish::Impossible(why) => {
            complaint.say(&format!("no traces are sent: {why}"));
            None
        }
        Wish::Send { service } => Traces::start(service, complaint).map(Arc::new),
    }
}

/// Sends what waits to be sent, before this process ends.
pub(crate) async fn flush() {
    if let Some(Some(traces)) = TRACES.get() {
        traces.flush(FAREWELL).await;
    }
}
