//! Files that are not fine, and exactly what is said of them.

use std::fs;

use holdpoint_definition::load;
use insta::assert_snapshot;

use crate::{AGENT, folder, read, said_by};

/// What is said of [`AGENT`] after `from` in it was replaced by `to`. The folder is shown as `DIR`.
fn said(from: &str, to: &str) -> String {
    assert!(AGENT.contains(from), "{from}");
    said_of(&AGENT.replacen(from, to, 1))
}

fn said_of(text: &str) -> String {
    said_by(read, text)
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
        ("interrupt_on", "interruptsOn"),
        (GATE, "\"*\": true\n  default: deny"),
        (GATE, "delete_file: true\n  default: ask"),
        (GATE, "delete_file: true\n  default: true"),
        (GATE, "delete_file: true\n  interrupt_mode: perCall"),
        (GATE, "delete_file: true\n  interrupt_mode: batch"),
        (GATE, "delete_file: true\n  context: 100000"),
        (GATE, "delete_file: true\n  context: {max_tokens: 999}"),
        (GATE, "delete_file: true\n  context: {tokens: 100000}"),
    ];
    assert_snapshot!(said_of_each(&cases));
}

/// What is said of [`AGENT`] with each of these as the gate of `delete_file`.
fn said_of_gates(gates: &[&str]) -> String {
    let gates: Vec<_> = gates
        .iter()
        .map(|gate| format!("delete_file: {gate}"))
        .collect();
    let cases: Vec<_> = gates.iter().map(|gate| (GATE, gate.as_str())).collect();
    said_of_each(&cases)
}

#[test]
fn a_gate_says_in_full_when_and_how_a_person_is_asked() {
    let gates = [
        "{when: \"true\"}",
        "{rules: [{when: \"true\", then: allow}]}",
        "{always_ask: true}",
        "{timeout: 15m}",
        "{allowed_decisions: [approve], when: true}",
        "{allowed_decisions: [approve], when: \"\"}",
        "{allowed_decisions: [approve], when: \"true\", rules: [{when: \"true\", then: allow}]}",
        "{allowed_decisions: [approve], rules: []}",
        "{allowed_decisions: [approve], rules: {when: \"true\", then: allow}}",
        "{allowed_decisions: [approve], rules: [{when: \"true\"}, {then: deny}, allow]}",
        "{allowed_decisions: [approve], rules: [{when: \"true\", then: ask}, {when: \"true\", then: alow}, {if: \"true\", then: deny}]}",
        "{allowed_decisions: [approve], always_ask: yes}",
        "{allowed_decisions: [approve], requires_token: 1}",
        "{allowed_decisions: [approve], always_ask: true, when: \"true\"}",
        "{allowed_decisions: [approve], always_ask: true, rules: [{when: \"true\", then: deny}, {when: \"true\", then: allow}]}",
        "{allowed_decisions: [approve], timeout: 15}",
        "{allowed_decisions: [approve], timeout: 0s}",
        "{allowed_decisions: [approve], on_timeout: reject}",
        "{allowed_decisions: [approve], on_timeout: escalate}",
        "{allowed_decisions: [approve], timeout: 15m, on_timeout: escalate}",
        "{allowed_decisions: [approve], timeout: 15m, on_timeout: approve}",
        "{allowed_decisions: [approve], timeout: 15m, on_timeout: rejct}",
        "{allowed_decisions: [approve], timeout: 15m, onTimeout: keep, on_timeout: keep}",
        "{allowed_decisions: [approve], ruels: []}",
    ];
    assert_snapshot!(said_of_gates(&gates));
}

#[test]
fn conditions_and_templates_are_checked_before_anything_runs() {
    let gates = [
        "{allowed_decisions: [approve], when: args.amount >}",
        "{allowed_decisions: [approve], when: arg.amount > 100}",
        "{allowed_decisions: [approve], when: 'args.amount + 1'}",
        "{allowed_decisions: [approve], when: tool.nmae == 'x'}",
        "{allowed_decisions: [approve], when: 'args.path.matches(\"(\")'}",
        "{allowed_decisions: [approve], rules: [{when: amount > 1, then: deny}, {when: \"true\", then: allow}, {when: ')', then: allow}]}",
        "\n      allowed_decisions: [approve]\n      when: |\n        args.amount > 100\n        && user.nam == 'ada'",
        "{allowed_decisions: [approve], description: 'Delete {{ arg.path }}?'}",
        "{allowed_decisions: [approve], description: 'Delete {{ args.path'}",
        "{allowed_decisions: [approve], description: 'Delete {% include \"x\" %}'}",
        "{allowed_decisions: [approve], description: 'Delete {{ args.path | shell }}'}",
        "{allowed_decisions: [approve], description: ' '}",
    ];
    assert_snapshot!(said_of_gates(&gates));
}

#[test]
fn every_key_is_refused_in_both_spellings_at_once() {
    let text = r#"apiVersion: holdpoint/v1
api_version: holdpoint/v1
kind: Agent
metadata: {name: clerk}
spec:
  model: {primary: "scripted:scenario.yaml"}
  system_prompt: a
  systemPrompt: b
  tools:
    - name: t
      effect: read
      command: [t]
      input_schema: {type: object}
      inputSchema: {type: object}
  interruptOn: {t: {allowedDecisions: [approve], alwaysAsk: true, always_ask: false}}
  interrupt_on: {}
  interruptMode: batched
  interrupt_mode: per_call
  trueIncludesRespond: true
  true_includes_respond: false
"#;
    assert_snapshot!(said_of(text));
}

/// What is said of [`AGENT`] after each of these is added to its `spec`.
fn said_of_additions(additions: &[&str]) -> String {
    let added: Vec<_> = additions
        .iter()
        .map(|addition| format!("{GATE}\n{addition}"))
        .collect();
    let cases: Vec<_> = added.iter().map(|added| (GATE, added.as_str())).collect();
    said_of_each(&cases)
}

#[test]
fn breakpoints_are_checked() {
    let additions = [
        "  breakpoints: [model]",
        "  breakpoints: {befor: [model]}",
        "  breakpoints: {before: model, after: [7, read_file]}",
        "  breakpoints: {before: [modle, delete_fil, sudo]}",
        "  breakpoints: {before: [task], after: [model, model]}",
        "  breakpoints: {before: [read_filr]}\n  subagents: [{name: a, description: b, system_prompt: c}]",
    ];
    assert_snapshot!(said_of_additions(&additions));
}

#[test]
fn some_names_of_tools_are_taken() {
    let subagents = "\n  subagents: [{name: a, description: b, system_prompt: c, tools: [{name: task, command: [t], effect: read}]}]";
    let cases = [
        ("name: read_file", "name: model".to_owned()),
        (GATE, format!("{GATE}{subagents}")),
    ];
    let cases: Vec<_> = cases
        .iter()
        .map(|(from, to)| (*from, to.as_str()))
        .collect();
    let task = AGENT.replace("read_file", "task");
    let with = format!("{}{subagents}\n", task.trim_end());
    assert!(said_of(&task).starts_with("fine"));
    assert_snapshot!(format!(
        "{}# both\n{}",
        said_of_each(&cases),
        said_of(&with)
    ));
}

#[test]
fn subagents_are_checked() {
    let additions = [
        "  subagents: {name: a}",
        "  subagents: [a]",
        "  subagents: [{}]",
        "  subagents: [{name: a/b, description: \"\", system_prompt: 7}]",
        "  subagents: [{name: \"a#1\", description: b, system_prompt: c}]",
        "  subagents: [{name: a, description: b, system_prompt: c}, {name: a, description: b, system_prompt: c}]",
        "  subagents: [{name: a, description: b, system_prompt: c, limits: {}, version: \"2\", breakpoints: {}, trueIncludesRespond: true}]",
        "  subagents: [{name: a, description: b, system_prompt: c, confirm: true}]",
        "  subagents: [{name: a, description: b, prompt: c, tool: [read_file]}]",
        "  subagents: [{name: a, description: b, system_prompt: c, model: {primary: \"scripted:no.yaml\"}, interrupt_mode: all}]",
        "  subagents: [{name: a, description: b, system_prompt: c, tools: [read_fil, sudo, read_file, read_file, 7]}]",
        "  subagents: [{name: a, description: b, system_prompt: c, tools: [read_file], interrupt_on: {delete_file: true}}]",
        "  subagents: [{name: a, description: b, system_prompt: c, interrupt_on: {task: true}}]",
        "  subagents: [{name: a, description: b, system_prompt: c, interrupt_on: {\"*\": true}, default: deny}]",
        "  subagents: [{name: a, description: b, system_prompt: c, interrupt_on: }]",
        "  subagents: [{name: a, description: b, system_prompt: c, subagents: [{name: a, description: b, system_prompt: c, tools: [x]}]}]",
    ];
    assert_snapshot!(said_of_additions(&additions));
}

#[test]
fn an_inherited_star_leaves_a_default_nothing_to_say() {
    let to =
        "\"*\": true\n  subagents: [{name: a, description: b, system_prompt: c, default: deny}]";
    assert_snapshot!(said(GATE, to), @r#"
    agent.yaml:15:68: spec.subagents[a].default: `default` says nothing beside `"*"` in `interrupt_on`
      help: remove it, or write `interrupt_on` here: that of the agent above has `"*"`
    "#);
}

#[test]
fn what_is_wrong_above_is_said_once_and_not_again_of_every_subagent() {
    let text = AGENT
        .replace("scripted:scenario.yaml", "scripted:no.yaml")
        .replace("[cat]", "[]")
        .replace(GATE, "delete_file: maybe\n  interrupt_mode: x\n  strict: 1");
    let text = format!(
        "{text}  subagents:\n    - {{name: a, description: b, system_prompt: c, default: deny}}\n    - {{name: d, description: b, system_prompt: c, tools: [read_file]}}\n"
    );
    assert_snapshot!(said_of(&text), @r"
    agent.yaml:5:20: spec.model.primary: there is no scenario file `DIR/no.yaml`
      help: relative paths are seen from the folder of this YAML file
    agent.yaml:9:16: spec.tools[read_file].command: must not be empty
      help: list the program and its arguments, for instance [./refund, --fast]; no shell is involved
    agent.yaml:14:18: spec.interrupt_on.delete_file: a gate cannot be `maybe`
      help: use true, false or {allowed_decisions: […], description: …}
    agent.yaml:15:19: spec.interrupt_mode: `x` is not an interrupt mode
      help: use batched or per_call
    agent.yaml:16:11: spec.strict: must be true or false, not the number `1`
    ");
}

#[test]
fn subagents_nest_eight_deep_and_no_deeper() {
    let nested = |depth: usize| {
        let mut text = AGENT.to_owned();
        for level in 0..depth {
            let indent = "  ".repeat(2 * level + 1);
            text.push_str(&format!(
                "{indent}subagents:\n{indent}  - name: s{level}\n{indent}    description: b\n{indent}    system_prompt: c\n"
            ));
        }
        said_of(&text)
    };
    assert!(nested(8).starts_with("fine"), "{}", nested(8));
    assert_snapshot!(nested(9), @r"
    agent.yaml:48:37: spec.subagents[s0].subagents[s1].subagents[s2].subagents[s3].subagents[s4].subagents[s5].subagents[s6].subagents[s7].subagents: subagents are nested deeper than 8
      help: give the tasks of the innermost to one above
    ");
}

#[test]
fn what_subagents_inherit_is_bounded() {
    let long = "x".repeat(400_000);
    let mut text = AGENT.replace(
        "      effect: read\n",
        &format!("      effect: read\n      description: {long}\n"),
    );
    text.push_str("  subagents:\n");
    for number in 0..2_000 {
        text.push_str(&format!(
            "    - {{name: s{number}, description: b, system_prompt: c}}\n"
        ));
    }
    assert_snapshot!(said_of(&text), @r"
    agent.yaml:27:7: spec.subagents[s10]: what subagents inherit grows larger than 4 MiB
      help: list the `tools` that each of them needs, or have fewer
    ");
}

#[test]
fn a_strict_agent_is_not_weakened_by_its_subagents() {
    let sub = |policy: &str| {
        format!(
            "  strict: true\n  subagents: [{{name: a, description: b, system_prompt: c, {policy}}}]"
        )
    };
    let own = "tools: [delete_file, {name: find, effect: read, command: [find]}]";
    let weaker = [
        sub("interrupt_on: {delete_file: false}"),
        sub("interrupt_on: {}"),
        sub("interrupt_on: {\"*\": false}"),
        sub("interrupt_on: {delete_file: {allowed_decisions: [approve, respond]}}"),
        sub("interrupt_on: {delete_file: {allowed_decisions: [approve], when: \"true\"}}"),
        sub(
            "interrupt_on: {delete_file: {allowed_decisions: [approve], rules: [{when: \"true\", then: deny}, {when: \"true\", then: allow}]}}",
        ),
        sub("strict: false"),
        sub(
            "subagents: [{name: d, description: b, system_prompt: c, interrupt_on: {read_file: true}}]",
        ),
    ];
    let weaker: Vec<_> = weaker.iter().map(String::as_str).collect();
    assert_snapshot!(said_of_additions(&weaker));
    for fine in [
        "default: deny".to_owned(),
        "interrupt_on: {delete_file: true, read_file: true}".to_owned(),
        "interrupt_on: {delete_file: {allowed_decisions: [approve]}}".to_owned(),
        "interrupt_on: {\"*\": true}".to_owned(),
        "tools: [read_file], interrupt_on: {read_file: false}".to_owned(),
        format!("{own}, interrupt_on: {{delete_file: true, find: false}}"),
    ] {
        let said = said(GATE, &format!("{GATE}\n{}", sub(&fine)));
        assert!(said.starts_with("fine"), "{fine}: {said}");
    }
    // What depends on the call is told when it is made.
    let rules = "delete_file: {allowed_decisions: [approve], when: \"true\"}";
    let said = said(
        GATE,
        &format!("{rules}\n{}", sub("interrupt_on: {delete_file: false}")),
    );
    assert!(said.starts_with("fine"), "{said}");
}

#[test]
fn tools_are_checked() {
    let cases = [
        ("effect: read", "effect: read\n      stepped: 1"),
        ("effect: read", "effect: read\n      steped: true"),
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
        ("holdpoint/v1", "superagent/v2"),
        ("holdpoint/v1", "[holdpoint/v1]"),
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
        ("scripted:scenario.yaml", "opanai:gpt"),
        ("scripted:scenario.yaml", "gpt-4o"),
        ("scripted:scenario.yaml", "the model"),
        ("scripted:scenario.yaml", ""),
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
