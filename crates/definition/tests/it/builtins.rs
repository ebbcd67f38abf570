//! Built-in tools: the folder that they work in, and the gates that they have where nothing is said.

use std::{fs, path::Path};

use holdpoint_core::{Builtin, DecisionKind, Definition, Policy, Runner, Span, ToolSpec};
use holdpoint_definition::{Loaded, Problems};

use crate::{folder, read, said_by};

/// An agent with these lines in its `spec`.
fn agent(lines: &str) -> String {
    format!(
        "apiVersion: holdpoint/v1\nkind: Agent\nmetadata: {{name: clerk}}\nspec:\n  model: {{primary: \"scripted:scenario.yaml\"}}\n{lines}\n"
    )
}

fn in_folder(text: &str, dir: &Path) -> Result<Loaded, Problems> {
    fs::create_dir_all(dir.join("work/in")).unwrap();
    fs::write(dir.join("file"), "").unwrap();
    read(&agent(text), dir)
}

fn said(text: &str) -> String {
    said_by(in_folder, text)
}

fn loaded(text: &str) -> (Loaded, tempfile::TempDir) {
    let dir = folder();
    let loaded = in_folder(text, dir.path()).unwrap_or_else(|problems| panic!("{problems}"));
    (loaded, dir)
}

fn asked(policy: &Policy) -> Vec<&str> {
    let names = Builtin::ALL.map(Builtin::as_str);
    let names = names.into_iter().chain([Definition::TASK, "other"]);
    names.filter(|name| policy.may_ask(name)).collect()
}

const ALL: &str = "  workspace: ./work\n  tools: [{builtin: read_file}, {builtin: ls}, {builtin: glob}, {builtin: grep}, {builtin: write_file}, {builtin: edit_file}, {builtin: shell}, {builtin: execute}, {builtin: fetch_url}, {builtin: web_search}, {builtin: write_todos}]";
const GATED: [&str; 6] = [
    "write_file",
    "edit_file",
    "shell",
    "execute",
    "fetch_url",
    "web_search",
];

#[test]
fn each_is_a_tool_in_the_folder_that_is_named() {
    let (loaded, dir) = loaded(ALL);
    assert_eq!(loaded.warnings, []);
    let workspace = dir.path().join("work").to_str().unwrap().to_owned();
    let expected = Builtin::ALL.map(|it| ToolSpec::builtin(it, Some(&workspace)));
    assert_eq!(loaded.definition.tools, expected);
}

#[test]
fn its_times_and_permissions_may_be_said() {
    let (loaded, _dir) = loaded(
        "  workspace: work/../work\n  tools: [{builtin: shell, timeout: 5m, settle: 1s, permissions: [ops]}]",
    );
    let shell = &loaded.definition.tools[0];
    assert_eq!(
        (shell.timeout, shell.settle),
        (Span::from_secs(300), Span::from_secs(1))
    );
    assert_eq!(shell.permissions, ["ops"]);
}

#[test]
fn what_writes_runs_or_reaches_the_network_is_asked_about_unless_something_is_said() {
    for (more, expected) in [
        ("", &GATED[..]),
        (
            "\n  interrupt_on: {ls: true}",
            &[
                "ls",
                "write_file",
                "edit_file",
                "shell",
                "execute",
                "fetch_url",
                "web_search",
            ],
        ),
        (
            "\n  interrupt_on: {shell: false}",
            &[
                "write_file",
                "edit_file",
                "execute",
                "fetch_url",
                "web_search",
            ],
        ),
        ("\n  interrupt_on: {\"*\": false}", &[]),
        ("\n  interrupt_on: {}", &[]),
        ("\n  default: deny", &[]),
    ] {
        let (loaded, _dir) = loaded(&format!("{ALL}{more}"));
        let mut asked = asked(&loaded.definition.policy);
        asked.sort_unstable();
        let mut expected = expected.to_vec();
        expected.sort_unstable();
        assert_eq!(asked, expected, "{more}");
    }
    let (loaded, _dir) = loaded(ALL);
    for name in GATED {
        let gate = &loaded.definition.policy.interrupt_on[name];
        let allowed = gate.terms.allowed.as_slice();
        assert_eq!(allowed, [DecisionKind::Approve, DecisionKind::Reject]);
        let words = gate.terms.description.as_deref().unwrap();
        holdpoint_policy::Template::compile(words).unwrap();
    }
}

#[test]
fn an_agent_that_asks_nobody_is_warned_of() {
    let (open, _dir) = loaded(&format!("{ALL}\n  interrupt_on: {{}}"));
    let warning = open.warnings[0].to_string();
    assert!(
        warning.contains("nobody is asked before a call of `write_file`"),
        "{warning}"
    );
    let (denied, _dir) = loaded(&format!("{ALL}\n  interrupt_on: {{}}\n  default: deny"));
    assert_eq!(denied.warnings, []);
    let (harmless, _dir) =
        loaded("  workspace: ./work\n  tools: [{builtin: ls}]\n  interrupt_on: {}");
    assert_eq!(harmless.warnings, []);
}

#[test]
fn subagents_work_in_the_same_folder_and_have_the_same_gates() {
    let text = "  workspace: ./work
  tools: [{builtin: write_file}, {builtin: read_file}]
  subagents:
    - {name: same, description: d, system_prompt: p}
    - {name: own, description: d, system_prompt: p, tools: [read_file, {builtin: shell}]}
    - {name: said, description: d, system_prompt: p, tools: [write_file, {builtin: shell}], interrupt_on: {shell: false}}
    - {name: open, description: d, system_prompt: p, interrupt_on: {}}";
    let (loaded, dir) = loaded(text);
    let root = &loaded.definition;
    assert_eq!(asked(&root.policy), ["write_file", "task"]);
    let gates = |name| {
        let definition = &root.subagent(name).unwrap().definition;
        let own = definition.tools.iter().map(|it| it.name.as_str());
        own.filter(|it| definition.policy.may_ask(it))
            .collect::<Vec<_>>()
    };
    assert_eq!(gates("same"), ["write_file"]);
    assert_eq!(gates("own"), ["shell"]);
    assert_eq!(gates("said"), ["write_file"]);
    assert_eq!(gates("open"), [""; 0]);
    assert_eq!(loaded.warnings.len(), 1, "{:?}", loaded.warnings);
    let own = &root.subagent("own").unwrap().definition.tools[1];
    let Runner::Builtin { workspace, .. } = &own.runner else {
        panic!("not built in")
    };
    assert_eq!(workspace.as_deref(), dir.path().join("work").to_str());
}

#[test]
fn a_strict_agent_is_not_weakened_by_what_a_subagent_leaves_open() {
    let text = "  workspace: ./work\n  strict: true\n  tools: [{builtin: shell}]\n  subagents: [{name: a, description: d, system_prompt: p, interrupt_on: {}}]";
    assert!(said(text).contains("this allows more than it does of `shell`"));
}

#[test]
fn what_is_wrong_is_said_with_a_remedy() {
    for (text, expected) in [
        (
            "  tools: [{builtin: shel}]",
            "agent.yaml:6:21: spec.tools[shel].builtin: no built-in tool is called `shel`\n  help: did you mean `shell`?",
        ),
        ("  tools: [{builtin: task}]", "help: leave it out"),
        (
            "  tools: [{builtin: read_file}]",
            "agent.yaml:6:11: spec.tools[read_file]: `read_file` works in a folder, and none is named\n  help: name it in `spec`",
        ),
        (
            "  tools: [{builtin: write_todos, command: [x]}]",
            "unknown key `command`",
        ),
        ("  tools: [{builtin: write_todos, timeout: 0s}]", "timeout"),
        (
            "  tools: [{builtin: write_todos}, {builtin: write_todos}]",
            "a second tool is called `write_todos`",
        ),
        (
            "  workspace: ./none\n  tools: [{builtin: ls}]",
            "agent.yaml:6:14: spec.workspace: there is no folder `DIR/none`\n  help: make it",
        ),
        ("  workspace: ./file", "`DIR/file` is not a folder"),
        (
            "  workspace: .",
            "contains this file, and a tool could rewrite its own gates",
        ),
        ("  workspace: /", "contains this file"),
        ("  workspace: ''", "workspace"),
        (
            "  workspace: ./work\n  interrupt_on: {write_file: true}",
            "no tool is called `write_file`",
        ),
        (
            "  workspace: ./work\n  subagents: [{name: a, description: d, system_prompt: p, workspace: ./work}]",
            "`workspace` does not belong here",
        ),
    ] {
        let said = said(text);
        assert!(said.contains(expected), "{text}\n{said}");
    }
}
