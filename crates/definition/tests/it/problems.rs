//! Files that are not fine, and exactly what is said of them.

use std::fs;

use holdpoint_definition::load;
use insta::assert_snapshot;

use crate::{AGENT, folder, read};

/// What is said of [`AGENT`] after `from` in it was replaced by `to`. The folder is shown as `DIR`.
fn said(from: &str, to: &str) -> String {
    assert!(AGENT.contains(from), "{from}");
    said_of(&AGENT.replacen(from, to, 1))
}

fn said_of(text: &str) -> String {
    let dir = folder();
    let shown = match read(text, dir.path()) {
        Err(problems) => problems.to_string(),
        Ok(loaded) => format!("fine: {loaded:?}"),
    };
    shown.replace(dir.path().to_str().unwrap(), "DIR")
}

/// What is said of [`AGENT`] after each of these replacements, one after the other.
fn said_of_each(cases: &[(&str, &str)]) -> String {
    let mut all = String::new();
    for (from, to) in cases {
        let shown = if to.is_empty() {
            format!("without {from}")
        } else {
            (*to).to_owned()
        };
        all.push_str(&format!(
            "# {}\n{}\n\n",
            shown.trim_end().replace('\n', "\n# "),
            said(from, to)
        ));
    }
    all
}

const GATE: &str = "delete_file: true";

#[test]
fn gates_fail_closed() {
    let cases = [
        (GATE, "delete_file: {allowed_decisions: [aprove]}"),
        (GATE, "delete_file: {allowed_decisions: [approve, sign]}"),
        (GATE, "delete_file: {allowed_decisions: []}"),
        (GATE, "delete_file: {allowed_decisions: }"),
        (GATE, "delete_file: {allowed_decisions: approve}"),
        (GATE, "delete_file: {allowed_decisions: [true]}"),
        (GATE, "delete_file: {allowed_decisions: [approve, approve]}"),
        (GATE, "delete_file: {allowed_decisions: [committed]}"),
        (GATE, "delete_file: {description: Sure?}"),
        (GATE, "delete_file: {}"),
        (
            GATE,
            "delete_file: {allowed_decisions: [approve], description: 7}",
        ),
        (
            GATE,
            "delete_file: {allowed_decisions: [approve], description: \"\"}",
        ),
        (GATE, "delete_file: {allowed_decision: [approve]}"),
        (
            GATE,
            "delete_file: {allowed_decisions: [approve], allowedDecisions: [approve]}",
        ),
        (GATE, "delete_file: yes"),
        (GATE, "delete_file: 1"),
        (GATE, "delete_file:"),
        (GATE, "delete_file: [approve]"),
        (GATE, "delete_fil: true"),
        (GATE, "sudo: true"),
        (GATE, "\"**\": true"),
        (GATE, "*: true"),
        (GATE, "delete_file: true\n    delete_file: false"),
        (
            "  interrupt_on:\n    delete_file: true\n",
            "  interrupt_on:\n",
        ),
        (
            "  interrupt_on:\n    delete_file: true\n",
            "  interrupt_on: [delete_file]\n",
        ),
        ("interrupt_on", "interruptOn"),
        (GATE, "\"*\": true\n  default: deny"),
        (GATE, "delete_file: true\n  default: ask"),
        (GATE, "delete_file: true\n  default: true"),
        (GATE, "delete_file: true\n  interrupt_mode: per_call"),
        (GATE, "delete_file: true\n  interrupt_mode: batch"),
    ];
    assert_snapshot!(said_of_each(&cases));
}

#[test]
fn tools_are_checked() {
    let cases = [
        ("    - name: read_file\n      effect", "    - effect"),
        ("name: read_file", "name: 7"),
        ("name: read_file", "name: a/b"),
        ("name: read_file", "name: \"a\\eb\""),
        ("name: read_file", "name: \"\""),
        ("name: read_file", "name: delete_file"),
        ("effect: read", "effect: pure"),
        ("effect: read", "effects: read"),
        ("effect: read", "effect: read\n      version: 1.10"),
        ("effect: read", "effect: read\n      description: [x]"),
        ("      command: [cat]\n", ""),
        ("command: [cat]", "command: []"),
        ("command: [cat]", "command: cat"),
        ("command: [cat]", "command: [\"\"]"),
        ("command: [cat]", "command: [cat, 7]"),
        ("command: [cat]", "command: [\"a\\0b\"]"),
        ("lookup: [ls]", "lookup: []"),
        ("lookup: [ls]", "compensate: {}"),
        ("effect: read", "timeout: 60"),
        ("effect: read", "timeout: 60 seconds"),
        ("effect: read", "timeout: 0s"),
        ("effect: read", "timeout: true"),
        ("effect: read", "settle: -1s"),
        ("effect: read", "permissions: refunds"),
        ("effect: read", "permissions: [\" \"]"),
        ("effect: read", "input_schema: 7"),
        ("effect: read", "input_schema: [object]"),
        ("effect: read", "input_schema: {type: string}"),
        (
            "effect: read",
            "input_schema: {type: object, properties: {a: {type: strng}}}",
        ),
        (
            "effect: read",
            "input_schema: {properties: {a: {pattern: \"(\"}}}",
        ),
        (
            "effect: read",
            "input_schema: {properties: {a: {$ref: \"#/nowhere\"}}}",
        ),
        (
            "effect: read",
            "input_schema: {properties: {a: {$ref: \"https://example.com/s\"}}}",
        ),
        (
            "effect: read",
            "input_schema: {properties: {a: {maximum: 9007199254740993}}}",
        ),
        (
            "effect: read",
            "input_schema: {properties: {a: {maximum: .inf}}}",
        ),
    ];
    assert_snapshot!(said_of_each(&cases));
}

#[test]
fn the_frame_is_checked() {
    let cases = [
        ("holdpoint/v1", "holdpoint/v2"),
        ("holdpoint/v1", "superagent/v1"),
        ("apiVersion: holdpoint/v1\n", ""),
        ("kind: Agent", "kind: Workflow"),
        ("kind: Agent", "kind: [Agent]"),
        ("metadata: {name: clerk}\n", ""),
        ("{name: clerk}", "{version: \"1\"}"),
        ("{name: clerk}", "{name: the clerk}"),
        ("{name: clerk}", "{name: a/b}"),
        ("{name: clerk}", "{name: clerk, version: 2}"),
        ("{name: clerk}", "{name: clerk, labels: {}}"),
        ("kind: Agent", "kind: Agent\nstatus: {}"),
        ("  model: {primary: \"scripted:scenario.yaml\"}\n", ""),
        (
            "{primary: \"scripted:scenario.yaml\"}",
            "\"scripted:scenario.yaml\"",
        ),
        ("{primary: \"scripted:scenario.yaml\"}", "{fallback: x}"),
        ("scripted:scenario.yaml", "openai:gpt"),
        ("scripted:scenario.yaml", "scriptd:x"),
        ("scripted:scenario.yaml", "scripted:"),
        ("scripted:scenario.yaml", "scripted:../nothing.yaml"),
        (GATE, "delete_file: true\n  system_prompt: {}"),
        (GATE, "delete_file: true\n  limits: {turns: 0}"),
        (
            GATE,
            "delete_file: true\n  limits: {calls: -1, turns: many, time: 0s}",
        ),
        (GATE, "delete_file: true\n  limits: {time: 3600, depth: 2}"),
        (GATE, "delete_file: true\n  limits: {turns: 4294967296}"),
        (GATE, "delete_file: true\n---\nkind: Agent"),
        (GATE, "delete_file: \"true"),
        (GATE, "delete_file: !yes true"),
        ("kind: Agent", "kind: *agent"),
    ];
    assert_snapshot!(said_of_each(&cases));
}

#[test]
fn a_file_that_says_nothing_is_told_how_to_begin() {
    assert_snapshot!(said_of(""), @r"
    agent.yaml:1:1: the file is empty
      help: begin with `apiVersion: holdpoint/v1` and `kind: Agent`
    ");
    assert_snapshot!(said_of("just text"), @r"
    agent.yaml:1:1: must be a map, not `just text`
      help: write `key: value` lines, indented
    ");
}

#[test]
fn all_problems_of_a_file_are_told_at_once_in_the_order_of_its_lines() {
    let text = r#"apiVersion: holdpoint/v2
kind: Agent
metadata: {nam: clerk}
spec:
  interrupt_on:
    delete_fil: {allowed_decisions: [aprove, regect]}
    read_file: maybe
  tools:
    - name: delete_file
      command: []
      timeout: 5
      effect: wriet
    - name: read_file
      comand: [cat]
      input_schema: {type: objekt}
    - cat
  limits: {turns: 0}
  limits: {turns: 1}
"#;
    assert_snapshot!(said_of(text));
}

#[test]
fn a_file_that_cannot_be_read_is_a_problem_too() {
    let dir = folder();
    let file = dir.path().join("agent.yaml");
    let shown = || {
        load(&file)
            .unwrap_err()
            .to_string()
            .replace(dir.path().to_str().unwrap(), "DIR")
    };
    assert_eq!(
        shown(),
        "DIR/agent.yaml: cannot be read: No such file or directory (os error 2)"
    );
    fs::write(&file, b"a: \xff").unwrap();
    assert_eq!(shown(), "DIR/agent.yaml: is not UTF-8 text");
}

#[test]
fn problems_can_be_sent_as_data() {
    let dir = folder();
    let problems = read(&AGENT.replace(GATE, "delete_file: yes"), dir.path()).unwrap_err();
    let expected = serde_json::json!([{
        "file": "agent.yaml",
        "line": 14,
        "column": 18,
        "path": "spec.interrupt_on.delete_file",
        "message": "a gate cannot be `yes`",
        "help": "use true, false or {allowed_decisions: […], description: …}",
    }]);
    assert_eq!(serde_json::to_value(&problems).unwrap(), expected);
}
