//! The watcher that sends what runs did.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use holdpoint_core::{
    Entry, State,
    spans::{Starts, stretches},
};
use holdpoint_engine::{OwnAppend, Said, Watcher};
use holdpoint_store::ThreadKey;
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::{Resource, resource::EnvResourceDetector, trace::SpanExporter as _};

use crate::{
    Complaint,
    queue::{Put, Queue},
    span::{scope, span},
};

/// What a service is called that nobody named.
const UNNAMED: &str = "holdpoint";

/// Sends what ends with the appends of this process. One watches all engines of it.
#[derive(Debug)]
pub struct Traces {
    queue: Queue,
    complaint: Arc<Complaint>,
    starts: Mutex<Starts>,
    scope: InstrumentationScope,
}

impl Traces {
    /// Begins to send, in a task of the runtime that this is called in. `service` is what the environment calls the service.
    /// `None`, after a complaint, where the environment says something that cannot be used.
    #[must_use]
    pub fn start(service: Option<String>, complaint: Complaint) -> Option<Self> {
        let exporter = SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .build();
        let mut exporter = match exporter {
            Ok(exporter) => exporter,
            Err(error) => {
                complaint.say(&format!("no traces are sent: {error}"));
                return None;
            }
        };
        exporter.set_resource(&resource(service));
        let complaint = Arc::new(complaint);
        Some(Self {
            queue: Queue::new(exporter, Arc::clone(&complaint)),
            complaint,
            starts: Mutex::default(),
            scope: scope(),
        })
    }

    /// Sends what waits, before the process goes; but no longer than this.
    pub async fn flush(&self, within: Duration) {
        let sent = self.queue.flush(within).await;
        let dropped = self.queue.dropped();
        if !sent {
            self.complaint
                .say("traces were not all sent: their collector did not take them in time");
        } else if dropped > 0 {
            self.complaint.say(&format!(
                "{dropped} spans were not sent, because too many others waited"
            ));
        }
    }
}

/// Who sends.
fn resource(service: Option<String>) -> Resource {
    let resource = Resource::builder_empty()
        .with_attributes([
            KeyValue::new("service.name", UNNAMED),
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
            KeyValue::new("process.pid", i64::from(std::process::id())),
        ])
        .with_detector(Box::new(EnvResourceDetector::new()));
    match service {
        Some(service) => resource.with_service_name(service).build(),
        None => resource.build(),
    }
}

impl Watcher for Traces {
    fn committed(&self, _key: &ThreadKey, _entries: &Arc<[Entry]>, _after: &Arc<State>) {
        // By whomever: what this process committed itself is told apart.
    }

    fn appended(&self, append: &OwnAppend<'_>) {
        let ended = {
            let mut starts = self.starts.lock().unwrap_or_else(PoisonError::into_inner);
            stretches(append.before, append.entries, &mut starts)
        };
        for stretch in ended {
            if self.queue.put(span(&stretch, &self.scope)) == Put::FirstDropped {
                self.complaint
                    .say("spans are dropped, because too many wait to be sent");
            }
        }
    }

    fn said(&self, _key: &ThreadKey, _said: Said<'_>) {
        // Nothing that is said is sent.
    }
}
