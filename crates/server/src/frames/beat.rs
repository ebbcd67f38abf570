//! A sign of life for the chat formats.

/// A comment, which says that the stream is alive. No client of a chat format sees an event in it: parsers skip comments,
/// and clients that look for `event:` and `data:` find neither.
pub fn beat(out: &mut Vec<u8>) {
    out.extend_from_slice(b": \n\n");
}
