//! Names that stand for models and stores where an agent runs.

use std::{collections::BTreeMap, ffi::OsStr};

use holdpoint_definition::{Names, Setting, load_in};
use insta::assert_snapshot;

use crate::{AGENT, SUPERAGENT, folder, read, read_named, said_by};

#[test]
fn a_model_may_be_named_in_either_version_and_by_subagents() {
    let dir = folder();
    let agent = AGENT.replace("scripted:scenario.yaml", "gpt-4o");
    let sub =
        "  subagents: [{name: a, description: b, system_prompt: c, model: {primary: gpt-4o}}]\n";
    let written = AGENT.to_owned() + sub;
    for text in [agent, written, SUPERAGENT.to_owned()] {
        let loaded = read_named(&text, dir.path()).unwrap().definition;
        let last = loaded
            .subagents
            .last()
            .map(|it| it.definition.model.clone());
        let model = last.unwrap_or(loaded.model);
        assert_eq!(model, "scripted:/models/gpt.yaml", "{text}");
    }
}

#[test]
fn a_reference_is_none_of_the_names_unless_it_is_one() {
    let dir = folder();
    let base = dir.path().to_str().unwrap();
    let written = read_named(AGENT, dir.path()).unwrap().definition.model;
    assert_eq!(written, format!("scripted:{base}/scenario.yaml"));
    // Some providers have a colon in the names of their models.
    let names = Names {
        models: BTreeMap::from([("llama3:8b".to_owned(), "scripted:/llama.yaml".to_owned())]),
        ..Names::default()
    };
    let file = dir.path().join("agent.yaml");
    std::fs::write(&file, AGENT.replace("scripted:scenario.yaml", "llama3:8b")).unwrap();
    let setting = Setting {
        names: &names,
        search: None,
    };
    let named = load_in(&file, &setting).unwrap().definition.model;
    assert_eq!(named, "scripted:/llama.yaml");
}

#[test]
fn a_name_that_stands_for_nothing_says_where_it_would_get_a_meaning() {
    assert_snapshot!(said_by(read, SUPERAGENT), @r#"
    agent.yaml:9:14: spec.model.primary: no model is called `gpt-4o` here
      help: map it where the server is configured: `models: {gpt-4o: "openai:gpt-4o"}`; or write `PROVIDER:MODEL` here, for instance `openai:gpt-4o`
    agent.yaml:15:25: spec.interrupt.checkpoint_backend: no store is called `redis` here
      help: map it where the server is configured: `stores: {redis: "sqlite:PATH"}`
    "#);
    let misspelt = SUPERAGENT
        .replace("gpt-4o", "gpt4")
        .replace("redis", "reddis");
    assert_snapshot!(said_by(read_named, &misspelt), @r"
    DIR/agent.yaml:9:14: spec.model.primary: no model is called `gpt4` here
      help: did you mean `gpt-4o`?
    DIR/agent.yaml:15:25: spec.interrupt.checkpoint_backend: no store is called `reddis` here
      help: did you mean `redis`?
    ");
    let odd = SUPERAGENT.replace("gpt-4o", "my model");
    assert_snapshot!(said_by(read_named, &odd), @r#"
    DIR/agent.yaml:9:14: spec.model.primary: no model is called `my model` here
      help: map it where the server is configured: `models: {NAME: "openai:gpt-4o"}`; or write `PROVIDER:MODEL` here, for instance `openai:gpt-4o`
    "#);
}

#[test]
fn programs_are_looked_for_where_the_agent_will_run() {
    let dir = folder();
    let file = dir.path().join("agent.yaml");
    std::fs::write(&file, AGENT).unwrap();
    let names = Names::default();
    let warnings = |search| {
        let setting = Setting {
            names: &names,
            search,
        };
        load_in(&file, &setting).unwrap().warnings.len()
    };
    assert_eq!(warnings(None), 0);
    // `cat`, `rm` and `ls` are not in the agent's folder.
    assert_eq!(warnings(Some(OsStr::new("."))), 3);
}
