//! Every way in which a program can end, and what it gets and gives.

use std::fs;

use holdpoint_core::{Outcome, Runner};

use crate::bench::{Bench, PLENTY, block_on, call, done, failed, params, unknown};

crate::trials!(
    each_end_has_its_outcome,
    the_arguments_arrive_exactly_as_they_are_hashed,
    large_arguments_arrive_whole,
    a_program_that_does_not_read_its_arguments_succeeds,
    nobody_is_kept_busy_by_arguments_that_are_not_wanted,
    what_was_printed_just_before_the_end_arrives,
    key_epoch_and_tool_are_in_the_environment_beside_the_rest,
    a_result_of_the_largest_size_arrives_whole_and_one_byte_more_is_unknown,
    a_program_that_closes_its_output_is_waited_for,
    a_program_that_cannot_be_started_has_failed,
    many_calls_at_once_do_not_mix,
);

fn each_end_has_its_outcome() {
    let bench = Bench::new();
    let cases = [
        ("echo ok", done("ok")),
        ("printf 'a\\n\\nb'; echo >&2 noise", done("a\n\nb")),
        ("true", done("")),
        ("echo '{\"error\": \"x\"}'", done("{\"error\": \"x\"}")),
        (
            "echo '{\"error\": \"no such order\"}'; exit 3",
            failed("no such order"),
        ),
        (
            "echo '{\"error\": {\"code\": 4}}'; exit 1",
            failed("{\"code\":4}"),
        ),
        (
            "echo oops; exit 3",
            unknown("exit code 3, and stdout is no JSON object with an `error`"),
        ),
        (
            "printf 'first\\033[0m\\nsecond\\n' >&2; exit 255",
            unknown(
                "exit code 255, and stdout is no JSON object with an `error`; stderr: first\\u{1b}[0m\\nsecond",
            ),
        ),
        (
            "echo '{\"error\": \"x\"}'; echo bye >&2; kill -TERM $$",
            unknown("signal 15; stderr: bye"),
        ),
        (
            "printf 'caf\\351'",
            unknown("exit code 0, and stdout is not UTF-8"),
        ),
        (
            "printf '\\377'; exit 2",
            unknown("exit code 2, and stdout is not UTF-8"),
        ),
    ];
    for (script, expected) in cases {
        assert_eq!(bench.run(script), expected, "{script}");
    }
}

fn the_arguments_arrive_exactly_as_they_are_hashed() {
    let bench = Bench::new();
    let tool = bench.script("cat");
    let args = params(r#"{"z": 1.0, "a": {"text": "line\nnext é \u0001"}, "list": [ ]}"#);
    let expected = r#"{"a":{"text":"line\nnext é \u0001"},"list":[],"z":1}"#;
    assert_eq!(args.canonical(), expected);
    assert_eq!(block_on(tool.call(call(&args, PLENTY))), done(expected));
}

fn large_arguments_arrive_whole() {
    let bench = Bench::new();
    let tool = bench.script("wc -c");
    let args = params(&format!(r#"{{"text":"{}"}}"#, "x".repeat(3_000_000)));
    let Outcome::Done { content } = block_on(tool.call(call(&args, PLENTY))) else {
        panic!("not done")
    };
    assert_eq!(content.trim(), args.canonical().len().to_string());
}

fn a_program_that_does_not_read_its_arguments_succeeds() {
    let bench = Bench::new();
    let args = params(&format!(r#"{{"text":"{}"}}"#, "x".repeat(3_000_000)));
    for script in [
        "echo ok",
        "exec <&-; echo ok",
        "head -c 10 >/dev/null; echo ok",
    ] {
        assert_eq!(
            block_on(bench.script(script).call(call(&args, PLENTY))),
            done("ok"),
            "{script}"
        );
    }
}

fn nobody_is_kept_busy_by_arguments_that_are_not_wanted() {
    let bench = Bench::new();
    let args = params(&format!(r#"{{"text":"{}"}}"#, "x".repeat(3_000_000)));
    // The time that the watchdog has used, in hundredths of a second.
    let tool = bench
        .script("used() { cut -d' ' -f14,15 /proc/$PPID/stat; }; exec <&-; used; sleep 1; used");
    let Outcome::Done { content } = block_on(tool.call(call(&args, PLENTY))) else {
        panic!("not done")
    };
    let used: Vec<u64> = content
        .split_whitespace()
        .map(|ticks| ticks.parse().unwrap())
        .collect();
    assert!(used[2] + used[3] - used[0] - used[1] < 10, "{content}");
}

fn what_was_printed_just_before_the_end_arrives() {
    let bench = Bench::new();
    let expected = done(&"y\n".repeat(30_000)[..59_999]);
    for _ in 0..20 {
        // It is written to a pipe that is large enough for all of it.
        assert_eq!(
            bench.run("text=$(yes | head -c 60000); printf '%s\n' \"$text\""),
            expected
        );
    }
}

fn key_epoch_and_tool_are_in_the_environment_beside_the_rest() {
    let bench = Bench::new();
    let script = "echo $HOLDPOINT_IDEMPOTENCY_KEY $HOLDPOINT_EPOCH $HOLDPOINT_TOOL ${PATH:+inherited}; pwd -P";
    let cwd = fs::canonicalize(bench.cwd()).unwrap();
    assert_eq!(
        bench.run(script),
        done(&format!("key-1 7 t inherited\n{}", cwd.display()))
    );
}

fn a_result_of_the_largest_size_arrives_whole_and_one_byte_more_is_unknown() {
    let bench = Bench::new();
    let largest = 1 << 20;
    assert_eq!(
        bench.run(&format!("yes | head -c {largest}")),
        done(&"y\n".repeat(largest / 2)[..largest - 1])
    );
    let too_long = "and stdout is longer than 1048576 bytes";
    assert_eq!(
        bench.run(&format!("yes | head -c {}", largest + 1)),
        unknown(&format!("exit code 0, {too_long}"))
    );
    // It is read on, so that the program comes to its own end.
    let script = "yes | head -c 50000000; yes | head -c 5000000 >&2; touch end; exit 4";
    let quoted = r"y\ny\ny\ny\ny …";
    assert_eq!(
        bench.run(script),
        unknown(&format!("exit code 4, {too_long}; stderr: {quoted}"))
    );
    assert!(bench.path("end").exists());
}

fn a_program_that_closes_its_output_is_waited_for() {
    let bench = Bench::new();
    assert_eq!(
        bench.run("echo early; exec >&- 2>&-; sleep 0.3; touch late"),
        done("early")
    );
    assert!(bench.path("late").exists());
}

fn a_program_that_cannot_be_started_has_failed() {
    let bench = Bench::new();
    // By a program: while this process forks for other tests, a file that it wrote itself may still be open in a child.
    let script = r"echo '#!/bin/sh' >data; echo '#!/no/such/interpreter' >orphan; chmod +x orphan";
    assert_eq!(bench.run(script), done(""));
    let local = |name: &str| bench.path(name).to_str().unwrap().to_owned();
    let start = |program: &str, cwd: &str| {
        let command = vec![program.to_owned()];
        let tool = bench.tool(Runner::Command {
            command,
            cwd: cwd.to_owned(),
            lookup: None,
            compensate: None,
        });
        block_on(tool.call(call(&params("{}"), PLENTY)))
    };
    let not_found = |name: &str| {
        failed(&format!(
            "not started: the program `{name}` was not found, or the interpreter that its first line names"
        ))
    };
    let (data, orphan) = (local("data"), local("orphan"));
    assert_eq!(
        start("/no/such/program", &bench.cwd()),
        not_found("/no/such/program")
    );
    assert_eq!(
        start("no-such-program-in-the-path", &bench.cwd()),
        not_found("no-such-program-in-the-path")
    );
    assert_eq!(start(&orphan, &bench.cwd()), not_found(&orphan));
    let refused = "could not be executed: Permission denied (os error 13)";
    assert_eq!(
        start(&data, &bench.cwd()),
        failed(&format!("not started: the program `{data}` {refused}"))
    );
    let no_folder = "not started: the folder `/no/such/folder` to run it in does not exist";
    assert_eq!(start("/bin/true", "/no/such/folder"), failed(no_folder));
}

fn many_calls_at_once_do_not_mix() {
    let bench = Bench::new();
    let tool = bench.script("cat");
    block_on(async {
        let mut calls = tokio::task::JoinSet::new();
        for number in 0..40 {
            let tool = tool.clone();
            calls.spawn(async move {
                let args = params(&format!(r#"{{"n":{number}}}"#));
                assert_eq!(tool.call(call(&args, PLENTY)).await, done(args.canonical()));
            });
        }
        while let Some(call) = calls.join_next().await {
            call.unwrap();
        }
    });
}
