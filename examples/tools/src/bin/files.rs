//! The tools of the file manager. `FILES_ROOT` names the folder they work in (`workspace` when unsaid).

use std::{path::Path, process::ExitCode};

use example_tools::{Call, Ended, Files, Operation, environment, finish};
use serde_json::Value;

const USAGE: &str = "usage: holdpoint-example-files read | write | delete | lookup-delete | restore

Called by Holdpoint: arguments as JSON on stdin, HOLDPOINT_IDEMPOTENCY_KEY in the environment.";

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let operation = match (words.next().as_deref(), words.next()) {
        (Some("read"), None) => Operation::Read,
        (Some("write"), None) => Operation::Write,
        (Some("delete"), None) => Operation::Delete,
        (Some("lookup-delete"), None) => Operation::LookUpDelete,
        (Some("restore"), None) => Operation::Restore,
        _ => return finish(Err(misused())),
    };
    finish(run(operation))
}

fn run(operation: Operation) -> Result<Value, Ended> {
    let root = environment("FILES_ROOT").unwrap_or_else(|| "workspace".to_owned());
    Files::below(Path::new(&root))?.perform(operation, &Call::receive()?)
}

/// For a person on stderr; for Holdpoint, the promise that nothing was done.
fn misused() -> Ended {
    eprintln!("{USAGE}");
    Ended::Refused("the tool's command is not known".to_owned())
}
