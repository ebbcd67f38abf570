//! MCP servers: how they are named, and what is said of files that name them wrongly. None is started.

use std::{collections::BTreeMap, fs, path::Path};

use holdpoint_core::{Effect, HttpHeader, McpServer, McpTransport, McpVariable, Span};
use holdpoint_definition::{Loaded, Problems};
use insta::assert_snapshot;

use crate::{folder, read, said_by};

fn agent(lines: &str) -> String {
    format!(
        "apiVersion: holdpoint/v1\nkind: Agent\nmetadata: {{name: clerk}}\nspec:\n  model: {{primary: \"scripted:scenario.yaml\"}}\n{lines}\n"
    )
}

fn in_folder(text: &str, dir: &Path) -> Result<Loaded, Problems> {
    fs::write(dir.join("server"), "").unwrap();
    read(&agent(text), dir)
}

fn said(lines: &str) -> String {
    said_by(in_folder, lines)
}

fn loaded(lines: &str) -> (Loaded, tempfile::TempDir) {
    let dir = folder();
    let loaded = in_folder(lines, dir.path()).unwrap_or_else(|problems| panic!("{problems}"));
    (loaded, dir)
}

#[test]
fn everything_that_can_be_said_of_a_server_is_read() {
    let (loaded, dir) = loaded(
        "  mcp_servers:
    files:
      command: [npx, -y, server, ./data]
      env: {PLAIN: text, KEY: {secret: FILES_KEY}}
      tools: [read, write]
      effects: {read: read, write: idempotent}
      permissions: [files]
      timeout: 5s
      settle: 1s
    web:
      url: https://mcp.example.com/mcp
      headers: {Authorization: {secret: TOKEN, prefix: \"Bearer \"}}
      allow_private: [10.0.0.7]
      trust_hints: true
  interrupt_on: {files__write: true}",
    );
    let here = dir.path().to_str().unwrap();
    let [files, web] = &loaded.definition.mcp_servers[..] else {
        panic!("{:?}", loaded.definition.mcp_servers);
    };
    let data = format!("{here}/data");
    let expected = McpServer::stdio("files", ["npx", "-y", "server", &data], here);
    assert_eq!(files.name, expected.name);
    let McpTransport::Stdio { command, cwd, env } = &files.transport else {
        panic!("{files:?}");
    };
    assert_eq!((command.len(), cwd.as_str()), (4, here));
    assert_eq!(command[3], data);
    let secret = McpVariable::Secret {
        name: "FILES_KEY".to_owned(),
    };
    let plain = McpVariable::Text("text".to_owned());
    let variables = [("KEY".to_owned(), secret), ("PLAIN".to_owned(), plain)];
    assert_eq!(*env, BTreeMap::from(variables));
    let effects = [
        ("read".to_owned(), Effect::Read),
        ("write".to_owned(), Effect::Idempotent),
    ];
    assert_eq!(files.effects, BTreeMap::from(effects));
    assert_eq!(files.permissions, ["files"]);
    assert_eq!(
        (files.timeout, files.settle),
        (Span::from_secs(5), Span::from_secs(1))
    );
    assert!(!files.trust_hints && !files.listed && !files.unasked);
    let McpTransport::Http { url, headers, .. } = &web.transport else {
        panic!("{web:?}");
    };
    assert_eq!(url, "https://mcp.example.com/mcp");
    assert!(matches!(
        headers.values().next(),
        Some(HttpHeader::Secret { .. })
    ));
    assert!(web.trust_hints);
}

#[test]
fn a_subagent_has_the_servers_above_or_those_that_it_names() {
    let above = "  mcp_servers: {a: {command: [sh]}, b: {command: [sh]}}\n  tools: [{name: t, effect: read, command: [cat]}]\n  subagents:\n";
    let sub = |more: &str| {
        let lines = format!("{above}    - {{name: s, description: d, system_prompt: p{more}}}");
        let (loaded, _dir) = loaded(&lines);
        let servers = &loaded.definition.subagents[0].definition.mcp_servers;
        let names: Vec<String> = servers.iter().map(|it| it.name.clone()).collect();
        names.join(" ")
    };
    assert_eq!(sub(""), "a b");
    assert_eq!(sub(", mcp_servers: [b]"), "b");
    assert_eq!(sub(", mcp_servers: []"), "");
    assert_eq!(sub(", mcp_servers: {c: {command: [sh]}}"), "c");
    // Who says which tools it has means those.
    assert_eq!(sub(", tools: [t]"), "");
    assert_eq!(sub(", tools: [t], mcp_servers: [a]"), "a");
}

#[test]
fn a_program_that_is_not_there_is_a_warning_because_it_may_be_where_the_agent_runs() {
    let (loaded, _dir) = loaded("  mcp_servers: {files: {command: [./not-there]}}");
    let [warning] = &loaded.warnings[..] else {
        panic!("{:?}", loaded.warnings);
    };
    assert_eq!(warning.path, "spec.mcp_servers.files.command[0]");
}

#[test]
fn an_empty_interrupt_on_asks_nobody_about_their_tools_either() {
    let (loaded, _dir) = loaded("  mcp_servers: {a: {command: [sh]}}\n  interrupt_on: {}");
    assert!(loaded.definition.mcp_servers[0].unasked);
}

#[test]
fn what_is_wrong_is_said_where_it_is() {
    let mut all = String::new();
    for lines in [
        "  mcp_servers: [files]",
        "  mcp_servers: {files: }",
        "  mcp_servers: {files: {}}",
        "  mcp_servers: {files: {command: [sh], url: \"https://a.example\"}}",
        "  mcp_servers: {files: {command: [sh], headers: {a: b}}}",
        "  mcp_servers: {files: {url: \"https://a.example\", env: {A: b}}}",
        "  mcp_servers: {files: {command: sh}}",
        "  mcp_servers: {files: {command: []}}",
        "  mcp_servers: {files: {comand: [sh]}}",
        "  mcp_servers: {a__b: {command: [sh]}}",
        "  mcp_servers: {\"a b\": {command: [sh]}}",
        "  mcp_servers: {files: {command: [sh], tools: []}}",
        "  mcp_servers: {files: {command: [sh], tools: [read], effects: {write: read}}}",
        "  mcp_servers: {files: {command: [sh], effects: {write: safe}}}",
        "  mcp_servers: {files: {command: [sh], env: {API_KEY: sk-1}}}",
        "  mcp_servers: {files: {command: [sh], env: {\"A B\": c}}}",
        "  mcp_servers: {files: {command: [sh], env: {A: {secrt: B}}}}",
        "  mcp_servers: {files: {command: [sh], timeout: 0s, trust_hints: 7}}",
        "  mcp_servers: {web: {url: \"ftp://a.example\"}}",
        "  mcp_servers: {web: {url: \"http://127.0.0.1:9/mcp\"}}",
        "  mcp_servers: {web: {url: \"https://a.example\", headers: {Authorization: sk-1}}}",
        "  mcp_servers: {files: {command: [sh]}}\n  interrupt_on: {file__read: true}",
        "  mcp_servers: {files: {command: [sh]}}\n  subagents: [{name: s, description: d, system_prompt: p, mcp_servers: [file, files, files]}]",
        "  subagents: [{name: s, description: d, system_prompt: p, mcp_servers: [file]}]",
    ] {
        all.push_str(&format!("#{lines}\n{}\n\n", said(lines)));
    }
    assert_snapshot!(all);
}
