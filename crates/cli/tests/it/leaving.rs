//! Processes that are asked to go in the middle of their work.

use std::{
    process::{Child, Command, Output, Stdio},
    thread::sleep,
    time::Duration,
};

use serde_json::Value;

use crate::support::World;

/// The model thinks for so long that nobody waits for it.
const SLOW: &str = "  - {delay: 60s, say: 'Never.'}\n";

fn begin(world: &World, args: &[&str]) -> Child {
    world
        .command()
        .args(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits until a thread's model has been called this often.
fn wait_for_model(world: &World, thread: &str, times: usize) {
    let called = |event: &Value| event["type"] == "model_started";
    loop {
        let trace = world.hold(&["trace", thread, "--json"]);
        if trace.code == 0 && trace.lines().iter().filter(|event| called(event)).count() >= times {
            return;
        }
        sleep(Duration::from_millis(20));
    }
}

fn end(child: Child, signal: &str) -> (Option<i32>, String, String) {
    let sent = Command::new("kill")
        .args([signal, &child.id().to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
    let Output {
        status,
        stdout,
        stderr,
    } = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

#[test]
fn whoever_is_asked_to_go_says_what_it_leaves_and_how_to_go_on() {
    let world = World::new();
    let file = world.agent("slow", "true", SLOW);
    let mut times = 0;
    let run = ["run", &file, "--input", "x", "--thread", "a"];
    let resume = ["resume", "slow/a"];
    for (args, signal, name) in [
        (&run[..], "-TERM", "SIGTERM"),
        (&resume[..], "-INT", "SIGINT"),
        (&resume[..], "-TERM", "SIGTERM"),
    ] {
        let child = begin(&world, args);
        times += 1;
        // A call that was cut off is made again by whoever goes on.
        wait_for_model(&world, "a", times);
        let (code, stdout, stderr) = end(child, signal);
        assert_eq!((code, stdout.as_str()), (Some(3), ""), "{stderr}");
        let thread = world.json(3, &["show", "a"])["thread_id"].clone();
        let expected = format!(
            "{name}: left slow/a ({}) in the middle of work; nothing is lost, go on with: holdpoint resume slow/a",
            thread.as_str().unwrap()
        );
        let told: Vec<&str> = stderr
            .lines()
            .filter(|line| line.starts_with(name))
            .collect();
        assert_eq!(told, [expected], "{stderr}");
    }
    // What it said to do works.
    let scenario = world.path().join("slow/scenario.yaml");
    let text = std::fs::read_to_string(&scenario).unwrap();
    std::fs::write(&scenario, text.replace("delay: 60s, ", "")).unwrap();
    world.json(3, &["resume", "slow/a"]);
    world.json(0, &["resume", "slow/a", "--approve"]);
}

#[test]
fn a_program_still_gets_its_object_when_the_process_is_asked_to_go() {
    let world = World::new();
    let file = world.agent("slow", "true", SLOW);
    let store = ["--store", "sqlite:other place.db"];
    let run = ["run", &file, "--input", "x", "--thread", "a", "--json"];
    let child = begin(&world, &[&run[..], &store].concat());
    loop {
        let shown = world.hold(&[&["show", "a", "--json"][..], &store].concat());
        if shown.code == 3 {
            break;
        }
        sleep(Duration::from_millis(20));
    }
    let (code, stdout, stderr) = end(child, "-TERM");
    assert_eq!(code, Some(3));
    let object: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(object["status"], "running");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(
        stderr.ends_with("holdpoint resume slow/a --store 'sqlite:other place.db'\n"),
        "{stderr}"
    );
}

#[test]
fn a_recovery_that_is_asked_to_go_names_what_it_leaves() {
    let world = World::new();
    let file = world.agent("slow", "true", SLOW);
    for thread in ["a", "b"] {
        let child = begin(&world, &["run", &file, "--input", "x", "--thread", thread]);
        wait_for_model(&world, thread, 1);
        let (code, _, _) = end(child, "-KILL");
        assert_eq!(code, None);
    }
    let child = begin(&world, &["recover", "--json"]);
    for thread in ["a", "b"] {
        wait_for_model(&world, thread, 2);
    }
    let (code, stdout, stderr) = end(child, "-TERM");
    assert_eq!(code, Some(3));
    let statuses: Vec<Value> = stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["status"].clone())
        .collect();
    assert_eq!(statuses, ["running", "running"]);
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(
        stderr.starts_with("SIGTERM: left slow/") && stderr.contains(", slow/"),
        "{stderr}"
    );
    assert!(
        stderr.ends_with("nothing is lost, go on with: holdpoint recover\n"),
        "{stderr}"
    );
}
