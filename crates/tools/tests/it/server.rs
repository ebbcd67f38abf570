//! A server that does what a script says, one connection after the other.

use std::sync::{Arc, Mutex};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// What the server does with one connection.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    /// Reads the request, and says this.
    Say(Vec<u8>),
    /// Reads the request, says this, and neither says more nor hangs up.
    Stall(Vec<u8>),
    /// Reads nothing, and hangs up.
    HangUp,
}

/// A server of one test.
pub(crate) struct Server {
    pub(crate) port: u16,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// A server that plays these acts, and refuses connections after them.
    pub(crate) async fn play(acts: Vec<Act>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let seen_there = Arc::clone(&seen);
        tokio::spawn(async move {
            let mut stalled = Vec::new();
            for act in acts {
                let (mut stream, _) = listener.accept().await.unwrap();
                if !matches!(act, Act::HangUp) {
                    let request = read(&mut stream).await;
                    seen_there.lock().unwrap().push(request);
                }
                match act {
                    Act::Say(words) => stream.write_all(&words).await.unwrap(),
                    Act::Stall(words) => {
                        stream.write_all(&words).await.unwrap();
                        stalled.push(stream);
                    }
                    Act::HangUp => {}
                }
            }
            drop(listener);
            if !stalled.is_empty() {
                std::future::pending::<()>().await;
            }
        });
        Self { port, seen }
    }

    /// The requests that came, as they came.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

async fn read(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .filter_map(|line| line.split_once(": "))
                .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
                .map_or(0, |(_, length)| length.parse().unwrap());
            if body.len() >= length {
                return text.into_owned();
            }
        }
        let mut chunk = [0; 4096];
        let count = stream.read(&mut chunk).await.unwrap();
        assert!(count > 0, "the request broke off: {text}");
        bytes.extend_from_slice(&chunk[..count]);
    }
}

/// A whole response.
pub(crate) fn response(status: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// A response that ends before its body does.
pub(crate) fn broken_response(status: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\ncontent-length: 1000\r\n\r\n{body}").into_bytes()
}
