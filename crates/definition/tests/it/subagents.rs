//! Subagents that are fine, and what they inherit.

use std::collections::BTreeMap;

use holdpoint_core::{
    Allowed, Breakpoints, Definition, Effect, Gate, InterruptMode, Limits, Policy, Ruling, Span,
    Subagent,
};

use crate::{AGENT, folder, read};

/// [`AGENT`] with this added to its `spec`, and no warnings.
fn agent(more: &str) -> Definition {
    let dir = folder();
    std::fs::write(dir.path().join("other.yaml"), "").unwrap();
    let loaded = read(&format!("{AGENT}{more}"), dir.path());
    let loaded = loaded.unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(loaded.warnings, []);
    loaded.definition
}

fn tools(definition: &Definition) -> Vec<&str> {
    definition
        .tools
        .iter()
        .map(|tool| tool.name.as_str())
        .collect()
}

fn sub<'d>(definition: &'d Definition, name: &str) -> &'d Definition {
    &definition.subagent(name).unwrap().definition
}

#[test]
fn what_a_subagent_does_not_say_is_that_of_the_agent_above() {
    let root = agent(
        r"  default: interrupt
  interrupt_mode: per_call
  strict: true
  limits: {turns: 7, calls: 8, time: 9m}
  breakpoints: {before: [task, model], after: [delete_file]}
  subagents:
    - name: reader
      description: Reads.
      system_prompt: You read.
",
    );
    let expected = Subagent {
        description: "Reads.".to_owned(),
        definition: Definition {
            name: "reader".to_owned(),
            system_prompt: Some("You read.".to_owned()),
            subagents: Vec::new(),
            // The run's, which has one set of them.
            breakpoints: Breakpoints::default(),
            ..root.clone()
        },
    };
    assert_eq!(root.subagents, [expected]);
    assert!(root.breakpoints.before.contains("task") && root.strict);
    let reader = sub(&root, "reader");
    assert_eq!(
        reader.limits,
        Limits {
            turns: 7,
            calls: 8,
            time: Span::from_secs(540)
        }
    );
}

#[test]
fn what_a_subagent_says_takes_the_place_of_what_is_above() {
    let root = agent(
        r#"  subagents:
    - name: file-manager
      description: Manages files.
      system_prompt: You manage files.
      model: {primary: "scripted:other.yaml"}
      interrupt_mode: per_call
      tools:
        - read_file
        - {name: stat, effect: read, command: [stat]}
      interrupt_on: {read_file: true}
      default: deny
      strict: true
"#,
    );
    assert_eq!(
        (root.strict, root.interrupt_mode),
        (false, InterruptMode::Batched)
    );
    let manager = sub(&root, "file-manager");
    assert!(manager.model.ends_with("/other.yaml"), "{}", manager.model);
    assert_eq!(tools(manager), ["read_file", "stat"]);
    assert_eq!(manager.tool("read_file"), root.tool("read_file"));
    assert_eq!(manager.interrupt_mode, InterruptMode::PerCall);
    assert!(manager.strict);
    let expected = Policy {
        interrupt_on: BTreeMap::from([("read_file".to_owned(), Gate::ask(Allowed::standard()))]),
        default: Ruling::Deny,
    };
    assert_eq!(manager.policy, expected);
}

#[test]
fn gates_are_replaced_as_a_whole_and_never_merged() {
    let root = agent(
        r"  subagents:
    - {name: none, description: d, system_prompt: p, interrupt_on: {}}
    - {name: some, description: d, system_prompt: p, interrupt_on: {read_file: true}}
",
    );
    assert_eq!(sub(&root, "none").policy.interrupt_on, BTreeMap::new());
    let some: Vec<_> = sub(&root, "some").policy.interrupt_on.keys().collect();
    assert_eq!(some, ["read_file"]);
    assert!(root.policy.interrupt_on.contains_key("delete_file"));
}

#[test]
fn the_default_is_inherited_by_itself_so_that_naming_gates_opens_nothing_else() {
    let root = agent(
        r"  default: deny
  subagents:
    - {name: a, description: d, system_prompt: p, interrupt_on: {read_file: false}}
    - {name: b, description: d, system_prompt: p, default: interrupt}
",
    );
    assert_eq!(sub(&root, "a").policy.default, Ruling::Deny);
    let b = &sub(&root, "b").policy;
    assert_eq!(b.default, Ruling::Interrupt);
    assert_eq!(b.interrupt_on, root.policy.interrupt_on);
}

#[test]
fn an_inherited_policy_may_name_tools_that_the_subagent_does_not_have() {
    let root =
        agent("  subagents: [{name: a, description: d, system_prompt: p, tools: [read_file]}]\n");
    let a = sub(&root, "a");
    assert_eq!(tools(a), ["read_file"]);
    assert_eq!(a.policy, root.policy);
    assert!(a.policy.interrupt_on.contains_key("delete_file"));
}

#[test]
fn subagents_of_subagents_inherit_from_the_one_above_them() {
    let root = agent(
        r#"  subagents:
    - name: outer
      description: d
      system_prompt: p
      tools: [read_file]
      interrupt_on: {"*": true, task: false}
      subagents:
        - name: inner
          description: d
          system_prompt: p
        - name: outer
          description: d
          system_prompt: p
          tools: [{name: own, effect: idempotent, command: [own]}]
"#,
    );
    let outer = sub(&root, "outer");
    let inner = sub(outer, "inner");
    assert_eq!(
        (tools(inner), &inner.policy),
        (vec!["read_file"], &outer.policy)
    );
    let own = sub(outer, "outer");
    assert_eq!(own.tools[0].effect, Effect::Idempotent);
    assert_eq!(own.policy, outer.policy);
}

#[test]
fn tasks_can_be_gated_and_tools_of_subagents_can_be_stopped_at() {
    let root = agent(
        r"    task: {allowed_decisions: [approve, reject]}
  breakpoints: {before: [own, task], after: [read_file]}
  subagents:
    - name: a
      description: d
      system_prompt: p
      tools: [{name: own, effect: read, command: [own]}]
",
    );
    assert!(root.policy.interrupt_on.contains_key(Definition::TASK));
    let before: Vec<_> = root.breakpoints.before.iter().collect();
    assert_eq!(before, ["own", "task"]);
}

#[test]
fn true_means_the_same_in_every_agent_of_a_file() {
    let root = agent(
        r"  true_includes_respond: true
  default: interrupt
  subagents:
    - {name: a, description: d, system_prompt: p, interrupt_on: {read_file: true}}
    - {name: b, description: d, system_prompt: p, default: allow}
",
    );
    let four = &root.policy.interrupt_on["*"];
    assert_eq!(four.terms.allowed.as_slice().len(), 4);
    let a = &sub(&root, "a").policy.interrupt_on;
    assert_eq!((&a["read_file"], &a["*"]), (four, four));
    // A `default` of its own is not covered by what the one above was written out as.
    let b = &sub(&root, "b").policy;
    assert_eq!(
        (b.default, b.interrupt_on.contains_key("*")),
        (Ruling::Allow, false)
    );
}

#[test]
fn a_definition_with_subagents_has_one_canonical_spelling() {
    let root = agent("  subagents: [{name: a, description: d, system_prompt: p}]\n");
    let again = serde_json::from_str::<Definition>(&root.to_canonical().unwrap()).unwrap();
    assert_eq!(again, root);
}
