//! The shipped examples load, and there is nothing to warn of.

use std::{collections::BTreeMap, path::PathBuf};

use holdpoint_core::{
    Allowed, Confirmation, DecisionKind, Definition, Effect, Gate, Ruling, Span, Terms, ToolSpec,
};
use holdpoint_definition::{Loaded, Problems, Setting, agent_files, load, load_in, load_server};

fn examples() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

fn example(name: &str) -> PathBuf {
    examples().join(name).join("agent.yaml")
}

fn fine<T>(read: Result<T, Problems>) -> T {
    read.unwrap_or_else(|problems| panic!("{problems}"))
}

/// All agents of the shipped server, without problems and warnings.
fn served() -> Vec<Loaded> {
    let server = fine(load_server(&examples().join("server.yaml")));
    let setting = Setting {
        names: &server.names,
        search: None,
    };
    let files = fine(agent_files(&server.agents));
    let agents = files.iter().map(|file| {
        let loaded = fine(load_in(file, &setting));
        assert_eq!(loaded.warnings, [], "{}", file.display());
        loaded
    });
    agents.collect()
}

#[test]
fn the_assistant_with_a_real_model_has_no_problems_or_warnings() {
    let loaded = fine(holdpoint_definition::load(
        &examples().join("assistant/agent.yaml"),
    ));
    assert_eq!(loaded.warnings, []);
    assert_eq!(loaded.definition.model, "openai:gpt-4o-mini");
}

#[test]
fn the_shipped_server_has_every_example_and_none_has_problems_or_warnings() {
    let served = served().into_iter().map(|loaded| loaded.definition.name);
    let mut folders = Vec::new();
    for entry in std::fs::read_dir(examples()).unwrap() {
        let folder = entry.unwrap().path();
        if folder.join("agent.yaml").exists() {
            folders.push(folder.file_name().unwrap().to_str().unwrap().to_owned());
        }
    }
    // Whoever has no key should find nothing that needs one.
    folders.retain(|folder| folder != "assistant");
    folders.sort();
    assert_eq!(served.collect::<Vec<_>>(), folders);
    assert_eq!(
        folders,
        [
            "approval-agent",
            "code-executor",
            "file-manager",
            "library",
            "notebook",
            "refund",
            "researcher",
            "risk-tiers"
        ]
    );
}

/// Whatever a scenario lets the model of this agent call, the agent has.
fn plays_by_its_tools(definition: &Definition) {
    let mut tools = definition.tools.clone();
    if !definition.subagents.is_empty() {
        let task = Definition::TASK.to_owned();
        tools.push(ToolSpec {
            name: task,
            ..tools[0].clone()
        });
    }
    let unknown = holdpoint_models::Providers::default().check(
        &definition.model,
        &tools,
        &definition.mcp_servers,
    );
    let unknown = unknown.unwrap_or_else(|error| panic!("{}: {error}", definition.name));
    assert_eq!(unknown, [], "{}", definition.name);
    for subagent in &definition.subagents {
        plays_by_its_tools(&subagent.definition);
    }
}

#[test]
fn every_shipped_scenario_can_be_played() {
    for loaded in served() {
        plays_by_its_tools(&loaded.definition);
    }
}

#[test]
fn the_approval_agent_is_told_to_ask_and_waits_300_seconds_in_a_store_of_its_own() {
    let loaded = served().remove(0);
    let folder = std::path::absolute(examples().join("approval-agent")).unwrap();
    let folder = folder.to_str().unwrap();
    let prompt = loaded.definition.system_prompt.clone().unwrap();
    assert!(prompt.contains("\"Please confirm\""), "{prompt}");
    let confirm = Confirmation {
        timeout: Some(Span::from_secs(300)),
        ..Confirmation::standard()
    };
    let expected = Definition::new("approval-agent", format!("scripted:{folder}/scenario.yaml"))
        .with_version("1.0.0")
        .with_prompt(prompt)
        .confirm(confirm);
    assert_eq!(loaded.definition, expected);
    assert_eq!(loaded.store, Some(format!("sqlite:{folder}/chat.db")));
}

fn two() -> Allowed {
    Allowed::new(vec![DecisionKind::Approve, DecisionKind::Reject]).unwrap()
}

fn gates<const N: usize>(gates: [(&str, Gate); N]) -> BTreeMap<String, Gate> {
    gates
        .into_iter()
        .map(|(name, gate)| (name.to_owned(), gate))
        .collect()
}

#[test]
fn the_code_executor_reviews_code_and_asks_about_packages() {
    let definition = load(&example("code-executor")).unwrap().definition;
    let description = Some("Install {{ args.name }} into the sandbox?".to_owned());
    let expected = gates([
        ("execute_code", Gate::ask(Allowed::standard())),
        (
            "install_package",
            Gate {
                terms: Terms {
                    description,
                    ..Terms::new(two())
                },
                ..Gate::ask(two())
            },
        ),
        ("read_file", Gate::open()),
    ]);
    assert_eq!(definition.policy.interrupt_on, expected);
}

#[test]
fn the_office_has_three_levels_of_risk_and_no_fourth() {
    let policy = load(&example("risk-tiers")).unwrap().definition.policy;
    let description = Some("{{ args.content | lines }} lines to {{ args.path }}".to_owned());
    let high = || Gate::ask(Allowed::standard());
    let expected = gates([
        ("delete_file", high()),
        ("execute_shell", high()),
        ("send_email", high()),
        ("modify_database", high()),
        (
            "write_file",
            Gate {
                terms: Terms {
                    description,
                    ..Terms::new(two())
                },
                ..Gate::ask(two())
            },
        ),
        ("create_user", Gate::ask(two())),
        ("read_file", Gate::open()),
        ("search_web", Gate::open()),
        ("calculate", Gate::open()),
    ]);
    assert_eq!(policy.interrupt_on, expected);
    assert_eq!(policy.default, Ruling::Interrupt);
}

#[test]
fn reading_is_open_to_the_researcher_and_gated_in_its_file_manager() {
    let researcher = load(&example("researcher")).unwrap().definition;
    assert_eq!(researcher.policy.interrupt_on["read_file"], Gate::open());
    let manager = researcher.subagent("file-manager").unwrap();
    assert_eq!(manager.description, "Manages the files of the workspace.");
    let asked = || Gate::ask(Allowed::standard());
    assert_eq!(
        manager.definition.policy.interrupt_on,
        gates([("delete_file", asked()), ("read_file", asked())])
    );
    // The searcher says nothing of gates, and has a tool of its own.
    let searcher = &researcher.subagent("searcher").unwrap().definition;
    assert_eq!(searcher.policy, researcher.policy);
    assert!(searcher.tool("search_web").is_some() && searcher.tool("delete_file").is_none());
}

#[test]
fn the_file_manager_is_gated_by_risk() {
    let definition = load(&example("file-manager")).unwrap().definition;
    let two = two();
    let description = Some("助手想写入一个文件,请确认。".to_owned());
    let expected = BTreeMap::from([
        ("delete_file".to_owned(), Gate::ask(Allowed::standard())),
        ("read_file".to_owned(), Gate::open()),
        (
            "write_file".to_owned(),
            Gate {
                terms: Terms {
                    description,
                    ..Terms::new(two.clone())
                },
                ..Gate::ask(two)
            },
        ),
    ]);
    assert_eq!(definition.policy.interrupt_on, expected);
}

#[test]
fn the_refund_can_be_looked_up_and_undone() {
    let definition = load(&example("refund")).unwrap().definition;
    let refund = definition.tool("issue_refund").unwrap();
    assert_eq!(
        (
            refund.effect,
            refund.hooks().lookup,
            refund.hooks().compensate
        ),
        (Effect::Write, true, true)
    );
    assert_eq!(definition.tool("get_order").unwrap().effect, Effect::Read);
    let asked = Gate::ask(Allowed::standard());
    assert_eq!(definition.policy.interrupt_on["issue_refund"], asked);
}
