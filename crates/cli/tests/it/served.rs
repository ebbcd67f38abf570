//! A server, and how to ask it.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    process::{Child, Stdio},
};

use serde_json::Value;

use crate::support::World;

/// A server that ends with its test.
pub(crate) struct Served {
    process: Child,
    address: String,
    pub(crate) said: Vec<String>,
}

impl Served {
    pub(crate) fn start(world: &World, arguments: &[&str]) -> Self {
        Self::start_hearing(world, arguments, |_| {})
    }

    /// The same, with something that is done at each line that it says before it listens.
    pub(crate) fn start_hearing(
        world: &World,
        arguments: &[&str],
        mut hear: impl FnMut(&str),
    ) -> Self {
        let mut all = vec!["serve", "--listen", "127.0.0.1:0"];
        all.extend(arguments);
        let mut process = world
            .command()
            .args(&all)
            // Whatever a tool does shows by whom.
            .env("DRIVEN_BY", "server")
            .env("SINK_SECRET", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let mut said = Vec::new();
        let address = loop {
            let line = lines.next().unwrap().unwrap();
            hear(&line);
            said.push(line.clone());
            if let Some((_, address)) = line.split_once("listens on http://") {
                break address.to_owned();
            }
        };
        // What it says further must not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Self {
            process,
            address,
            said,
        }
    }

    /// A server that was started at this address, once it can be reached.
    pub(crate) fn beside(process: Child, address: &str) -> Self {
        while TcpStream::connect(address).is_err() {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        Self {
            process,
            address: address.to_owned(),
            said: Vec::new(),
        }
    }

    /// One request. The body of the answer is read to its end.
    pub(crate) fn ask(
        &self,
        method: &str,
        path: &str,
        key: Option<&str>,
        body: Option<&Value>,
    ) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let body = body.map(ToString::to_string).unwrap_or_default();
        let key = key.map(|key| format!("Authorization: Bearer {key}\r\n"));
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.0\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n{}\r\n{body}",
            self.address,
            key.unwrap_or_default()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, body.to_owned())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
