//! Scenario files that are wrong: each problem has its line and its remedy.

use holdpoint_models::Scripted;

use crate::conversation::scenario;

fn problems(text: &str) -> Vec<String> {
    let error = Scripted::parse("s.yaml", text).unwrap_err();
    error.problems().iter().map(ToString::to_string).collect()
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
            "4:6: unknown field `sya`, expected one of when, say, chunks, call, delay, pace, fail",
        ),
        (
            "  - {say: x, when: {usr: x}}\n",
            "4:21: unknown field `usr`, expected one of user, turn, tool, result",
        ),
        (
            "  - say: {result}\n",
            "4:10: a text is expected here; put it in quotes if it begins with a brace or a bracket",
        ),
        (
            "  - say: x\n    say: y\n",
            "5:5: duplicate mapping key: say not allowed here",
        ),
        (
            "  - say: 'x\n",
            "5:1: invalid indentation in multiline quoted scalar",
        ),
        (
            "  - say: x\n---\na: b\n",
            "6:1: only single YAML document expected but multiple found",
        ),
        ("  - say: *x\n", "4:10: reference to unknown value"),
        (
            "  - {}\n",
            "4:5: the rule does nothing; add `say`, `chunks`, `call` or `fail`",
        ),
        (
            "  []\n",
            "4:3: there are no rules; write at least one, such as `- say: hello`",
        ),
        (
            "  - say: x\n  - when: {turn: 0}\n    say: y\n",
            "5:18: no turn is meant by this; turns count from 1, and `from` is not after `to`",
        ),
        (
            "  - {say: x, when: {turn: -1}}\n",
            "4:21: invalid value: integer `-1`, expected a turn such as `1`, or a range such as `{from: 1, to: 5}`",
        ),
        (
            "  - {say: x, when: {turn: often}}\n",
            "4:21: invalid type: string \"often\", expected a turn such as `1`, or a range such as `{from: 1, to: 5}`",
        ),
        (
            "  - {say: x, when: {turn: {from: 3, to: 2}}}\n",
            "4:27: no turn is meant by this; turns count from 1, and `from` is not after `to`",
        ),
        (
            "  - {say: x, when: {turn: {form: 3}}}\n",
            "4:28: unknown field `form`, expected one of from, to",
        ),
        (
            "  - {say: x, chunks: [y]}\n",
            "4:5: `say` and `chunks` are two ways to say one text; keep one of them",
        ),
        (
            "  - say: x\n    delay: 5\n",
            "5:12: `5` is no length of time; write a whole number and ms, s, m or h, such as `250ms`",
        ),
        (
            "  - say: x\n    pace: soon\n",
            "5:11: `soon` is no length of time; write a whole number and ms, s, m or h, such as `250ms`",
        ),
        (
            "  - call: [{tool: t}]\n    pace: 1s\n",
            "5:11: `pace` is the time between chunks, and there are none; remove it or add `say` or `chunks`",
        ),
        (
            "  - call:\n      - {tool: t, args: [1]}\n",
            "5:9: `args` is [1], but must be a mapping; to send something else write it as `raw`",
        ),
        (
            "  - call:\n      - {tool: t, args: {}, raw: '{}'}\n",
            "5:9: `args` and `raw` are two ways to give the arguments; keep one of them",
        ),
        ("  - call: [{args: {}}]\n", "4:13: missing field `tool`"),
        (
            "  - say: x\n    fail: {with: timeout}\n",
            "5:11: this fails at every attempt, so the rest of the rule is never used; add `times`",
        ),
        (
            "  - fail: {with: timeout, times: 1}\n",
            "4:11: after these failures the rule has no answer; add `say`, `chunks` or `call`",
        ),
        (
            "  - {say: x, fail: {with: timeout, times: 0}}\n",
            "4:20: `times: 0` never fails; remove `fail`, or `times` to fail always",
        ),
        (
            "  - fail: {with: timeout, reason: x}\n",
            "4:11: a timeout has no reason; remove `reason`",
        ),
        (
            "  - fail: {with: rejected, retry_after: 1s}\n",
            "4:41: only `rate_limited` has `retry_after`; remove it",
        ),
        (
            "  - fail: {with: rate_limited, retry_after: 1}\n",
            "4:45: `1` is no length of time; write a whole number and ms, s, m or h, such as `250ms`",
        ),
        (
            "  - fail: {with: tiemout}\n",
            "4:18: unknown variant `tiemout`, expected one of timeout, unavailable, rate_limited, rejected",
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
        ("", "1:1: unexpected end of file"),
        ("just text\n", "1:1: expected mapping start"),
        (
            "kind: Scenario\nrules: [{say: x}]\n",
            "2:1: missing field `apiVersion`",
        ),
        (
            "apiVersion: holdpoint/v2\nkind: Scenario\nrules: [{say: x}]\n",
            "1:13: `holdpoint/v2` is not known here; write `holdpoint/v1`",
        ),
        (
            "apiVersion: holdpoint/v1\nkind: Agent\nrules: [{say: x}]\n",
            "2:7: `Agent` is not known here; write `Scenario`",
        ),
        (
            "apiVersion: holdpoint/v1\nkind: Scenario\nrules: [{say: x}]\nmore: 1\n",
            "4:1: unknown field `more`, expected one of apiVersion, kind, rules",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(problems(text), [format!("s.yaml:{expected}")], "{text}");
    }
}

#[test]
fn all_problems_are_told_at_once() {
    let rules =
        "  - {say: x, delay: 1}\n  - {}\n  - {say: x, when: {turn: 0}, fail: {with: timeout}}\n";
    let error = Scripted::parse("s.yaml", &scenario(rules)).unwrap_err();
    let lines: Vec<_> = error
        .problems()
        .iter()
        .map(holdpoint_models::Problem::line)
        .collect();
    assert_eq!(lines, [Some(4), Some(5), Some(6), Some(6)]);
    assert_eq!(error.to_string().matches("s.yaml:").count(), 4);
}

#[test]
fn a_file_that_grows_when_read_is_refused() {
    let mut text = "apiVersion: holdpoint/v1\nkind: Scenario\nrules:\n  - call:\n      - tool: t\n        args:\n          a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..9 {
        let below = format!("*a{}, ", level - 1).repeat(10);
        text.push_str(&format!("          a{level}: &a{level} [{below}]\n"));
    }
    let error = Scripted::parse("s.yaml", &text).unwrap_err().to_string();
    assert!(error.contains("too large or too complex"), "{error}");
}
