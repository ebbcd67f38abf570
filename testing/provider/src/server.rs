//! The server: one thread for each connection, one answer for each.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex},
    thread,
    time::Duration,
};

use serde_json::Value;

/// A request that came.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Its path, with the query.
    pub path: String,
    /// Its headers; their names in lower case.
    pub headers: BTreeMap<String, String>,
    /// Its body.
    pub body: Value,
}

/// What is answered.
#[derive(Debug, Clone)]
pub struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    pieces: Vec<Piece>,
    ending: Ending,
}

#[derive(Debug, Clone)]
enum Piece {
    Bytes(Vec<u8>),
    Wait(Gate),
}

#[derive(Debug, Clone, Copy)]
enum Ending {
    /// As HTTP has it.
    Proper,
    /// The connection is gone in the middle.
    HangUp,
    /// Nothing more comes.
    Stall,
}

/// What a server waits at, until it is opened.
#[derive(Debug, Clone, Default)]
pub struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    /// A closed one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets everybody pass.
    pub fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }

    fn wait(&self) {
        let is_open = self.0.0.lock().unwrap();
        drop(self.0.1.wait_while(is_open, |is_open| !*is_open).unwrap());
    }
}

impl Answer {
    /// A stream of events, in one piece.
    #[must_use]
    pub fn stream(text: impl Into<Vec<u8>>) -> Self {
        Self {
            status: 200,
            headers: vec![("content-type".to_owned(), "text/event-stream".to_owned())],
            pieces: vec![Piece::Bytes(text.into())],
            ending: Ending::Proper,
        }
    }

    /// What is answered where there is no answer.
    #[must_use]
    pub fn error(status: u16, body: &str) -> Self {
        Self {
            status,
            headers: vec![("content-type".to_owned(), "application/json".to_owned())],
            pieces: vec![Piece::Bytes(body.as_bytes().to_vec())],
            ending: Ending::Proper,
        }
    }

    /// With this header, in place of one of the same name.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(known, _)| known != name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// In pieces of so many bytes.
    #[must_use]
    pub fn in_pieces_of(mut self, bytes: usize) -> Self {
        let whole = self.bytes();
        let pieces = whole.chunks(bytes).map(|it| Piece::Bytes(it.to_vec()));
        self.pieces = pieces.collect();
        self
    }

    /// Waits at this gate after so many bytes.
    #[must_use]
    pub fn waiting_after(mut self, bytes: usize, gate: &Gate) -> Self {
        let whole = self.bytes();
        let (before, after) = whole.split_at(bytes);
        self.pieces = vec![
            Piece::Bytes(before.to_vec()),
            Piece::Wait(gate.clone()),
            Piece::Bytes(after.to_vec()),
        ];
        self
    }

    /// Gone after so many bytes.
    #[must_use]
    pub fn broken_after(mut self, bytes: usize) -> Self {
        self.ending = Ending::HangUp;
        self.cut(bytes)
    }

    /// Ends after so many bytes as if that were all.
    #[must_use]
    pub fn ended_after(self, bytes: usize) -> Self {
        self.cut(bytes)
    }

    /// Says nothing more after so many bytes, and stays.
    #[must_use]
    pub fn silent_after(mut self, bytes: usize) -> Self {
        self.ending = Ending::Stall;
        self.cut(bytes)
    }

    fn cut(mut self, bytes: usize) -> Self {
        let mut whole = self.bytes();
        whole.truncate(bytes);
        self.pieces = vec![Piece::Bytes(whole)];
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let pieces = self.pieces.iter().map(|piece| match piece {
            Piece::Bytes(bytes) => bytes.as_slice(),
            Piece::Wait(_) => &[],
        });
        pieces.collect::<Vec<_>>().concat()
    }
}

/// A server of one test.
#[derive(Debug)]
pub struct Server {
    port: u16,
    asked: Arc<(Mutex<Vec<Asked>>, Condvar)>,
}

impl Server {
    /// A server that answers so.
    #[must_use]
    pub fn start(answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new((Mutex::new(Vec::new()), Condvar::new()));
        let (there, answer) = (Arc::clone(&asked), Arc::new(answer));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { continue };
                let (asked, answer) = (Arc::clone(&there), Arc::clone(&answer));
                thread::spawn(move || {
                    let Some(question) = read(&stream) else {
                        return;
                    };
                    asked.0.lock().unwrap().push(question.clone());
                    asked.1.notify_all();
                    // Whoever asked may be gone, as tests want them to be.
                    let _ = write(&stream, answer(&question));
                });
            }
        });
        Self { port, asked }
    }

    /// A server that gives these answers one after the other, and the last one again and again.
    #[must_use]
    pub fn playing(answers: Vec<Answer>) -> Self {
        let next = Mutex::new(0);
        Self::start(move |_| {
            let mut next = next.lock().unwrap();
            let answer = answers[(*next).min(answers.len() - 1)].clone();
            *next += 1;
            answer
        })
    }

    /// Where it is.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The requests that came.
    #[must_use]
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.0.lock().unwrap().clone()
    }

    /// Waits until so many requests came.
    ///
    /// # Panics
    ///
    /// They do not come.
    pub fn wait_for(&self, requests: usize) {
        const PATIENCE: Duration = Duration::from_secs(30);
        let asked = self.asked.0.lock().unwrap();
        let fewer = |asked: &mut Vec<Asked>| asked.len() < requests;
        let waited = self.asked.1.wait_timeout_while(asked, PATIENCE, fewer);
        let has_timed_out = waited.unwrap().1.timed_out();
        assert!(!has_timed_out, "fewer than {requests} requests came");
    }
}

fn read(stream: &TcpStream) -> Option<Asked> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length")?.parse().ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Asked {
        path,
        headers,
        body: serde_json::from_slice(&body).ok()?,
    })
}

fn write(mut stream: &TcpStream, answer: Answer) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut head = format!("HTTP/1.1 {} Scripted\r\n", answer.status);
    for (name, value) in &answer.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("transfer-encoding: chunked\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    for piece in answer.pieces {
        match piece {
            // An empty one would end the body.
            Piece::Bytes(bytes) if bytes.is_empty() => {}
            Piece::Bytes(bytes) => {
                let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
                chunk.extend_from_slice(&bytes);
                chunk.extend_from_slice(b"\r\n");
                stream.write_all(&chunk)?;
            }
            Piece::Wait(gate) => gate.wait(),
        }
    }
    match answer.ending {
        Ending::Proper => stream.write_all(b"0\r\n\r\n"),
        Ending::HangUp => stream.shutdown(Shutdown::Both),
        Ending::Stall => {
            // Until the other side hangs up.
            let _ = stream.read(&mut [0; 1]);
            Ok(())
        }
    }
}
