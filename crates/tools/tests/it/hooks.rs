//! Lookups and compensations.

use holdpoint_core::{Lookup, Outcome, Runner};
use serde_json::{Value, json};

use crate::bench::{
    Bench, PLENTY, block_on, call, done, failed, not_known, params, shell, unknown,
};

crate::trials!(
    each_answer_of_a_lookup_has_its_meaning,
    a_compensation_ends_as_a_call_does,
    hooks_get_the_same_key_and_arguments_as_the_call,
    a_tool_without_hooks_says_so,
);

fn with_hooks(bench: &Bench, lookup: Option<&str>, compensate: Option<&str>) -> Runner {
    let (lookup, compensate) = (lookup.map(shell), compensate.map(shell));
    Runner::Command {
        command: shell("touch called"),
        cwd: bench.cwd(),
        lookup,
        compensate,
    }
}

fn look_up(script: &str) -> Lookup {
    let bench = Bench::new();
    let tool = bench.tool(with_hooks(&bench, Some(script), None));
    let found = block_on(tool.lookup(call(&params("{}"), PLENTY)));
    assert!(!bench.path("called").exists());
    found
}

fn each_answer_of_a_lookup_has_its_meaning() {
    let print = |answer: Value| format!("echo '{answer}'");
    let committed = |receipt| Lookup::Committed { receipt };
    let cases = [
        (
            print(json!({"status": "committed", "receipt": {"id": 4}})),
            committed(json!({"id": 4})),
        ),
        (
            print(json!({"status": "committed", "more": 1})),
            committed(Value::Null),
        ),
        (print(json!({"status": "not_found"})), Lookup::NotFound),
        (
            print(json!({"status": "partial", "receipt": "half"})),
            Lookup::Partial {
                receipt: json!("half"),
            },
        ),
        (
            print(json!({"status": "unknown"})) + "; echo down >&2",
            not_known(
                "the lookup ended with exit code 0, and says that it does not know; stderr: down",
            ),
        ),
        (
            print(json!({"status": "not_found"})) + "; exit 1",
            not_known("the lookup ended with exit code 1"),
        ),
        (
            "kill -9 $$".to_owned(),
            not_known("the lookup ended with signal 9"),
        ),
        (
            "printf '\\377'".to_owned(),
            not_known("the lookup ended with exit code 0, and stdout is not UTF-8"),
        ),
    ];
    for (script, expected) in cases {
        assert_eq!(look_up(&script), expected, "{script}");
    }
    for script in [
        "echo not_found",
        "echo '{\"status\": \"Committed\"}'",
        "true",
        "echo '[]'",
        "echo '{}'",
    ] {
        let Lookup::Unknown { reason } = look_up(script) else {
            panic!("{script}")
        };
        assert!(
            reason
                .contains("stdout is not `{\"status\": \"committed|not_found|partial|unknown\"}`"),
            "{reason}"
        );
    }
}

fn a_compensation_ends_as_a_call_does() {
    let bench = Bench::new();
    let no_error = "exit code 1, and stdout is no JSON object with an `error`";
    let cases: [(&str, Outcome); 3] = [
        ("echo undone", done("undone")),
        (
            "echo '{\"error\": \"too late\"}'; exit 1",
            failed("too late"),
        ),
        ("exit 1", unknown(no_error)),
    ];
    for (script, expected) in cases {
        let tool = bench.tool(with_hooks(&bench, None, Some(script)));
        assert_eq!(
            block_on(tool.compensate(call(&params("{}"), PLENTY))),
            expected
        );
    }
    assert!(!bench.path("called").exists());
}

fn hooks_get_the_same_key_and_arguments_as_the_call() {
    let bench = Bench::new();
    let echo = "echo \"$HOLDPOINT_IDEMPOTENCY_KEY $HOLDPOINT_EPOCH $HOLDPOINT_TOOL $(cat)\"";
    let tool = bench.tool(with_hooks(
        &bench,
        Some(&format!("{echo} >&2; exit 1")),
        Some(echo),
    ));
    let args = params(r#"{"b":1,"a":2}"#);
    let expected = r#"key-1 7 t {"a":2,"b":1}"#;
    assert_eq!(
        block_on(tool.compensate(call(&args, PLENTY))),
        done(expected)
    );
    let reason = format!("the lookup ended with exit code 1; stderr: {expected}");
    assert_eq!(
        block_on(tool.lookup(call(&args, PLENTY))),
        not_known(&reason)
    );
}

fn a_tool_without_hooks_says_so() {
    let bench = Bench::new();
    let tool = bench.tool(with_hooks(&bench, None, None));
    assert_eq!(
        block_on(tool.lookup(call(&params("{}"), PLENTY))),
        not_known("this tool has no lookup")
    );
    assert_eq!(
        block_on(tool.compensate(call(&params("{}"), PLENTY))),
        failed("this tool has no compensation")
    );
}
