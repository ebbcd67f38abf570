//! A restored backup, as whoever lost the original meets it.

use std::{process::Stdio, time::Duration};

use serde_json::{Value, json};

use crate::{
    served::Served,
    support::{World, pending},
};

const COPY: &str = "sqlite:copy.db";

/// A refund that waits, a backup of that, and an original in which it is approved and paid.
fn lost() -> World {
    let world = World::with_examples();
    let input = "Please refund order 1001";
    world
        .hold(&[
            "run",
            "refund/agent.yaml",
            "--input",
            input,
            "--thread",
            "s",
        ])
        .ends(3);
    world.hold(&["backup", "copy.db"]).ends(0);
    world.hold(&["resume", "s", "--approve"]).ends(0);
    assert_eq!(world.effects(), 1);
    world
}

fn on_copy(world: &World, code: i32, args: &[&str]) -> Value {
    world.json(code, &[args, &["--store", COPY]].concat())
}

/// Everything that the copy shows of the thread.
fn picture(world: &World) -> String {
    let show = world.hold(&["show", "s", "--json", "--store", COPY]);
    let trace = world.hold(&["trace", "s", "--json", "--store", COPY]);
    show.stdout + &trace.ends(0).stdout
}

#[test]
fn a_backup_is_read_and_nothing_is_done_in_it() {
    let world = lost();
    let before = picture(&world);
    let refusals: [&[&str]; 9] = [
        &["resume", "s", "--approve"],
        &["resume", "s"],
        &[
            "run",
            "refund/agent.yaml",
            "--input",
            "Please refund order 1002",
        ],
        &["run", "refund/agent.yaml", "--thread", "s"],
        &["recover"],
        &["cancel", "s"],
        &["pause", "s"],
        &["continue", "s"],
        &["grants", "--revoke", "grt_01a1e1ba1f137001a7088dfee295d7a7"],
    ];
    for refused in refusals {
        let refused = on_copy(&world, 2, refused);
        assert_eq!(refused["code"], "not_adopted", "{refused}");
    }
    assert_eq!(picture(&world), before, "something was changed");
    let said = world
        .hold(&["resume", "s", "--approve", "--store", COPY])
        .ends(2);
    for words in [
        "error: `sqlite:copy.db` is a backup of 20",
        "make sure that the original is gone for good",
        "help: adopt it with: holdpoint recover --adopt --store sqlite:copy.db",
    ] {
        assert!(said.stderr.contains(words), "{}", said.stderr);
    }
    for read in ["runs", "grants"] {
        world.hold(&[read, "--store", COPY]).ends(0);
    }
    world.hold(&["keys", "list", "--store", COPY]).ends(0);
    world
        .hold(&["backup", "second.db", "--store", COPY])
        .ends(0);
    assert_eq!(world.effects(), 1);
}

#[test]
fn an_adopted_refund_asks_before_it_goes_on_and_is_paid_once() {
    let world = lost();
    let old = pending(&on_copy(&world, 3, &["show", "s"]));
    let adopted = world.hold(&["recover", "--adopt", "--store", COPY]).ends(3);
    assert!(
        adopted
            .stderr
            .contains("adopted `sqlite:copy.db`, a backup of 20"),
        "{}",
        adopted.stderr
    );
    assert!(adopted.stderr.contains("1 thread asks before it goes on"));
    assert!(
        adopted.stdout.contains("was asked: issue_refund"),
        "{}",
        adopted.stdout
    );
    let shown = on_copy(&world, 3, &["show", "s"]);
    assert_eq!(shown["cause"], "system_restart");
    assert_ne!(pending(&shown), old);
    let gone = on_copy(
        &world,
        4,
        &["resume", "s", "--approve", "--interrupt", &old],
    );
    assert_eq!(gone["code"], "already_decided");
    assert_eq!(gone["details"]["status"], "canceled");

    let asked = on_copy(&world, 3, &["resume", "s", "--approve"]);
    assert_eq!(asked["cause"], "human_approval");
    assert_eq!(asked["__interrupt__"][0]["supersedes"], old.as_str());
    assert_eq!(world.effects(), 1, "going on pays nothing");
    on_copy(
        &world,
        0,
        &["resume", "s", "--reject", "It was paid before"],
    );
    assert_eq!(world.effects(), 1);
    // What was adopted is a store like any other.
    let nothing = world.hold(&["recover", "--adopt", "--store", COPY]).ends(0);
    assert!(nothing.stderr.contains("nothing was left behind"));
    let trace = world.hold(&["trace", "s", "--store", COPY]).ends(0);
    assert!(
        trace.stdout.contains("restored from a backup of"),
        "{}",
        trace.stdout
    );
}

#[test]
fn whoever_says_so_twice_pays_twice() {
    let world = lost();
    world.hold(&["recover", "--adopt", "--store", COPY]).ends(3);
    on_copy(&world, 3, &["resume", "s", "--approve"]);
    on_copy(&world, 0, &["resume", "s", "--approve"]);
    assert_eq!(world.effects(), 2);
}

#[test]
fn a_server_refuses_a_backup_at_once_and_adopts_it_if_it_is_told_to() {
    let world = lost();
    let serve = [
        "serve",
        "--dev",
        "refund/agent.yaml",
        "--store",
        COPY,
        "--listen",
        "127.0.0.1:0",
    ];
    let refused = world.hold(&serve).ends(2);
    assert!(
        refused.stderr.contains("is a backup of 20"),
        "{}",
        refused.stderr
    );
    assert!(
        refused.stderr.contains("the same command with `--adopt`"),
        "{}",
        refused.stderr
    );
    assert!(!refused.stderr.contains("listens"), "{}", refused.stderr);

    let served = Served::start(
        &world,
        &["--dev", "refund/agent.yaml", "--store", COPY, "--adopt"],
    );
    std::thread::sleep(Duration::from_millis(700));
    assert_eq!(world.effects(), 1, "nothing went on");
    let body =
        json!({"agent_id": "refund", "session_id": "new", "input": "Please refund order 1002"});
    assert_eq!(served.ask("POST", "/api/v1/runs", None, Some(&body)).0, 201);
    let shown = on_copy(&world, 3, &["show", "s"]);
    assert_eq!(shown["cause"], "system_restart");
    let run = shown["run_id"].as_str().unwrap();
    let yes = json!({"decisions": [{"type": "approve"}]});
    let (status, said) = served.ask(
        "POST",
        &format!("/api/v1/runs/{run}/resume"),
        None,
        Some(&yes),
    );
    assert!(status < 300, "{status} {said}");
    let wait = || on_copy(&world, 3, &["show", "s"])["cause"].clone();
    while wait() != "human_approval" {}
    assert_eq!(world.effects(), 1);
}

#[test]
fn a_configuration_with_one_store_that_is_a_backup_is_refused() {
    let world = lost();
    std::fs::copy(world.path().join("copy.db"), world.path().join("chats.db")).unwrap();
    let text = std::fs::read_to_string(world.path().join("server.yaml")).unwrap();
    let replaced = text.replace("sqlite:approval-agent/chat.db", "sqlite:chats.db");
    assert_ne!(replaced, text, "the example maps `redis` to a file");
    world.write("server.yaml", &replaced);
    let refused = world
        .hold(&[
            "serve",
            "--dev",
            "--config",
            "server.yaml",
            "--listen",
            "127.0.0.1:0",
        ])
        .ends(2);
    assert!(
        refused.stderr.contains("chats.db` is a backup"),
        "{}",
        refused.stderr
    );
}

#[test]
fn killed_while_it_adopts_it_is_a_backup_or_adopted_and_every_thread_is_asked_about_once() {
    let world = World::with_examples();
    let rules = "  - when: {turn: 1}\n    call: [{tool: act, args: {n: 1}}]\n  - say: 'done'\n";
    let agent = world.agent("many", "true", rules);
    let threads: Vec<String> = (0..40).map(|number| format!("t{number}")).collect();
    for thread in &threads {
        world
            .hold(&["run", &agent, "--input", "go", "--thread", thread])
            .ends(3);
    }
    world.hold(&["backup", "copy.db"]).ends(0);
    for millis in [1, 5, 10, 15, 20, 30, 40, 60] {
        let mut adopting = world
            .command()
            .args(["recover", "--adopt", "--store", COPY])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(millis));
        let _ = adopting.kill();
        adopting.wait().unwrap();
    }
    let adopted = world.hold(&["recover", "--adopt", "--store", COPY]);
    assert!([0, 3].contains(&adopted.code), "{adopted:?}");
    for thread in &threads {
        let trace = world
            .hold(&["trace", thread, "--json", "--store", COPY])
            .ends(0);
        let restored = trace
            .lines()
            .iter()
            .filter(|event| event["type"] == "restored")
            .count();
        assert_eq!(restored, 1, "{thread}");
        let shown = on_copy(&world, 3, &["show", thread]);
        assert_eq!(shown["cause"], "system_restart");
        pending(&shown);
    }
    assert_eq!(world.effects(), 0);
}
