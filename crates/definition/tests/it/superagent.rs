//! `apiVersion: superagent/v1`, unchanged.

use holdpoint_core::{Confirmation, Definition, InputField, Span};
use insta::assert_snapshot;

use crate::{SUPERAGENT, folder, read_named, said_by};

/// [`SUPERAGENT`] after `from` in it was replaced by `to`.
fn with(from: &str, to: &str) -> String {
    assert!(SUPERAGENT.contains(from), "{from}");
    SUPERAGENT.replacen(from, to, 1)
}

const INTERRUPT: &str = "    enabled: true
    checkpoint_backend: redis # redis or memory
    timeout_seconds: 300
";

/// What is waited for, and in which store, where `interrupt` has these lines; and how often that is warned of.
fn interrupt(lines: &str) -> (Option<Confirmation>, Option<String>, usize) {
    let dir = folder();
    let loaded = read_named(&with(INTERRUPT, lines), dir.path());
    let loaded = loaded.unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(loaded.definition.flaw(), None);
    (
        loaded.definition.confirm,
        loaded.store,
        loaded.warnings.len(),
    )
}

fn after(seconds: u64) -> Confirmation {
    Confirmation {
        timeout: Some(Span::from_secs(seconds)),
        ..Confirmation::standard()
    }
}

#[test]
fn a_whole_file_becomes_an_agent_without_tools_that_waits_for_confirmations() {
    let dir = folder();
    let loaded = read_named(SUPERAGENT, dir.path()).unwrap();
    let expected = Definition::new("approval-agent", "scripted:/models/gpt.yaml")
        .with_version("1.0.0")
        .with_prompt("You approve things.\nSay \"Please confirm\" first.\n")
        .confirm(after(300));
    assert_eq!(loaded.definition, expected);
    assert_eq!(loaded.store.as_deref(), Some("sqlite:/stores/chat.db"));
    assert_eq!(loaded.warnings, []);
    // The words of the table, and the one that its last example needs.
    let confirm = loaded.definition.confirm.unwrap();
    assert_eq!(confirm.keywords, Confirmation::KEYWORDS);
    assert_eq!(confirm.keywords.len(), 13);
    let form = [InputField::confirm("confirm", "Confirm action")];
    assert_eq!(confirm.fields, form);
}

#[test]
fn whatever_may_be_unsaid_is() {
    let dir = folder();
    let text = "apiVersion: superagent/v1\nkind: Agent\nmetadata: {name: a}\nspec: {model: {primary: gpt-4o}}\n";
    let loaded = read_named(text, dir.path()).unwrap();
    let expected = Definition::new("a", "scripted:/models/gpt.yaml");
    assert_eq!((loaded.definition, loaded.store), (expected, None));
    assert_eq!(loaded.warnings, []);
}

#[test]
fn interrupts_are_off_unless_enabled_for_300_seconds_unless_said_in_the_servers_store_unless_said()
{
    let memory = Some("memory:".to_owned());
    let redis = Some("sqlite:/stores/chat.db".to_owned());
    let cases = [
        ("    enabled: false\n", (None, None, 0)),
        ("    enabled: true\n", (Some(after(300)), None, 0)),
        (
            "    enabled: true\n    timeout_seconds: 7\n",
            (Some(after(7)), None, 0),
        ),
        (
            "    enabled: true\n    checkpoint_backend: memory\n",
            (Some(after(300)), memory, 0),
        ),
        (
            "    enabled: true\n    checkpointBackend: redis\n    timeoutSeconds: 60\n",
            (Some(after(60)), redis, 0),
        ),
        // What then says nothing is warned of, and need not stand for anything.
        (
            "    enabled: false\n    checkpoint_backend: etcd\n    timeout_seconds: 60\n",
            (None, None, 2),
        ),
        (
            "    keywords: [x]\n    presets: [zh]\n    keywords_only: true\n    fields: [{name: c, type: confirm}]\n",
            (None, None, 4),
        ),
    ];
    for (lines, expected) in cases {
        assert_eq!(interrupt(lines), expected, "{lines}");
    }
}

#[test]
fn words_and_form_may_be_said_beside_it() {
    let lines = "    enabled: true
    presets: [zh]
    keywords: [may i]
    keywords_only: true
    fields: [{name: confirm, type: confirm, label: 确认删除}]
";
    let mut expected = after(300);
    expected.keywords = Confirmation::KEYWORDS_ZH.map(str::to_owned).to_vec();
    expected.keywords.push("may i".to_owned());
    expected.fields = vec![InputField::confirm("confirm", "确认删除")];
    assert_eq!(interrupt(lines), (Some(expected), None, 0));
}

#[test]
fn a_store_that_forgets_may_be_made_one_that_does_not() {
    let dir = folder();
    let file = dir.path().join("agent.yaml");
    let text = with("backend: redis", "backend: memory");
    std::fs::write(&file, text.replace("gpt-4o", "scripted:scenario.yaml")).unwrap();
    let mut names = holdpoint_definition::Names::default();
    names
        .stores
        .insert("memory".to_owned(), "sqlite:/safe.db".to_owned());
    let setting = holdpoint_definition::Setting {
        names: &names,
        search: None,
    };
    let loaded = holdpoint_definition::load_in(&file, &setting).unwrap();
    assert_eq!(loaded.store.as_deref(), Some("sqlite:/safe.db"));
}

#[test]
fn what_says_nothing_is_a_warning_with_a_remedy() {
    let dir = folder();
    let loaded = read_named(&with("enabled: true", "enabled: false"), dir.path()).unwrap();
    let shown = loaded.warnings.iter().map(ToString::to_string);
    let shown = shown.collect::<Vec<_>>().join("\n");
    let shown = shown.replace(dir.path().to_str().unwrap(), "DIR");
    assert_snapshot!(shown, @r"
    DIR/agent.yaml:15:25: spec.interrupt.checkpoint_backend: says nothing, because interrupts are not enabled
      help: say `enabled: true` beside it, or remove it
    DIR/agent.yaml:16:22: spec.interrupt.timeout_seconds: says nothing, because interrupts are not enabled
      help: say `enabled: true` beside it, or remove it
    ");
}

#[test]
fn everything_else_is_a_problem() {
    let cases = [
        ("kind: Agent", "kind: Workflow"),
        ("  version: \"1.0.0\"", "  version: 1.0"),
        ("  name: approval-agent", "  nmae: approval-agent"),
        ("type: chat_model_agent", "type: workflow_agent"),
        ("type: chat_model_agent", "type: chat_model_agnt"),
        (
            "type: chat_model_agent",
            "tools: []\n  interruptOn: {}\n  confirm: true",
        ),
        ("type: chat_model_agent", "temperature: 1"),
        ("  model:\n    primary: gpt-4o\n", ""),
        ("primary: gpt-4o", "primary: [gpt-4o]"),
        ("primary: gpt-4o", "fallback: gpt-4o"),
        ("backend: redis", "backend: etcd"),
        ("backend: redis", "backend: rediss"),
        ("backend: redis", "backend: \"redis://:secret@host\""),
        ("backend: redis", "backend: "),
        ("timeout_seconds: 300", "timeout_seconds: 0"),
        ("timeout_seconds: 300", "timeout_seconds: -1"),
        ("timeout_seconds: 300", "timeout_seconds: 300s"),
        ("timeout_seconds: 300", "timeout_seconds: 1.5"),
        ("timeout_seconds: 300", "timeout_seconds: 31536001"),
        ("timeout_seconds: 300", "timeout: 300s"),
        ("enabled: true", "enabled: yes"),
        ("enabled: true", "enabled: true\n    keywords_only: true"),
        ("enabled: true", "enabled: true\n    keywords: [\"\"]"),
        ("enabled: true", "enabled: true\n    fields: []"),
        ("backend: builtin", "backend: redis"),
        ("backend: builtin", "store: builtin"),
        ("  interrupt:\n", "  interrupts:\n"),
    ];
    let mut all = String::new();
    for (from, to) in cases {
        let said = said_by(read_named, &with(from, to));
        let shown = if to.is_empty() {
            format!("without {from}")
        } else {
            to.to_owned()
        };
        let shown = shown.trim_end().replace('\n', "\n# ");
        all.push_str(&format!("# {shown}\n{said}\n\n"));
    }
    assert_snapshot!(all);
}
