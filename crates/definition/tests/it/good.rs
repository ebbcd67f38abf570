//! Files that are fine.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use holdpoint_core::{
    Allowed, Breakpoints, Confirmation, ContextRule, DecisionKind, Definition, Effect,
    FIRST_FORMAT, Gate, InterruptMode, Limits, OnTimeout, Policy, Ruling, Runner, Sampling, Span,
    Terms, ToolKind, ToolSpec,
};
use holdpoint_definition::{load, load_for};
use serde_json::json;

use crate::{AGENT, folder, read};

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn a_full_file_becomes_a_whole_definition() {
    let dir = folder();
    fs::create_dir(dir.path().join("bin")).unwrap();
    let program = dir.path().join("bin/refund");
    fs::write(&program, "").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let file = dir.path().join("agent.yaml");
    fs::write(
        &file,
        r#"
apiVersion: holdpoint/v1
kind: Agent
metadata: {name: clerk, version: "2026-10"}
spec:
  model: {primary: "scripted:scenario.yaml"}
  system_prompt: |
    Look first.
    Pay then.
  tools:
    - name: refund.issue
      description: Pays.
      version: "7"
      effect: write
      input_schema:
        type: object
        properties: {amount: {type: number, minimum: 0.5, maximum: 0x10}}
        required: [amount]
      command: [bin/refund, ./data/book.txt, ../shared, --in, ., a/b]
      stepped: true
      timeout: 250ms
      settle: 0s
      lookup: [python3, ./lookup.py]
      compensate: [/bin/sh, -c, "exit 1"]
      permissions: [refunds, money]
  interrupt_on:
    refund.issue:
      allowed_decisions: [reject, approve, respond]
      description: Money leaves.
      always_ask: true
      requires_token: true
      timeout: 15m
      on_timeout: reject
    "*": {allowedDecisions: [approve]}
  interrupt_mode: per_call
  context: {max_tokens: 9000}
  breakpoints: {before: [refund.issue, model], after: [model]}
  strict: true
  confirm: true
  limits: {turns: 3, calls: 4, time: 5m}
"#,
    )
    .unwrap();
    let loaded = load(&file).unwrap();
    let base = text(dir.path());
    let expected = Definition {
        format: FIRST_FORMAT,
        name: "clerk".to_owned(),
        version: "2026-10".to_owned(),
        model: format!("scripted:{base}/scenario.yaml"),
        fallback: vec![],
        sampling: Sampling::default(),
        context: ContextRule { max_tokens: 9_000 },
        system_prompt: Some("Look first.\nPay then.\n".to_owned()),
        tools: vec![ToolSpec {
            name: "refund.issue".to_owned(),
            description: "Pays.".to_owned(),
            version: "7".to_owned(),
            effect: Effect::Write,
            input_schema: json!({
                "type": "object",
                "properties": {"amount": {"type": "number", "minimum": 0.5, "maximum": 16}},
                "required": ["amount"],
            }),
            runner: Runner::Command {
                command: vec![
                    format!("{base}/bin/refund"),
                    format!("{base}/data/book.txt"),
                    format!("{base}/../shared"),
                    "--in".to_owned(),
                    ".".to_owned(),
                    "a/b".to_owned(),
                ],
                cwd: base.clone(),
                lookup: Some(vec!["python3".to_owned(), format!("{base}/lookup.py")]),
                compensate: Some(words(&["/bin/sh", "-c", "exit 1"])),
            },
            kind: ToolKind::Stepped,
            timeout: Span::from_millis(250),
            settle: Span::ZERO,
            permissions: words(&["refunds", "money"]),
        }],
        mcp_servers: Vec::new(),
        written: None,
        policy: Policy {
            interrupt_on: BTreeMap::from([
                (
                    "refund.issue".to_owned(),
                    Gate {
                        rules: Vec::new(),
                        otherwise: Ruling::Interrupt,
                        terms: Terms {
                            allowed: Allowed::new(vec![
                                DecisionKind::Reject,
                                DecisionKind::Approve,
                                DecisionKind::Respond,
                            ])
                            .unwrap(),
                            description: Some("Money leaves.".to_owned()),
                            always_ask: true,
                            requires_token: true,
                            timeout: Some(Span::from_secs(900)),
                            on_timeout: OnTimeout::Reject,
                            flags: vec![],
                        },
                    },
                ),
                (
                    "*".to_owned(),
                    Gate::ask(Allowed::new(vec![DecisionKind::Approve]).unwrap()),
                ),
            ]),
            default: Ruling::Allow,
        },
        interrupt_mode: InterruptMode::PerCall,
        limits: Limits {
            turns: 3,
            calls: 4,
            time: Span::from_secs(300),
        },
        breakpoints: Breakpoints {
            before: ["model", "refund.issue"].map(str::to_owned).into(),
            after: ["model"].map(str::to_owned).into(),
        },
        subagents: Vec::new(),
        strict: true,
        confirm: Some(Confirmation::standard()),
        guardrails: BTreeMap::new(),
    };
    assert_eq!(loaded.definition, expected);
    assert_eq!(loaded.warnings, []);
    assert_eq!(loaded.strict().unwrap(), expected);
}

#[test]
fn what_is_unsaid_gets_its_default() {
    let dir = folder();
    let spec = "  model: {primary: \"scripted:scenario.yaml\"}\n";
    let bare =
        format!("apiVersion: holdpoint/v1\nkind: Agent\nmetadata: {{name: a}}\nspec:\n{spec}");
    let definition = read(&bare, dir.path()).unwrap().definition;
    assert_eq!(definition.version, "1");
    assert_eq!(definition.system_prompt, None);
    assert_eq!(definition.tools, []);
    assert_eq!(
        definition.policy,
        Policy {
            interrupt_on: BTreeMap::new(),
            default: Ruling::Allow
        }
    );
    assert_eq!(definition.interrupt_mode, InterruptMode::Batched);
    assert_eq!(definition.limits, Limits::default());
    assert_eq!(definition.breakpoints, Breakpoints::default());
    assert_eq!((definition.subagents.len(), definition.strict), (0, false));

    let tool = format!("{bare}  tools: [{{name: t, command: [t]}}]\n");
    let tool = &read(&tool, dir.path()).unwrap().definition.tools[0];
    let expected = ToolSpec {
        name: "t".to_owned(),
        description: String::new(),
        version: "1".to_owned(),
        effect: Effect::Write,
        input_schema: json!({"type": "object"}),
        runner: Runner::Command {
            command: words(&["t"]),
            cwd: text(dir.path()),
            lookup: None,
            compensate: None,
        },
        kind: ToolKind::Plain,
        timeout: Span::from_secs(60),
        settle: Span::from_secs(5),
        permissions: Vec::new(),
    };
    assert_eq!(*tool, expected);
}

#[test]
fn the_gate_of_true_is_the_three_decisions_and_false_is_open() {
    let dir = folder();
    let text = AGENT.replace(
        "  interrupt_on:\n",
        "  interrupt_on:\n    read_file: false\n",
    );
    let policy = read(&text, dir.path()).unwrap().definition.policy;
    let expected = BTreeMap::from([
        ("delete_file".to_owned(), Gate::ask(Allowed::standard())),
        ("read_file".to_owned(), Gate::open()),
    ]);
    assert_eq!(policy.interrupt_on, expected);
}

#[test]
fn the_default_rules_are_read() {
    let dir = folder();
    for (word, rule) in [
        ("allow", Ruling::Allow),
        ("interrupt", Ruling::Interrupt),
        ("deny", Ruling::Deny),
    ] {
        let text = format!("{AGENT}  default: {word}\n");
        assert_eq!(
            read(&text, dir.path()).unwrap().definition.policy.default,
            rule
        );
    }
}

#[test]
fn aliases_share_values_and_comments_do_no_harm() {
    let dir = folder();
    let text = AGENT
        .replace("      effect: read\n", "      effect: read # safe\n      input_schema: &path {type: object, required: [path]}\n")
        .replace("      lookup: [ls]\n", "      lookup: [ls]\n      input_schema: *path\n");
    let tools = read(&text, dir.path()).unwrap().definition.tools;
    assert_eq!(
        tools[0].input_schema,
        json!({"type": "object", "required": ["path"]})
    );
    assert_eq!(tools[0].input_schema, tools[1].input_schema);
}

#[test]
fn a_relative_file_is_stored_with_absolute_paths() {
    let dir = folder();
    fs::write(dir.path().join("agent.yaml"), AGENT).unwrap();
    let up: PathBuf = std::env::current_dir()
        .unwrap()
        .components()
        .skip(1)
        .map(|_| "..")
        .collect();
    let relative = up
        .join(dir.path().strip_prefix("/").unwrap())
        .join("agent.yaml");
    let definition = load(&relative).unwrap().definition;
    let scenario = definition.model.strip_prefix("scripted:").unwrap();
    assert!(
        Path::new(scenario).is_absolute() && Path::new(scenario).is_file(),
        "{scenario}"
    );
    let Runner::Command { cwd, .. } = &definition.tools[0].runner else {
        panic!("not a command")
    };
    assert!(Path::new(cwd).is_absolute(), "{cwd}");
}

#[test]
fn a_write_without_a_lookup_and_a_missing_program_are_warnings_and_strict_refuses_them() {
    let dir = folder();
    let text = AGENT
        .replace("      lookup: [ls]\n", "")
        .replace("[cat]", "[./cat]");
    let loaded = read(&text, dir.path()).unwrap();
    let shown: Vec<_> = loaded.warnings.iter().map(ToString::to_string).collect();
    let expected = [
        format!(
            "agent.yaml:9:17: spec.tools[read_file].command[0]: there is no program `{}/cat`\n  help: calls will fail until it is there; a name without a `/` is looked up on PATH",
            dir.path().display()
        ),
        "agent.yaml:10:7: spec.tools[delete_file]: a `write` tool without a `lookup`: when a call is cut off, a person has to find out what it did\n  help: add a `lookup`, or say `effect: idempotent` if it passes HOLDPOINT_IDEMPOTENCY_KEY on to a system that acts once per key".to_owned(),
    ];
    assert_eq!(shown, expected);
    assert_eq!(
        loaded.strict().unwrap_err().to_string(),
        expected.join("\n")
    );
}

#[test]
fn a_stepped_tool_that_may_write_and_has_no_lookup_is_a_warning() {
    let dir = folder();
    let told = |effect: &str| -> Vec<String> {
        let stepped = format!("      stepped: true\n{effect}");
        let loaded = read(&AGENT.replace("      lookup: [ls]\n", &stepped), dir.path()).unwrap();
        let tool = loaded.definition.tool("delete_file").unwrap();
        assert_eq!(tool.kind, ToolKind::Stepped);
        loaded.warnings.iter().map(ToString::to_string).collect()
    };
    let expected = "agent.yaml:10:7: spec.tools[delete_file]: a stepped tool without a `lookup`: when a `write` step is cut off, a person has to find out what it did\n  help: add a `lookup`, or say `effect: idempotent` or `effect: read` if no step is a `write`";
    assert_eq!(told(""), [expected]);
    assert_eq!(told("      effect: write\n"), [expected]);
    assert!(told("      effect: idempotent\n").is_empty());
    assert!(told("      effect: read\n").is_empty());
}

#[test]
fn a_program_that_nobody_can_start_is_a_warning() {
    let dir = folder();
    let file = dir.path().join("agent.yaml");
    fs::write(&file, AGENT.replace("[rm]", "[./idle]")).unwrap();
    fs::write(dir.path().join("idle"), "").unwrap();
    let told = |search: &str| -> Vec<String> {
        let loaded = load_for(&file, search.as_ref()).unwrap();
        let warnings = loaded.warnings.into_iter();
        warnings.map(|warning| warning.message).collect()
    };
    let idle = || format!("`{}/idle` cannot be executed", dir.path().display());
    let none = |name: &str| format!("there is no program `{name}` on PATH");
    assert_eq!(told("/usr/bin:/bin"), [idle()]);
    assert_eq!(told("/nowhere"), [none("cat"), idle(), none("ls")]);
    // A relative entry is seen from the folder in which programs run, and a file that cannot be executed is none.
    for (mode, expected) in [
        (0o644, vec![none("cat"), idle(), none("ls")]),
        (0o755, vec![idle(), none("ls")]),
    ] {
        fs::write(dir.path().join("cat"), "").unwrap();
        fs::set_permissions(dir.path().join("cat"), fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(told("."), expected);
    }
    // Where nothing is known of the place it will run in, nothing is said of names.
    let unknown: Vec<_> = load(&file).unwrap().warnings;
    assert_eq!(unknown.len(), 1);
}

#[test]
fn a_definition_has_one_canonical_spelling() {
    let dir = folder();
    let definition = read(AGENT, dir.path()).unwrap().definition;
    let again = serde_json::from_str::<Definition>(&definition.to_canonical().unwrap()).unwrap();
    assert_eq!(again, definition);
}
