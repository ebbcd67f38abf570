//! Asking at a terminal: a real one, as far as the binary can tell.

use std::{process::Command, time::Duration};

use expectrl::{Eof, Expect, session::OsSession};

use crate::support::{HOLDPOINT, World};

const PROMPT: &str = "[a]pprove, [e]dit, [r]eject, or q to leave it: ";

fn at_a_terminal(world: &World, args: &[&str]) -> OsSession {
    let mut command = Command::new(HOLDPOINT);
    world.prepare(&mut command);
    command.args(args);
    let mut session = OsSession::spawn(command).unwrap();
    session.set_expect_timeout(Some(Duration::from_secs(20)));
    session
}

fn run(world: &World) -> OsSession {
    at_a_terminal(
        world,
        &[
            "run",
            "refund/agent.yaml",
            "--input",
            "Please refund",
            "--thread",
            "a",
        ],
    )
}

#[track_caller]
fn ends(mut session: OsSession, code: i32) -> String {
    let rest = session.expect(Eof).unwrap();
    let text = String::from_utf8_lossy(rest.as_bytes()).into_owned();
    let status = session.get_process().wait().unwrap();
    let ended = format!("{status:?}");
    assert!(ended.ends_with(&format!(", {code})")), "{ended}: {text}");
    text
}

#[test]
fn an_approval_at_the_prompt_goes_on_to_the_end() {
    let world = World::new();
    let mut session = run(&world);
    session.expect("Let me look at that order first.").unwrap();
    session.expect("issue_refund").unwrap();
    session.expect("\"amount\": \"49.90\"").unwrap();
    session.expect(PROMPT).unwrap();
    assert_eq!(world.effects(), 0);
    session.send_line("a").unwrap();
    let text = ends(session, 0);
    // What was streamed is not printed again.
    assert_eq!(
        text.matches("The refund is on its way").count(),
        1,
        "{text}"
    );
    assert_eq!(world.effects(), 1);
}

#[test]
fn what_is_not_clearly_a_decision_decides_nothing() {
    let world = World::new();
    let mut session = run(&world);
    for typed in ["yes", "", "ok", "approve!", "respond", "1", "\u{1b}[A"] {
        session.expect(PROMPT).unwrap();
        session.send_line(typed).unwrap();
        session.expect("nothing is decided").unwrap();
    }
    session.expect(PROMPT).unwrap();
    session.send_line("reject").unwrap();
    session.expect("why").unwrap();
    session.send_line("not today").unwrap();
    ends(session, 0);
    assert_eq!(world.effects(), 0);
    assert!(world.picture("a")[0].contains("with reason: not today"));
}

#[test]
fn edited_arguments_are_checked_before_they_are_sent() {
    let world = World::new();
    let mut session = run(&world);
    for (typed, says) in [
        (
            "{\"order_id\":\"1001\",\"amount\":5}",
            "not accepted: /amount",
        ),
        ("five", "not accepted: not valid JSON"),
        ("", "not accepted: not valid JSON"),
    ] {
        session.expect(PROMPT).unwrap();
        session.send_line("e").unwrap();
        session.expect("new arguments: ").unwrap();
        session.send_line(typed).unwrap();
        session.expect(says).unwrap();
    }
    session.expect(PROMPT).unwrap();
    session.send_line("e").unwrap();
    session.expect("new arguments: ").unwrap();
    session
        .send_line("{\"order_id\":\"1001\",\"amount\":\"5.00\"}")
        .unwrap();
    ends(session, 0);
    assert_eq!(world.effects(), 1);
}

#[test]
fn leaving_the_prompt_leaves_the_question() {
    let world = World::new();
    let mut session = run(&world);
    session.expect(PROMPT).unwrap();
    // Ctrl+C.
    session.send("\u{3}").unwrap();
    let text = ends(session, 3);
    assert!(text.contains("holdpoint resume refund/a"), "{text}");
    let before = world.picture("a");
    for leave in ["\u{4}", "q\n", "a\u{4}\u{4}"] {
        let mut session = at_a_terminal(&world, &["resume", "a"]);
        session.expect(PROMPT).unwrap();
        session.send(leave).unwrap();
        ends(session, 3);
        assert_eq!(world.picture("a"), before, "{leave:?}");
    }
    let mut session = at_a_terminal(&world, &["run", "refund/agent.yaml", "--thread", "a"]);
    session.expect(PROMPT).unwrap();
    session.send_line("approve").unwrap();
    ends(session, 0);
    assert_eq!(world.effects(), 1);
}

#[test]
fn a_question_that_someone_else_answered_meanwhile_is_not_answered_again() {
    let world = World::new();
    let mut session = run(&world);
    session.expect(PROMPT).unwrap();
    world.json(0, &["resume", "a", "--reject"]);
    session.send_line("a").unwrap();
    session.expect("is already rejected, by local:").unwrap();
    ends(session, 0);
    assert_eq!(world.effects(), 0);
}

#[test]
fn leaving_while_it_runs_leaves_it_to_be_gone_on_with() {
    let world = World::new();
    let rules = "  - when: {turn: 1}\n    call: [{tool: act, args: {n: 1}}]\n  - say: 'Done.'\n";
    let file = world.agent("worker", "false", rules);
    let mut command = Command::new(HOLDPOINT);
    world.prepare(&mut command);
    command
        .args(["run", &file, "--input", "x", "--thread", "a"])
        .env("LEDGER_DELAY_AFTER_MS", "60000");
    let mut session = OsSession::spawn(command).unwrap();
    session.expect("started act").unwrap();
    session.send("\u{3}").unwrap();
    let text = ends(session, 3);
    assert!(text.contains("holdpoint resume worker/a"), "{text}");
    let done = world.json(0, &["recover"]);
    assert_eq!(done["output"], "Done.");
    let trace = world.hold(&["trace", "worker/a"]).stdout;
    assert_eq!(world.effects(), 1, "{trace}");
}

#[test]
fn with_json_nobody_is_asked() {
    let world = World::new();
    let session = at_a_terminal(
        &world,
        &[
            "run",
            "refund/agent.yaml",
            "--input",
            "Please refund",
            "--json",
        ],
    );
    let text = ends(session, 3);
    assert!(
        text.trim().starts_with('{') && text.trim().ends_with('}'),
        "{text}"
    );
}
