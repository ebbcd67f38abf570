//! Nothing that a call started outlives its deadline or the call itself.

use std::time::Duration;

use tokio::time::Instant;

use crate::bench::{Bench, PLENTY, block_on, call, done, failed, params, unknown};

crate::trials!(
    a_program_is_killed_at_its_deadline_with_its_children,
    a_program_that_ignores_signals_is_killed_too,
    a_program_that_prints_without_end_is_killed_and_costs_no_memory,
    children_that_outlive_their_program_are_killed,
    a_child_that_left_the_group_does_not_hold_up_the_call,
    a_call_without_time_is_not_started,
    dropping_the_call_kills_the_program,
);

const TIME_OUT: &str = "a time-out: it was killed at its deadline";
const SOON: Duration = Duration::from_secs(10);

fn a_program_is_killed_at_its_deadline_with_its_children() {
    let bench = Bench::new();
    let script = "
        sh -c 'echo $$ >child; sleep 1.2; touch late; sleep 60' &
        echo $$ >leader; echo waiting >&2
        sleep 60";
    let begin = block_on(async { Instant::now() });
    assert_eq!(
        bench.run_for(script, Duration::from_millis(700)),
        unknown(&format!("{TIME_OUT}; stderr: waiting"))
    );
    assert!(begin.elapsed() >= Duration::from_millis(700));
    bench.must_die("leader", SOON);
    bench.must_die("child", SOON);
    std::thread::sleep(Duration::from_millis(800));
    assert!(!bench.path("late").exists());
}

fn a_program_that_ignores_signals_is_killed_too() {
    let bench = Bench::new();
    let script = "trap '' TERM INT HUP; echo $$ >leader; while :; do sleep 0.1; done";
    assert_eq!(
        bench.run_for(script, Duration::from_millis(300)),
        unknown(TIME_OUT)
    );
    bench.must_die("leader", SOON);
}

fn a_program_that_prints_without_end_is_killed_and_costs_no_memory() {
    let bench = Bench::new();
    // The watchdog is the program's parent; its peak is looked at while it is flooded.
    let script = "
        (sleep 0.6; grep VmHWM /proc/$PPID/status >peak.new; mv peak.new peak) &
        yes >&2 & exec yes";
    let Some(reason) = reason_of(bench.run_for(script, Duration::from_secs(2))) else {
        panic!("known")
    };
    assert!(reason.starts_with(TIME_OUT), "{reason}");
    let peak = bench.wait_for("peak");
    let kilobytes: u64 = peak.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(kilobytes < 64_000, "{peak}");
}

fn reason_of(outcome: holdpoint_core::Outcome) -> Option<String> {
    if let holdpoint_core::Outcome::Unknown { reason } = outcome {
        Some(reason)
    } else {
        None
    }
}

fn children_that_outlive_their_program_are_killed() {
    let bench = Bench::new();
    let script = "
        sh -c 'echo $$ >child; sleep 0.5; touch late; sleep 60' &
        while [ ! -s child ]; do sleep 0.01; done
        echo result";
    let begin = block_on(async { Instant::now() });
    assert_eq!(bench.run(script), done("result"));
    assert!(
        begin.elapsed() < Duration::from_secs(20),
        "waited for the child"
    );
    bench.must_die("child", SOON);
    std::thread::sleep(Duration::from_millis(600));
    assert!(!bench.path("late").exists());
}

fn a_child_that_left_the_group_does_not_hold_up_the_call() {
    let bench = Bench::new();
    let script = "
        setsid sh -c 'echo $$ >child; exec sleep 5' &
        while [ ! -s child ]; do sleep 0.01; done
        yes | head -c 60000";
    let begin = block_on(async { Instant::now() });
    assert_eq!(bench.run(script), done(&"y\n".repeat(30_000)[..59_999]));
    assert!(
        begin.elapsed() < Duration::from_secs(4),
        "waited for the child"
    );
}

fn a_call_without_time_is_not_started() {
    let bench = Bench::new();
    let expected = failed("not started: its time was over before it could be started");
    assert_eq!(bench.run_for("touch started", Duration::ZERO), expected);
    assert!(!bench.path("started").exists());
}

fn dropping_the_call_kills_the_program() {
    let bench = Bench::new();
    let tool = bench.script("echo $$ >leader; sleep 1; touch late");
    block_on(async {
        let args = params("{}");
        let mut call = Box::pin(tool.call(call(&args, PLENTY)));
        while bench.written("leader").is_none() {
            assert!(
                tokio::time::timeout(Duration::from_millis(5), &mut call)
                    .await
                    .is_err()
            );
        }
    });
    bench.must_die("leader", SOON);
    std::thread::sleep(Duration::from_millis(1_100));
    assert!(!bench.path("late").exists());
}
