//! Server-Sent Events, as a server of Holdpoint sends them: each with a name and one line of data.

use anyhow::Context as _;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;

/// A stream of events.
#[derive(Debug)]
pub(crate) struct Events {
    body: Incoming,
    /// What came and was not handed out.
    text: Vec<u8>,
}

impl Events {
    /// The events of an answer.
    pub(crate) const fn new(body: Incoming) -> Self {
        Self {
            body,
            text: Vec::new(),
        }
    }

    /// Waits for the next event of this name, passing over others. Returns its data.
    ///
    /// # Errors
    ///
    /// The stream ends before, or breaks.
    pub(crate) async fn wait_for(&mut self, name: &str) -> anyhow::Result<String> {
        loop {
            while let Some(event) = take(&mut self.text) {
                if let Some(data) = data_of(&event, name) {
                    return Ok(data.to_owned());
                }
            }
            let frame = self.body.frame().await;
            let frame = frame.with_context(|| format!("the stream ended before `{name}`"))??;
            if let Some(bytes) = frame.data_ref() {
                self.text.extend_from_slice(bytes);
            }
        }
    }

    /// Reads on to the end, so that the connection can be used again.
    ///
    /// # Errors
    ///
    /// The stream breaks.
    pub(crate) async fn finish(mut self) -> anyhow::Result<()> {
        while let Some(frame) = self.body.frame().await {
            frame?;
        }
        Ok(())
    }
}

/// Takes the first event, if all of it is there.
fn take(text: &mut Vec<u8>) -> Option<String> {
    let end = text.windows(2).position(|pair| pair == b"\n\n")?;
    let event: Vec<u8> = text.drain(..end + 2).collect();
    Some(String::from_utf8_lossy(&event).into_owned())
}

/// The data of an event, if it has this name.
fn data_of<'a>(event: &'a str, name: &str) -> Option<&'a str> {
    let field = |key| event.lines().find_map(|line| line.strip_prefix(key));
    let is_it = field("event: ") == Some(name);
    field("data: ").filter(|_| is_it)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_taken_once_it_is_whole() {
        let mut text = b"id: 7\nevent: run_ended\ndata: {\"a\":1}\n\nid: 8\n".to_vec();
        let event = take(&mut text).unwrap();
        assert_eq!(data_of(&event, "run_ended"), Some("{\"a\":1}"));
        assert_eq!(data_of(&event, "answered"), None);
        assert_eq!(take(&mut text), None);
        assert_eq!(text, b"id: 8\n");
    }
}
