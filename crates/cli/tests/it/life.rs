//! From an input to its end, through stops, restarts and crashes.

use std::{fs, process::Stdio, thread::sleep, time::Duration};

use serde_json::json;

use crate::support::{World, asked, pending, tool_contents};

const REFUND: [&str; 4] = [
    "run",
    "refund/agent.yaml",
    "--input",
    "Please refund order 1001",
];

#[test]
fn a_refund_stops_is_approved_and_happens_once() {
    let world = World::new();
    let stopped = world.json(3, &[&REFUND[..], &["--thread", "monday"]].concat());
    assert_eq!(stopped["status"], "waiting");
    assert_eq!(stopped["cause"], "human_approval");
    assert_eq!(stopped["output"], json!(null));
    let interrupt = &stopped["__interrupt__"][0];
    assert_eq!(interrupt["kind"], "approval");
    let request = &interrupt["value"]["action_requests"][0];
    assert_eq!(request["name"], "issue_refund");
    assert_eq!(request["args"]["amount"], "49.90");
    assert_eq!(
        interrupt["value"]["review_configs"],
        json!([{"action_name": "issue_refund", "allowed_decisions": ["approve", "edit", "reject"]}])
    );
    assert_eq!(world.effects(), 0);

    // The definition is in the store: neither the file nor the folder is needed any more.
    let store = format!("sqlite:{}", world.path().join("holdpoint.db").display());
    let elsewhere = world.path().join("refund");
    fs::remove_file(elsewhere.join("agent.yaml")).unwrap();
    let output = world
        .command()
        .current_dir(&elsewhere)
        .args(["resume", "monday", "--approve", "--json", "--store", &store])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    let done: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(done["status"], "finished");
    assert_eq!(done.get("__interrupt__"), None);
    assert_eq!(tool_contents(&done).len(), 2);
    assert!(
        done["output"]
            .as_str()
            .unwrap()
            .starts_with("The refund is on its way")
    );
    assert_eq!(world.effects(), 1);
}

#[test]
fn a_rejection_is_read_by_the_model_and_nothing_happens() {
    let world = World::new();
    world.json(3, &[&REFUND[..], &["--thread", "a"]].concat());
    let done = world.json(0, &["resume", "a", "--reject", "the order was never paid"]);
    assert_eq!(
        tool_contents(&done)[1],
        "User rejected the tool call for `issue_refund` with reason: the order was never paid"
    );
    world.json(3, &[&REFUND[..], &["--thread", "b"]].concat());
    let done = world.json(0, &["resume", "b", "--reject"]);
    assert!(tool_contents(&done)[1].contains("The tool was not executed"));
    assert_eq!(world.effects(), 0);
}

#[test]
fn an_edited_call_runs_in_place_of_the_models_and_the_model_is_told() {
    let world = World::new();
    world.json(3, &[&REFUND[..], &["--thread", "a"]].concat());
    let edit = r#"[{"type":"edit","edited_action":{"name":"issue_refund","args":{"order_id":"1001","amount":"5.00"}}}]"#;
    let done = world.json(0, &["resume", "a", "--decisions", edit]);
    let content = tool_contents(&done)[1];
    assert!(content.contains(
        r#"Executed instead: issue_refund with arguments {"amount":"5.00","order_id":"1001"}"#
    ));
    let ledger = fs::read_to_string(world.path().join("ledger.jsonl")).unwrap();
    assert!(
        ledger.contains(r#""amount":"5.00""#) && !ledger.contains("49.90"),
        "{ledger}"
    );
    // The model's own call stays in the transcript as it was.
    assert!(done["messages"].to_string().contains("49.90"));
}

#[test]
fn a_response_takes_the_place_of_the_call() {
    let world = World::new();
    let gate = "{allowed_decisions: [respond, reject], description: 'Who knows?'}";
    let rules =
        "  - when: {turn: 1}\n    call: [{tool: act, args: {n: 1}}]\n  - say: 'It is {result}'\n";
    let file = world.agent("oracle", gate, rules);
    let stopped = world.json(3, &["run", &file, "--input", "x", "--thread", "a"]);
    let request = &stopped["__interrupt__"][0]["value"]["action_requests"][0];
    assert_eq!(request["description"], "Who knows?");
    let done = world.json(
        0,
        &[
            "resume",
            "a",
            "--decisions",
            r#"[{"type":"respond","message":"42"}]"#,
        ],
    );
    assert_eq!(tool_contents(&done), ["42"]);
    assert_eq!(done["output"], "It is 42");
    assert_eq!(world.effects(), 0);
}

#[test]
fn a_batch_is_decided_by_position_or_by_id_in_any_order() {
    let world = World::new();
    let run = |thread| {
        world.json(
            3,
            &[
                "run",
                "file-manager/agent.yaml",
                "--input",
                "同时处理两件事",
                "--thread",
                thread,
            ],
        )
    };
    let workspace = world.path().join("file-manager/workspace");
    run("a");
    let by_position = r#"[{"type":"approve"},{"type":"reject","message":"还要用"}]"#;
    let done = world.json(0, &["resume", "a", "--decisions", by_position]);
    assert_eq!(tool_contents(&done).len(), 2);
    assert!(workspace.join("readme.txt").exists() && workspace.join("temp.txt").exists());

    let ids = asked(&run("b"));
    let by_id = json!({"decisions": [
        {"type": "approve", "action_id": ids[1]},
        {"type": "reject", "action_id": ids[0]},
    ]});
    world.json(0, &["resume", "b", "--decisions", &by_id.to_string()]);
    assert!(!workspace.join("temp.txt").exists());
}

#[test]
fn one_conversation_stops_several_times_and_takes_new_input_after() {
    let world = World::new();
    let run = [
        "run",
        "file-manager/agent.yaml",
        "--thread",
        "files",
        "--input",
    ];
    let done = world.json(0, &[&run[..], &["读取 config.json 的内容"]].concat());
    assert_eq!(done.get("__interrupt__"), None);
    let first = pending(&world.json(3, &[&run[..], &["整理一下工作区"]].concat()));
    let second = pending(&world.json(3, &["resume", "file-manager/files", "--approve"]));
    assert_ne!(first, second);
    let done = world.json(0, &["resume", "files", "--interrupt", &second, "--approve"]);
    assert_eq!(done["status"], "finished");
    let runs = world.hold(&["runs", "--json"]).ends(0).lines();
    let statuses: Vec<_> = runs
        .iter()
        .map(|run| run["status"].as_str().unwrap())
        .collect();
    assert_eq!(statuses, ["finished", "finished"]);
}

#[test]
fn what_waits_takes_no_input_and_shows_again_what_it_asks() {
    let world = World::new();
    let stopped = world.json(3, &[&REFUND[..], &["--thread", "a"]].concat());
    let before = world.picture("a");
    let refused = world.json(4, &[&REFUND[..], &["--thread", "a"]].concat());
    assert_eq!(refused["code"], "interrupt_pending");
    assert_eq!(refused["details"]["pending"], json!([pending(&stopped)]));
    let shown = world.json(3, &["run", "refund/agent.yaml", "--thread", "a"]);
    assert_eq!(shown, stopped);
    let shown = world.json(3, &["resume", "a"]);
    assert_eq!(shown, stopped);
    assert_eq!(world.picture("a"), before);
    world.json(0, &["resume", "a", "--approve"]);
    let refused = world.json(2, &["run", "refund/agent.yaml", "--thread", "a"]);
    assert_eq!(refused["code"], "usage");
    world.json(3, &[&REFUND[..], &["--thread", "a"]].concat());
}

#[test]
fn a_run_that_was_killed_is_gone_on_with_and_does_nothing_twice() {
    let world = World::new();
    let rules =
        "  - when: {turn: 1}\n    call: [{tool: act, args: {n: 1}}]\n  - say: 'Done: {result}'\n";
    let file = world.agent("worker", "true", rules);
    for (thread, go_on) in [
        ("a", vec!["recover"]),
        ("b", vec!["run", &file, "--thread", "b"]),
    ] {
        world.json(3, &["run", &file, "--input", "x", "--thread", thread]);
        let mut killed = world
            .command()
            .args(["resume", thread, "--approve"])
            .env("LEDGER_DELAY_AFTER_MS", "60000")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let effects = usize::from(thread == "b") + 1;
        while world.effects() < effects {
            sleep(Duration::from_millis(10));
        }
        killed.kill().unwrap();
        killed.wait().unwrap();
        let shown = world.json(3, &["show", thread]);
        assert_eq!(shown["status"], "running");
        let refused = world.json(4, &["run", &file, "--input", "y", "--thread", thread]);
        assert_eq!(refused["code"], "run_active");
        let done = world.json(0, &go_on);
        assert_eq!(done["status"], "finished");
        assert_eq!(world.effects(), effects);
    }
    assert_eq!(world.hold(&["recover", "--json"]).ends(0).stdout, "");
}

#[test]
fn what_another_process_drives_is_followed_to_its_stop() {
    let world = World::new();
    let rules = "  - {delay: 1500ms, say: 'At last.'}\n";
    let file = world.agent("slow", "true", rules);
    let mut first = world
        .command()
        .args(["run", &file, "--input", "x", "--thread", "a", "--json"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    while world.hold(&["show", "a"]).code != 3 {
        sleep(Duration::from_millis(20));
    }
    let followed = world.hold(&["run", &file, "--thread", "a"]).ends(0);
    assert_eq!(followed.stdout, "At last.\n");
    assert!(followed.stderr.contains("■ run finished"), "{followed:?}");
    assert_eq!(first.wait().unwrap().code(), Some(0));
    let asked = world.hold(&["trace", "a", "--json"]).lines();
    let asked = asked
        .iter()
        .filter(|event| event["type"] == "model_started");
    assert_eq!(asked.count(), 1);
}

#[test]
fn a_cancel_is_left_to_the_process_that_drives() {
    let world = World::new();
    let file = world.agent("slow", "true", "  - {delay: 60s, say: 'Never.'}\n");
    let mut driver = world
        .command()
        .args(["run", &file, "--input", "x", "--thread", "a", "--json"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    while world.hold(&["show", "a"]).code != 3 {
        sleep(Duration::from_millis(20));
    }
    world.json(0, &["cancel", "a"]);
    assert_eq!(driver.wait().unwrap().code(), Some(1));
    assert_eq!(world.json(1, &["show", "a"])["status"], "cancelled");
}

#[test]
fn a_person_says_what_became_of_a_write_that_nobody_knows_about() {
    let world = World::new();
    let file = world.dying("lost");
    let run = |thread: &str| world.json(3, &["run", &file, "--input", "x", "--thread", thread]);
    let stopped = run("a");
    assert_eq!(stopped["cause"], "write_unknown");
    assert_eq!(stopped["__interrupt__"][0]["kind"], "error");
    let before = world.picture("a");
    for decision in ["approve", "compensate"] {
        let decision = format!(r#"[{{"type":"{decision}"}}]"#);
        let refused = world.json(4, &["resume", "a", "--decisions", &decision]);
        assert_eq!(refused["code"], "misfit");
    }
    assert_eq!(world.picture("a"), before);
    let committed = r#"[{"type":"committed","result":{"receipt":7}}]"#;
    let done = world.json(0, &["resume", "a", "--decisions", committed]);
    assert_eq!(tool_contents(&done), [r#"{"receipt":7}"#]);

    run("b");
    world.write("lost/alive", "");
    let done = world.json(
        0,
        &[
            "resume",
            "b",
            "--decisions",
            r#"[{"type":"not_committed"}]"#,
        ],
    );
    assert_eq!(tool_contents(&done)[0].trim(), "fine");
    let keys = fs::read_to_string(world.path().join("lost/keys")).unwrap();
    let keys: Vec<&str> = keys.lines().collect();
    // One call for the first thread; two under one key for the second.
    assert_eq!(keys.len(), 3);
    assert!(keys[0] != keys[1] && keys[1] == keys[2], "{keys:?}");
}

#[test]
fn of_several_questions_one_must_be_named() {
    let world = World::new();
    let file = world.dying("lost");
    let rules = "  - when: {turn: 1}\n    call: [{tool: act, args: {n: 1}}, {tool: act, args: {n: 2}}]\n  - say: Over.\n";
    let scenario = format!("apiVersion: holdpoint/v1\nkind: Scenario\nrules:\n{rules}");
    world.write("lost/scenario.yaml", &scenario);
    let stopped = world.json(3, &["run", &file, "--input", "x", "--thread", "a"]);
    let pending = stopped["__interrupt__"].as_array().unwrap();
    assert_eq!(pending.len(), 2);
    let committed = ["resume", "a", "--decisions", r#"[{"type":"committed"}]"#];
    let refused = world.json(4, &committed);
    assert_eq!(refused["code"], "ambiguous");
    assert_eq!(
        refused["details"]["pending"],
        json!([pending[0]["id"], pending[1]["id"]])
    );
    let id = pending[1]["id"].as_str().unwrap();
    world.json(3, &[&committed[..], &["--interrupt", id]].concat());
    world.json(0, &committed);
}

#[test]
fn a_cancelled_run_ends_and_its_thread_takes_new_input() {
    let world = World::new();
    world.json(3, &[&REFUND[..], &["--thread", "a"]].concat());
    let done = world.json(0, &["cancel", "a"]);
    assert_eq!(done["status"], "cancelled");
    assert_eq!(done.get("__interrupt__"), None);
    assert!(tool_contents(&done)[1].contains("was not executed"));
    assert_eq!(world.json(1, &["show", "a"])["status"], "cancelled");
    assert_eq!(world.json(4, &["cancel", "a"])["code"], "run_over");
    assert_eq!(
        world.json(4, &["resume", "a", "--approve"])["code"],
        "not_pending"
    );
    world.json(3, &[&REFUND[..], &["--thread", "a"]].concat());
    assert_eq!(world.effects(), 0);
}

#[test]
fn a_run_that_fails_says_why_and_ends_with_1() {
    let world = World::new();
    let rules = "  - call: [{tool: act, args: {n: 1}}]\n";
    let file = world.agent("loop", "false", rules);
    let text = fs::read_to_string(world.path().join(&file)).unwrap();
    world.write(&file, &format!("{text}  limits: {{turns: 2}}\n"));
    let failed = world.json(1, &["run", &file, "--input", "x", "--thread", "a"]);
    assert_eq!(failed["status"], "failed");
    assert!(
        failed["cause"].is_string() && failed["error"].is_string(),
        "{failed}"
    );
    let again = world.hold(&["run", &file, "--input", "x"]).ends(1);
    assert!(again.stderr.contains("■ run failed"), "{again:?}");
}

#[test]
fn a_model_that_refuses_did_not_time_out() {
    let world = World::new();
    for (with, cause) in [("rejected", "model_error"), ("timeout", "model_timeout")] {
        let rules = format!("  - fail: {{with: {with}}}\n");
        let file = world.agent(with, "false", &rules);
        let stopped = world.json(3, &["run", &file, "--input", "x", "--thread", with]);
        assert_eq!(stopped["cause"], cause);
        let shown = world.json(3, &["show", with]);
        assert_eq!(shown["checkpoint"]["cause"], cause);
        assert_eq!(shown["checkpoint"]["resume_policy"], "retry_from_step");
        let failed = world.json(1, &["resume", with, "--reject"]);
        assert_eq!(failed["cause"], "model_unavailable");
    }
}

#[test]
fn a_store_that_forgets_takes_only_agents_that_never_ask() {
    let world = World::new();
    let refused = world.json(2, &[&REFUND[..], &["--store", "memory:"]].concat());
    assert_eq!(refused["code"], "volatile_store");
    let file = world.agent("free", "false", "  - say: Hello.\n");
    let done = world
        .hold(&["run", &file, "--input", "x", "--store", "memory:"])
        .ends(0);
    assert_eq!(done.stdout, "Hello.\n");
}
