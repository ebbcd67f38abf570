//! Guardrails as the binary has them, with checkers that are programs and a server: nothing flagged is done or said, whatever
//! dies meanwhile.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpListener,
    process::{Child, Command, Stdio},
    thread::sleep,
    time::Duration,
};

use expectrl::{Expect, session::OsSession};
use serde_json::{Value, json};

use crate::support::{HOLDPOINT, World, pending, tool_contents};

/// Flags what has a card number in it, and notes what it was given.
const CARDS: &str = r#"#!/bin/sh
given=$(cat)
printf '%s\n' "$given" >> looked
case "$given" in
  *4111*) echo '{"verdict":"review","reason":"it looks like a card number"}' ;;
  *) echo '{"verdict":"pass"}' ;;
esac
"#;

const CALLS: &str =
    "  - when: {turn: 1}\n    call: [{tool: act, args: {s: '4111'}}]\n  - say: 'Done.'\n";
const SAYS: &str = "  - when: {user: 'held your last answer back'}\n    say: 'I cannot tell.'\n  - say: 'It is 4111.'\n";

/// An agent whose checker is a shell script, with whatever else is said of the guardrail.
fn guarded(world: &World, name: &str, rules: &str, script: &str, more: &str) -> String {
    let file = world.agent(name, "false", rules);
    world.write(&format!("{name}/check.sh"), script);
    let text = fs::read_to_string(world.path().join(&file)).unwrap();
    let guardrails = format!("  guardrails:\n    no_cards: {{command: [sh, ./check.sh]{more}}}\n");
    world.write(&file, &(text + &guardrails));
    file
}

fn start<'a>(file: &'a str, thread: &'a str) -> [&'a str; 6] {
    ["run", file, "--input", "x", "--thread", thread]
}

#[test]
fn a_flagged_call_is_not_in_the_ledger_before_a_person_approves_it() {
    let world = World::new();
    let file = guarded(&world, "teller", CALLS, CARDS, "");
    world.hold(&["check", "--strict", &file]).ends(0);
    let stopped = world.json(3, &start(&file, "a"));
    assert_eq!(
        (&stopped["status"], &stopped["cause"]),
        (&json!("waiting"), &json!("review"))
    );
    let interrupt = &stopped["__interrupt__"][0];
    assert_eq!(interrupt["kind"], "review");
    let request = &interrupt["value"]["action_requests"][0];
    let told = request["description"].as_str().unwrap();
    assert!(
        told.starts_with("Guardrail `no_cards`: it looks like a card number\n\n"),
        "{told}"
    );
    assert_eq!(world.effects(), 0);
    let looked = fs::read_to_string(world.path().join("teller/looked")).unwrap();
    let given: Value = serde_json::from_str(looked.trim()).unwrap();
    assert_eq!(given["on"], "call");
    assert_eq!(
        (&given["tool"], &given["args"]),
        (&json!("act"), &json!({"s": "4111"}))
    );
    // For people, too.
    let shown = world.hold(&["show", "teller/a"]);
    assert!(
        shown
            .stdout
            .contains("Guardrail `no_cards`: it looks like a card number"),
        "{shown:?}"
    );
    let done = world.json(0, &["resume", "teller/a", "--approve"]);
    assert_eq!((&done["status"], world.effects()), (&json!("finished"), 1));
    // The same without the guardrail asks nobody.
    let free = world.agent("free", "false", CALLS);
    world.json(0, &start(&free, "a"));
    assert_eq!(world.effects(), 2);
    // What a person does not want is not done.
    world.json(3, &start(&file, "b"));
    let done = world.json(0, &["resume", "teller/b", "--reject", "no cards"]);
    assert!(tool_contents(&done)[0].contains("no cards"));
    assert_eq!(world.effects(), 2);
}

#[test]
fn an_edit_is_checked_and_what_is_refused_stays_pending() {
    let world = World::new();
    // What it says depends on all that it was given.
    let numbered = r#"given=$(cat)
number=$(printf %s "$given" | cksum | tr -d ' ')
case "$given" in
  *4111*) echo "{\"verdict\":\"review\",\"reason\":\"$number\"}" ;;
  *) echo '{"verdict":"pass"}' ;;
esac
"#;
    let file = guarded(&world, "teller", CALLS, numbered, "");
    world.json(3, &start(&file, "a"));
    let edit = |s: &str| {
        let action = json!({"name": "act", "args": {"s": s}});
        json!([{"type": "edit", "edited_action": action}]).to_string()
    };
    let before = world.picture("teller/a");
    let refused = world.json(4, &["resume", "teller/a", "--decisions", &edit("x 4111")]);
    assert_eq!(refused["code"], "misfit");
    let said = refused["error"].as_str().unwrap();
    assert!(
        said.contains("the guardrail `no_cards` flags this"),
        "{said}"
    );
    assert_eq!((world.picture("teller/a"), world.effects()), (before, 0));
    world.json(0, &["resume", "teller/a", "--decisions", &edit("fine")]);
    assert_eq!(world.effects(), 1);
}

#[test]
fn a_checker_that_fails_in_any_way_makes_it_a_review_and_no_call() {
    let world = World::new();
    for (name, script, why) in [
        (
            "exit",
            "cat > /dev/null; exit 7",
            "it ended with exit code 7",
        ),
        ("hang", "sleep 60", "it ended with a time-out"),
        ("garbage", "echo fine", "its answer is neither"),
        ("empty", "true", "its answer is neither"),
        (
            "huge",
            "head -c 3000000 /dev/zero",
            "its answer is far too long",
        ),
        (
            "unknown",
            "echo '{\"verdict\":\"maybe\"}'",
            "its answer is neither",
        ),
        ("killed", "kill -9 $$", "it ended with signal 9"),
    ] {
        let file = guarded(&world, name, CALLS, script, ", on: [calls], timeout: 1s");
        let stopped = world.json(3, &start(&file, "a"));
        assert_eq!(stopped["cause"], "review", "{name}");
        let told = &stopped["__interrupt__"][0]["value"]["action_requests"][0]["description"];
        let expected = format!("Guardrail `no_cards`: its checker failed: {why}");
        assert!(
            told.as_str().unwrap().starts_with(&expected),
            "{name}: {told}"
        );
    }
    assert_eq!(world.effects(), 0);
}

fn killed(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn words_that_are_held_outlive_their_process_and_another_one_goes_on_in_each_way() {
    let world = World::new();
    let file = guarded(&world, "teller", SAYS, CARDS, ", on: [output]");
    let respond = r#"[{"type":"respond","message":"Ask at the desk."}]"#;
    for (thread, answer, output) in [
        ("a", vec!["--approve"], "It is 4111."),
        ("b", vec!["--decisions", respond], "Ask at the desk."),
        ("c", vec!["--reject", "no numbers"], "I cannot tell."),
    ] {
        // Somebody sits before the question when the process is killed.
        let mut command = Command::new(HOLDPOINT);
        world.prepare(&mut command);
        command.args(start(&file, thread));
        let mut session = OsSession::spawn(command).unwrap();
        session.set_expect_timeout(Some(Duration::from_secs(20)));
        let before = session.expect("Guardrail `no_cards`").unwrap();
        let before = String::from_utf8_lossy(before.as_bytes()).into_owned();
        assert!(!before.contains("4111"), "{before}");
        session.expect("It is 4111.").unwrap();
        session.expect("or q to leave it: ").unwrap();
        let pid = session.get_process().pid().as_raw();
        let kill = Command::new("kill").args(["-9", &pid.to_string()]).status();
        assert!(kill.unwrap().success());
        drop(session);
        let name = format!("teller/{thread}");
        let shown = world.json(3, &["show", &name]);
        assert_eq!(shown["cause"], "review");
        assert!(!shown["messages"].to_string().contains("4111"));
        assert_eq!(pending(&shown).len(), "int_".len() + 32);
        let request = &shown["__interrupt__"][0]["value"]["action_requests"][0];
        assert_eq!(request["preview"]["body"], "It is 4111.");
        let text = world.hold(&["show", &name]);
        assert!(text.stdout.contains("It is 4111."), "{text:?}");
        let args = [&["resume", &name][..], &answer].concat();
        let done = world.json(0, &args);
        assert_eq!(
            (&done["status"], &done["output"]),
            (&json!("finished"), &json!(output))
        );
        let asked = world.hold(&["trace", &name, "--json"]).lines();
        let asked = asked
            .iter()
            .filter(|event| event["type"] == "model_started");
        assert_eq!(asked.count(), if thread == "c" { 2 } else { 1 }, "{thread}");
    }
}

#[test]
fn a_process_that_is_killed_while_a_checker_looks_has_said_and_done_nothing() {
    let world = World::new();
    let slow = format!("test -e go || {{ touch looking; sleep 60; }}\n{CARDS}");
    for (name, rules) in [("calls", CALLS), ("says", SAYS)] {
        let file = guarded(&world, name, rules, &slow, ", timeout: 90s");
        let run = world
            .command()
            .args(start(&file, "a"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while !world.path().join(name).join("looking").exists() {
            sleep(Duration::from_millis(10));
        }
        killed(run);
        assert_eq!(world.effects(), 0);
        world.write(&format!("{name}/go"), "");
        let stopped = world.json(3, &["recover"]);
        assert_eq!(stopped["cause"], "review", "{name}");
        assert_eq!(world.effects(), 0);
        let cancelled = world.json(0, &["cancel", &format!("{name}/a")]);
        assert_eq!(cancelled["status"], "cancelled");
        assert!(!cancelled["messages"].to_string().contains("It is 4111"));
    }
}

/// A server that answers so to each request. Returns its port.
fn server(answers: Vec<String>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut seen = Vec::new();
            let mut chunk = [0; 4_096];
            while !String::from_utf8_lossy(&seen).contains("\"on\":") {
                let count = stream.read(&mut chunk).unwrap();
                seen.extend_from_slice(&chunk[..count]);
            }
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    port
}

#[test]
fn a_server_can_be_the_checker_and_one_that_does_not_answer_lets_nothing_pass() {
    let world = World::new();
    let response = |status: &str, body: &str| {
        let length = body.len();
        format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
    };
    let review = r#"{"verdict":"review","reason":"it says a number"}"#;
    let pass = r#"{"verdict":"pass"}"#;
    let port = server(vec![
        response("200 OK", review),
        response("200 OK", pass),
        response("503 Oh", pass),
    ]);
    let file = world.agent("teller", "false", CALLS);
    let text = fs::read_to_string(world.path().join(&file)).unwrap();
    let guardrail = format!(
        "  guardrails:\n    asked: {{url: 'http://127.0.0.1:{port}/look', allow_private: [127.0.0.1]}}\n"
    );
    world.write(&file, &(text + &guardrail));
    let stopped = world.json(3, &start(&file, "a"));
    let told = |stopped: &Value| {
        let request = &stopped["__interrupt__"][0]["value"]["action_requests"][0];
        request["description"].as_str().unwrap().to_owned()
    };
    assert!(told(&stopped).starts_with("Guardrail `asked`: it says a number"));
    assert_eq!(world.effects(), 0);
    let done = world.json(0, &["resume", "teller/a", "--approve"]);
    assert_eq!((&done["output"], world.effects()), (&json!("Done."), 1));
    let stopped = world.json(3, &start(&file, "b"));
    assert!(told(&stopped).starts_with("Guardrail `asked`: its checker failed: HTTP 503"));
    // Nobody is there any more.
    let stopped = world.json(3, &start(&file, "c"));
    assert!(told(&stopped).starts_with("Guardrail `asked`: its checker failed: "));
    assert_eq!(world.effects(), 1);
}
