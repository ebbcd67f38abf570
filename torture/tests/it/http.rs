//! The little of HTTP that a client needs: one request for each connection, and an answer that counts only if it is whole.

use std::{
    io::{self, ErrorKind, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use serde_json::Value;

/// Longer than any answer takes that a living server gives.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is asked for.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    method: &'static str,
    pub(crate) path: String,
    key: Option<String>,
    /// What shows who asks, where that matters.
    bearer: Option<String>,
    /// The last event of a stream that is known.
    last_event: Option<u64>,
    body: Option<Value>,
}

impl Request {
    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self {
            method: "GET",
            path: path.into(),
            key: None,
            bearer: None,
            last_event: None,
            body: None,
        }
    }

    /// Under a key, so that it may be sent again until it is answered.
    pub(crate) fn post(path: impl Into<String>, key: String, body: Value) -> Self {
        Self {
            method: "POST",
            path: path.into(),
            key: Some(key),
            bearer: None,
            last_event: None,
            body: Some(body),
        }
    }

    /// By whoever this API key stands for.
    pub(crate) fn by(mut self, bearer: &str) -> Self {
        self.bearer = Some(bearer.to_owned());
        self
    }

    /// A stream, from after this event on.
    pub(crate) fn after(mut self, event: u64) -> Self {
        self.last_event = Some(event);
        self
    }

    pub(crate) fn without_key(mut self) -> Self {
        self.key = None;
        self
    }

    /// Sends it once.
    pub(crate) fn send(&self, address: SocketAddr) -> io::Result<Answer> {
        let mut stream = self.begin(address)?;
        let mut bytes = Vec::new();
        let read = stream.read_to_end(&mut bytes);
        // Where a server died, what it had said before counts.
        let answer = Answer::read(&String::from_utf8_lossy(&bytes));
        answer.ok_or_else(|| read.err().unwrap_or(ErrorKind::UnexpectedEof.into()))
    }

    /// Sends it and leaves the answer to be read.
    pub(crate) fn begin(&self, address: SocketAddr) -> io::Result<TcpStream> {
        let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.write_all(self.text(address).as_bytes())?;
        Ok(stream)
    }

    fn text(&self, address: SocketAddr) -> String {
        let Self { method, path, .. } = self;
        let last_event = self.last_event.map(|event| event.to_string());
        let headers: String = [
            ("Idempotency-Key: ", &self.key),
            ("Authorization: Bearer ", &self.bearer),
            ("Last-Event-ID: ", &last_event),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some(format!("{name}{}\r\n", value.as_ref()?)))
        .collect();
        let body = self.body.as_ref().map(Value::to_string).unwrap_or_default();
        let length = body.len();
        format!(
            "{method} {path} HTTP/1.0\r\nHost: {address}\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n{headers}\r\n{body}"
        )
    }
}

/// Whether this says that a server went away, or had gone before.
pub(crate) const fn is_lost_connection(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::ConnectionRefused
            | ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::BrokenPipe
            | ErrorKind::UnexpectedEof
    )
}

/// What came back.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Whether the server says that the request came before.
    pub(crate) replayed: bool,
    /// The run that it is about.
    pub(crate) run: Option<String>,
    /// Whether a stream came to its end. All else is whole, or no answer.
    pub(crate) whole: bool,
    /// JSON, or the text where it is none.
    pub(crate) body: Value,
}

impl Answer {
    /// Nothing, where the server died in the middle of it.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let (head, body) = text.split_once("\r\n\r\n")?;
        let (status, headers) = head.split_once("\r\n")?;
        let status = status.split(' ').nth(1)?.parse().ok()?;
        let header = |name: &str| {
            let mut lines = headers.lines().filter_map(|line| line.split_once(':'));
            let found = lines.find(|(key, _)| key.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.trim())
        };
        let whole = match header("content-length") {
            Some(length) if length.parse() == Ok(body.len()) => true,
            Some(_) => return None,
            // A stream, which says itself where it ends.
            None => body.ends_with("data: [DONE]\n\n"),
        };
        let body: Value = serde_json::from_str(body).unwrap_or(Value::from(body));
        let run = header("x-run-id").or(body["run_id"].as_str());
        Some(Self {
            status,
            replayed: header("idempotency-replayed") == Some("true"),
            run: run.map(str::to_owned),
            whole,
            body,
        })
    }

    /// The code of a refusal.
    pub(crate) fn code(&self) -> &str {
        self.body["code"].as_str().unwrap_or_default()
    }
}

#[test]
fn an_answer_that_was_cut_off_is_none_and_a_stream_says_so() {
    let whole = "HTTP/1.0 201 Created\r\nContent-Length: 14\r\nidempotency-replayed: true\r\n\r\n{\"run_id\":\"r\"}";
    let answer = Answer::read(whole).unwrap();
    assert_eq!(
        (answer.status, answer.replayed, answer.whole),
        (201, true, true)
    );
    assert_eq!(answer.run.as_deref(), Some("r"));
    for end in 0..whole.len() {
        assert!(Answer::read(&whole[..end]).is_none(), "{end}");
    }
    let stream =
        "HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\nX-Run-Id: r\r\n\r\ndata: [DONE]\n\n";
    let [cut, whole] = [&stream[..stream.len() - 1], stream].map(|it| Answer::read(it).unwrap());
    assert_eq!((cut.whole, cut.run, whole.whole), (false, whole.run, true));
}
