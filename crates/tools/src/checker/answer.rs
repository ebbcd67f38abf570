//! What programs and servers answer.

use holdpoint_core::{Case, Finding};

/// How long an answer may be: it is a word and a reason.
pub(super) const MAX_ANSWER: usize = 64 << 10;

/// The case as it is sent.
pub(super) fn document(case: &Case) -> Result<String, String> {
    serde_json::to_string(case).map_err(|error| format!("the case cannot be written: {error}"))
}

/// Reads an answer.
pub(super) fn finding(text: &str) -> Result<Finding, String> {
    if text.len() > MAX_ANSWER {
        return Err(format!("its answer is longer than {MAX_ANSWER} bytes"));
    }
    Finding::read(text)
}
