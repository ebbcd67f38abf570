//! The loader as its users meet it: files in, definitions or problems out.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod builtins;
mod confirm;
mod examples;
mod gates;
mod good;
mod http;
mod mcp;
mod models;
mod names;
mod problems;
mod server;
mod subagents;
mod superagent;

use std::{collections::BTreeMap, path::Path};

use holdpoint_definition::{Loaded, Names, Problems, Setting, load_in, load_str};

/// A folder with a scenario in it, as every agent needs.
fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("scenario.yaml"), "").unwrap();
    dir
}

fn read(text: &str, dir: &Path) -> Result<Loaded, Problems> {
    load_str(text, "agent.yaml", dir)
}

/// As [`read`], where `gpt-4o` and `redis` stand for something.
fn read_named(text: &str, dir: &Path) -> Result<Loaded, Problems> {
    let file = dir.join("agent.yaml");
    std::fs::write(&file, text).unwrap();
    let one = |name: &str, meaning: &str| BTreeMap::from([(name.to_owned(), meaning.to_owned())]);
    let names = Names {
        models: one("gpt-4o", "scripted:/models/gpt.yaml"),
        stores: one("redis", "sqlite:/stores/chat.db"),
        ..Names::default()
    };
    let names = &names;
    load_in(
        &file,
        &Setting {
            names,
            search: None,
        },
    )
}

/// What is said of a text, or that it is fine. The folder is shown as `DIR`.
fn said_by(read: impl Fn(&str, &Path) -> Result<Loaded, Problems>, text: &str) -> String {
    let dir = folder();
    let shown = match read(text, dir.path()) {
        Err(problems) => problems.to_string(),
        Ok(loaded) => format!("fine: {loaded:?}"),
    };
    shown.replace(dir.path().to_str().unwrap(), "DIR")
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

/// An agent of the other version, whose lines the tests replace. Line 1 is `apiVersion`.
const SUPERAGENT: &str = r#"apiVersion: superagent/v1
kind: Agent
metadata:
  name: approval-agent
  version: "1.0.0"
spec:
  type: chat_model_agent
  model:
    primary: gpt-4o
  system_prompt: |
    You approve things.
    Say "Please confirm" first.
  interrupt:
    enabled: true
    checkpoint_backend: redis # redis or memory
    timeout_seconds: 300
  memory:
    backend: builtin
"#;
