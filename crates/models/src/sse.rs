//! Server-sent events: bytes in, events out.
//!
//! ```text
//! event: delta      a name, optional
//! data: {"a":       lines of data, joined by line feeds
//! data:  1}
//!                   an empty line ends the event
//! ```
//!
//! As the HTML standard has it: lines end with CR, LF or both, lines that begin with a colon are comments, a byte order mark
//! may come first, and an event that has no end is none. `id` and `retry` are for those who reconnect, and nobody here does.

/// How long a line, and the data of an event, may be.
const MAX_EVENT: usize = 8 << 20;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    /// Its name; empty if it has none.
    pub(crate) name: String,
    /// Its data.
    pub(crate) data: String,
}

/// Why a stream cannot be read any further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Broken {
    TooLong,
    NotUtf8,
}

impl Broken {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::TooLong => "the stream has an event that is longer than 8 MiB",
            Self::NotUtf8 => "the stream is not UTF-8",
        }
    }
}

/// Reads a stream piece by piece, wherever it is cut.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    /// The line that has no end yet.
    line: Vec<u8>,
    name: String,
    /// The data so far; `None` if there is none, which is not the same as none in it.
    data: Option<String>,
    /// The line before ended with a CR, so that a LF now belongs to that end.
    after_cr: bool,
    has_begun: bool,
}

impl Parser {
    /// The events that end in this piece.
    pub(crate) fn push(&mut self, mut bytes: &[u8]) -> Result<Vec<Event>, Broken> {
        let mut events = Vec::new();
        while !bytes.is_empty() {
            if std::mem::take(&mut self.after_cr) && bytes[0] == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let end = bytes.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
            let (line, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
            if self.line.len() + line.len() > MAX_EVENT {
                return Err(Broken::TooLong);
            }
            self.line.extend_from_slice(line);
            bytes = rest;
            if let Some((end, rest)) = rest.split_first() {
                self.after_cr = *end == b'\r';
                bytes = rest;
                events.extend(self.end_of_line()?);
            }
        }
        Ok(events)
    }

    fn end_of_line(&mut self) -> Result<Option<Event>, Broken> {
        let line = std::mem::take(&mut self.line);
        let line = std::str::from_utf8(&line).map_err(|_| Broken::NotUtf8)?;
        let line = if std::mem::replace(&mut self.has_begun, true) {
            line
        } else {
            line.strip_prefix('\u{feff}').unwrap_or(line)
        };
        if line.is_empty() {
            let name = std::mem::take(&mut self.name);
            let data = self.data.take();
            return Ok(data.map(|data| Event { name, data }));
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.name),
            "data" => self.add(value)?,
            _ => {}
        }
        Ok(None)
    }

    fn add(&mut self, value: &str) -> Result<(), Broken> {
        let Some(data) = &mut self.data else {
            self.data = Some(value.to_owned());
            return Ok(());
        };
        if data.len() + value.len() >= MAX_EVENT {
            return Err(Broken::TooLong);
        }
        data.push('\n');
        data.push_str(value);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str, data: &str) -> Event {
        Event {
            name: name.to_owned(),
            data: data.to_owned(),
        }
    }

    fn read(pieces: &[&[u8]]) -> Result<Vec<Event>, Broken> {
        let mut parser = Parser::default();
        let mut events = Vec::new();
        for piece in pieces {
            events.extend(parser.push(piece)?);
        }
        Ok(events)
    }

    #[test]
    fn a_stream_means_the_same_wherever_it_is_cut_and_however_lines_end() {
        let text = "\u{feff}: hello\nevent: one\ndata: {\"a\":\ndata:  \"ü🙂\"}\nid: 7\nretry: 9\n\ndata\n\nevent: alone\n\ndata:x\n\n";
        let expected = [
            event("one", "{\"a\":\n \"ü🙂\"}"),
            event("", ""),
            event("", "x"),
        ];
        for ends in ["\n", "\r", "\r\n"] {
            let text = text.replace('\n', ends);
            let bytes = text.as_bytes();
            assert_eq!(read(&[bytes]).unwrap(), expected, "{ends:?}");
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(read(&single).unwrap(), expected, "{ends:?}");
            for cut in 0..bytes.len() {
                let (before, after) = bytes.split_at(cut);
                assert_eq!(read(&[before, after]).unwrap(), expected, "{ends:?} {cut}");
            }
        }
    }

    #[test]
    fn an_event_without_its_end_is_none() {
        assert_eq!(read(&[b"data: x\n"]).unwrap(), []);
        assert_eq!(read(&[b"data: x"]).unwrap(), []);
        assert_eq!(read(&[b"data: x\n\r", b"\n"]).unwrap(), [event("", "x")]);
    }

    #[test]
    fn a_mark_counts_at_the_very_beginning_only() {
        let marked = "data: a\n\n\u{feff}data: b\n\n";
        assert_eq!(read(&[marked.as_bytes()]).unwrap(), [event("", "a")]);
    }

    #[test]
    fn what_has_no_end_and_what_is_no_text_is_refused() {
        let long = vec![b'x'; MAX_EVENT];
        assert_eq!(read(&[b"data: ", &long]), Err(Broken::TooLong));
        let half = vec![b'x'; MAX_EVENT / 2];
        assert_eq!(
            read(&[b"data: ", &half, b"\ndata: ", &half, b"\n"]),
            Err(Broken::TooLong)
        );
        assert_eq!(read(&[b"data: \xff\n"]), Err(Broken::NotUtf8));
    }
}
