//! Programs that say more than anyone can take.

use std::time::Duration;

use holdpoint_core::{Effect, Outcome};
use serde_json::json;
use tokio::time::Instant;

use crate::{
    bench::{Bench, block_on, done, params, unknown},
    journal::{Journal, Left},
};

crate::trials!(
    the_longest_line_arrives_whole_and_one_byte_more_is_unknown,
    a_long_line_is_told_whole,
    large_arguments_and_results_are_told_whole,
    a_program_that_prints_without_a_newline_is_killed_and_costs_no_memory,
    a_program_that_prints_too_much_in_all_is_killed,
    a_program_that_prints_to_stderr_without_end_comes_to_its_own_end,
    a_program_that_talks_and_does_not_listen_is_killed_at_its_deadline,
    a_program_that_is_idle_keeps_nobody_busy,
);

const LONGEST: usize = 1 << 20;

fn enter(bench: &Bench, script: &str) -> Left {
    Journal::new().enter(&*bench.stepped(script), &params("{}"))
}

/// A script that prints a line of this length: a result that is a text of `y`.
fn line_of(length: usize) -> String {
    let text = length - r#"{"result":""}"#.len();
    format!(r#"printf '{{"result":"'; yes y | tr -d '\n' | head -c {text}; printf '"}}\n'"#)
}

fn the_longest_line_arrives_whole_and_one_byte_more_is_unknown() {
    let bench = Bench::new();
    let text = "y".repeat(LONGEST - r#"{"result":""}"#.len());
    assert_eq!(enter(&bench, &line_of(LONGEST)), Left::Ended(done(&text)));
    let too_long = "it was killed, because it printed a line longer than 1048576 bytes, without a result or an error";
    assert_eq!(
        enter(&bench, &line_of(LONGEST + 1)),
        Left::Ended(unknown(too_long))
    );
    // Also where it is the end of a line that shows it.
    let script = format!("sleep 0.1; {}; sleep 60", line_of(LONGEST + 1));
    assert_eq!(enter(&bench, &script), Left::Ended(unknown(too_long)));
}

fn a_long_line_is_told_whole() {
    let (bench, journal) = (Bench::new(), Journal::new());
    let result = json!("é".repeat(1_000_000));
    journal.did("big", Effect::Read, &params("{}"), &result);
    // It listens late: by then the pipes are full.
    let script = r#"
        read -r opening; echo '{"step":{"name":"big","effect":"read"}}'; sleep 0.5
        length=$(head -n 1 | wc -c); echo "{\"result\":$length}""#;
    let length = json!({"ended": {"name": "big", "result": result}})
        .to_string()
        .len()
        + 1;
    let left = journal.enter(&*bench.stepped(script), &params("{}"));
    assert_eq!(left, Left::Ended(done(&length.to_string())));
}

fn large_arguments_and_results_are_told_whole() {
    let (bench, journal) = (Bench::new(), Journal::new());
    let result = json!("x".repeat(3_000_000));
    journal.did("big", Effect::Read, &params("{}"), &result);
    let args = params(&format!(r#"{{"text":"{}"}}"#, "x".repeat(3_000_000)));
    let script = r#"length=$(head -n 1 | wc -c); echo "{\"result\":$length}""#;
    let length = args.canonical().len()
        + r#"{"args":,"answers":{},"steps":{"big":{"result":""}}}"#.len()
        + 3_000_001;
    let left = journal.enter(&*bench.stepped(script), &args);
    assert_eq!(left, Left::Ended(done(&length.to_string())));
    // And who does not want them need not take them.
    let left = journal.enter(&*bench.stepped(r#"exec <&-; echo '{"result":1}'"#), &args);
    assert_eq!(left, Left::Ended(done("1")));
}

fn a_program_that_prints_without_a_newline_is_killed_and_costs_no_memory() {
    let bench = Bench::new();
    let script = "
        (while :; do grep VmHWM /proc/$PPID/status >peak.new && mv peak.new peak; done) &
        while [ ! -s peak ]; do sleep 0.01; done
        yes | tr -d '\\n'";
    let reason = "it was killed, because it printed a line longer than 1048576 bytes, without a result or an error";
    assert_eq!(enter(&bench, script), Left::Ended(unknown(reason)));
    let peak = bench.wait_for("peak");
    let kilobytes: u64 = peak.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(kilobytes < 64_000, "{peak}");
}

fn a_program_that_prints_too_much_in_all_is_killed() {
    let bench = Bench::new();
    let journal = Journal::new();
    journal.did("a", Effect::Read, &params("{}"), &json!(1));
    let script = format!(
        r#"echo $$ >leader; cat >/dev/null & exec yes '{{"step":{{"name":"a","effect":"read"}}}}{}'"#,
        " ".repeat(50_000)
    );
    let left = journal.enter(&*bench.stepped(&script), &params("{}"));
    let Left::Ended(Outcome::Unknown { reason }) = left else {
        panic!("{left:?}")
    };
    let too_much = "it was killed, because it printed more than 16777216 bytes, ";
    assert!(reason.starts_with(too_much), "{reason}");
    bench.must_die("leader", Duration::from_secs(10));
    // What it printed last is not begun: it was dead by then.
    let log = journal.log();
    assert!(
        (1..=(16 << 20) / 50_000).contains(&log.len()),
        "{}",
        log.len()
    );
}

fn a_program_that_prints_to_stderr_without_end_comes_to_its_own_end() {
    let bench = Bench::new();
    let script = r#"yes | head -c 20000000 >&2; echo '{"result":1}'; exit 3"#;
    let reason = r"exit code 3, after it printed its result; stderr: y\ny\ny\ny\ny …";
    assert_eq!(enter(&bench, script), Left::Ended(unknown(reason)));
}

fn a_program_that_talks_and_does_not_listen_is_killed_at_its_deadline() {
    let (bench, journal) = (Bench::new(), Journal::new());
    // Each of its short lines is answered with a long one, until all pipes are full in both directions.
    let result = json!("x".repeat(300_000));
    journal.did("big", Effect::Read, &params("{}"), &result);
    let script = r#"echo $$ >leader; exec yes '{"step":{"name":"big","effect":"read"}}'"#;
    let tool = bench.stepped(script);
    let begin = block_on(async { Instant::now() });
    let left = journal.enter_for(&*tool, &params("{}"), Duration::from_secs(2));
    assert!(begin.elapsed() < Duration::from_secs(20));
    let Left::Ended(Outcome::Unknown { reason }) = left else {
        panic!("{left:?}")
    };
    let time_out = "a time-out: it was killed at its deadline, before its step `big` was begun";
    assert_eq!(reason, time_out);
    bench.must_die("leader", Duration::from_secs(10));
}

fn a_program_that_is_idle_keeps_nobody_busy() {
    let bench = Bench::new();
    // The time that the watchdog has used, in hundredths of a second.
    let script = r#"
        used() { cut -d' ' -f14,15 /proc/$PPID/stat; }
        read -r opening; echo '{"step":{"name":"a","effect":"read"}}'; read -r run
        before=$(used); sleep 1; after=$(used)
        exec <&-; sleep 1; closed=$(used)
        echo '{"done":{"name":"a"}}'; echo "{\"result\":\"$before $after $closed\"}""#;
    let Left::Ended(Outcome::Done { content }) = enter(&bench, script) else {
        panic!("not done")
    };
    let used: Vec<u64> = content
        .split_whitespace()
        .map(|ticks| ticks.parse().unwrap())
        .collect();
    let total = |at: usize| used[2 * at] + used[2 * at + 1];
    assert!(total(2) - total(0) < 10, "{content}");
}
