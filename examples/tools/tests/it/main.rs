//! The example programs as Holdpoint calls them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    io::Write,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

mod library;

const LEDGER: &str = env!("CARGO_BIN_EXE_holdpoint-example-ledger");
const FILES: &str = env!("CARGO_BIN_EXE_holdpoint-example-files");

type Env<'a> = &'a [(&'a str, &'a str)];

/// Exit code and stdout.
fn run(program: &str, word: &str, dir: &Path, env: Env<'_>, stdin: &str) -> (i32, String) {
    let mut child = Command::new(program)
        .arg(word)
        .current_dir(dir)
        .env_clear()
        .envs(env.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // A program that refuses early does not read.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    let output = child.wait_with_output().unwrap();
    (
        output.status.code().unwrap(),
        String::from_utf8(output.stdout).unwrap(),
    )
}

const KEY: (&str, &str) = ("HOLDPOINT_IDEMPOTENCY_KEY", "hpk_1");
const EPOCH: (&str, &str) = ("HOLDPOINT_EPOCH", "7");

#[test]
fn the_ledger_speaks_the_protocol_of_command_tools() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = |word, env: &[_], stdin| run(LEDGER, word, dir.path(), env, stdin);
    let said = |code: i32, text: &str| (code, format!("{text}\n"));
    let args = r#"{"amount":"5.00","order_id":"1"}"#;

    assert_eq!(
        ledger("lookup", &[KEY], "{}"),
        said(0, r#"{"status":"not_found"}"#)
    );
    let receipt = format!(r#"{{"recorded":{args}}}"#);
    assert_eq!(ledger("refund", &[KEY, EPOCH], args), said(0, &receipt));
    let found = format!(r#"{{"receipt":{receipt},"status":"committed"}}"#);
    assert_eq!(ledger("lookup", &[KEY], "{}"), said(0, &found));
    assert_eq!(ledger("pay-once", &[KEY, EPOCH], args), said(0, &receipt));
    assert_eq!(ledger("refund", &[KEY, EPOCH], args), said(0, &receipt));
    assert_eq!(
        ledger("compensate", &[KEY, EPOCH], args),
        said(0, &format!(r#"{{"reversed":{args}}}"#))
    );
    let counted = r#"{"attempts":{"hpk_1":1},"doubled":["hpk_1"],"effects":{"hpk_1":2},"reversals":{"hpk_1":1}}"#;
    assert_eq!(ledger("count", &[], ""), said(0, counted));

    let lines = std::fs::read_to_string(dir.path().join("ledger.jsonl")).unwrap();
    let first: serde_json::Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&first["key"], &first["epoch"]),
        (&"hpk_1".into(), &7.into())
    );
    assert!(
        first["pid"].is_u64() && first["args"]["order_id"] == "1",
        "{first}"
    );
}

#[test]
fn what_is_wrong_before_the_effect_is_an_error_without_one() {
    let dir = tempfile::tempdir().unwrap();
    let cases: [(&str, Env<'_>, &str); 5] = [
        ("refund", &[], "{}"),
        ("refund", &[KEY], "nonsense"),
        ("refund", &[KEY, ("HOLDPOINT_EPOCH", "x")], "{}"),
        ("refund", &[KEY, ("LEDGER_DELAY_BEFORE_MS", "soon")], "{}"),
        ("pay", &[KEY], "{}"),
    ];
    for (word, env, stdin) in cases {
        let (code, stdout) = run(LEDGER, word, dir.path(), env, stdin);
        assert!(
            code == 1 && stdout.starts_with("{\"error\":"),
            "{word} {env:?}: {code} {stdout}"
        );
    }
    assert!(!dir.path().join("ledger.jsonl").exists());
}

#[test]
fn what_goes_wrong_with_the_effect_is_no_error_but_unknown() {
    let dir = tempfile::tempdir().unwrap();
    let env = [KEY, ("LEDGER", "missing/ledger.jsonl")];
    assert_eq!(
        run(LEDGER, "refund", dir.path(), &env, "{}"),
        (2, String::new())
    );
}

#[test]
fn a_program_that_is_killed_while_it_waits_has_or_has_not_acted() {
    for (wait, acted) in [
        ("LEDGER_DELAY_BEFORE_MS", false),
        ("LEDGER_DELAY_AFTER_MS", true),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ledger.jsonl");
        let mut child = Command::new(LEDGER)
            .arg("refund")
            .envs([KEY, (wait, "60000")])
            .env("LEDGER", &path)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(b"{}").unwrap();
        if acted {
            let written = || std::fs::read_to_string(&path).is_ok_and(|text| text.ends_with('\n'));
            while !written() {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(path.exists(), acted, "{wait}");
    }
}

#[test]
fn the_files_stay_in_their_folder() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("workspace")).unwrap();
    let files = |word, stdin| run(FILES, word, dir.path(), &[KEY], stdin);
    let (code, _) = files("write", r#"{"path":"a.txt","content":"x"}"#);
    assert_eq!(code, 0);
    assert_eq!(
        files("read", r#"{"path":"a.txt"}"#),
        (0, "{\"content\":\"x\",\"path\":\"a.txt\"}\n".to_owned())
    );
    assert_eq!(
        files("delete", r#"{"path":"a.txt"}"#),
        (0, "{\"deleted\":\"a.txt\"}\n".to_owned())
    );
    let (code, stdout) = files("read", r#"{"path":"../a.txt"}"#);
    assert!(code == 1 && stdout.starts_with("{\"error\":"), "{stdout}");
}
