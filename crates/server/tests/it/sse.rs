//! A receiver that follows the standard to the letter (WHATWG HTML, "Interpreting an event stream"), written apart from
//! what it tests.

/// One dispatched event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Received {
    /// `message` if the stream did not name it.
    pub(crate) event: String,
    pub(crate) data: String,
    /// The last id of the stream up to here.
    pub(crate) id: String,
}

impl Received {
    pub(crate) fn message(data: impl Into<String>) -> Self {
        Self {
            event: "message".to_owned(),
            data: data.into(),
            id: String::new(),
        }
    }
}

/// All events of a stream. What comes after the last blank line is no event yet.
pub(crate) fn read(bytes: &[u8]) -> Vec<Received> {
    let text = str::from_utf8(bytes).unwrap();
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    let (mut events, mut event, mut data, mut id) =
        (Vec::new(), String::new(), String::new(), String::new());
    for line in lines(text) {
        if line.is_empty() {
            if !data.is_empty() {
                data.pop();
                events.push(Received {
                    event: if event.is_empty() {
                        "message".to_owned()
                    } else {
                        event.clone()
                    },
                    data: data.clone(),
                    id: id.clone(),
                });
            }
            data.clear();
            event.clear();
            continue;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut event),
            "data" => {
                data.push_str(value);
                data.push('\n');
            }
            "id" if !value.contains('\0') => value.clone_into(&mut id),
            _ => {}
        }
    }
    events
}

/// Lines that end with CRLF, LF or CR; what has no end is left out.
fn lines(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['\r', '\n']) {
        lines.push(&rest[..at]);
        let ending = &rest[at..];
        rest = ending.strip_prefix("\r\n").unwrap_or(&ending[1..]);
    }
    lines
}

#[test]
fn the_standards_own_examples_are_read() {
    let stream = b"\xEF\xBB\xBFdata: YHOO\ndata: +2\r\ndata: 10\r\r: test\n\ndata\n\ndata\ndata\n\nid: 1\nevent:add\ndata:  x\n\nid\ndata:";
    let named = Received {
        event: "add".to_owned(),
        data: " x".to_owned(),
        id: "1".to_owned(),
    };
    assert_eq!(
        read(stream),
        [
            Received::message("YHOO\n+2\n10"),
            Received::message(""),
            Received::message("\n"),
            named,
        ]
    );
}
