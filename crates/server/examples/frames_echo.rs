//! Sends tokens and shows the bytes, for tests in other languages: `cargo run -p holdpoint-server --example frames_echo`.
//!
//! Each line of the input is `{"format": "legacy" | "a2ui", "tokens": […]}`. For each there is one line of output,
//! `{"chunks": […]}`: what was sent with each token, and at the end, in hex. Ten milliseconds pass between two tokens.

use std::io::{self, BufRead as _, Write as _};

use holdpoint_core::{Span, Timestamp, hex};
use holdpoint_server::frames::{A2ui, Event, Legacy};
use serde::{Deserialize, Serialize};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Chat {
    format: Format,
    tokens: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Format {
    Legacy,
    A2ui,
}

#[derive(Serialize)]
struct Sent {
    chunks: Vec<String>,
}

fn main() -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let chat: Chat = serde_json::from_str(&line?)?;
        let chunks = match chat.format {
            Format::Legacy => legacy(&chat.tokens),
            Format::A2ui => a2ui(&chat.tokens),
        };
        let chunks = chunks.iter().map(|chunk| hex(chunk)).collect();
        serde_json::to_writer(&mut stdout, &Sent { chunks })?;
        writeln!(stdout)?;
    }
    Ok(())
}

fn legacy(tokens: &[String]) -> Vec<Vec<u8>> {
    let mut legacy = Legacy::default();
    let mut chunks: Vec<_> = tokens
        .iter()
        .map(|token| chunk(|out| legacy.text(out, token)))
        .collect();
    chunks.push(chunk(|out| legacy.done(out)));
    chunks
}

fn a2ui(tokens: &[String]) -> Vec<Vec<u8>> {
    let (mut a2ui, mut now) = (A2ui::default(), Timestamp::from_millis(1_746_000_000_000));
    let mut chunks = Vec::new();
    for token in tokens {
        chunks.push(chunk(|out| a2ui.text(out, now, token)));
        now = now + Span::from_millis(10);
    }
    chunks.push(chunk(|out| a2ui.send(out, now, &Event::Done)));
    chunks
}

fn chunk(act: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    act(&mut out);
    out
}
