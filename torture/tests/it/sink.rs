//! Somebody outside who is told what happens, and is as unreliable as the world: it fails, hangs and breaks off.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex, MutexGuard},
    thread,
    time::Duration,
};

use serde_json::Value;
use standardwebhooks::Webhook;

use crate::point::Dice;

/// What messages are signed with.
pub(crate) const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// Longer than a server waits for an answer.
const HANG: Duration = Duration::from_secs(1);

/// How a sink is disposed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    /// Every third message or so comes to nothing.
    Unreliable,
    /// Whatever comes is accepted.
    Kind,
}

/// A message that was accepted.
#[derive(Debug, Clone)]
pub(crate) struct Heard {
    pub(crate) id: String,
    pub(crate) body: String,
    pub(crate) interrupt: String,
    pub(crate) kind: String,
}

#[derive(Debug)]
struct Ear {
    mood: Mood,
    dice: Dice,
    accepted: Vec<Heard>,
    refused: usize,
    problems: Vec<String>,
}

/// Where messages come. Each of them is checked by the library of the specification's authors.
#[derive(Debug, Clone)]
pub(crate) struct Sink {
    pub(crate) address: SocketAddr,
    ear: Arc<Mutex<Ear>>,
}

impl Sink {
    pub(crate) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let sink = Self {
            address: listener.local_addr().unwrap(),
            ear: Arc::new(Mutex::new(Ear {
                mood: Mood::Unreliable,
                dice: Dice::new("sink"),
                accepted: Vec::new(),
                refused: 0,
                problems: Vec::new(),
            })),
        };
        let hearing = sink.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let sink = hearing.clone();
                // A server that dies breaks off in the middle, which is none of ours.
                thread::spawn(move || sink.hear(stream.ok()?));
            }
        });
        sink
    }

    fn ear(&self) -> MutexGuard<'_, Ear> {
        self.ear.lock().unwrap()
    }

    pub(crate) fn becomes(&self, mood: Mood) {
        self.ear().mood = mood;
    }

    pub(crate) fn accepted(&self) -> Vec<Heard> {
        self.ear().accepted.clone()
    }

    /// How many messages came to nothing, and what was wrong with any of them.
    pub(crate) fn troubles(&self) -> (usize, Vec<String>) {
        let ear = self.ear();
        (ear.refused, ear.problems.clone())
    }

    fn hear(&self, mut stream: TcpStream) -> Option<()> {
        let mut text = Vec::new();
        let (head, body) = loop {
            let mut some = [0; 4_096];
            let read = stream.read(&mut some).ok().filter(|read| *read > 0)?;
            text.extend_from_slice(&some[..read]);
            if let Some(whole) = whole(&text) {
                break whole;
            }
        };
        let answer = self.answer(&head, &body);
        match answer {
            Some(status) => {
                let answer = format!("HTTP/1.1 {status} x\r\ncontent-length: 0\r\n\r\n");
                stream.write_all(answer.as_bytes()).ok()
            }
            None => {
                thread::sleep(HANG);
                Some(())
            }
        }
    }

    /// What is answered; nothing where it hangs.
    fn answer(&self, head: &str, body: &str) -> Option<u16> {
        let headers = head.lines().filter_map(|line| line.split_once(": "));
        let mut map = http::HeaderMap::new();
        for (name, value) in headers {
            map.insert(
                name.to_ascii_lowercase().parse::<http::HeaderName>().ok()?,
                value.parse().ok()?,
            );
        }
        let verified = Webhook::new(SECRET).unwrap().verify(body.as_bytes(), &map);
        let mut ear = self.ear();
        if let Err(error) = verified {
            ear.problems.push(format!("{error}: {head}"));
        }
        let roll = match ear.mood {
            Mood::Unreliable => ear.dice.below(100),
            Mood::Kind => 100,
        };
        if roll < 28 {
            ear.refused += 1;
            // It answers 500, and hangs, which in the end is a broken connection.
            return (roll < 20).then_some(500);
        }
        let value: Value = serde_json::from_str(body).unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let id = map.get("webhook-id").and_then(|id| id.to_str().ok());
        ear.accepted.push(Heard {
            id: id.unwrap_or_default().to_owned(),
            body: body.to_owned(),
            interrupt: text(&value["data"]["interrupt"]["id"]),
            kind: text(&value["type"]),
        });
        Some(204)
    }
}

/// Head and body of a request, once both are there.
fn whole(text: &[u8]) -> Option<(String, String)> {
    let text = std::str::from_utf8(text).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let length = head
        .lines()
        .filter_map(|line| line.split_once(": "))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))?;
    (body.len() == length.1.parse::<usize>().ok()?).then(|| (head.to_owned(), body.to_owned()))
}
