//! What a person is shown, and what a model is told.

use crate::{ActionId, Params};

/// What a person is told about a call where the definition gives no text of its own.
#[must_use]
pub fn default_description(tool: &str, params: &Params) -> String {
    let call = call_lines(tool, params);
    format!("Tool execution requires approval\n\n{call}")
}

/// A call in two lines: what would really be done, whatever else is said about it.
#[must_use]
pub fn call_lines(tool: &str, params: &Params) -> String {
    format!("Tool: {tool}\nArgs: {}", params.canonical())
}

/// What the model gets for a call that a person rejected.
pub(crate) fn rejection(tool: &str, call_id: &str, message: Option<&str>) -> String {
    match message {
        Some(message) if !message.is_empty() => {
            format!("User rejected the tool call for `{tool}` with reason: {message}")
        }
        Some(_) | None => format!(
            "User rejected the tool call for `{tool}` with id {call_id}. The tool was not executed. Do not retry this tool call unless the user explicitly requests it."
        ),
    }
}

/// What precedes the result of a call that a person edited.
pub(crate) fn edited_result(tool: &str, params: &Params, content: &str) -> String {
    const NOTICE: &str = "Note: a human reviewer replaced this tool call before it ran. The call recorded in your message is the one you produced, not the one that executed. This was intentional and authorized. Do not re-issue your original call.";
    let executed = format!(
        "{NOTICE} Executed instead: {tool} with arguments {}.",
        params.canonical()
    );
    if content.is_empty() {
        executed
    } else {
        format!("{executed}\n\nTool response:\n{content}")
    }
}

/// What the model gets for a call that was never made because the run was stopped.
pub(crate) fn not_executed(tool: &str, call_id: &str) -> String {
    format!(
        "The tool call for `{tool}` with id {call_id} was not executed: the run was stopped before it started."
    )
}

/// What the model gets for a call that nobody allowed in time.
pub(crate) fn timed_out(tool: &str, call_id: &str) -> String {
    format!(
        "The tool call for `{tool}` with id {call_id} was not executed: nobody answered in time. \
         Do not retry this tool call unless the user explicitly requests it."
    )
}

/// What the model gets for a call whose outcome nobody could find out.
pub(crate) fn given_up(tool: &str, reason: &str) -> String {
    format!("The tool `{tool}` gave no result: {reason}")
}

/// What the model gets for a call that a person gave up while its outcome was not known.
pub(crate) fn abandoned(tool: &str, reason: Option<&str>) -> String {
    let reason = reason.filter(|reason| !reason.is_empty());
    let reason = reason.map_or_else(String::new, |reason| format!(" Reason: {reason}"));
    format!(
        "The tool `{tool}` gave no result, and a person gave it up. It may or may not have been done.{reason}"
    )
}

/// What the model gets for a call that was undone.
pub(crate) fn undone(tool: &str, action: ActionId) -> String {
    format!("The effect of `{tool}` ({action}) was undone by its compensation.")
}

/// What the model gets for a call whose compensation was given up.
pub(crate) fn not_undone(tool: &str, action: ActionId) -> String {
    format!("The effect of `{tool}` stands: its compensation ({action}) was given up.")
}
