//! The JavaScript client that the format was described with, step for step: it splits at blank lines and looks for
//! `/^event: (.+)/m` and `/^data: (.+)/m`.

use serde_json::Value;

/// What it makes of a stream: for each event, the name and the JSON.
pub(crate) fn read(bytes: &[u8]) -> Vec<(&str, Value)> {
    let parse = |(event, data)| (event, serde_json::from_str(data).unwrap());
    frames(bytes).into_iter().map(parse).collect()
}

/// What it parses: for each frame that has both, the name and the text of the JSON.
pub(crate) fn frames(bytes: &[u8]) -> Vec<(&str, &str)> {
    let buffer = str::from_utf8(bytes).unwrap();
    let mut frames: Vec<&str> = buffer.split("\n\n").collect();
    frames.pop();
    let mut events = Vec::new();
    for frame in frames {
        if let (Some(event), Some(data)) = (captured(frame, "event: "), captured(frame, "data: ")) {
            events.push((event, data));
        }
    }
    events
}

/// What `/^PREFIX(.+)/m` captures. To JavaScript four characters end a line, for `^` as for `.`.
fn captured<'a>(frame: &'a str, prefix: &str) -> Option<&'a str> {
    const ENDS: [char; 4] = ['\n', '\r', '\u{2028}', '\u{2029}'];
    frame
        .split(ENDS)
        .filter_map(|line| line.strip_prefix(prefix))
        .find(|rest| !rest.is_empty())
}
