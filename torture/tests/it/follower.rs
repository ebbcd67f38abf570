//! Somebody who follows a run's stream to its end, by whichever server is there.

use std::{
    io::{ErrorKind, Read as _},
    net::{SocketAddr, TcpStream},
    thread,
    time::Duration,
};

use serde_json::Value;

use crate::http::{Answer, Request, is_lost_connection};

/// How long somebody waits who found nobody.
const PAUSE: Duration = Duration::from_millis(12);

/// What was seen of a run.
#[derive(Debug, Default)]
pub(crate) struct Followed {
    /// Every event's place, and the hash of all up to there, as they came.
    pub(crate) events: Vec<(u64, String)>,
    /// How often the stream broke off because its server went, and was gone on with at another.
    pub(crate) moves: usize,
    pub(crate) problems: Vec<String>,
}

/// Whether somebody who comes back says what was seen before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Memory {
    Kept,
    /// Wrong on purpose.
    Lost,
}

/// How a stream ended.
#[derive(Debug)]
enum End {
    /// With the end of the run.
    Over,
    /// Its server said that it goes.
    Closing,
    /// It never began: nobody was there.
    Nobody,
    /// Nobody wants to know more.
    GivenUp,
    /// As none may.
    Wrong(String),
}

/// Follows a run by one server until that goes, then by the next, until the run has ended or nobody wants to know more.
pub(crate) fn follow(
    addresses: &[SocketAddr],
    run: &str,
    memory: Memory,
    is_wanted: impl Fn() -> bool,
) -> Followed {
    let mut followed = Followed::default();
    for address in addresses.iter().cycle() {
        let request = Request::get(format!("/api/v1/runs/{run}/stream"));
        let request = match (followed.events.last(), memory) {
            (Some((last, _)), Memory::Kept) => request.after(*last),
            (Some(_), Memory::Lost) | (None, _) => request,
        };
        match followed.hear(&request, *address, &is_wanted) {
            End::Over | End::GivenUp => break,
            End::Closing => followed.moves += 1,
            End::Nobody if is_wanted() => thread::sleep(PAUSE),
            End::Nobody => break,
            End::Wrong(problem) => {
                followed.problems.push(problem);
                break;
            }
        }
    }
    followed
}

impl Followed {
    fn hear(&mut self, request: &Request, by: SocketAddr, is_wanted: impl Fn() -> bool) -> End {
        let stream = match request.begin(by) {
            Ok(stream) => stream,
            Err(error) if is_lost_connection(error.kind()) => return End::Nobody,
            Err(error) => return End::Wrong(format!("the stream does not begin: {error}")),
        };
        self.read(stream, is_wanted)
    }

    fn read(&mut self, mut stream: TcpStream, is_wanted: impl Fn() -> bool) -> End {
        let mut text = Vec::new();
        let mut is_begun = false;
        loop {
            let mut bytes = [0; 4_096];
            let read = match stream.read(&mut bytes) {
                Ok(read) => read,
                // It is silent while nothing happens.
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    if is_wanted() {
                        continue;
                    }
                    return End::GivenUp;
                }
                Err(error) if is_lost_connection(error.kind()) => 0,
                Err(error) => return End::Wrong(format!("the stream cannot be read: {error}")),
            };
            text.extend_from_slice(&bytes[..read]);
            if !is_begun && let Some(end) = position(&text, b"\r\n\r\n") {
                if !is_ok(&text) {
                    // What was said before the connection was lost counts.
                    let _ = stream.read_to_end(&mut text);
                    return refused(&String::from_utf8_lossy(&text));
                }
                text.drain(..end);
                is_begun = true;
            }
            while is_begun && let Some(end) = position(&text, b"\n\n") {
                let frame: Vec<u8> = text.drain(..end).collect();
                if let Some(end) = self.take(&String::from_utf8_lossy(&frame)) {
                    return end;
                }
            }
            if read == 0 {
                return match is_begun {
                    true => End::Wrong("the stream breaks off without a word".to_owned()),
                    false => End::Nobody,
                };
            }
        }
    }

    /// Takes one frame in; says so if nothing follows it.
    fn take(&mut self, frame: &str) -> Option<End> {
        let field = |name: &str| {
            let mut lines = frame.lines().filter_map(|line| line.split_once(": "));
            lines.find(|(key, _)| *key == name).map(|(_, value)| value)
        };
        let name = field("event").unwrap_or_default();
        if name == "closing" {
            return Some(End::Closing);
        }
        // Only events of the journal have one.
        let id = field("id")?.parse().ok()?;
        let data: Value = serde_json::from_str(field("data")?).ok()?;
        let hash = data["hash"].as_str()?;
        self.events.push((id, hash.to_owned()));
        (name == "run_ended").then_some(End::Over)
    }
}

/// Where in the bytes a mark ends.
fn position(bytes: &[u8], mark: &[u8]) -> Option<usize> {
    let found = bytes.windows(mark.len()).position(|it| it == mark);
    found.map(|at| at + mark.len())
}

fn is_ok(answer: &[u8]) -> bool {
    let status = answer.split(|byte| *byte == b' ').nth(1);
    status == Some(b"200")
}

/// What an answer means that is no stream.
fn refused(text: &str) -> End {
    match Answer::read(text) {
        Some(answer) if answer.code() == "shutting_down" => End::Nobody,
        Some(answer) => End::Wrong(format!("instead of a stream: {answer:?}")),
        None => End::Nobody,
    }
}

#[test]
fn events_are_seen_and_everything_else_in_a_stream_is_not() {
    let mut followed = Followed::default();
    let event = |id: u64, name: &str| {
        format!("id: {id}\nevent: {name}\ndata: {{\"hash\":\"h{id}\",\"seq\":{id}}}\n\n")
    };
    assert!(followed.take(&event(3, "answered")).is_none());
    assert!(followed.take("retry: 1000\n\n").is_none());
    let delta = "event: delta\ndata: {\"text\":\"id: 9\"}\n\n";
    assert!(followed.take(delta).is_none());
    let closing = followed.take("event: closing\ndata: {}\n\n");
    assert!(matches!(closing, Some(End::Closing)));
    let over = followed.take(&event(4, "run_ended"));
    assert!(matches!(over, Some(End::Over)));
    let seen = [(3, "h3".to_owned()), (4, "h4".to_owned())];
    assert_eq!(followed.events, seen);
}
