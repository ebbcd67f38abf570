//! Stepped tools that are programs: every message, and every misbehaviour.

use std::time::Duration;

use holdpoint_core::{Effect, Lookup, Outcome, Runner, ToolKind, ToolSpec};
use holdpoint_tools::{Call, Registry, Watchdog, instantiate};
use serde_json::{Value, json};

use crate::{
    bench::{Bench, PLENTY, block_on, call, done, failed, not_known, params, shell, spec, unknown},
    journal::{Journal, Left},
};

crate::trials!(
    a_program_takes_a_step_when_it_is_told_to_and_ends_with_its_result,
    a_program_is_entered_with_all_that_it_has_behind_it,
    a_step_that_ended_before_is_not_run_again,
    an_answer_that_is_there_is_told_when_it_is_asked_for_again,
    a_program_is_dead_before_its_question_is_asked,
    a_program_may_end_itself_after_its_question,
    each_question_is_shown_as_it_was_meant,
    a_failed_step_lets_the_program_go_on,
    several_steps_may_be_open_at_once,
    each_end_has_its_outcome,
    each_misbehaviour_is_unknown_and_named,
    what_was_done_just_before_the_end_is_recorded,
    what_may_not_be_done_fails_and_the_program_is_killed,
    an_end_that_cannot_be_recorded_is_unknown,
    an_entry_has_no_key_but_the_epoch,
    hooks_get_the_steps_name_key_and_arguments,
    the_deadline_holds_in_the_middle_of_a_step,
    the_deadline_holds_while_a_step_may_not_begin,
    dropping_an_entry_kills_the_program,
    children_that_outlive_their_program_are_killed,
    unicode_passes_both_ways,
    a_program_that_cannot_be_started_has_failed,
    the_example_of_the_documentation_works,
);

const SOON: Duration = Duration::from_secs(10);

/// The shell functions of a small client. Of `echo` it depends on the shell what it makes of a backslash.
const CLIENT: &str = r#"
    read -r opening
    say() { printf '%s\n' "$1"; }
    step() { say "{\"step\":{\"name\":\"$1\",\"effect\":\"$2\",\"args\":${3:-null}}}"; read -r told; }
    done_() { say "{\"done\":{\"name\":\"$1\",\"result\":$2}}"; }
    result() { say "{\"result\":$1}"; }
"#;

fn client(script: &str) -> String {
    format!("{CLIENT}\n{script}")
}

fn enter(bench: &Bench, journal: &Journal, script: &str) -> Left {
    journal.enter(&*bench.stepped(script), &params(r#"{"id":7}"#))
}

fn a_program_takes_a_step_when_it_is_told_to_and_ends_with_its_result() {
    let (bench, journal) = (Bench::new(), Journal::new());
    let script = client(
        r#"
        step order read '{"id": 7.0}'; done_ order '{"total":"5.00"}'
        step pay write '{"total":"5.00"}'; echo "$told" >told; done_ pay '"paid"'
        result '{"ok":true}'"#,
    );
    let left = enter(&bench, &journal, &script);
    assert_eq!(left, Left::Ended(done(r#"{"ok":true}"#)));
    let expected = [
        r#"begin order read {"id":7}"#,
        r#"done order: {"total":"5.00"}"#,
        r#"begin pay write {"total":"5.00"}"#,
        r#"done pay: "paid""#,
    ];
    assert_eq!(journal.log(), expected);
    let told: Value = serde_json::from_str(&bench.wait_for("told")).unwrap();
    assert_eq!(told, json!({"run": {"name": "pay", "key": "key of pay"}}));
}

fn a_program_is_entered_with_all_that_it_has_behind_it() {
    let (bench, journal) = (Bench::new(), Journal::new());
    let open = client(r#"printf '%s\n' "$opening" >opening"#);
    let ask = |message: &str| {
        let script = format!("{open}; echo '{message}'; sleep 60");
        assert_eq!(enter(&bench, &journal, &script), Left::Dropped);
        bench.wait_for("opening")
    };
    let first = ask(r#"{"interrupt":{"name":"ok","question":"really?"}}"#);
    assert_eq!(first, r#"{"args":{"id":7},"answers":{},"steps":{}}"#);
    journal.answer(json!({"approved": true, "reason": "because"}));
    ask(r#"{"interrupt":{"name":"late"}}"#);
    journal.time_out();
    ask(r#"{"sleep":{"name":"nap","for":"10m"}}"#);
    journal.wake();
    let args = params("{}");
    journal.did("pay", Effect::Write, &args, &json!(["paid"]));
    let script =
        client(r#"step no write; echo '{"failed":{"name":"no","error":"none"}}'; result 1"#);
    assert_eq!(enter(&bench, &journal, &script), Left::Ended(done("1")));

    let last = ask(r#"{"interrupt":{"name":"more"}}"#);
    assert_eq!(
        serde_json::from_str::<Value>(&last).unwrap(),
        json!({
            "args": {"id": 7},
            "answers": {
                "ok": {"answer": {"approved": true, "reason": "because"}},
                "late": {"timeout": true},
                "nap": {"slept": true},
            },
            "steps": {"pay": {"result": ["paid"]}, "no": {"error": "none"}},
        })
    );
}

fn a_step_that_ended_before_is_not_run_again() {
    let (bench, journal) = (Bench::new(), Journal::new());
    journal.did("pay", Effect::Write, &params("{}"), &json!("paid"));
    let script = client(r#"step pay write; echo "$told" >told; result '"again"'"#);
    let left = enter(&bench, &journal, &script);
    assert_eq!(left, Left::Ended(done("again")));
    assert_eq!(journal.log(), ["ended pay"]);
    let told: Value = serde_json::from_str(&bench.wait_for("told")).unwrap();
    assert_eq!(told, json!({"ended": {"name": "pay", "result": "paid"}}));
}

fn an_answer_that_is_there_is_told_when_it_is_asked_for_again() {
    let (bench, journal) = (Bench::new(), Journal::new());
    // A program that does not look into `answers` at all.
    let script = client(
        r#"
        wait() { echo "$1"; read -r told; echo "$told" >>told; }
        wait '{"interrupt":{"name":"ok","question":{"title":"Ok?"}}}'
        wait '{"sleep":{"name":"nap","for":"10m"}}'
        wait '{"interrupt":{"name":"late","question":{"title":"Late?","timeout":"1s"}}}'
        result null"#,
    );
    assert_eq!(enter(&bench, &journal, &script), Left::Dropped);
    journal.answer(json!({"approved": false}));
    assert_eq!(enter(&bench, &journal, &script), Left::Dropped);
    journal.wake();
    assert_eq!(enter(&bench, &journal, &script), Left::Dropped);
    journal.time_out();
    std::fs::remove_file(bench.path("told")).unwrap();
    assert_eq!(enter(&bench, &journal, &script), Left::Ended(done("null")));
    let told = bench.wait_for("told");
    let told: Vec<Value> = told
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let expected = [
        json!({"answered": {"name": "ok", "answer": {"approved": false}}}),
        json!({"answered": {"name": "nap", "slept": true}}),
        json!({"answered": {"name": "late", "timeout": true}}),
    ];
    assert_eq!(told, expected);
}

fn a_program_is_dead_before_its_question_is_asked() {
    let (bench, journal) = (Bench::new(), Journal::new());
    let script = client(
        r#"
        sh -c 'echo $$ >child; exec sleep 60' & echo $$ >leader
        while [ ! -s child ]; do sleep 0.01; done
        trap '' TERM; echo '{"interrupt":{"name":"ok","question":{"title":"Ok?"}}}'
        while :; do echo going on >>went_on; done"#,
    );
    let tool = bench.stepped(&script);
    let args = params("{}");
    // The other side does not let go of the entry; the program is gone all the same.
    let side = journal.side();
    block_on(async {
        let entry = tool.enter(call(&args, PLENTY), side);
        let asked = async {
            while journal.log().is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            bench.dies("leader", SOON).await;
            bench.dies("child", SOON).await;
        };
        tokio::select! {
            outcome = entry => panic!("it ended: {outcome:?}"),
            () = asked => {}
        }
    });
}

fn a_program_may_end_itself_after_its_question() {
    let bench = Bench::new();
    for script in [
        r#"echo '{"interrupt":{"name":"ok"}}'"#,
        r#"echo '{"interrupt":{"name":"ok"}}'; exit 3"#,
        r#"printf '{"sleep":{"name":"ok","for":"1s"}}'"#,
    ] {
        let journal = Journal::new();
        assert_eq!(enter(&bench, &journal, script), Left::Dropped);
        assert_eq!(journal.log().len(), 1);
    }
}

fn each_question_is_shown_as_it_was_meant() {
    let shown = |question: &str| {
        let (bench, journal) = (Bench::new(), Journal::new());
        let script =
            format!(r#"echo '{{"interrupt":{{"name":"ok","question":{question}}}}}'; cat"#);
        assert_eq!(enter(&bench, &journal, &script), Left::Dropped);
        journal.log().remove(0)
    };
    let full = r#"{"kind":"review","title":"Ok?","description":"Really.","data":{"n":1},
        "options":[{"id":"a","label":"A"}],"input_schema":{"type":"string"},"timeout":"10m","on_timeout":"keep"}"#;
    let full = full.replace('\n', " ");
    assert_eq!(
        shown(&full),
        "wait ok Question { kind: Review, prompt: Prompt { title: \"Ok?\", description: \"Really.\", data: Object \
         {\"n\": Number(1)}, options: [Choice { id: \"a\", label: \"A\", description: \"\", is_default: false }], \
         input_schema: Some(Object {\"type\": String(\"string\")}), timeout: None, checkpoint_id: None, metadata: {} }, \
         expiry: Some((600s, Keep)) }"
    );
    let bare = |data: &str| {
        format!(
            "wait ok Question {{ kind: Approval, prompt: Prompt {{ title: \"ok\", description: \"\", data: {data}, \
             options: [], input_schema: None, timeout: None, checkpoint_id: None, metadata: {{}} }}, expiry: None }}"
        )
    };
    assert_eq!(shown(r#""really?""#), bare(r#"String("really?")"#));
    assert_eq!(
        shown(r#"{"type":"approval_request"}"#),
        bare(r#"Object {"type": String("approval_request")}"#)
    );
}

fn a_failed_step_lets_the_program_go_on() {
    let (bench, journal) = (Bench::new(), Journal::new());
    let script = client(
        r#"
        step pay write; echo '{"failed":{"name":"pay","error":{"code":4}}}'
        step note write; done_ note null; result '"noted"'"#,
    );
    let left = enter(&bench, &journal, &script);
    assert_eq!(left, Left::Ended(done("noted")));
    let expected = [
        "begin pay write {}",
        r#"failed pay: {"code":4}"#,
        "begin note write {}",
        "done note: null",
    ];
    assert_eq!(journal.log(), expected);
}

fn several_steps_may_be_open_at_once() {
    let (bench, journal) = (Bench::new(), Journal::new());
    let script = client(
        r#"
        echo '{"step":{"name":"a","effect":"write"}}'; echo '{"step":{"name":"b","effect":"read"}}'
        read -r one; read -r other
        done_ b 2; done_ a 1; result 3"#,
    );
    assert_eq!(enter(&bench, &journal, &script), Left::Ended(done("3")));
    let expected = [
        "begin a write {}",
        "begin b read {}",
        "done b: 2",
        "done a: 1",
    ];
    assert_eq!(journal.log(), expected);
}

fn each_end_has_its_outcome() {
    let bench = Bench::new();
    let cases = [
        (r#"echo '{"result":"text"}'"#, done("text")),
        (r#"printf '{"result":"no newline"}'"#, done("no newline")),
        (r#"printf '{"result":1}\r\n'"#, done("1")),
        (r#"echo '{"result":null}'; echo noise >&2"#, done("null")),
        (
            r#"echo '{"result":{"n":18446744073709551615}}'"#,
            done(r#"{"n":18446744073709551615}"#),
        ),
        (
            r#"echo '{"error":"no such order"}'"#,
            failed("no such order"),
        ),
        (
            r#"echo '{"error":{"code":4}}'; exit 1"#,
            failed(r#"{"code":4}"#),
        ),
        (
            r#"echo '{"result":1}'; echo bye >&2; exit 3"#,
            unknown("exit code 3, after it printed its result; stderr: bye"),
        ),
        (
            r#"echo '{"result":1}'; kill -9 $$"#,
            unknown("signal 9, after it printed its result"),
        ),
        (
            r#"echo '{"error":"x"}'; kill -9 $$"#,
            unknown("signal 9, after it printed its error"),
        ),
        ("true", unknown("exit code 0, without a result or an error")),
        (
            "exec <&- >&-; exit 4",
            unknown("exit code 4, without a result or an error"),
        ),
        (
            "printf 'first\\033[0m\\nsecond\\n' >&2; exit 255",
            unknown(
                "exit code 255, without a result or an error; stderr: first\\u{1b}[0m\\nsecond",
            ),
        ),
        (
            r#"echo '{"step":{"name":"pay","effect":"write"}}'; read -r a; read -r b; exit 3"#,
            unknown("exit code 3, in the middle of its step `pay`"),
        ),
        (
            r#"echo '{"step":{"name":"pay","effect":"write"}}'; read -r a; read -r b; kill -9 $$"#,
            unknown("signal 9, in the middle of its step `pay`"),
        ),
    ];
    for (script, expected) in cases {
        let left = enter(&bench, &Journal::new(), script);
        assert_eq!(left, Left::Ended(expected), "{script}");
    }
}

fn each_misbehaviour_is_unknown_and_named() {
    let bench = Bench::new();
    let cases = [
        (
            "echo trace >&2; echo hello; sleep 60",
            "it printed a line that is no message: expected value at line 1 column 1: `hello`; stderr: trace",
        ),
        (
            "echo; sleep 60",
            "it printed a line that is no message: EOF while parsing a value at line 1 column 0: ``",
        ),
        (
            r#"echo '{"stop":1}'; sleep 60"#,
            "it printed a line that is no message: unknown variant `stop`, expected one of `step`, `done`, `failed`, \
             `interrupt`, `sleep`, `result`, `error` at line 1 column 7: `{\"stop\":1}`",
        ),
        (
            r#"printf '{"result":'"#,
            "it printed a line that is no message: EOF while parsing a value at line 1 column 10: `{\"result\":`",
        ),
        (
            r#"echo '{"result":1}'; echo '{"result":2}'; sleep 60"#,
            "it printed more after its last word: `{\"result\":2}`",
        ),
        (
            r#"echo '{"done":{"name":"pay"}}'; sleep 60"#,
            "it says what became of the step `pay`, which it was not told to take",
        ),
        (
            r#"read -r o; step() { echo '{"step":{"name":"pay","effect":"write"}}'; }; step; read -r run; step; sleep 60"#,
            "it wants to take the step `pay`, which it is taking already",
        ),
        (
            r#"read -r o; echo '{"step":{"name":"pay","effect":"write"}}'; read -r run; echo '{"result":1}'; sleep 60"#,
            "it printed its last word without having said what became of its step `pay`",
        ),
        (
            r#"read -r o; echo '{"step":{"name":"pay","effect":"write"}}'; read -r run; echo '{"interrupt":{"name":"ok"}}'; sleep 60"#,
            "it waits for `ok` without having said what became of its step `pay`",
        ),
        (
            r"printf 'caf\351\n'; sleep 60",
            "it was killed, because it printed a line that is not UTF-8, without a result or an error",
        ),
        (
            r#"echo '{"step":{"name":"pay","effect":"write","args":{"a":1,"a":2}}}'; sleep 60"#,
            "it printed a line that is no message: the step `pay`: the key `a` appears twice in one object; send it once \
             at line 1 column 59: `{\"step\":{\"name\":\"pay\",\"effect\":\"write\",\"args\":{\"a\":1,\"a\":2}}}`",
        ),
    ];
    for (script, expected) in cases {
        let script = format!("echo $$ >leader; {script}");
        let left = enter(&bench, &Journal::new(), &script);
        assert_eq!(left, Left::Ended(unknown(expected)), "{script}");
        bench.must_die("leader", SOON);
    }
}

fn what_was_done_just_before_the_end_is_recorded() {
    let bench = Bench::new();
    for _ in 0..20 {
        let journal = Journal::new();
        let script = client(r#"step pay write; done_ pay '"paid"'; exit 1"#);
        let reason = "exit code 1, without a result or an error";
        assert_eq!(
            enter(&bench, &journal, &script),
            Left::Ended(unknown(reason))
        );
        assert_eq!(journal.log(), ["begin pay write {}", r#"done pay: "paid""#]);
    }
    // Also where it wanted to go on: what was done is recorded whether or not the next step was still begun.
    for _ in 0..20 {
        let journal = Journal::new();
        let script = client(
            r#"step pay write; say '{"step":{"name":"next","effect":"write"}}'; done_ pay 1; exit 0"#,
        );
        let Left::Ended(Outcome::Unknown { .. }) = enter(&bench, &journal, &script) else {
            panic!("known")
        };
        let log = journal.log();
        assert_eq!(log[0], "begin pay write {}");
        assert_eq!(log.last().unwrap(), "done pay: 1");
    }
}

fn what_may_not_be_done_fails_and_the_program_is_killed() {
    let bench = Bench::new();
    let journal = Journal::new();
    journal.did("pay", Effect::Write, &params(r#"{"n":1}"#), &json!("paid"));
    let ask = r#"echo '{"interrupt":{"name":"ok","question":"one"}}'"#;
    assert_eq!(enter(&bench, &journal, ask), Left::Dropped);
    journal.answer(json!(true));
    journal.log();
    let long = format!(
        "echo '{{\"interrupt\":{{\"name\":\"long\",\"question\":\"{}\"}}}}'",
        "x".repeat(17_000)
    );
    let other_step = "the step `pay` was begun before with other arguments or another effect; give every step a name of its own";
    let other_question = "another question was asked under the name `ok`; give every question and every sleep a name of its own";
    let cases = [
        (r#"step pay write '{"n":2}'"#, other_step),
        (r#"step pay read '{"n":1}'"#, other_step),
        (
            r#"echo '{"interrupt":{"name":"ok","question":"other"}}'"#,
            other_question,
        ),
        (
            r#"echo '{"sleep":{"name":"ok","for":"1s"}}'"#,
            other_question,
        ),
        (
            &long,
            "the question `long`: it takes 17026 bytes of JSON, and at most 16384 are kept; show less data",
        ),
    ];
    for (script, expected) in cases {
        let script = client(&format!("echo $$ >leader; {script}; sleep 60"));
        let left = enter(&bench, &journal, &script);
        assert_eq!(left, Left::Ended(failed(expected)));
        bench.must_die("leader", SOON);
        assert_eq!(journal.log(), Vec::<String>::new());
    }
}

fn an_end_that_cannot_be_recorded_is_unknown() {
    let (bench, journal) = (Bench::new(), Journal::new());
    let script = client("step gone write; done_ gone 1; result 1; sleep 60");
    let reason = "the step `gone`: no such step is open";
    let left = enter(&bench, &journal, &script);
    assert_eq!(left, Left::Ended(unknown(reason)));
}

fn an_entry_has_no_key_but_the_epoch() {
    let (bench, journal) = (Bench::new(), Journal::new());
    let script = r#"echo "{\"result\":\"${HOLDPOINT_IDEMPOTENCY_KEY-none} ${HOLDPOINT_STEP-none} $HOLDPOINT_EPOCH $HOLDPOINT_TOOL ${PATH:+inherited}\"}""#;
    let left = enter(&bench, &journal, script);
    assert_eq!(left, Left::Ended(done("none none 7 t inherited")));
}

fn hooks_get_the_steps_name_key_and_arguments() {
    let bench = Bench::new();
    let echo = r#"echo "${HOLDPOINT_STEP-none} $HOLDPOINT_IDEMPOTENCY_KEY $HOLDPOINT_EPOCH $HOLDPOINT_TOOL $(cat)""#;
    let runner = Runner::Command {
        command: shell("touch called"),
        cwd: bench.cwd(),
        lookup: Some(shell(&format!("{echo} >&2; exit 1"))),
        compensate: Some(shell(echo)),
    };
    let spec = ToolSpec {
        kind: ToolKind::Stepped,
        ..spec(runner)
    };
    let tool = instantiate(&spec, &[], &Registry::new(), &Watchdog::default()).unwrap();
    let args = params(r#"{"b":1,"a":2}"#);
    let of_step = Call {
        step: Some("charge card"),
        ..call(&args, PLENTY)
    };
    let expected = r#"charge card key-1 7 t {"a":2,"b":1}"#;
    block_on(async {
        assert_eq!(tool.compensate(of_step).await, done(expected));
        let found: Lookup = tool.lookup(of_step).await;
        let reason = format!("the lookup ended with exit code 1; stderr: {expected}");
        assert_eq!(found, not_known(&reason));
        let refused = "this tool takes steps, and cannot be called as one effect";
        assert_eq!(tool.call(of_step).await, failed(refused));
    });
    assert!(!bench.path("called").exists());
}

fn the_deadline_holds_in_the_middle_of_a_step() {
    let (bench, journal) = (Bench::new(), Journal::new());
    let script = client(
        r#"
        step pay write; sh -c 'echo $$ >child; sleep 1.2; touch late; sleep 60' &
        echo $$ >leader; echo waiting >&2; trap '' TERM; sleep 60; sleep 60"#,
    );
    let tool = bench.stepped(&script);
    let left = journal.enter_for(&*tool, &params("{}"), Duration::from_millis(700));
    let reason = "a time-out: it was killed at its deadline, in the middle of its step `pay`; stderr: waiting";
    assert_eq!(left, Left::Ended(unknown(reason)));
    assert_eq!(journal.log(), ["begin pay write {}"]);
    bench.must_die("leader", SOON);
    bench.must_die("child", SOON);
    std::thread::sleep(Duration::from_millis(800));
    assert!(!bench.path("late").exists());
}

fn the_deadline_holds_while_a_step_may_not_begin() {
    let (bench, journal) = (Bench::new(), Journal::new());
    let script = client("echo $$ >leader; step pay write; sleep 60");
    let tool = bench.stepped(&script);
    let mut side = journal.side();
    std::sync::Arc::get_mut(&mut side)
        .unwrap()
        .stopped
        .insert("pay");
    let args = params("{}");
    block_on(async {
        let entry = tool.enter(call(&args, Duration::from_millis(500)), side);
        let ended = tokio::time::timeout(Duration::from_millis(1_500), entry).await;
        assert!(ended.is_err(), "{ended:?}");
    });
    bench.must_die("leader", SOON);
    assert_eq!(journal.log(), ["stopped pay"]);
}

fn dropping_an_entry_kills_the_program() {
    let (bench, journal) = (Bench::new(), Journal::new());
    let script = client("step pay write; echo $$ >leader; sleep 1; touch late");
    let tool = bench.stepped(&script);
    block_on(async {
        let args = params("{}");
        let mut entry = tool.enter(call(&args, PLENTY), journal.side());
        while bench.written("leader").is_none() {
            let ended = tokio::time::timeout(Duration::from_millis(5), &mut entry).await;
            assert!(ended.is_err());
        }
    });
    bench.must_die("leader", SOON);
    std::thread::sleep(Duration::from_millis(1_100));
    assert!(!bench.path("late").exists());
}

fn children_that_outlive_their_program_are_killed() {
    let (bench, journal) = (Bench::new(), Journal::new());
    let script = client(
        r#"
        sh -c 'echo $$ >child; exec sleep 60' &
        while [ ! -s child ]; do sleep 0.01; done; result 1"#,
    );
    assert_eq!(enter(&bench, &journal, &script), Left::Ended(done("1")));
    bench.must_die("child", SOON);
}

fn unicode_passes_both_ways() {
    let (bench, journal) = (Bench::new(), Journal::new());
    let script = client(
        r#"
        printf '%s\n' "$opening" >opening
        step 'größe 📦' write '{"wert":"naïve\n\u0001 𝄞"}'; printf '%s\n' "$told" >>told
        case $told in '{"run":'*) done_ 'größe 📦' '"已获批准"';; esac
        echo '{"interrupt":{"name":"好","question":"请批准或拒绝"}}'; sleep 60"#,
    );
    let tool = bench.stepped(&script);
    let args = params(r#"{"text":"日本語\u2028\"\\"}"#);
    assert_eq!(journal.enter(&*tool, &args), Left::Dropped);
    let log = journal.log();
    assert_eq!(
        log[..2],
        [
            "begin größe 📦 write {\"wert\":\"naïve\\n\\u0001 𝄞\"}",
            "done größe 📦: \"已获批准\"",
        ]
    );
    assert!(log[2].contains("data: String(\"请批准或拒绝\")"), "{log:?}");
    let told: Value = serde_json::from_str(&bench.wait_for("told")).unwrap();
    assert_eq!(
        told,
        json!({"run": {"name": "größe 📦", "key": "key of größe 📦"}})
    );
    journal.answer(json!("同意"));
    // The answer is there, and the program then sleeps too long.
    let left = journal.enter_for(&*tool, &args, Duration::from_millis(700));
    let reason = "a time-out: it was killed at its deadline, without a result or an error";
    assert_eq!(left, Left::Ended(unknown(reason)));
    let opening: Value = serde_json::from_str(&bench.wait_for("opening")).unwrap();
    let expected = json!({
        "args": {"text": "日本語\u{2028}\"\\"},
        "answers": {"好": {"answer": "同意"}},
        "steps": {"größe 📦": {"result": "已获批准"}},
    });
    assert_eq!(opening, expected);
}

fn a_program_that_cannot_be_started_has_failed() {
    let bench = Bench::new();
    let tool = crate::bench::stepped(vec!["/no/such/program".to_owned()], bench.cwd());
    let left = Journal::new().enter(&*tool, &params("{}"));
    let Left::Ended(Outcome::Failed { error }) = left else {
        panic!("{left:?}")
    };
    assert_eq!(
        error,
        "not started: the program `/no/such/program` was not found, or the interpreter that its first line names"
    );
    let left = Journal::new().enter_for(&*bench.stepped("true"), &params("{}"), Duration::ZERO);
    let over = "not started: its time was over before it could be started";
    assert_eq!(left, Left::Ended(failed(over)));
}

fn the_example_of_the_documentation_works() {
    let documentation = include_str!("../../../../docs/tools.md");
    let (_, example) = documentation.split_once("```sh\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    let (bench, journal) = (Bench::new(), Journal::new());
    let tool = bench.stepped(example);
    let args = params(r#"{"order":"A 7"}"#);
    assert_eq!(journal.enter(&*tool, &args), Left::Dropped);
    let asked = journal.log();
    assert!(
        asked[0].contains("title: \"Refund order A 7?\""),
        "{asked:?}"
    );
    assert!(!bench.path("ledger").exists());
    journal.answer(json!({"approved": true}));
    for _ in 0..2 {
        let left = journal.enter(&*tool, &args);
        assert_eq!(left, Left::Ended(done("refunded")));
        assert_eq!(bench.wait_for("ledger"), "A 7 key of pay");
    }
    let expected = [
        r#"begin pay write {"order":"A 7"}"#,
        r#"done pay: "paid""#,
        "ended pay",
    ];
    assert_eq!(journal.log(), expected);

    let rejected = Journal::new();
    assert_eq!(rejected.enter(&*tool, &args), Left::Dropped);
    rejected.answer(json!({"approved": false}));
    let left = rejected.enter(&*tool, &args);
    assert_eq!(left, Left::Ended(failed("the refund was not approved")));
}
