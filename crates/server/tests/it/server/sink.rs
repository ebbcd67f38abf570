//! Somebody outside who is told what happens, and answers as it was told to.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use reqwest::header::{HeaderMap, HeaderName};
use serde_json::Value;
use standardwebhooks::Webhook;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use super::support::SECRET;

/// How a message is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Status(u16),
    /// Not at all.
    Hang,
    /// The connection ends.
    Cut,
}

/// A message that came.
#[derive(Debug, Clone)]
pub(crate) struct Heard {
    pub(crate) id: String,
    pub(crate) body: String,
    pub(crate) value: Value,
    pub(crate) answered: Answer,
}

impl Heard {
    pub(crate) fn is_accepted(&self) -> bool {
        matches!(self.answered, Answer::Status(200..=299))
    }

    pub(crate) fn interrupt(&self) -> &str {
        self.value["data"]["interrupt"]["id"].as_str().unwrap()
    }

    pub(crate) fn kind(&self) -> &str {
        self.value["type"].as_str().unwrap()
    }
}

/// Where messages come. Each of them is checked by the library of the specification's authors.
#[derive(Debug, Clone)]
pub(crate) struct Sink {
    pub(crate) address: SocketAddr,
    heard: Arc<Mutex<Vec<Heard>>>,
    plan: Arc<Mutex<VecDeque<Answer>>>,
    /// What is answered where nothing is planned.
    usual: Arc<Mutex<Answer>>,
}

impl Sink {
    pub(crate) async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let sink = Self {
            address: listener.local_addr().unwrap(),
            heard: Arc::default(),
            plan: Arc::default(),
            usual: Arc::new(Mutex::new(Answer::Status(204))),
        };
        let hearing = sink.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let sink = hearing.clone();
                tokio::spawn(async move { sink.hear(stream).await });
            }
        });
        sink
    }

    /// Answers the next messages so.
    pub(crate) fn plan(&self, answers: impl IntoIterator<Item = Answer>) {
        self.plan.lock().unwrap().extend(answers);
    }

    /// Answers all others so.
    pub(crate) fn usually(&self, answer: Answer) {
        *self.usual.lock().unwrap() = answer;
    }

    pub(crate) fn heard(&self) -> Vec<Heard> {
        self.heard.lock().unwrap().clone()
    }

    pub(crate) fn accepted(&self) -> Vec<Heard> {
        let heard = self.heard().into_iter();
        heard.filter(Heard::is_accepted).collect()
    }

    /// Waits until so much was accepted.
    pub(crate) async fn until_accepted(&self, count: usize) -> Vec<Heard> {
        self.until(|heard| heard.iter().filter(|it| it.is_accepted()).count() >= count)
            .await;
        self.accepted()
    }

    /// Waits until what was heard is so.
    pub(crate) async fn until(&self, so: impl Fn(&[Heard]) -> bool) -> Vec<Heard> {
        for _ in 0..1_500 {
            let heard = self.heard();
            if so(&heard) {
                return heard;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("it hears no more: {:#?}", self.heard());
    }

    async fn hear(&self, mut stream: TcpStream) {
        let mut text = Vec::new();
        let (head, body) = loop {
            let mut some = [0; 4_096];
            let read = stream.read(&mut some).await.unwrap();
            assert!(read > 0, "it breaks off");
            text.extend_from_slice(&some[..read]);
            if let Some(whole) = whole(&text) {
                break whole;
            }
        };
        let mut lines = head.lines();
        assert!(lines.next().unwrap().starts_with("POST /"), "{head}");
        let mut headers = HeaderMap::new();
        for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
            let name: HeaderName = name.parse().unwrap();
            headers.insert(name, value.parse().unwrap());
        }
        let verifier = Webhook::new(SECRET).unwrap();
        verifier.verify(body.as_bytes(), &headers).unwrap();
        assert_eq!(headers["content-type"], "application/json");
        let planned = self.plan.lock().unwrap().pop_front();
        let answered = planned.unwrap_or(*self.usual.lock().unwrap());
        self.heard.lock().unwrap().push(Heard {
            id: headers["webhook-id"].to_str().unwrap().to_owned(),
            value: serde_json::from_str(&body).unwrap(),
            body,
            answered,
        });
        match answered {
            Answer::Status(status) => {
                let answer = format!("HTTP/1.1 {status} x\r\ncontent-length: 0\r\n\r\n");
                let _ = stream.write_all(answer.as_bytes()).await;
            }
            Answer::Hang => tokio::time::sleep(Duration::from_secs(600)).await,
            Answer::Cut => {}
        }
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
