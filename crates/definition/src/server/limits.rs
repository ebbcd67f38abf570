//! `limits`: how much a server takes.

use holdpoint_yaml::{Field, Fields, Report};

use super::size;

/// How much a server takes. The default is what holds where nothing is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerLimits {
    /// How many bytes the body of a request may have: 1 MiB.
    pub body: u64,
    /// How many things one request may ask for at once: 100.
    pub batch: u32,
    /// How many streams may be open at a time: 1000.
    pub streams: u32,
    /// How many of them may be of one key: 100.
    pub streams_per_key: u32,
    /// How many questions may be open of one user: 10000.
    pub pending_per_user: u32,
    /// How many questions may be open of one run: 64.
    pub pending_per_run: u32,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            body: 1 << 20,
            batch: 100,
            streams: 1_000,
            streams_per_key: 100,
            pending_per_user: 10_000,
            pending_per_run: 64,
        }
    }
}

pub(super) fn read(field: &Field<'_>, report: &mut Report) -> Option<ServerLimits> {
    let known = [
        "body",
        "batch",
        "streams",
        "streams_per_key",
        "pending_per_user",
        "pending_per_run",
    ];
    let fields = Fields::open(field, &known, report)?;
    let unsaid = ServerLimits::default();
    let body = match fields.optional("body") {
        None => Some(unsaid.body),
        Some(field) => size::read(&field, report),
    };
    let mut count = |key: &str, unsaid: u32| match fields.optional(key) {
        None => Some(unsaid),
        Some(field) => field.count(report),
    };
    let batch = count("batch", unsaid.batch);
    let streams = count("streams", unsaid.streams);
    let streams_per_key = count("streams_per_key", unsaid.streams_per_key);
    let pending_per_user = count("pending_per_user", unsaid.pending_per_user);
    let pending_per_run = count("pending_per_run", unsaid.pending_per_run);
    Some(ServerLimits {
        body: body?,
        batch: batch?,
        streams: streams?,
        streams_per_key: streams_per_key?,
        pending_per_user: pending_per_user?,
        pending_per_run: pending_per_run?,
    })
}
