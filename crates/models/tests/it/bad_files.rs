//! Scenario files that are wrong: each problem has its line and its remedy.

use holdpoint_core::{Effect, Hooks, Runner, Span, ToolKind, ToolSpec};
use holdpoint_models::{Problem, Scripted};

use crate::conversation::scenario;

fn problems(text: &str) -> Vec<String> {
    let error = Scripted::parse("s.yaml", text).unwrap_err();
    error.problems().iter().map(Problem::in_one_line).collect()
}

#[test]
fn the_examples_in_the_documentation_are_right() {
    let page = include_str!("../../src/scripted.md");
    let examples: Vec<_> = page
        .split("```yaml\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap())
        .collect();
    assert_eq!(examples.len(), 2);
    for example in examples {
        Scripted::parse("scripted.md", example).unwrap();
    }
}

#[test]
fn each_problem_has_its_line_and_its_remedy() {
    let cases = [
        (
            "  - {sya: x}\n",
            "4:6: rules[0]: unknown key `sya` (did you mean `say`?)",
        ),
        (
            "  - {say: x, when: {usr: x}}\n",
            "4:21: rules[0].when: unknown key `usr` (did you mean `user`?)",
        ),
        (
            "  - say: {result}\n",
            "4:10: rules[0].say: must be text, not a map (put it in quotes if it begins with a brace or a bracket)",
        ),
        (
            "  - say: x\n    say: y\n",
            "5:5: rules[0]: the key `say` appears twice (it was first given in line 4; keep one of them)",
        ),
        (
            "  - say: 'x\n",
            "5:1: rules[0].say: not valid YAML: invalid indentation in multiline quoted scalar",
        ),
        (
            "  - say: x\n---\na: b\n",
            "5:1: a second document begins (put each into a file of its own)",
        ),
        (
            "  - say: *x\n",
            "4:10: rules[0].say: `*x` refers to nothing: no value before it is marked `&x` (put quotes around a `*` that is meant as it stands: \"*\")",
        ),
        (
            "  - {}\n",
            "4:5: rules[0]: the rule does nothing (add `say`, `chunks`, `call` or `fail`)",
        ),
        (
            "  []\n",
            "4:3: rules: there are no rules (write at least one rule, such as `- say: hello`)",
        ),
        (
            "  - say: x\n  - when: {turn: 0}\n    say: y\n",
            "5:18: rules[1].when.turn: must be a whole number from 1 to 4294967295, not the number `0` (leave it out for the default)",
        ),
        (
            "  - {say: x, when: {turn: -1}}\n",
            "4:27: rules[0].when.turn: must be a whole number from 1 to 4294967295, not the number `-1` (leave it out for the default)",
        ),
        (
            "  - {say: x, when: {turn: often}}\n",
            "4:27: rules[0].when.turn: must be a turn, not `often` (write a number such as `1`, or a range such as `{from: 1, to: 5}`)",
        ),
        (
            "  - {say: x, when: {turn: {from: 3, to: 2}}}\n",
            "4:27: rules[0].when.turn: no turn is meant by this (`from` is not after `to`)",
        ),
        (
            "  - {say: x, when: {turn: {form: 3}}}\n",
            "4:28: rules[0].when.turn: unknown key `form` (did you mean `from`?)",
        ),
        (
            "  - {say: x, chunks: [y]}\n",
            "4:5: rules[0]: `say` and `chunks` are two ways to say one text (keep one of them)",
        ),
        (
            "  - say: x\n    delay: 5\n",
            "5:12: rules[0].delay: `5` has no unit (write a whole number and one of ms, s, m, h, for instance `60s`)",
        ),
        (
            "  - say: x\n    pace: soon\n",
            "5:11: rules[0].pace: `soon` is not a length of time (write a whole number and one of ms, s, m, h, for instance `60s`)",
        ),
        (
            "  - call: [{tool: t}]\n    pace: 1s\n",
            "5:11: rules[0].pace: `pace` is the time between chunks, and there are none (remove it, or add `say` or `chunks`)",
        ),
        (
            "  - call:\n      - {tool: t, args: [1]}\n",
            "5:25: rules[0].call[0].args: must be a map, not a list (to send something else write it as `raw`)",
        ),
        (
            "  - call:\n      - {tool: t, args: {}, raw: '{}'}\n",
            "5:34: rules[0].call[0].raw: `args` and `raw` are two ways to give the arguments (keep one of them)",
        ),
        (
            "  - call: [{args: {}}]\n",
            "4:12: rules[0].call[0]: `tool` is missing (say which tool is called)",
        ),
        (
            "  - say: x\n    fail: {with: timeout}\n",
            "5:11: rules[0].fail: this fails at every attempt, so the rest of the rule is never used (add `times`)",
        ),
        (
            "  - fail: {with: timeout, times: 1}\n",
            "4:11: rules[0].fail: after these failures the rule has no answer (add `say`, `chunks` or `call`)",
        ),
        (
            "  - {say: x, fail: {with: timeout, times: 0}}\n",
            "4:43: rules[0].fail.times: must be a whole number from 1 to 4294967295, not the number `0` (leave it out for the default)",
        ),
        (
            "  - fail: {with: timeout, reason: x}\n",
            "4:35: rules[0].fail.reason: a timeout has no reason (remove it)",
        ),
        (
            "  - fail: {with: rejected, retry_after: 1s}\n",
            "4:41: rules[0].fail.retry_after: only `rate_limited` has `retry_after` (remove it)",
        ),
        (
            "  - fail: {with: rate_limited, retry_after: 1}\n",
            "4:45: rules[0].fail.retry_after: `1` has no unit (write a whole number and one of ms, s, m, h, for instance `60s`)",
        ),
        (
            "  - fail: {with: tiemout}\n",
            "4:18: rules[0].fail.with: `tiemout` is not a failure (did you mean `timeout`? use timeout, unavailable, rate_limited or rejected)",
        ),
    ];
    for (rules, expected) in cases {
        assert_eq!(
            problems(&scenario(rules)),
            [format!("s.yaml:{expected}")],
            "{rules}"
        );
    }
}

#[test]
fn the_head_of_the_file_is_checked_too() {
    let cases = [
        (
            "",
            "1:1: the file is empty (begin with `apiVersion: holdpoint/v1` and `kind: Scenario`)",
        ),
        (
            "just text\n",
            "1:1: must be a map, not `just text` (write `key: value` lines, indented)",
        ),
        (
            "kind: Scenario\nrules: [{say: x}]\n",
            "1:1: `apiVersion` is missing (write `apiVersion: holdpoint/v1`)",
        ),
        (
            "apiVersion: holdpoint/v2\nkind: Scenario\nrules: [{say: x}]\n",
            "1:13: apiVersion: must be `holdpoint/v1`, not `holdpoint/v2` (write `apiVersion: holdpoint/v1`)",
        ),
        (
            "apiVersion: holdpoint/v1\nkind: Agent\nrules: [{say: x}]\n",
            "2:7: kind: must be `Scenario`, not `Agent` (write `kind: Scenario`)",
        ),
        (
            "apiVersion: holdpoint/v1\nkind: Scenario\nrules: [{say: x}]\nmore: 1\n",
            "4:1: unknown key `more` (known here: apiVersion, kind, rules)",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(problems(text), [format!("s.yaml:{expected}")], "{text}");
    }
}

#[test]
fn all_problems_are_told_at_once_whatever_kind_they_are_of() {
    let text = "apiVersion: holdpoint/v2
kind: Scenario
rules:
  - {sya: x, delay: 1}
  - {}
  - {say: x, when: {turn: 0, usr: y}, fail: {with: tiemout}}
  - say: {result}
    call:
      - {tool: t, args: [1]}
      - {args: {}, id: 7}
more: 1
";
    let error = Scripted::parse("s.yaml", text).unwrap_err();
    let lines: Vec<_> = error
        .problems()
        .iter()
        .map(|problem| problem.line)
        .collect();
    assert_eq!(lines, [1, 4, 4, 5, 6, 6, 6, 6, 7, 9, 10, 10, 11]);
    let message = error.to_string();
    assert_eq!(message.matches("s.yaml:").count(), 13);
    assert!(!message.contains('\n'));
}

#[test]
fn a_file_that_grows_when_read_is_refused() {
    let mut text = "apiVersion: holdpoint/v1\nkind: Scenario\nrules:\n  - call:\n      - tool: t\n        args:\n          a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..9 {
        let below = format!("*a{}, ", level - 1).repeat(10);
        text.push_str(&format!("          a{level}: &a{level} [{below}]\n"));
    }
    let error = Scripted::parse("s.yaml", &text).unwrap_err().to_string();
    assert!(error.contains("grows too large"), "{error}");
}

#[test]
fn a_call_of_a_tool_that_the_agent_does_not_have_is_a_warning_with_its_line() {
    let text = scenario(
        "  - say: x\n    call:\n      - {tool: pay}\n      - {tool: py}\n  - call: [{tool: rm}]\n",
    );
    let model = Scripted::parse("s.yaml", &text).unwrap();
    let pay = ToolSpec {
        name: "pay".to_owned(),
        description: String::new(),
        version: "1".to_owned(),
        effect: Effect::Read,
        input_schema: true.into(),
        runner: Runner::Code {
            hooks: Hooks::default(),
        },
        kind: ToolKind::Plain,
        timeout: Span::from_secs(1),
        settle: Span::ZERO,
        permissions: Vec::new(),
    };
    let warnings: Vec<String> = model
        .unknown_tools(&[pay], &[])
        .iter()
        .map(Problem::in_one_line)
        .collect();
    assert_eq!(
        warnings,
        [
            "s.yaml:7:16: rules[0].call[1].tool: the agent has no tool `py` (did you mean `pay`?)",
            "s.yaml:8:19: rules[1].call[0].tool: the agent has no tool `rm` (the model is told so and goes on; correct it unless that is meant)",
        ]
    );
}
