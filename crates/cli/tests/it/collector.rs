//! A collector of traces: takes OTLP over HTTP, keeps it, and says what is wrong with it.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::{AnyValue, KeyValue, any_value::Value},
};
use prost::Message as _;
use tokio::time::Instant;

/// What was asked of the collector: head and body.
type Requests = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

/// Takes what it is sent, until the test ends.
#[derive(Debug)]
pub(crate) struct Collector {
    pub(crate) url: String,
    requests: Requests,
}

/// A span, as a collector sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) trace: String,
    pub(crate) id: String,
    /// Empty for the whole.
    pub(crate) parent: String,
    pub(crate) name: String,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) attributes: BTreeMap<String, String>,
    pub(crate) resource: BTreeMap<String, String>,
}

impl Collector {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Requests::default();
        let taken = Arc::clone(&requests);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let taken = Arc::clone(&taken);
                thread::spawn(move || take(&stream, &taken));
            }
        });
        Self { url, requests }
    }

    /// All bytes that came.
    pub(crate) fn requests(&self) -> Vec<(String, Vec<u8>)> {
        self.requests.lock().unwrap().clone()
    }

    /// All spans that came, the first to end first.
    pub(crate) fn spans(&self) -> Vec<Span> {
        let requests = self.requests();
        let mut spans: Vec<Span> = requests.iter().flat_map(|(_, body)| read(body)).collect();
        // A run ends with its last call, within the same millisecond.
        spans.sort_by_key(|span| (span.end, span.parent.is_empty(), span.start));
        spans
    }

    /// Waits until as many spans are there.
    #[track_caller]
    pub(crate) fn wait_for(&self, count: usize) -> Vec<Span> {
        let begun = Instant::now();
        loop {
            let spans = self.spans();
            if spans.len() >= count {
                return spans;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "{spans:#?}");
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Takes the requests of a connection, one after the other.
fn take(stream: &TcpStream, taken: &Requests) {
    let mut reader = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).unwrap_or(0) == 0 {
                return;
            }
        }
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            let is_length = name.eq_ignore_ascii_case("content-length");
            is_length.then(|| value.trim().parse().unwrap())
        });
        let mut body = vec![0; length.unwrap_or(0)];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        taken.lock().unwrap().push((head, body));
        let mut stream = stream;
        if stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            .is_err()
        {
            return;
        }
    }
}

fn read(body: &[u8]) -> Vec<Span> {
    let request = ExportTraceServiceRequest::decode(body).unwrap();
    let mut spans = Vec::new();
    for of_resource in request.resource_spans {
        let resource = named(&of_resource.resource.unwrap().attributes);
        let all = of_resource.scope_spans.into_iter().flat_map(|it| it.spans);
        spans.extend(all.map(|span| Span {
            trace: holdpoint_core::hex(&span.trace_id),
            id: holdpoint_core::hex(&span.span_id),
            parent: holdpoint_core::hex(&span.parent_span_id),
            name: span.name,
            start: span.start_time_unix_nano,
            end: span.end_time_unix_nano,
            attributes: named(&span.attributes),
            resource: resource.clone(),
        }));
    }
    spans
}

fn named(attributes: &[KeyValue]) -> BTreeMap<String, String> {
    let text = |value: &Option<AnyValue>| match value.as_ref().and_then(|it| it.value.as_ref()) {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::IntValue(number)) => number.to_string(),
        Some(Value::BoolValue(flag)) => flag.to_string(),
        other => format!("{other:?}"),
    };
    let attributes = attributes.iter();
    attributes
        .map(|it| (it.key.clone(), text(&it.value)))
        .collect()
}

/// All that keeps these spans from being one whole trace of this run.
pub(crate) fn faults(run: &str, spans: &[Span]) -> Vec<String> {
    let mut faults = Vec::new();
    let trace = run.strip_prefix("run_").unwrap();
    let mut ids = BTreeSet::new();
    for span in spans {
        if span.trace != trace {
            faults.push(format!("`{}` is in another trace", span.name));
        }
        if !ids.insert(&span.id) {
            faults.push(format!("`{}` came twice", span.name));
        }
    }
    let roots: Vec<&Span> = spans.iter().filter(|span| span.parent.is_empty()).collect();
    if roots.len() != 1 {
        faults.push(format!("{} roots", roots.len()));
    }
    for span in spans {
        if !span.parent.is_empty() && !ids.contains(&span.parent) {
            faults.push(format!("`{}` is a part of nothing", span.name));
        }
        if span.end < span.start || roots.iter().any(|root| span.start < root.start) {
            faults.push(format!("`{}` is out of its time", span.name));
        }
    }
    faults
}
