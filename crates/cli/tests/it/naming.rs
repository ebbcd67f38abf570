//! Which thread is meant, what is printed, and how commands end.

use std::fs;

use serde_json::{Value, json};

use crate::support::World;

fn keys(value: &Value) -> Vec<&str> {
    value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

#[test]
fn a_thread_is_named_by_id_by_agent_and_session_or_by_its_only_session() {
    let world = World::new();
    let (one, two) = (
        world.agent("one", "false", "  - say: One.\n"),
        world.agent("two", "false", "  - say: Two.\n"),
    );
    let first = world.json(0, &["run", &one, "--input", "x", "--thread", "same"]);
    assert_eq!(world.json(0, &["show", "same"])["agent"], "one");
    world.json(0, &["run", &two, "--input", "x", "--thread", "same"]);
    let several = world.json(2, &["show", "same"]);
    assert_eq!(several["code"], "ambiguous_thread");
    assert_eq!(
        several["details"]["candidates"],
        json!(["one/same", "two/same"])
    );
    assert_eq!(world.json(0, &["show", "two/same"])["agent"], "two");
    let id = first["thread_id"].as_str().unwrap();
    assert_eq!(world.json(0, &["show", id])["agent"], "one");
    for nobody in [
        "other",
        "one/other",
        "thr_00000000000000000000000000000000",
        "",
    ] {
        for command in [
            &["show", nobody][..],
            &["cancel", nobody],
            &["resume", nobody, "--approve"],
        ] {
            assert_eq!(world.json(4, command)["code"], "not_found");
        }
    }
    // A session may have a slash in its name, and then two readings.
    world.json(0, &["run", &two, "--input", "x", "--thread", "one/same"]);
    assert_eq!(
        world.json(2, &["show", "one/same"])["code"],
        "ambiguous_thread"
    );
    assert_eq!(
        world.json(0, &["show", "two/one/same"])["session"],
        "one/same"
    );
}

#[test]
fn a_session_without_a_name_gets_one() {
    let world = World::new();
    let file = world.agent("one", "false", "  - say: One.\n");
    let first = world.json(0, &["run", &file, "--input", "x"]);
    let second = world.json(0, &["run", &file, "--input", "x"]);
    assert_ne!(first["session"], second["session"]);
    assert!(first["session"].as_str().unwrap().starts_with("s-"));
    let plain = world.hold(&["run", &file, "--input", "x"]).ends(0);
    assert_eq!(plain.stdout, "One.\n");
    assert!(plain.stderr.starts_with("thread one/s-"), "{plain:?}");
}

#[test]
fn the_objects_have_exactly_the_keys_that_are_promised() {
    let world = World::new();
    let run = [
        "run",
        "refund/agent.yaml",
        "--input",
        "Please refund",
        "--thread",
        "a",
    ];
    let base = [
        "agent",
        "cause",
        "messages",
        "output",
        "run_id",
        "session",
        "status",
        "thread_id",
    ];
    let stopped = world.json(3, &run);
    assert_eq!(keys(&stopped), [&["__interrupt__"][..], &base].concat());
    let request = &stopped["__interrupt__"][0]["value"]["action_requests"][0];
    assert_eq!(keys(request), ["action_id", "args", "description", "name"]);
    let shown = world.json(3, &["show", "a"]);
    assert_eq!(
        keys(&shown),
        [
            &["__interrupt__", "agent", "cause", "checkpoint"][..],
            &base[2..]
        ]
        .concat()
    );
    assert_eq!(keys(&world.json(0, &["resume", "a", "--approve"])), base);
    let shown = world.json(0, &["show", "a"]);
    let checkpoint = &shown["checkpoint"];
    assert_eq!(checkpoint["status"], "completed");
    assert_eq!(
        checkpoint["completed_steps"],
        json!(["get_order", "issue_refund"])
    );
    let created = checkpoint["created_at"].as_str().unwrap();
    assert!(
        created.ends_with("+00:00") && created.contains('T'),
        "{created}"
    );
    let events = world.hold(&["trace", "a", "--json"]).ends(0).lines();
    for (at, event) in events.iter().enumerate() {
        assert_eq!(keys(event), ["at", "by", "event", "hash", "seq", "type"]);
        assert_eq!(event["seq"], at + 1);
    }
    let runs = world.hold(&["runs", "--json"]).ends(0).lines();
    assert_eq!(
        keys(&runs[0]),
        [
            "agent",
            "cause",
            "run_id",
            "session",
            "started_at",
            "status",
            "thread_id"
        ]
    );
    assert_eq!(runs[0]["run_id"], shown["run_id"]);
}

#[test]
fn a_command_line_that_cannot_be_read_ends_with_2() {
    let world = World::new();
    for args in [
        &["frobnicate"][..],
        &["run"],
        &["run", "refund/agent.yaml"],
        &["run", "refund/agent.yaml", "--input", "x", "--thread", ""],
        &["resume", "a", "--approve", "--reject"],
        &["resume", "a", "--interrupt", "seven"],
        &["show"],
        &["check"],
    ] {
        let plain = world.hold(args).ends(2);
        assert!(
            plain.stdout.is_empty() && plain.stderr.starts_with("error: "),
            "{plain:?}"
        );
        let object = world.json(2, args);
        assert_eq!(keys(&object), ["code", "details", "error"]);
        assert_eq!(object["code"], "usage");
        assert!(!object["error"].as_str().unwrap().contains('\n'));
    }
    assert!(!world.path().join("holdpoint.db").exists());
}

#[test]
fn a_store_that_is_none_is_named_and_left_as_it_is() {
    let world = World::new();
    world.write(
        "garbage.db",
        "this is no database, whatever its name says; it is just a text that is long enough",
    );
    let garbage = fs::read(world.path().join("garbage.db")).unwrap();
    let file = world.agent("one", "false", "  - say: One.\n");
    for (url, code) in [
        ("sqlite:garbage.db", "store_unusable"),
        ("sqlite:refund", "store_unusable"),
        ("sqlite:no/such/folder.db", "store_unusable"),
        ("mysql:x", "store_unusable"),
        ("sqlite:", "store_unusable"),
    ] {
        let refused = world.json(2, &["run", &file, "--input", "x", "--store", url]);
        assert_eq!(refused["code"], code, "{url}: {refused}");
        assert!(
            refused["error"].as_str().unwrap().contains('`'),
            "{refused}"
        );
    }
    for command in [
        &["runs"][..],
        &["show", "a"],
        &["recover"],
        &["resume", "a", "--approve"],
    ] {
        let refused = world.json(2, &[command, &["--store", "sqlite:missing.db"]].concat());
        assert_eq!(refused["code"], "store_missing");
    }
    assert!(!world.path().join("missing.db").exists());
    assert_eq!(fs::read(world.path().join("garbage.db")).unwrap(), garbage);
}

#[test]
fn the_store_may_be_named_by_the_environment() {
    let world = World::new();
    let file = world.agent("one", "false", "  - say: One.\n");
    let status = world
        .command()
        .args(["run", &file, "--input", "x", "--json"])
        .env("HOLDPOINT_STORE", "sqlite:other.db")
        .output()
        .unwrap()
        .status;
    assert_eq!(status.code(), Some(0));
    assert!(world.path().join("other.db").exists());
    assert!(!world.path().join("holdpoint.db").exists());
}

#[test]
fn every_problem_of_every_file_is_told_at_once() {
    let world = World::new();
    let good = world.agent("good", "true", "  - say: One.\n");
    let bad = world.agent("bad", "{allowed_decisions: [aprove]}", "  - say: One.\n");
    let text = fs::read_to_string(world.path().join(&bad)).unwrap();
    world.write(
        &bad,
        &text.replace("effect: idempotent", "effect: sometimes"),
    );
    let files = world
        .hold(&["check", &good, &bad, "nowhere.yaml", "--json"])
        .ends(2)
        .lines();
    let oks: Vec<&Value> = files.iter().map(|file| &file["ok"]).collect();
    assert_eq!(oks, [&json!(true), &json!(false), &json!(false)]);
    assert_eq!(files[1]["problems"].as_array().unwrap().len(), 2);
    let refused = world.json(2, &["run", &bad, "--input", "x"]);
    assert_eq!(refused["code"], "bad_definition");
    assert_eq!(refused["details"]["problems"], files[1]["problems"]);
    assert!(!world.path().join("holdpoint.db").exists());

    let risky = text
        .replace("effect: idempotent", "effect: write")
        .replace("aprove", "approve");
    world.write(&bad, &risky);
    world.hold(&["check", &bad]).ends(0);
    world.hold(&["check", "--strict", &bad]).ends(2);
    world.hold(&["check", "--strict", &good]).ends(0);
}

const BROKEN: &str = "apiVersion: holdpoint/v1
kind: Scenario
rules:
  - sya: One.
  - {say: Two., delay: 5}
  - {}
";

/// The lines in files of this name that problems are about.
fn lines_of<'a>(problems: &'a Value, file: &str) -> Vec<(u64, &'a str)> {
    let problems = problems.as_array().unwrap().iter();
    problems
        .filter(|problem| problem["file"].as_str().unwrap().ends_with(file))
        .map(|problem| {
            let line = problem["line"].as_u64().unwrap();
            (line, problem["message"].as_str().unwrap())
        })
        .collect()
}

#[test]
fn every_problem_of_a_scenario_is_told_at_once_and_beside_those_of_the_agent() {
    let world = World::new();
    let file = world.agent("bad", "true", "");
    world.write("bad/scenario.yaml", BROKEN);
    let in_scenario = [
        (4, "unknown key `sya`"),
        (5, "`5` has no unit"),
        (6, "the rule does nothing"),
    ];
    let found = world.json(2, &["check", &file]);
    assert_eq!(found["ok"], false);
    assert_eq!(
        lines_of(&found["problems"], "/bad/scenario.yaml"),
        in_scenario
    );
    let plain = world.hold(&["check", &file]).ends(2);
    assert_eq!(plain.stdout, "");
    for line in 4..=6 {
        assert!(
            plain
                .stderr
                .contains(&format!("/bad/scenario.yaml:{line}:")),
            "{plain:?}"
        );
    }
    assert!(plain.stderr.contains("help: did you mean `say`?"));

    let text = fs::read_to_string(world.path().join(&file)).unwrap();
    world.write(&file, &text.replace("effect: idempotent", "effect: often"));
    let found = world.json(2, &["check", &file]);
    let problems = &found["problems"];
    assert_eq!(
        lines_of(problems, "bad/agent.yaml"),
        [(8, "`often` is not an effect")]
    );
    assert_eq!(lines_of(problems, "/bad/scenario.yaml"), in_scenario);
}

#[test]
fn a_scenario_that_cannot_be_played_is_refused_before_a_store_is_made() {
    let world = World::new();
    let before = || {
        let mut names: Vec<_> = fs::read_dir(world.path())
            .unwrap()
            .map(|file| file.unwrap().file_name())
            .collect();
        names.sort();
        names
    };
    let file = world.agent("bad", "true", "");
    world.write("bad/scenario.yaml", BROKEN);
    let names = before();
    let run = ["run", &file, "--input", "x", "--thread", "a"];
    let refused = world.json(2, &run);
    assert_eq!(refused["code"], "model_unusable");
    let told = lines_of(&refused["details"]["problems"], "/bad/scenario.yaml").len();
    assert_eq!(told, 3);
    let plain = world.hold(&run).ends(2);
    assert_eq!(plain.stderr.matches("error: ").count(), 3, "{plain:?}");
    fs::remove_file(world.path().join("bad/scenario.yaml")).unwrap();
    assert_eq!(world.json(2, &run)["code"], "bad_definition");
    world.json(2, &["run", &file, "--thread", "a"]);
    assert_eq!(before(), names);
}

#[test]
fn what_will_probably_fail_is_a_warning_that_strict_refuses() {
    let world = World::new();
    let rules = "  - when: {turn: 1}\n    call: [{tool: acct}, {tool: act}]\n  - say: Over.\n";
    let file = world.agent("odd", "true", rules);
    let text = fs::read_to_string(world.path().join(&file)).unwrap();
    let command = "[holdpoint-example-ledger, pay-once]";
    assert!(text.contains(command));
    world.write("odd/idle.sh", "#!/bin/sh\n");
    let no_tool = "the agent has no tool `acct`".to_owned();
    let missing = world.path().join("odd/./gone.sh").display().to_string();
    let missing = missing.replace("/./", "/");
    let idle = missing.replace("gone", "idle");
    let cases = [
        (command, vec![no_tool.clone()]),
        (
            "[no-such-program-anywhere]",
            vec![
                "there is no program `no-such-program-anywhere` on PATH".to_owned(),
                no_tool.clone(),
            ],
        ),
        (
            "[./gone.sh]",
            vec![format!("there is no program `{missing}`"), no_tool.clone()],
        ),
        (
            "[./idle.sh]",
            vec![format!("`{idle}` cannot be executed"), no_tool],
        ),
    ];
    for (program, expected) in cases {
        world.write(&file, &text.replace(command, program));
        let found = world.json(0, &["check", &file]);
        let warnings = found["warnings"].as_array().unwrap().iter();
        let told: Vec<&str> = warnings
            .map(|warning| {
                assert!(warning["line"].as_u64().unwrap() > 0 && warning["help"].is_string());
                warning["message"].as_str().unwrap()
            })
            .collect();
        assert_eq!(told, expected, "{program}");
        world.hold(&["check", "--strict", &file]).ends(2);
    }
    let scenario = world.path().join("odd/scenario.yaml");
    let played = fs::read_to_string(&scenario).unwrap();
    fs::write(&scenario, played.replace("acct", "act")).unwrap();
    world.write(&file, &text);
    world.hold(&["check", "--strict", &file]).ends(0);
}

#[test]
fn a_file_beside_us_needs_no_folder_in_its_name() {
    let world = World::new();
    let status = world
        .command()
        .current_dir(world.path().join("refund"))
        .args(["check", "agent.yaml"])
        .status()
        .unwrap();
    assert!(status.success());
}
