//! Runs as OpenTelemetry traces, as a collector gets them.

use std::{fs, net::TcpListener, process::Stdio, time::Duration};

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    collector::{Collector, Span, faults},
    served::Served,
    support::World,
};

const REFUND: [&str; 6] = [
    "run",
    "refund/agent.yaml",
    "--input",
    "Please refund order 1001",
    "--thread",
    "monday",
];

/// A folder whose commands tell this collector.
fn traced(collector: &Collector) -> World {
    let mut world = World::new();
    world.set("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url);
    world
}

fn names(spans: &[Span]) -> Vec<&str> {
    spans.iter().map(|span| span.name.as_str()).collect()
}

/// The one span with this name.
#[track_caller]
fn one<'a>(spans: &'a [Span], name: &str) -> &'a Span {
    let found: Vec<&Span> = spans.iter().filter(|span| span.name == name).collect();
    assert_eq!(found.len(), 1, "{name}: {spans:#?}");
    found[0]
}

fn run_id(object: &Value) -> String {
    object["run_id"].as_str().unwrap().to_owned()
}

/// What a refund that was approved is.
const APPROVED: [&str; 7] = [
    "chat",
    "execute_tool get_order",
    "chat",
    "wait human_approval",
    "execute_tool issue_refund",
    "chat",
    "invoke_agent refund",
];

#[track_caller]
fn is_the_refund(run: &str, spans: &[Span]) {
    assert_eq!(faults(run, spans), Vec::<String>::new(), "{spans:#?}");
    assert_eq!(names(spans), APPROVED);
    let whole = one(spans, "invoke_agent refund");
    assert!(spans.iter().all(|it| it.parent == whole.id || it == whole));
}

#[test]
fn a_run_that_is_parked_by_one_process_and_finished_by_another_is_one_trace() {
    let collector = Collector::start();
    let mut world = traced(&collector);
    world.set("OTEL_SERVICE_NAME", "desk");
    world.set(
        "OTEL_RESOURCE_ATTRIBUTES",
        "deployment.environment.name=test",
    );
    world.set("OTEL_EXPORTER_OTLP_HEADERS", "x-key=abc%20def");
    let parked = world.json(3, &REFUND);
    let run = run_id(&parked);
    let so_far = collector.spans();
    assert_eq!(names(&so_far), APPROVED[..3], "what goes on is not told");
    world.json(0, &["resume", "monday", "--approve"]);
    let spans = collector.spans();
    is_the_refund(&run, &spans);

    let processes: std::collections::BTreeSet<&String> =
        spans.iter().map(|it| &it.resource["process.pid"]).collect();
    assert_eq!(processes.len(), 2);
    for span in &spans {
        assert_eq!(span.resource["service.name"], "desk");
        assert_eq!(span.resource["deployment.environment.name"], "test");
        assert_eq!(span.attributes["holdpoint.run.id"], run);
        assert_eq!(span.attributes["gen_ai.agent.name"], "refund");
        let conversation = &span.attributes["gen_ai.conversation.id"];
        assert_eq!(parked["thread_id"], **conversation);
    }
    let said = |name: &str, key: &str| one(&spans, name).attributes[key].clone();
    let paid = "execute_tool issue_refund";
    assert_eq!(said(paid, "gen_ai.operation.name"), "execute_tool");
    assert_eq!(said(paid, "gen_ai.tool.name"), "issue_refund");
    assert_eq!(said(paid, "holdpoint.effect"), "write");
    assert_eq!(said(paid, "holdpoint.outcome"), "done");
    assert_eq!(said("wait human_approval", "holdpoint.outcome"), "resolved");
    let interrupt = &parked["__interrupt__"][0]["id"];
    assert_eq!(
        *interrupt,
        said("wait human_approval", "holdpoint.interrupt.id")
    );
    assert_eq!(said("invoke_agent refund", "holdpoint.outcome"), "finished");
    for (head, _) in collector.requests() {
        assert!(head.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{head}");
        assert!(head.contains("x-key: abc def\r\n"), "{head}");
    }
}

#[test]
fn a_server_that_is_killed_while_a_run_waits_leaves_it_in_one_trace() {
    let collector = Collector::start();
    let world = traced(&collector);
    let store = [
        "--dev",
        "refund/agent.yaml",
        "--store",
        "sqlite:holdpoint.db",
    ];
    let served = Served::start(&world, &store);
    let body =
        json!({"agent_id": "refund", "session_id": "monday", "input": "Please refund order 1001"});
    let (status, begun) = served.ask("POST", "/api/v1/runs", None, Some(&body));
    assert_eq!(status, 201);
    let run = run_id(&serde_json::from_str(&begun).unwrap());
    collector.wait_for(3);
    // By SIGKILL: it says goodbye to nobody.
    drop(served);
    world.hold(&["resume", "monday", "--approve"]).ends(0);
    is_the_refund(&run, &collector.wait_for(APPROVED.len()));
}

#[test]
fn two_servers_on_one_store_tell_one_trace_and_each_span_once() {
    let collector = Collector::start();
    let world = traced(&collector);
    let store = [
        "--dev",
        "refund/agent.yaml",
        "--store",
        "sqlite:holdpoint.db",
    ];
    let (one, other) = (Served::start(&world, &store), Served::start(&world, &store));
    let mut runs = Vec::new();
    for session in ["a", "b", "c", "d"] {
        let body = json!({"agent_id": "refund", "session_id": session, "input": "Please refund order 1001"});
        let (status, begun) = one.ask("POST", "/api/v1/runs", None, Some(&body));
        assert_eq!(status, 201);
        runs.push(run_id(&serde_json::from_str(&begun).unwrap()));
    }
    for run in &runs {
        let path = format!("/api/v1/runs/{run}");
        let waits = |text: &str| {
            let shown: Value = serde_json::from_str(text).unwrap();
            shown["status"] == "waiting"
        };
        while !waits(&one.ask("GET", &path, None, None).1) {}
        let yes = json!({"decisions": [{"type": "approve"}]});
        let answer = format!("{path}/resume");
        let (status, said) = other.ask("POST", &answer, None, Some(&yes));
        assert!(status < 300, "{status}: {said}");
    }
    let spans = collector.wait_for(runs.len() * APPROVED.len());
    for run in &runs {
        let trace = run.strip_prefix("run_").unwrap();
        let of_run = spans.iter().filter(|it| it.trace == trace).cloned();
        is_the_refund(run, &of_run.collect::<Vec<_>>());
    }
    assert_eq!(spans.len(), runs.len() * APPROVED.len());
}

#[test]
fn what_a_killed_process_began_is_in_the_trace_and_said_to_be_lost() {
    let collector = Collector::start();
    let world = traced(&collector);
    let rules = "  - when: {turn: 1}\n    call: [{tool: act, args: {n: 1}}]\n  - say: 'Done.'\n";
    let file = world.agent("slow", "false", rules);
    let text = fs::read_to_string(world.path().join(&file)).unwrap();
    let text = text.replace(
        "[holdpoint-example-ledger, pay-once]",
        "[sh, -c, 'test -e alive || sleep 60; echo fine']",
    );
    world.write(&file, &text.replace("timeout: 2s", "timeout: 60s"));
    let mut killed = world
        .command()
        .args(["run", &file, "--input", "x", "--thread", "a"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // What it had sent by then is there; what it was doing is not.
    collector.wait_for(1);
    killed.kill().unwrap();
    killed.wait().unwrap();
    world.write("slow/alive", "");
    world.write("alive", "");
    let done = world.json(0, &["resume", "slow/a"]);
    let spans = collector.spans();
    assert_eq!(
        faults(&run_id(&done), &spans),
        Vec::<String>::new(),
        "{spans:#?}"
    );
    let tried: Vec<(&str, &str)> = spans
        .iter()
        .filter(|span| span.name == "execute_tool act")
        .map(|span| {
            (
                &*span.attributes["holdpoint.attempt"],
                &*span.attributes["holdpoint.outcome"],
            )
        })
        .collect();
    assert_eq!(tried, [("1", "lost"), ("2", "done")]);
    assert_eq!(spans.len(), 5, "{spans:#?}");
}

#[test]
fn nothing_that_is_said_asked_or_answered_leaves_the_machine() {
    const SECRET: &str = "xyzzy-4711";
    let collector = Collector::start();
    let world = traced(&collector);
    let rules = format!(
        "  - when: {{turn: 1}}\n    say: 'I shall {SECRET}.'\n    call: [{{tool: act, args: {{n: 1, s: {SECRET}}}}}]\n  \
         - when: {{turn: 2}}\n    call: [{{tool: act, args: {{n: 2, s: {SECRET}}}}}]\n  - say: 'It says {SECRET}.'\n"
    );
    let file = world.agent("clerk", "true", &rules);
    let run = ["run", &file, "--input", SECRET, "--thread", SECRET];
    world.json(3, &run);
    world.json(3, &["resume", SECRET, "--approve"]);
    let done = world.json(0, &["resume", SECRET, "--reject", SECRET]);
    assert!(done.to_string().contains(SECRET));
    let requests = collector.requests();
    let contains =
        |bytes: &[u8], text: &str| bytes.windows(text.len()).any(|it| it == text.as_bytes());
    assert!(
        requests
            .iter()
            .any(|(_, body)| contains(body, "execute_tool act"))
    );
    for (head, body) in &requests {
        assert!(!head.contains(SECRET) && !contains(body, SECRET));
    }
    assert_eq!(
        faults(&run_id(&done), &collector.spans()),
        Vec::<String>::new()
    );
}

#[test]
fn a_collector_that_is_away_changes_nothing_but_one_line() {
    let mut world = World::new();
    // Nobody listens there any more.
    let gone = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", gone.local_addr().unwrap());
    drop(gone);
    world.set("OTEL_EXPORTER_OTLP_ENDPOINT", &url);
    check_unheard(&world);
}

#[test]
fn a_collector_that_never_answers_holds_nobody_up() {
    let mut world = World::new();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    world.set("OTEL_EXPORTER_OTLP_ENDPOINT", &url);
    check_unheard(&world);
}

#[track_caller]
fn check_unheard(world: &World) {
    let begun = Instant::now();
    let parked = world.hold(&REFUND).ends(3);
    let done = world.hold(&["resume", "monday", "--approve"]).ends(0);
    assert!(
        begun.elapsed() < Duration::from_secs(15),
        "{:?}",
        begun.elapsed()
    );
    for said in [parked, done] {
        let complaints = said.stderr.lines().filter(|line| line.contains("traces"));
        assert_eq!(complaints.count(), 1, "{}", said.stderr);
    }
    assert_eq!(world.effects(), 1);
}

#[test]
fn nothing_is_sent_where_it_is_turned_off_and_what_is_not_there_is_said() {
    let collector = Collector::start();
    for (variable, value, is_said) in [
        ("OTEL_SDK_DISABLED", "true", false),
        ("OTEL_TRACES_EXPORTER", "none", false),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", true),
    ] {
        let mut world = traced(&collector);
        world.set(variable, value);
        let said = world.hold(&REFUND).ends(3);
        assert_eq!(
            said.stderr.contains("no traces are sent"),
            is_said,
            "{}",
            said.stderr
        );
    }
    assert_eq!(collector.requests().len(), 0);
}

/// Whoever looks for faults finds them, or finding none says nothing.
#[test]
fn a_trace_in_which_something_is_wrong_is_reported() {
    let collector = Collector::start();
    let world = traced(&collector);
    let run = run_id(&world.json(3, &REFUND));
    let cut = faults(&run, &collector.spans());
    assert!(cut.contains(&"0 roots".to_owned()), "{cut:?}");
    assert!(
        cut.contains(&"`chat` is a part of nothing".to_owned()),
        "{cut:?}"
    );
    world.json(0, &["resume", "monday", "--approve"]);
    let good = collector.spans();
    let doctored = |change: fn(&mut Vec<Span>)| {
        let mut spans = good.clone();
        change(&mut spans);
        faults(&run, &spans)
    };
    assert_eq!(doctored(|_| ()), Vec::<String>::new());
    assert_eq!(
        doctored(|spans| spans.push(spans[0].clone())),
        ["`chat` came twice"]
    );
    let torn = doctored(|spans| spans[1].trace = "0".repeat(32));
    assert_eq!(torn, ["`execute_tool get_order` is in another trace"]);
    let lost = doctored(|spans| spans[3].parent = "0".repeat(16));
    assert_eq!(lost, ["`wait human_approval` is a part of nothing"]);
    let early = doctored(|spans| spans[4].start = 0);
    assert_eq!(early, ["`execute_tool issue_refund` is out of its time"]);
}
