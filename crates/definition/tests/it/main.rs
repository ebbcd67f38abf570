//! The loader as its users meet it: files in, definitions or problems out.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod examples;
mod gates;
mod good;
mod http;
mod problems;
mod subagents;

use std::path::Path;

use holdpoint_definition::{Loaded, Problems, load_str};

/// A folder with a scenario in it, as every agent needs.
fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("scenario.yaml"), "").unwrap();
    dir
}

fn read(text: &str, dir: &Path) -> Result<Loaded, Problems> {
    load_str(text, "agent.yaml", dir)
}

/// An agent with two tools, whose lines the tests replace. Line 1 is `apiVersion`.
const AGENT: &str = r#"apiVersion: holdpoint/v1
kind: Agent
metadata: {name: clerk}
spec:
  model: {primary: "scripted:scenario.yaml"}
  tools:
    - name: read_file
      effect: read
      command: [cat]
    - name: delete_file
      command: [rm]
      lookup: [ls]
  interrupt_on:
    delete_file: true
"#;
