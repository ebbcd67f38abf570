//! `guardrails`: what they say, and what is refused because it would guard nothing.

use std::collections::{BTreeMap, BTreeSet};

use holdpoint_core::{CheckedBy, Guarded, Guardrail, HttpHeader, Span};
use insta::assert_snapshot;

use crate::{AGENT, folder, read, said_by};

fn guarded(more: &str) -> String {
    format!("{AGENT}  guardrails:\n{more}")
}

/// The one guardrail `g` that this says.
fn one(text: &str) -> Guardrail {
    let dir = folder();
    let loaded = read(&guarded(&format!("    g: {text}\n")), dir.path());
    let loaded = loaded.unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(loaded.warnings, []);
    assert_eq!(loaded.definition.flaw(), None);
    loaded.definition.guardrails["g"].clone()
}

#[test]
fn each_kind_of_checker_is_read_with_its_defaults() {
    let words = one("{keywords: [wire, \"Please  pay\"]}");
    assert_eq!(words, Guardrail::keywords(["wire", "Please  pay"]));
    assert_eq!(words.timeout, Span::from_secs(10));
    assert_eq!(words.on, BTreeSet::from([Guarded::Calls, Guarded::Output]));
    assert_eq!(one("{code: look}"), Guardrail::code("look"));
    let short = one("{keywords: [a], on: [calls], tools: [delete_file, read_file], timeout: 2s}");
    let expected = Guardrail::keywords(["a"])
        .only_calls()
        .of_tools(["delete_file", "read_file"])
        .within(Span::from_secs(2));
    assert_eq!(short, expected);
    assert_eq!(
        one("{keywords: [a], on: [output]}"),
        Guardrail::keywords(["a"]).only_output()
    );
    let asked = one(
        "{url: \"https://checks.example.com/look?a=1\", headers: {X-Team: money, Authorization: {secret: TOKEN, prefix: \"Bearer \"}}}",
    );
    let CheckedBy::Http { url, headers, .. } = &asked.by else {
        panic!("{asked:?}");
    };
    assert_eq!(url, "https://checks.example.com/look?a=1");
    let secret = HttpHeader::Secret {
        name: "TOKEN".to_owned(),
        prefix: "Bearer ".to_owned(),
    };
    let team = HttpHeader::Text("money".to_owned());
    let expected = [
        ("Authorization".to_owned(), secret),
        ("X-Team".to_owned(), team),
    ];
    assert_eq!(*headers, BTreeMap::from(expected));
    let near = one("{url: \"http://127.0.0.1:8080/\", allow_private: [127.0.0.1]}");
    assert!(
        matches!(near.by, CheckedBy::Http { allow_private, .. } if allow_private == ["127.0.0.1"])
    );
}

#[test]
fn a_program_is_seen_from_the_folder_of_the_file() {
    let dir = folder();
    std::fs::write(dir.path().join("check"), "").unwrap();
    let loaded = read(
        &guarded("    g: {command: [./check, ./list]}\n"),
        dir.path(),
    )
    .unwrap();
    let at = dir.path().to_str().unwrap();
    let words = [format!("{at}/check"), format!("{at}/list")];
    let expected = Guardrail::command(words, at);
    assert_eq!(loaded.definition.guardrails["g"], expected);
}

#[test]
fn a_subagent_adds_and_never_takes_away() {
    let text = guarded(
        r#"    above: {keywords: [a], tools: [now, delete_file, task]}
  subagents:
    - name: clock
      description: d
      system_prompt: p
      tools: [{name: now, effect: read, command: [date]}]
      interrupt_on: {}
      guardrails: {own: {keywords: [b], tools: [now]}}
    - {name: other, description: d, system_prompt: p}
"#,
    );
    let dir = folder();
    let definition = read(&text, dir.path()).unwrap().definition;
    assert_eq!(definition.flaw(), None);
    let names = |at: usize| {
        let guardrails = &definition.subagents[at].definition.guardrails;
        guardrails.keys().cloned().collect::<Vec<_>>()
    };
    assert_eq!((names(0), names(1)), (vec!["own".to_owned()], vec![]));
    let twice = text.replace("{own:", "{above:");
    let said = said_by(read, &twice);
    assert!(
        said.contains(
            "spec.subagents[clock].guardrails.above: an agent above has a guardrail `above` already"
        ),
        "{said}"
    );
    let idle = text.replace("[b], tools: [now]", "[b], tools: [delete_file]");
    let said = said_by(read, &idle);
    assert!(
        said.contains("no tool is called `delete_file`, so this guardrail would never look at it"),
        "{said}"
    );
}

#[test]
fn what_would_guard_nothing_is_a_problem() {
    let lines = [
        "a: {}",
        "b: {keywords: [x], code: y}",
        "c: {keyword: [x]}",
        "d: {keywords: []}",
        "e: {keywords: [\" \"]}",
        "f: {keywords: [x], on: []}",
        "g: {keywords: [x], on: [results]}",
        "h: {keywords: [x], on: [output], tools: [delete_file]}",
        "i: {keywords: [x], tools: [delete_fil]}",
        "j: {keywords: [x], tools: []}",
        "k: {keywords: [x], timeout: 0s}",
        "l: {command: []}",
        "m: {keywords: [x], headers: {A: b}}",
        "n: {url: \"http://checks.example.com/\"}",
        "o: {url: \"https://checks.example.com/{id}\"}",
        "p: {url: \"https://checks.example.com/{$key}\"}",
        "q: {url: \"https://localhost/\"}",
        "r: {url: nonsense}",
        "\"s s\": {keywords: [x]}",
        "t: {code: \"\"}",
        "u: 7",
    ];
    let said: Vec<String> = lines
        .iter()
        .map(|line| said_by(read, &guarded(&format!("    {line}\n"))))
        .collect();
    assert_snapshot!(said.join("\n\n"));
    let many: String = (0..17)
        .map(|at| format!("    g{at}: {{keywords: [x]}}\n"))
        .collect();
    let said = said_by(read, &guarded(&many));
    assert!(
        said.contains("more than 16 guardrails look at this agent"),
        "{said}"
    );
}

#[test]
fn tools_of_servers_that_were_not_asked_yet_are_let_through() {
    let text = guarded("    g: {keywords: [x], tools: [files__read]}\n");
    let served = text.replace(
        "  interrupt_on:",
        "  mcp_servers: {files: {command: [cat]}}\n  interrupt_on:",
    );
    let dir = folder();
    assert!(read(&served, dir.path()).is_ok());
    assert!(read(&text, dir.path()).is_err());
}
